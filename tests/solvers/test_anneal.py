"""Paths of MM and SD, from the start to the last refit, for one binary problem and for several."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from penalised_problems import COLUMNS, SIGNS, make_problems, make_units
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from conftest import make_problem
from kmargin import MM, SD, Exchange, Solution, SparseSVC, Status
from kmargin.core.problem import ArrayProblem
from kmargin.core.sparsity import normalizer
from kmargin.core.units import Units
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_synthetic
from kmargin.solvers.proximal.anneal import best_ending
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.refit.folded import Measured
from kmargin.solvers.refit.support import refit, refit_with_signs
from kmargin.solvers.solution import Ending
from kmargin.solvers.solver import bare_solution, intercept_loss, univariate_start

SOLVERS = {"mm": MM, "sd": SD}


def solve(solver, problem, ks=None):
    ks = [problem.k] if ks is None else ks
    return list(solver.iter_path(problem, ks, np.random.default_rng(0)))


def solve_together(solver, problems, units, ks, rng=None):
    """The solutions for a single C."""
    rng = np.random.default_rng(0) if rng is None else rng
    return list(solver.iter_joint_grid(problems, [[p.lam for p in problems]], ks, units, rng))


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


def test_statuses_speak_of_knobs_and_attributes_that_exist():
    known = MM().get_params() | Exchange().get_params() | Solution.__dataclass_fields__
    for status in Status:
        assert all(word.split("=")[0] in known for word in status.value.split("`")[1::2])


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
    penalised = PenalisedProblem.of_one(problem.with_k(4))
    found, _, trace = solver()._anneal(penalised, solver()._descent(penalised), start[None])
    np.testing.assert_array_equal(sparse.dense_coef(), penalised.project(found)[0, :-1])
    assert sparse.trace == trace
    assert trace != again.trace


def test_rho_grows_until_the_constraint_holds_at_the_loss_minimum_of_its_support():
    # As rho -> inf the solution is a stationary point on its own support
    problem = make_problem(80, 6, 2, lam=0.01)
    (solution,) = solve(MM(rtol=0.0, dtol=1e-14, gtol=1e-16, ending="projection"), problem)
    beta = np.append(solution.dense_coef(), solution.intercept)
    gradient = gradient_of_loss(problem, beta)
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


def test_soundness_is_judged_by_what_the_projection_cost():
    def ended(status, cost):
        return Solution(np.arange(1), np.ones(1), 0.0, 3, 0.1, cost, status, 1)

    assert ended(Status.STALLED, 0.009).is_sound
    assert not ended(Status.STALLED, 0.02).is_sound
    assert not ended(Status.EXHAUSTED, 0.0).is_sound
    assert ended(Status.CONVERGED, 0.5).is_sound


@pytest.mark.parametrize("unit", [2.0**30, 2.0**-30])
def test_another_unit_is_another_ridge(unit, rng):
    """lam |w|^2 stays the same where coefficients are `unit` times as large and lam is over `unit`^2."""
    problem = make_problem(20, 4, 2, lam=0.3)
    large = replace(problem, design=DenseDesign(problem.design.X * unit), lam=0.3 * unit**2)
    solutions = [next(iter(SD(ending="projection").iter_path(p, [2], rng))) for p in (large, problem)]
    np.testing.assert_allclose(solutions[0].coef * unit, solutions[1].coef, rtol=1e-6)
    np.testing.assert_allclose(solutions[0].objective, solutions[1].objective, rtol=1e-6)


def test_every_ridge_of_a_grid_is_its_own():
    problem = make_problem(20, 5, 2)
    lams = [0.5, 0.05]
    found = list(SD().iter_grid(problem, lams, [2], np.random.default_rng(0)))
    for lam, solution in zip(lams, found, strict=True):
        (alone,) = SD().iter_path(replace(problem, lam=lam), [2], np.random.default_rng(0))
        np.testing.assert_array_equal(solution.coef, alone.coef)
        assert solution.objective == alone.objective


def test_polishing_counts_both_searches():
    problem = make_problem(30, 6, 2)
    rng = np.random.default_rng(0)
    (plain,), (polished,) = (list(SD(polish=p).iter_path(problem, [2], rng)) for p in (False, True))
    better = Exchange().improve(problem, plain)
    assert better.n_iter > 0
    assert polished.n_iter == plain.n_iter + better.n_iter
    assert polished.objective == better.objective
    assert polished.trace == plain.trace


def test_where_nothing_is_annealed_the_tolerance_follows_the_ridge():
    problem = make_problem(20, 5, 5, lam=0.01)
    tolerances = [
        MM(gtol=1e-6)._gtol(PenalisedProblem.of_one(each))
        for each in (problem, replace(problem, k=4), replace(problem, lam=0.0))
    ]
    assert tolerances == pytest.approx([1e-6 * 0.01 / 5, 1e-6, 1e-6])


def test_coefficients_come_back_in_the_units_given():
    problem = make_problem(30, 5, 2, lam=0.0)
    large = replace(problem, design=DenseDesign(problem.design.X * 2.0**40))
    solver, rng = SD(ending="projection"), np.random.default_rng(0)
    (plain,), (scaled,) = (list(solver.iter_path(p, [2], rng)) for p in (problem, large))
    np.testing.assert_allclose(scaled.coef * 2.0**40, plain.coef, rtol=1e-3)


def test_without_features_the_intercept_is_the_weighted_mean_label():
    problem = make_problem(30, 5, 0)
    (solution,) = SD().iter_path(problem, [0], np.random.default_rng(0))
    assert solution.intercept == pytest.approx(np.average(problem.y, weights=problem.weights))
    assert solution.objective == pytest.approx(problem.loss(np.append(np.zeros(5), solution.intercept)))


def test_a_spread_within_the_rounding_of_its_mean_has_no_slope():
    design = SimpleNamespace(n_samples=40, n_features=3, n_parameters=4)
    moments = np.array([0.1, 1.0, 0.0]), np.array([1e-34, 2.0, 0.0]), np.array([1e-18, 0.5, 0.0])
    problem = SimpleNamespace(design=design, moments=lambda: moments, mean_label=lambda: 0.2)
    np.testing.assert_array_equal(univariate_start(problem), [0.0, 0.25, 0.0, 0.2])


def gradient_of_loss(problem, beta):
    """The gradient of loss and ridge, without a penalty."""
    penalised = PenalisedProblem.of_one(problem.with_k(problem.design.n_features))
    return penalised.gradient(beta[None], 1.0)[0]


def beta_of(solution, problem):
    return np.append(solution.dense_coef(), solution.intercept)[: problem.design.n_parameters]


def used_units(solutions, units):
    used = np.any([s.dense_coef() != 0 for s in solutions], axis=0)
    return [j for j in range(units.n_units) if used[units.columns_of(np.array([j]))].any()]


CASES = {
    "columns": ({}, COLUMNS, 3),
    "one design": ({"alike": True}, COLUMNS, 3),
    "groups": ({}, make_units([3, 1, 2, 2]), 2),
    "always in": ({}, make_units([1] * 8, fixed=[2, 5]), 3),
    "signs": ({}, make_units([1] * 8, signs=SIGNS), 3),
    "never in": ({}, make_units([2, 2, 1], 8), 2),
    "one problem": ({"n_problems": 1}, make_units([3, 1, 2, 2]), 2),
    "no intercept": ({"fit_intercept": False}, COLUMNS, 3),
    "no ridge": ({"lam": 0.0}, COLUMNS, 3),
    "k = p": ({}, COLUMNS, 8),
}


@pytest.mark.parametrize("ending", ["best", "projection"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_problems_share_at_most_k_units_and_their_objectives_are_true(solver, name, ending):
    options, units, k = CASES[name]
    problems = make_problems(**options)
    (solutions,) = solve_together(solver(ending=ending), problems, units, [k])
    assert len(used_units(solutions, units)) <= k
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.n_features == 8
        assert not np.any(solution.dense_coef() * units.signs < 0)
        assert np.isin(solution.support, units.columns).all()
        np.testing.assert_allclose(solution.objective, problem.loss(beta_of(solution, problem)), rtol=1e-10)
        if ending == "best":
            assert solution.objective <= intercept_loss(problem)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_each_problem_ends_at_its_minimum_on_the_common_support(solver):
    problems, units = make_problems(), make_units([3, 1, 2, 2])
    (solutions,) = solve_together(solver(), problems, units, [2])
    common = units.columns_of(np.array(used_units(solutions, units)))
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.ending is Ending.REFIT
        assert solution.objective == pytest.approx(refit(problem, common)[2], rel=1e-9)


def test_a_common_support_is_refitted_whole():
    """What is 0 in a problem's projection, but in the common support, has its share in the end."""
    (problem,) = make_problems(1)
    bare, measured = bare_solution(problem, Status.CONVERGED), Measured(problem)
    *_, value, _ = refit(problem, np.array([0]))
    own = replace(bare, support=np.array([0]), coef=np.array([0.1]), objective=0.5 * (value + bare.objective))
    found = best_ending(problem, own, bare, measured, np.array([0, 7]))
    np.testing.assert_array_equal(found.support, [0, 7])
    assert found.objective == pytest.approx(refit(problem, np.array([0, 7]))[2], rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_records_are_those_of_all_problems(solver):
    problems = make_problems()
    (solutions,) = solve_together(solver(), problems, COLUMNS, [3])
    assert all(solution.trace == solutions[0].trace for solution in solutions)
    assert [record.rho for record in solutions[0].trace] == pytest.approx(
        1.2 ** np.arange(len(solutions[0].trace))
    )
    assert all(s.n_iter == sum(record.n_inner for record in s.trace) for s in solutions)
    assert all(record.gradient_sq < 1e-6 for record in solutions[0].trace)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_the_order_of_the_problems_and_of_the_features_does_not_matter(solver, rng):
    problems = make_problems()
    order, columns = [2, 0, 1], rng.permutation(8)
    shuffled = [
        replace(problems[m], design=DenseDesign(np.ascontiguousarray(problems[m].design.X[:, columns])))
        for m in order
    ]
    (first,) = solve_together(solver(), problems, COLUMNS, [3])
    (second,) = solve_together(solver(), shuffled, COLUMNS, [3])
    for m, solution in zip(order, second, strict=True):
        np.testing.assert_allclose(solution.dense_coef(), first[m].dense_coef()[columns], atol=1e-7)
        assert solution.objective == pytest.approx(first[m].objective, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_columns_of_no_unit_are_as_if_they_were_not_there(solver):
    problems, left = make_problems(), np.array([0, 2, 3, 6, 7])
    units = Units(np.arange(6), left, np.zeros(5, bool), np.zeros(8))
    without = [replace(m, design=m.design.take(left)) for m in problems]
    (some,), (fewer,) = (
        solve_together(solver(), problems, units, [2]),
        solve_together(solver(), without, Units.of_columns(5), [2]),
    )
    for one, other in zip(some, fewer, strict=True):
        np.testing.assert_array_equal(one.support, left[other.support])
        np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_what_is_always_in_is_in(solver):
    problems = make_problems()
    free, bound = (
        solve_together(solver(), problems, make_units([1] * 8, fixed=fixed), [3])[0] for fixed in ([], [2, 5])
    )
    assert not {2, 5} <= set(used_units(free, COLUMNS))
    assert {2, 5} < set(used_units(bound, COLUMNS))


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_copies_of_a_problem_choose_what_it_chooses_alone(solver):
    (problem,), settings = make_problems(1), {"gtol": 1e-14, "ending": "projection"}
    ((alone,),) = solve_together(solver(**settings), [problem], COLUMNS, [3])
    (copies,) = solve_together(solver(**settings), [problem] * 3, COLUMNS, [3])
    for copy in copies:
        np.testing.assert_array_equal(copy.support, alone.support)
        np.testing.assert_allclose(copy.coef, alone.coef, rtol=1e-2)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_a_grid_is_one_path_for_each_C(solver):
    problems, ks = make_problems(2), [4, 2]
    lams = [[0.3, 0.2], [0.02, 0.01]]
    grid = list(solver().iter_joint_grid(problems, lams, ks, COLUMNS, np.random.default_rng(0)))
    paths = [
        solutions
        for ridges in lams
        for solutions in solve_together(
            solver(), [replace(m, lam=lam) for m, lam in zip(problems, ridges, strict=True)], COLUMNS, ks
        )
    ]
    for found, expected in zip(grid, paths, strict=True):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.coef, other.coef)


def test_each_solution_of_a_path_starts_from_the_last_where_problems_share_features():
    problems, solver = make_problems(), SD(ending="projection")
    _, after = solve_together(solver, problems, COLUMNS, [8, 3])
    (alone,) = solve_together(solver, problems, COLUMNS, [3])
    assert after[0].trace != alone[0].trace


def test_random_starts_depend_on_the_generator_alone_where_problems_share_features():
    problems, solver = make_problems(), SD(start="normal", ending="projection")
    first, again, other = (
        solve_together(solver, problems, COLUMNS, [3], np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first[1].coef, again[1].coef)
    assert first[0].trace != other[0].trace


@pytest.mark.parametrize("unit", [2.0**30, 2.0**-30])
def test_another_unit_of_all_data_is_another_ridge(unit):
    problems = make_problems(lam=0.1)
    large = [replace(m, design=DenseDesign(m.design.X * unit), lam=m.lam * unit**2) for m in problems]
    (plain,), (scaled,) = (
        solve_together(SD(ending="projection"), ms, COLUMNS, [3]) for ms in (problems, large)
    )
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other.coef * unit, one.coef, rtol=1e-6)
        assert other.objective == pytest.approx(one.objective, rel=1e-6)


def test_a_column_beyond_all_squares_is_survived():
    problems = make_problems()
    X = [m.design.X * np.where(np.arange(8) == 1, 1e200, 1.0) for m in problems]
    huge = [replace(m, design=DenseDesign(x)) for m, x in zip(problems, X, strict=True)]
    (solutions,) = solve_together(SD(), huge, COLUMNS, [3])
    for solution, problem in zip(solutions, huge, strict=True):
        assert np.isfinite(solution.objective)
        assert solution.objective <= intercept_loss(problem)


def test_without_units_and_beside_a_hopeless_ridge_the_intercepts_are_left():
    problems = make_problems()
    hopeless = [replace(m, lam=1e101) for m in problems]
    for found in (solve_together(SD(), problems, COLUMNS, [0]), solve_together(SD(), hopeless, COLUMNS, [3])):
        for solution, problem in zip(found[0], problems, strict=True):
            assert len(solution.support) == 0
            assert solution.status is Status.CONVERGED
            assert solution.intercept == pytest.approx(problem.mean_label())
            assert solution.objective == pytest.approx(intercept_loss(problem))


def test_a_projection_worse_than_no_feature_ends_at_the_intercept_or_below():
    rng = np.random.default_rng(0)
    hidden, noise = rng.choice([-1.0, 1.0], 60), 30 * rng.standard_normal(60)
    problem = ArrayProblem(DenseDesign(np.column_stack([hidden + noise, noise])), hidden, np.ones(60), 0.0, 1)
    (solutions,) = solve_together(SD(), [problem, replace(problem, y=-hidden)], Units.of_columns(2), [1])
    assert all(s.objective <= intercept_loss(problem) for s in solutions)


@pytest.mark.parametrize("lam", [0.02, 0.0])
def test_a_refit_with_signs_satisfies_the_conditions_of_a_minimum(lam, rng):
    signs, support = np.array(SIGNS, dtype=float), np.arange(8)
    for problem in make_problems(5, lam=lam):
        coef, intercept, objective = refit_with_signs(
            problem, support, signs, rng.standard_normal(8), rng.standard_normal()
        )
        beta = np.append(coef, intercept)
        assert objective == pytest.approx(problem.loss(beta), rel=1e-10)
        assert not np.any(coef * signs < 0)
        gradient = gradient_of_loss(problem, beta)
        moves = np.append((coef != 0) | (signs == 0), True)
        np.testing.assert_allclose(gradient[moves], 0.0, atol=1e-7)
        assert np.all((gradient[:8] * signs)[~moves[:8]] >= -1e-9)
        assert not moves.all()


def test_a_refit_without_signs_is_a_refit(rng):
    (problem,), support = make_problems(1), np.array([1, 4, 6])
    coef, intercept, objective = refit_with_signs(problem, support, np.zeros(3), np.zeros(3), 0.0)
    expected, at, value, _ = refit(problem, support)
    np.testing.assert_allclose(coef, expected, atol=1e-9)
    assert intercept == pytest.approx(at, abs=1e-9)
    assert objective == pytest.approx(value, rel=1e-12)
