"""Bounds on what a stability selection finds by chance."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from kmargin import stability_bounds, stability_k
from kmargin.fitting.subsampling import affine_powers, needed_halves, r_concave_tails, unimodal_tail


def largest_tail_by_search(mean, n, r, t, rng, n_starts=4):
    """P(X >= t / n) of the best r-concave distribution that a general optimiser finds, from random starts."""
    places = np.arange(n + 1)

    def probabilities(logs):
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def convexity(logs):
        powers = np.exp(r * (logs - logs.max()))
        return (powers[2:] + powers[:-2] - 2 * powers[1:-1]) / (powers[2:] + powers[:-2])

    best = 0.0
    for _ in range(n_starts):
        found = minimize(
            lambda logs: -probabilities(logs)[t:].sum(),
            -rng.uniform(0.1, 3) * places + 0.1 * rng.standard_normal(n + 1),
            method="SLSQP",
            bounds=[(-40, 10)] * (n + 1),
            constraints=[
                {"type": "eq", "fun": lambda logs: probabilities(logs) @ places - mean * n},
                {"type": "ineq", "fun": convexity},
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if abs(probabilities(found.x) @ places - mean * n) < 1e-7 and convexity(found.x).min() > -1e-7:
            best = max(best, -found.fun)
    return best


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # the optimiser's own
@pytest.mark.parametrize(("n", "r"), [(3, -0.5), (4, -0.25), (5, -0.5), (5, -2.0)])
@pytest.mark.parametrize("mean", [0.02, 0.1, 0.3])
def test_no_r_concave_distribution_has_a_heavier_tail_and_one_has_it(n, r, mean):
    rng = np.random.default_rng(0)
    for t in (2, n):
        bound = r_concave_tails(mean, n, r)[t]
        assert largest_tail_by_search(mean, n, r, t, rng) == pytest.approx(bound, rel=1e-4)


def largest_unimodal_tail(mean, n, t):
    """By linear programming, over mixtures of equal probabilities on intervals that hold the mode."""
    best = 0.0
    for mode in range(n + 1):
        intervals = [(a, b) for a in range(mode + 1) for b in range(mode, n + 1)]
        means = np.array([(a + b) / 2 for a, b in intervals])
        tails = np.array([max(0, b - max(a, t) + 1) / (b - a + 1) for a, b in intervals])
        found = linprog(-tails, [means], [mean * n], [np.ones(len(tails))], [1.0])
        best = max(best, -found.fun if found.status == 0 else 0.0)
    return best


@pytest.mark.parametrize(("theta", "first"), [(0.2, 1), (0.3, 2), (0.4, 3), (0.5, 5), (0.565, 5), (0.58, 9)])
def test_the_unimodal_formula_is_the_largest_tail_there_is(theta, first):
    n = 8
    formula = [unimodal_tail(theta, t, n) for t in range(1, n + 1)]
    known = [t for t in range(1, n + 1) if formula[t - 1] < 1]
    assert known == list(range(first, n + 1))
    for t in known:
        assert formula[t - 1] == pytest.approx(largest_unimodal_tail(theta**2, n, t))


def test_r_concave_becomes_unimodal_as_r_falls_and_log_concave_as_it_rises_to_zero():
    for t in (5, 10, 19):
        assert r_concave_tails(0.1**2, 20, -300.0)[t] == pytest.approx(unimodal_tail(0.1, t, 20), rel=0.02)
    # on so long a line the extreme log-concave distribution with mean 2 is nearly geometric
    assert r_concave_tails(0.01, 200, -1e-4)[8] == pytest.approx((2 / 3) ** 8, rel=1e-2)


@pytest.mark.parametrize(
    ("p", "q", "threshold", "n_pairs", "n_halves"),
    [(1000, 20, 0.9, 50, 90), (100, 10, 0.601, 50, 61), (50, 20, 0.5 + 1e-12, 10, 11), (9, 4, 1.0, 1, 2)],
)
def test_stronger_assumptions_give_smaller_bounds_and_none_the_worst_case(p, q, threshold, n_pairs, n_halves):
    assert needed_halves(threshold, n_pairs) == n_halves  # whole ones
    bounds = stability_bounds(p, q, threshold, n_pairs)
    assert 0 < bounds.r_concave <= bounds.unimodal <= bounds.worst_case
    assert bounds.worst_case == pytest.approx(min(p, q**2 / p / (n_halves / n_pairs - 1)))
    by_pairs = r_concave_tails((q / p) ** 2, n_pairs, -1 / 2)[n_halves - n_pairs]
    by_halves = r_concave_tails(q / p, 2 * n_pairs, -1 / 4)[n_halves]
    assert bounds.r_concave == pytest.approx(p * min(by_pairs, by_halves))


def test_a_blind_choice_finds_fewer_than_every_bound_allows():
    p, q, n_pairs, rng = 60, 12, 10, np.random.default_rng(0)
    for threshold in (0.6, 0.7):
        needed = needed_halves(threshold, n_pairs)
        orders = rng.random((400, 2 * n_pairs, p)).argsort(axis=2)
        stable = ((orders < q).sum(axis=1) >= needed).sum(axis=1)
        assert stable.mean() <= stability_bounds(p, q, threshold, n_pairs).r_concave


def test_the_largest_k_keeps_the_bound_and_the_next_one_does_not():
    k = stability_k(500, max_false=0.5, threshold=0.8, n_pairs=20)
    assert stability_bounds(500, k, 0.8, 20).unimodal <= 0.5 < stability_bounds(500, k + 1, 0.8, 20).unimodal
    assert [stability_k(p, max_false) for p, max_false in ((0, 1.0), (9, 9.0), (9, 1e-9))] == [0, 9, 0]
    assert stability_bounds(0, 0, 0.9) == (0, 0, 0)
    assert stability_bounds(9, 18, 0.9) == (9, 9, 9)


def bisected_powers(mean, last, r):
    """Probabilities of 0, ..., last whose r-th powers are affine: the readable twin, by halving alone."""
    places = np.arange(last + 1)

    def probabilities(slope):
        with np.errstate(divide="ignore"):
            logs = np.logaddexp(np.log(1 - places / last) + slope, np.log(places / last) - slope) / r
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    low, high = -60.0 * max(1.0, -r), 60.0 * max(1.0, -r)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if probabilities(middle) @ places < mean else (low, middle)
    return probabilities(high)


@pytest.mark.parametrize("r", [-0.5, -0.25, -2.0, -300.0])
@pytest.mark.parametrize("start", [0.0, 3.0, -8.0])
@pytest.mark.parametrize("mean", [1e-3, 0.9, 4.5])
def test_newton_finds_the_distributions_that_halving_finds(mean, r, start):
    lasts, slopes = np.arange(5, 13), np.full(8, start)
    found = affine_powers(mean, lasts, 12, r, slopes)
    for last, row in zip(lasts, found, strict=True):
        np.testing.assert_allclose(row[: last + 1], bisected_powers(mean, last, r), rtol=1e-9, atol=1e-300)
        assert not row[last + 1 :].any()
    again = slopes.copy()
    np.testing.assert_allclose(affine_powers(mean, lasts, 12, r, again), found, rtol=1e-12)
