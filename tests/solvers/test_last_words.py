"""What is handed out: at its minimum, with its own objective, in the units given, the best that was seen."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import nnls
from test_scores_by_refit import EFFORT, claim, unscaled, whole_panel

from conftest import make_problem
from kmargin import Exchange, sparse_svm_path
from kmargin.core.jit import Remote
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers import Ending, Solution, Status
from kmargin.solvers.proximal.anneal import best_ending
from kmargin.solvers.refit import folded
from kmargin.solvers.refit.final import ColumnsAtHand, doubt, newton_by_least_squares, stand, stand_each
from kmargin.solvers.refit.folded import NOTHING, Candidate, Measured, SignedDesign
from kmargin.solvers.refit.newton import newton, renew_system
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search import path as one_size
from kmargin.solvers.search.path import SupportGrid
from kmargin.solvers.search.swap_search import next_support, try_every_support
from kmargin.solvers.search.working_set import WorkingSet
from kmargin.solvers.solver import bare_solution, intercept_only

# at its minimum


def gradient_of(panel, idx, ridge, u):
    """Objective, gradient and curvatures of some rows of a panel, whose last is the target."""
    resid = panel[-1] - u @ panel[idx]
    A = panel[idx][:, resid > 0]
    value = np.sum(resid[resid > 0] ** 2) / 2 + ridge @ u**2 / 2
    return value, ridge * u - A @ resid[resid > 0], np.sum(A * A, axis=1) + ridge


def test_where_a_support_stands_is_its_objective_and_what_its_gradient_could_lower(rng):
    panel, ridge, u = rng.standard_normal((5, 30)), np.array([0.3, 0.2, 0.0]), rng.standard_normal(3)
    value, gradient, bend = gradient_of(panel, np.array([2, 0, 3]), ridge, u)
    found = stand(panel, np.array([2, 0, 3]), ridge, u, np.empty(30))
    np.testing.assert_allclose(found, [value, np.sum(gradient**2 / bend) / 2], rtol=1e-12)
    # several of them in one panel, the intercept behind the features
    supports, coefs = np.array([[2, 0, -1], [1, -1, -1]]), rng.standard_normal((2, 3))
    values, slacks = np.empty(2), np.empty(2)
    stand_each(panel, np.full(5, 0.1), np.array([2, 1]), supports, coefs, values, slacks)
    for row, idx in enumerate(([2, 0, 3], [1, 3])):
        at = np.array(idx)
        value, gradient, bend = gradient_of(panel, at, np.full(len(idx), 0.1), coefs[row, : len(idx)])
        np.testing.assert_allclose(values[row], value, rtol=1e-12)
        np.testing.assert_allclose(slacks[row], np.sum(gradient**2 / bend) / 2, rtol=1e-12)


def test_least_squares_see_columns_in_their_own_units(rng):
    A, target, unit = rng.standard_normal((30, 3)), rng.uniform(0.1, 0.3, 30), 10.0 ** np.array([-9.0, 0, 9])
    plain, value, _ = newton_by_least_squares(ColumnsAtHand(A, target), np.zeros(3), np.zeros(3))
    u, scaled_value, _ = newton_by_least_squares(ColumnsAtHand(A * unit, target), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(u * unit, plain, rtol=1e-9)
    np.testing.assert_allclose(scaled_value, value, rtol=1e-12)
    assert value < ColumnsAtHand(A, target).loss(plain + 1e-4)
    again = newton_by_least_squares(ColumnsAtHand(A * unit, target), np.zeros(3), u)
    assert again[2] == 0  # it was there already
    start = np.array([1.0, -2.0, 0.5])
    elsewhere, *_ = newton_by_least_squares(ColumnsAtHand(A, target), np.zeros(3), start)
    np.testing.assert_allclose(elsewhere, plain, rtol=1e-6)


@pytest.mark.parametrize(("apart", "is_one"), [(1e-15, True), (1e-8, False)])
def test_what_columns_share_is_told_from_rounding(apart, is_one, rng):
    column, target = rng.standard_normal(40), rng.uniform(0.1, 0.3, 40)
    twin = column + apart * rng.standard_normal(40)
    both = ColumnsAtHand(np.column_stack([column, twin]), target)
    (a, b), value, _ = newton_by_least_squares(both, np.zeros(2), np.zeros(2))
    _, alone, _ = newton_by_least_squares(ColumnsAtHand(column[:, None], target), np.zeros(1), np.zeros(1))
    if is_one:
        np.testing.assert_allclose(a, b, rtol=1e-6)  # the shortest of all ways
        np.testing.assert_allclose(value, alone, rtol=1e-9)
    else:
        assert value < alone * 0.999


@pytest.mark.parametrize("large", [128, 0])
def test_a_support_is_finished_and_told_as_what_it_is(large, monkeypatch):
    """Whether its columns are gathered or asked for products, and whatever was said of it."""
    monkeypatch.setattr("kmargin.solvers.solution.LARGE", large)
    problem = make_problem(30, 8, 3, lam=0.02)
    design, support = SignedDesign(problem), np.array([5, 0, 2])
    coef, intercept, best, _ = refit(problem, support)
    ridge = np.full(3, 0.02)
    aside = Candidate(support, np.append(coef + 0.3, intercept), 0.5 * best, all_tried=True)
    finished = design.finish(aside, ridge)
    np.testing.assert_allclose(finished.value, best, rtol=1e-9)
    np.testing.assert_allclose(finished.u, np.append(coef, intercept), atol=1e-6)
    assert not finished.all_tried  # others were judged as inexactly
    there = Candidate(support, np.append(coef, intercept), 0.5 * best, all_tried=True)
    with monkeypatch.context() as patched:
        if large == 0:  # where there are many, what is fine is left as it is
            patched.setattr(folded, "newton_by_least_squares", None)
        same = design.finish(there, ridge)
    np.testing.assert_allclose(same.value, best, rtol=1e-12)
    np.testing.assert_allclose(same.u, there.u, rtol=1e-6)
    assert same.all_tried
    stronger = design.finish(aside, np.full(3, 0.5))
    np.testing.assert_allclose(stronger.value, refit(replace(problem, lam=0.5), support)[2], rtol=1e-9)


class Fraught(Remote):
    """Rows whose objective falls along no line, though the quadratic promises so."""

    def __init__(self):
        self.moved = []

    def move_to(self, idx, u):
        return 1.0

    def renew_system(self, idx, H, z):
        z[:] = 3.0
        return True

    def look_along(self, idx, d):
        return 10.0

    def slope_along(self, t, *ridge):
        return t - 0.5, 1.0

    def advance(self, t):
        self.moved.append(t)

    def loss_here(self):
        return 1.5


def test_a_newton_step_that_fails_is_taken_back():
    rows, u = Fraught(), np.zeros(2)
    value, n_iter = newton(rows, np.zeros(2), np.arange(2), u, np.eye(2), np.ones(2), np.inf, 1e-9, 100)
    assert (value, n_iter) == (1.0, 1)
    np.testing.assert_allclose(u, 1.0)  # after the first step
    assert rows.moved == [pytest.approx(0.5), -rows.moved[0]]


@pytest.mark.parametrize("n_active", [2, 6, 28])
def test_a_system_follows_the_rows_that_change_sides_few_or_many(n_active, rng):
    fit, _ = whole_panel(make_problem(30, 4, 2), np.array([0, 1]))
    rows, idx = fit.rows, fit.idx
    rows.active[:] = True
    columns = rows.panel[idx]
    H, z = columns @ columns.T, columns @ rows.panel[-1]
    rows.resid[:] = -1.0
    active = rng.permutation(30)[:n_active]
    rows.resid[active] = 1.0
    assert renew_system(rows, idx, H, z)
    columns = columns[:, active]
    np.testing.assert_allclose(np.triu(H), np.triu(columns @ columns.T), atol=1e-12)
    np.testing.assert_allclose(z, columns @ rows.panel[-1, active], atol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(rows.active), np.sort(active))
    assert not renew_system(rows, idx, H, z)


# in the units given


ODD = np.array([1.0, 1e40, 1e-40, 1.0])
FAR = np.array([0.0, 1e44, 0.0, 1e6])


def odd_problem(fit_intercept=True, seed=0, lam=0.0):
    """A plain problem, and the same with columns out of proportion, and one far from 0."""
    plain = make_problem(40, 4, 2, lam=lam, fit_intercept=fit_intercept, seed=seed)
    shift = FAR if fit_intercept else np.zeros(4)
    return plain, replace(plain, design=DenseDesign(plain.design.X * ODD + shift, fit_intercept))


def test_columns_are_measured_in_powers_of_two_and_centred_where_an_intercept_makes_up_for_it():
    for fit_intercept in (True, False):
        _, odd = odd_problem(fit_intercept)
        far = replace(odd, design=DenseDesign(odd.design.X + FAR, fit_intercept))
        centers, units, _ = Measured(far).measures
        np.testing.assert_array_equal(np.log2(units), np.round(np.log2(units)))
        assert (units[[0, 3]] == 1).all()
        assert units[1] > 1e8
        assert units[2] < 1e-8
        mean = np.average(far.design.X, weights=far.weights, axis=0) * [0, 1, 0, 1]
        np.testing.assert_allclose(centers, mean * fit_intercept)


def test_a_model_enters_the_measures_and_leaves_them_as_the_same_model(rng):
    _, odd = odd_problem()
    measured = Measured(odd)
    found = Candidate(np.array([3, 1]), np.array([0.7, 2e-40, 3e4]), 0.3)
    entered = measured.enter(found)
    X = measured.measures.apply(odd.design).X
    decision = odd.design.X[:, [3, 1]] @ found.u[:-1] + found.u[-1]
    np.testing.assert_allclose(X[:, [3, 1]] @ entered.u[:-1] + entered.u[-1], decision, rtol=1e-9)
    loss = odd.weights @ np.maximum(0, 1 - odd.y * decision) ** 2 / 80
    left = measured.leave(0.0, entered._replace(value=loss))
    np.testing.assert_allclose(left.u, found.u, rtol=1e-9)
    np.testing.assert_allclose(measured.leave(0.0, entered._replace(value=2 * loss)).value, loss, rtol=1e-6)
    units = measured.measures.units[[3, 1]]
    np.testing.assert_allclose(measured.ridge(0.3, found.support), 0.3 / units**2)
    np.testing.assert_array_equal(Measured(make_problem()).ridge(0.3, np.arange(2)), [0.3, 0.3])


def test_next_to_nothing_in_a_unit_next_to_nothing_is_no_coefficient_where_there_is_a_ridge():
    plain, _ = odd_problem()
    tiny = replace(plain, design=DenseDesign(plain.design.X * [1.0, 1e-320, 1.0, 1.0], True))
    found = Candidate(np.array([0, 1]), np.array([0.7, 1e-288, 0.1]), 10.0)
    measured = Measured(tiny)
    assert measured.leave(1e-300, found).u[1] > 1.0
    np.testing.assert_array_equal(measured.leave(1e-3, found).u, [0.7, 0.0, 0.1])


@pytest.mark.parametrize("ks", [[2], [3, 2, 1], [4]])
def test_a_search_of_measured_columns_is_that_of_plain_ones(ks):
    plain, odd = odd_problem()
    pair = [list(Exchange().iter_grid(p, [0.0], ks, np.random.default_rng(0))) for p in (plain, odd)]
    for a, b in zip(*pair, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_allclose(b.coef * ODD[b.support], a.coef, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(b.intercept + b.coef @ FAR[b.support], a.intercept, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(b.objective, a.objective, rtol=1e-6)
    start = pair[1][0]
    again = Exchange().improve(odd, start)
    np.testing.assert_allclose(again.objective, start.objective, rtol=1e-6)


# the best of what was seen


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 3), (6, 2), (4, 4)])
def test_supports_come_in_lexicographic_order_the_last_as_well(n, k):
    support = np.arange(k)
    listed = [tuple(support)]
    while next_support(support, n):
        listed.append(tuple(support))
    assert listed == list(combinations(range(n), k))


@pytest.mark.parametrize("seed", range(6))
def test_of_all_supports_the_best_is_found_and_everything_is_true_of_it(seed):
    problem = unscaled(30, 6, seed=seed, lam=1e-3)
    values = {s: refit(problem, np.array(s))[2] for s in combinations(range(6), 2)}
    best = min(values, key=values.get)
    dearest = max(values, key=values.get)
    fit, value = whole_panel(problem, np.array(dearest))
    counts = np.zeros(4, np.int64)
    value = try_every_support(fit, value, 1e-9, counts)
    np.testing.assert_allclose(value, values[best], rtol=1e-8)
    assert set(fit.idx[:-1]) == set(best)
    assert (counts[1], counts[3]) == (15, 1)
    resid = fit.rows.panel[-1] - fit.u @ fit.rows.panel[fit.idx]
    np.testing.assert_array_equal(fit.rows.active, resid > 0)
    active = fit.rows.panel[:, resid > 0]
    np.testing.assert_allclose(fit.gram, active @ active.T, rtol=1e-9, atol=1e-9)
    loss = np.sum(resid[resid > 0] ** 2) / 2 + fit.ridge[fit.idx] @ fit.u**2 / 2
    np.testing.assert_allclose(loss, value, rtol=1e-8)
    # wherever it begins: from the best nothing changes
    assert try_every_support(fit, value, 1e-9, counts) == value
    assert set(fit.idx[:-1]) == set(best)


def test_what_a_panel_has_found_stays_when_it_starts_again():
    problem = unscaled(30, 6)
    worst = max(combinations(range(6), 2), key=lambda support: refit(problem, np.array(support))[2])
    working = WorkingSet(
        SignedDesign(problem), 0.05, 6, Candidate(np.array(worst), np.zeros(3), np.inf), 1e-12
    )
    first = working.found()
    u = first.u.copy()
    working.settle(EFFORT._replace(max_swaps=-1))
    assert working.found().all_tried
    assert working.value < first.value
    working.start_again(0.5, Candidate(np.array([4, 1]), np.zeros(3), np.inf))
    np.testing.assert_array_equal(first.u, u)
    second = working.found()
    np.testing.assert_array_equal(second.support, [4, 1])
    np.testing.assert_allclose(second.value, refit(replace(problem, lam=0.5), np.array([4, 1]))[2], rtol=1e-9)
    assert not second.all_tried  # nothing was tried since
    part = WorkingSet(SignedDesign(problem), 0.05, 4, NOTHING, 1e-12)
    part.resize(2)
    part.settle(EFFORT._replace(max_swaps=-1))
    assert not part.found().all_tried  # of the columns it does not hold nothing is known


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_features_that_gain_most_alone_come_first(fit_intercept):
    problem = unscaled(30, 9, lam=2.0)
    shift = 3.0 * problem.design.X.std(axis=0) * (np.arange(9) % 2)
    problem = replace(problem, design=DenseDesign(problem.design.X + shift, fit_intercept))
    working = WorkingSet(SignedDesign(problem), 2.0, 9, NOTHING, 1e-12)
    # all rows are active at the intercept alone: the quadratic is the objective of a least-squares fit
    X, y = problem.design.X, problem.y
    mean = np.average(X, axis=0, weights=problem.weights) if fit_intercept else np.zeros(9)
    level = np.average(y, weights=problem.weights) if fit_intercept else 0.0
    slope = problem.weights @ ((X - mean) * (y - level)[:, None]) / 30
    gain = slope**2 / (problem.weights @ (X - mean) ** 2 / 30 + 2.0)
    np.testing.assert_array_equal(working.best_alone(2.0, 9), np.argsort(-gain))
    # without the ridge, or without what the intercept makes up for, others would come first
    for center, lam in ((mean, 0.0), (np.zeros(9), 2.0))[: 1 + fit_intercept]:
        naive = slope**2 / (problem.weights @ (X - center) ** 2 / 30 + lam)
        assert list(np.argsort(-naive)) != list(np.argsort(-gain))


class Said(SupportGrid):
    """A grid whose searches say what they are told to; finishing tells the truth."""

    def __init__(self, problem, sizes, effort, said=(), truth=None):
        super().__init__(problem, sizes, effort)
        self.said, self.truth, self.starts = iter(said), truth or {}, []

    def exchange(self, lam, k, start, effort):
        self.starts.append((list(start.support), effort.max_swaps))
        return claim(next(self.said), k)

    def _finish(self, lam, found):
        return found._replace(value=self.truth.get(found.value, found.value))


@pytest.mark.parametrize(
    ("truth", "kept"),
    [({}, 0.4), ({0.5: 0.3}, 0.3), ({0.4: 0.6}, 0.5), ({0.5: 0.45, 0.4: 0.44}, 0.44)],
)
def test_what_is_only_said_to_be_better_is_finished_before_it_replaces_another(truth, kept):
    grid = Said(make_problem(), [2], EFFORT, [0.4], truth)
    grid.found, grid.finished = {2: claim(0.5)}, set()
    assert grid._try(0.1, 2, NOTHING) == (kept in (0.4, 0.44))
    assert grid.found[2].value == kept


def test_small_problems_are_searched_from_other_features_where_that_promises_something(monkeypatch):
    monkeypatch.setattr(one_size, "ROOM_FOR_ALL", 0.0)
    problem = make_problem(30, 16, 2)
    effort = EFFORT._replace(max_starts=2, ridge_path=False, max_sweeps=1)
    (first, second) = WorkingSet(SignedDesign(problem), 0.1, 16, NOTHING, 1e-9).best_alone(0.1, 2)
    # 0.5 at first; from one feature 0.9, which is worth a second look and then better; from another nothing
    grid = Said(problem, [2], effort, [0.5, 0.9, 0.4, 0.4 * 4.1])
    monkeypatch.setattr(grid, "_beside", lambda k: [])
    monkeypatch.setattr(grid, "_do_without", lambda *_: None)
    grid.walk(0.1)
    assert grid.starts == [([], 8), ([first], 1), ([0, 1], 8), ([second], 1)]
    assert grid.found[2].value == 0.4
    none = Said(problem, [2], effort._replace(max_starts=0), [0.5])
    monkeypatch.setattr(none, "_beside", lambda k: [])
    none.walk(0.1)
    assert none.starts == [([], 8)]


def test_the_search_tries_to_do_without_each_feature_the_weakest_first(monkeypatch):
    problem = make_problem(30, 16, 2)
    # without the weaker feature nothing; without the other 0.9, and from there 0.4 with two others
    grid = Said(problem, [2], EFFORT, [0.5 * 4.1, 0.9, 0.4, 0.8, 0.7, 0.41 * 4, 0.39 * 4.2])
    grid.design.variance[:] = 1.0
    grid.found, grid.finished, left_out = {2: claim(0.5)._replace(u=np.array([2.0, -1.0, 9.0]))}, set(), []
    said = grid.exchange

    def exchange(lam, k, start, effort):
        left_out.append(np.flatnonzero(~grid._whole.free).tolist())
        return said(lam, k, start, effort)._replace(support=np.array([4, 5]), u=np.array([1.0, 3.0, 0.0]))

    monkeypatch.setattr(grid, "exchange", exchange)
    grid._do_without(0.1, 2, 4, EFFORT)
    assert left_out == [[1], [0], [], [4], [], [5]]
    assert [start for start, _ in grid.starts] == [[0], [1], [4, 5], [5], [4, 5], [4]]
    assert grid.found[2].value == 0.4
    assert grid._whole.free.all()


def test_a_support_grows_no_further_than_to_all_that_is_free():
    working = WorkingSet(SignedDesign(make_problem(40, 5)), 0.1, 5, NOTHING, 1e-12)
    working.free[[1, 3]] = False
    working.resize(5)
    assert sorted(working.found().support) == [0, 2, 4]


def test_coefficients_beyond_all_numbers_are_in_doubt_without_a_warning():
    assert doubt(np.full((2, 2), 1e200), np.array([1e200, -1e200]), 0.5) == np.inf
    assert doubt(np.array([[1.0, 0.0]]), np.array([1.0, np.inf]), 0.5) == np.inf
    assert 0 < doubt(np.ones((2, 2)), np.ones(2), 0.0) < 1e-30
    assert 1e-16 < doubt(np.ones((2, 2)), np.ones(2), 0.5) < 1e-15


@pytest.mark.filterwarnings("ignore:.*repeat an earlier one")
def test_all_features_are_not_done_without():
    X, y = make_problem(16, 5).design.X, make_problem(16, 5).y
    path = sparse_svm_path(np.hstack([X, X[:, [0, 2]]]), y, [7, 6, 5, 4], C=0.01)
    np.testing.assert_allclose(path.objectives[1:3, 0], sparse_svm_path(X, y, [5], C=0.01).objectives[0, 0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("effort", [EFFORT, EFFORT._replace(max_swaps=-1)])
def test_what_is_not_free_stays_where_it_is(effort, seed):
    """In the support, or out of it; the rest is as good as the best of all that is left to choose."""
    problem = make_problem(40, 9, 4, seed=seed)
    stays, never = 3, (1, 7)
    working = WorkingSet(
        SignedDesign(problem), 0.1, 9, Candidate(np.array([stays]), np.zeros(2), np.inf), 1e-12
    )
    working.free[[stays, *never]] = False
    working.resize(4)
    working.settle(effort)
    found = working.found()
    assert stays in found.support
    assert not set(never) & set(found.support)
    rest = [j for j in range(9) if j not in (stays, *never)]
    best = min(
        refit(replace(problem, lam=0.1), np.array([stays, *more]))[2] for more in combinations(rest, 3)
    )
    np.testing.assert_allclose(found.value, best, rtol=1e-6)
    working.resize(2)
    assert stays in working.found().support


def test_sizes_beside_are_tried_by_turns_the_farthest_first_until_none_helps(monkeypatch):
    monkeypatch.setattr(one_size, "ROOM_FOR_ALL", 0.0)
    grid = SupportGrid(make_problem(30, 16), [10], EFFORT)
    assert grid._beside(10) == [13, 7]
    grid._whole_panel(0.1, NOTHING)
    assert grid._beside(10) == [16, 4, 15, 5, 14, 6, 13, 7, 12, 8, 11, 9]
    assert grid._beside(15) == [16, 7, 8, 9, 10, 11, 12, 13, 14]
    assert grid._beside(1) == [2]


def told_grid(value, k=2):
    found = claim(value, k)
    return SimpleNamespace(best=lambda _: found, found={k: found}, n_newton=1, largest=lambda: found)


def test_nothing_is_handed_out_that_is_worse_than_the_intercept_alone():
    problem = make_problem(30, 6, 2)
    bare, every = bare_solution(problem, Status.SWAP_OPTIMAL), np.arange(6)
    np.testing.assert_allclose(bare.objective, problem.loss(intercept_only(problem)), rtol=1e-12)
    worse = Exchange()._best(problem, 2, every, told_grid(bare.objective * 1.01), bare)
    assert worse.objective == bare.objective
    assert len(worse.support) == 0
    assert worse.status is Status.SETTLED
    assert worse.ending is Ending.INTERCEPT
    better = Exchange()._best(problem, 2, every, told_grid(bare.objective * 0.99), bare)
    assert better.objective == bare.objective * 0.99


def test_all_features_are_handed_out_unless_fewer_are_better():
    problem = make_problem(30, 6, 6)
    bare, every = bare_solution(problem, Status.SWAP_OPTIMAL), np.arange(6)
    dense = refit(problem, every)[2]
    for value, expected in ((dense * 1.1, dense), (dense, dense), (dense * 0.9, dense * 0.9)):
        grid = told_grid(value)
        grid.measured = Measured(problem)
        found = Exchange()._best(problem, 6, every, grid, bare)
        np.testing.assert_allclose(found.objective, expected, rtol=1e-9)


def test_an_annealing_ends_with_the_best_of_projection_refit_and_intercept():
    problem = make_problem(30, 6, 2)
    measured, bare = Measured(problem), bare_solution(problem, Status.CONVERGED)
    support = np.array([0, 5])
    coef, intercept, best, _ = refit(problem, support)

    def projected(coef, value):
        return Solution(support, coef, intercept, 6, value, 0.1, Status.STALLED, 7, ("trace",))

    poor = projected(coef + 0.2, 2 * best)
    refitted = best_ending(problem, poor, bare, measured)
    assert refitted.ending is Ending.REFIT
    np.testing.assert_allclose(refitted.objective, best, rtol=1e-9)
    np.testing.assert_allclose(refitted.coef, coef, atol=1e-6)
    assert (refitted.status, refitted.n_iter, refitted.trace) == (Status.STALLED, 7, ("trace",))
    there = projected(coef, 0.9 * best)
    assert best_ending(problem, there, bare, measured) is there
    for value in (2 * best, np.nan):
        alone = best_ending(
            problem, projected(coef + 0.2, value), replace(bare, objective=best / 2), measured
        )
        assert (alone.ending, alone.objective) == (Ending.INTERCEPT, best / 2)
        assert len(alone.support) == len(alone.coef) == 0
        assert alone.intercept == bare.intercept
        assert alone.trace == ("trace",)
    lost = best_ending(problem, projected(np.full(2, np.nan), np.nan), bare, measured)
    assert lost.ending is Ending.REFIT
    np.testing.assert_allclose(lost.objective, best, rtol=1e-9)


@pytest.mark.parametrize("seed", [45, 76, 100])
def test_rows_at_the_margin_itself_stop_no_descent(seed):
    """A ridge next to nothing asks for the shortest u with A u >= 1, which is a problem of nonnegative least
    squares (Lawson and Hanson): all that counts are rows whose residuals are 0 but for rounding.
    """
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 9), rng.integers(2, 5)
    A, ridge = rng.integers(-5, 6, shape).astype(float), 1e-18
    both = np.vstack([A.T, np.ones(shape[0])])
    away = both @ nnls(both, np.eye(shape[1] + 1)[-1])[0] - np.eye(shape[1] + 1)[-1]
    shortest = -away[:-1] / away[-1]
    columns = ColumnsAtHand(A, np.ones(shape[0]))
    u, value, _ = newton_by_least_squares(columns, np.full(shape[1], ridge), np.zeros(shape[1]))
    np.testing.assert_allclose(u, shortest, rtol=1e-6)
    assert value == pytest.approx(0.5 * ridge * float(shortest @ shortest), rel=1e-6)
