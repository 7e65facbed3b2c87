"""What the searches score, keep and hand on: each against a few lines of NumPy on problems of a few rows."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from test_search import Model

from conftest import make_problem
from kmargin import Exchange
from kmargin.core.jit import Remote
from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.exchange import EFFORTS, intercept_alone
from kmargin.solvers.refit.cg import newton_conjugate
from kmargin.solvers.refit.dual import leverage
from kmargin.solvers.refit.folded import Candidate, SignedDesign
from kmargin.solvers.refit.newton import place, take_gram
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search import large_supports, path, swap_search, working_set
from kmargin.solvers.search.large_supports import DualSet, ProductSet
from kmargin.solvers.search.path import SupportGrid
from kmargin.solvers.search.swap_search import (
    Fit,
    Scores,
    Scratch,
    find_far,
    first_fit,
    grow,
    minimize,
    pair_matrices,
    same_set,
    shrink,
    sweep,
)
from kmargin.solvers.search.working_set import Effort, WorkingSet

EFFORT = Effort(max_swaps=8, max_double_swaps=8, max_sweeps=2, ridge_path=True, tol=1e-9)


def unscaled(n=40, p=30, seed=0, lam=0.05):
    """Columns in very different units, rows of different weights."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, p))
    X = Z * 10.0 ** rng.uniform(-2, 2, p) + rng.standard_normal(p)
    signal = Z[:, 0] - Z[:, 1] + 1.5 * Z[:, 3] - Z[:, 5] + 0.5 * rng.standard_normal(n)
    y = np.where(signal > 0, 1.0, -1.0)  # so well told apart that rows change sides
    weights = rng.uniform(0.2, 3.0, n)
    return ArrayProblem(DenseDesign(X), y, weights * n / weights.sum(), lam, 3)


def at(problem, support):
    """The minimum on a support: what the search calls found, and the residuals there."""
    coef, intercept, value, _ = refit(problem, support)
    found = Candidate(np.asarray(support), np.append(coef, intercept), value)
    decision = problem.design.X[:, support] @ coef + intercept
    c = np.sqrt(problem.weights / len(problem.y))
    return found, c * (1 - problem.y * decision)


def quadratic(problem, resid):
    """Hessian (with the ridge) and slopes of all columns and the intercept, on the active rows of a point."""
    t = problem.y * np.sqrt(problem.weights / len(problem.y))
    active = resid > 0
    ones = np.ones((len(t), int(problem.design.fit_intercept)))
    A = (np.hstack([problem.design.X, ones]) * t[:, None])[active]
    ridge = np.append(np.full(problem.design.n_features, problem.lam), np.zeros(ones.shape[1]))
    return A.T @ A + np.diag(ridge), A.T @ resid[active]


def drops_and_gains(problem, found, resid):
    """What each feature costs to drop and each other gains, the rest refitted, to second order."""
    H, slope = quadratic(problem, resid)
    p = problem.design.n_features
    S = np.append(found.support, np.arange(p, len(H)))
    inverse = np.linalg.inv(H[np.ix_(S, S)])
    drops = found.u[:-1] ** 2 / (2 * np.diag(inverse)[: len(found.support)])
    gains = np.full(p, -np.inf)
    for j in np.setdiff1d(np.arange(p), found.support):
        gains[j] = slope[j] ** 2 / (2 * (H[j, j] - H[j, S] @ inverse @ H[S, j]))
    return drops, gains


# the working set


@pytest.mark.parametrize("seed", range(3))
def test_the_columns_that_come_are_those_with_the_largest_gain_whatever_their_units(seed):
    problem = unscaled(seed=seed)
    found, resid = at(problem, np.array([4, 17, 8]))
    working = WorkingSet(SignedDesign(problem), problem.lam, 9, found, 1e-12)
    working.renew()
    X, c = problem.design.X, np.sqrt(problem.weights / 40)
    slopes = X.T @ (problem.y * c * np.maximum(resid, 0))
    mean = np.average(X, axis=0, weights=c**2)
    gain = slopes**2 / (c**2 @ (X - mean) ** 2 + problem.lam)
    gain[found.support] = -np.inf
    assert set(working.members) == set(found.support) | set(np.argsort(-gain)[:6])
    for by in (np.abs(slopes), slopes**2):  # others would have come without the units
        by[found.support] = -np.inf
        assert set(np.argsort(-by)[:6]) != set(np.argsort(-gain)[:6])
    for j, row in zip(working.members, working.rows.panel, strict=False):
        np.testing.assert_allclose(row, problem.y * c * X[:, j])
    panel = working.rows.panel[:, resid > 0]
    np.testing.assert_allclose(working.gram, panel @ panel.T, atol=1e-9)
    np.testing.assert_array_equal(working.members[working.idx[:-1]], found.support)


def test_the_ridge_counts_among_the_gains():
    problem = unscaled(lam=5.0)
    found, resid = at(problem, np.array([0]))
    working = WorkingSet(SignedDesign(problem), problem.lam, 4, found, 1e-12)
    working.renew()
    c = np.sqrt(problem.weights / 40)
    slopes = problem.design.X.T @ (problem.y * c * np.maximum(resid, 0))
    gain, bare = (slopes**2 / (problem.design.spread(c) + lam) for lam in (5.0, 0.0))
    gain[0] = bare[0] = -np.inf
    assert set(np.argsort(-gain)[:3]) != set(np.argsort(-bare)[:3])
    assert set(working.members) == {0, *np.argsort(-gain)[:3]}


def test_a_panel_that_grows_looks_at_all_columns_first():
    problem = unscaled()
    found, _ = at(problem, np.array([4]))
    working = WorkingSet(SignedDesign(problem), problem.lam, 3, found, 1e-12)
    working.resize(2)
    second = min((refit(problem, np.array([4, j]))[2], j) for j in range(30) if j != 4)[1]
    renewed = WorkingSet(SignedDesign(problem), problem.lam, 3, found, 1e-12)
    renewed.renew()
    assert working.members[working.idx[1]] in renewed.members
    assert working.value <= refit(problem, np.array([4, second]))[2] * 1.3


def test_a_working_set_is_searched_with_all_effort_and_renewed_until_nothing_changes():
    efforts = []

    class Watched(WorkingSet):
        def renew(self):
            efforts.append("renew")
            super().renew()

    problem = unscaled(30, 12, seed=5)
    found, _ = at(problem, np.array([0, 1, 2]))
    working = Watched(SignedDesign(problem), problem.lam, 6, found, 1e-12)
    working.settle(EFFORT._replace(max_swaps=-1))
    assert efforts.count("renew") > 1
    members = set(working.members)
    support = working.found().support
    for out, come in ((a, b) for a in support for b in members - set(support)):
        swapped = np.append(np.setdiff1d(support, out), come)
        assert refit(problem, swapped)[2] >= working.value * (1 - 1e-8)


def test_a_working_set_is_searched_cheaply_at_first_and_at_last_with_all_effort(monkeypatch):
    problem = unscaled(30, 12)
    working = WorkingSet(SignedDesign(problem), problem.lam, 6, at(problem, np.array([0, 1]))[0], 1e-12)
    values, tried = iter([0.5, 0.5, 0.4, 0.4, 0.4]), []
    working.value = 0.6

    def told(fit, value, max_swaps, max_doubles, room, tol, counts):
        tried.append((max_swaps, max_doubles, room))
        return next(values)

    monkeypatch.setattr(working_set, "search", told)
    working.settle(EFFORT._replace(room=5.0))
    # cheaply while that pays, then thoroughly while that does
    assert tried == [(1, 0, 0.0), (1, 0, 0.0), (8, 8, 5.0), (8, 8, 5.0)]


def test_an_empty_place_of_a_panel_is_zero_whatever_was_there_before():
    design = SignedDesign(unscaled())
    assert design.make_rows(np.arange(5), 5).panel.shape == (7, 40)
    rows = design.make_rows(np.arange(2), 4)
    assert not rows.panel[2:4].any()
    np.testing.assert_array_equal(rows.panel[5], design.c)
    larger = design.make_rows(np.arange(8), 8)
    assert larger.panel.shape == (10, 40)
    np.testing.assert_allclose(larger.panel[7], design.t * design.X.X[:, 7])


# the search in a panel


def whole_panel(problem, support, u=None):
    """A support at its minimum in a panel of all columns."""
    design = SignedDesign(problem)
    p = problem.design.n_features
    rows = design.make_rows(np.arange(p), p)
    found, _ = at(problem, support)
    fit = Fit(
        rows,
        design.make_ridge(problem.lam, p),
        np.empty((p + 2, p + 2)),
        np.append(support, p),
        found.u.copy() if u is None else u,
        np.ones(p, bool),
        find_far(),
    )
    place(rows, fit.idx, fit.u)
    take_gram(rows, fit.gram)
    value = minimize(fit, 1e-12, np.zeros(4, np.int64))
    return fit, value


class Nowhere(Remote):
    """Rows that nobody asks: the search around them is then interpreted, and can be watched."""

    def cost_of_try(self, k):
        return 100.0


class Watch:
    """Stands for `trial`: says what was tried, and that it failed."""

    def __init__(self, monkeypatch):
        self.tried, self.given_up = [], set()
        monkeypatch.setattr(swap_search, "trial", self)

    def __call__(self, fit, outside, lose, take, c, value, give_up, tol, scratch):
        self.tried.append((list(lose[:c]), list(take[:c])))
        self.given_up.add(give_up)
        return value


def counted():
    """Where a search leaves its counts."""
    return Scratch(None, None, None, np.zeros(4, np.int64))


def made_scores(model):
    u, found = model.scores()
    found["gain"] = -found["gain"]
    scores = Scores(**found)
    fit = Fit(
        Nowhere(), model.ridge, model.gram, model.support, u, np.ones(len(model.gram) - 2, bool), find_far()
    )
    return fit, scores


def test_blocks_exchange_the_cheapest_for_the_most_gainful_and_fewer_of_them_on_failure(monkeypatch):
    model = Model(3, p=20, k=10)
    fit, scores = made_scores(model)
    scores.drop[:10] = [9, 1, 8, 2, 7, 3, 6, 4, 5, 50]
    scores.gain[:] = -np.array([0.1, 9, 8, 7, 6, 2.5, 0.2, 0.3, 0.4, 0.5])
    watch = Watch(monkeypatch)
    swap_search.try_blocks(fit, model.outside, scores, 1.0, 1e-9, None)
    # 1 < 9, 2 < 8, 3 < 7, 4 < 6, but not 5 < 2.5
    assert watch.tried == [([1, 3, 5, 7], [1, 2, 3, 4]), ([1, 3], [1, 2])]


@pytest.mark.parametrize("max_tries", [3, -1])
def test_swaps_are_tried_in_the_order_of_what_the_quadratic_promises(max_tries, monkeypatch):
    model = Model(1)
    fit, scores = made_scores(model)
    expected = sorted(
        (model.change([a], [j]), i, m)
        for i, a in enumerate(model.support[:-1])
        for m, j in enumerate(model.outside)
    )
    watch, scratch = Watch(monkeypatch), counted()
    swap_search.try_swaps(fit, model.outside, scores, 1e9, 1e-9, scratch, max_tries, 0.0)
    tried = [(i[0], m[0]) for i, m in watch.tried]
    assert tried == [(i, m) for _, i, m in expected][: max_tries if max_tries > 0 else None]
    watch.tried.clear()
    hopeless = expected[0][0] / 2 / swap_search.HOPE if expected[0][0] > 0 else 0.0
    swap_search.try_swaps(fit, model.outside, scores, hopeless, 1e-9, scratch, max_tries, 0.0)
    promising = [1 for change, *_ in expected if change <= swap_search.HOPE * hopeless]
    assert len(watch.tried) == (len(expected) if max_tries < 0 else min(len(promising), 3))
    assert scratch.counts[3] == (max_tries < 0)


@pytest.mark.parametrize("n_missing", [100, 5, 1, 0, -20])
def test_as_many_swaps_are_tried_as_there_is_room_for_and_all_to_their_end_where_there_is_for_all(
    n_missing, monkeypatch
):
    model = Model(1)
    fit, scores = made_scores(model)
    n_swaps = (len(model.support) - 1) * len(model.outside)
    n_affordable = max(n_swaps - n_missing, 0)
    watch, scratch = Watch(monkeypatch), counted()
    swap_search.try_swaps(fit, model.outside, scores, 1e9, 1e-9, scratch, 3, 100.0 * n_affordable)
    everything = n_affordable >= n_swaps
    assert len(watch.tried) == min(max(3, n_affordable), n_swaps)
    assert scratch.counts[3] == everything
    assert watch.given_up == {np.inf if everything else 1e9}  # a claim does not rest on what a try promises
    watch.tried.clear()
    swap_search.try_swaps(fit, model.outside, scores, -1e9, 1e-9, scratch, 3, 100.0 * n_affordable)
    assert len(watch.tried) == (n_swaps if everything else 0)  # nor on what the scores promise


def test_double_swaps_are_tried_in_the_order_of_what_the_quadratic_promises(monkeypatch):
    model = Model(2, p=8, k=3)
    fit, scores = made_scores(model)
    expected = sorted(
        (model.change(model.support[list(out)], model.outside[list(come)]), sorted(out), sorted(come))
        for out in combinations(range(3), 2)
        for come in combinations(range(5), 2)
    )
    watch = Watch(monkeypatch)
    swap_search.try_double_swaps(fit, model.outside, scores, 1e9, 1e-9, None, 4, 0.0)
    assert [(sorted(a), sorted(b)) for a, b in watch.tried] == [(a, b) for _, a, b in expected[:4]]
    for most, room, n_tried in ((4, 600.0, 6), (4, 1e9, len(expected)), (0, 600.0, 0)):
        watch.tried.clear()
        swap_search.try_double_swaps(fit, model.outside, scores, 1e9, 1e-9, None, most, room)
        assert [(sorted(a), sorted(b)) for a, b in watch.tried] == [(a, b) for _, a, b in expected[:n_tried]]


def test_the_matrices_of_pairs_are_those_of_the_quadratic():
    model = Model(4)
    _, found = model.scores()
    lose, take = np.array([2, 0, 3]), np.array([4, 1])
    inverse, cross = pair_matrices(model.gram, model.support, model.outside, Scores(**found), lose, take)
    H, S = model.H, model.support
    expected = np.linalg.inv(H[np.ix_(S, S)])
    np.testing.assert_allclose(inverse, expected[np.ix_(lose, lose)], rtol=1e-9)
    j = model.outside[take]
    schur = H[np.ix_(j, j)] - H[np.ix_(j, S)] @ expected @ H[np.ix_(S, j)]
    np.testing.assert_allclose(cross[0, 1], schur[0, 1], rtol=1e-9)


def test_a_column_that_depends_on_the_support_promises_nothing():
    problem = unscaled(30, 6, seed=1, lam=0.0)
    X = np.column_stack([problem.design.X, problem.design.X[:, 0] + 2 * problem.design.X[:, 1] + 3.0])
    problem = ArrayProblem(DenseDesign(X), problem.y, problem.weights, 0.0, 2)
    fit, _ = whole_panel(problem, np.array([0, 1]))
    outside = np.arange(2, 7)
    scores = swap_search.make_scores(3, 5)
    swap_search.score_fit(fit, outside, scores)
    assert scores.gain[4] == 0
    assert scores.schur[4] == np.inf
    assert (scores.gain[:4] < 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_search_of_all_swaps_ends_where_none_pays(seed):
    problem = unscaled(30, 7, seed=seed, lam=1e-3)
    fit, value = whole_panel(problem, np.array([0, 1, 2]))
    value = swap_search.search(fit, value, -1, 8, 0.0, 1e-9, np.zeros(4, np.int64))
    support = fit.idx[:-1]
    np.testing.assert_allclose(refit(problem, np.sort(support))[2], value, rtol=1e-8)
    for out, come in ((a, b) for a in range(3) for b in np.setdiff1d(np.arange(7), support)):
        assert refit(problem, np.append(np.delete(support, out), come))[2] >= value * (1 - 1e-8)
    panel = fit.rows.panel[:, fit.rows.active]
    np.testing.assert_allclose(fit.gram, panel @ panel.T, rtol=1e-9, atol=1e-9)


# from size to size


def shrunk(problem, support, k):
    """Drop the cheapest feature and refit, until k are left."""
    while len(support) > k:
        found, resid = at(problem, support)
        support = np.delete(support, np.argmin(drops_and_gains(problem, found, resid)[0]))
    return support


def grown(problem, support, k):
    """Take the most gainful features, half as many as there are, and refit, until there are k."""
    while len(support) < k:
        found, resid = at(problem, support)
        count = min(k - len(support), max(1, len(support) // 2))
        gains = drops_and_gains(problem, found, resid)[1]
        support = np.append(support, np.argsort(-gains)[:count])
    return support


@pytest.mark.parametrize("seed", range(4))
def test_a_support_shrinks_by_its_cheapest_and_grows_by_the_most_gainful(seed):
    problem = unscaled(40, 12, seed=seed)
    counts = np.zeros(4, np.int64)
    fit, _ = whole_panel(problem, np.arange(9))
    fit, value = shrink(fit, 4, 1e-12, counts)
    assert set(fit.idx[:-1]) == set(shrunk(problem, np.arange(9), 4))
    np.testing.assert_allclose(value, refit(problem, fit.idx[:-1])[2], rtol=1e-9)
    fit, _ = whole_panel(problem, np.array([3]))
    fit, value = grow(fit, 7, 1e-12, counts)
    assert set(fit.idx[:-1]) == set(grown(problem, np.array([3]), 7))
    assert fit.idx[-1] == 12
    np.testing.assert_allclose(value, refit(problem, fit.idx[:-1])[2], rtol=1e-9)
    panel = fit.rows.panel[:, fit.rows.active]
    np.testing.assert_allclose(fit.gram, panel @ panel.T, rtol=1e-9, atol=1e-9)


def test_supports_are_the_same_set_in_any_order():
    assert same_set(np.array([3, 1, 2]), np.array([2, 3, 1]), 5)
    assert not same_set(np.array([3, 1, 2]), np.array([2, 3, 0]), 5)
    assert not same_set(np.array([3, 1]), np.array([3, 4]), 5)


def swept(problem, ks, max_sweeps, warm=None, effort=(1, 0)):
    """Supports, coefficients and objectives of a path in one panel."""
    p = problem.design.n_features
    design, ks = SignedDesign(problem), np.array(ks)
    supports, coefs = np.full((len(ks), ks[0] + 1), -1), np.zeros((len(ks), ks[0] + 1))
    for row, support in enumerate(warm or ()):
        supports[row, : len(support)] = support
    values = np.full(len(ks), np.inf)
    rows = design.make_rows(np.arange(p), p)
    counts = np.zeros(4, np.int64)
    sweep(
        rows, design.make_ridge(problem.lam, p), ks, supports, coefs, values, np.ones(p, bool), find_far(),
        warm is not None, max_sweeps,
        *effort, 0.0, 1e-9, counts, np.zeros(len(ks), np.bool_),
    )  # fmt: skip
    return supports, coefs, values


@pytest.mark.parametrize("seed", range(3))
def test_each_size_of_a_path_is_at_the_minimum_of_its_own_support(seed):
    problem = unscaled(40, 10, seed=seed, lam=1e-3)
    ks = [8, 5, 3, 2, 1]
    for max_sweeps in (1, 3):
        supports, coefs, values = swept(problem, ks, max_sweeps)
        for k, support, u, value in zip(ks, supports, coefs, values, strict=True):
            coef, intercept, best, _ = refit(problem, support[:k])
            np.testing.assert_allclose(value, best, rtol=1e-8)
            np.testing.assert_allclose(u[:k], coef, rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(u[k], intercept, rtol=1e-3, atol=1e-5)
        assert (np.diff(values) >= -1e-12).all()


def test_a_path_is_walked_up_as_well_as_down():
    gained = 0
    for seed in range(40):
        problem = unscaled(30, 9, seed=seed, lam=1e-3)
        once, twice = (swept(problem, [6, 4, 2], n)[2] for n in (1, 2))
        assert (twice <= once * (1 + 1e-9)).all()
        gained += bool((twice < once * (1 - 1e-6)).any())
        if gained > 1:
            return
    pytest.fail("no path was better for being walked up")


def test_a_warm_path_starts_from_the_supports_it_is_given():
    problem = unscaled(30, 9)
    design = SignedDesign(problem)
    rows, gram, counts = design.make_rows(np.arange(9), 9), np.empty((11, 11)), np.zeros(4, np.int64)
    take_gram(rows, gram)
    support, u = np.array([7, 2, 5, -1]), np.array([0.1, 0.2, -0.1, 0.3])
    ridge = design.make_ridge(problem.lam, 9)
    fit, value = first_fit(rows, ridge, gram, support, u, np.ones(9, bool), find_far(), True, 1e-12, counts)
    np.testing.assert_array_equal(fit.idx, [7, 2, 5, 9])
    np.testing.assert_allclose(value, refit(problem, np.array([7, 2, 5]))[2], rtol=1e-9)
    np.testing.assert_array_equal(u, [0.1, 0.2, -0.1, 0.3])
    fit, _ = first_fit(rows, ridge, gram, support, u, np.ones(9, bool), find_far(), False, 1e-12, counts)
    assert set(fit.idx[:-1]) == set(grown(problem, np.empty(0, int), 3))


# many sizes, many ridges


def make_grid(problem, sizes, **effort):
    return SupportGrid(problem, sizes, EFFORT._replace(**effort))


def claim(value, size=2):
    return Candidate(np.arange(size), np.zeros(size + 1), value)


def test_the_best_support_for_k_may_be_smaller_but_never_larger():
    grid = make_grid(make_problem(), [3, 5, 8])
    grid.found = {3: claim(0.5, 3), 5: claim(0.6, 5), 8: claim(0.1, 8)}
    assert grid.best(5).value == 0.5
    assert grid.best(9).value == 0.1
    assert grid.best(3).value == 0.5


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_the_road_comes_down_in_units_of_the_features(unit):
    problem = make_problem()
    problem = ArrayProblem(DenseDesign(problem.design.X * unit), problem.y, problem.weights, 0.0, 3)
    grid = make_grid(problem, [3])
    scale = np.median(grid.design.variance)
    np.testing.assert_allclose(grid._ridge_path(scale * 1e-3), scale * np.array([0.1, 0.01]))
    np.testing.assert_allclose(grid._ridge_path(scale * 0.5e-3), scale * np.array([0.1, 0.01]))
    np.testing.assert_allclose(grid._ridge_path(0.0), scale * np.array([1e-1, 1e-2, 1e-3, 1e-4]))
    assert grid._ridge_path(scale) == []


class Told(SupportGrid):
    """A grid whose searches find what they are told to, and keeps a record of them.

    What they find is taken for finished. The problem counts as large.
    """

    def __init__(self, problem, sizes, effort, values):
        super().__init__(problem, sizes, effort)
        self.values, self.asked = iter(values), []
        self.is_small, self.effort = False, effort

    def exchange(self, lam, k, start, effort):
        self.asked.append((lam, k, start.value, effort))
        return claim(next(self.values), k)

    def _finish(self, lam, found):
        return found


def test_a_single_fit_comes_down_the_road_and_then_goes_aside_and_back():
    problem = make_problem()
    values = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    grid = Told(problem, [5], EFFORT, values)
    ridges = grid._ridge_path(1e-3)
    assert len(ridges) == 2
    grid.walk(1e-3)
    least = EFFORT.least()
    assert grid.asked == [
        (ridges[0], 5, np.inf, least),
        (ridges[1], 5, 1.0, least),
        (1e-3, 5, 0.9, EFFORT),
        (1e-3, 7, 0.8, least),  # aside: a larger size,
        (1e-3, 5, 0.7, EFFORT),  # and back
        (1e-3, 3, 0.6, least),  # and a smaller one
        (1e-3, 5, 0.5, EFFORT),
    ]
    assert grid.found[5].value == 0.4
    assert (least.max_swaps, least.max_double_swaps) == (1, 0)


def test_what_is_no_better_is_not_kept_and_without_a_road_none_is_taken():
    problem = make_problem()
    grid = Told(problem, [5], EFFORT._replace(ridge_path=False), [0.8, 0.1, 0.8, 0.1, 0.9])
    grid.walk(1e-3)
    assert [k for _, k, *_ in grid.asked] == [5, 7, 5, 3, 5]
    assert grid.found[5].value == 0.8
    assert grid.asked[3][2] == 0.8  # the way aside starts from the best there is
    grid.values, grid.asked = iter([0.5, 0.4, 0.45, 0.4, 0.55]), []
    grid.walk(1e-4)
    assert grid.asked[0] == (1e-4, 5, 0.8, grid.effort)  # the next ridge from the last support
    assert grid.found[5].value == 0.45


def test_many_sizes_are_walked_up_then_down_then_up_each_from_its_neighbour():
    problem = make_problem(40, 300, 4)
    effort = EFFORT._replace(max_sweeps=3)
    values = [0.9, 0.8, 0.7, 0.75, 0.85, 0.75, 0.65]
    grid = Told(problem, [2, 4, 6], effort, values)
    grid.walk(1e-3)
    assert [(k, start) for _, k, start, _ in grid.asked] == [
        (2, np.inf), (4, 0.9), (6, 0.8),  # up
        (4, 0.7), (2, 0.75),  # down: both better
        (4, 0.85), (6, 0.75),  # up: 4 is no better, and 6 is tried for the sake of the last change
    ]  # fmt: skip
    assert [grid.found[k].value for k in (2, 4, 6)] == [0.85, 0.75, 0.65]
    grid.values, grid.asked = iter([0.5, 0.4, 0.3, 0.4, 0.5]), []
    grid.walk(1e-4)
    assert [(k, start) for _, k, start, _ in grid.asked[:3]] == [(2, 0.85), (4, 0.75), (6, 0.65)]


def test_a_path_in_one_panel_hands_its_supports_to_the_next_ridge(monkeypatch):
    given = []

    def watched(rows, ridge, ks, supports, coefs, values, free, far, warm, *rest):
        given.append((warm, supports.copy(), coefs.copy(), ridge[0]))
        for row, k in enumerate(ks):
            supports[row, :k], coefs[row, : k + 1], values[row] = (
                np.arange(k) + 2,
                np.arange(k + 1) + 1,
                1 / k,
            )

    monkeypatch.setattr(path, "sweep", watched)
    problem = make_problem()
    grid = make_grid(problem, [3, 5])
    monkeypatch.setattr(grid, "_finish", lambda lam, found: found)
    grid.walk(0.1)
    grid.walk(0.01)
    assert [warm for warm, *_ in given] == [False, True]
    assert [lam for *_, lam in given] == [0.1, 0.01]
    np.testing.assert_array_equal(given[1][1][0, :5], np.arange(5) + 2)
    np.testing.assert_array_equal(given[1][2][1, :4], np.arange(4) + 1)
    beta = np.zeros(problem.design.n_parameters)
    beta[2:5], beta[-1] = [1, 2, 3], 4
    # whatever the sweep has said of it
    np.testing.assert_allclose(grid.found[3].value, replace(problem, lam=0.01).loss(beta), rtol=1e-12)


def test_trimming_keeps_what_moves_the_decision_most():
    problem = unscaled()
    grid = make_grid(problem, [3])
    support, u = np.array([5, 9, 2, 20, 11]), np.array([1.0, -2.0, 0.5, 3.0, -0.1, 7.0])
    found = grid._trim(Candidate(support, u, 0.3), 3)
    effect = np.abs(u[:-1]) * np.sqrt(
        np.cov(problem.design.X[:, support].T, aweights=problem.weights, ddof=0).diagonal()
    )
    keep = np.sort(np.argsort(-effect)[:3])
    assert set(keep) != set(np.argsort(-np.abs(u[:-1]))[:3])
    np.testing.assert_array_equal(found.support, support[keep])
    np.testing.assert_array_equal(found.u, np.append(u[keep], 7.0))


def test_all_features_are_solved_for_once_for_each_ridge(monkeypatch):
    grid = make_grid(make_problem(), [3])
    asked = []
    monkeypatch.setattr(grid, "_dual", lambda lam, k, start: asked.append((lam, k)) or claim(lam, k))
    assert [grid.solve_dense(lam).value for lam in (0.1, 0.1, 0.2)] == [0.1, 0.1, 0.2]
    assert asked == [(0.1, 12), (0.2, 12)]


def test_folds_are_searched_fast_with_the_same_tolerance():
    solver = Exchange(effort="thorough", tol=1e-7)
    assert solver._effort() == EFFORTS["thorough"]._replace(tol=1e-7)
    assert solver.in_folds()._effort() == EFFORTS["fast"]._replace(tol=1e-7)
    assert solver.effort == "thorough"


@pytest.mark.parametrize("knob", ["max_swaps", "max_sweeps", "ridge_path", "rank_groups"])
def test_a_knob_that_is_gone_is_refused_with_what_to_use_instead(knob):
    with pytest.raises(TypeError, match=f"Exchange does not take {knob}. Use effort='fast'"):
        Exchange(**{knob: 1})


def test_a_solution_lists_what_is_not_zero_in_the_order_of_the_columns():
    found = Candidate(np.array([4, 1, 3]), np.array([1.0, 0.0, 3.0, 0.5]), 0.7)
    problem, columns = make_problem(40, 12), np.array([0, 2, 4, 6, 8])
    worse = replace(intercept_alone(problem), objective=0.8)
    solution = Exchange()._solution(problem, found, columns, 9, worse)
    np.testing.assert_array_equal(solution.support, [6, 8])
    np.testing.assert_array_equal(solution.coef, [3.0, 1.0])
    assert (solution.intercept, solution.n_iter) == (0.5, 9)


def test_supports_are_told_in_the_columns_given():
    problem = make_problem(40, 6, 2)
    X = np.column_stack([problem.design.X[:, [1, 1, 1]], problem.design.X])
    (found,) = Exchange().iter_grid(
        ArrayProblem(DenseDesign(X), problem.y, problem.weights, 0.01, 2),
        [0.01],
        [2],
        np.random.default_rng(0),
    )
    (plain,) = Exchange().iter_grid(problem, [0.01], [2], np.random.default_rng(0))
    np.testing.assert_array_equal(found.support, [0 if j == 1 else j + 3 for j in plain.support])
    np.testing.assert_allclose(found.objective, plain.objective)


# where k exceeds the active rows, and by products alone


def wide(seed=0, n=24, p=120, lam=0.02, fit_intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-0.5, 0.5, p) + 0.3
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(n) > 0, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, n)
    return ArrayProblem(DenseDesign(X, fit_intercept), y, weights * n / weights.sum(), lam, 40)


@pytest.mark.parametrize("intercept", [True, False])
def test_leverages_are_those_of_the_system_without_the_intercept(intercept, rng):
    A, B = rng.standard_normal((7, 4)), rng.standard_normal((7, 12))
    t = rng.standard_normal(7) if intercept else np.zeros(7)
    system = np.eye(7) + B @ B.T / 0.3
    inverse = np.linalg.inv(system)
    if intercept:
        inverse = inverse - np.outer(inverse @ t, inverse @ t) / (t @ inverse @ t)
    U = np.ascontiguousarray(np.linalg.cholesky(system).T)
    np.testing.assert_allclose(leverage(A, t, U), np.einsum("ij,ik,kj->j", A, inverse, A), rtol=1e-9)


class FirstTry(Exception):
    """What would have been exchanged."""


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_dual_exchanges_are_scored_as_the_quadratic_says(seed, fit_intercept, monkeypatch):
    problem = wide(seed, fit_intercept=fit_intercept)
    support = np.random.default_rng(seed).permutation(120)[:40]
    found, _ = at(problem, support)
    dual = DualSet(SignedDesign(problem), problem.lam, 40, found, 1e-13)

    def stop(lose, take, give_up):
        raise FirstTry(lose, take)

    monkeypatch.setattr(large_supports, "SHORT", 20)
    monkeypatch.setattr(dual, "tried", stop)
    with pytest.raises(FirstTry) as tried:
        dual.search(EFFORT)
    lose, take = tried.value.args
    drops, gains = drops_and_gains(problem, dual.found(), dual.resid)
    # of the twenty smallest coefficients and the twenty steepest columns
    short = np.argsort(np.abs(dual.w), kind="stable")[:20]
    slope = np.abs(quadratic(problem, dual.resid)[1][:120])
    slope[dual.support] = -np.inf
    steep = np.argsort(-slope, kind="stable")[:20]
    by_drop = short[np.argsort(drops[short], kind="stable")]
    by_gain = steep[np.argsort(-gains[steep], kind="stable")]
    pays = drops[by_drop] < gains[by_gain]
    count = 20 if pays.all() else int(pays.argmin())
    np.testing.assert_array_equal(lose, by_drop[:count])
    np.testing.assert_array_equal(take, by_gain[:count])


def test_a_dual_exchange_that_fails_is_tried_with_half_as_many(monkeypatch):
    problem = wide(1)
    dual = DualSet(SignedDesign(problem), problem.lam, 40, at(problem, np.arange(40, 80))[0], 1e-13)
    counts = []
    monkeypatch.setattr(dual, "tried", lambda lose, take, give_up: counts.append(len(lose)))
    dual.search(EFFORT.least())
    assert counts[0] > 3
    assert counts == [counts[0] // 2**i for i in range(len(counts))]
    assert counts[-1] == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_dual_search_never_ends_above_its_start_and_at_the_minimum_of_its_support(seed):
    problem = wide(seed)
    start, _ = at(problem, np.arange(40, 80))
    dual = DualSet(SignedDesign(problem), problem.lam, 40, start, 1e-13)
    dual.settle(EFFORT)
    found = dual.found()
    assert len(set(found.support)) == 40
    assert found.value < start.value * 0.95
    np.testing.assert_allclose(found.value, refit(problem, np.sort(found.support))[2], rtol=1e-8)
    np.testing.assert_allclose(dual.resid, SignedDesign(problem).residual(found), atol=1e-10)


def test_a_dual_set_is_filled_up_with_the_steepest_columns():
    problem = wide(2)
    start, resid = at(problem, np.array([3, 50]))
    dual = DualSet(SignedDesign(problem), problem.lam, 30, start, 1e-13)
    slope = np.abs(quadratic(problem, resid)[1][:120])
    slope[[3, 50]] = -np.inf
    np.testing.assert_array_equal(dual.support, [3, 50, *np.argsort(-slope, kind="stable")[:28]])


@pytest.mark.parametrize("seed", range(3))
def test_without_a_ridge_dual_steps_end_at_the_primal_minimum(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 12)) + 0.3
    X = np.column_stack([X, X @ rng.standard_normal((12, 30))])  # no more than twelve directions
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    problem = ArrayProblem(DenseDesign(X), y, np.ones(30), 0.0, 42)
    A = np.column_stack([X[:, :12], np.ones(30)]) * y[:, None]

    def mean_loss(u):
        short = np.maximum(0, 1 - A @ u)
        return short @ short / 60, -A.T @ short / 30

    options = {"maxiter": 10**5, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-12}
    expected = scipy.optimize.minimize(
        mean_loss, np.zeros(13), jac=True, method="L-BFGS-B", options=options
    ).fun
    coef, intercept, value, _ = refit(problem, np.arange(42))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(problem.loss(np.append(coef, intercept)), value, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_product_scores_are_those_of_one_coefficient_at_a_time(seed):
    problem = unscaled(40, 15, seed=seed)
    found, resid = at(problem, np.array([1, 4, 7]))
    products = ProductSet(SignedDesign(problem), problem.lam, found)
    drop, gain = products._by_column()
    c = np.sqrt(problem.weights / 40) * (resid > 0)
    X = problem.design.X
    mean = np.average(X, axis=0, weights=c**2)
    curvature = c**2 @ (X - mean) ** 2 + problem.lam
    slope = quadratic(problem, resid)[1][:15]
    np.testing.assert_allclose(drop, found.u[:-1] ** 2 * curvature[[1, 4, 7]] / 2, rtol=1e-9)
    others = np.setdiff1d(np.arange(15), [1, 4, 7])
    np.testing.assert_allclose(gain[others], (slope**2 / (2 * curvature))[others], rtol=1e-7)
    assert (gain[[1, 4, 7]] == -np.inf).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_product_search_exchanges_what_pays(seed, monkeypatch):
    problem = wide(seed, n=40, p=60)
    products = ProductSet(SignedDesign(problem), problem.lam, at(problem, np.arange(30, 50))[0])
    products.fit(1e-12)
    drop, gain = products._by_column()
    lose, take = np.argsort(drop, kind="stable")[:10], np.argsort(-gain, kind="stable")[:10]
    pays = drop[lose] < gain[take]
    count = 10 if pays.all() else int(pays.argmin())
    assert count > 1
    tried = []
    original = products._replace
    monkeypatch.setattr(products, "_replace", lambda a, b: tried.append((a, b)) or original(a, b))
    before = products.value
    outside = products.outside()
    assert products._try_many(outside, products.score(outside))
    np.testing.assert_array_equal(tried[0][0], lose[:count])
    np.testing.assert_array_equal(tried[0][1], take[:count])
    assert products.value < before
    np.testing.assert_allclose(products.value, refit(problem, np.sort(products.support))[2], rtol=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conjugate_gradients_count_rows_by_their_weights(fit_intercept):
    problem = make_problem(60, 8, 8, lam=1e-3, fit_intercept=fit_intercept)
    coef, intercept, value, _ = refit(problem, np.arange(8))
    c = np.sqrt(problem.weights / 60)
    w, start = (
        np.full(8, 0.1),
        Candidate(np.arange(8), np.append(np.full(8, 0.1), 0.2 * fit_intercept), np.inf),
    )
    resid = SignedDesign(problem).residual(start)
    found, b, n_iter = newton_conjugate(
        problem.design, problem.y * c, c, 1e-3, w, 0.2 * fit_intercept, resid, np.inf, 1e-14
    )
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(w, coef, atol=1e-5)
    np.testing.assert_allclose(b, intercept, atol=1e-5)
    assert n_iter < 20
