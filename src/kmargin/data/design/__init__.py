"""Design matrices in memory: dense, sparse, or the values of a kernel."""

from typing import Any

import numpy as np
import scipy.sparse
from numba import typeof, types
from numba.extending import overload

from kmargin.core.arrays import Indices, Vector
from kmargin.core.design import Columns, Design, Moments, ThinSVD
from kmargin.core.scaling import CONSTANT_RTOL
from kmargin.data.design import dense
from kmargin.data.design.dense import DenseDesign, dense_slopes
from kmargin.data.design.kernel import KernelDesign
from kmargin.data.design.sparse import SparseDesign, canonical, csr_slopes, csr_times

__all__ = [
    "Columns",
    "DenseDesign",
    "Design",
    "KernelDesign",
    "Moments",
    "SparseDesign",
    "ThinSVD",
    "canonical",
    "distinct_columns",
    "distinct_rows",
    "make_design",
    "n_bytes",
    "repeated_columns",
    "variance_of_entries",
]


def times(X: Any, v: Vector, out: Vector) -> None:
    """out <- X v, of a float64 array or the arrays of a CSR matrix."""
    _times(typeof(X), v, out)(X, v, out)  # in Python; compiled code chooses by itself


def add_rows(X: Any, weights: Vector, out: Vector) -> None:
    """out <- X'weights.

    Samples beyond their margin have weight 0, and mostly they are the many; then only the other rows
    are read. Where they are not, BLAS does the whole product of an array.
    """
    _add_rows(typeof(X), weights, out)(X, weights, out)


@overload(times)
def _times(X: Any, v: Any, out: Any) -> Any:
    def of_array(X: Any, v: Any, out: Any) -> Any:
        np.dot(X, v, out)

    def of_csr(X: Any, v: Any, out: Any) -> Any:
        csr_times(X, v, out)

    return of_array if isinstance(X, types.Array) else of_csr


@overload(add_rows)
def _add_rows(X: Any, weights: Any, out: Any) -> Any:
    def of_array(X: Any, weights: Any, out: Any) -> Any:
        n_read = 0  # np.count_nonzero takes ten times as long to compile
        for weight in weights:
            n_read += weight != 0.0
        if 2 * n_read > len(weights):
            np.dot(weights, X, out)
        else:
            dense_slopes(X, weights, out)

    def of_csr(X: Any, weights: Any, out: Any) -> Any:
        csr_slopes(X, weights, out)

    return of_array if isinstance(X, types.Array) else of_csr


def make_design(X: Any, fit_intercept: bool = True) -> Design:
    """The design of an array or of a sparse matrix."""
    kind = SparseDesign if scipy.sparse.issparse(X) else DenseDesign
    return kind(X, fit_intercept)


def n_bytes(X: Any) -> int:
    """The memory that an array or a CSR matrix takes."""
    if scipy.sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def distinct_rows(X: Any) -> Indices:
    """The rows of X that repeat no earlier one, ascending."""
    if scipy.sparse.issparse(X):
        return distinct_columns(X.T)
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def distinct_columns(X: Any) -> Indices:
    """The columns of X that repeat no earlier one, ascending."""
    return SparseDesign(X).distinct_columns() if scipy.sparse.issparse(X) else dense.distinct_columns(X)


def repeated_columns(X: Any) -> Indices:
    """All others; but that some columns of a sparse matrix are empty goes without saying."""
    is_repeat = np.ones(X.shape[1], np.bool_)
    is_repeat[distinct_columns(X)] = False
    repeats = np.flatnonzero(is_repeat)
    if scipy.sparse.issparse(X):
        repeats = repeats[np.bincount(X.indices, minlength=X.shape[1])[repeats] > 0]
    return repeats


def variance_of_entries(X: Any, repeats: Vector) -> float:
    """The variance of the entries of X, each row counted as often as its weight says.

    Sums are of squares around the mean, in double precision; what is left of equal entries is nothing.
    """
    total, n_columns = float(repeats.sum()) * X.shape[1], X.shape[1]
    if scipy.sparse.issparse(X):
        n_stored = np.diff(X.indptr)
        entries, counts = X.data.astype(np.float64), np.repeat(repeats, n_stored)
        mean, n_zeros = float(counts @ entries) / total, float(repeats @ (n_columns - n_stored))
        squares = float(counts @ (entries - mean) ** 2) + n_zeros * mean**2
    else:
        mean = float(repeats @ X.sum(axis=1, dtype=np.float64)) / total
        gaps = np.subtract(X, mean, dtype=np.float64)
        squares = float(repeats @ np.einsum("ij,ij->i", gaps, gaps))
    variance = squares / total
    return variance if not variance <= (CONSTANT_RTOL * mean) ** 2 else 0.0
