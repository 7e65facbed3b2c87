"""Which way a search goes, what it says of that, and that what it claims is true."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import kmargin
from conftest import make_problem
from kmargin import MM, Exchange, Regime, Status
from kmargin.core.problem import ArrayProblem
from kmargin.data.blocks import Block
from kmargin.data.blocks.problem import LocalBlocks, block_problem
from kmargin.data.blocks.sums import View
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers import solution as regime
from kmargin.solvers.refit.folded import Candidate, Measured, SignedDesign
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search import path
from kmargin.solvers.search.large_supports import DualBound, DualSet, balance
from kmargin.solvers.search.working_set import Effort
from kmargin.solvers.solution import choose_regime

LESS = 1 - 1e-9  # by so little an objective is not lower


def solve(problem, k, **knobs):
    (solution,) = Exchange(**knobs).iter_grid(problem, [problem.lam], [k], np.random.default_rng(0))
    return solution


def swapped(problem, solution):
    """What each exchange of one feature for another leads to, by refits that know nothing of the search."""
    measured = Measured(problem)
    start = np.append(solution.coef, 0.0)
    for place in range(len(solution.support)):
        for other in np.setdiff1d(np.arange(problem.design.n_features), solution.support):
            support = np.append(np.delete(solution.support, place), other)
            yield refit(problem, support, np.delete(start, place), solution.intercept, measured)[2]


def some_swap_helps(problem, solution):
    return any(value < LESS * solution.objective for value in swapped(problem, solution))


# the rule

HERE = {"n_columns": 200, "n_features": 1000, "panel_fits": True, "elsewhere": False}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"k": 10}, Regime.WORKING_SET),
        ({"k": 10, "n_columns": 1000}, Regime.PANEL),
        ({"k": 10, "n_columns": 1500}, Regime.PANEL),
        ({"k": 10, "panel_fits": False}, Regime.PRODUCTS),
        ({"k": 10, "panel_fits": False, "elsewhere": True}, Regime.WORKING_SET),
        ({"k": 1000, "n_columns": 1000, "elsewhere": True}, Regime.PANEL),
        ({"k": 140}, Regime.WORKING_SET),  # rows were not counted
        ({"k": 140, "n_active": 140, "dual_fits": True}, Regime.WORKING_SET),
        ({"k": 140, "n_active": 139, "dual_fits": True}, Regime.DUAL),
        ({"k": 140, "n_active": 139, "dual_fits": True, "panel_fits": False}, Regime.DUAL),
        ({"k": 140, "n_active": 139, "dual_fits": False}, Regime.PRODUCTS),
        ({"k": 140, "n_active": 139, "dual_fits": True, "elsewhere": True}, Regime.WORKING_SET),
        ({"k": 128, "n_active": 5, "dual_fits": True}, Regime.WORKING_SET),  # cheap anyway
        ({"k": 129, "n_active": 5, "dual_fits": True}, Regime.DUAL),
    ],
    ids=str,
)
def test_the_regime_follows_from_a_few_numbers(case, expected):
    assert choose_regime(**HERE | case) is expected


def test_no_other_module_knows_the_limits_of_regimes():
    solvers = Path(kmargin.__file__).parent / "solvers"
    for limit in ("LARGE", "FULL_PANEL"):
        assert hasattr(regime, limit)
        who = [p.stem for p in solvers.rglob("*.py") if limit in p.read_text().replace("LARGEST", "")]
        assert who == ["solution"]


# what a solution says


def in_blocks(problem):
    """The same problem with its rows in two blocks."""
    X, y, n = problem.design.X, problem.y, len(problem.y)
    codes, parts = (y > 0).astype(int), pairwise((0, n // 3, n))
    blocks = [Block(i, X[a:b], codes[a:b], problem.weights[a:b].copy()) for i, (a, b) in enumerate(parts)]
    view = View(positive=1, negative=0, class_weight=np.ones(2))
    return block_problem(LocalBlocks(blocks), view, problem.lam, 1, True)


def as_sparse(problem):
    return replace(problem, design=SparseDesign(sp.csr_array(problem.design.X)))


@pytest.fixture
def many_features(monkeypatch):
    """As if a few features were many, so that active rows decide."""
    monkeypatch.setattr(regime, "LARGE", 4)
    monkeypatch.setattr(regime, "FULL_PANEL", 0)


@pytest.fixture
def no_small_problems(monkeypatch):
    monkeypatch.setattr(path, "SMALL_GRAM", 0)


@pytest.fixture
def no_room(monkeypatch):
    monkeypatch.setattr(SparseDesign, "fits", lambda self, n_numbers: False)


def test_a_small_problem_is_searched_in_one_panel():
    assert solve(make_problem(), 4).regime is Regime.PANEL


def test_a_path_through_few_columns_is_walked_in_one_panel(no_small_problems):
    found = Exchange().iter_grid(make_problem(), [0.01], [6, 3], np.random.default_rng(0))
    assert [solution.regime for solution in found] == [Regime.PANEL] * 2


def test_a_few_features_of_many_are_searched_through_a_working_set(no_small_problems):
    solution = solve(make_problem(30, 80), 3)
    assert (solution.regime, solution.status) == (Regime.WORKING_SET, Status.SETTLED)


def test_more_features_than_active_rows_are_searched_by_the_dual(many_features):
    solution = solve(make_problem(20, 50), 30)
    assert (solution.regime, solution.status) == (Regime.DUAL, Status.LIMITED)


def test_without_room_for_a_panel_the_search_is_by_products(no_room):
    solution = solve(as_sparse(make_problem(30, 20)), 5)
    assert (solution.regime, solution.status) == (Regime.PRODUCTS, Status.LIMITED)


def test_without_room_for_active_rows_the_search_is_by_products(many_features, monkeypatch):
    problem = as_sparse(make_problem(20, 50))
    monkeypatch.setattr(SparseDesign, "fits", lambda self, n_numbers: n_numbers <= 52 * 20)
    solution = solve(problem, 49, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.PRODUCTS, Status.LIMITED)


def test_rows_elsewhere_are_searched_by_systems_as_large_as_the_support(many_features, no_small_problems):
    problem = in_blocks(make_problem(20, 50))
    assert solve(problem, 30).regime is Regime.PANEL  # twenty columns beside the support are all there are
    assert solve(problem, 3).regime is Regime.WORKING_SET


@pytest.mark.parametrize("k", [50, 60])
def test_all_features_are_fitted_in_a_panel_or_by_the_dual(k, monkeypatch):
    problem = make_problem(20, 50)
    solution = solve(problem, k)
    assert (solution.regime, solution.status) == (Regime.PANEL, Status.SWAP_OPTIMAL)
    monkeypatch.setattr(regime, "LARGE", 4)
    solution = solve(problem, k)
    assert (solution.regime, solution.status) == (Regime.DUAL, Status.SWAP_OPTIMAL)


def test_the_intercept_alone_takes_no_search():
    problem = make_problem()
    assert solve(problem, 0).regime is Regime.INTERCEPT
    assert solve(replace(problem, lam=1e200), 3).regime is Regime.INTERCEPT


def test_the_paper_s_solvers_have_no_regime():
    problem = make_problem(k=3)
    (solution,) = MM().iter_grid(problem, [problem.lam], [3], np.random.default_rng(0))
    assert solution.regime is None
    assert Exchange().improve(problem, solution).regime in (None, Regime.PANEL)


# what it claims


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lam", [0.1, 1e-3])
def test_all_swaps_were_tried_where_that_is_said_of_a_panel(seed, lam):
    problem = make_problem(30, 14, lam=lam, seed=seed)
    solution = solve(problem, 5, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.PANEL, Status.SWAP_OPTIMAL)
    assert not some_swap_helps(problem, solution)


def test_all_swaps_of_a_working_set_are_those_of_all_columns(no_small_problems):
    problem = make_problem(30, 80)
    solution = solve(problem, 3, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.PANEL, Status.SWAP_OPTIMAL)
    assert not some_swap_helps(problem, solution)


def test_all_swaps_were_tried_where_rows_are_elsewhere():
    problem = make_problem(30, 14, weighted=False)
    solution = solve(in_blocks(problem), 5, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.PANEL, Status.SWAP_OPTIMAL)
    assert not some_swap_helps(problem, solution)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [0.3, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_all_swaps_were_tried_where_that_is_said_of_the_dual(seed, lam, fit_intercept, many_features):
    problem = make_problem(20, 50, lam=lam, fit_intercept=fit_intercept, seed=seed)
    solution = solve(problem, 30, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.DUAL, Status.SWAP_OPTIMAL)
    assert not some_swap_helps(problem, solution)


def forty_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 300)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    return ArrayProblem(DenseDesign(X), y, np.ones(40), 1 / 80, 150)  # C = 1


def test_half_of_three_hundred_features_on_forty_rows_are_optimal_under_all_swaps():
    problem = forty_rows()
    solution = solve(problem, 150, effort="thorough")
    assert (solution.regime, solution.status) == (Regime.DUAL, Status.SWAP_OPTIMAL)
    assert not some_swap_helps(problem, solution)


def test_where_a_swap_helps_nothing_else_is_claimed():
    problem = forty_rows()
    solution = solve(problem, 150)
    assert some_swap_helps(problem, solution)
    assert (solution.regime, solution.status) == (Regime.DUAL, Status.LIMITED)


@pytest.mark.parametrize("all_swaps", [True, False])
def test_room_for_every_try_is_no_claim_where_not_all_are_scored(all_swaps, monkeypatch):
    """Of ten features outside the five with the steepest slopes are scored, unless all are."""
    monkeypatch.setattr("kmargin.solvers.search.large_supports.SHORT", 5)
    problem = make_problem(20, 40, lam=0.3)
    design, start = SignedDesign(problem), Candidate(np.arange(30), np.zeros(31), np.inf)
    searched = DualSet(design, problem.lam, 30, start, 1e-9, all_swaps)
    effort = Effort(-1 if all_swaps else 8, 0, 1, False, 1e-9, room=1e12)
    before = np.inf
    while searched.value < before:  # a few rounds at a time
        before = searched.value
        searched.search(effort)
    assert searched.all_tried == all_swaps


def test_products_claim_nothing_of_what_they_did_not_try(no_room):
    problem = as_sparse(make_problem(30, 20, seed=1))
    claims = [(solve(problem, k), k) for k in (4, 8, 12)]
    assert all(solution.status is Status.LIMITED for solution, _ in claims)
    assert solve(problem, 4, effort="thorough").status is Status.LIMITED


def test_a_second_copy_of_a_column_is_not_claimed_to_be_of_no_use():
    """It would share the ridge of the first, which no search tries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    problem = ArrayProblem(DenseDesign(X), np.where(X[:, 0] > 0, 1.0, -1.0), np.ones(30), 0.5, 2)
    doubled = replace(problem, design=DenseDesign(np.hstack([X, X])))
    assert solve(problem, 2, effort="thorough").status is Status.SWAP_OPTIMAL
    solution = solve(doubled, 2, effort="thorough")
    assert some_swap_helps(doubled, solution)
    assert solution.status is Status.LIMITED


# the dual


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [0.3, 0.01, 1e-4])
def test_no_swap_ends_below_the_bound_of_the_dual(lam, fit_intercept):
    problem = make_problem(20, 50, lam=lam, fit_intercept=fit_intercept)
    design, support = SignedDesign(problem), np.arange(30)
    coef, intercept, value, _ = refit(problem, support)
    bound = DualBound.at(
        design, lam, support, design.residual(Candidate(support, np.append(coef, intercept), value))
    )
    for place in (0, 7, 29):
        np.testing.assert_allclose(bound.after_swap(place, np.array([place])), value, rtol=1e-9)
        for other, least in zip(range(30, 50), bound.after_swap(place, np.arange(30, 50)), strict=True):
            assert least <= refit(problem, np.append(np.delete(support, place), other))[2] * (1 + 1e-9)


def test_both_classes_weigh_the_same_after_balancing(rng):
    r, t = rng.uniform(size=9), rng.standard_normal(9)
    balanced = balance(r, t)
    assert abs(balanced @ t) < 1e-14
    assert (balanced > 0).all()
    np.testing.assert_array_equal(balance(r, np.abs(t)), np.zeros(9))


def each_for_a_few_rows(seed):
    """Columns that are 0 on all but two of 40 rows, so that not any thirty will do; and four rows of both
    classes, so that there is a loss whatever is chosen.
    """
    rng = np.random.default_rng(seed)
    X = np.zeros((40, 80))
    for column in X.T:
        column[rng.permutation(40)[:2]] = rng.choice([-1.0, 1.0], 2)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    X, y = np.vstack([X, X[:4]]), np.append(y, -y[:4])
    return ArrayProblem(DenseDesign(X), y, np.ones(44), 0.0, 30)


@pytest.mark.parametrize("seed", range(4))
def test_the_dual_exchanges_features_without_a_ridge_too(seed):
    problem, support = each_for_a_few_rows(seed), np.arange(30)
    coef, intercept, value, _ = refit(problem, support)
    start = Candidate(support, np.append(coef, intercept), value)
    dual = DualSet(SignedDesign(problem), 0.0, 30, start, 1e-13)
    np.testing.assert_allclose(dual.value, value, rtol=1e-8)
    dual.settle(Effort(8, 8, 2, True, 1e-13))
    assert dual.value < 0.99 * value
    np.testing.assert_allclose(dual.value, refit(problem, np.sort(dual.support))[2], rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 3])
def test_without_a_ridge_all_swaps_of_the_dual_are_tried(seed, many_features):
    problem = each_for_a_few_rows(seed)
    solution = solve(problem, 30, effort="thorough")
    assert solution.regime is Regime.DUAL
    assert solution.objective > 0.01
    assert solution.status is Status.SWAP_OPTIMAL
    assert not some_swap_helps(problem, solution)


@pytest.mark.parametrize("lam", [0.0, 0.01])
def test_a_dual_search_of_all_swaps_never_ends_above_its_start(lam, many_features):
    problem = make_problem(30, 60, lam=lam)
    few, many = solve(problem, 40), solve(problem, 40, effort="thorough")
    assert many.objective <= few.objective * (1 + 1e-9)
