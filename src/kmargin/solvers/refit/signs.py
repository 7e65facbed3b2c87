"""The minimum of a quadratic whose coefficients have required signs.

The quadratic is x'(H + R)x / 2 - z'x. H is stored as an upper triangle with z as its last column, and R is
the diagonal matrix of the ridges. A sign of 0 means that the coefficient is unconstrained.
"""

import numpy as np

from kmargin.core.arrays import Flags, Matrix, Vector
from kmargin.core.jit import inlined
from kmargin.core.linalg import U64, cholesky, solve

# An entry of the gradient counts as zero if it is below this fraction of the sum of its terms' magnitudes.
ZERO_GRADIENT = 1e-13

# Safety cap on the linear systems solved for one minimum, per coefficient; usually a few systems suffice.
MAX_SYSTEMS_PER_COLUMN = 10

# After this many halvings, a projected step is shortened to the point where the first coefficient reaches 0.
MAX_HALVINGS = 10


@inlined
def descent_at(H: Matrix, ridge: Vector, x: Vector, out: Vector) -> None:
    """out <- z - (H + R) x, minus the gradient at x of the quadratic x'(H + R)x / 2 - z'x (R: ridges)."""
    k = x.size
    for a in range(k):
        out[a] = H[a, k] - (H[a, a] + ridge[a]) * x[a]
    for a in range(k):
        row, total, at = U64(a), 0.0, x[a]
        for b in range(U64(a + 1), U64(k)):
            total += H[row, b] * x[b]
            out[b] -= H[row, b] * at
        out[a] -= total


@inlined
def release(H: Matrix, x: Vector, descent: Vector, signs: Vector, free: Flags) -> bool:
    """Free coefficients held at 0 whose allowed sign lowers the quadratic; return whether any was freed."""
    k = x.size
    any_freed = False
    for a in range(k):
        if free[a] or not signs[a] * descent[a] > 0.0:
            continue
        size = abs(H[a, k])
        for b in range(k):
            size += abs((H[a, b] if a <= b else H[b, a]) * x[b])
        if abs(descent[a]) > ZERO_GRADIENT * size:
            free[a] = any_freed = True
    return any_freed


@inlined
def free_step(H: Matrix, ridge: Vector, descent: Vector, free: Flags, U: Matrix, step: Vector) -> float:
    """step <- the step to the quadratic's minimum over the `free` coefficients; return the decrease."""
    k, m = descent.size, 0
    places, packed = np.empty(k, np.int64), np.empty(k)
    for a in range(k):
        step[a] = 0.0
        if free[a]:
            places[m], packed[m] = a, descent[a]
            m += 1
    for i in range(m):
        for j in range(i, m):
            U[i, j] = H[places[i], places[j]]
        U[i, i] += ridge[places[i]]
    cholesky(U, m)
    solve(U, m, packed)
    decrease = 0.0
    for i in range(m):
        step[places[i]] = packed[i]
        decrease += 0.5 * packed[i] * descent[places[i]]
    return decrease


@inlined
def step_to_bound(x: Vector, step: Vector, signs: Vector) -> float:
    """The largest t <= 1 for which all coefficients x + t step have their required signs."""
    t = 1.0
    for a in range(x.size):
        if signs[a] * (x[a] + step[a]) < 0.0:
            t = min(t, x[a] / -step[a])
    return t


@inlined
def projected_step(x: Vector, step: Vector, t: float, signs: Vector, out: Vector) -> None:
    """out <- x + t step, with coefficients that would get the wrong sign set to 0."""
    for a in range(x.size):
        if signs[a] * (x[a] + step[a]) < 0.0 and x[a] / -step[a] <= t:
            out[a] = 0.0
        else:
            out[a] = x[a] + t * step[a]


@inlined
def constrained_direction(
    H: Matrix, ridge: Vector, u: Vector, signs: Vector, U: Matrix, d: Vector
) -> tuple[float, bool]:
    """d <- the step from u, which has the required signs, to the minimum of the quadratic under the signs.

    Returns the decrease of the quadratic, and whether u + d is the minimum. This is an active-set method:
    minimise over the free coefficients; if one would get the wrong sign, take a projected step, halved until
    the quadratic falls, and hold the coefficients that reached 0. At the minimum over the free coefficients,
    free the held ones whose negative gradient has the allowed sign, and repeat. U is a work array.
    """
    k = u.size
    x, there, step = np.empty(k), np.empty(k), np.empty(k)
    descent, descent_there = np.empty(k), np.empty(k)
    free = np.empty(k, np.bool_)
    for a in range(k):
        x[a] = u[a]
        free[a] = signs[a] == 0.0 or u[a] != 0.0
    total, at_last_minimum, is_minimum = 0.0, -1.0, False
    descent_at(H, ridge, x, descent)
    release(H, x, descent, signs, free)
    for _ in range(MAX_SYSTEMS_PER_COLUMN * (k + 1)):
        decrease = free_step(H, ridge, descent, free, U, step)
        nearest = step_to_bound(x, step, signs)
        t, n_halvings = 1.0, 0
        while True:
            projected_step(x, step, t, signs, there)
            descent_at(H, ridge, there, descent_there)
            if nearest == 1.0:
                break
            decrease = 0.0
            for a in range(k):
                decrease += 0.5 * (there[a] - x[a]) * (descent[a] + descent_there[a])
            if decrease > 0.0 or t <= nearest:
                decrease = max(decrease, 0.0)
                break
            n_halvings += 1
            t = max(0.5 * t, nearest) if n_halvings < MAX_HALVINGS else nearest
        total += decrease
        for a in range(k):
            x[a], descent[a] = there[a], descent_there[a]
            if x[a] == 0.0 and signs[a] * step[a] < 0.0:
                free[a] = False
        if nearest == 1.0:
            # If freed coefficients did not lower the quadratic, their gradient was only a rounding error.
            if not total > at_last_minimum or not release(H, x, descent, signs, free):
                is_minimum = True
                break
            at_last_minimum = total
    for a in range(k):
        d[a] = x[a] - u[a]
    return total, is_minimum
