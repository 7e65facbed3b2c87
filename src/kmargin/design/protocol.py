"""X as the solvers see it: what each kind of data has to answer."""

from typing import Any, NamedTuple, Protocol

from kmargin.types import Indices, Matrix, Vector


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
