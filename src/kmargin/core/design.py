"""What solvers ask of a design matrix; rescaled, repeated and selected columns of any of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector


class ThinSVD(NamedTuple):
    """``diag(sqrt(weights)) [X 1] = U diag(s) V'`` with the r positive singular values."""

    U: Matrix  # (n_samples, r)
    s: Vector  # (r,), descending
    V: Matrix  # (n_parameters, r)


class Moments(NamedTuple):
    """Of each column, every row counted by its weight."""

    mean: Vector
    variance: Vector  # around that mean
    covariance: Vector  # with the vector given


class Columns(Protocol):
    """What is asked of the columns of X alone, whether its rows are at hand or elsewhere."""

    n_samples: int
    n_features: int
    n_parameters: int
    fit_intercept: bool

    def fits(self, n_numbers: int) -> bool:
        """Whether an array of so many numbers is in proportion to the data."""

    def distinct_columns(self) -> Indices:
        """The columns that repeat no earlier one, ascending; as they were given, not as standardised."""

    def take(self, columns: Indices) -> "Columns":
        """Some of the columns, stored by themselves."""

    def subset(self, columns: Indices) -> "Columns":
        """Some of the columns, left where they are if copying them takes much memory."""

    def standardized(self, mean: Vector, spread: Vector) -> "Columns":
        """The columns minus `mean`, over `spread`."""

    def largest(self) -> Vector:
        """The largest magnitude in each column."""

    def unit(self) -> float:
        """The size of a typical entry: the median over columns of their root mean square."""

    def in_units_of(self, unit: float | Vector) -> "Columns":
        """The same data with every entry divided by `unit`, or by the unit of its column."""


class Design(Columns, Protocol):
    """A linear map from parameters to decision values.

    The parameters are one coefficient per column and, last, the intercept if there is one. Its column
    of ones is never stored. Solvers know X by these questions alone, so each kind of data answers them
    in its own way, and no solver is written twice. Columns are given as arrays of indices.
    """

    @property
    def stored(self) -> Any:
        """X as compiled loops take it: an array, or the arrays of a CSR matrix; None if it is not held."""

    def decision(self, beta: Vector) -> Vector:
        """X w + b."""

    def adjoint(self, v: Vector) -> Vector:
        """X'v, followed by sum(v) for the intercept."""

    def slopes(self, v: Vector) -> Vector:
        """X'v. Rows where v is 0 are not looked at."""

    def product(self, columns: Indices, d: Vector) -> Vector:
        """X[:, columns] d."""

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        """panel[places[a]] <- t * X[:, columns[a]] for every a."""

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        """X[rows][:, columns] as an array."""

    def spread(self, c: Vector) -> Vector:
        """sum_i c_i^2 (x_ij - mean_j)^2 with the mean weighted by c^2; without intercept mean 0."""

    def mean(self, c: Vector) -> Vector:
        """That mean of each column, intercept or not."""

    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Mean, variance, and covariance with v."""

    def subset(self, columns: Indices) -> "Design": ...

    def take(self, columns: Indices) -> "Design":
        """Some of the columns, stored by themselves."""

    def take_rows(self, rows: Indices) -> "Design":
        """Some of the rows, stored by themselves."""

    def standardized(self, mean: Vector, spread: Vector) -> "Design": ...

    def in_units_of(self, unit: float | Vector) -> "Design": ...

    def thin_svd(self, weights: Vector) -> ThinSVD:
        """The factorisation that MM needs."""


class InUnits(ABC):
    """Units alone, for a design that can be standardised."""

    n_features: int

    @abstractmethod
    def standardized(self, mean: Vector, spread: Vector) -> Any:
        """The columns minus `mean`, over `spread`."""

    def in_units_of(self, unit: float | Vector) -> Any:
        """The same data with every entry divided by `unit`, or by the unit of its column."""
        return self.standardized(np.zeros(self.n_features), np.full(self.n_features, unit, dtype=np.float64))


def typical_entry(largest: Vector, squares: Vector, n_samples: int) -> float:
    """The median over columns of their root mean square; columns of zeros do not count.

    `squares` are the sums of squares of each column over its `largest` magnitude, so that none overflows.
    """
    nonzero = largest > 0
    if not nonzero.any():
        return 1.0
    return float(np.median((largest * np.sqrt(squares / n_samples))[nonzero]))


SEED = 0  # of the vector whose products tell columns apart


def fingerprint_vector(n_samples: int) -> Vector:
    return np.random.default_rng(SEED).standard_normal(n_samples)


def _sorted(fingerprint: Vector) -> tuple[Indices, Flags]:
    """Return the order that sorts the fingerprints, and whether each is close to the one before it.

    Equal columns have equal products with any vector, up to rounding. So one pass over X and a sort
    find the few candidates that are worth comparing entry by entry.
    """
    order = np.argsort(fingerprint, kind="stable")
    return order, np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])


def candidate_groups(fingerprint: Vector) -> list[Indices]:
    """Groups of columns that may be equal, each ascending."""
    order, close = _sorted(fingerprint)
    runs = np.flatnonzero(np.diff(np.concatenate([[0], close, [0]]))).reshape(-1, 2)
    return [np.sort(order[first : last + 1]) for first, last in runs]


def candidate_columns(fingerprint: Vector) -> Indices:
    """All columns that may be equal to another, ascending."""
    order, close = _sorted(fingerprint)
    return np.sort(order[np.append(False, close) | np.append(close, False)])


def repeats_among(groups: list[Indices], equal: Callable[[int, int], bool], n_features: int) -> Flags:
    """Which columns repeat an earlier one of their group."""
    repeats = np.zeros(n_features, dtype=bool)
    for group in groups:
        originals: list[int] = []
        for j in group:
            if any(equal(i, j) for i in originals):
                repeats[j] = True
            else:
                originals.append(j)
    return repeats


class ColumnSubset(InUnits):
    """Answers for some columns by asking the whole: nothing is copied."""

    def __init__(self, whole: Design, columns: Indices) -> None:
        self.whole = whole
        self.columns = columns
        self.fit_intercept = whole.fit_intercept
        self.n_samples, self.n_features = whole.n_samples, len(columns)
        self.n_parameters = self.n_features + int(whole.fit_intercept)

    @property
    def stored(self) -> Any:
        return self.whole.take(self.columns).stored

    def decision(self, beta: Vector) -> Vector:
        product = self.product(np.arange(self.n_features), beta[: self.n_features])
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def slopes(self, v: Vector) -> Vector:
        return self.whole.slopes(v)[self.columns]

    def product(self, columns: Indices, d: Vector) -> Vector:
        return self.whole.product(self.columns[columns], d)

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        self.whole.fill_panel(self.columns[columns], t, places, panel)

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        return self.whole.block(rows, self.columns[columns])

    def spread(self, c: Vector) -> Vector:
        return self.whole.spread(c)[self.columns]

    def mean(self, c: Vector) -> Vector:
        return self.whole.mean(c)[self.columns]

    def moments(self, weights: Vector, v: Vector) -> Moments:
        return Moments(*(moment[self.columns] for moment in self.whole.moments(weights, v)))

    def fits(self, n_numbers: int) -> bool:
        return self.whole.fits(n_numbers)

    def distinct_columns(self) -> Indices:
        return self.whole.take(self.columns).distinct_columns()

    def subset(self, columns: Indices) -> Design:
        return ColumnSubset(self.whole, self.columns[columns])

    def take(self, columns: Indices) -> Design:
        return self.whole.take(self.columns[columns])

    def take_rows(self, rows: Indices) -> Design:
        return self.whole.take_rows(rows).take(self.columns)

    def standardized(self, mean: Vector, spread: Vector) -> Design:
        return self.whole.take(self.columns).standardized(mean, spread)

    def largest(self) -> Vector:
        return self.whole.take(self.columns).largest()

    def unit(self) -> float:
        return self.whole.take(self.columns).unit()

    def thin_svd(self, weights: Vector) -> ThinSVD:
        return self.whole.take(self.columns).thin_svd(weights)
