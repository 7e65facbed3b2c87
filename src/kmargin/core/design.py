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
    """Weighted mean and variance of each column of X, and its covariance with a vector, e.g. the labels."""

    mean: Vector
    variance: Vector
    covariance: Vector


class Columns(ABC):
    """The operations that a matrix X provides whether its rows are in memory or in distributed blocks."""

    def __init__(self, shape: tuple[int, int], fit_intercept: bool) -> None:
        self.n_samples, self.n_features = shape
        self.fit_intercept = fit_intercept
        self.n_parameters = self.n_features + int(fit_intercept)

    def fits(self, n_numbers: int) -> bool:
        """Whether a dense work array of `n_numbers` numbers is small enough, compared with the size of X."""
        return True

    @property
    @abstractmethod
    def repeated_columns(self) -> Indices:
        """Indices of the columns that equal an earlier column of X, before it was standardised; ascending."""

    @abstractmethod
    def take(self, columns: Indices) -> Self:
        """The matrix X[:, columns]."""

    @abstractmethod
    def standardized(self, mean: Vector, spread: Vector) -> Self:
        """The matrix (X - mean) / spread; `mean` and `spread` have an entry for each column."""

    @abstractmethod
    def largest(self) -> Vector:
        """The largest absolute value in each column."""


class Design(Columns):
    """A matrix in memory as a linear map from parameters to decision values.

    The parameters are one coefficient per column and, last, the intercept if there is one; no column of ones
    is stored for the intercept. Solvers use X only through the methods of this class, so that each solver
    works with dense, sparse and kernel matrices. Arguments `columns` and `rows` are arrays of indices.
    """

    stored: Any = None  # X as compiled functions take it, an array or a `CSR`; None if X is not in memory

    @abstractmethod
    def times(self, w: Vector) -> Vector:
        """The product X w."""

    @abstractmethod
    def slopes(self, v: Vector) -> Vector:
        """The product X'v; rows of X where v is 0 are not read."""

    @abstractmethod
    def product(self, columns: Indices, d: Vector) -> Vector:
        """The product X[:, columns] d."""

    @abstractmethod
    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        """Write t * X[:, columns[a]] into row places[a] of the array `panel`, for every a."""

    @abstractmethod
    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Weighted mean and variance of each column, and its weighted covariance with v."""

    @abstractmethod
    def take_rows(self, rows: Indices) -> "Design":
        """The matrix X[rows], copied."""

    @abstractmethod
    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The singular value decomposition of [X 1] with weighted rows, which the MM solver uses."""

    @abstractmethod
    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        """Yield a byte string for each column; two byte strings are equal exactly if the columns are."""

    def decision(self, beta: Vector) -> Vector:
        """The decision values X w + b, where beta = (w, b)."""
        product = self.times(beta[: self.n_features])
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        """X'v, followed by sum(v) for the intercept."""
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        """X[rows][:, columns] as an array."""
        out = np.empty((len(columns), len(rows)))
        self.take_rows(rows).fill_panel(columns, np.ones(len(rows)), np.arange(len(columns)), out)
        return out.T

    def spread(self, c: Vector) -> Vector:
        """For each column j, sum_i c_i^2 (x_ij - m_j)^2.

        m_j is the mean of the column with weights c_i^2, or 0 if the model has no intercept.
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


SEED = 0  # seed of a random vector v, with which equal columns of X have equal products X'v


def candidate_groups(fingerprint: Vector) -> list[Indices]:
    """Groups of columns that may be equal; `fingerprint` is X'v for a random vector v.

    Equal columns have equal products with v, up to rounding. One pass over X and a sort therefore find the
    few columns that have to be compared entry by entry. The indices in each group are ascending.
    """
    order = np.argsort(fingerprint, kind="stable")
    is_close = np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])
    if not is_close.any():
        return []
    runs = np.flatnonzero(np.diff(np.concatenate([[0], is_close, [0]]))).reshape(-1, 2)
    return [np.sort(order[first : last + 1]) for first, last in runs]
