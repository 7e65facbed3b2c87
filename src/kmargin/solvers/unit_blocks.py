"""Small blocks: the factor of one, and what many pairs of them come to, all at once.

What is asked of every pair of blocks is asked number after number, each for all pairs: so the numbers of one
kind lie side by side, and the processor takes several at a time.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Matrix, Vector
from kmargin.vectors import add_products, scale, subtract_products

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
def widest_block(starts: Indices) -> int:
    widest = 0
    for b in range(starts.size - 1):
        widest = max(widest, starts[b + 1] - starts[b])
    return widest


@compiled
def repeat_rows(rows: Matrix, out: Matrix) -> None:
    """Each row as often as there is room."""
    size = rows.shape[1]
    for r in range(rows.shape[0]):
        x, y = rows[r], out[r]
        for first in range(0, y.size, max(1, size)):
            for a in range(size):
                y[first + a] = x[a]


@compiled
def fill_inside(u: Vector, inverse: Matrix, inside: Indices, starts: Indices, A: Matrix, U: Matrix) -> None:
    """A[:, :, a]: the lower triangle of H^-1 in block a; U[:, a]: its coefficients.

    What fills up smaller blocks costs nothing.
    """
    tallest = A.shape[0]
    block = np.empty((tallest, tallest))
    for a in range(starts.size - 1):
        first, size = starts[a], starts[a + 1] - starts[a]
        inverse_block(inverse, inside, first, size, block)
        for i in range(tallest):
            U[i, a] = u[inside[first + i]] if i < size else 0.0
            for j in range(i + 1):
                A[i, j, a] = block[i, j] if i < size else 1.0 * (i == j)


@compiled
def fill_outside(
    grad: Vector,
    schur: Matrix,
    outside: Indices,
    starts: Indices,
    n_lose: int,
    L: Matrix,
    step: Matrix,
    gained: Vector,
) -> None:
    """Of each block outside its factor and L^-1 g, once for each block inside; and the squared norm of that.

    What fills up smaller blocks, or has no gradient, is 0.
    """
    widest = L.shape[0]
    block, x, diagonal = np.empty((widest, widest)), np.empty(widest), np.empty(widest)
    for b in range(starts.size - 1):
        for j in range(widest):
            place = outside[starts[b] + j] if j < starts[b + 1] - starts[b] else -1
            x[j] = grad[place] if place >= 0 else 0.0
            for l in range(j + 1):
                is_in = x[j] != 0.0 and x[l] != 0.0
                block[j, l] = schur[place, outside[starts[b] + l]] if is_in else 0.0
            diagonal[j] = block[j, j]
        factor_block(block, widest, diagonal)
        gained[b] = solve_forward(block, widest, x)
        first, last = b * n_lose, (b + 1) * n_lose
        for j in range(widest):
            step[j, first:last] = x[j]
            for l in range(j + 1):
                L[j, l, first:last] = block[j, l]


@compiled
def fill_between(
    R: Matrix, inside: Indices, lose_starts: Indices, outside: Indices, take_starts: Indices, Z: Matrix
) -> None:
    """Z[j, i]: R where the j-th column of each block outside meets the i-th of each inside; 0 where it has
    no more.
    """
    n_lose = lose_starts.size - 1
    for j in range(Z.shape[0]):
        for b in range(take_starts.size - 1):
            is_there, first = j < take_starts[b + 1] - take_starts[b], b * n_lose
            column = outside[take_starts[b] + j] if is_there else 0
            for i in range(Z.shape[1]):
                z = Z[j, i]
                for a in range(n_lose):
                    at = lose_starts[a] + i
                    z[first + a] = R[inside[at], column] if is_there and at < lose_starts[a + 1] else 0.0


@compiled
def add_blocks(L: Matrix, Z: Matrix, step: Matrix, M: Matrix, c: Matrix) -> None:
    """For all pairs of blocks: with Y = Z L^-T, Y Y' is added to M and Y step to c. Z becomes Y."""
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            z = Z[j, i]
            for l in range(j):
                subtract_products(L[j, l], Z[l, i], z)
            scale(L[j, j], z)
            add_products(step[j], z, c[i])
            for l in range(i + 1):
                add_products(z, Z[j, l], M[i, l])


@compiled
def price_blocks(M: Matrix, c: Matrix, out: Vector) -> None:
    """out = c' M^-1 c, for all pairs of blocks; M and c are used up.

    `factor_block` and `solve_forward`: number after number, each for every pair.
    """
    n = out.size
    pivot = np.empty(n)
    for a in range(n):
        out[a] = 0.0
    for i in range(M.shape[0]):
        diagonal, x = M[i, i], c[i]
        for a in range(n):
            pivot[a] = diagonal[a]
        for l in range(i):
            subtract_products(M[i, l], M[i, l], pivot)
            subtract_products(M[i, l], c[l], x)
        for a in range(n):
            diagonal[a] = 1.0 / np.sqrt(pivot[a]) if pivot[a] > DEPENDENT * diagonal[a] else 0.0
        scale(diagonal, x)
        add_products(x, x, out)
        for b in range(i + 1, M.shape[0]):
            for l in range(i):
                subtract_products(M[b, l], M[i, l], M[b, i])
            scale(diagonal, M[b, i])
