"""Design matrices that are arrays, with their compiled passes over rows and columns."""

from collections.abc import Callable

import numpy as np
import scipy.linalg

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import (
    InUnits,
    Moments,
    ThinSVD,
    candidate_groups,
    fingerprint_vector,
    repeats_among,
    typical_entry,
)
from kmargin.core.jit import compiled
from kmargin.core.linalg import add_scaled, add_scaled4

# Rows from which columns are gathered at a time.
GATHERED = 64


@compiled
def dense_slopes(X: Matrix, v: Vector, out: Vector) -> None:
    """out <- X'v, skipping the rows where v is 0, four rows at a time."""
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
    """panel[slots[a]] <- t * X[:, cols[a]] for every a.

    A few rows at a time: they stay in the cache while the columns are gathered from them, and each
    row of the panel is written in runs, not in single numbers far apart.
    """
    n = X.shape[0]
    for first in range(0, n, GATHERED):
        last = min(first + GATHERED, n)
        for a in range(cols.size):
            column, place = cols[a], panel[slots[a]]
            for i in range(first, last):
                place[i] = t[i] * X[i, column]


# Passes in NumPy take so many numbers at a time.
CHUNK = 2**20


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


class DenseDesign(InUnits):
    """An array of float64 or float32, in C or Fortran order, with or without an intercept.

    It is used where it lies, mapped from a file or not. Any other array is copied.
    """

    def __init__(self, X: Matrix, fit_intercept: bool = True) -> None:
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self.X: Matrix = np.asarray(X, dtype=dtype, order="F" if by_columns else "C")
        self.by_columns = by_columns
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        self._svd: tuple[Vector, ThinSVD] | None = None
        self._distinct: Indices | None = None

    @property
    def stored(self) -> Matrix:
        return self.X

    def decision(self, beta: Vector) -> Vector:
        product = self._times(beta[: self.n_features])
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        product = v @ self.X if self.X.dtype == np.float64 else self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def slopes(self, v: Vector) -> Vector:
        if self.by_columns:
            return v @ self.X if self.X.dtype == np.float64 else self._sum_rows(lambda rows, X: v[rows] @ X)
        out = np.empty(self.n_features)
        dense_slopes(self.X, v, out)
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        if 4 * len(columns) > self.n_features:
            everywhere = np.zeros(self.n_features)
            everywhere[columns] = d
            return self._times(everywhere)
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

    def spread(self, c: Vector) -> Vector:
        weights = c * c
        squares = self._sum_rows(lambda rows, X: weights[rows] @ (X * X))
        if not self.fit_intercept:
            return squares
        total = float(weights.sum())
        return np.maximum(squares - self.slopes(weights) ** 2 / max(total, 1e-300), 0.0)

    def mean(self, c: Vector) -> Vector:
        return self.slopes(c * c) / float(c @ c)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        total = weights.sum()
        mean = self.slopes(weights) / total
        f = weights * (v - float(weights @ v) / total)
        covariance = self._sum_rows(lambda rows, X: f[rows] @ (X - mean))
        variance = self._sum_rows(lambda rows, X: weights[rows] @ (X - mean) ** 2)
        return Moments(mean, variance / total, covariance / total)

    def _sum_rows(self, part: Callable[[slice, Matrix], Vector]) -> Vector:
        """A sum over all rows of what `part` makes of some of them, as float64, at a time."""
        total = np.zeros(self.n_features)
        step = max(1, CHUNK // max(1, self.n_features))
        for first in range(0, self.n_samples, step):
            rows = slice(first, first + step)
            total += part(rows, self.X[rows].astype(np.float64, copy=False))
        return total

    def fits(self, n_numbers: int) -> bool:
        return True

    def distinct_columns(self) -> Indices:
        return distinct_columns(self.X) if self._distinct is None else self._distinct

    def subset(self, columns: Indices) -> "DenseDesign":
        return self.take(columns)

    def take(self, columns: Indices) -> "DenseDesign":
        return DenseDesign(self.X[:, columns], self.fit_intercept)

    def take_rows(self, rows: Indices) -> "DenseDesign":
        return DenseDesign(self.X[rows], self.fit_intercept)

    def standardized(self, mean: Vector, spread: Vector) -> "DenseDesign":
        # scaled, then centred: with the digits that a sparse matrix has, whose centring is implicit
        scaled = self.X / spread
        scaled -= mean / spread
        standardized = DenseDesign(scaled, self.fit_intercept)
        standardized._distinct = self.distinct_columns()
        return standardized

    def largest(self) -> Vector:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0)).astype(np.float64)

    def unit(self) -> float:
        largest = self.largest()
        base = np.where(largest > 0, largest, 1.0)
        squares = self._sum_rows(lambda rows, X: np.sum((X / base) ** 2, axis=0))  # none overflows
        return typical_entry(largest, squares, self.n_samples)

    def thin_svd(self, weights: Vector) -> ThinSVD:
        """Taken once, then remembered for these weights."""
        if self._svd is None or not np.array_equal(self._svd[0], weights):
            self._svd = weights, self._factorize(weights)
        return self._svd[1]

    def _times(self, w: Vector) -> Vector:
        if self.X.dtype == np.float64:
            return self.X @ w
        step = max(1, CHUNK // max(1, self.n_features))
        parts = [self.X[first : first + step] @ w for first in range(0, self.n_samples, step)]
        return np.concatenate(parts)

    def _factorize(self, weights: Vector) -> ThinSVD:
        ones = np.ones((self.n_samples, int(self.fit_intercept)))
        rows = np.hstack([self.X, ones]) * np.sqrt(weights)[:, None]
        U, s, Vt = scipy.linalg.svd(rows, full_matrices=False, overwrite_a=True, check_finite=False)
        noise = s[0] * max(rows.shape) * np.finfo(np.float64).eps
        rank = np.count_nonzero(s > noise)
        return ThinSVD(
            np.ascontiguousarray(U[:, :rank]),
            s[:rank],
            np.ascontiguousarray(Vt[:rank].T),
        )


def distinct_columns(X: Matrix) -> Indices:
    """The columns of X that repeat no earlier one, ascending."""
    vector = fingerprint_vector(len(X))
    fingerprint = np.zeros(X.shape[1])
    step = max(1, CHUNK // max(1, X.shape[1])) if X.dtype != np.float64 else max(1, len(X))
    for first in range(0, len(X), step):
        rows = slice(first, first + step)
        with np.errstate(over="ignore", invalid="ignore"):
            fingerprint += vector[rows] @ X[rows]
    groups = candidate_groups(fingerprint)
    repeats = repeats_among(groups, lambda i, j: np.array_equal(X[:, i], X[:, j]), X.shape[1])
    return np.flatnonzero(~repeats)
