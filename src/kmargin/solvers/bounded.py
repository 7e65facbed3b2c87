"""The exact minimum on a support whose coefficients may only be positive, or only negative.

`signs` has an entry for each coefficient, as in `bounded_quadratic`; that of the intercept is 0. Newton's
method as in `newton`, but that every step goes to the minimum that the quadratic on the active rows has
under the signs. Points that have the signs are a convex set, so that they hold all along a step.
"""

import numpy as np

from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.bounded_quadratic import TURNS, Quadratic, bounded_direction, go_within, hold, reach
from kmargin.solvers.ending import SLACK, Columns, newton_by_least_squares
from kmargin.solvers.newton import (
    MAX_NEWTON_STEPS,
    NO_LOSS,
    NOTHING,
    ROUNDING,
    part_of_gram,
    ridge_terms,
    take_step,
)
from kmargin.solvers.rows import Rows, move_to, renew_system
from kmargin.types import Flags, Indices, Matrix, Vector


@compiled_or_remote
def objective_at(rows: Rows, ridge: Vector, idx: Indices, u: Vector) -> float:
    """Go to u; the objective there."""
    uu, _, _ = ridge_terms(ridge, idx, u, u)
    return move_to(rows, idx, u) + 0.5 * uu


@compiled_or_remote
def newton_bounded(
    rows: Rows,
    ridge: Vector,
    gram: Matrix,
    idx: Indices,
    u: Vector,
    signs: Vector,
    give_up: float,
    tol: float,
) -> tuple[float, int]:
    """`newton_from_gram` under signs: the objective, and the number of steps; u and rows are brought along.

    From u, after its coefficients on the wrong side have become 0. All points on the way have the signs, and
    none is worse than the one before. As there, the first step comes from the Gram matrix alone; the rows it
    was taken over need not be those that are active at u, so that a step that leads upwards is left out.
    """
    k = idx.size
    H, z = part_of_gram(gram, idx)
    quadratic = Quadratic(H, z, ridge[idx])
    U, d, there = np.empty((k, k)), np.empty(k), np.empty(k)
    for a in range(k):
        if signs[a] * u[a] < 0.0:
            u[a] = 0.0
    value = objective_at(rows, ridge, idx, u)
    for n_iter in range(MAX_NEWTON_STEPS):
        promise, is_minimum = bounded_direction(quadratic, u, signs, U, d)
        if n_iter == 0:
            for a in range(k):
                there[a] = u[a] + d[a]
            new_value = objective_at(rows, ridge, idx, there)
            full, last = new_value <= value * (1.0 + ROUNDING), False
            if full:
                u[:], value = there, new_value
            else:
                move_to(rows, idx, u)
        else:
            if promise <= NOTHING * value or value < NO_LOSS or value - 2.0 * promise > give_up:
                return value, n_iter
            new_value, full, last = take_step(rows, ridge, idx, u, d, promise, value, tol, 1.0)
            if not (full or new_value < value):  # nothing left but rounding
                return value, n_iter
            value = new_value
        stays = not renew_system(rows, idx, H, z)
        if last or (stays and full and is_minimum):
            return value, n_iter + 1
    return value, MAX_NEWTON_STEPS


class FreeColumns:
    """Some columns of a support, as `newton_by_least_squares` asks for them; the others count 0 times."""

    def __init__(self, columns: Columns, free: Flags) -> None:
        self.columns, self.free = columns, free

    def squares(self) -> Vector:
        return self.columns.squares()[self.free]

    def loss(self, u: Vector) -> float:
        return self.columns.loss(self._among_all(u))

    def active_rows(self, u: Vector, nearly: float = 0.0) -> tuple[Matrix, Vector]:
        rows, resid = self.columns.active_rows(self._among_all(u), nearly)
        return rows[:, self.free], resid

    def exact_step(self, u: Vector, d: Vector, ud: float, dd: float) -> float:
        return self.columns.exact_step(self._among_all(u), self._among_all(d), ud, dd)

    def _among_all(self, u: Vector) -> Vector:
        everything = np.zeros(len(self.free))
        everything[self.free] = u
        return everything


def finish_bounded(columns: Columns, ridge: Vector, u: Vector, signs: Vector) -> tuple[Vector, float, float]:
    """Bring coefficients that have these signs to their minimum under them, by least squares.

    Returns the coefficients, the objective, which is not above that of u, and what single coefficients
    could still lower it by. The objective being convex, it falls all the way to the minimum over the free
    coefficients, and so as far as the signs allow.
    """

    def objective(x: Vector) -> float:
        return columns.loss(x) + 0.5 * float(np.sum((np.sqrt(ridge) * x) ** 2))

    free = (signs == 0) | (u != 0)
    best, value, x, is_start = u, objective(u), u.astype(np.float64), True
    for _ in range(TURNS * (len(u) + 1)):
        there = np.zeros(len(u))
        there[free], *_ = newton_by_least_squares(FreeColumns(columns, free.copy()), ridge[free], x[free])
        step = there - x
        t = reach(x, step, signs)
        if t < 1.0:
            go_within(x.copy(), step, t, signs, x)
            hold(x, step, signs, free)
            continue
        x = np.where(signs * there < 0, 0.0, there)  # to the last digit
        new_value = objective(x)
        if new_value < value:
            best, value = x.copy(), new_value
        elif not is_start:  # what was released was held by rounding alone
            break
        is_start = False
        released = ~free & (gains_of_singles(columns, ridge, x, signs) > SLACK * value)
        if not released.any():
            break
        free |= released
    return best, value, float(np.sum(gains_of_singles(columns, ridge, best, signs)))


def gains_of_singles(columns: Columns, ridge: Vector, u: Vector, signs: Vector) -> Vector:
    """What each coefficient by itself could lower the objective by, as far as its sign allows."""
    rows, resid = columns.active_rows(u)
    slope, bend = ridge * u - resid @ rows, ridge + np.sum(rows * rows, axis=0)
    step = np.divide(-slope, bend, out=np.zeros(len(u)), where=bend > 0)
    step = np.where(signs * (u + step) < 0, -u, step)
    return -step * (slope + 0.5 * bend * step)


def signed_gain(grad: Vector, schur: Vector, sign: Vector) -> Vector:
    """What taking each column gains, to second order, if its coefficient may only have that sign.

    `grad` and `schur` are those of `scores.score`. A column whose coefficient would come out on the wrong
    side gains nothing.
    """
    return np.where(sign * grad > 0, 0.0, 0.5 * grad * grad / schur)


@compiled
def fill_signed_gain(grad: Vector, schur: Vector, sign: Vector, gain: Vector) -> None:
    """The same, for compiled callers: `gain` is filled in."""
    for j in range(grad.size):
        gain[j] = 0.0 if sign[j] * grad[j] > 0.0 else 0.5 * grad[j] * grad[j] / schur[j]
