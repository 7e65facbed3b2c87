"""X as the solvers see it: a linear map from parameters to decision values.

The parameters are one coefficient per column and, last, the intercept if there is one. Its
column of ones is never stored.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from kmargin.types import Indices, Matrix, Vector


def distinct_columns(X: Matrix) -> Indices:
    """The columns of X that repeat no earlier one, ascending.

    Equal columns have equal products with any vector, up to rounding. So one pass over X and a sort
    find the few candidates that are worth comparing entry by entry.
    """
    fingerprint = np.random.default_rng(0).standard_normal(len(X)) @ X
    order = np.argsort(fingerprint, kind="stable")
    close = np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])
    repeats = np.zeros(X.shape[1], dtype=bool)
    for group in np.split(order, np.flatnonzero(~close) + 1):
        originals: list[int] = []
        for j in np.sort(group) if len(group) > 1 else ():
            if any(np.array_equal(X[:, j], X[:, i]) for i in originals):
                repeats[j] = True
            else:
                originals.append(j)
    return np.flatnonzero(~repeats)


class ThinSVD(NamedTuple):
    """``diag(sqrt(weights)) [X 1] = U diag(s) V'`` with the r positive singular values."""

    U: Matrix  # (n_samples, r)
    s: Vector  # (r,), descending
    V: Matrix  # (n_parameters, r)


class DenseDesign:
    """A C-ordered float64 array, with or without an intercept."""

    def __init__(self, X: Matrix, fit_intercept: bool = True) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float64)
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        self._svd: tuple[Vector, ThinSVD] | None = None

    def decision(self, beta: Vector) -> Vector:
        """X w + b."""
        product = self.X @ beta[: self.n_features]
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        """X'v, followed by sum(v) for the intercept."""
        product = v @ self.X
        return np.append(product, v.sum()) if self.fit_intercept else product

    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The factorisation that MM needs; taken once, then remembered for these weights."""
        if self._svd is None or not np.array_equal(self._svd[0], weights):
            self._svd = weights, self._factorize(weights)
        return self._svd[1]

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

    def distinct_columns(self) -> Indices:
        """The columns that repeat no earlier one, ascending."""
        return distinct_columns(self.X)

    def take(self, columns: Indices) -> "DenseDesign":
        """Some of the columns."""
        return DenseDesign(self.X[:, columns], self.fit_intercept)

    def unit(self) -> float:
        """The size of a typical entry: the median over columns of their root mean square."""
        largest = np.maximum(self.X.max(axis=0), -self.X.min(axis=0))
        nonzero = largest > 0
        if not nonzero.any():
            return 1.0
        columns = self.X[:, nonzero] / largest[nonzero]  # so that no square overflows
        return float(np.median(largest[nonzero] * np.sqrt(np.mean(columns**2, axis=0))))

    def in_units_of(self, unit: float) -> "DenseDesign":
        """The same data with every entry divided by `unit`."""
        return DenseDesign(self.X / unit, self.fit_intercept)
