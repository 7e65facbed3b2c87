"""The exact minimum on a support whose coefficients may only be positive, or only negative."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import lsq_linear, minimize
from test_block_tags import BALANCED, cut
from test_scores_by_refit import unscaled

from conftest import PROBLEMS, make_problem
from kmargin.core.jit import Remote
from kmargin.core.problem import ArrayProblem
from kmargin.data.blocks.problem import BlockDesign
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.final import ColumnsAtHand
from kmargin.solvers.refit.folded import SignedBlocks, SignedDesign
from kmargin.solvers.refit.newton import newton_from_gram, place, take_gram
from kmargin.solvers.refit.signs import Quadratic, bounded_direction, newton_bounded, reach

TOL = 1e-9


class Case:
    """A problem as the search sees it, a support, and signs."""

    def __init__(self, problem, support, signs):
        self.problem, p = problem, problem.design.n_features
        self.p, self.idx = p, np.append(np.asarray(support, np.int64), p)
        self.signs = np.append(np.asarray(signs, np.float64), 0.0)
        signed = SignedDesign(problem)
        self.rows = signed.make_rows(np.arange(p), p, to_stay=True)
        self.ridge = signed.make_ridge(problem.lam, p)
        self.columns = ColumnsAtHand(self.rows.panel[self.idx].T.copy(), self.rows.panel[-1])

    def in_blocks(self):
        X, codes, n = self.problem.design.X, (self.problem.y > 0).astype(int), self.problem.design.n_samples
        blocks = cut(X, codes, self.problem.weights, (n // 3, n // 3, n))  # one of them is empty
        signed = SignedBlocks(BlockDesign(blocks, BALANCED, self.problem.design.fit_intercept))
        return signed.make_rows(np.arange(self.p), self.p)

    def fit(self, start=None, *, signs=None, give_up=np.inf, rows=None, gram_at=None):
        """Objective, coefficients, steps; from the Gram matrix at the start, or at another point."""
        rows, gram = self.rows if rows is None else rows, np.empty((self.p + 2, self.p + 2))
        u = np.zeros(len(self.idx)) if start is None else np.array(start, np.float64)
        place(rows, self.idx, u if gram_at is None else gram_at)
        take_gram(rows, gram)
        signs = self.signs if signs is None else signs
        value, n_iter = newton_bounded(rows, self.ridge, gram, self.idx, u, signs, give_up, TOL)
        return value, u, n_iter

    def objective(self, u):
        return self.columns.loss(u) + 0.5 * self.ridge[self.idx] @ u**2

    def gradient(self, u):
        short = np.maximum(self.columns.target - self.columns.A @ u, 0.0)
        return self.ridge[self.idx] * u - self.columns.A.T @ short

    def check(self, value, u, rtol=1e-8, atol=1e-13):
        """The signs hold, and nothing that they allow lowers the objective, coefficient by coefficient."""
        assert np.all(self.signs * u >= 0)
        np.testing.assert_allclose(value, self.objective(u), rtol=1e-9, atol=1e-14)
        unit = np.sqrt(np.sum(self.columns.A**2, axis=0) + self.ridge[self.idx])
        slope = self.gradient(u) / np.where(unit > 0, unit, 1.0)
        bound = (u == 0) & (self.signs != 0)
        slack = rtol * np.sqrt(2 * max(value, 0.0)) + atol  # a value of nothing may be below it by rounding
        assert np.all(np.abs(slope[~bound]) <= slack)  # stationary where free
        assert np.all((self.signs * slope)[bound] >= -slack)  # held where bound


def separable():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 5))
    y = np.sign(X[:, 0] - X[:, 1])
    X[:, 0] += 0.2 * y
    return ArrayProblem(DenseDesign(X), y, np.ones(40), 0.0, 5)


def collinear(lam):
    problem = make_problem(50, 6, 6, lam=lam)
    X = problem.design.X
    more = [X[:, 0], -2 * X[:, 1], X[:, 2] + X[:, 3], np.ones(50), np.zeros(50)]
    return replace(problem, design=DenseDesign(np.column_stack([X, *more])))


REGIMES = {
    **{name: PROBLEMS[name] for name in ("tall", "wide", "no intercept", "no ridge", "no weights")},
    "wide, no intercept": make_problem(15, 40, 9, fit_intercept=False),
    "wide, no ridge": make_problem(15, 30, 30, lam=0.0),
    "collinear": collinear(0.01),
    "collinear, no ridge": collinear(0.0),
    "separable": separable(),
    "units": unscaled(60, 9, lam=1e-4),
    "units, no ridge": unscaled(60, 9, seed=1, lam=0.0),
}


def make_case(name, seed):
    problem, rng = REGIMES[name], np.random.default_rng(seed)
    p = problem.design.n_features
    k = p if seed % 2 == 0 else int(rng.integers(1, p))
    return Case(problem, rng.permutation(p)[:k], rng.choice([-1.0, 1.0, 1.0, 0.0], k)), rng


def lowest_by_scipy(case, method):
    """In units in which all columns have norm one."""
    unit = np.sqrt(np.sum(case.columns.A**2, axis=0) + case.ridge[case.idx])
    unit[unit == 0] = 1.0
    bounds = [(0 if s > 0 else None, 0 if s < 0 else None) for s in case.signs]
    options = {"L-BFGS-B": {"maxiter": 10**5, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-12},
               "SLSQP": {"maxiter": 10**4, "ftol": 1e-15}}[method]  # fmt: skip
    return minimize(
        lambda v: (case.objective(v / unit), case.gradient(v / unit) / unit),
        np.zeros(len(unit)), jac=True, method=method, bounds=bounds, options=options,
    ).fun  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", REGIMES)
def test_it_ends_where_nothing_that_the_signs_allow_is_lower(name, seed):
    case, rng = make_case(name, seed)
    far = rng.standard_normal(len(case.idx)) * 10.0 ** rng.integers(-1, 3)
    for start in (None, far, np.where(case.signs * far < 0, 0.0, far)):  # a full step may lead upwards
        value, u, _ = case.fit(start)
        case.check(value, u)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP"])
@pytest.mark.parametrize("name", REGIMES)
def test_scipy_finds_nothing_lower(name, method):
    case, _ = make_case(name, 4)
    value, _, _ = case.fit()
    lowest = lowest_by_scipy(case, method)
    assert value <= lowest * (1 + 1e-9) + 1e-13
    if name not in ("units, no ridge", "separable"):  # where scipy, too, gets there
        np.testing.assert_allclose(value, lowest, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", REGIMES)
def test_without_signs_it_is_newton(name):
    case, _ = make_case(name, 2)
    gram, theirs = np.empty((case.p + 2, case.p + 2)), np.zeros(len(case.idx))
    value, u, _ = case.fit(signs=np.zeros(len(case.idx)))
    place(case.rows, case.idx, theirs)
    take_gram(case.rows, gram)
    best, _ = newton_from_gram(case.rows, case.ridge, gram, case.idx, theirs, np.inf, TOL)
    np.testing.assert_allclose(value, best, rtol=1e-12, atol=1e-20)
    if "no ridge" not in name and name != "separable":  # where the minimum is one point
        np.testing.assert_allclose(u, theirs, rtol=1e-6, atol=1e-9)


def test_signs_that_the_minimum_has_change_nothing_and_opposite_ones_leave_the_intercept():
    case = Case(make_problem(60, 3, 3), [0, 1, 2], [0, 0, 0])
    value, u, _ = case.fit()
    same, again, _ = case.fit(signs=np.append(np.sign(u[:-1]), 0.0))
    np.testing.assert_allclose([same, *again], [value, *u], rtol=1e-9)
    alone = Case(make_problem(60, 3, 3), [0], [-np.sign(u[0])])
    np.testing.assert_array_equal(alone.fit(start=u[[0, 3]])[1][0], 0.0)


@pytest.mark.parametrize("name", REGIMES)
def test_the_way_has_the_signs_and_never_rises(name):
    """From any start, by steps in which rows change sides, and from Gram matrices of other points."""
    for seed in range(4):
        case, rng = make_case(name, seed)
        rows, seen = case.in_blocks(), []
        begin, renew = rng.standard_normal(len(case.idx)) * 10.0 ** rng.integers(-1, 3), rows.renew_system

        def record(idx, H, z, rows=rows, seen=seen, renew=renew):
            seen.append(rows.u.copy())
            return renew(idx, H, z)

        rows.renew_system = record
        value, u, n_iter = case.fit(begin, rows=rows, gram_at=rng.standard_normal(len(case.idx)))
        begin = np.where(begin * case.signs < 0, 0.0, begin)
        objectives = np.array([case.objective(point) for point in [begin, *seen, u]])
        assert np.all(objectives[1:] <= objectives[:-1] * (1 + 1e-11) + 1e-20)
        assert all(np.all(point * case.signs >= 0) for point in seen)
        assert n_iter < 60
        case.check(value, u)


@pytest.mark.parametrize("name", REGIMES)
def test_rows_in_blocks_and_rows_at_hand_go_the_same_way(name):
    case, rng = make_case(name, 0)
    start = rng.standard_normal(len(case.idx))
    value, u, n_iter = case.fit(start)
    there, u_there, n_there = case.fit(start, rows=case.in_blocks())
    np.testing.assert_allclose(there, value, rtol=1e-9, atol=1e-15)
    if "no ridge" not in name and name != "separable":
        assert n_there == n_iter
        np.testing.assert_allclose(u_there, u, rtol=1e-6, atol=1e-9)


def test_rows_end_at_the_result():
    for seed in range(5):
        case, rng = make_case("wide", seed)
        _, u, _ = case.fit(rng.standard_normal(len(case.idx)))
        resid = case.rows.panel[-1] - u @ case.rows.panel[case.idx]
        np.testing.assert_allclose(case.rows.resid, resid, atol=1e-12)
        np.testing.assert_array_equal(case.rows.active, case.rows.resid > 0)


def test_a_first_step_that_leads_upwards_is_left_out():
    case = Case(make_problem(40, 5, 5), range(5), [1, 1, -1, -1, 0])
    best, at, _ = case.fit()
    one_label = np.append(np.zeros(5), 1e3)  # where the rows of the other are not active
    again, u, _ = case.fit(at, gram_at=one_label)
    assert again <= best * (1 + 1e-12)
    np.testing.assert_allclose(u, at, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(case.rows.resid, case.columns.target - case.columns.A @ u, atol=1e-12)


class Deceptive(Remote):
    """Rows whose objective falls on any way, and farther on still more, though it is told to have risen."""

    def __init__(self):
        self.losses, self.moved = [1.0, 1.0], []

    def move_to(self, idx, u):
        return self.losses.pop(0) if self.losses else 1.0

    def renew_system(self, idx, H, z):
        z[:] = 0.0  # the minimum is where all coefficients are 0
        return True

    def look_along(self, idx, d):
        return 10.0

    def slope_along(self, t, *ridge):
        return t - 2.0, 1.0

    def advance(self, t):
        self.moved.append(t)

    def loss_here(self):
        return 0.5 if len(self.moved) == 1 else 2.0


def test_no_step_goes_beyond_its_end_where_signs_may_not_hold():
    rows, u = Deceptive(), np.zeros(2)
    gram = np.diag([1.0, 1.0, 0.0, 0.0])
    gram[:2, -1] = 1.0
    newton_bounded(rows, np.zeros(4), gram, np.arange(2), u, np.ones(2), np.inf, TOL)
    assert rows.moved[0] == 1.0
    np.testing.assert_array_equal(u, 0.0)


def test_it_gives_up_where_twice_the_promise_cannot_win_and_says_what_it_has():
    tried = 0
    for seed in range(20):
        case, rng = make_case("tall", seed)
        start = 3 * rng.standard_normal(len(case.idx))
        best, _, n_iter = case.fit(start)
        for share in (0.0, 0.5, 0.99, 1.01, 1.5):
            value, u, n_tried = case.fit(start, give_up=share * best)
            np.testing.assert_allclose(value, case.objective(u), rtol=1e-9)
            assert np.all(u * case.signs >= 0)
            assert value >= best * (1 - 1e-9)
            assert n_tried <= n_iter
            if share > 1:  # it was in reach all the time, or is not claimed to be
                assert value <= share * best or n_tried < n_iter
            tried += n_tried < n_iter
        first, *_, n_first = case.fit(start, give_up=-np.inf)
        assert n_first == 1
        assert first >= best
    assert tried > 10


finite = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(2, 7), st.integers(1, 4)), elements=finite),
    lam=st.sampled_from([0.0, 1e-3, 0.5]),
    fit_intercept=st.booleans(),
    data=st.data(),
)
def test_small_problems_of_few_numbers_end_at_the_minimum(X, lam, fit_intercept, data):
    n, p = X.shape
    y = np.where(data.draw(hnp.arrays(np.bool_, n)), 1.0, -1.0)
    signs = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=p, max_size=p))
    start = data.draw(hnp.arrays(np.float64, p + 1, elements=finite))
    case = Case(ArrayProblem(DenseDesign(X, fit_intercept), y, np.ones(n), lam, p), range(p), signs)
    value, u, _ = case.fit(start)
    case.check(value, u, rtol=1e-7, atol=1e-9)


# the quadratic


def check_quadratic(A, b, ridge, signs, u):
    """Against bounded least squares."""
    k, d = len(u), np.empty(len(u))
    quadratic = Quadratic(np.triu(A.T @ A), A.T @ b, ridge)
    promise, is_minimum = bounded_direction(quadratic, u, signs, np.empty((k, k)), d)
    J, rhs = np.vstack([A, np.diag(np.sqrt(ridge))]), np.append(b, np.zeros(k))
    lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    reference = lsq_linear(J, rhs, (lower, upper), tol=1e-14, method="bvls").x
    cost = [0.5 * np.sum((J @ x - rhs) ** 2) for x in (u, u + d, reference)]
    assert is_minimum
    assert np.all(signs * (u + d) >= 0)
    np.testing.assert_allclose(cost[1], cost[2], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(promise, cost[0] - cost[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(30, 8), (6, 10), (12, 12)])
def test_the_minimum_of_a_quadratic_under_signs_is_that_of_bounded_least_squares(shape):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal(shape) + rng.standard_normal((shape[0], 1)), rng.standard_normal(shape[0])
        k, ridge = shape[1], np.full(shape[1], 0.0 if seed % 2 else 0.05)
        signs = rng.choice([-1.0, 0.0, 1.0], k)
        u = np.where(rng.random(k) < 0.5, 0.0, np.where(signs == 0, 1, signs) * rng.uniform(0, 2, k))
        check_quadratic(A, b, ridge, signs, u)


def test_who_is_released_stays_so_while_others_stop_the_step_where_it_begins():
    A = np.array([
        [-2.68, -2.03, -2.02, -1.66, -4.1],
        [3.05, 2.0, 0.69, 4.14, 2.64],
        [-1.78, -4.36, -3.22, -3.46, -4.03],
    ])  # fmt: skip
    b, u = np.array([0.19, -0.14, 1.43]), np.array([0.0, 0.0, -1.58, 0.0, -1.87])
    check_quadratic(A, b, np.full(5, 1e-3), np.array([1.0, -1.0, -1.0, -1.0, -1.0]), u)


def test_a_step_reaches_as_far_as_the_first_of_the_bounds_that_it_meets():
    x, signs = np.array([1.0, 2.0, -1.0]), np.array([1.0, 1.0, 0.0])
    assert reach(x, np.array([-4.0, -3.0, 5.0]), signs) == 0.25
    assert reach(x, np.array([-0.5, 7.0, 5.0]), signs) == 1.0
