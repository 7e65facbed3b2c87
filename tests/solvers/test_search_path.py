"""Working sets, and paths over sizes and ridges: units considered, linear algebra, solutions, statuses."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from penalised_problems import make_problem, make_units
from search_problems import CASES, GROUPS, in_blocks, lowest_of_all, make_case, make_search

from kmargin import MM, SD, Ending, Exchange, Regime, Solver, SparseSVC, Status
from kmargin.core.problem import Problem
from kmargin.core.units import Units
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers.exchange import EFFORTS, refit_solution
from kmargin.solvers.search import path
from kmargin.solvers.search.working_set import interleave
from kmargin.solvers.solver import bare_solution

LESS = 1 - 1e-8


def solve(problem: Problem, ks, lams=None, **options):
    lams = [[one.lam for one in problem.binary]] if lams is None else lams
    return list(Exchange(**options).solve_grid(problem, lams, ks, np.random.default_rng(0)))


def total(solutions):
    return sum(solution.objective for solution in solutions)


def used_units(problem, solutions):
    used = np.zeros(problem.units.n_features)
    used[np.concatenate([solution.support for solution in solutions])] = 1.0
    return set(np.flatnonzero((problem.units.total(used) > 0) | problem.units.fixed).tolist())


# Working sets


@pytest.mark.parametrize("remote", [False, True], ids=["in memory", "in blocks"])
@pytest.mark.parametrize("name", ["one problem", "three problems", "groups of one problem"])
def test_a_renewed_working_set_holds_the_units_with_the_largest_gains(name, remote):
    search = make_search(make_case(**CASES[name]), [0, 3], size=4, remote=remote)
    for _ in range(2):
        gains = search.panels.gains(search.support, search.coefs)
        gains[search.support] = -np.inf
        search.renew()
        n_outside = len(search.looked_at) - 2
        best = np.argsort(-gains, kind="stable")[:n_outside]
        assert n_outside >= 1
        np.testing.assert_array_equal(search.looked_at, [*search.support, *best])
        assert search.panels.held[search.looked_at].all()
        search.move(np.array([0]), search.outside()[:1])


def test_units_loaded_again_have_the_same_gram_matrix():
    problem = make_case(GROUPS)
    narrow, whole = make_search(problem, [1, 3], size=3), make_search(problem, [1, 3])
    for unit in (0, 2, 5, 4, 2):
        narrow.panels.hold(np.array([1, 3, unit]))
        places, expected = (
            panels.place_of[panels.units.positions_of(np.array([1, 3, unit]))]
            for panels in (narrow.panels, whole.panels)
        )
        for gram, other in zip(narrow.panels.gram, whole.panels.gram, strict=True):
            np.testing.assert_allclose(
                gram[np.ix_(places, places)], other[np.ix_(expected, expected)], rtol=1e-9
            )


def test_a_wider_search_finds_a_unit_that_gains_only_after_another_is_dropped(rng):
    """With a noisy copy of it in the support, the cause of the labels gains less than columns of noise."""
    cause = rng.standard_normal(60)
    X = np.column_stack([cause + 0.15 * rng.standard_normal(60), cause, rng.standard_normal((60, 200))])
    one = replace(make_problem(60, 202, lam=0.02, weighted=False), design=DenseDesign(X))
    binary = tuple(replace(one, y=np.where(cause > edge, 1.0, -1.0)) for edge in (-0.5, 0.5))
    problem = Problem(binary, Units.of_columns(202))
    for wider_flops, expected in ((0.0, 0), (4e6, 1)):
        search = make_search(problem, [0], size=9)
        search.settle(EFFORTS["normal"]._replace(wider_flops=wider_flops))
        assert search.support.tolist() == [expected]


def test_units_of_several_lists_take_turns():
    lists = [np.array([4, 2, 9]), np.array([2, 7]), np.array([4, 1, 3, 8])]
    assert interleave(lists).tolist() == [4, 2, 7, 1, 9, 3, 8]


# What is found


@pytest.mark.parametrize("name", CASES)
def test_the_best_of_all_supports_is_found_if_all_are_tried(name):
    problem = make_case(**{"sizes": [1] * 7} | CASES[name])
    (solutions,) = solve(problem, [2])
    best = min(lowest_of_all(problem, pair) for pair in combinations(range(problem.units.n_units), 2))
    assert total(solutions) == pytest.approx(best, rel=1e-7)
    assert total(solutions) == pytest.approx(lowest_of_all(problem, used_units(problem, solutions)), rel=1e-7)
    assert {solution.status for solution in solutions} == {Status.SWAP_OPTIMAL}


SIGNS = np.array([1, -1, 0, 1, -1, 1, 0, -1, 1, 1, -1, 0])


@pytest.mark.parametrize("remote", [False, True], ids=["in memory", "in blocks"])
@pytest.mark.parametrize(
    "options", [{"fixed": [3], "n_problems": 1}, {"sizes": GROUPS, "signs": SIGNS, "fixed": [1]}]
)
def test_no_swap_lowers_the_objective_of_a_swap_optimal_solution(options, remote, monkeypatch):
    for constant in ("ENUMERATION_FLOPS", "SWAP_FLOPS"):
        monkeypatch.setattr(path, constant, 0.0)
    problem = make_case(**options)
    binary = tuple(in_blocks(one) for one in problem.binary) if remote else problem.binary
    (solutions,) = solve(replace(problem, binary=binary), [3], effort="thorough")
    assert {solution.status for solution in solutions} == {Status.SWAP_OPTIMAL}
    units = used_units(problem, solutions)
    assert set(np.flatnonzero(problem.units.fixed)) <= units
    for gone in units - set(np.flatnonzero(problem.units.fixed)):
        for come in set(range(problem.units.n_units)) - units:
            assert lowest_of_all(problem, units - {gone} | {come}) >= LESS * total(solutions)


def test_objectives_of_a_path_never_rise_with_k_nor_as_the_ridge_falls():
    problem = make_case(GROUPS)
    ks = list(range(problem.units.n_units, 0, -1))
    lams = [[scale * one.lam for one in problem.binary] for scale in (10.0, 1.0, 0.1)]
    grid = np.reshape([total(solutions) for solutions in solve(problem, ks, lams)], (3, len(ks)))
    assert (np.diff(grid, axis=1) >= -1e-12).all()
    assert (np.diff(grid, axis=0) <= 1e-12).all()


def test_improving_never_raises_the_sum_of_the_objectives(rng):
    problem = make_case(GROUPS, fixed=[0])
    lams = [one.lam for one in problem.binary]
    (starts,) = Exchange(effort="fast").solve_grid(problem, [[100 * lam for lam in lams]], [2], rng)
    coefs = [
        replace(s, objective=one.loss(np.append(s.dense_coef(), s.intercept)))
        for s, one in zip(starts, problem.binary, strict=True)
    ]
    better = Exchange().improve(problem, coefs)
    assert total(better) < total(coefs)
    assert len(used_units(problem, better)) <= 2
    assert 0 in used_units(problem, better)
    assert {solution.ending for solution in better} == {Ending.SEARCH}
    claimed, free = tuple(replace(solution, objective=-1.0) for solution in coefs), make_case(GROUPS)
    assert Exchange().improve(problem, claimed) == claimed
    assert Exchange().improve(problem.with_ridges([1e101] * 3), coefs) == tuple(coefs)
    (bare,) = solve(free, [0])
    assert Exchange().improve(free, bare) == bare


def test_all_columns_with_their_copies_share_the_ridge():
    (one,) = make_case(n_problems=1).binary
    doubled = replace(one, design=DenseDesign(np.hstack([one.design.X, one.design.X])))
    problem = Problem((doubled,), Units.of_columns(24).without_copies(np.arange(12, 24)))
    ((every,), (most,), (twelve,)) = solve(problem, [24, 23, 12])
    np.testing.assert_allclose(every.dense_coef()[:12], every.dense_coef()[12:], rtol=1e-6)
    assert every.objective < twelve.objective == most.objective
    assert (every.status, every.n_iter > 0) == (Status.SWAP_OPTIMAL, True)
    assert most.support.max() < 12
    worst = bare_solution(doubled, Status.SETTLED)
    assert refit_solution(doubled, every, worst).objective == pytest.approx(every.objective, rel=1e-9)
    lowest = replace(worst, objective=0.0)
    assert refit_solution(doubled, every, lowest) is lowest
    ((some,),) = solve(problem, [3])
    assert some.status is Status.SETTLED  # a second copy would share the ridge of the first


# Regimes of linear algebra


def regime_of(binary, k, signs=None, ks=None):
    units = replace(Units.of_columns(binary.design.n_features), signs=np.zeros(binary.design.n_features))
    units = units if signs is None else replace(units, signs=signs)
    found = solve(Problem((binary,), units), ks or [k], effort="fast")
    return found[(ks or [k]).index(k)][0].regime


def test_supports_larger_than_the_active_rows_are_fitted_by_dual_systems():
    binary = make_problem(40, 400)
    assert regime_of(binary, 200) is Regime.DUAL
    assert regime_of(binary, 200, ks=[200, 5]) is Regime.DUAL
    assert regime_of(binary, 5, ks=[200, 5]).takes_panel
    assert regime_of(binary, 128).takes_panel  # systems of this size are solved directly
    assert regime_of(binary, 200, signs=np.ones(400)).takes_panel
    assert regime_of(in_blocks(binary, (0, 20, 40)), 200).takes_panel


def test_products_with_X_are_used_if_no_panel_fits_in_memory(monkeypatch):
    monkeypatch.setattr(SparseDesign, "fits", lambda self, n_numbers: False)
    binary = make_problem(60, 50)
    binary = replace(binary, design=SparseDesign(sp.csr_array(binary.design.X)))
    assert regime_of(binary, 5) is Regime.PRODUCTS
    ((solution,),) = solve(Problem.of(binary), [5])
    assert solution.status is Status.LIMITED


@pytest.mark.parametrize("shape", [(60, 30), (40, 200)])
def test_every_regime_ends_at_the_minimum_on_its_support(shape):
    problem = Problem.of(make_problem(*shape))
    for k, (solution,) in zip(ks := [shape[1], 150, 20, 4], solve(problem, ks, effort="fast"), strict=True):
        assert len(solution.support) <= k
        assert solution.objective <= lowest_of_all(problem, solution.support.tolist()) * (1 + 1e-6) + 1e-12


def test_a_strong_ridge_leaves_only_the_intercepts():
    problem = make_case()
    ended = *solve(problem, [3], [[1e101] * 3]), *solve(problem, [0])
    for solution, one in zip(sum(ended, ()), problem.binary * 2, strict=True):
        assert len(solution.support) == 0
        assert solution.intercept == pytest.approx(one.mean_label())
        assert (solution.status, solution.ending) == (Status.SWAP_OPTIMAL, Ending.INTERCEPT)
        assert (solution.regime, solution.n_iter, solution.projection_cost) == (Regime.INTERCEPT, 0, 0.0)
    ((bare, *others),) = solve(problem, [3], [[1e101, 0.01, 0.01]])
    assert np.abs(bare.coef).max(initial=0.0) < 1e-50
    assert all(len(solution.support) == 3 for solution in others)


def test_a_fit_is_told_what_its_solver_needs_and_promises():
    names = "wants_blas_threads", "takes_sparse", "is_monotone", "skips_repeats"
    told = [[getattr(solver, name) for name in names] for solver in (Solver, SD, MM, Exchange)]
    assert told == [[True, True, False, False]] * 2 + [[True, False, False, False], [False, True, True, True]]
    assert (solver := SD()).in_folds() is solver


def test_wide_groups_are_searched_without_a_ridge_and_ridges_may_rise():
    one = make_problem(30, 1300, lam=0.0, weighted=False)
    (solutions,) = solve(Problem((one,), make_units([130] * 10)), [1])
    assert total(solutions) < 1e-12  # a group of 130 columns separates 30 rows
    few = Problem((make_problem(60, 8),), Units.of_columns(8))
    falling = [total(found) for found in solve(few, [2], [[1.0], [0.01]])]
    assert [total(found) for found in solve(few, [2], [[0.01], [1.0]])] == pytest.approx(falling[::-1])


@pytest.mark.parametrize("seed", [1, 10, 18])
def test_groups_that_nearly_depend_on_each_other_are_not_claimed_to_be_optimal_under_swaps(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 4)) @ rng.standard_normal((4, 6)) + 1e-7 * rng.standard_normal((20, 6))
    y = np.where(rng.standard_normal(20) + X[:, 0] > 0.2, 1, -1)
    thorough = Exchange(effort="thorough")
    model = SparseSVC(k=2, groups=[0, 0, 1, 2, 2, 2], C=np.inf, solver=thorough).fit(X, y)
    assert model.solutions_[0].status is Status.SETTLED
