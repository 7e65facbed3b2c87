"""The exact minimum on a given support.

The loss is piecewise quadratic. On the rows that are active its minimum is one linear system away;
going there, or to the exact minimum along the line, lowers the objective strictly, so that no set
of active rows comes back and the iteration ends.
"""

import numpy as np

from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.linalg import U64, cholesky, solve
from kmargin.solvers.rows import (
    Rows,
    advance,
    exact_step,
    look_along,
    loss_here,
    move_to,
    renew_system,
)
from kmargin.types import Indices, Matrix, Vector

# A loss that is zero but for rounding.
NO_LOSS = 1e-20

# A search compares objectives to `tol`. The coefficients it ends with have to be more exact: an error in
# them shows in the objective only by its square. A step that promises less than this share of what `tol`
# asks for is the last one, and is taken; one that promises nothing but rounding is not.
EXACT, NOTHING = 1e-4, 1e-20

# By so much, relatively, an objective may seem to rise when it only stays.
ROUNDING = 1e-12

MAX_NEWTON_STEPS = 100


@compiled
def ridge_terms(ridge: Vector, idx: Indices, u: Vector, d: Vector) -> tuple[float, float, float]:
    """u'Ru, u'Rd, d'Rd for the diagonal ridge R."""
    uu, ud, dd = 0.0, 0.0, 0.0
    for a in range(idx.size):
        r = ridge[idx[a]]
        uu += r * u[a] * u[a]
        ud += r * u[a] * d[a]
        dd += r * d[a] * d[a]
    return uu, ud, dd


@compiled
def newton_direction(
    H: Matrix,
    z: Vector,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    U: Matrix,
    rhs: Vector,
    d: Vector,
    dead: Vector,
) -> float:
    """d = (H + ridge)^-1 (z - (H + ridge) u), the way to the minimum of the quadratic.

    H holds an upper triangle. Returns by how much the quadratic falls on that way; U, rhs and dead
    are work arrays.
    """
    k = idx.size
    for a in range(k):
        for b in range(a, k):
            U[a, b] = H[a, b]
        U[a, a] += ridge[idx[a]]
        rhs[a] = z[a] - U[a, a] * u[a]
    for a in range(k):
        row, total, at = U64(a), 0.0, u[a]
        for b in range(U64(a + 1), U64(k)):
            total += H[row, b] * u[b]
        for b in range(U64(a + 1), U64(k)):
            rhs[b] -= H[row, b] * at
        rhs[a] -= total
    for a in range(k):  # not by slices, which take a second to compile
        d[a] = rhs[a]
    cholesky(U, k, dead)
    solve(U, k, dead, d)
    promise = 0.0
    for a in range(k):
        promise += 0.5 * d[a] * rhs[a]
    return promise


@compiled_or_remote
def take_step(
    rows: Rows,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    d: Vector,
    promise: float,
    value: float,
    tol: float,
    longest: float,
) -> tuple[float, bool, bool]:
    """Go from u along d, which promises that the objective falls from `value`; u and rows are brought along.

    A full step, if the objective falls enough; else to the exact minimum on the line, or to `longest` times d
    if that is nearer. If that does not lower the objective it is taken back. Returns the objective that
    was reached, whether the step was a full one, and whether it is the last.
    """
    k = idx.size
    uu, ud, dd = ridge_terms(ridge, idx, u, d)
    new_value = 0.5 * (look_along(rows, idx, d) + uu + dd) + ud
    # a small promise may still lie far away, along a direction that is nearly flat
    last = promise <= EXACT * tol * value and new_value <= value * (1.0 + ROUNDING)
    t, full = 1.0, True
    if not last and not new_value <= value - 0.2 * promise:
        t = min(exact_step(rows, ud, dd), longest)
        full = False
    for a in range(k):
        u[a] += t * d[a]
    advance(rows, t)
    if not full:
        uu, _, _ = ridge_terms(ridge, idx, u, u)
        new_value = loss_here(rows) + 0.5 * uu
        if not new_value < value:
            for a in range(k):
                u[a] -= t * d[a]
            advance(rows, -t)
    return new_value, full, last


@compiled_or_remote
def newton(
    rows: Rows,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    H: Matrix,
    z: Vector,
    give_up: float,
    tol: float,
    max_iter: int,
) -> tuple[float, int]:
    """Minimise over the columns idx, from u; return the objective and the number of steps.

    H (upper triangle, without the ridge) and z are the columns' Gram matrix and their products with
    the target over the active rows; u, H, z and rows are brought along.

    Every step goes to the minimum of the quadratic that holds on the active rows. If the objective
    does not fall enough it goes to the exact minimum along that line. The first step comes from the
    Gram matrix alone and is not questioned. The iteration ends when the active rows stay the same,
    after a step that promised less than EXACT * tol * objective, or as soon as twice its promise cannot
    reach `give_up`.
    """
    k = idx.size
    U, d, dead, rhs = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    value = np.inf
    for n_iter in range(max_iter):
        promise = newton_direction(H, z, ridge, idx, u, U, rhs, d, dead)
        full, last = True, False
        if n_iter == 0:
            for a in range(k):
                u[a] += d[a]
            loss = move_to(rows, idx, u)
            uu, _, _ = ridge_terms(ridge, idx, u, u)
            value = loss + 0.5 * uu
        else:
            if promise <= NOTHING * value or value < NO_LOSS or value - 2.0 * promise > give_up:
                return value, n_iter
            new_value, full, last = take_step(rows, ridge, idx, u, d, promise, value, tol, np.inf)
            if not (full or new_value < value):  # nothing left but rounding
                return value, n_iter
            value = new_value
        stays = not renew_system(rows, idx, H, z)
        if last or (stays and full):
            return value, n_iter + 1
    return value, max_iter


@compiled
def part_of_gram(gram: Matrix, idx: Indices) -> tuple[Matrix, Vector]:
    """The Gram matrix of the columns idx (its upper triangle), and their products with the target."""
    k = idx.size
    target = gram.shape[0] - 1
    H, z = np.empty((k, k)), np.empty(k)
    for a in range(k):
        z[a] = gram[idx[a], target]
        for b in range(a, k):
            H[a, b] = gram[idx[a], idx[b]]
    return H, z


@compiled_or_remote
def newton_from_gram(
    rows: Rows, ridge: Vector, gram: Matrix, idx: Indices, u: Vector, give_up: float, tol: float
) -> tuple[float, int]:
    """Newton on idx from the panel's Gram matrix over the rows that are active; rows end at the result."""
    H, z = part_of_gram(gram, idx)
    return newton(rows, ridge, idx, u, H, z, give_up, tol, MAX_NEWTON_STEPS)
