"""X as an array."""

import numpy as np
import scipy.linalg

from kmargin.design.affine import InUnits, typical_entry
from kmargin.design.distinct import candidate_groups, fingerprint_vector, repeats_among
from kmargin.design.passes import BY_COLUMNS, BY_ROWS
from kmargin.design.protocol import Moments, ThinSVD
from kmargin.types import Indices, Matrix, Vector

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
