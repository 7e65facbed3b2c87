"""Design matrices in memory: dense, sparse, or the values of a kernel."""

from typing import Any

import numpy as np
import scipy.sparse

from kmargin.core.arrays import Indices, Vector
from kmargin.core.design import Design
from kmargin.core.scaling import CONSTANT_RTOL
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign


class UncopiedRows:
    """Selected rows of an array or a CSR matrix, copied only when they are needed, to save memory."""

    def __init__(self, X: Any, rows: Indices | None = None) -> None:
        self.X = X
        self.rows = np.arange(X.shape[0]) if rows is None else rows
        self.shape = len(self.rows), X.shape[1]
        self.dtype = X.dtype
        self.nbytes = n_bytes(X)

    def __getitem__(self, rows: Indices) -> "UncopiedRows":
        return UncopiedRows(self.X, self.rows[rows])

    def copied(self) -> Any:
        """Return a copy of the selected rows as an array or a CSR matrix."""
        return self.X[self.rows]


def make_design(X: Any, fit_intercept: bool = True) -> Design:
    """Wrap X, an array, a sparse matrix or `UncopiedRows`, in the interface `Design` that solvers use."""
    X = X.copied() if isinstance(X, UncopiedRows) else X
    kind = SparseDesign if scipy.sparse.issparse(X) else DenseDesign
    return kind(X, fit_intercept)


def n_bytes(X: Any) -> int:
    """Return the number of bytes of an array or a CSR matrix."""
    if scipy.sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def distinct_rows(X: Any) -> Indices:
    """Indices of the rows of X that do not equal an earlier row, ascending."""
    if scipy.sparse.issparse(X):
        return np.setdiff1d(np.arange(X.shape[0]), make_design(X.T).repeated_columns)
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def variance_of_entries(X: Any, repeats: Vector) -> float:
    """The variance of all entries of X, with row i counted `repeats[i]` times; 0 if it is rounding error."""
    total, n_columns = float(repeats.sum()) * X.shape[1], X.shape[1]
    if scipy.sparse.issparse(X):
        n_stored = np.diff(X.indptr)
        entries, counts = X.data.astype(np.float64), np.repeat(repeats, n_stored)
        mean, n_zeros = float(counts @ entries) / total, float(repeats @ (n_columns - n_stored))
        squares = float(counts @ (entries - mean) ** 2) + n_zeros * mean * mean
    else:
        mean = float(repeats @ X.sum(axis=1, dtype=np.float64)) / total
        gaps = np.subtract(X, mean, dtype=np.float64)
        squares = float(repeats @ np.einsum("ij,ij->i", gaps, gaps))
    variance = squares / total
    spread = CONSTANT_RTOL * abs(mean)
    return 0.0 if variance <= spread * spread < np.inf else variance
