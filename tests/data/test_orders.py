"""Every question to X has NumPy's answer, however X is stored and whatever its size is a multiple of."""

import numpy as np
import pytest
from scipy import sparse as sp

from kmargin.data.design import add_rows, times
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.kernel import KernelDesign, KernelTiles
from kmargin.data.design.sparse import SMALL, SparseDesign
from kmargin.fitting.decisions import Kernel


def stored(X, how):
    if how == "csr":
        return SparseDesign(sp.csr_array(X))
    return DenseDesign(np.asfortranarray(X) if how == "by columns" else np.ascontiguousarray(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
@pytest.mark.parametrize("shape", [(13, 5), (8, 4), (600, 7), (9, 2), (6, 1)])
def test_passes_over_X_are_products_and_sums(how, shape, dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal(shape) * (rng.random(shape) < 0.8)).astype(dtype)
    n, p = shape
    design, exact = stored(X, how), X.astype(np.float64)
    v = np.where(rng.random(n) < 0.7, rng.standard_normal(n), 0.0)
    c, beta = rng.uniform(0.2, 2.0, n), rng.standard_normal(p + 1)
    np.testing.assert_allclose(design.slopes(v), exact.T @ v, atol=1e-11)
    np.testing.assert_allclose(design.adjoint(v), np.append(exact.T @ v, v.sum()), atol=1e-11)
    np.testing.assert_allclose(design.decision(beta), exact @ beta[:-1] + beta[-1], atol=1e-11)
    mean = np.average(exact, axis=0, weights=c**2)
    np.testing.assert_allclose(design.spread(c), c**2 @ (exact - mean) ** 2, rtol=1e-8)
    some = np.arange(p)[::-1][: max(1, p // 2)]
    np.testing.assert_allclose(
        design.product(some, beta[: len(some)]), exact[:, some] @ beta[: len(some)], atol=1e-11
    )
    panel = np.zeros((p + 1, n))
    design.fill_panel(some, c, np.arange(len(some)) + 1, panel)
    np.testing.assert_allclose(panel[1 : 1 + len(some)], (exact[:, some] * c[:, None]).T)
    moments = design.moments(c, v)
    mean = np.average(exact, axis=0, weights=c)
    np.testing.assert_allclose(moments.mean, mean, atol=1e-6)
    np.testing.assert_allclose(
        moments.variance, np.average((exact - mean) ** 2, axis=0, weights=c), rtol=1e-5
    )
    covariance = np.average((exact - mean) * (v - np.average(v, weights=c))[:, None], axis=0, weights=c)
    np.testing.assert_allclose(moments.covariance, covariance, atol=1e-6)
    columns = [
        np.abs(column).max() * np.sqrt(np.mean((column / np.abs(column).max()) ** 2)) for column in exact.T
    ]
    np.testing.assert_allclose(design.unit(), np.median(columns), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
def test_what_compiled_loops_ask_is_answered_uncompiled_too(how, dtype, rng):
    X = rng.standard_normal((9, 6)).astype(dtype)
    design, v, few = stored(X, how), rng.standard_normal(6), np.append(rng.standard_normal(3), np.zeros(6))
    out = np.empty(9)
    times(design.stored, v, out)
    np.testing.assert_allclose(out, X.astype(float) @ v, atol=1e-12)
    for weights in (few, rng.standard_normal(9)):
        out = np.empty(6)
        add_rows(design.stored, weights, out)
        np.testing.assert_allclose(out, weights @ X.astype(float), atol=1e-12)


@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
def test_a_constant_column_does_not_vary_however_rows_are_weighted(how):
    """Sums of weights in two orders differ by their rounding: that is no variance."""
    weights = 10.0 ** np.random.default_rng(1).uniform(-40, 40, 41)
    X = np.column_stack([np.ones(41), np.full(41, 0.1), np.full(41, -3e5)])
    mean, variance, _ = stored(X, how).moments(weights, weights)
    np.testing.assert_allclose(mean, X[0], rtol=1e-14)
    assert (np.sqrt(variance) <= 1e-13 * np.abs(X[0])).all()


@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
def test_rows_of_next_to_no_weight_make_a_column_vary_by_as_little(how):
    """Weights 1 and, where the column is 0, 1e-20: its variance is 1e-20."""
    X = np.array([[2.0], [2.0], [2.0], [0.0], [2.0]])
    weights = np.array([0.1, 0.2, 0.3, 1e-20, 0.4])
    _, variance, _ = stored(X, how).moments(weights, weights)
    np.testing.assert_allclose(variance, 4e-20, rtol=1e-6)


def test_moments_are_taken_in_pieces(monkeypatch, rng):
    monkeypatch.setattr("kmargin.data.design.dense.CHUNK", 12)
    X, c, v = rng.standard_normal((11, 4)), rng.uniform(0.2, 2.0, 11), rng.standard_normal(11)
    mean, variance, covariance = DenseDesign(X).moments(c, v)
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=c))
    np.testing.assert_allclose(variance, np.average((X - mean) ** 2, axis=0, weights=c))
    expected = np.average((X - mean) * (v - np.average(v, weights=c))[:, None], axis=0, weights=c)
    np.testing.assert_allclose(covariance, expected)


def test_float32_stays_float32_and_is_used_where_it_lies():
    X = np.ones((4, 3), dtype=np.float32)
    assert DenseDesign(X).X is X
    assert SparseDesign(sp.csr_array(X)).stored.data.dtype == np.float32


def test_the_svd_is_that_of_the_weights_asked_for(rng):
    X, weights = rng.standard_normal((8, 3)), rng.uniform(0.5, 2.0, 8)
    design = DenseDesign(X)
    for w in (np.ones(8), weights):
        U, s, V = design.thin_svd(w)
        np.testing.assert_allclose(
            (U * s) @ V.T, np.column_stack([X, np.ones(8)]) * np.sqrt(w)[:, None], atol=1e-12
        )
    assert design.thin_svd(weights) is design.thin_svd(weights)
    doubled = DenseDesign(np.column_stack([X, X]))
    assert len(doubled.thin_svd(weights).s) == 4  # three columns and the intercept


def test_the_road_to_columns_that_differ_is_a_comparison_of_their_entries():
    X = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0 + 1e-13], [3.0, 3.0, 3.0]])
    np.testing.assert_array_equal(DenseDesign(X).distinct_columns(), [0, 2])
    np.testing.assert_array_equal(SparseDesign(sp.csr_array(X)).distinct_columns(), [0, 2])


@pytest.mark.parametrize("order", ["C", "F"])
def test_equal_columns_are_found_though_sums_over_them_round_differently(order, rng):
    X = np.array(np.repeat(rng.standard_normal((257, 1)), 101, axis=1), order=order)
    X[:, 50] = rng.standard_normal(257)
    np.testing.assert_array_equal(DenseDesign(X).distinct_columns(), [0, 50])


def test_a_zero_that_is_stored_is_still_a_zero():
    X = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 3.0, 0.0]])
    is_stored = X != 0
    is_stored[1, 1] = True  # a zero of the second column
    places = np.nonzero(is_stored)
    design = SparseDesign(sp.csr_array((X[places], places), shape=(3, 3)))
    assert len(design.stored.data) == 6
    np.testing.assert_array_equal(design.distinct_columns(), [0, 2])


def test_entries_given_twice_are_added_up_in_a_copy():
    given = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    design = SparseDesign(given)
    np.testing.assert_array_equal(design.decision(np.array([1.0, 10.0, 0.0])), [3.0, 40.0])
    assert len(design.stored.data) == 2
    np.testing.assert_array_equal(given.data, [1.0, 2.0, 4.0])


def test_what_is_in_proportion_to_a_sparse_X():
    design = SparseDesign(sp.csr_array(np.eye(3)))
    assert design.fits(SMALL)
    assert not design.fits(SMALL + 1)


def test_as_many_kernel_columns_are_kept_as_the_budget_has_room_for(rng):
    X = rng.standard_normal((128, 2))
    computed = []

    def kernel(A, B):
        computed.append(A.shape[0] * B.shape[0])
        return A @ B.T

    tiles = KernelTiles(kernel, X, X[:64], np.ones(64), None, budget=10 * 128 * 8 / 2**20)
    assert tiles.room == 10
    for _ in range(2):
        list(tiles.everywhere())
    assert tiles.kept.shape == (128, 10)
    # the ten that are kept are computed once, the others each time
    assert sum(computed) == 128 * (10 + 54 + 54)


def test_a_kernel_design_knows_a_typical_entry_tile_by_tile(monkeypatch, rng):
    monkeypatch.setattr("kmargin.data.design.kernel.HEIGHT", 5)
    X = rng.standard_normal((17, 2)) * np.linspace(5, 0.1, 17)[:, None]
    design = KernelDesign(Kernel("linear", 1.0, 1, 0.0), X, X[:4], np.ones(4))
    np.testing.assert_allclose(design.unit(), DenseDesign(X @ X[:4].T).unit())
