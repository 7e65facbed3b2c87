"""The exact minimum on a support whose coefficients may only be positive, or only negative.

`signs` has an entry for each coefficient: +1 where it may not be negative, -1 where it may not be positive,
0 where it is free, as the intercept is. Every step of Newton's method goes to the minimum that the
quadratic on the active rows has under these signs. That is found by an active set: the coefficients at their
bound are left out, the others are minimised; who would change its sign comes to its bound, who would
lower the quadratic by leaving it is released. The quadratic falls with each turn, so there is an end.
"""

import numpy as np

from kmargin.jit import compiled, either
from kmargin.solvers.ending import SLACK, Columns, newton_by_least_squares
from kmargin.solvers.linalg import U64, cholesky, solve
from kmargin.solvers.newton import (
    MAX_STEPS,
    NO_LOSS,
    NOTHING,
    ROUNDING,
    part_of_gram,
    ridge_terms,
    take_step,
)
from kmargin.solvers.rows import Rows, move_to, renew_system
from kmargin.types import Flags, Indices, Matrix, Vector

# A slope below this share of the terms that it is the sum of is rounding.
FLAT = 1e-13

# Systems solved for one minimum under signs, at most, for each coefficient. A few in all is what it takes.
TURNS = 10


@compiled
def pull_at(H: Matrix, z: Vector, ridge: Vector, idx: Indices, x: Vector, pull: Vector) -> None:
    """pull <- z - (H + ridge) x, the way down the quadratic. H holds an upper triangle."""
    k = idx.size
    for a in range(k):
        pull[a] = z[a] - (H[a, a] + ridge[idx[a]]) * x[a]
    for a in range(k):
        row, total, at = U64(a), 0.0, x[a]
        for b in range(U64(a + 1), U64(k)):
            total += H[row, b] * x[b]
        for b in range(U64(a + 1), U64(k)):
            pull[b] -= H[row, b] * at
        pull[a] -= total


@compiled
def release(H: Matrix, z: Vector, x: Vector, pull: Vector, signs: Vector, free: Flags) -> bool:
    """Free the coefficients that are at their bound and pulled to the right side of it; False if none is."""
    k = x.size
    any_freed = False
    for a in range(k):
        if free[a] or not signs[a] * pull[a] > 0.0:
            continue
        size = abs(z[a])
        for b in range(k):
            size += abs((H[a, b] if a <= b else H[b, a]) * x[b])
        if abs(pull[a]) > FLAT * size:
            free[a] = any_freed = True
    return any_freed


@compiled
def go_within(x: Vector, step: Vector, places: Indices, m: int, signs: Vector, free: Flags) -> float:
    """Take as much of a step of the coefficients places[:m] as the signs allow, all of it at most; how much.

    Those that stop it are 0 then, and no longer free.
    """
    t = 1.0
    for i in range(m):
        a = places[i]
        if signs[a] * (x[a] + step[i]) < 0.0:
            t = min(t, x[a] / -step[i])
    for i in range(m):
        a = places[i]
        if signs[a] * (x[a] + step[i]) < 0.0 and x[a] / -step[i] <= t:
            x[a], free[a] = 0.0, False
        else:
            x[a] += t * step[i]
    return t


@compiled
def bounded_direction(
    H: Matrix, z: Vector, ridge: Vector, idx: Indices, u: Vector, signs: Vector, U: Matrix, d: Vector
) -> tuple[float, bool]:
    """d, the way from u to the minimum of the quadratic under the signs, which u has.

    Returns by how much the quadratic falls on that way, and whether it leads to the minimum indeed; U is a
    work array.
    """
    k = idx.size
    x, pull, step, dead = u.copy(), np.empty(k), np.empty(k), np.empty(k)
    places, free = np.empty(k, np.int64), np.empty(k, np.bool_)
    for a in range(k):
        free[a] = signs[a] == 0.0 or u[a] != 0.0
    pull_at(H, z, ridge, idx, u, pull)
    release(H, z, u, pull, signs, free)
    promise, promised, is_minimum = 0.0, -1.0, False
    for _ in range(TURNS * (k + 1)):
        m = 0
        for a in range(k):
            if free[a]:
                places[m], step[m] = a, pull[a]
                m += 1
        for i in range(m):
            for j in range(i, m):
                U[i, j] = H[places[i], places[j]]
            U[i, i] += ridge[idx[places[i]]]
        cholesky(U, m, dead)
        solve(U, m, dead, step)
        fall = 0.0
        for i in range(m):
            fall += step[i] * pull[places[i]]
        t = go_within(x, step, places, m, signs, free)
        promise += t * (1.0 - 0.5 * t) * fall
        if t < 1.0:
            pull_at(H, z, ridge, idx, x, pull)
            continue
        if m == k:
            is_minimum = True
            break
        pull_at(H, z, ridge, idx, x, pull)
        # what is released without effect was held by rounding alone
        if not promise > promised or not release(H, z, x, pull, signs, free):
            is_minimum = True
            break
        promised = promise
    for a in range(k):
        d[a] = x[a] - u[a]
    return promise, is_minimum


@either
def objective_at(rows: Rows, ridge: Vector, idx: Indices, u: Vector) -> float:
    """Go to u; the objective there."""
    uu, _, _ = ridge_terms(ridge, idx, u, u)
    return move_to(rows, idx, u) + 0.5 * uu


@either
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
    U, d, there = np.empty((k, k)), np.empty(k), np.empty(k)
    for a in range(k):
        if signs[a] * u[a] < 0.0:
            u[a] = 0.0
    value = objective_at(rows, ridge, idx, u)
    for n_iter in range(MAX_STEPS):
        promise, is_minimum = bounded_direction(H, z, ridge, idx, u, signs, U, d)
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
            # both ends of a full step have the signs, and so has all that lies between
            new_value, full, last = take_step(rows, ridge, idx, u, d, promise, value, tol, 1.0)
            if not (full or new_value < value):  # nothing left but rounding
                return value, n_iter
            value = new_value
        stays = not renew_system(rows, idx, H, z)
        if last or (stays and full and is_minimum):
            return value, n_iter + 1
    return value, MAX_STEPS


class FreeColumns:
    """Some columns of a support, as `newton_by_least_squares` asks for them; the others count 0 times."""

    def __init__(self, columns: Columns, free: Flags) -> None:
        self.columns, self.free = columns, free

    def squares(self) -> Vector:
        return self.columns.squares()[self.free]

    def loss(self, u: Vector) -> float:
        return self.columns.loss(self._among_all(u))

    def active_rows(self, u: Vector) -> tuple[Matrix, Vector]:
        rows, resid = self.columns.active_rows(self._among_all(u))
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
        places = np.flatnonzero(free)
        there, *_ = newton_by_least_squares(FreeColumns(columns, free.copy()), ridge[free], x[free])
        if go_within(x, there - x[free], places, len(places), signs, free) < 1.0:
            continue
        x[places] = np.where(signs[places] * there < 0, 0.0, there)  # to the last digit
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
