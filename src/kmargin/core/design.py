"""The interface through which solvers use the matrix X, and the search for repeated columns of X."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector


class ThinSVD(NamedTuple):
    """A thin singular value decomposition ``diag(sqrt(weights)) [X 1] = U diag(s) V'`` of rank r."""

    U: Matrix  # (n_samples, r)
    s: Vector  # (r,), descending
    V: Matrix  # (n_parameters, r)


class Moments(NamedTuple):
    """Weighted mean and variance of each column of X, and its covariance with a vector such as the labels."""

    mean: Vector
    variance: Vector
    covariance: Vector


class Columns(ABC):
    """The operations that every matrix X has, whether its rows are in memory or in distributed blocks."""

    def __init__(self, shape: tuple[int, int], fit_intercept: bool) -> None:
        self.n_samples, self.n_features = shape
        self.fit_intercept = fit_intercept
        self.n_parameters = self.n_features + int(fit_intercept)

    def fits(self, n_numbers: int) -> bool:
        """Whether a dense work array of `n_numbers` numbers is allowed; a sparse X limits the number."""
        return True

    @property
    @abstractmethod
    def repeated_columns(self) -> Indices:
        """Ascending indices of columns that equal an earlier one, in X as it was before standardisation."""

    @abstractmethod
    def take(self, columns: Indices) -> Self:
        """The matrix X[:, columns]."""

    @abstractmethod
    def standardized(self, mean: Vector, spread: Vector) -> Self:
        """The matrix (X - mean) / spread, where `mean` and `spread` have one entry for each column of X."""

    @abstractmethod
    def largest(self) -> Vector:
        """The largest absolute value in each column of X."""


class Design(Columns):
    """A matrix X with all rows in this process: a linear map from parameters to decision values.

    The parameters are one coefficient per column and, last, the intercept if there is one; no column of ones
    is stored for the intercept. Solvers use X through the members of this class, so that each solver works
    with dense, sparse and kernel matrices. The arguments `columns` and `rows` are arrays of indices.
    """

    stored: Any = None  # X for compiled code, an array or a `CSR`; None if entries are computed when needed

    @abstractmethod
    def times(self, w: Vector) -> Vector:
        """The product X w."""

    @abstractmethod
    def slopes(self, v: Vector) -> Vector:
        """The product X'v; to save time, rows of X for which v is 0 may be skipped."""

    @abstractmethod
    def product(self, columns: Indices, d: Vector) -> Vector:
        """The product X[:, columns] d."""

    @abstractmethod
    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        """Write t * X[:, columns[a]] into panel[places[a]], for every a; t has a factor for each row of X."""

    @abstractmethod
    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Mean and variance of each column and its covariance with v; row i of X counts with weights[i]."""

    @abstractmethod
    def take_rows(self, rows: Indices) -> "Design":
        """The matrix X[rows], as a copy."""

    @abstractmethod
    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The SVD of [X 1] with each row multiplied by the square root of its weight, for the MM solver."""

    @abstractmethod
    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        """Yield a byte string for each column; byte strings are equal if and only if the columns are."""

    def decision(self, beta: Vector) -> Vector:
        """The decision values X w + b, where beta = (w, b)."""
        product = self.times(beta[: self.n_features])
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        """The product [X 1]'v: X'v, followed by sum(v) if the model has an intercept."""
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        """The submatrix X[rows][:, columns] as a dense array."""
        out = np.empty((len(columns), len(rows)))
        self.take_rows(rows).fill_panel(columns, np.ones(len(rows)), np.arange(len(columns)), out)
        return out.T

    def spread(self, c: Vector) -> Vector:
        """For each column j, the sum over rows i of c_i^2 (x_ij - m_j)^2.

        m_j is the mean of column j with weights c_i^2, or 0 if the model has no intercept.
        """
        if not c.any():
            return np.zeros(self.n_features)
        mean, variance, _ = self.moments(c * c, c)
        return float(c @ c) * (variance if self.fit_intercept else variance + mean * mean)

    @cached_property
    def repeated_columns(self) -> Indices:
        vector = np.random.default_rng(SEED).standard_normal(self.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            groups = candidate_groups(self.slopes(vector))
        if not groups:
            return np.empty(0, np.intp)
        candidates, seen, repeated = np.sort(np.concatenate(groups)), set(), []
        for j, entries in zip(candidates, self.column_bytes(candidates), strict=True):
            digest = blake2b(entries).digest()
            if digest in seen:
                repeated.append(j)
            seen.add(digest)
        return np.array(repeated, np.intp)


SEED = 0  # seed of a random vector v: only columns of X with equal products X'v can equal each other


def candidate_groups(fingerprint: Vector) -> list[Indices]:
    """Groups of columns of X that may be equal, as ascending indices; `fingerprint` is X'v for a random v.

    Equal columns have equal products with v, up to rounding; for other columns this is very unlikely. One
    pass over X and a sort of the products thus find the few columns to be compared entry by entry.
    """
    order = np.argsort(fingerprint, kind="stable")
    is_close = np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])
    if not is_close.any():
        return []
    runs = np.flatnonzero(np.diff(np.concatenate([[0], is_close, [0]]))).reshape(-1, 2)
    return [np.sort(order[first : last + 1]) for first, last in runs]
