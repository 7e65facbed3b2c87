"""What an exchange of units would do to one machine's objective, to second order.

The same as `scores` for blocks of columns. With H the Hessian of the support at its minimum u, S the Schur
complement of the columns outside, g their gradient and R = H^-1 h: dropping the block A costs
u_A'(H^-1_AA)^-1 u_A / 2, taking the block B gains g_B'S_BB^-1 g_B / 2, and an exchange of A for B changes
the objective by c'M^-1 c / 2 minus that gain, with c = u_A + R_AB S_BB^-1 g_B and
M = H^-1_AA + R_AB S_BB^-1 R_AB'.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.unit_blocks import (
    add_blocks,
    fill_between,
    fill_inside,
    fill_outside,
    price_blocks,
    repeat_rows,
    widest_block,
)
from kmargin.types import Indices, Matrix, Vector

# Pairs of blocks that are scored at a time: what is known of them stays in the fastest cache.
PAIRS_AT_A_TIME = 256


@compiled
def score_units(
    u: Vector,
    inverse: Matrix,
    grad: Vector,
    schur: Matrix,
    R: Matrix,
    inside: Indices,
    lose_starts: Indices,
    outside: Indices,
    take_starts: Indices,
    weight: float,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> None:
    """To what blocks cost, gain and change is added `weight` times what they do in this machine.

    Block a of the support has the places inside[lose_starts[a]:lose_starts[a + 1]] of u, block b outside it
    the places outside[take_starts[b]:take_starts[b + 1]] of grad. `inverse` is lower triangular, with
    H^-1 = inverse.T @ inverse; `schur` holds S where columns of one block meet. A column with gradient 0 is
    left out of its block: so callers say that its coefficient would have the wrong sign.
    """
    n_lose, n_take = lose_starts.size - 1, take_starts.size - 1
    tallest, widest = widest_block(lose_starts), widest_block(take_starts)
    A, U, lost = np.empty((tallest, tallest, n_lose)), np.empty((tallest, n_lose)), np.empty(n_lose)
    fill_inside(u, inverse, inside, lose_starts, A, U)
    price_blocks(A.copy(), U.copy(), lost)
    for a in range(n_lose):
        drop[a] += weight * 0.5 * lost[a]
    at_a_time = min(n_take, 1 + PAIRS_AT_A_TIME // (n_lose + 1))
    n = n_lose * at_a_time  # pairs of blocks: b comes for a at the place b * n_lose + a
    M, c, changed, gained = (
        np.empty((tallest, tallest, n)),
        np.empty((tallest, n)),
        np.empty(n),
        np.empty(at_a_time),
    )
    L, Z, step = np.empty((widest, widest, n)), np.empty((widest, tallest, n)), np.empty((widest, n))
    for first in range(0, n_take, max(1, at_a_time)):
        starts = take_starts[first : min(first + at_a_time, n_take) + 1]
        fill_outside(grad, schur, outside, starts, n_lose, L, step, gained)
        fill_between(R, inside, lose_starts, outside, starts, Z)
        repeat_rows(A.reshape((tallest * tallest, n_lose)), M.reshape((tallest * tallest, n)))
        repeat_rows(U, c)
        add_blocks(L, Z, step, M, c)
        price_blocks(M, c, changed)
        for b in range(starts.size - 1):
            gain[first + b] += weight * 0.5 * gained[b]
            for a in range(n_lose):
                change[a, first + b] += weight * 0.5 * (changed[b * n_lose + a] - gained[b])


@compiled
def score_columns(
    u: Vector,
    spread: Vector,
    grad: Vector,
    schur: Vector,
    R: Matrix,
    weight: float,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> None:
    """The same where every block is one column: `spread` and `schur` are the diagonals of H^-1 and S."""
    for a in range(u.size - 1):
        drop[a] += weight * 0.5 * u[a] * u[a] / spread[a]
        for j in range(grad.size):
            step = grad[j] / schur[j]
            coef = u[a] + R[a, j] * step
            change[a, j] += (
                weight * 0.5 * (coef * coef / (spread[a] + R[a, j] * R[a, j] / schur[j]) - grad[j] * step)
            )
    for j in range(grad.size):
        gain[j] += weight * 0.5 * grad[j] * grad[j] / schur[j]


@compiled
def schur_blocks(
    gram: Matrix, ridge: Vector, idx: Indices, outside: Indices, R: Matrix, starts: Indices, S: Matrix
) -> None:
    """S = h + ridge - h_S' H^-1 h_S for columns of the same block; other entries are left as they are."""
    for b in range(starts.size - 1):
        for i in range(starts[b], starts[b + 1]):
            for j in range(starts[b], i + 1):
                total = gram[outside[i], outside[j]]
                if i == j:
                    total += ridge[outside[i]]
                for a in range(idx.size):
                    total -= gram[idx[a], outside[i]] * R[a, j]
                S[i, j] = total
                S[j, i] = total
