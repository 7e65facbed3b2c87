"""A binary problem as the search sees it: labels and weights folded into rows, columns on a safe scale.

Rows in memory are arrays; rows in blocks answer the same questions by sums over the blocks.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.design import LARGEST, SMALLEST, VARIES, Affine, can_be_squared, power_of_two
from kmargin.core.jit import Remote
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.blocks import Held, sums
from kmargin.data.blocks.problem import BlockDesign, BlockProblem
from kmargin.data.blocks.sums import add_up
from kmargin.solvers.refit.final import (
    HUGE,
    SLACK,
    ColumnsAtHand,
    doubt,
    doubt_of,
    is_affordable,
    is_minimal,
    most_to_gain,
    newton_by_least_squares,
    stand,
    stand_each,
)
from kmargin.solvers.refit.newton import (
    NO_LOSS,
    Rows,
    cost_of_refit,
    exact_step,
    make_panel,
    make_ridge,
    make_rows,
    residual,
    total_loss,
)
from kmargin.solvers.solution import Regime, depends_on_active_rows

__all__ = ["RemoteColumns", "RemoteRows", "SignedBlocks", "sign"]

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
def fold_array_problem(problem: ArrayProblem) -> Signed:
    return SignedDesign(problem)


class SignedBlocks:
    """A problem in blocks, with a panel of columns held beside each of them."""

    panels_are_dear = True

    def __init__(self, X: BlockDesign) -> None:
        self.X = X
        self.n_samples, self.n_features = X.n_samples, X.n_features

    @property
    def at_hand(self) -> None:
        return None

    @cached_property
    def variance(self) -> Vector:
        return self.X.variance()

    @cached_property
    def mean(self) -> Vector:
        return self.X.moments().mean if self.X.fit_intercept else np.zeros(self.n_features)

    def make_rows(self, columns: Indices, size: int, to_stay: bool = False) -> "RemoteRows":
        members = np.full(size, -1)
        members[: len(columns)] = columns
        return RemoteRows(self.X.panel(members, size), size, self.n_samples)

    def make_ridge(self, lam: float, size: int) -> Vector:
        return make_ridge(lam, size, self.X.fit_intercept)

    def fill(self, rows: "RemoteRows", members: Indices, places: Indices) -> "RemoteRows":
        del rows.panel  # at first: there may not be room for both
        rows.panel = self.X.panel(members, len(members))
        return rows

    def slopes_at(self, rows: "RemoteRows", idx: Indices, found: Candidate) -> Vector:
        return self.X.slopes(found.support, found.u)[0]

    def count_active(self, found: Candidate) -> int:
        return self.X.slopes(found.support, found.u)[1]

    def fits(self, n_numbers: int) -> bool:
        return self.X.fits(n_numbers)

    def finish_in_panel(
        self, rows: "RemoteRows", ridge: Vector, found: Sequence[Candidate]
    ) -> tuple[list[Candidate], Flags]:
        return [self._finished(rows, ridge, f) for f in found], np.ones(len(found), np.bool_)

    def _finished(self, rows: "RemoteRows", ridge: Vector, found: Candidate) -> Candidate:
        idx = np.append(found.support, rows.size)
        if is_minimal(found.value, rows.slack(idx, ridge[idx], found.u)):
            return found
        columns = RemoteColumns(rows.companion(), idx)
        u, value, _ = newton_by_least_squares(columns, ridge[idx], found.u)
        if not value < found.value:
            return found
        return found._replace(u=u, value=value, all_tried=found.all_tried and value > found.value * BETTER)

    def finish(self, found: Candidate, ridge: Vector) -> Candidate:
        """As it is, since it was finished in its panel; unless columns have ridges of their own."""
        if len(ridge) == 0 or np.all(ridge == ridge[0]):
            return found
        return self._finished_alone(found, ridge, found.u)

    def finish_from_zero(self, found: Candidate, ridge: Vector) -> Candidate:
        return self._finished_alone(found, ridge, np.zeros_like(found.u))

    def _finished_alone(self, found: Candidate, ridge: Vector, u: Vector) -> Candidate:
        """By a panel that has only the columns of this support."""
        k = len(found.support)
        columns = RemoteColumns(self.make_rows(found.support, k), np.arange(k + 1))
        u, value, _ = newton_by_least_squares(columns, np.append(ridge, self.make_ridge(0.0, 0)[0]), u)
        return found._replace(u=u, value=value)

    def objective(self, found: Candidate, lam: float) -> float:
        w = np.zeros(self.n_features)
        w[found.support] = found.u[:-1]
        beta = np.append(w, found.u[-1]) if self.X.fit_intercept else w
        return self.X.loss_and_gradient(beta)[0] + 0.5 * float(np.sum((np.sqrt(lam) * w) ** 2))


@sign.register
def fold_block_problem(problem: BlockProblem) -> Signed:
    return SignedBlocks(problem.design)


class RemoteRows(Remote):
    """Knows where the rows are (a point u), and what they last said there.

    Nothing is remembered beside the blocks but the panel: every question carries the point with it.
    """

    def __init__(self, panel: Held, size: int, n_samples: int) -> None:
        self.panel, self.size, self.n_samples = panel, size, n_samples
        self.idx: Indices | None = None  # the point; None while all rows are active
        self.u: Vector | None = None
        self.tag: Any = None  # of the rows that are active
        self.d: Vector = np.empty(0)  # the step looked along
        self.here: sums.Answer | None = None  # at the point
        self.ahead: sums.Answer | None = None  # a full step away

    def n_columns(self) -> int:
        return self.size

    def cost_of_try(self, k: int) -> float:
        """As for rows at hand, so that the search is the same, wherever it asks."""
        return cost_of_refit(self.n_samples, k)

    def companion(self) -> "RemoteRows":
        other = RemoteRows(self.panel, self.size, self.n_samples)
        other.start_over(self)
        return other

    def start_over(self, others: "RemoteRows") -> None:
        self.panel, self.idx, self.u, self.tag = others.panel, others.idx, others.u, others.tag

    def place(self, idx: Indices, u: Vector) -> None:
        self._go(idx, u)
        self.tag = None  # not known yet

    def take_gram(self, gram: Matrix) -> None:
        answers = self.panel.ask(sums.full_gram, self.idx, self.u)
        gram[:] = add_up([matrix for matrix, _ in answers])
        self.tag = tuple(tag for _, tag in answers)

    def retake_gram(self, places: Indices, others: Indices, gram: Matrix) -> None:
        self.take_gram(gram)

    def follow(self, others: "RemoteRows", gram: Matrix) -> None:
        stays = others.tag is not None and others.tag == self.tag
        self.start_over(others)
        if not stays:
            self.take_gram(gram)

    def move_to(self, idx: Indices, u: Vector) -> float:
        self._go(idx, u)
        self.here = self._ask(idx, u)
        return self.here.loss

    def look_along(self, idx: Indices, d: Vector) -> float:
        assert self.u is not None
        self.d = d.copy()
        self.ahead = self._ask(idx, self.u + d)
        return 2.0 * self.ahead.loss

    def slope_along(self, t: float, slope: float, curve: float) -> tuple[float, float]:
        more_slope, more_curve = add_up(self.panel.ask(sums.slope_along, self.idx, self.u, self.d, t))
        return slope + more_slope, curve + more_curve

    def advance(self, t: float) -> None:
        assert self.idx is not None
        assert self.u is not None
        self.u = self.u + t * self.d
        self.here = self.ahead if t == 1.0 else self._ask(self.idx, self.u)

    def loss_here(self) -> float:
        assert self.here is not None
        return self.here.loss

    def renew_system(self, idx: Indices, H: Matrix, z: Vector) -> bool:
        assert self.here is not None
        changed = self.here.tag != self.tag
        H[:], z[:], self.tag = self.here.H, self.here.z, self.here.tag
        return changed

    def _go(self, idx: Indices, u: Vector) -> None:
        self.idx, self.u = idx.copy(), u.copy()

    def slack(self, idx: Indices, ridge: Vector, u: Vector) -> float:
        """What single coefficients could lower the objective at a point by."""
        pulls, bends = add_up(self.panel.ask(sums.pulls_and_bends, idx, u))
        slope, bend = ridge * u - pulls, ridge + bends
        return 0.5 * float(np.sum(np.divide(slope**2, bend, out=np.zeros(len(u)), where=bend > 0)))

    def _ask(self, idx: Indices, u: Vector) -> sums.Answer:
        answers = self.panel.ask(sums.evaluate, idx, u)
        loss, H, z = (add_up([answer[entry] for answer in answers]) for entry in range(3))
        return sums.Answer(loss, H, z, tuple(answer.tag for answer in answers))


class RemoteColumns:
    """Some columns of a panel that is elsewhere, as least squares ask for them."""

    def __init__(self, rows: RemoteRows, idx: Indices) -> None:
        self.rows, self.idx = rows, idx

    def squares(self) -> Vector:
        return add_up(self.rows.panel.ask(sums.column_squares, self.idx))

    def loss(self, u: Vector) -> float:
        return self.rows.move_to(self.idx, u)

    def active_rows(self, u: Vector, nearly: float = 0.0) -> tuple[Matrix, Vector]:
        triangles = np.vstack(self.rows.panel.ask(sums.triangle, self.idx, u, nearly))
        return triangles[:, :-1], triangles[:, -1]

    def exact_step(self, u: Vector, d: Vector, ud: float, dd: float) -> float:
        self.rows.move_to(self.idx, u)
        self.rows.d = d
        return exact_step(self.rows, ud, dd)  # type: ignore[arg-type]


# A mean so many times the spread of its column costs the digits of its square.
FAR = 1e3

# The root of a ridge in a column's own unit, at most. One that is stronger leaves nothing of a coefficient.
STRONGEST = 1e150

# By so much, relatively, an objective tells in which units it was taken.
TELLS = 1e-9


class Measured:
    """A problem as the search sees it.

    Ordinary columns are left as they are. One that is very large or very small is divided by a power of
    two; one whose mean is far from 0, beside its spread, is centred, which the intercept makes up for. The
    search takes one ridge for all columns; in units of its own a column would have another, which for a
    very large one is next to nothing, and for a very small one so strong that it is of no use. What is found
    is finished with each column's own ridge (`ridge`).
    """

    def __init__(self, problem: Problem) -> None:
        self.given = self.design = sign(problem)
        self.measures = take_measures(problem, self.design)
        if self.measures is not None:
            self.design = sign(replace(problem, design=self.measures.apply(problem.design)))

    def ridge(self, lam: float, support: Indices) -> Vector:
        """Of each column of a support, in its unit."""
        if self.measures is None:
            return np.full(len(support), lam)
        return np.minimum(np.sqrt(lam) / self.measures.units[support], STRONGEST) ** 2

    def finish(self, lam: float, found: Candidate) -> Candidate:
        """At its minimum, each column with its own ridge.

        Where that costs what the search did not count, or cannot be had in numbers, other supports may be
        better: nothing is claimed.
        """
        after = self.design.finish(found, self.ridge(lam, found.support))
        return after._replace(all_tried=after.all_tried and is_as_good(after.value, found.value))

    def enter(self, found: Candidate) -> Candidate:
        """What was given for the columns as they are, for those of the search."""
        if self.measures is None:
            return found
        return found._replace(u=np.append(*self.measures.enter(found.support, found.u[:-1], found.u[-1])))

    def leave(self, lam: float, found: Candidate, keep_signs: bool = False) -> Candidate:
        """What the search has found, for the columns as they are; its objective is that of what is left.

        Coefficients that nearly cancel each other lose their digits in the columns as they are. Then the
        smallest that do as well serve better, unless their signs have to stay.
        """
        if self.measures is None:
            return found._replace(doubt=self.doubt(found.support, found.u, found.value))
        left = self._left(lam, found)
        if not keep_signs and left.value > found.value + TELLS * (found.value + NO_LOSS):
            smallest = self.design.finish_from_zero(found, self.ridge(lam, found.support))
            left = min(left, self._left(lam, smallest), key=lambda f: f.value)
        return left._replace(doubt=self.doubt(left.support, left.u, left.value))

    def doubt(self, support: Indices, u: Vector, value: float) -> float:
        """By how much rounding of decision values may change an objective, at most, for the columns given.

        A decision value is wrong by a digit of the sum of its terms' magnitudes; and the norm of a sum, over
        the weighted rows, is no larger than the sum of norms. Where large terms cancel, that is what the loss
        may be made of.
        """
        with np.errstate(over="ignore"):
            return doubt_of(float(np.abs(u[:-1]) @ self._norms[support] + abs(u[-1])), value)

    @cached_property
    def _norms(self) -> Vector:
        """Of the columns given, over the weighted rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(self.design.variance + self.design.mean**2)
            if self.measures is not None:
                norms = self.measures.units * norms + np.abs(self.measures.centers)
        return norms

    def _left(self, lam: float, found: Candidate) -> Candidate:
        assert self.measures is not None
        # next to nothing in a unit next to nothing may be a coefficient that costs its ridge
        coef = np.where(self.ridge(lam, found.support) < STRONGEST**2, found.u[:-1], 0.0)
        u = np.append(*self.measures.leave(found.support, coef, found.u[-1]))
        left = found._replace(u=u)
        return left._replace(value=self.given.objective(left, lam))


def is_as_good(after: float, before: float) -> bool:
    """Whether an objective is what it was said to be, or lower."""
    return after * BETTER <= before + NO_LOSS


def take_measures(problem: Problem, design: Signed) -> Affine | None:
    """Centres and units of the columns; None if all can stay as they are.

    Variances tell which columns need a closer look. They are NaN where a sum has overflown, 0 for constant
    columns as for very small ones, and far below the squared mean where they have lost their digits.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance, mean = design.variance, design.mean
        ordinary = can_be_squared(variance)
        ordinary &= np.abs(mean) <= FAR * np.sqrt(variance)
    odd = np.flatnonzero(~ordinary)
    if len(odd) == 0:
        return None
    columns = problem.design.subset(odd)
    largest = columns.largest()
    beyond = np.maximum(largest / LARGEST, 1.0)
    tiny = (largest > 0) & (largest < SMALLEST)
    beyond[tiny] = largest[tiny] / SMALLEST
    centers, units = np.zeros(len(variance)), np.ones(len(variance))
    units[odd] = power_of_two(beyond)
    if problem.design.fit_intercept:
        columns = columns.in_units_of(units[odd])
        mean, variance, _ = replace(problem, design=columns).moments()
        # by their values, not by their spread: that may be small because one row has nearly all of the weight
        varies = columns.standardized(mean, np.ones(len(odd))).largest() > VARIES * np.abs(mean)
        far = varies & (np.abs(mean) > FAR * np.sqrt(variance))
        centers[odd] = np.where(far, mean * units[odd], 0.0)
    return Affine(centers, units) if centers.any() or (units != 1.0).any() else None
