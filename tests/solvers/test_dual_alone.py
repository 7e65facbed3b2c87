"""The dual Newton method by itself: nothing finishes what it leaves."""

import numpy as np
import pytest

from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.exchange import Exchange
from kmargin.solvers.refit.dual import DualRows, dual_direction, enlist, newton_dual
from kmargin.solvers.refit.final import ColumnsAtHand, newton_by_least_squares
from kmargin.solvers.refit.folded import SignedDesign


def make(seed, lam, n=30, p=45, intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0.3, 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, n)
    return ArrayProblem(DenseDesign(X, intercept), y, weights * n / weights.sum(), lam, p)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("lam", [1.0, 0.1, 1e-2, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_the_dual_method_ends_at_the_minimum(seed, lam, intercept):
    problem = make(seed, lam, intercept=intercept)
    design, k = SignedDesign(problem), 40
    support = np.arange(k)
    rng = np.random.default_rng(seed)
    w, b = (
        0.3 * rng.standard_normal(k),
        0.2 if intercept else 0.0,
    )  # any start
    A = design.columns(support).A
    resid = design.c - A @ np.append(w, b)
    value, b, _, _ = newton_dual(
        design.X, design.t, design.c, lam, support, w, b, resid, DualRows.none(k), np.inf, 1e-14
    )
    ridge = np.append(np.full(k, lam), 0.0 if intercept else 1.0)
    u, least, _ = newton_by_least_squares(ColumnsAtHand(A, design.c), ridge, np.zeros(k + 1))
    assert value == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(np.append(w, b), u, atol=1e-5 * np.abs(u).max())
    np.testing.assert_allclose(resid, design.c - A @ np.append(w, b), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_without_a_ridge_the_dual_method_loses_nothing_that_can_be_kept(seed):
    problem = make(seed, 0.0)
    design, k = SignedDesign(problem), 40  # more features than rows: the minimum is 0
    w, resid = np.zeros(k), design.c.copy()
    value, *_ = newton_dual(
        design.X, design.t, design.c, 0.0, np.arange(k), w, 0.0, resid, DualRows.none(k), np.inf, 1e-14
    )
    assert value < 1e-15


def test_a_proximal_step_stays_where_the_loss_is_zero_already():
    """With a ridge far below what systems are solved with, the ridge still decides what is minimal."""
    problem = make(0, 1e-14)
    design, k = SignedDesign(problem), 40
    w, resid = np.zeros(k), design.c.copy()
    value, b, _, _ = newton_dual(
        design.X, design.t, design.c, 1e-14, np.arange(k), w, 0.0, resid, DualRows.none(k), np.inf, 1e-14
    )
    A = design.columns(np.arange(k)).A
    np.testing.assert_allclose(resid, design.c - A @ np.append(w, b), atol=1e-10)
    assert value < 1e-12


@pytest.mark.parametrize("intercept", [True, False])
def test_without_features_the_intercept_is_the_mean_label(intercept):
    problem = make(1, 0.1, intercept=intercept)
    (bare,) = Exchange().iter_grid(problem, [0.1], [0], np.random.default_rng(0))
    mean = float(problem.weights @ problem.y) / len(problem.y)
    assert bare.intercept == pytest.approx(mean if intercept else 0.0, rel=1e-12)
    assert bare.objective == pytest.approx((1 - mean**2 if intercept else 1.0) / 2, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_proximal_step_from_anywhere_satisfies_all_active_rows(seed):
    """Without a ridge, and with more features than rows, the quadratic's minimum leaves no residual."""
    design, k = SignedDesign(make(seed, 0.0)), 40
    support, w, b = np.arange(k), np.random.default_rng(seed).standard_normal(k), 0.1
    A = design.columns(support).A
    resid = design.c - A @ np.append(w, b)
    store = enlist(design.X, design.t, support, resid, DualRows.none(k))
    d = np.empty(k)
    db = dual_direction(*store, design.t, design.c, 0.0, True, w, b, resid, d)
    active = resid > 0
    left = (resid - A @ np.append(d, db))[active]
    assert np.abs(left).max() < 1e-6 * np.abs(resid[active]).max()
