"""Sparse X: the same machines as for the array, and never an array."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

import kmargin
from kmargin import MM, SD, Exchange, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV


def make_text(n_samples=150, n_features=40, n_classes=2, density=0.2, seed=0):
    """Counts-like data whose labels depend on a few columns."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < density)
    scores = X[:, :n_classes] + 0.3 * rng.standard_normal((n_samples, n_classes))
    return X, scores.argmax(axis=1)


def fit_both(estimator, X, y, **given):
    return clone(estimator).fit(X, y, **given), clone(estimator).fit(sp.csr_array(X), y, **given)


def assert_same(dense, sparse):
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-8)


ESTIMATORS = {
    "default": SparseSVC(k=5), "one versus rest": SparseSVC(k=5, multi_class="ovr"),
    "no intercept": SparseSVC(k=5, fit_intercept=False),
    "class weights": SparseSVC(k=5, class_weight="balanced"), "all": SparseSVC(k="all"),
    "none": SparseSVC(k=0), "no ridge": SparseSVC(k=3, C=np.inf), "sd": SparseSVC(k=5, solver="sd"),
    "polished": SparseSVC(k=5, solver=SD(polish=True)),
    "all swaps": SparseSVC(k=3, solver=Exchange(effort="thorough")),
    "cv": SparseSVCCV(ks=[10, 3, 1], Cs=(0.1, 1.0), cv=3),
    "standardized": SparseSVCCV(ks=[10, 3, 1], cv=3, standardize=True),
    "scaled only": SparseSVCCV(ks=[10, 3, 1], cv=3, standardize=True, fit_intercept=False),
    "sd, standardized": SparseSVCCV(ks=[10, 3], cv=3, standardize=True, solver="sd"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_dense_and_sparse_give_the_same_machine(name):
    estimator = ESTIMATORS[name]
    X, y = make_text(n_classes=2 if name in ("cv", "polished", "no ridge", "none", "sd, standardized") else 3)
    dense, sparse = fit_both(estimator, X, y)
    assert_same(dense, sparse)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csc_array(X)))
    if name in ("default", "sd", "all"):
        X = X.astype(np.float32)
        dense, sparse = fit_both(estimator, X, y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5, atol=1e-6)
        assert {sparse.coef_.dtype, sparse.decision_function(sp.csr_array(X)).dtype} == {np.dtype(np.float32)}


@pytest.mark.parametrize("shape", [(150, 40), (60, 400)])
def test_paths_are_the_same(shape):
    X, y = make_text(*shape)
    dense, sparse = (kmargin.sparse_svm_path(A, y, [shape[1], 30, 10, 3, 1]) for A in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(sparse.coefs, dense.coefs, atol=1e-8)
    np.testing.assert_array_equal(dense.predict(X, 3), sparse.predict(sp.coo_array(X), 3))


KERNELS = [KernelSparseSVC(k=6, kernel=kernel) for kernel in ("rbf", "poly", "linear")]


@pytest.mark.parametrize("model", [*KERNELS, KernelSparseSVCCV([6, 2], cv=2, standardize=True)])
def test_kernel_machines_take_sparse_points(model):
    X, y = make_text()
    X = np.vstack([X, X[:5]])  # a repeated point is one candidate
    y = np.append(y, y[:5])
    dense, sparse = fit_both(model, X, y)
    np.testing.assert_allclose(sparse.dual_coef_, dense.dual_coef_, atol=1e-8)
    np.testing.assert_array_equal(sparse.support_, dense.support_)
    assert sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(value):
    with pytest.raises(ValueError, match="Input X contains"):
        SparseSVC().fit(sp.csr_array(np.where(np.eye(8), value, 0.0)), [0, 1] * 4)


def test_a_sparse_kernel_matrix_is_refused():
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        KernelSparseSVC(kernel="precomputed").fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])


@pytest.mark.parametrize("solver", ["mm", MM(trace="steps")])
def test_mm_says_why_it_takes_no_sparse_X_and_what_does(solver):
    X, y = make_text()
    with pytest.raises(ValueError, match=r'"mm" works with the singular vectors .* use solver="exchange"'):
        SparseSVC(solver=solver).fit(sp.csr_array(X), y)


SHAPES = st.tuples(st.integers(4, 12), st.integers(1, 8))


# values from a small set, so that sums tie: the choice among equals must not depend on the storage
@settings(max_examples=30)
@given(
    hnp.arrays(float, SHAPES, elements=st.sampled_from([0, 0, 1, 2, -1])), st.integers(0, 4), st.booleans()
)
def test_ties_are_broken_the_same_way(X, k, fit_intercept):
    y = np.arange(len(X)) % 2
    fast = Exchange(effort="fast")
    chosen = SparseSVCCV(Cs=[0.1, 10.0], cv=2, standardize=True, fit_intercept=fit_intercept, solver=fast)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert_same(*fit_both(SparseSVC(k=k, fit_intercept=fit_intercept), X, y))
        dense, sparse = fit_both(chosen, X, y)
    assert (sparse.k_, sparse.C_) == (dense.k_, dense.C_)


def large_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def with_zeros(X):
    X = sp.csr_array(X)
    X.data[::7] = 0.0
    return X


def unsorted(X):
    X = sp.csr_array(X[:, ::-1])
    return sp.csr_array((X.data, X.shape[1] - 1 - X.indices, X.indptr), shape=X.shape)


def duplicated(X):
    X = sp.csr_array(X)
    data, indices = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2)
    return sp.csr_array((data, indices, X.indptr * 2), shape=X.shape)


def empty_lines(X):
    X = X.copy()
    X[3], X[:, 5] = 0, 0
    return sp.csr_array(X)


FORMS = [np.int64, np.bool_, large_indices, with_zeros, unsorted, duplicated, empty_lines]
FORMATS = [sp.csc_matrix, sp.csc_array, sp.coo_array, sp.coo_matrix, sp.lil_array, sp.dok_array, sp.bsr_array]


@pytest.mark.parametrize("make", FORMS + FORMATS)
def test_every_form_is_understood_and_left_alone(make):
    X, y = make_text()
    X = make(X)
    X = sp.csr_array(X) if not sp.issparse(X) else X
    before, untouched = X.toarray(), X.copy()
    dense, sparse = SparseSVC(k=5).fit(before.astype(float), y), SparseSVC(k=5).fit(X, y)
    assert_same(dense, sparse)
    np.testing.assert_array_equal(sparse.predict(X), dense.predict(before.astype(float)))
    np.testing.assert_array_equal(X.toarray(), before)
    if X.format == "csr":
        np.testing.assert_array_equal(X.data, untouched.data)
        np.testing.assert_array_equal(X.indices, untouched.indices)


def never(*_args, **_kwargs):
    raise AssertionError("a sparse matrix was made dense")


@pytest.fixture
def no_dense(monkeypatch):
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix):
        monkeypatch.setattr(kind, "toarray", never)
        monkeypatch.setattr(kind, "todense", never)


@pytest.mark.usefixtures("no_dense")
@pytest.mark.filterwarnings("ignore:.*repeat an earlier one:UserWarning")
@pytest.mark.filterwarnings("ignore:k=3000 is greater:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        SparseSVC(k=10),
        SparseSVC(k=3000),
        SparseSVC(k="all"),
        SparseSVC(k=10, solver=SD(max_outer=3, max_inner=20)),
        SparseSVCCV(ks=[10], cv=2, standardize=True),
    ],
    ids=["small k", "large k", "all", "sd", "standardized"],
)
def test_what_would_not_fit_as_an_array_is_never_one(estimator):
    rng = np.random.default_rng(0)
    n, p = 20_000, 30_000  # 4.8 GB as an array
    n_stored = 120_000  # placed by themselves: scipy's own function would shuffle all 600 million places
    places = rng.integers(0, n, n_stored), rng.integers(0, p, n_stored)
    X = sp.csr_array((rng.random(n_stored), places), shape=(n, p))
    marks = sp.csr_array((np.ones(n), (np.arange(n), rng.integers(0, 8, n))), shape=(n, p))
    X = sp.csr_array(X + marks)
    y = X[:, [0, 1, 2, 3]].sum(axis=1) > 0.5
    clone(estimator).fit(X[:200, :300], y[:200] | (np.arange(200) == 0))  # compiles
    tracemalloc.start()
    model = clone(estimator).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6
    assert model.score(X, y) > 0.95 or isinstance(model.solver, SD)  # which was stopped early
