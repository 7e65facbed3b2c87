"""Newton's method for coefficients that may only be positive, or only negative."""

from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled, compiled_or_remote
from kmargin.core.linalg import U64, cholesky, solve
from kmargin.solvers.refit.newton import (
    MAX_NEWTON_STEPS,
    NO_LOSS,
    NOTHING,
    ROUNDING,
    Rows,
    move_to,
    part_of_gram,
    renew_system,
    ridge_terms,
    take_step,
)

# A slope below this share of the terms that it is the sum of is rounding.
FLAT = 1e-13

# Systems solved for one minimum, at most, for each coefficient. It takes a few in all.
TURNS = 10

# A step that bends at the bounds is tried so often, each time half as long.
HALVINGS = 10


class Quadratic(NamedTuple):
    """x'(H + ridge)x / 2 - z'x. H holds an upper triangle."""

    H: Matrix
    z: Vector
    ridge: Vector


@compiled
def pull_at(quadratic: Quadratic, x: Vector, pull: Vector) -> None:
    """pull <- z - (H + ridge) x, the way down at x."""
    H, z, ridge = quadratic
    k = x.size
    for a in range(k):
        pull[a] = z[a] - (H[a, a] + ridge[a]) * x[a]
    for a in range(k):
        row, total, at = U64(a), 0.0, x[a]
        for b in range(U64(a + 1), U64(k)):
            total += H[row, b] * x[b]
        for b in range(U64(a + 1), U64(k)):
            pull[b] -= H[row, b] * at
        pull[a] -= total


@compiled
def release(quadratic: Quadratic, x: Vector, pull: Vector, signs: Vector, free: Flags) -> bool:
    """Free the coefficients that are at their bound and pulled to the right side of it; False if none is."""
    H, z, _ = quadratic
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
def free_step(quadratic: Quadratic, pull: Vector, free: Flags, U: Matrix, step: Vector) -> float:
    """The step to the minimum over the free coefficients; by how much the quadratic falls there."""
    H, _, ridge = quadratic
    k, m = pull.size, 0
    places, packed, dead = np.empty(k, np.int64), np.empty(k), np.empty(k)
    for a in range(k):
        if free[a]:
            places[m], packed[m] = a, pull[a]
            m += 1
    for i in range(m):
        for j in range(i, m):
            U[i, j] = H[places[i], places[j]]
        U[i, i] += ridge[places[i]]
    cholesky(U, m, dead)
    solve(U, m, dead, packed)
    step[:], fall = 0.0, 0.0
    for i in range(m):
        step[places[i]] = packed[i]
        fall += 0.5 * packed[i] * pull[places[i]]
    return fall


@compiled
def reach(x: Vector, step: Vector, signs: Vector) -> float:
    """How much of a step, 1 at most, all coefficients can go before one meets its bound."""
    t = 1.0
    for a in range(x.size):
        if signs[a] * (x[a] + step[a]) < 0.0:
            t = min(t, x[a] / -step[a])
    return t


@compiled
def go_within(x: Vector, step: Vector, t: float, signs: Vector, there: Vector) -> None:
    """there <- x + t step, but exactly 0 where a coefficient meets its bound before, or there."""
    for a in range(x.size):
        if signs[a] * (x[a] + step[a]) < 0.0 and x[a] / -step[a] <= t:
            there[a] = 0.0
        else:
            there[a] = x[a] + t * step[a]


@compiled
def hold(x: Vector, step: Vector, signs: Vector, free: Flags) -> None:
    """Those that a step has brought to their bound, or would have taken beyond it, are free no longer.

    Others may be 0, too: those that were released and have not come away yet.
    """
    for a in range(x.size):
        if x[a] == 0.0 and signs[a] * step[a] < 0.0:
            free[a] = False


@compiled
def bend_step(
    quadratic: Quadratic, x: Vector, pull: Vector, step: Vector, signs: Vector, there: Vector, ahead: Vector
) -> float:
    """there <- a point on the way of a step that bends at the bounds; how far the quadratic falls to it.

    Who meets a bound stays there, and the others go on: to the end if that is lower, else half as far, and
    so on; at last only as far as the first bound. `ahead` is the pull there.
    """
    t, first, fall = 1.0, reach(x, step, signs), 0.0
    for n_tried in range(1, HALVINGS + 2):
        go_within(x, step, t, signs, there)
        pull_at(quadratic, there, ahead)
        fall = 0.0
        for a in range(x.size):
            fall += 0.5 * (there[a] - x[a]) * (pull[a] + ahead[a])
        if fall > 0.0 or t <= first:
            break
        t = max(0.5 * t, first) if n_tried < HALVINGS else first
    return max(fall, 0.0)


@compiled
def bounded_direction(
    quadratic: Quadratic, u: Vector, signs: Vector, U: Matrix, d: Vector
) -> tuple[float, bool]:
    """d, the way from u, which has the signs, to the minimum of the quadratic under them.

    Returns by how much the quadratic falls on that way, and whether it leads to the minimum indeed; U is a
    work array.
    """
    k = u.size
    x, free = u.copy(), (signs == 0.0) | (u != 0.0)
    step, there, pull, ahead = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    promise, promised, is_minimum = 0.0, -1.0, False
    pull_at(quadratic, x, pull)
    release(quadratic, x, pull, signs, free)
    for _ in range(TURNS * (k + 1)):
        fall = free_step(quadratic, pull, free, U, step)
        is_within = reach(x, step, signs) == 1.0
        if is_within:
            go_within(x, step, 1.0, signs, there)
            pull_at(quadratic, there, ahead)
        else:
            fall = bend_step(quadratic, x, pull, step, signs, there, ahead)
        promise += fall
        x[:], pull[:] = there, ahead
        hold(x, step, signs, free)
        if is_within:
            # what is released without effect was held by rounding alone
            if not promise > promised or not release(quadratic, x, pull, signs, free):
                is_minimum = True
                break
            promised = promise
    d[:] = x - u
    return promise, is_minimum


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
