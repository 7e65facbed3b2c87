"""Every method of a design gives the result of NumPy, however X is stored and whatever its size is."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kmargin.data.design import UncopiedRows, dense, distinct_rows, kernel, make_design, n_bytes
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.kernel import KernelDesign
from kmargin.data.design.sparse import SMALL, SparseDesign
from kmargin.data.samples.array import read_samples
from kmargin.fitting.decisions import Kernel


def distinct_columns(design):
    return np.setdiff1d(np.arange(design.n_features), design.repeated_columns)


def of_kernel(X, fit_intercept, megabytes=0.01):
    """A linear kernel whose points are the unit vectors, with signs -1 and 1."""
    signs = np.resize([1.0, -1.0, -1.0], X.shape[1])
    points, kernel = np.diag(signs).astype(X.dtype), Kernel("linear", 1.0, 1, 0.0).quickly
    return KernelDesign(kernel, X, points, signs, fit_intercept, cache_size=megabytes)


STORED = {
    "by rows": DenseDesign,
    "by columns": lambda X, b: DenseDesign(np.asfortranarray(X), b),
    "csr": lambda X, b: SparseDesign(sp.csr_array(X), b),
    "kernel, nothing kept": lambda X, b: of_kernel(X, b, 1e-6),
    "kernel, some kept": lambda X, b: of_kernel(X, b, 5e-5 * len(X)),
    "kernel, all kept": lambda X, b: of_kernel(X, b, 10.0),
}


@pytest.fixture(params=STORED)
def store(request, monkeypatch):
    """One way to store X; kernels in tiles of a few rows and columns."""
    monkeypatch.setattr(kernel, "HEIGHT", 64)
    monkeypatch.setattr(kernel, "WIDTH", 4)
    return STORED[request.param]


def assert_answers(design, X, rng, rtol):
    """Compare every method with its definition; X has the same entries, as float64."""
    n, p = X.shape
    has_intercept, n_parameters = design.fit_intercept, design.n_parameters
    assert (design.n_samples, design.n_features, n_parameters) == (n, p, p + has_intercept)
    v, c = np.where(rng.random(n) < 0.7, rng.standard_normal(n), 0.0), rng.uniform(0.2, 2.0, n)
    beta = rng.standard_normal(n_parameters)
    columns, rows = rng.permutation(p)[: max(1, p // 2)], rng.permutation(n)[: max(1, n // 3)]
    d = rng.standard_normal(len(columns))
    panel = np.zeros((len(columns) + 2, n))
    design.fill_panel(columns, c, np.arange(len(columns))[::-1] + 1, panel)
    mean, weighted = np.average(X, axis=0, weights=c**2), np.average(X, axis=0, weights=c)
    gap = X - weighted
    for name, found, expected in [
        ("times", design.times(beta[:p]), X @ beta[:p]),
        ("decision", design.decision(beta), X @ beta[:p] + (beta[-1] if has_intercept else 0.0)),
        ("slopes", design.slopes(v), v @ X),
        ("slopes of no row", design.slopes(0 * v), np.zeros(p)),
        ("adjoint", design.adjoint(v), np.append(v @ X, v.sum())[:n_parameters]),
        ("product", design.product(columns, d), X[:, columns] @ d),
        ("product of one", design.product(columns[:1], d[:1]), X[:, columns[0]] * d[0]),
        ("product of none", design.product(columns[:0], d[:0]), np.zeros(n)),
        ("fill_panel", panel[1:-1][::-1], (X[:, columns] * c[:, None]).T),
        ("block", design.block(rows, columns), X[np.ix_(rows, columns)]),
        ("spread", design.spread(c), c**2 @ (X - (mean if has_intercept else 0.0)) ** 2),
        ("spread of no row", design.spread(0 * c), np.zeros(p)),
        ("mean", design.moments(c, v).mean, weighted),
        ("variance", design.moments(c, v).variance, np.average(gap**2, axis=0, weights=c)),
        ("covariance", design.moments(c, v).covariance, c * (v - np.average(v, weights=c)) @ gap / c.sum()),
        ("take", design.take(columns).slopes(v), v @ X[:, columns]),
        ("take_rows", design.take_rows(rows).slopes(v[rows]), v[rows] @ X[rows]),
        ("largest", design.largest(), np.abs(X).max(axis=0)),
        ("distinct_columns", distinct_columns(design), np.sort(np.unique(X, axis=1, return_index=True)[1])),
    ]:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(13, 5), (8, 4), (600, 7), (9, 2), (6, 1)])
def test_every_method_gives_the_result_of_numpy(store, shape, dtype, monkeypatch):
    monkeypatch.setattr(dense, "CHUNK", 1000)  # several chunks of the longest X
    rng = np.random.default_rng(0)
    X = (rng.standard_normal(shape) * (rng.random(shape) < 0.8)).astype(dtype)
    fit_intercept = shape != (8, 4)
    assert_answers(store(X, fit_intercept), X.astype(float), rng, 1e-10 if dtype == np.float64 else 2e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standardised_columns_are_those_of_numpy(store, fit_intercept, rng):
    X = rng.standard_normal((70, 9)) * (rng.random((70, 9)) < 0.5)
    X[:, 4] = X[:, 1]
    mean, spread = rng.standard_normal(9), rng.uniform(0.5, 2.0, 9)
    mean[4], spread[4] = mean[1], spread[1]
    design = store(X, fit_intercept).standardized(mean, spread)
    assert_answers(design, (X - mean) / spread, rng, 1e-10)
    again = design.standardized(mean, spread)
    np.testing.assert_allclose(again.slopes(np.ones(70)), (((X - mean) / spread - mean) / spread).sum(axis=0))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_far_from_zero_have_the_spread_of_their_distances(store, fit_intercept, rng):
    X, c = 1e8 + rng.standard_normal((30, 4)) * (rng.random((30, 4)) < 0.9), rng.uniform(0.1, 1, 30)
    X[:3, 2] = 0.0  # not all of them are stored
    mean, units = X.mean(axis=0), np.array([1.0, 2.0, 1e8, 1.0])
    design, exact = store(X, fit_intercept).standardized(mean, units), (X - mean) / units
    exact = exact - np.average(exact, axis=0, weights=c**2) if fit_intercept else exact
    np.testing.assert_allclose(design.spread(c), c**2 @ exact**2, rtol=1e-6)


def test_a_constant_column_does_not_vary_however_rows_are_weighted(store):
    """Sums of weights in two orders differ by rounding, which is no variance."""
    weights = 10.0 ** np.random.default_rng(1).uniform(-15, 15, 41)
    X = np.tile([1.0, 0.1, -3e5, 67381368.0, 1e16], (41, 1))
    mean, variance, _ = store(X, True).moments(weights, weights)
    np.testing.assert_allclose(mean, X[0], rtol=1e-14)
    assert (np.sqrt(variance) <= 1e-13 * np.abs(X[0])).all()


@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
def test_a_usable_array_is_not_copied_and_float32_stays_float32(how):
    for dtype in (np.float64, np.float32):
        X = np.ones((4, 3), dtype=dtype)
        X = {"csr": sp.csr_array, "by columns": np.asfortranarray, "by rows": np.asarray}[how](X)
        design = SparseDesign(X) if how == "csr" else DenseDesign(X)
        assert np.shares_memory(design.X.data, X.data)
        assert design.X.dtype == dtype


def test_the_svd_is_that_of_the_weights_asked_for(rng):
    X, weights = rng.standard_normal((8, 3)), rng.uniform(0.5, 2.0, 8)
    design = DenseDesign(X)
    for w in (np.ones(8), weights):
        U, s, V = design.thin_svd(w)
        rows = np.column_stack([X, np.ones(8)]) * np.sqrt(w)[:, None]
        np.testing.assert_allclose((U * s) @ V.T, rows, atol=1e-12)
    assert design.thin_svd(weights) is design.thin_svd(weights)
    doubled = DenseDesign(np.column_stack([X, X]))
    assert len(doubled.thin_svd(weights).s) == 4  # three columns and the intercept


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 6))
def test_of_equal_columns_the_first_is_kept(labels, n_samples):
    values = np.random.default_rng(0).standard_normal((n_samples, 6)) + 1
    X = values[:, labels]
    expected = [j for j, label in enumerate(labels) if label not in labels[:j]]
    np.testing.assert_array_equal(distinct_columns(make_design(X)), expected)
    np.testing.assert_array_equal(distinct_columns(make_design(sp.csr_array(X))), expected)


@pytest.mark.parametrize("how", ["by rows", "by columns", "csr"])
def test_columns_are_equal_if_all_their_entries_are(how, rng):
    """Though products with a vector may be close for different columns, and differ for equal ones."""
    X = np.array([[1.0, 1.0, 1.0, 0.0, -0.0], [2.0, 2.0, 2.0 + 1e-13, 0.0, 0.0], [3.0, 3.0, 3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(distinct_columns(STORED[how](X, True)), [0, 2, 3])
    X = np.repeat(rng.standard_normal((257, 1)), 101, axis=1)
    X[:, 50] = rng.standard_normal(257)
    np.testing.assert_array_equal(distinct_columns(STORED[how](X, True)), [0, 50])


def test_a_zero_that_is_stored_is_still_a_zero():
    X = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 3.0, 0.0]])
    is_stored = X != 0
    is_stored[1, 1] = True  # a zero of the second column
    places = np.nonzero(is_stored)
    design = SparseDesign(sp.csr_array((X[places], places), shape=(3, 3)))
    assert len(design.stored.data) == 6
    np.testing.assert_array_equal(distinct_columns(design), [0, 2])


def test_entries_given_twice_are_added_up_in_a_copy():
    given = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    design = SparseDesign(given)
    np.testing.assert_array_equal(design.decision(np.array([1.0, 10.0, 0.0])), [3.0, 40.0])
    assert len(design.stored.data) == 2
    np.testing.assert_array_equal(given.data, [1.0, 2.0, 4.0])


def test_arrays_fit_that_are_small_or_no_larger_than_a_sparse_X():
    design = SparseDesign(sp.csr_array(np.eye(3)))
    assert design.fits(SMALL)
    assert not design.fits(SMALL + 1)


def test_as_many_kernel_columns_are_kept_as_the_budget_has_room_for(rng):
    X = rng.standard_normal((128, 2))
    computed = []

    def product(A, B):
        computed.append(A.shape[0] * B.shape[0])
        return A @ B.T

    design = KernelDesign(product, X, X[:64], np.ones(64), cache_size=10 * 128 * 8 / 2**20)
    assert design.room == 10
    for _ in range(2):
        list(design.tiles())
    assert design.kept.shape == (128, 10)
    # the ten that are kept are computed once, the others each time
    assert sum(computed) == 128 * (10 + 54 + 54)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_are_copied_when_they_are_needed_and_counted_in_bytes(form):
    X = form(np.array([[0, 1.0], [2, 0], [0, 1], [2, 3], [2, 3]]))
    rows = UncopiedRows(X)[np.array([3, 1, 2])][np.array([2, 0])]
    assert (rows.shape, rows.dtype, rows.nbytes) == ((2, 2), X.dtype, n_bytes(X))
    np.testing.assert_array_equal(rows.copied() @ np.eye(2), [[0, 1], [2, 3]])
    parts = (X,) if form is np.asarray else (X.data, X.indices, X.indptr)
    assert n_bytes(X) == sum(part.nbytes for part in parts)
    assert read_samples(X, np.arange(5) % 2, None, None).designs(True).__sizeof__() == n_bytes(X)
    assert distinct_rows(X).tolist() == [0, 1, 3]
