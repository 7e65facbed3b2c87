"""A model is at the minimum on its support, and equivalent inputs give equivalent models."""

import numpy as np
import pytest
import scipy.sparse as sp
from judged import assert_minimal, assert_sound, quietly
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel

from kmargin import Exchange, KernelSparseSVC, SparseSVC, SparseSVCCV


def make_table(kind, seed):
    """Columns of a kind, labels that depend on the first for odd seeds, k and C."""
    rng = np.random.default_rng([seed, len(kind)])
    n, p = int(rng.integers(4, 60)), int(rng.integers(1, 20))
    X = rng.standard_normal((n, p))
    if kind == "binary":
        X = (X > 0.3).astype(float)
    elif kind == "low rank":
        X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
    noise = rng.standard_normal(n)
    y = (noise + (X[:, 0] - X[:, 0].mean() if seed % 2 else 0.0) > 0.25).astype(int)
    y[:2] = 0, 1
    if kind == "offset":
        X = X + 10.0 ** rng.uniform(3, 9, p)
    return (
        X.astype(np.float32) if kind == "float32" else X,
        y,
        int(rng.integers(max(1, p - 2), p + 1)),
        np.inf if seed % 3 == 0 else float(10 ** rng.uniform(-3, 6)),
    )


# among the seeds are those at which the updated Gram matrices are too inexact without a final refit
@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        ("plain", range(8)),
        ("binary", [510, 1830, *range(8)]),
        ("low rank", range(8)),
        ("offset", range(15)),
        ("float32", [96, 1695, 2121, *range(6)]),
    ],
)
def test_a_model_is_at_the_minimum_on_its_support(kind, seeds):
    for seed in seeds:
        X, y, k, C = make_table(kind, seed)
        model = quietly(SparseSVC(k, C=C).fit, X, y)
        assert_sound(model, X, y)
        assert_minimal(model, X, y, tiny=1e-10 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("seed", [63, 65, 113, 193, 255, 284])
def test_columns_of_zeros_and_ones_without_a_ridge_are_fitted_to_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n, p = [(50, 1), (10, 8), (30, 3), (20, 12)][seed % 4]
    X, y = (rng.random((n, p)) < rng.uniform(0.02, 0.6)).astype(float), np.arange(n) % 2
    for k in (p, "all"):
        model = quietly(SparseSVC(k, C=np.inf).fit, X, y)
        assert_sound(model, X, y)
        assert_minimal(model, X, y)


@pytest.mark.parametrize("solver", ["exchange", "mm", "sd"])
def test_weights_over_many_orders_of_magnitude_leave_a_model_at_its_minimum(solver):
    for seed in (77, 95, 164, 173, 275):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(5, 40)), int(rng.integers(1, 8))
        X = rng.standard_normal((n, p))
        y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
        y[:2] = 0, 1
        weights = 10.0 ** rng.uniform(0, [10, 20, 29][seed % 3], n)
        model = SparseSVC(int(rng.integers(1, p + 1)), C=[1.0, 1e-20, np.inf][seed % 3], solver=solver)
        quietly(model.fit, X, y, weights)
        assert_sound(model, X, y, weights)
        if solver == "exchange":
            assert_minimal(model, X, y, weights)


@pytest.mark.parametrize("seed", [7, 23, 42, 48, 49])
def test_cross_validation_of_a_sparse_matrix_equals_that_of_the_array(seed):
    """Few distinct values: many features tie, and rounding errors must not decide between them."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 30)), int(rng.integers(2, 8))
    X = np.where(rng.random((n, p)) < 0.5, rng.integers(0, 4, (n, p)), 0).astype(float)
    cv = SparseSVCCV(Cs=[0.1, 10.0, 1e3], cv=2, standardize=True, solver=Exchange(effort="fast"))
    dense, sparse = (quietly(clone(cv).fit, A, np.arange(n) % 2) for A in (X, sp.csr_matrix(X)))
    assert (sparse.k_, sparse.C_) == (dense.k_, dense.C_)
    np.testing.assert_array_equal(sparse.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_tiles_and_a_matrix_of_large_kernel_values_give_the_same_objective(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
    y[:2] = 0, 1
    gamma, C = float(10 ** rng.uniform(0, 3)), float(10 ** rng.uniform(-2, 4))
    degree, k = int(rng.integers(2, 5)), int(rng.integers(1, 8))
    numbers = {"degree": degree, "gamma": gamma, "coef0": 1.0}
    direct, tiles = (
        quietly(KernelSparseSVC(k, kernel="poly", C=C, **numbers, n_candidates="all", cache_size=c).fit, X, y)
        for c in (200, 1e-3)
    )
    given = quietly(KernelSparseSVC(k, kernel="precomputed", C=C).fit, polynomial_kernel(X, **numbers), y)
    assert tiles.objective_ == pytest.approx(direct.objective_, rel=1e-8, abs=1e-12)
    assert given.objective_ == pytest.approx(direct.objective_, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("kind", ["plain", "float32", "offset", "binary", "low rank"])
def test_integer_weights_equal_repeated_rows(kind):
    for seed in range(1, 20, 3):  # with a ridge
        X, y, k, C = make_table(kind, seed)
        counts = np.random.default_rng(seed).integers(1, 4, len(y))
        repeated = np.repeat(X, counts, axis=0), np.repeat(y, counts), None
        data = (X, y, counts.astype(float)), repeated
        one, other = (quietly(SparseSVC(k, C=min(C, 310.0)).fit, *each) for each in data)
        rel = 1e-6 if kind in ("float32", "offset") else 1e-8  # accuracy left by rounding errors
        assert one.objective_ == pytest.approx(other.objective_, rel=rel)
        if kind == "plain":  # other kinds may have several minima
            scale = np.abs(other.coef_).max()
            np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-6 * scale)
