import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from conftest import make_problem
from kmargin import MM, SD, Exchange, SparseSVC, Status
from kmargin.datasets import make_synthetic
from kmargin.design import DenseDesign
from kmargin.problem import ArrayProblem
from kmargin.solvers.momentum import Momentum
from kmargin.solvers.refit import refit
from kmargin.solvers.result import Ending
from kmargin.solvers.start import intercept_loss
from kmargin.sparsity import normalizer

SOLVERS = {"mm": MM, "sd": SD}


def solve(solver, problem, ks=None):
    ks = [problem.k] if ks is None else ks
    return list(solver.iter_path(problem, ks, np.random.default_rng(0)))


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_final_iterate_is_exactly_in_S_k(solver, problem):
    (solution,) = solve(solver(), problem)
    assert len(solution.support) <= problem.k
    assert np.count_nonzero(solution.dense_coef()) == len(solution.support)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_one_record_per_rho_and_it_is_true(solver):
    problem = make_problem()
    (solution,) = solve(solver(), problem)
    rhos = [record.rho for record in solution.trace]
    np.testing.assert_allclose(rhos, 1.2 ** np.arange(len(rhos)))
    assert all(record.n_inner >= 1 for record in solution.trace)
    assert all(record.gradient_sq < 1e-6 for record in solution.trace)
    assert solution.n_iter == sum(record.n_inner for record in solution.trace)
    beta = np.append(solution.dense_coef(), solution.intercept)
    np.testing.assert_allclose(solution.objective, problem.loss(beta), rtol=1e-12)


def test_the_three_ends_are_told_apart():
    problem = make_problem(lam=0.0)
    count = normalizer(problem.design.n_features, problem.k)

    (converged,) = solve(MM(rtol=0.0), problem)
    assert converged.status is Status.CONVERGED
    assert converged.trace[-1].distance_sq / count <= 1e-6

    (stalled,) = solve(MM(), problem)
    assert stalled.status is Status.STALLED
    d = [record.distance_sq / count for record in stalled.trace]
    assert d[-1] > 1e-6
    assert abs(d[-1] - d[-2]) < 1e-6 * (1 + d[-2])
    assert abs(d[-2] - d[-3]) >= 1e-6 * (1 + d[-3])

    (exhausted,) = solve(MM(max_outer=3), problem)
    assert exhausted.status is Status.EXHAUSTED
    assert len(exhausted.trace) == 3


def test_statuses_speak_of_knobs_that_exist():
    knobs = MM().get_params() | Exchange().get_params()
    for status in Status:
        assert all(word.split("=")[0] in knobs for word in status.value.split("`")[1::2])


def test_projection_cost_is_what_the_last_projection_added():
    problem = make_problem(lam=0.0)
    (early,) = solve(MM(max_outer=1), problem)
    (late,) = solve(MM(rtol=0.0, dtol=1e-12), problem)
    assert early.projection_cost > late.projection_cost
    assert abs(late.projection_cost) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_each_solution_of_a_path_starts_from_the_last(solver):
    problem = make_problem(60, 12, 12)
    dense, sparse = solve(solver(ending="projection"), problem, [12, 4])
    (again,) = solve(solver(ending="projection"), problem.with_k(4))
    start = np.append(dense.dense_coef(), dense.intercept)
    found, _, trace = solver().anneal(problem.with_k(4), start)
    np.testing.assert_array_equal(sparse.dense_coef(), problem.with_k(4).project(found)[:-1])
    assert sparse.trace == trace
    assert trace != again.trace


def test_rho_grows_until_the_constraint_holds_at_the_loss_minimum_of_its_support():
    # As rho -> inf the solution is a stationary point on its own support
    problem = make_problem(80, 6, 2, lam=0.01)
    (solution,) = solve(MM(rtol=0.0, dtol=1e-14, gtol=1e-16, ending="projection"), problem)
    beta = np.append(solution.dense_coef(), solution.intercept)
    gradient = problem.with_k(6).gradient(beta, 1.0)
    np.testing.assert_allclose(gradient[[*solution.support, -1]], 0, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_a_run_ends_with_the_minimum_on_the_support_of_its_projection(solver):
    problem = make_problem(60, 12, 4, lam=0.01)
    (best,), (projected,) = solve(solver(), problem), solve(solver(ending="projection"), problem)
    assert best.trace == projected.trace
    np.testing.assert_array_equal(best.support, projected.support)
    *_, minimum, _ = refit(problem, best.support)
    assert best.objective == pytest.approx(minimum, rel=1e-10)
    assert best.objective < projected.objective
    assert (best.ending, projected.ending) == (Ending.REFIT, Ending.PROJECTION)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_a_run_whose_projection_is_worse_than_no_feature_ends_at_the_intercept_or_below(solver):
    # two columns that only together tell the classes apart: one alone is worse than nothing
    rng = np.random.default_rng(0)
    hidden, noise = rng.choice([-1.0, 1.0], 60), 30 * rng.standard_normal(60)
    X = np.column_stack([hidden + noise, noise])
    problem = ArrayProblem(DenseDesign(X), hidden, np.ones(60), 0.0, 1)
    (projected,) = solve(solver(ending="projection"), problem)
    (best,) = solve(solver(), problem)
    assert best.objective <= intercept_loss(problem) < projected.objective
    beta = np.append(best.dense_coef(), best.intercept)
    assert best.objective == pytest.approx(problem.loss(beta), rel=1e-12)


def test_momentum_follows_the_papers_rule():
    updates = [np.array([float(m**2)]) for m in range(1, 7)]
    momentum = Momentum(np.zeros(1), delay=2)
    carried = [float(momentum.extrapolate(u)[0]) for u in updates]
    # off for two updates; then (j - 1)/(j + 2) with j = 1, 2, 3, 4
    assert carried == [1, 4, 9, 16 + 1 / 4 * 7, 25 + 2 / 5 * 9, 36 + 3 / 6 * 11]
    momentum.restart()
    assert momentum.extrapolate(np.array([50.0]))[0] == 50


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_readable_and_compiled_solvers_keep_the_same_features(solver):
    problem = make_problem(80, 10, 3)
    (fast,) = solve(solver(ending="projection"), problem)
    (slow,) = solve(solver(jit=False, ending="projection"), problem)
    np.testing.assert_array_equal(fast.support, slow.support)
    np.testing.assert_allclose(fast.objective, slow.objective, rtol=1e-4)


def test_random_starts_depend_on_the_generator_alone():
    problem = make_problem()
    solver = MM(start="normal")
    first, again = (next(solver.iter_path(problem, [4], np.random.default_rng(1))) for _ in range(2))
    other = next(solver.iter_path(problem, [4], np.random.default_rng(2)))
    assert first.trace == again.trace
    assert first.trace != other.trace


@pytest.mark.parametrize("solver", [MM(ending="projection"), SD(ending="projection")])
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_a_path_that_was_left_goes_on_as_if_it_had_not_been(solver, unit):
    X, y = make_synthetic(80, 30, random_state=1)
    problem = ArrayProblem(DenseDesign(X * unit, True), y.astype(float), np.ones(80), 0.0, 30)
    rng = np.random.default_rng(0)
    whole = list(solver.iter_path(problem, [20, 10, 5, 2], rng))
    rest = list(solver.iter_path(problem, [5, 2], rng, after=whole[1]))
    for one, other in zip(whole[2:], rest, strict=True):
        np.testing.assert_array_equal(one.dense_coef(), other.dense_coef())
        assert one.intercept == other.intercept
        assert one.n_iter == other.n_iter


STEPS = {"mm": MM(trace="steps", ending="projection"), "sd": SD(trace="steps", ending="projection")}


@pytest.mark.parametrize("solver", STEPS.values(), ids=STEPS.keys())
def test_recorded_steps_majorise_and_descend_unless_momentum_carries_them(solver, problem):
    (solution,) = solve(solver, problem)
    for record in solution.trace:
        assert [step.step for step in record.steps] == list(range(record.n_inner + 1))
        f, g = (np.array([getattr(s, name) for s in record.steps]) for name in ("objective", "surrogate"))
        slack = 1e-12 * (1 + f[0])
        assert g[0] == pytest.approx(f[0], rel=1e-12)
        assert (f <= g + slack).all()
        plain = slice(solver.delay + 1)
        assert (g[plain][1:] <= f[plain][:-1] + slack).all()
        assert [s.restarted for s in record.steps] == [False, *(np.diff(f) > 0)]
        last = record.steps[-1]
        assert last[1::2] == (record.objective, record.gradient_sq, last.restarted)
        assert last.distance_sq == record.distance_sq


@pytest.mark.parametrize("name", STEPS)
def test_recording_steps_changes_nothing_else(name):
    problem = make_problem()
    (recorded,), (plain,) = solve(STEPS[name], problem), solve(SOLVERS[name](ending="projection"), problem)
    np.testing.assert_allclose(recorded.dense_coef(), plain.dense_coef(), rtol=1e-6, atol=1e-9)
    assert [r.n_inner for r in recorded.trace] == [r.n_inner for r in plain.trace]
    assert all(record.steps == () for record in plain.trace)


def test_a_rise_of_the_objective_resets_the_momentum():
    problem = make_problem(60, 8, 3, lam=0.0)
    (solution,) = solve(MM(trace="steps", rho_start=0.01, gtol=1e-12, max_outer=3), problem)
    assert any(step.restarted for record in solution.trace for step in record.steps)


def test_rhos_are_used_as_given():
    problem = make_problem()
    rhos = [0.5, 3, 40]
    (solution,) = solve(MM(rhos=rhos, rtol=0.0, dtol=0.0), problem)
    assert [record.rho for record in solution.trace] == rhos
    assert solution.status is Status.EXHAUSTED
    (geometric,) = solve(MM(rhos=[1.2**i for i in range(100)]), problem)
    (default,) = solve(MM(), problem)
    assert geometric.trace == default.trace


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"rhos": []}, r"rhos=\[\] .* Use a sequence of penalties > 0, such as \[1, 10, 100\], or None"),
        ({"rhos": [1, -2]}, r"rhos=\[1, -2\]"),
        ({"rhos": 3.0}, r"rhos=3.0"),
        ({"trace": "all"}, r"trace='all' .* Use 'outer' or 'steps'"),
    ],
)
def test_a_schedule_or_trace_that_makes_no_sense_is_refused(knobs, message):
    with pytest.raises(ValueError, match=message):
        MM(**knobs).check()


def test_a_stalled_fit_warns_once_for_all_its_classifiers_and_not_for_every_fold():
    X, y = make_synthetic(200, 20, random_state=0)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)  # three classes
    model = SparseSVC(k=2, solver=MM(), shared=False)
    with pytest.warns(
        ConvergenceWarning, match="3 of 3 solutions: the squared distance to S_k stopped"
    ) as seen:
        model.fit(X, y)
    assert len(seen) == 1
    assert all(s.status is Status.STALLED and s.is_sound for s in model.solutions_)
    with pytest.warns(ConvergenceWarning, match="the final projection onto S_k raised the objective") as seen:
        GridSearchCV(model, {"k": [2]}, cv=3).fit(X, y)
    assert len(seen) == 1
