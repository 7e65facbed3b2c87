"""The exact minimum on a support whose coefficients may only be positive, or only negative.

`signs` has an entry for each coefficient, as in `bounded_quadratic`; that of the intercept is 0. Newton's
method as in `newton`, but that every step goes to the minimum that the quadratic on the active rows has
under the signs. Points that have the signs are a convex set, so that they hold all along a step.
"""

import numpy as np

from kmargin.jit import compiled_or_remote
from kmargin.solvers.bounded_quadratic import Quadratic, bounded_direction
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
from kmargin.types import Indices, Matrix, Vector


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
