"""Design matrices in CSR format, and compiled functions for products with them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.sparsefuncs import mean_variance_axis

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design, Moments, ThinSVD
from kmargin.core.jit import compiled


class CSR(NamedTuple):
    """A matrix, as the three arrays of a CSR matrix and a number to subtract from each of its columns."""

    data: Vector
    indices: Indices
    indptr: Indices
    shift: Vector  # the number subtracted from each column; an empty array if all are 0


@compiled
def csr_times(X: CSR, v: Vector, out: Vector) -> None:
    """out <- X v, with `X.shift` subtracted from the columns of X."""
    offset = np.dot(X.shift, v) if X.shift.size else 0.0
    for i in range(out.size):
        total = 0.0
        for e in range(X.indptr[i], X.indptr[i + 1]):
            total += X.data[e] * v[X.indices[e]]
        out[i] = total - offset


@compiled
def csr_slopes(X: CSR, v: Vector, out: Vector) -> None:
    """out <- X'v, with `X.shift` subtracted from the columns of X; rows where v is 0 are not read."""
    out[:] = 0.0
    for i in range(v.size):
        if v[i] != 0.0:
            for e in range(X.indptr[i], X.indptr[i + 1]):
                out[X.indices[e]] += v[i] * X.data[e]
    if X.shift.size:
        out -= X.shift * v.sum()


@compiled
def csr_columns(X: CSR, t: Vector, place: Indices, offset: Vector, slots: Indices, panel: Matrix) -> None:
    """panel[slots[a]] <- t * (X[:, j] - offset[a]) for every column j of X, where a = place[j].

    Columns with place[j] = -1 are not copied, others become rows of `panel`. `X.shift` is not used.
    """
    shifted = offset.any()
    for a in range(slots.size):
        panel[slots[a]] = 0.0
    for i in range(t.size):
        if shifted:
            for a in range(slots.size):
                panel[slots[a], i] = -t[i] * offset[a]
        for e in range(X.indptr[i], X.indptr[i + 1]):
            a = place[X.indices[e]]
            if a >= 0:
                panel[slots[a], i] = t[i] * (X.data[e] - offset[a])


# Dense work arrays of at most this many numbers (32 MiB) are allowed even if a sparse X takes less memory.
SMALL = 2**22


def canonical(X: Any) -> Any:
    """Return X in CSR format with sorted indices and no duplicate entries; X itself is never modified."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class SparseDesign(Design):
    """The matrix X - shift for a CSR matrix X and a number `shift` for each column; X stays sparse."""

    stored: CSR

    def __init__(self, X: Any, fit_intercept: bool = True, shift: Vector | None = None) -> None:
        super().__init__(X.shape, fit_intercept)
        X = canonical(X)
        self.X = X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
        # use int32 indices wherever possible, because numba compiles a function anew for each dtype
        small = max(*X.shape, X.nnz) <= np.iinfo(np.int32).max
        indices, indptr = (
            a.astype(np.int32 if small else np.int64, copy=False) for a in (X.indices, X.indptr)
        )
        self.shift = np.zeros(self.n_features) if shift is None else shift
        self.stored = CSR(self.X.data, indices, indptr, self.shift if self.shift.any() else np.empty(0))

    def times(self, w: Vector) -> Vector:
        out = np.empty(self.n_samples)
        csr_times(self.stored, np.ascontiguousarray(w), out)
        return out

    def slopes(self, v: Vector) -> Vector:
        out = np.empty(self.n_features)
        csr_slopes(self.stored, v, out)
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        w = np.zeros(self.n_features)
        w[columns] = d
        return self.times(w)

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        place = np.full(self.n_features, -1, dtype=np.int32)
        place[columns] = np.arange(len(columns))
        csr_columns(self.stored, t, place, self.shift[columns], places, panel)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        X, total = self.X.astype(np.float64, copy=False), float(weights.sum())
        mean, variance = mean_variance_axis(X, axis=0, weights=weights)
        covariance = self.slopes(weights * (v - float(weights @ v) / total)) / total
        # rounding may give a column of equal large entries a variance below 0
        return Moments(mean - self.shift, np.maximum(variance, 0.0), covariance)

    def fits(self, n_numbers: int) -> bool:
        """Whether a dense array of `n_numbers` has at most as many numbers as X stores, or at most 32 MiB."""
        return n_numbers <= max(SMALL, self.X.nnz)

    def take(self, columns: Indices) -> "SparseDesign":
        return SparseDesign(self.X[:, columns], self.fit_intercept, self.shift[columns])

    def take_rows(self, rows: Indices) -> "SparseDesign":
        return SparseDesign(self.X[rows], self.fit_intercept, self.shift)

    def standardized(self, mean: Vector, spread: Vector) -> "SparseDesign":
        """Return (X - mean) / spread; mean / spread becomes part of `shift`, so that X stays sparse."""
        X = self.X.astype(np.float64)
        X.data /= spread[X.indices]
        standardized = SparseDesign(X, self.fit_intercept, (mean + self.shift) / spread)
        standardized.__dict__["repeated_columns"] = self.repeated_columns
        return standardized

    def largest(self) -> Vector:
        data, indices, *_ = self.stored
        is_full = np.bincount(indices, minlength=self.n_features) == self.n_samples
        largest = np.where(is_full, 0.0, np.abs(self.shift))
        np.maximum.at(largest, indices, np.abs(data - self.shift[indices]))
        return largest

    def thin_svd(self, weights: Vector) -> ThinSVD:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are dense even where X is sparse: '
            'use solver="exchange" or solver="sd", or give X as an array (X.toarray()) if it fits in memory.'
        )

    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        X = self.X[:, columns].tocsc()
        X.eliminate_zeros()
        X.sort_indices()
        for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield X.indices[first:last].tobytes() + X.data[first:last].tobytes()
