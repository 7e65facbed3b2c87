"""Panels of the same columns for several binary problems that share their units."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled, compiled_or_remote
from kmargin.core.linalg import dot
from kmargin.core.loss import inlined
from kmargin.core.units import Units
from kmargin.solvers.refit.folded import Candidate, Signed
from kmargin.solvers.refit.newton import (
    MAX_NEWTON_STEPS,
    Rows,
    companion,
    cost_of_refit,
    follow,
    newton_from_gram,
    place,
    residual,
    resume,
    retake_gram,
    start_over,
)
from kmargin.solvers.refit.signs import newton_bounded
from kmargin.solvers.search.swap_scores import (
    factor_block,
    schur_blocks,
    score,
    score_columns,
    score_units,
    solve_forward,
)
from kmargin.solvers.search.swap_search import far_newton, far_score
from kmargin.solvers.solution import Regime
from kmargin.solvers.solver import HOPELESS

NONE: Indices = np.empty(0, np.int64)


class JointFound(NamedTuple):
    """Units, and the coefficients of their columns in each machine."""

    support: Indices  # units, in the order of the search
    parts: tuple[Vector, ...]  # of each machine: coefficients unit by unit, then the intercept
    value: float  # the weighted sum of the machines' objectives
    all_tried: bool = False  # every exchange of one unit for another, in vain
    regime: Regime | None = None
    values: tuple[float, ...] = ()  # of each machine; none where it is only a start

    @classmethod
    def start(cls, support: Indices, units: Units, n_machines: int) -> "JointFound":
        """These units, with coefficients 0."""
        u = np.zeros(int(units.sizes[support].sum()) + 1)
        return cls(support, (u,) * n_machines, np.inf)


class Places:
    """Which columns of X the places of a panel hold: those of some units."""

    def __init__(self, units: Units, size: int) -> None:
        self.units, self.size = units, size
        self.contents = np.full(size, -1)  # the column at each place; -1 if it is empty
        self.place_of = np.full(units.n_features, -1)  # of each column; -1 if it has none
        self.held = np.zeros(units.n_units, np.bool_)  # which units have places

    def give(self, units: Indices, but_not_of: Indices = NONE) -> Indices:
        """Empty places to these units, in order; those that were given.

        If there are too few, all units have to leave but those named.
        """
        columns = self.units.columns_of(units)
        empty = np.flatnonzero(self.contents < 0)
        if len(empty) < len(columns):
            leaves = self.held.copy()
            leaves[but_not_of] = False
            self._empty(np.flatnonzero(leaves))
            empty = np.flatnonzero(self.contents < 0)
        places = empty[: len(columns)]
        self.held[units], self.place_of[columns], self.contents[places] = True, places, columns
        return places

    def filled(self) -> Indices:
        """Places of a panel that hold something: those of columns, of the intercept and of the target."""
        return np.concatenate((np.flatnonzero(self.contents >= 0), [self.size, self.size + 1]))

    def _empty(self, units: Indices) -> None:
        """Those of these units."""
        columns = self.units.columns_of(units)
        self.contents[self.place_of[columns]] = -1
        self.held[units], self.place_of[columns] = False, -1


def by_turns(lists: Sequence[Indices]) -> Indices:
    """The first of each list, then the second of each, and so on; what comes again is left out."""
    longest = max(len(units) for units in lists)
    padded = np.full((longest, len(lists)), -1)
    for number, units in enumerate(lists):
        padded[: len(units), number] = units
    found, first = np.unique(padded, return_index=True)
    return padded.ravel()[np.sort(first[found >= 0])]


@compiled
def locate(
    starts: Indices, columns: Indices, place_of: Indices, end: int, units: Indices
) -> tuple[Indices, Indices]:
    """The places of the columns of units, then the intercept's, `end`; where each unit begins among them.

    Unit j is columns[starts[j]:starts[j + 1]].
    """
    begins = np.zeros(units.size + 1, np.int64)
    for a in range(units.size):
        begins[a + 1] = begins[a] + starts[units[a] + 1] - starts[units[a]]
    idx = np.empty(begins[units.size] + 1, np.int64)
    for a in range(units.size):
        for i in range(begins[a + 1] - begins[a]):
            idx[begins[a] + i] = place_of[columns[starts[units[a]] + i]]
    idx[begins[units.size]] = end
    return idx, begins


@compiled
def rearrange(
    starts: Indices,
    columns: Indices,
    place_of: Indices,
    end: int,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
) -> tuple[Indices, Indices, Matrix]:
    """After an exchange of units: the support, where its columns are, then the intercept's place, `end`;
    and their coefficients in each machine, 0 for those that are new.

    Unit j is columns[starts[j]:starts[j + 1]]; it leaves if its place in the support is in `lose`.
    """
    stays = np.ones(support.size, np.bool_)
    for a in range(lose.size):
        stays[lose[a]] = False
    n_units = support.size - lose.size + take.size
    chosen, size, m = np.empty(n_units, np.int64), 0, 0
    for a in range(support.size):
        if stays[a]:
            chosen[m] = support[a]
            m += 1
    for b in range(take.size):
        chosen[m + b] = take[b]
    for a in range(n_units):
        size += starts[chosen[a] + 1] - starts[chosen[a]]
    moved = np.zeros((coefs.shape[0], size + 1))
    at, before = 0, 0
    for a in range(support.size):
        width = starts[support[a] + 1] - starts[support[a]]
        if stays[a]:
            for number in range(coefs.shape[0]):
                for i in range(width):
                    moved[number, at + i] = coefs[number, before + i]
            at += width
        before += width
    for number in range(coefs.shape[0]):
        moved[number, size] = coefs[number, before]
    return chosen, locate(starts, columns, place_of, end, chosen)[0], moved


class Stack(NamedTuple):
    """What `Rows` holds of one machine, of all of them, one after another; see there."""

    starts: Indices  # machine m has the rows starts[m] to starts[m + 1]
    panel: Vector
    active: Flags
    resid: Vector
    delta: Vector
    changed: Indices
    signs: Vector
    tried_active: Flags  # where a point is tried
    tried_resid: Vector
    gram: Matrix  # of each machine
    ridge: Matrix
    weights: Vector


def make_stack(n_samples: Sequence[int], n_places: int, weights: Sequence[float]) -> Stack:
    """Room for so many columns of machines with so many rows."""
    starts = np.concatenate([[0], np.cumsum(n_samples)]).astype(np.int64)
    n, height, n_machines = int(starts[-1]), n_places + 2, len(n_samples)
    numbers = np.empty((4, n))
    return Stack(
        starts,
        np.empty(height * n),
        np.ones(n, np.bool_),
        numbers[0],
        numbers[1],
        np.empty(n, np.int64),
        numbers[2],
        np.ones(n, np.bool_),
        numbers[3],
        np.empty((n_machines, height, height)),
        np.empty((n_machines, height)),
        np.array(weights, np.float64),
    )


@inlined
def rows_of(stack: Stack, number: int) -> Rows:
    """The rows of one machine."""
    first, last, height = stack.starts[number], stack.starts[number + 1], stack.ridge.shape[1]
    return Rows(
        stack.panel[height * first : height * last].reshape((height, last - first)),
        stack.active[first:last],
        stack.resid[first:last],
        stack.delta[first:last],
        stack.changed[first:last],
        stack.signs[first:last],
    )


@inlined
def tried_rows_of(stack: Stack, number: int) -> Rows:
    """The same rows, to try another point with."""
    first, last, height = stack.starts[number], stack.starts[number + 1], stack.ridge.shape[1]
    return Rows(
        stack.panel[height * first : height * last].reshape((height, last - first)),
        stack.tried_active[first:last],
        stack.tried_resid[first:last],
        stack.delta[first:last],
        stack.changed[first:last],
        stack.signs[first:last],
    )


@compiled_or_remote
def refit_each(
    stack: Stack,
    far: Indices,
    idx: Indices,
    coefs: Matrix,
    give_up: float,
    limit: float,
    tol: float,
    values: Vector,
) -> tuple[float, int]:
    """Refit machine after machine on the columns idx, from coefs, until their sum is no longer below a limit.

    There is none if it is not a number. Returns the sum, and the Newton steps. The sum is infinite if steps
    ran out below a limit: what more of them gain is not to be taken for what an exchange gains.
    """
    total, n_newton = 0.0, 0
    for number in range(values.size):
        rows, weight = tried_rows_of(stack, number), stack.weights[number]
        rows.active[:] = stack.active[stack.starts[number] : stack.starts[number + 1]]
        value, n_iter = far_newton(
            far[0], rows, stack.ridge[number], stack.gram[number], idx, coefs[number],
            (give_up - total) / weight, tol,
        )  # fmt: skip
        values[number] = weight * value
        total += values[number]
        n_newton += n_iter
        if n_iter == MAX_NEWTON_STEPS and limit == limit:
            total = np.inf
        if total >= limit or (total != total and limit == limit):
            break
    return total, n_newton


@compiled_or_remote
def follow_each(stack: Stack) -> None:
    """Bring the Gram matrices to where the points tried last have their active rows."""
    for number in range(stack.weights.size):
        follow(rows_of(stack, number), tried_rows_of(stack, number), stack.gram[number])


@compiled_or_remote
def exchange_each(
    stack: Stack,
    far: Indices,
    starts: Indices,
    columns: Indices,
    place_of: Indices,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
    give_up: float,
    limit: float,
    tol: float,
    values: Vector,
) -> tuple[int, Indices, Matrix, int]:
    """Try exchanges in turn, lose[turn] for take[turn], until one stays below the limit, and make that one.

    Any does if the limit is not a number. Returns which it was, -1 if none, -2 if that is not known of all;
    the support and the coefficients then, and the Newton steps. Unit j is columns[starts[j]:starts[j + 1]].
    """
    n_newton, none = 0, -1
    for turn in range(lose.shape[0]):
        chosen, idx, moved = rearrange(
            starts, columns, place_of, stack.ridge.shape[1] - 2, support, coefs, lose[turn], take[turn]
        )
        total, n_iter = refit_each(stack, far, idx, moved, give_up, limit, tol, values)
        n_newton += n_iter
        if total < limit or limit != limit:
            follow_each(stack)
            return turn, chosen, moved, n_newton
        if total == np.inf:
            none = -2
    return none, support, coefs, n_newton


@compiled_or_remote
def go_to_each(stack: Stack, idx: Indices, coefs: Matrix, is_placed: bool, filled: Indices) -> None:
    """Another support, from another if there was one; `filled` are the places that have columns."""
    for number in range(stack.weights.size):
        rows, gram = rows_of(stack, number), stack.gram[number]
        if is_placed:
            resume(rows, idx, coefs[number], gram)
        else:
            place(rows, idx, coefs[number])
            gram[:, :] = 0.0
            retake_gram(rows, filled, filled, gram)


@compiled_or_remote
def retake_each(stack: Stack, places: Indices, filled: Indices) -> None:
    """The Gram matrices after other columns were given to these places."""
    for number in range(stack.weights.size):
        retake_gram(rows_of(stack, number), places, filled, stack.gram[number])


@compiled_or_remote
def residual_each(stack: Stack, idx: Indices, coefs: Matrix) -> None:
    """Of all rows, beside columns at idx with these coefficients."""
    for number in range(stack.weights.size):
        rows = rows_of(stack, number)
        residual(rows.panel, idx, coefs[number], rows.resid)


class StackedScores(NamedTuple):
    """What `scores.score` says of the columns of each machine; see there."""

    spread: Matrix
    grad: Matrix
    schur: Matrix
    R: Matrix
    inverse: Matrix


@compiled_or_remote
def score_each(
    stack: Stack,
    far: Indices,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    lose_starts: Indices,
    take_starts: Indices,
) -> tuple[Vector, Vector, Matrix, StackedScores]:
    """What exchanges of units do, summed over the machines: costs, gains, changes; of each machine what that
    is made of.

    The columns at idx and at `outside` are unit after unit, each beginning where the starts say.
    """
    n_machines, k, m = stack.weights.size, idx.size, outside.size
    drop, gain = np.zeros(lose_starts.size - 1), np.zeros(take_starts.size - 1)
    change = np.zeros((drop.size, gain.size))
    scores = StackedScores(
        np.empty((n_machines, k)),
        np.empty((n_machines, m)),
        np.empty((n_machines, m)),
        np.empty((n_machines, k, m)),
        np.empty((n_machines, k, k)),
    )
    dropped, gained = np.empty(k), np.empty(m)  # of one machine, by what is added up below
    inside, at = np.arange(k - 1), np.arange(m)
    singles = drop.size == inside.size and gain.size == at.size
    S = np.empty((0, 0) if singles else (m, m))
    for number in range(n_machines):
        weight = stack.weights[number]
        far_score(
            far[1], stack.ridge[number], idx, coefs[number], stack.gram[number], outside, dropped,
            scores.spread[number], gained, scores.grad[number], scores.schur[number], scores.R[number],
            scores.inverse[number],
        )  # fmt: skip
        if singles:
            score_columns(
                coefs[number], scores.spread[number], scores.grad[number], scores.schur[number],
                scores.R[number], weight, drop, gain, change,
            )  # fmt: skip
        else:
            schur_blocks(
                stack.gram[number], stack.ridge[number], idx, outside, scores.R[number], take_starts, S
            )
            score_units(
                coefs[number], scores.inverse[number], scores.grad[number], S, scores.R[number], inside,
                lose_starts, at, take_starts, weight, drop, gain, change,
            )  # fmt: skip
    return drop, gain, change, scores


# Numbers that the covariances may have for each column there is. Groups of unequal size all have as many as
# the largest.
MOST_PER_COLUMN = 64

# By this share a variance is raised, so that a matrix has an inverse where columns repeat each other.
APART = 1e-9


class Promise:
    """Of the units of one machine."""

    def __init__(self, design: Signed, units: Units) -> None:
        self.design, self.units = design, units
        self.ridge = np.nan
        self.covariance = self._covariances(int(units.sizes.max()))

    def _covariances(self, widest: int) -> np.ndarray | None:
        """Of the columns of each unit, lower triangles; None where units are single columns, or X is not at
        hand.
        """
        at_hand, q = self.design.at_hand, len(self.units.columns)
        if widest == 1 or at_hand is None or self.units.n_units * widest**2 > MOST_PER_COLUMN * q:
            return None
        if not at_hand.fits(q * at_hand.n_samples):
            return None
        A = np.empty((q, at_hand.n_samples))
        at_hand.X.fill_panel(self.units.columns, at_hand.c, np.arange(q), A)
        covariance = np.zeros((self.units.n_units, widest, widest))
        take_covariances(A, at_hand.c, at_hand.mean[self.units.columns], self.units.starts, covariance)
        return covariance

    def go_to(self, ridge: float) -> None:
        """Another ridge."""
        if ridge == self.ridge:
            return
        self.ridge, bend = ridge, self.design.variance + ridge
        with np.errstate(over="ignore"):  # a column that hardly varies promises without end
            self.by_column = np.divide(1.0, bend, out=np.zeros(len(bend)), where=bend > 0)
        if self.covariance is not None:
            self.factors = np.empty_like(self.covariance)
            factor_each(self.covariance, self.units.sizes, ridge, self.factors)

    def add_gains(self, slopes: Vector, weight: float, out: Vector) -> None:
        """To what units promise is added `weight` times what they do in this machine, doubled."""
        if self.covariance is None:
            add_squares(slopes, self.units.starts, self.units.columns, self.by_column, weight, out)
        else:
            add_quadratic_forms(slopes, self.units.starts, self.units.columns, self.factors, weight, out)


@compiled
def add_squares(
    slopes: Vector, starts: Indices, columns: Indices, scale: Vector, weight: float, out: Vector
) -> None:
    """Of each unit: the sum of the squared slopes of its columns, each times a number of its own."""
    for unit in range(out.size):
        total = 0.0
        for i in range(starts[unit], starts[unit + 1]):
            slope = slopes[columns[i]]
            total += slope * slope * scale[columns[i]]
        out[unit] += weight * total


@compiled
def add_quadratic_forms(
    slopes: Vector, starts: Indices, columns: Indices, factors: np.ndarray, weight: float, out: Vector
) -> None:
    """Of each unit g'A^-1 g, with the slopes g of its columns and the factor of its own A."""
    x = np.empty(factors.shape[1])
    for unit in range(out.size):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for i in range(size):
            x[i] = slopes[columns[first + i]]
        out[unit] += weight * solve_forward(factors[unit], size, x)


@compiled
def take_covariances(A: Matrix, c: Vector, mean: Vector, starts: Indices, out: np.ndarray) -> None:
    """Of the rows of A, once c times their mean is taken from them, in place: those of one unit."""
    n = c.size
    for j in range(mean.size):
        for i in range(n):
            A[j, i] -= mean[j] * c[i]
    for unit in range(starts.size - 1):
        first = starts[unit]
        for a in range(starts[unit + 1] - first):
            for b in range(a + 1):
                out[unit, a, b] = dot(A[first + a], A[first + b])


@compiled
def factor_each(covariance: np.ndarray, sizes: Indices, ridge: float, out: np.ndarray) -> None:
    """Each covariance with a ridge, raised a little, so that it has an inverse; 1 where nothing varies."""
    diagonal = np.empty(covariance.shape[1])
    for unit in range(sizes.size):
        for a in range(sizes[unit]):
            for b in range(a + 1):
                out[unit, a, b] = covariance[unit, a, b]
            raised = ridge + APART * covariance[unit, a, a]
            out[unit, a, a] += raised if raised > 0.0 else 1.0
            diagonal[a] = out[unit, a, a]
        factor_block(out[unit], sizes[unit], diagonal)


# What asking a machine costs beside its multiplications, in multiplications.
CALL = 2e4


class Ratio(NamedTuple):
    """One number beside another, which may be further apart than numbers reach: digits times 2^exponent."""

    digits: float = 1.0
    exponent: int = 0

    @classmethod
    def of(cls, one: float, other: float) -> "Ratio":
        """Nothing beside nothing is as large."""
        if other == 0 or one == np.inf:
            return cls(np.inf if one > 0 else 1.0)
        (digits, exponent), (other_digits, other_exponent) = np.frexp(one), np.frexp(other)
        return cls(float(digits / other_digits), int(exponent) - int(other_exponent))

    def times(self, number: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.ldexp(number * self.digits, self.exponent)) if self.digits < np.inf else np.inf

    def under(self, number: float) -> float:
        """The number divided by this; inf beside nothing."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(number / self.digits, -self.exponent)) if self.digits > 0 else np.inf


class Member(NamedTuple):
    """A machine among others: its rows, and by how much its objective counts."""

    design: Signed
    weight: float
    ridge_ratio: Ratio = Ratio()  # its ridge, beside that which the search goes by

    def ridge(self, lam: float) -> float:
        """No stronger than what leaves nothing but the intercept: powers of it are numbers."""
        return min(self.ridge_ratio.times(lam), HOPELESS)


def joint_cost_of_try(members: Sequence[Member], n_columns: int) -> float:
    """About how many multiplications a refit of all machines takes."""
    return sum(CALL + cost_of_refit(member.design.n_samples, n_columns + 1) for member in members)


class ColumnScores(NamedTuple):
    """What `scores.score` says of the columns of one machine; see there."""

    spread: Vector
    grad: Vector
    schur: Vector
    R: Matrix
    inverse: Matrix  # U^-T; H^-1 is inverse.T @ inverse


class MachinePanel:
    """A panel of columns, and its Gram matrix over the rows that are active at some coefficients."""

    def __init__(
        self,
        member: Member,
        promise: Promise,
        columns: Indices,
        size: int,
        stack: Stack | None = None,
        number: int = 0,
    ) -> None:
        """In the memory of a stack, if one is given: there it has a number."""
        self.member, self.design, self.weight = member, member.design, member.weight
        self.promise = promise
        self.is_stacked = stack is not None
        if stack is None:
            self.rows = member.design.make_rows(columns, size, to_stay=True)
            self.scratch = companion(self.rows)
            self.gram, self.ridge = np.empty((size + 2, size + 2)), np.empty(size + 2)
        else:
            assert member.design.at_hand is not None
            self.rows, self.scratch = rows_of(stack, number), tried_rows_of(stack, number)
            self.gram, self.ridge = stack.gram[number], stack.ridge[number]
            member.design.at_hand.make_panel(columns, size, self.rows.panel)

    def set_ridge(self, lam: float) -> None:
        """The first machine's."""
        ridge = self.member.ridge(lam)
        self.ridge[:] = self.design.make_ridge(ridge, len(self.gram) - 2)
        self.promise.go_to(ridge)

    def go_to(self, idx: Indices, u: Vector, is_placed: bool, filled: Indices) -> None:
        """Another support, with coefficients u; those in a stack go together."""
        if is_placed:
            resume(self.rows, idx, u, self.gram)
        else:
            place(self.rows, idx, u)
            self.gram[:] = 0.0
            retake_gram(self.rows, filled, filled, self.gram)

    def fill(self, contents: Indices, places: Indices) -> None:
        """Other columns in some places."""
        self.rows = self.design.fill(self.rows, contents, places)
        if not self.is_stacked:
            self.scratch = companion(self.rows)

    def retake(self, places: Indices, filled: Indices) -> None:
        """The Gram matrix there, after a fill; those in a stack are retaken together."""
        retake_gram(self.rows, places, filled, self.gram)

    def refit(
        self, idx: Indices, u: Vector, signs: Vector | None, give_up: float, tol: float
    ) -> tuple[float, int]:
        """Try other columns from u, which is changed in place; the objective as it counts in the sum, and the
        Newton steps.
        """
        start_over(self.scratch, self.rows)
        give_up /= self.weight
        if signs is None:
            value, n_iter = newton_from_gram(self.scratch, self.ridge, self.gram, idx, u, give_up, tol)
        else:
            value, n_iter = newton_bounded(self.scratch, self.ridge, self.gram, idx, u, signs, give_up, tol)
        return self.weight * value, n_iter

    def keep(self) -> None:
        """Go to what was tried last; those in a stack follow together."""
        follow(self.rows, self.scratch, self.gram)

    def score(self, idx: Indices, u: Vector, outside: Indices) -> ColumnScores:
        """Of the columns at these places of the panel."""
        k, m = len(idx), len(outside)
        drop, spread, gain, grad, schur = np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m)
        R, inverse = np.empty((k, m)), np.empty((k, k))
        score(self.ridge, idx, u, self.gram, outside, drop, spread, gain, grad, schur, R, inverse)
        return ColumnScores(spread, grad, schur, R, inverse)

    def slopes_alone(self, idx: Indices, columns: Indices, u: Vector) -> Vector:
        """Of the loss with respect to each column, up to its sign, beside columns at idx."""
        return self.design.slopes_at(self.rows, idx, Candidate(columns, u, np.inf))

    def finish(self, idx: Indices, u: Vector, value: float, only_nonzero: bool) -> float:
        """Bring u to the minimum by the panel, in place; of nonzero coefficients only, if asked, unless one
        changes sign. The objective, before and after as it counts in the sum.
        """
        used = np.append(np.flatnonzero(u[:-1]), len(u) - 1) if only_nonzero else np.arange(len(idx))
        before = Candidate(idx[used][:-1], u[used], value / self.weight)
        (after,), _ = self.design.finish_in_panel(self.rows, self.ridge, [before])
        if only_nonzero and not np.array_equal(np.sign(after.u[:-1]), np.sign(before.u[:-1])):
            return value
        u[used] = after.u
        return self.weight * after.value
