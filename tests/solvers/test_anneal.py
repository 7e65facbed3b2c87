"""Paths of MM and SD, from the start to the last refit, for one binary problem and for several."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import COLUMNS, SHARED, make_problem, make_problems, make_units, of_one
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from kmargin import MM, SD, Exchange, Solution, SparseSVC, Status
from kmargin.core.problem import Problem
from kmargin.core.scaling import typical_entry
from kmargin.core.units import Units
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_synthetic
from kmargin.solvers.proximal.anneal import best_ending, rescale
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.refit.support import refit
from kmargin.solvers.solution import Ending
from kmargin.solvers.solver import bare_solution, univariate_start

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
    converged, stalled, exhausted = (
        solve(MM(**knobs), problem)[0] for knobs in ({"rtol": 0.0}, {}, {"max_outer": 3})
    )
    assert [s.status for s in (converged, stalled, exhausted)] == [*Status][:3]
    assert converged.trace[-1].distance_sq <= 9e-6 < stalled.trace[-1].distance_sq  # p - k + 1 = 9
    assert len(exhausted.trace) == 3


def test_statuses_speak_of_knobs_and_attributes_that_exist():
    known = MM().get_params() | Exchange().get_params() | Solution.__dataclass_fields__
    for status in Status:
        assert all(word.split("=")[0] in known for word in status.value.split("`")[1::2])


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
    last = projected.trace[-1]
    before = last.objective - last.rho / (12 - 4 + 1) / 2 * last.distance_sq
    cost = pytest.approx(projected.objective - before, rel=1e-6)
    assert best.projection_cost == projected.projection_cost == cost


@pytest.mark.parametrize("start", ["univariate", "normal"])
def test_a_path_starts_where_it_was_told_to_and_then_from_the_last_projection(start):
    problem = make_problem(20, 6)
    solver = SD(start=start, trace="steps", ending="projection", max_outer=2)
    larger, smaller = solve(solver, problem, [4, 2], np.random.default_rng(3))
    normal = np.random.default_rng(3).standard_normal(7)
    first = univariate_start(problem) if start == "univariate" else normal
    for found, k, beta in ((larger, 4, first), (smaller, 2, beta_of(larger, problem))):
        expected = of_one(replace(problem, k=k)).objective(beta[None], 1.0)
        assert found.trace[0].steps[0].objective == pytest.approx(expected, rel=1e-12)


def test_the_lowest_of_projection_refit_and_intercept_is_returned():
    problem = make_problem(40, 6, 3)
    (projected,) = solve(SD(ending="projection", max_outer=2), problem)
    support, alone = projected.support, bare_solution(problem, Status.CONVERGED)
    best = best_ending(problem, projected, alone, support, None)
    assert best.ending is Ending.REFIT
    last = best_ending(problem, projected, replace(alone, objective=-1.0), support, None)
    assert (last.ending, len(last.support), last.intercept) == (Ending.INTERCEPT, 0, alone.intercept)
    assert (last.objective, last.trace) == (-1.0, projected.trace)
    assert best_ending(problem, low := replace(projected, objective=-1.0), alone, support, None) is low
    broken = replace(projected, coef=projected.coef * np.nan, objective=np.nan)
    again = best_ending(problem, broken, alone, support, np.sign(best.dense_coef()))
    np.testing.assert_allclose(again.coef, best.coef, rtol=1e-7)
    signs = -np.sign(best.dense_coef())
    held = best_ending(problem, replace(projected, objective=1.0), alone, support, signs)
    assert (held.dense_coef() * signs >= 0).all()


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
    ("option", "least", "refused", "expected"),
    [
        ("rho_start", 1e-9, 0.0, "an initial penalty > 0"),
        ("rho_growth", 1.001, 1.0, "a growth factor > 1"),
        ("max_outer", 1, 0, "a number of penalties, an integer >= 1"),
        ("max_inner", 1, 0, "a number of steps, an integer >= 1"),
        *((name, 0.0, -1e-9, "a number >= 0 to compare squared") for name in ("gtol", "dtol", "rtol")),
        ("delay", 0, -1, "a number of steps, an integer >= 0"),
        ("rhos", None, [], r"a sequence of penalties > 0, such as \[1, 10, 100\], or None"),
        ("rhos", [1], [1, -2], "a sequence"),
        ("rhos", (1e-9, 3), 3.0, "a sequence"),
        ("rhos", np.ones(2), np.ones((1, 2)), "a sequence"),
        ("polish", True, 1, "True or False"),
        ("trace", "steps", "all", "'outer' or 'steps'"),
        ("start", "normal", None, "'univariate' or 'normal'"),
        ("ending", "projection", "steps", "'best' or 'projection'"),
    ],
)
def test_an_option_may_have_the_least_value_that_makes_sense_and_none_below(option, least, refused, expected):
    SD(**{option: least}).check()
    with pytest.raises(ValueError, match=rf"^{option}=.* is not valid for SD\. Use {expected}"):
        SD(**{option: refused}).check()


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

    assert ended(Status.STALLED, 0.01).is_sound
    assert not ended(Status.STALLED, 0.0101).is_sound
    assert not ended(Status.EXHAUSTED, 0.0).is_sound
    assert ended(Status.CONVERGED, 0.5).is_sound


def test_columns_of_extreme_size_are_divided_by_powers_of_two_and_ridges_by_their_squares():
    problems = make_problems(2, alike=True)
    for unit in (1e-5, 1e5):
        usual = [replace(p, design=DenseDesign(p.design.X * unit)) for p in problems]
        assert rescale(usual) == (1.0, usual)
    for unit, lams in ((3e9, [0.01, 0.02]), (3e-9, [0.01, 0.02]), (1e-30, None)):
        given = [replace(p, design=DenseDesign(p.design.X * unit)) for p in problems]
        scale, scaled = rescale([replace(p, design=given[0].design) for p in given])
        assert np.log2(scale) % 1 == 0
        assert 0.7 < typical_entry(scaled[0]) < 1.42
        assert scaled[0].design is scaled[1].design
        np.testing.assert_array_equal(scaled[0].design.X * scale, given[0].design.X)
        ridges = np.array([p.lam for p in scaled])
        np.testing.assert_array_equal(ridges * scale**2 if lams else ridges, lams or [1e30, 1e30])
    wide = DenseDesign(problems[0].design.X * np.where(np.arange(8) == 3, 1e60, 1.0))
    scale, both = rescale([replace(problems[0], design=wide), problems[1]])
    assert np.flatnonzero(scale != 1.0).tolist() == [3]
    np.testing.assert_array_equal(both[0].design.X * scale, wide.X)
    np.testing.assert_array_equal(both[1].design.X * scale, problems[1].design.X)
    assert [one.lam for one in both] == [0.01, 0.02]


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
    cases = {}, {"k": 4}, {"lam": 0.0}, {"lam": 50.0}, {"lam": 1e-9}
    tolerances = [MM(gtol=1e-6)._gtol(of_one(replace(problem, **case))) for case in cases]
    tolerances.append(MM()._gtol(PenalisedProblem.of(make_problems(), COLUMNS, 8)))  # the least ridge is .01
    assert tolerances == pytest.approx([2e-9, 1e-6, 1e-6, 1e-6, 1e-14, 2e-9], rel=1e-12, abs=0)


def beta_of(solution, problem):
    return np.append(solution.dense_coef(), solution.intercept)[: problem.design.n_parameters]


def used_units(solutions, units):
    used = np.any([s.dense_coef() != 0 for s in solutions], axis=0)
    return [j for j in range(units.n_units) if used[units.columns_of(np.array([j]))].any()]


@pytest.mark.parametrize(("solver", "ending"), [(MM, "best"), (SD, "best"), (SD, "projection")])
@pytest.mark.parametrize("shared", SHARED.values(), ids=SHARED)
def test_the_problems_share_at_most_k_units_and_their_objectives_are_true(solver, shared, ending):
    problems, units = shared.problems, shared.units
    (solutions,) = solve_together(solver(ending=ending), problems, units, [shared.k])
    assert len(used_units(solutions, units)) <= shared.k
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.n_features == problem.design.n_features
        assert np.count_nonzero(solution.dense_coef()) == len(solution.support)
        assert not np.any(solution.dense_coef() * units.signs < 0)
        assert np.isin(solution.support, units.columns).all()
        assert solution.objective == pytest.approx(problem.loss(beta_of(solution, problem)), rel=1e-10)
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
    hopeless = [replace(problems[0], lam=1e101), *problems[1:]]
    projected = solve_together(SD(ending="projection"), problems, COLUMNS, [0])
    ended = [solve_together(SD(), *rest) for rest in ((problems, COLUMNS, [0]), (hopeless, COLUMNS, [3]))]
    for found in (projected, *ended):
        for solution, problem in zip(found[0], problems, strict=True):
            assert len(solution.support) == 0
            assert solution.status is Status.CONVERGED
            assert (solution.n_iter, solution.projection_cost, solution.trace) == (0, 0.0, ())
            assert solution.intercept == pytest.approx(problem.mean_label())
            assert solution.objective == pytest.approx(problem.best_constant()[1])
