"""`standardize=True` is StandardScaler before the machine, with coefficients for the features as given."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from kmargin import KernelSparseSVC, SparseSVC, sparse_svm_path

RNG = np.random.default_rng(1)
N, P = 60, 5
X = RNG.poisson(1.0, (N, P)) * 10.0 ** np.arange(-2, 3) + np.array([0, 3.0, 0, 0, 50])
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = np.digitize(Z[:, 0] + Z[:, 4] + 0.5 * RNG.standard_normal(N), [-0.6, 0.6])
WEIGHTS = RNG.integers(0, 3, N).astype(float)


def by_hand(model, y, weights=None):
    """Coefficients of scaled features, brought back to the units of X."""
    scaler = StandardScaler().fit(X, sample_weight=weights)
    twin = clone(model).set_params(standardize=False).fit(scaler.transform(X), y, sample_weight=weights)
    coef = twin.coef_ / scaler.scale_
    return coef, twin.intercept_ - coef @ scaler.mean_


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "F", "csr"])
@pytest.mark.parametrize("y", [Y > 0, Y], ids=["two", "three"])
def test_coefficients_are_those_of_scaled_features_brought_back(kind, weights, y):
    model = SparseSVC(k=2, standardize=True).fit(kind(X), y, sample_weight=weights)
    coef, intercept = by_hand(model, y, weights)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6)


def test_a_path_is_scaled_the_same_way():
    path = sparse_svm_path(X, Y > 0, [3, 2], standardize=True)
    scaled = sparse_svm_path(Z, Y > 0, [3, 2])
    np.testing.assert_allclose(path.coefs * X.std(axis=0), scaled.coefs, rtol=1e-6)
    np.testing.assert_array_equal(path.predict(X, 2), scaled.predict(Z, 2))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["array", "csr"])
def test_a_kernel_sees_scaled_features_sparse_or_not(kernel, kind, weights):
    model = KernelSparseSVC(k=4, kernel=kernel, coef0=0.5, standardize=True)
    model.fit(kind(X), Y, sample_weight=weights)
    scaler = StandardScaler().fit(X, sample_weight=weights)
    twin = clone(model).set_params(standardize=False).fit(scaler.transform(X), Y, sample_weight=weights)
    # gamma is 1/n_features; "scale" does not look at weights of scaled features in the same order
    assert model.kernel_.numbers["gamma"] == pytest.approx(1 / P)
    np.testing.assert_array_equal(model.support_, twin.support_)
    np.testing.assert_allclose(model.dual_coef_, twin.dual_coef_, rtol=1e-5, atol=1e-9)
    expected = twin.decision_function(scaler.transform(X[:9]))
    np.testing.assert_allclose(model.decision_function(kind(X[:9])), expected, rtol=1e-5, atol=1e-8)
    points = model.support_vectors_
    np.testing.assert_array_equal(points.toarray() if sp.issparse(points) else points, X[model.support_])


def test_a_constant_feature_has_no_part_in_gamma_and_scale_1():
    wide = np.column_stack([X, np.full(N, 7.0)])
    model = KernelSparseSVC(k=3, standardize=True).fit(wide, Y > 0)
    assert model.kernel_.numbers["gamma"] == pytest.approx(1 / P)
    scales = SparseSVC(k=3, standardize=True).fit(wide, Y > 0).scale_
    np.testing.assert_allclose(scales, StandardScaler().fit(wide).scale_, rtol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "data", "words"),
    [
        ("precomputed", np.eye(N), "standardize=True scales features, but with kernel='precomputed'"),
        (lambda A, B: A @ B.T, sp.csr_array(X), "would make a sparse X dense for a kernel function"),
    ],
)
def test_what_cannot_be_scaled_is_refused(kernel, data, words):
    with pytest.raises(ValueError, match=words):
        KernelSparseSVC(kernel=kernel, standardize=True).fit(data, Y)
