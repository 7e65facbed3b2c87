"""Probabilities from decision values, by independent references."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import chi2

from kmargin.model_selection import calibration
from kmargin.model_selection.calibration import NotTested, UnseenRows, couple, fit_calibration, minimise


def make_rows(rng, n_classes, multi_class, n_rows=150, shift=0.0, noise=1.0):
    """Decision values as machines would have them, each about right."""
    codes = np.arange(n_rows) % n_classes
    if n_classes == 2:
        signs = (2 * codes - 1)[:, None]
    elif multi_class == "ovr":
        signs = np.where(codes[:, None] == np.arange(n_classes), 1, -1)
    else:
        signs = np.stack([1 * (codes == j) - 1 * (codes == i) for i, j in pairs_of(n_classes)], axis=1)
    decisions = 0.7 * signs + noise * rng.standard_normal(signs.shape) + shift
    return UnseenRows(decisions, codes, rng.uniform(0.5, 2, n_rows))


def pairs_of(n_classes):
    return list(combinations(range(n_classes), 2))


def fit(rows, n_classes, multi_class="ovo"):
    return fit_calibration(rows, np.arange(n_classes), multi_class)


def smoothed(rows, n_classes, pseudo):
    """The probability that each row is given for each class."""
    totals = np.bincount(rows.codes, weights=rows.weights)[rows.codes, None]
    own = rows.codes[:, None] == np.arange(n_classes)
    return (totals * own + pseudo) / (totals + n_classes * pseudo)


def platt(f, is_second, weights, pseudo, with_offset=True):
    """Slope, offset and loss by a general minimiser."""
    rows = UnseenRows(f, is_second.astype(int), weights)
    target = smoothed(rows, 2, pseudo)[:, 1]

    def loss(theta):
        z = theta[0] * f + (theta[1] if with_offset else 0)
        slope = weights * (expit(z) - target)
        gradient = np.array([slope @ f, slope.sum() if with_offset else 0])
        return weights @ (np.logaddexp(0, z) - target * z), gradient

    bounds = [(0, None), (None, None)]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    found = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x, found.fun


@pytest.mark.parametrize("shift", [0.0, -0.1, -0.15, 2.0, -3.0])
def test_two_classes_have_the_sigmoid_of_highest_likelihood_and_an_offset_if_it_pays(rng, shift):
    rows = make_rows(rng, 2, "ovo", shift=shift)
    found = fit(rows, 2)
    arguments = rows.decisions[:, 0], rows.codes == 1, rows.weights, 1.0
    (shifted, loss), (bare, bare_loss) = platt(*arguments), platt(*arguments, with_offset=False)
    pays = 2 * (bare_loss - loss) > chi2(1).ppf(0.95)
    assert pays == (shift not in (0.0, -0.1))
    np.testing.assert_allclose([found.slopes[0], found.offsets[0]], shifted if pays else bare, atol=1e-5)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_pairs_have_sigmoids_of_their_own_rows_coupled(rng, n_classes):
    rows = make_rows(rng, n_classes, "ovo", n_rows=300, shift=2.0)
    found = fit(rows, n_classes)
    pseudo = 1 / len(pairs_of(n_classes))
    for at, (i, j) in enumerate(pairs_of(n_classes)):
        of = (rows.codes == i) | (rows.codes == j)
        expected, _ = platt(rows.decisions[of, at], rows.codes[of] == j, rows.weights[of], pseudo)
        np.testing.assert_allclose([found.slopes[at], found.offsets[at]], expected, atol=1e-5)
    pairwise = expit(rows.decisions * found.slopes + found.offsets)
    probabilities = found.probabilities(rows.decisions, n_classes, "ovo")
    np.testing.assert_allclose(probabilities, couple(pairwise, n_classes), atol=1e-12)


@pytest.mark.parametrize("says", ["of all classes", "of its own"])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_one_versus_rest_has_the_softmax_of_highest_likelihood_(rng, monkeypatch, n_classes, says):
    rows, K = make_rows(rng, n_classes, "ovr", shift=1.0), n_classes
    if says == "of its own":
        monkeypatch.setattr(calibration, "MOST_MIXED", K - 1)
    target = np.eye(K)[rows.codes]
    spread = np.sqrt(np.cov(rows.decisions.T, aweights=rows.weights, ddof=0).diagonal())
    ridge = np.where(np.eye(K), 0.1, 10.0 if says == "of all classes" else 1e12)

    def loss(theta):
        slopes, offsets = theta[: K * K].reshape(K, K), theta[K * K :]
        z = rows.decisions / spread @ slopes + offsets
        slope = rows.weights[:, None] * (softmax(z, axis=1) - target)
        gradient = (rows.decisions / spread).T @ slope + ridge * slopes
        value = -(rows.weights[:, None] * target * log_softmax(z, axis=1)).sum()
        return value + 0.5 * (ridge * slopes**2).sum(), np.append(gradient, slope.sum(axis=0))

    found = fit(rows, K, "ovr")
    assert found.slopes.shape == (K, K)
    theta = np.append(found.slopes * spread[:, None], found.offsets)
    value, gradient = loss(theta)
    free = np.append(ridge.ravel() < 1e12, np.full(K, True))
    np.testing.assert_allclose(gradient[free], 0, atol=1e-7 * len(target))
    for _ in range(20):  # convex, so that nothing near is lower
        assert loss(theta + free * 1e-3 * rng.standard_normal(len(theta)))[0] > value


def test_newton_takes_the_step_that_it_finds_too_short_to_look_at_again():
    a = np.array([[3.0, 0.5], [1.2, 7.0]])  # exp(x) - a x is least where x is the logarithm of a

    def sums(x):
        return (np.exp(x) - a * x).sum(axis=1), np.exp(x) - a, np.exp(x)[:, :, None] * np.eye(2)

    near = np.log(a) + 3e-7
    assert (0.5 * a * 3e-7**2).sum(axis=1).max() < calibration.CLOSE
    np.testing.assert_allclose(minimise(sums, near, 1.0), np.log(a), rtol=0, atol=1e-12)


@pytest.mark.parametrize("tile", [1, 7 * 12])
def test_sums_over_parts_of_the_rows_are_those_over_all(rng, monkeypatch, tile):
    rows = make_rows(rng, 3, "ovr")
    whole = fit(rows, 3, "ovr")
    monkeypatch.setattr(calibration, "TILE", tile)
    np.testing.assert_allclose(fit(rows, 3, "ovr").slopes, whole.slopes, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("at_once", [1, 2 * 5**2, 2**20])
def test_pairs_are_coupled_by_least_squares_however_many_rows_at_once(rng, monkeypatch, at_once):
    monkeypatch.setattr(calibration, "MAX_SYSTEM_ENTRIES", at_once)
    n_classes, second = 4, rng.uniform(0.001, 0.999, (5, 6))
    P = couple(second, n_classes)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    for p, r in zip(P, second, strict=True):

        def disagreement(free, r=r):
            q = np.append(free, 1 - free.sum())
            return sum((r[at] * q[i] - (1 - r[at]) * q[j]) ** 2 for at, (i, j) in enumerate(pairs_of(4)))

        best = minimize(disagreement, np.full(3, 0.25), tol=1e-14)
        np.testing.assert_allclose(p[:3], best.x, atol=1e-5)


SCHEMES = [(2, "ovo"), (3, "ovo"), (3, "ovr")]


@pytest.mark.parametrize(("n_classes", "multi_class"), SCHEMES)
def test_a_weight_is_so_many_rows(rng, n_classes, multi_class):
    rows = make_rows(rng, n_classes, multi_class)
    repeats = rng.integers(1, 4, len(rows.codes))
    weighted = fit(rows._replace(weights=repeats.astype(float)), n_classes, multi_class)
    decisions, codes = (np.repeat(array, repeats, axis=0) for array in rows[:2])
    repeated = fit(UnseenRows(decisions, codes, np.ones(len(codes))), n_classes, multi_class)
    np.testing.assert_allclose(weighted.slopes, repeated.slopes, rtol=1e-8)
    np.testing.assert_allclose(weighted.offsets, repeated.offsets, atol=1e-8)


@pytest.mark.parametrize(("n_classes", "multi_class"), SCHEMES)
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_decision_values_does_not_matter(rng, n_classes, multi_class, factor):
    rows = make_rows(rng, n_classes, multi_class, shift=1.0)
    small = fit(rows, n_classes, multi_class)
    large = fit(rows._replace(decisions=factor * rows.decisions), n_classes, multi_class)
    np.testing.assert_allclose(factor * large.slopes, small.slopes, rtol=1e-7)
    np.testing.assert_allclose(large.offsets, small.offsets, atol=1e-7)


@pytest.mark.parametrize(("n_classes", "multi_class"), [*SCHEMES, (5, "ovo")])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_probabilities_sum_to_one_and_are_never_certain(rng, n_classes, multi_class, dtype, noise):
    rows = make_rows(rng, n_classes, multi_class, noise=noise)
    found = fit(rows, n_classes, multi_class)
    assert np.isfinite([*found.slopes.ravel(), *found.offsets]).all()
    far = np.concatenate([rows.decisions, 1e6 * rows.decisions]).astype(dtype)
    P = found.probabilities(far, n_classes, multi_class)
    assert (P.dtype, P.shape) == (dtype, (len(far), n_classes))
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-6)
    assert 0 < P.min() < P.max() < 1
    assert np.isfinite(found.log_probabilities(far, n_classes, multi_class)).all()


@pytest.mark.parametrize("values", ["the opposite", "a constant"])
def test_decision_values_that_say_nothing_leave_the_base_rate(rng, values):
    rows = make_rows(rng, 2, "ovo", noise=0.1)
    rows = rows._replace(decisions=-rows.decisions if values == "the opposite" else 0 * rows.decisions + 0.3)
    found = fit(rows, 2)
    assert found.slopes == 0
    expected = np.average(smoothed(rows, 2, 1.0)[:, 1], weights=rows.weights)
    np.testing.assert_allclose(found.probabilities(rows.decisions, 2, "ovo")[:, 1], expected, rtol=1e-6)


def test_a_class_without_rows_is_named():
    rows = UnseenRows(np.ones((4, 3)), np.array([0, 0, 2, 2]), np.ones(4))
    with pytest.raises(NotTested, match=r"class 'b' is in a test fold.*StratifiedKFold"):
        fit_calibration(rows, np.array(["a", "b", "c"]), "ovo")
