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
        """Whether a work array of `n_numbers` numbers is not too large compared with X."""
        return True

    @property
    @abstractmethod
    def distinct_columns(self) -> Indices:
        """The columns that do not equal an earlier one, ascending; they are compared before standardising."""

    @abstractmethod
    def take(self, columns: Indices) -> Self:
        """X[:, columns]."""

    @abstractmethod
    def standardized(self, mean: Vector, spread: Vector) -> Self:
        """(X - mean) / spread."""

    @abstractmethod
    def largest(self) -> Vector:
        """The largest absolute value in each column."""


class Design(Columns):
    """A matrix in memory as a linear map from parameters to decision values.

    The parameters are one coefficient per column and, last, the intercept if there is one; its column of ones
    is never stored. Solvers use X only through these methods, so that each solver works with dense, sparse
    and kernel matrices. Columns and rows are given as arrays of indices.
    """

    stored: Any = None  # X as compiled functions take it, an array or a `CSR`; None if X is not in memory

    @abstractmethod
    def times(self, w: Vector) -> Vector:
        """X w."""

    @abstractmethod
    def slopes(self, v: Vector) -> Vector:
        """X'v. Rows where v is 0 are not read."""

    @abstractmethod
    def product(self, columns: Indices, d: Vector) -> Vector:
        """X[:, columns] d."""

    @abstractmethod
    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        """panel[places[a]] <- t * X[:, columns[a]] for every a."""

    @abstractmethod
    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Weighted mean and variance of each column, and its weighted covariance with v."""

    @abstractmethod
    def take_rows(self, rows: Indices) -> "Design":
        """X[rows], copied."""

    @abstractmethod
    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The singular value decomposition of [X 1] with weighted rows, which the MM solver uses."""

    @abstractmethod
    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        """Yield a byte string for each column; two byte strings are equal only if the columns are."""

    def decision(self, beta: Vector) -> Vector:
        """X w + b."""
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
        """sum_i c_i^2 (x_ij - m_j)^2 of each column j; m_j is its weighted mean, 0 without intercept."""
        if not c.any():
            return np.zeros(self.n_features)
        mean, variance, _ = self.moments(c * c, c)
        return float(c @ c) * (variance if self.fit_intercept else variance + mean * mean)

    @cached_property
    def distinct_columns(self) -> Indices:
        vector = np.random.default_rng(SEED).standard_normal(self.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            groups = candidate_groups(self.slopes(vector))
        if not groups:
            return np.arange(self.n_features)
        is_distinct = np.ones(self.n_features, np.bool_)
        candidates = np.sort(np.concatenate(groups))
        seen: set[bytes] = set()
        for j, entries in zip(candidates, self.column_bytes(candidates), strict=True):
            digest = blake2b(entries).digest()
            is_distinct[j] = digest not in seen
            seen.add(digest)
        return np.flatnonzero(is_distinct)


SEED = 0  # seeds the random vector v whose products X'v tell which columns may be equal


def candidate_groups(fingerprint: Vector) -> list[Indices]:
    """Groups of columns that may be equal; `fingerprint` is X'v for a random vector v.

    Equal columns have equal products with v, up to rounding. So one pass over X and a sort find the few
    columns that have to be compared entry by entry. The columns of each group are ascending.
    """
    order = np.argsort(fingerprint, kind="stable")
    is_close = np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])
    if not is_close.any():
        return []
    runs = np.flatnonzero(np.diff(np.concatenate([[0], is_close, [0]]))).reshape(-1, 2)
    return [np.sort(order[first : last + 1]) for first, last in runs]
