"""What is true of SparseSVC, for every solver."""

import warnings
from functools import cache

import numpy as np
import pytest
from objectives import objective
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from kmargin import MM, SD, SparseSVC
from kmargin.datasets import make_sparse_hyperplane

SOLVERS = ["exchange", "mm", "sd"]
pytestmark = pytest.mark.parametrize("solver", SOLVERS)


def noisy(n_samples=200, n_features=15, seed=0):
    """A hyperplane with a tenth of the labels flipped: not separable."""
    X, y = make_sparse_hyperplane(n_samples, n_features, 4, random_state=seed)
    return X, np.where(np.random.default_rng(seed).random(n_samples) < 0.1, -y, y)


@cache
def fitted(solver):
    return SparseSVC(k=4, solver=solver).fit(*noisy())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("C", "shape"), [(0.01, (200, 15)), (10.0, (200, 15)), (0.5, (40, 60))])
def test_with_all_features_it_minimises_what_LinearSVC_minimises(solver, C, shape, weighted):
    X, y = noisy(*shape)
    weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float) if weighted else None
    model = SparseSVC(k="all", C=C, solver=solver).fit(X, y, sample_weight=weights)
    peer = LinearSVC(C=C, dual=False, tol=1e-10, intercept_scaling=1e4, max_iter=10**6)
    peer.fit(X, y, sample_weight=weights)
    lam = 1 / (2 * C * (len(y) if weights is None else weights.sum()))
    ours, theirs = (objective(X, y, m.coef_, m.intercept_, lam, weights) for m in (model, peer))
    np.testing.assert_allclose(model.objective_[0], ours, rtol=1e-10)
    assert abs(ours - theirs) < 1e-6


def test_with_no_features_the_intercept_decides(solver):
    X, y = noisy()
    y[:50] = 1
    model = SparseSVC(k=0, solver=solver).fit(X, y)
    assert set(model.predict(X)) == {1 if y.mean() > 0 else -1}
    np.testing.assert_allclose(model.intercept_[0], y.mean())
    np.testing.assert_allclose(model.objective_[0], np.mean((1 - y * y.mean()) ** 2) / 2)


def test_swapping_the_classes_flips_the_sign(solver):
    X, y = noisy()
    model = fitted(solver)
    swapped = SparseSVC(k=4, solver=solver).fit(X, -y)
    np.testing.assert_array_equal(swapped.coef_, -model.coef_)
    np.testing.assert_array_equal(swapped.intercept_, -model.intercept_)


def test_permuted_features_permute_the_coefficients_and_permuted_rows_change_nothing(solver):
    X, y = noisy()
    rng = np.random.default_rng(1)
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(y))
    model = fitted(solver)
    by_column = SparseSVC(k=4, solver=solver).fit(X[:, columns], y)
    by_row = SparseSVC(k=4, solver=solver).fit(X[rows], y[rows])
    np.testing.assert_array_equal(np.sort(columns[by_column.support_]), model.support_)
    np.testing.assert_allclose(by_column.coef_[0], model.coef_[0, columns], rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(by_row.support_, model.support_)
    for permuted in (by_column, by_row):
        np.testing.assert_allclose(permuted.objective_, model.objective_, rtol=1e-5)


def test_same_seed_same_bits(solver):
    X, y = noisy()
    if solver == "exchange":  # takes no random numbers
        again = SparseSVC(k=4, random_state=8).fit(X, y)
        np.testing.assert_array_equal(fitted(solver).coef_, again.coef_)
        return
    configured = {"mm": MM, "sd": SD}[solver](start="normal")
    first, again = (SparseSVC(k=4, solver=configured, random_state=7).fit(X, y) for _ in range(2))
    other = SparseSVC(k=4, solver=configured, random_state=8).fit(X, y)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert first.solutions_[0].trace == again.solutions_[0].trace
    assert first.solutions_[0].trace != other.solutions_[0].trace


def test_float32_in_float32_out(solver):
    X, y = noisy()
    model = SparseSVC(k=4, solver=solver).fit(X.astype(np.float32), y)
    decisions = model.decision_function(X.astype(np.float32))
    assert model.coef_.dtype == model.intercept_.dtype == decisions.dtype == np.float32
    np.testing.assert_array_equal(model.support_, fitted(solver).support_)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_each_binary_classifier_is_the_two_class_fit_to_its_rows_and_weights(solver, multi_class):
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(3).uniform(0.2, 3.0, len(y))
    model = SparseSVC(k=2, multi_class=multi_class, solver=solver, shared=False).fit(X, y, weights)
    for machine in range(3):
        negative, positive = [(0, 1), (0, 2), (1, 2)][machine] if multi_class == "ovo" else (None, machine)
        rows = np.isin(y, (negative, positive)) if multi_class == "ovo" else np.full(len(y), True)
        alone = SparseSVC(k=2, solver=solver).fit(X[rows], y[rows] == positive, weights[rows])
        np.testing.assert_array_equal(model.coef_[machine], alone.coef_[0])
    decision = model.decision_function(X)
    assert decision.shape == (150, 3)
    np.testing.assert_array_equal(decision.argmax(axis=1), model.predict(X))
    assert model.score(X, y) > 0.9


HARD = {
    "a constant column": lambda X: np.column_stack([X, np.full(len(X), 3.7)]),
    "a column of zeros": lambda X: np.column_stack([X, np.zeros(len(X))]),
    "duplicated columns": lambda X: np.hstack([X, X]),
    "scale 1e12": lambda X: X * 1e12,
    "scale 1e-12": lambda X: X * 1e-12,
    "offset 1e6": lambda X: X + 1e6,
}


@pytest.mark.parametrize(("k", "C"), [(4, 1.0), (4, np.inf), ("all", np.inf)])
@pytest.mark.parametrize("case", HARD)
def test_hard_data_give_a_finite_sensible_model(solver, case, k, C):
    X, y = noisy()
    X = HARD[case](X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "15 features repeat an earlier one")
        model = SparseSVC(k=k, C=C, solver=solver).fit(X, y)
    assert np.isfinite([*model.coef_.ravel(), *model.intercept_, *model.objective_]).all()
    assert not model.coef_[:, np.ptp(X, axis=0) == 0].any()
    assert model.objective_[0] <= 0.5 + 1e-6  # no worse than knowing nothing
    drowned = case == "scale 1e-12" and C == 1.0  # LinearSVC's ridge leaves nothing of such features
    if not drowned and case != "offset 1e6":
        # two copies of a feature may both be kept, at the expense of another
        assert model.score(X, y) > (0.65 if case == "duplicated columns" else 0.8)


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_without_a_ridge_the_unit_of_measurement_does_not_matter(solver, scale):
    X, y = noisy()
    model = SparseSVC(k=4, C=np.inf, solver=solver).fit(X, y)
    scaled = SparseSVC(k=4, C=np.inf, solver=solver).fit(scale * X, y)
    np.testing.assert_array_equal(scaled.support_, model.support_)
    np.testing.assert_allclose(scaled.objective_, model.objective_, rtol=0.05)
