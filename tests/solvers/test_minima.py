"""A model is at the minimum on its support, and the same problem told in another way has the same one."""

import numpy as np
import pytest
import scipy.sparse as sp
from judged import assert_minimal, assert_sound, quietly
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel

from kmargin import Exchange, KernelSparseSVC, SparseSVC, SparseSVCCV


def make_table(kind, seed):
    """Columns of a kind, labels that a few of them know something of, k and C."""
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


# seeds at which a search that trusts its Gram matrices ends beside the minimum, and some others
@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        ("plain", range(20)),
        ("binary", [510, 1830, *range(20)]),
        ("low rank", range(20)),
        ("offset", range(30)),
        ("float32", [96, 1695, 2121, *range(20)]),
    ],
)
def test_a_model_is_at_the_minimum_on_its_support(kind, seeds):
    for seed in seeds:
        X, y, k, C = make_table(kind, seed)
        model = quietly(SparseSVC(k, C=C).fit, X, y)
        assert_sound(model, X, y)
        assert_minimal(model, X, y, tiny=1e-10 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("seed", [63, 65, 113, 193, 211, 215, 255, 267, 271, 283, 284, 447])
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
    for seed in (77, 95, 164, 173, 275, *range(6)):
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


# Each kind of data is the same problem


@pytest.mark.parametrize("seed", [7, 23, 42, 48, 49, *range(8, 20)])
def test_a_cross_validation_of_a_sparse_matrix_is_that_of_the_array(seed):
    """Few different numbers: many features tie, and rounding must not decide between them."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 30)), int(rng.integers(2, 8))
    X = np.where(rng.random((n, p)) < 0.5, rng.integers(0, 4, (n, p)), 0).astype(float)
    cv = SparseSVCCV(Cs=[0.1, 10.0, 1e3], cv=2, standardize=True, solver=Exchange(effort="fast"))
    dense, sparse = (quietly(clone(cv).fit, A, np.arange(n) % 2) for A in (X, sp.csr_matrix(X)))
    assert (sparse.k_, sparse.C_) == (dense.k_, dense.C_)
    np.testing.assert_array_equal(sparse.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_tiles_and_a_matrix_of_large_kernel_values_give_the_same_machine(seed):
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


# Weights are repetitions


def repeated(seed, kind):
    """Rows with weights that are counts, and the rows repeated so often."""
    X, y, k, C = make_table(kind, seed)
    counts = np.random.default_rng(seed).integers(1, 4, len(y))
    return (X, y, counts.astype(float)), (np.repeat(X, counts, axis=0), np.repeat(y, counts), None), k, C


@pytest.mark.parametrize("kind", ["plain", "float32", "offset", "binary", "low rank"])
def test_a_weight_of_two_is_a_repetition(kind):
    for seed in range(1, 40, 3):  # with a ridge
        weighted, rows, k, C = repeated(seed, kind)
        C = min(C, 310.0)
        one, other = (quietly(SparseSVC(k, C=C).fit, *data) for data in (weighted, rows))
        rel = 1e-6 if kind in ("float32", "offset") else 1e-8  # what rounding leaves of these
        assert one.objective_ == pytest.approx(other.objective_, rel=rel)
        if kind == "plain":  # elsewhere different coefficients, even of different features, are as good
            scale = np.abs(other.coef_).max()
            np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-6 * scale)
