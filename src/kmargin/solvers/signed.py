"""A problem with labels, weights and intercept folded into its rows; see `panel`."""

from collections.abc import Sequence
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers.ending import (
    HUGE,
    SLACK,
    ColumnsAtHand,
    doubt,
    is_affordable,
    is_minimal,
    most_to_gain,
    newton_by_least_squares,
    stand,
    stand_each,
)
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.panel import make_panel, make_ridge, residual, total_loss
from kmargin.solvers.regime import Regime, depends_on_active_rows
from kmargin.solvers.rows import Rows, make_rows
from kmargin.types import Flags, Indices, Matrix, Vector

# The objective where all coefficients are 0, and the intercept too.
WITHOUT_A_MODEL = squared_hinge.AT_ZERO

# What single coefficients may still be able to lower the objective by, relatively, where there are many:
# systems that large are not solved to the last digit.
FINE = 1e-9


class Candidate(NamedTuple):
    """A support of the search."""

    support: Indices  # in the order of the search
    u: Vector  # its coefficients, then the intercept
    value: float
    all_tried: bool = False  # every exchange of one feature for another, in vain
    regime: Regime | None = None  # of the search that found it; None where it is only a start
    doubt: float = 0.0  # by how much rounding may change the value, of what leaves the search

    def without(self, place: int) -> "Candidate":
        """The rest of it, to start from."""
        return Candidate(np.delete(self.support, place), np.delete(self.u, place), np.inf)


# A support has to be better by this share to replace another.
BETTER = 1.0 - 1e-9

NOTHING = Candidate(np.empty(0, np.int64), np.zeros(1), np.inf)


class Signed(Protocol):
    """What the search asks, whether the rows are at hand or elsewhere."""

    @property
    def variance(self) -> Vector:
        """Of each column, weighted; without an intercept its second moment."""

    @property
    def mean(self) -> Vector:
        """Of each column, weighted; 0 where there is no intercept to make up for it."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def make_rows(self, columns: Indices, size: int, to_stay: bool = False) -> Any:
        """A panel's rows, with room for `size` columns, the first of them filled with these.

        Unless they are to stay, those made next may take their place.
        """

    def make_ridge(self, lam: float, size: int) -> Vector:
        """The ridge of each column of such a panel."""

    def fill(self, rows: Any, members: Indices, places: Indices) -> Any:
        """The rows after some places were given to other columns. `members` lists what every place holds."""

    def slopes_at(self, rows: Any, idx: Indices, found: Candidate) -> Vector:
        """Of the loss with respect to each coefficient, up to its sign, at a support in the panel."""

    def count_active(self, found: Candidate) -> int:
        """Rows within the margin of a solution."""

    def fits(self, n_numbers: int) -> bool:
        """Whether an array of so many numbers is in proportion to the data."""

    @property
    def at_hand(self) -> "SignedDesign | None":
        """This one, if its rows are in memory: then systems as large as the active rows, and products with X,
        are further ways to a support.
        """

    panels_are_dear: bool  # what is found is finished while there is one, not when all is done

    def finish_in_panel(
        self, rows: Any, ridge: Vector, found: Sequence[Candidate]
    ) -> tuple[list[Candidate], Flags]:
        """Supports, given by their places in a panel, with their own objectives; and whether each is known
        to be at its minimum.
        """

    def finish(self, found: Candidate, ridge: Vector) -> Candidate:
        """The same support at its minimum, with the objective of just these coefficients.

        `ridge` is that of each column of the support.
        """

    def finish_from_zero(self, found: Candidate, ridge: Vector) -> Candidate:
        """The same support at its minimum, reached from coefficients that are 0, if it can be."""

    def objective(self, found: Candidate, lam: float) -> float:
        """Loss plus ridge."""


@singledispatch
def sign(problem: Problem) -> Signed:
    """A problem as the search sees it. Each kind of problem registers what it is then."""
    raise TypeError(f"{type(problem).__name__} is not registered with `sign`: say how a search is to see it.")


class SignedDesign:
    """Rows at hand."""

    panels_are_dear = False

    def __init__(self, problem: ArrayProblem) -> None:
        self.X = problem.design
        self.c = np.sqrt(problem.weights / problem.design.n_samples)  # sqrt(s_i / n)
        self.t = problem.y * self.c  # y_i sqrt(s_i / n)
        self._room: Matrix | None = None

    @property
    def at_hand(self) -> "SignedDesign":
        return self

    @cached_property
    def variance(self) -> Vector:
        return self.X.spread(self.c)

    @cached_property
    def mean(self) -> Vector:
        if not self.X.fit_intercept:
            return np.zeros(self.n_features)
        return self.X.mean(self.c)

    @property
    def n_samples(self) -> int:
        return self.X.n_samples

    @property
    def n_features(self) -> int:
        return self.X.n_features

    def make_rows(self, columns: Indices, size: int, to_stay: bool = False) -> Rows:
        if to_stay:
            return make_rows(make_panel(self.X, self.t, self.c, columns, size))
        # one panel after the other in the same memory: the system takes longer to clear new pages than
        # we take to fill them
        if self._room is None or len(self._room) < size + 2:
            self._room = np.empty((size + 2, self.n_samples))
        return make_rows(make_panel(self.X, self.t, self.c, columns, size, self._room[: size + 2]))

    def make_panel(self, columns: Indices, size: int, room: Matrix) -> None:
        """The same in memory that is there."""
        make_panel(self.X, self.t, self.c, columns, size, room)

    def make_ridge(self, lam: float, size: int) -> Vector:
        return make_ridge(lam, size, self.X.fit_intercept)

    def fill(self, rows: Rows, members: Indices, places: Indices) -> Rows:
        self.X.fill_panel(members[places], self.t, places, rows.panel)
        return rows

    def slopes_at(self, rows: Rows, idx: Indices, found: Candidate) -> Vector:
        residual(rows.panel, idx, found.u, rows.resid)
        return self.gradient(rows.resid)

    def gradient(self, resid: Vector) -> Vector:
        """Of the loss with respect to each coefficient, up to its sign."""
        return self.X.slopes(self.t * squared_hinge.slopes(resid))

    def residual(self, found: Candidate) -> Vector:
        """How far each row is from its margin, positive where it falls short."""
        return self.c - self.t * (self.X.product(found.support, found.u[:-1]) + found.u[-1])

    def count_active(self, found: Candidate) -> int:
        return int(np.count_nonzero(squared_hinge.is_active(self.residual(found))))

    def fits(self, n_numbers: int) -> bool:
        return self.X.fits(n_numbers)

    def finish_in_panel(
        self, rows: Rows, ridge: Vector, found: Sequence[Candidate]
    ) -> tuple[list[Candidate], Flags]:
        lengths = [len(f.support) for f in found]
        sizes = np.array(lengths)
        supports = np.zeros((len(found), max(lengths, default=0) + 1), np.int64)
        coefs, (values, slacks) = np.zeros(supports.shape), np.empty((2, len(found)))
        for row, (size, f) in enumerate(zip(lengths, found, strict=True)):
            supports[row, :size], coefs[row, : size + 1] = f.support, f.u
        stand_each(rows.panel, ridge, sizes, supports, coefs, values, slacks)
        finished = (np.abs(coefs).max(axis=1) <= HUGE) & is_minimal(values, slacks)
        return [f._replace(value=value) for f, value in zip(found, values.tolist(), strict=True)], finished

    def finish(self, found: Candidate, ridge: Vector) -> Candidate:
        k = len(found.support)
        ridge = np.append(ridge, 0.0 if self.X.fit_intercept else 1.0)
        in_panel = not depends_on_active_rows(k) and self.fits((k + 2) * self.n_samples)
        value, slack, resid = (self._stand if in_panel else self._stand_alone)(found, ridge)
        found = found._replace(value=value)
        if not value <= WITHOUT_A_MODEL:  # its own ridges are too strong for these coefficients
            found = found._replace(u=np.zeros_like(found.u), value=WITHOUT_A_MODEL)
            slack = np.inf
        if np.abs(found.u).max(initial=0.0) > HUGE and is_affordable(self.n_samples, k):
            found = self._sturdier(found, self.finish_from_zero(found, ridge[:-1]))
        if found.value <= NO_LOSS or slack <= (SLACK if in_panel else FINE) * found.value:
            return found
        n_active = int(np.count_nonzero(squared_hinge.is_active(resid)))
        better = found
        if not in_panel:  # from too large coefficients rows would become active one by one
            better = self.finish_from_zero(found, ridge[:-1])
        elif is_affordable(n_active, k):
            u, value, _ = newton_by_least_squares(self.columns(found.support), ridge, found.u)
            better = found._replace(u=u, value=value)
        if not self._sturdier(found, better).value < found.value:
            return found
        # other supports were judged as inexactly as this one was: nothing is claimed of them
        return better._replace(all_tried=found.all_tried and better.value > found.value * BETTER)

    def _stand(self, found: Candidate, ridge: Vector) -> tuple[float, float, Vector]:
        """The objective, what it may still fall by, and the residuals."""
        k = len(found.support)
        rows = self.make_rows(found.support, k)
        value, slack = stand(rows.panel, np.arange(k + 1), ridge, found.u, rows.resid)
        return float(value), slack, rows.resid

    def _stand_alone(self, found: Candidate, ridge: Vector) -> tuple[float, float, Vector]:
        """The same without a panel."""
        resid = self.residual(found)
        value = total_loss(resid) + 0.5 * float(np.sum((np.sqrt(ridge) * found.u) ** 2))
        slopes = ridge[:-1] * found.u[:-1] - self.gradient(resid)[found.support]
        return float(value), most_to_gain(slopes, ridge[:-1], self.variance[found.support]), resid

    def _sturdier(self, found: Candidate, other: Candidate) -> Candidate:
        """The better of two on one support; where coefficients are huge, whatever rounding does to it."""
        if max(np.abs(f.u).max(initial=0.0) for f in (found, other)) <= HUGE:
            return min(found, other, key=lambda f: f.value)
        A = self.columns(found.support).A
        return min(found, other, key=lambda f: f.value + doubt(A, f.u, f.value))

    def finish_from_zero(self, found: Candidate, ridge: Vector) -> Candidate:
        if not is_affordable(self.n_samples, len(found.support)):
            return found
        ridge = np.append(ridge, 0.0 if self.X.fit_intercept else 1.0)
        u, value, _ = newton_by_least_squares(self.columns(found.support), ridge, np.zeros_like(found.u))
        return found._replace(u=u, value=value)

    def objective(self, found: Candidate, lam: float) -> float:
        ridge = 0.5 * float(np.sum((np.sqrt(lam) * found.u[:-1]) ** 2))
        return float(total_loss(self.residual(found))) + ridge

    def columns(self, support: Indices) -> ColumnsAtHand:
        """Signed columns of X, then that of the intercept, by rows."""
        columns = np.empty((self.n_samples, len(support) + 1))
        columns[:, :-1] = self.t[:, None] * self.X.block(np.arange(self.n_samples), support)
        columns[:, -1] = self.t if self.X.fit_intercept else 0.0
        return ColumnsAtHand(columns, self.c)


@sign.register
def _(problem: ArrayProblem) -> Signed:
    return SignedDesign(problem)
