"""Design matrices that are NumPy arrays, and compiled functions for products with them."""

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design, Moments, ThinSVD
from kmargin.core.jit import compiled
from kmargin.core.linalg import add_scaled, add_scaled4

# `dense_columns` copies columns from this many rows of X at a time: these rows stay in the processor's cache
# while all columns are copied from them, and neighbouring numbers of `panel` are written together.
ROWS_AT_ONCE = 64


@compiled
def dense_slopes(X: Matrix, v: Vector, out: Vector) -> None:
    """out <- X'v. Rows of X where v is 0 are not read; the others are added to `out` four at a time."""
    n, _p = X.shape
    rows = np.empty(n + 4, np.int64)
    m = 0
    for i in range(n):
        if v[i] != 0.0:
            rows[m] = i
            m += 1
    out[:] = 0.0
    m4 = m - m % 4
    for r in range(0, m4, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        add_scaled4(v[a], X[a], v[b], X[b], v[c], X[c], v[d], X[d], out)
    for r in range(m4, m):
        add_scaled(v[rows[r]], X[rows[r]], out)


@compiled
def dense_columns(X: Matrix, t: Vector, cols: Indices, slots: Indices, panel: Matrix) -> None:
    """panel[slots[a]] <- t * X[:, cols[a]] for every a; columns of X, times t, become rows of `panel`."""
    n = X.shape[0]
    for first in range(0, n, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, n)
        for a in range(cols.size):
            column, place = cols[a], panel[slots[a]]
            for i in range(first, last):
                place[i] = t[i] * X[i, column]


# Computations that need a copy of X (as float64, or centred) copy about this many entries at a time.
CHUNK = 2**19


@compiled
def dense_product(X: Matrix, cols: Indices, d: Vector, out: Vector) -> None:
    """out <- X[:, cols] @ d, without a copy of these columns."""
    k4 = cols.size - cols.size % 4
    for i in range(X.shape[0]):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for a in range(0, k4, 4):
            s0 += d[a] * X[i, cols[a]]
            s1 += d[a + 1] * X[i, cols[a + 1]]
            s2 += d[a + 2] * X[i, cols[a + 2]]
            s3 += d[a + 3] * X[i, cols[a + 3]]
        for a in range(k4, cols.size):
            s0 += d[a] * X[i, cols[a]]
        out[i] = (s0 + s1) + (s2 + s3)


class DenseDesign(Design):
    """A matrix X that is an array of float64 or float32, in C or Fortran order.

    It is not copied, even if memory-mapped. Products are in float64; float32 is cast a few rows at a time.
    """

    stored: Matrix

    def __init__(self, X: Matrix, fit_intercept: bool = True) -> None:
        super().__init__(X.shape, fit_intercept)
        self.by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self.X: Matrix = np.asarray(X, dtype=dtype, order="F" if self.by_columns else "C")
        self.stored = self.X
        self._svd: tuple[Vector, ThinSVD] | None = None

    def _chunks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield (slice, these rows of X as float64) for consecutive rows, about CHUNK entries at a time."""
        step = max(1, CHUNK // max(1, self.n_features))
        for first in range(0, self.n_samples, step):
            rows = slice(first, first + step)
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def times(self, w: Vector) -> Vector:
        if self.X.dtype == np.float64:
            return self.X @ w
        return np.concatenate([X @ w for _, X in self._chunks()])

    def slopes(self, v: Vector) -> Vector:
        if self.by_columns:
            if self.X.dtype == np.float64:
                return v @ self.X
            return np.sum([v[rows] @ X for rows, X in self._chunks()], axis=0)
        out = np.empty(self.n_features)
        dense_slopes(self.X, v, out)
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        if 4 * len(columns) > self.n_features:
            w = np.zeros(self.n_features)
            w[columns] = d
            return self.times(w)
        if self.by_columns:
            return self.X[:, columns].astype(np.float64, copy=False) @ d
        out = np.empty(self.n_samples)
        dense_product(self.X, columns, d, out)
        return out

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        if self.by_columns:
            panel[places] = t * self.X.T[columns]
        else:
            dense_columns(self.X, t, columns, places, panel)

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        return self.X[np.ix_(rows, columns)].astype(np.float64, copy=False)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        total = weights.sum()
        mean = self.slopes(weights) / total
        f = weights * (v - float(weights @ v) / total)
        variance, covariance = np.zeros((2, self.n_features))
        for rows, X in self._chunks():
            gap = X - mean
            covariance += f[rows] @ gap
            variance += weights[rows] @ np.square(gap, out=gap)
        return Moments(mean, variance / total, covariance / total)

    def take(self, columns: Indices) -> "DenseDesign":
        return DenseDesign(self.X[:, columns], self.fit_intercept)

    def take_rows(self, rows: Indices) -> "DenseDesign":
        return DenseDesign(self.X[rows], self.fit_intercept)

    def standardized(self, mean: Vector, spread: Vector) -> "DenseDesign":
        # divide first, then centre, as `SparseDesign` does, so that dense and sparse X round the same way
        scaled = self.X / spread
        scaled -= mean / spread
        standardized = DenseDesign(scaled, self.fit_intercept)
        standardized.__dict__["repeated_columns"] = self.repeated_columns
        return standardized

    def largest(self) -> Vector:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)

    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The thin SVD of diag(sqrt(weights)) [X, 1], cached; the column of ones is for an intercept."""
        if self._svd is None or not np.array_equal(self._svd[0], weights):
            ones = np.ones((self.n_samples, int(self.fit_intercept)))
            rows = np.hstack([self.X, ones]) * np.sqrt(weights)[:, None]
            U, s, Vt = scipy.linalg.svd(rows, full_matrices=False, overwrite_a=True, check_finite=False)
            rank = np.count_nonzero(s > s[0] * max(rows.shape) * np.finfo(np.float64).eps)
            svd = ThinSVD(np.ascontiguousarray(U[:, :rank]), s[:rank], np.ascontiguousarray(Vt[:rank].T))
            self._svd = weights, svd
        return self._svd[1]

    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        return ((self.X[:, j] + 0.0).tobytes() for j in columns)  # turns -0.0 into 0.0, its equal
