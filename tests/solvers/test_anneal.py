"""Paths of MM and SD, from the start to the last refit, for one binary problem and for several."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import COLUMNS, SIGNS, make_problem, make_problems, make_units, of_one
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from kmargin import MM, SD, Exchange, Solution, SparseSVC, Status
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.core.sparsity import normalizer
from kmargin.core.units import Units
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_synthetic
from kmargin.solvers.refit.support import refit
from kmargin.solvers.solution import Ending

SOLVERS = {"mm": MM, "sd": SD}


def solve(solver, problem, ks=None, rng=None):
    """The solutions of one binary problem along a path."""
    ks = [problem.k] if ks is None else ks
    rng = np.random.default_rng(0) if rng is None else rng
    return [solution for (solution,) in solver.solve_grid(Problem.of(problem), [[problem.lam]], ks, rng)]


def solve_together(solver, problems, units, ks, rng=None):
    """The solutions of several binary problems for a single C."""
    rng = np.random.default_rng(0) if rng is None else rng
    return list(solver.solve_grid(Problem(tuple(problems), units), [[p.lam for p in problems]], ks, rng))


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_one_record_per_rho_and_it_is_true(solver):
    problem = make_problem()
    (solution,) = solve(solver(), problem)
    rhos = [record.rho for record in solution.trace]
    np.testing.assert_allclose(rhos, 1.2 ** np.arange(len(rhos)))
    assert all(record.n_inner >= 1 for record in solution.trace)
    assert all(record.gradient_sq < 1e-6 for record in solution.trace)
    assert solution.n_iter == sum(record.n_inner for record in solution.trace)
    assert solution.regime is None  # that of a search
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
    problem = ArrayProblem(DenseDesign(X), hidden, np.ones(60), 0.0)
    (projected,) = solve(solver(ending="projection"), problem, [1])
    (best,) = solve(solver(), problem, [1])
    assert best.objective <= problem.best_constant()[1] < projected.objective
    beta = np.append(best.dense_coef(), best.intercept)
    assert best.objective == pytest.approx(problem.loss(beta), rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_recorded_steps_majorise_and_descend_unless_momentum_carries_them(solver, problem):
    solver = solver(trace="steps", ending="projection", max_outer=20)
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
def test_another_unit_is_another_ridge(unit):
    """lam |w|^2 stays the same where coefficients are `unit` times as large and lam is over `unit`^2."""
    problem = make_problem(20, 4, 2, lam=0.3)
    large = replace(problem, design=DenseDesign(problem.design.X * unit), lam=0.3 * unit**2)
    solutions = [solve(SD(ending="projection"), each)[0] for each in (large, problem)]
    np.testing.assert_allclose(solutions[0].coef * unit, solutions[1].coef, rtol=1e-6)
    np.testing.assert_allclose(solutions[0].objective, solutions[1].objective, rtol=1e-6)


def test_polishing_counts_both_searches():
    problem = make_problem(30, 6, 2)
    (plain,), (polished,) = (solve(SD(polish=polish), problem) for polish in (False, True))
    (better,) = Exchange().improve(Problem.of(problem), [plain])
    assert better.n_iter > 0
    assert polished.n_iter == plain.n_iter + better.n_iter
    assert polished.objective == better.objective
    assert polished.trace == plain.trace


def test_where_nothing_is_annealed_the_tolerance_follows_the_ridge():
    problem = make_problem(20, 5, 5, lam=0.01)
    tolerances = [
        MM(gtol=1e-6)._gtol(of_one(each))
        for each in (problem, replace(problem, k=4), replace(problem, lam=0.0))
    ]
    assert tolerances == pytest.approx([1e-6 * 0.01 / 5, 1e-6, 1e-6])


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
    "wide": ({"n_features": 60, "n_samples": 20}, make_units([1] * 60), 5),
}


@pytest.mark.parametrize(("solver", "ending"), [(MM, "best"), (SD, "best"), (SD, "projection")])
@pytest.mark.parametrize("name", CASES)
def test_the_problems_share_at_most_k_units_and_their_objectives_are_true(solver, name, ending):
    options, units, k = CASES[name]
    problems = make_problems(**options)
    (solutions,) = solve_together(solver(ending=ending), problems, units, [k])
    assert len(used_units(solutions, units)) <= k
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.n_features == problem.design.n_features
        assert np.count_nonzero(solution.dense_coef()) == len(solution.support)
        assert not np.any(solution.dense_coef() * units.signs < 0)
        assert np.isin(solution.support, units.columns).all()
        np.testing.assert_allclose(solution.objective, problem.loss(beta_of(solution, problem)), rtol=1e-10)
        if ending == "best":
            assert solution.objective <= problem.best_constant()[1]


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_each_problem_ends_at_its_minimum_on_the_common_support(solver):
    problems, units = make_problems(), make_units([3, 1, 2, 2])
    (solutions,) = solve_together(solver(), problems, units, [2])
    common = units.columns_of(np.array(used_units(solutions, units)))
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.ending is Ending.REFIT
        assert solution.objective == pytest.approx(refit(problem, common)[2], rel=1e-9)


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


@pytest.mark.parametrize(
    "solver", [MM(gtol=1e-14, ending="projection"), SD(gtol=1e-14, ending="projection"), Exchange()]
)
def test_copies_of_a_problem_choose_what_it_chooses_alone(solver):
    (problem,) = make_problems(1)
    ((alone,),) = solve_together(solver, [problem], COLUMNS, [3])
    (copies,) = solve_together(solver, [problem] * 3, COLUMNS, [3])
    for copy in copies:
        np.testing.assert_array_equal(copy.support, alone.support)
        np.testing.assert_allclose(copy.coef, alone.coef, rtol=1e-7 if isinstance(solver, Exchange) else 1e-2)


@pytest.mark.parametrize("solver", SOLVERS.values())
def test_a_grid_is_one_path_for_each_C(solver):
    problems, ks = make_problems(2), [4, 2]
    lams = [[0.3, 0.2], [0.02, 0.01]]
    grid = list(solver().solve_grid(Problem(tuple(problems), COLUMNS), lams, ks, np.random.default_rng(0)))
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


def test_without_units_and_beside_a_hopeless_ridge_the_intercepts_are_left():
    problems = make_problems()
    hopeless = [replace(m, lam=1e101) for m in problems]
    projected = solve_together(SD(ending="projection"), problems, COLUMNS, [0])
    ended = [solve_together(SD(), *rest) for rest in ((problems, COLUMNS, [0]), (hopeless, COLUMNS, [3]))]
    for found in (projected, *ended):
        for solution, problem in zip(found[0], problems, strict=True):
            assert len(solution.support) == 0
            assert solution.status is Status.CONVERGED
            assert solution.intercept == pytest.approx(problem.mean_label())
            assert solution.objective == pytest.approx(problem.best_constant()[1])
