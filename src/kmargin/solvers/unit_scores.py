"""What an exchange of units would do to one machine's objective, to second order.

The same as `scores` for blocks of columns. With H the Hessian of the support at its minimum u, S the Schur
complement of the columns outside, g their gradient and R = H^-1 h: dropping the block A costs
u_A'(H^-1_AA)^-1 u_A / 2, taking the block B gains g_B'S_BB^-1 g_B / 2, and an exchange of A for B changes
the objective by c'M^-1 c / 2 minus that gain, with c = u_A + R_AB S_BB^-1 g_B and
M = H^-1_AA + R_AB S_BB^-1 R_AB'.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Matrix, Vector

# A pivot that is less than this share of its diagonal entry is rounding: that column says what others say.
DEPENDENT = 1e-12


@compiled
def factor_block(A: Matrix, size: int, diagonal: Vector) -> None:
    """The lower Cholesky factor of A's first rows and columns, in place, its diagonal inverted: what is
    solved for is multiplied by it, many times. It is 0 for dependent rows.
    """
    for a in range(size):
        pivot = A[a, a]
        for l in range(a):
            pivot -= A[a, l] * A[a, l]
        A[a, a] = 1.0 / np.sqrt(pivot) if pivot > DEPENDENT * diagonal[a] else 0.0
        for b in range(a + 1, size):
            total = A[b, a]
            for l in range(a):
                total -= A[b, l] * A[a, l]
            A[b, a] = total * A[a, a]


@compiled
def solve_forward(L: Matrix, size: int, x: Vector) -> float:
    """x <- L^-1 x, by a factor of `factor_block`, 0 for dependent rows; its squared norm."""
    total = 0.0
    for a in range(size):
        value = x[a]
        for l in range(a):
            value -= L[a, l] * x[l]
        x[a] = value * L[a, a]
        total += x[a] * x[a]
    return total


@compiled
def inverse_block(inverse: Matrix, inside: Indices, first: int, size: int, A: Matrix) -> None:
    """The lower triangle of (inverse.T @ inverse) where the columns of one block meet."""
    for i in range(size):
        p = inside[first + i]
        for j in range(i + 1):
            q = inside[first + j]
            total = 0.0
            for l in range(max(p, q), inverse.shape[0]):
                total += inverse[l, p] * inverse[l, q]
            A[i, j] = total


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
    widest, tallest = 0, 0
    for a in range(n_lose):
        tallest = max(tallest, lose_starts[a + 1] - lose_starts[a])
    for b in range(n_take):
        widest = max(widest, take_starts[b + 1] - take_starts[b])
    A, M, L = np.empty((n_lose, tallest, tallest)), np.empty((tallest, tallest)), np.empty((widest, widest))
    c, step, diagonal, places = (
        np.empty(tallest),
        np.empty(widest),
        np.empty(max(widest, tallest)),
        np.empty(widest, np.int64),
    )
    Y = np.empty((tallest, widest))
    for a in range(n_lose):
        first, size = lose_starts[a], lose_starts[a + 1] - lose_starts[a]
        inverse_block(inverse, inside, first, size, A[a])
        for i in range(size):
            c[i] = u[inside[first + i]]
            for j in range(i + 1):
                M[i, j] = A[a, i, j]
            diagonal[i] = M[i, i]
        factor_block(M, size, diagonal)
        drop[a] += weight * 0.5 * solve_forward(M, size, c)
    for b in range(n_take):
        width = 0
        for i in range(take_starts[b], take_starts[b + 1]):
            if grad[outside[i]] != 0.0:
                places[width] = outside[i]
                width += 1
        for i in range(width):
            step[i] = grad[places[i]]
            for j in range(i + 1):
                L[i, j] = schur[places[i], places[j]]
            diagonal[i] = L[i, i]
        factor_block(L, width, diagonal)
        gained = solve_forward(L, width, step)  # step is L^-1 g
        gain[b] += weight * 0.5 * gained
        for a in range(n_lose):
            first, size = lose_starts[a], lose_starts[a + 1] - lose_starts[a]
            for i in range(size):
                for j in range(width):
                    Y[i, j] = R[inside[first + i], places[j]]
                solve_forward(L, width, Y[i])  # the row R_iB L^-T
                c[i] = u[inside[first + i]]
                for j in range(width):
                    c[i] += Y[i, j] * step[j]
            for i in range(size):
                for l in range(i + 1):
                    M[i, l] = A[a, i, l]
                    for j in range(width):
                        M[i, l] += Y[i, j] * Y[l, j]
                diagonal[i] = M[i, i]
            factor_block(M, size, diagonal)
            change[a, b] += weight * 0.5 * (solve_forward(M, size, c) - gained)


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
