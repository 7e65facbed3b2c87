"""Design matrices that are arrays, with their compiled passes over rows and columns."""

from collections.abc import Callable
from typing import NamedTuple

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
from kmargin.core.linalg import axpy, axpy4

# Rows that a product by columns takes at a time: four sums of them stay in the fastest cache.
BLOCK = 512

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
        axpy4(v[a], X[a], v[b], X[b], v[c], X[c], v[d], X[d], out)
    for r in range(m4, m):
        axpy(v[rows[r]], X[rows[r]], out)


@compiled
def dense_spread(X: Matrix, c: Vector, intercept: bool, out: Vector) -> None:
    """out_j <- sum_i c_i^2 (x_ij - mean_j)^2, the mean weighted by c^2 (0 without intercept)."""
    n, p = X.shape
    mean = np.zeros(p)
    out[:] = 0.0
    for i in range(n):
        f = c[i] * c[i]
        for j in range(p):
            g = f * X[i, j]
            mean[j] += g
            out[j] += g * X[i, j]
    if intercept:
        total = 0.0
        for i in range(n):
            total += c[i] * c[i]
        for j in range(p):
            out[j] = max(out[j] - mean[j] * mean[j] / total, 0.0)


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


@compiled
def dense_times(X: Matrix, v: Vector, out: Vector) -> None:
    """out <- X v"""
    n, p = X.shape
    p4 = p - p % 4
    for i in range(n):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, p4, 4):
            s0 += v[j] * X[i, j]
            s1 += v[j + 1] * X[i, j + 1]
            s2 += v[j + 2] * X[i, j + 2]
            s3 += v[j + 3] * X[i, j + 3]
        for j in range(p4, p):
            s0 += v[j] * X[i, j]
        out[i] = (s0 + s1) + (s2 + s3)


@compiled
def dense_product(X: Matrix, cols: Indices, d: Vector, out: Vector) -> None:
    """out <- X[:, cols] @ d"""
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


@compiled
def column_slopes(X: Matrix, v: Vector, out: Vector) -> None:
    """`dense_slopes` by columns, two at a time."""
    n, p = X.shape
    rows, f = np.empty(n, np.int64), np.empty(n)
    m = 0
    for i in range(n):
        if v[i] != 0.0:
            rows[m], f[m] = i, v[i]
            m += 1
    m4 = m - m % 4
    for j in range(0, p, 2):
        l = min(j + 1, p - 1)  # noqa: E741
        x, y = X[:, j], X[:, l]
        s, t = 0.0, 0.0
        for r in range(0, m4, 4):
            a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
            s += (f[r] * x[a] + f[r + 1] * x[b]) + (f[r + 2] * x[c] + f[r + 3] * x[d])
            t += (f[r] * y[a] + f[r + 1] * y[b]) + (f[r + 2] * y[c] + f[r + 3] * y[d])
        for r in range(m4, m):
            s += f[r] * x[rows[r]]
            t += f[r] * y[rows[r]]
        out[l] = t
        out[j] = s


@compiled
def column_spread(X: Matrix, c: Vector, intercept: bool, out: Vector) -> None:
    """`dense_spread` by columns, four at a time."""
    n, p = X.shape
    total = 0.0
    for i in range(n):
        total += c[i] * c[i]
    sums = np.empty((2, 4))
    for first in range(0, p, 4):
        last = min(first + 4, p) - 1
        w, x, y, z = X[:, first], X[:, min(first + 1, last)], X[:, min(first + 2, last)], X[:, last]
        m0, m1, m2, m3, s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            f = c[i] * c[i]
            g0, g1, g2, g3 = f * w[i], f * x[i], f * y[i], f * z[i]
            m0, m1, m2, m3 = m0 + g0, m1 + g1, m2 + g2, m3 + g3
            s0, s1, s2, s3 = s0 + g0 * w[i], s1 + g1 * x[i], s2 + g2 * y[i], s3 + g3 * z[i]
        sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3] = m0, m1, m2, m3
        sums[1, 0], sums[1, 1], sums[1, 2], sums[1, 3] = s0, s1, s2, s3
        for j in range(first, last + 1):
            mean, out[j] = sums[0, j - first], sums[1, j - first]
            if intercept:
                out[j] = max(out[j] - mean * mean / total, 0.0)


@compiled
def column_columns(X: Matrix, t: Vector, cols: Indices, slots: Indices, panel: Matrix) -> None:
    """`dense_columns`, one column after another."""
    for a in range(cols.size):
        x, place = X[:, cols[a]], panel[slots[a]]
        for i in range(X.shape[0]):
            place[i] = t[i] * x[i]


@compiled
def column_product(X: Matrix, cols: Indices, d: Vector, out: Vector) -> None:
    """`dense_product` by columns, a block of rows at a time."""
    n, k4 = X.shape[0], cols.size - cols.size % 4
    sums = np.empty((4, BLOCK))
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        sums[:] = 0.0
        for a in range(cols.size):
            axpy(d[a], X[first : first + size, cols[a]], sums[a % 4 if a < k4 else 0, :size])
        for i in range(size):
            out[first + i] = (sums[0, i] + sums[1, i]) + (sums[2, i] + sums[3, i])


@compiled
def column_times(X: Matrix, v: Vector, out: Vector) -> None:
    """`dense_times` by columns."""
    column_product(X, np.arange(X.shape[1]), v, out)


class Passes(NamedTuple):
    """The passes for one order of X in memory."""

    slopes: Callable[[Matrix, Vector, Vector], None]
    spread: Callable[[Matrix, Vector, bool, Vector], None]
    columns: Callable[[Matrix, Vector, Indices, Indices, Matrix], None]
    times: Callable[[Matrix, Vector, Vector], None]
    product: Callable[[Matrix, Indices, Vector, Vector], None]


BY_ROWS = Passes(dense_slopes, dense_spread, dense_columns, dense_times, dense_product)
BY_COLUMNS = Passes(column_slopes, column_spread, column_columns, column_times, column_product)


# Passes in NumPy take so many numbers at a time.
CHUNK = 2**20


class DenseDesign(InUnits):
    """An array of float64 or float32, in C or Fortran order, with or without an intercept.

    It is used where it lies, mapped from a file or not. Any other array is copied.
    """

    def __init__(self, X: Matrix, fit_intercept: bool = True) -> None:
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self.X: Matrix = np.asarray(X, dtype=dtype, order="F" if by_columns else "C")
        self.passes = BY_COLUMNS if by_columns else BY_ROWS
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
        out = np.empty(self.n_features)
        self.passes.slopes(self.X, v, out)
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        if 2 * len(columns) > self.n_features:
            everywhere = np.zeros(self.n_features)
            everywhere[columns] = d
            return self._times(everywhere)
        out = np.empty(self.n_samples)
        self.passes.product(self.X, columns, d, out)
        return out

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        self.passes.columns(self.X, t, columns, places, panel)

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        return self.X[np.ix_(rows, columns)].astype(np.float64, copy=False)

    def spread(self, c: Vector) -> Vector:
        out = np.empty(self.n_features)
        self.passes.spread(self.X, c, self.fit_intercept, out)
        return out

    def mean(self, c: Vector) -> Vector:
        return self.slopes(c * c) / float(c @ c)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        total = weights.sum()
        mean = self.slopes(weights) / total
        f = weights * (v - float(weights @ v) / total)
        variance, covariance = np.zeros((2, self.n_features))
        step = max(1, CHUNK // max(1, self.n_features))
        for first in range(0, self.n_samples, step):
            rows = slice(first, first + step)
            centered = self.X[rows] - mean
            covariance += f[rows] @ centered
            variance += weights[rows] @ (centered * centered)
        return Moments(mean, variance / total, covariance / total)

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
        squares = np.zeros(self.n_features)
        step = max(1, CHUNK // self.n_features)
        for first in range(0, self.n_samples, step):
            columns = self.X[first : first + step] / base  # so that no square overflows
            squares += np.sum(columns**2, axis=0)
        return typical_entry(largest, squares, self.n_samples)

    def thin_svd(self, weights: Vector) -> ThinSVD:
        """Taken once, then remembered for these weights."""
        if self._svd is None or not np.array_equal(self._svd[0], weights):
            self._svd = weights, self._factorize(weights)
        return self._svd[1]

    def _times(self, w: Vector) -> Vector:
        if self.X.dtype == np.float64:
            return self.X @ w
        out = np.empty(self.n_samples)
        self.passes.times(self.X, w, out)
        return out

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
