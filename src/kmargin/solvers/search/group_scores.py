"""Predicted changes of the objective, as in `swap_scores`, for blocks of columns: one or two groups."""

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.jit import compiled, inlined
from kmargin.solvers.search.swap_scores import DEPENDENT, score_columns

# Swaps are scored in batches of this many, so that the matrices of a batch fit in the processor's cache.
PAIRS_AT_A_TIME = 256

# Variances of the columns of a group are raised by this fraction, so that covariances are invertible even if
# a group has equal columns.
JITTER = 1e-9


@inlined
def factor_block(A: Matrix, size: int, diagonal: Vector) -> None:
    """A <- its Cholesky factor with inverted diagonal; 0 where a pivot is at most DEPENDENT * diagonal."""
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


@inlined
def solve_forward(L: Matrix, size: int, x: Vector) -> float:
    """x <- L^-1 x, where L is a factor from `factor_block`; return the squared norm of the result."""
    total = 0.0
    for a in range(size):
        value = x[a]
        for l in range(a):
            value -= L[a, l] * x[l]
        x[a] = value * L[a, a]
        total += x[a] * x[a]
    return total


@inlined
def widest_block(starts: Indices) -> int:
    widest = 0
    for b in range(starts.size - 1):
        widest = max(widest, starts[b + 1] - starts[b])
    return widest


@inlined
def quadratic_forms(M: Tensor, c: Matrix, n: int, out: Vector) -> None:
    """out[r] <- c[:, r]' M[:, :, r]^-1 c[:, r] for r < n; M (lower triangles) and c are overwritten.

    The innermost loops of the Cholesky factorisation and the forward substitution are over r, for speed.
    """
    pivot = np.empty(n)
    for r in range(n):
        out[r] = 0.0
    for i in range(M.shape[0]):
        for r in range(n):
            pivot[r] = M[i, i, r]
        for l in range(i):
            for r in range(n):
                pivot[r] -= M[i, l, r] * M[i, l, r]
                c[i, r] -= M[i, l, r] * c[l, r]
        for r in range(n):
            M[i, i, r] = 1.0 / np.sqrt(pivot[r]) if pivot[r] > DEPENDENT * M[i, i, r] else 0.0
            c[i, r] *= M[i, i, r]
            out[r] += c[i, r] * c[i, r]
        for b in range(i + 1, M.shape[0]):
            for l in range(i):
                for r in range(n):
                    M[b, i, r] -= M[b, l, r] * M[i, l, r]
            for r in range(n):
                M[b, i, r] *= M[i, i, r]


@inlined
def add_block_scores(
    u: Vector,
    inverse: Matrix,
    grad: Vector,
    schur: Matrix,
    R: Matrix,
    inside: Indices,
    lose_starts: Indices,
    outside: Indices,
    take_starts: Indices,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> bool:
    """Add the scores of blocks of columns in one binary problem to `drop`, `gain` and `change`.

    They are the predicted changes of the objective if a block of the support is dropped, if a block outside
    it is added, and if one is swapped for the other. Block a of the support has the indices
    inside[lose_starts[a]:lose_starts[a + 1]] into u, and block b outside it the indices
    outside[take_starts[b]:take_starts[b + 1]] into `grad`. A column whose gradient was set to 0, because its
    coefficient would violate the required sign, is left out of its block. In work arrays smaller blocks are
    padded with zeros. Returns whether no column depends linearly on others of its block.
    """
    are_independent = True
    n_lose, n_take = lose_starts.size - 1, take_starts.size - 1
    tallest, widest = widest_block(lose_starts), widest_block(take_starts)
    A, U, cost = np.zeros((tallest, tallest, n_lose)), np.zeros((tallest, n_lose)), np.empty(n_lose)
    n = max(n_lose, PAIRS_AT_A_TIME)
    M, c, total = np.empty((tallest, tallest, n)), np.empty((tallest, n)), np.empty(n)
    L, Z, step = np.empty((widest, widest)), np.empty((widest, tallest, n)), np.empty((widest, n))
    x, diagonal = np.empty(widest), np.empty(widest)
    for a in range(n_lose):
        size = lose_starts[a + 1] - lose_starts[a]
        for i in range(tallest):
            p = inside[lose_starts[a] + i] if i < size else 0
            U[i, a] = u[p] if i < size else 0.0
            for j in range(i + 1):
                A[i, j, a] = 1.0 if i == j else 0.0
                if i < size:
                    q = inside[lose_starts[a] + j]
                    A[i, j, a] = 0.0
                    for l in range(max(p, q), inverse.shape[0]):
                        A[i, j, a] += inverse[l, p] * inverse[l, q]
                M[i, j, a] = A[i, j, a]
            c[i, a] = U[i, a]
    quadratic_forms(M, c, n_lose, cost)
    for a in range(n_lose):
        drop[a] += 0.5 * cost[a]
    per_turn = max(1, n // max(1, n_lose))
    for begin in range(0, n_take, per_turn):
        end = min(begin + per_turn, n_take)
        for b in range(begin, end):
            first, size = take_starts[b], take_starts[b + 1] - take_starts[b]
            for j in range(widest):
                x[j] = grad[outside[first + j]] if j < size else 0.0
                for l in range(j + 1):
                    is_in = x[j] != 0.0 and x[l] != 0.0
                    L[j, l] = schur[outside[first + j], outside[first + l]] if is_in else 0.0
                diagonal[j] = L[j, j]
            factor_block(L, widest, diagonal)
            for j in range(size):
                if L[j, j] == 0.0 and diagonal[j] > 0.0:
                    are_independent = False
            gained = solve_forward(L, widest, x)
            gain[b] += 0.5 * gained
            at = (b - begin) * n_lose
            for a in range(n_lose):
                change[a, b] -= 0.5 * gained
            for j in range(widest):
                for i in range(tallest):
                    for a in range(n_lose):
                        is_in = j < size and i < lose_starts[a + 1] - lose_starts[a]
                        Z[j, i, at + a] = R[inside[lose_starts[a] + i], outside[first + j]] if is_in else 0.0
                    for l in range(j):
                        for a in range(n_lose):
                            Z[j, i, at + a] -= L[j, l] * Z[l, i, at + a]
                    for a in range(n_lose):
                        Z[j, i, at + a] *= L[j, j]
                for a in range(n_lose):
                    step[j, at + a] = x[j]
        n_pairs = (end - begin) * n_lose
        for b in range(end - begin):
            for i in range(tallest):
                for a in range(n_lose):
                    c[i, b * n_lose + a] = U[i, a]
                for j in range(i + 1):
                    for a in range(n_lose):
                        M[i, j, b * n_lose + a] = A[i, j, a]
        for j in range(widest):
            for i in range(tallest):
                for r in range(n_pairs):
                    c[i, r] += step[j, r] * Z[j, i, r]
                for l in range(i + 1):
                    for r in range(n_pairs):
                        M[i, l, r] += Z[j, i, r] * Z[j, l, r]
        quadratic_forms(M, c, n_pairs, total)
        for b in range(begin, end):
            for a in range(n_lose):
                change[a, b] += 0.5 * total[(b - begin) * n_lose + a]
    return are_independent


@inlined
def schur_blocks(
    gram: Matrix, ridge: Vector, idx: Indices, outside: Indices, R: Matrix, starts: Indices, S: Matrix
) -> None:
    """S <- the Schur complements of pairs of columns of the same block; other entries stay as they are."""
    for b in range(starts.size - 1):
        for i in range(starts[b], starts[b + 1]):
            for j in range(starts[b], i + 1):
                total = gram[outside[i], outside[j]]
                if i == j:
                    total += ridge[outside[i]]
                for a in range(idx.size):
                    total -= gram[idx[a], outside[i]] * R[a, j]
                S[i, j] = S[j, i] = total


@compiled
def score_groups(
    gram: Tensor,
    ridge: Matrix,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    signs: Vector | None,
    inside_blocks: Indices,
    lose_starts: Indices,
    outside_blocks: Indices,
    take_starts: Indices,
    schur_starts: Indices,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> bool:
    """drop, gain, change <- the scores of blocks of columns, summed over the binary problems.

    `idx` (the intercept last) and `outside` hold places (row numbers) in the panel. Block a of the support
    has the columns idx[inside_blocks[lose_starts[a]:lose_starts[a + 1]]]; block b outside is given likewise
    by `outside`, `outside_blocks` and `take_starts`. Columns outside that share a block lie between two
    successive `schur_starts`. Returns whether no column outside depends on the support or on its block.
    """
    are_independent = True
    k, m = idx.size, outside.size
    for a in range(drop.size):
        drop[a] = 0.0
        for b in range(gain.size):
            change[a, b] = 0.0
    for b in range(gain.size):
        gain[b] = 0.0
    variance, grad, schur = np.empty(k), np.empty(m), np.empty(m)
    R, inverse, S = np.empty((k, m)), np.empty((k, k)), np.empty((m, m))
    for p in range(coefs.shape[0]):
        score_columns(gram[p], ridge[p], idx, coefs[p], outside, variance, grad, schur, R, inverse)
        if signs is not None:
            for j in range(m):
                if grad[j] * signs[j] > 0.0:
                    grad[j] = 0.0
        schur_blocks(gram[p], ridge[p], idx, outside, R, schur_starts, S)
        if not add_block_scores(
            coefs[p], inverse, grad, S, R, inside_blocks, lose_starts, outside_blocks, take_starts, drop,
            gain, change,
        ):  # fmt: skip
            are_independent = False
        for j in range(m):
            if schur[j] == np.inf and gram[p, outside[j], outside[j]] > 0.0:
                are_independent = False
    return are_independent


@compiled
def group_gains(descent: Vector, starts: Indices, columns: Indices, factors: Tensor, out: Vector) -> None:
    """out[j] <- g'A^-1 g: g is the descent and A the covariance matrix, with factor factors[j], of unit j."""
    x = np.empty(factors.shape[1])
    for unit in range(out.size):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for i in range(size):
            x[i] = descent[columns[first + i]]
        out[unit] = solve_forward(factors[unit], size, x)


@compiled
def factor_covariances(A: Tensor, starts: Indices, ridge: Vector) -> None:
    """Replace the covariance matrix A[j] of each unit j, plus ridges and JITTER, by its Cholesky factor."""
    diagonal = np.empty(A.shape[1])
    for unit in range(starts.size - 1):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for a in range(size):
            raised = ridge[first + a] + JITTER * A[unit, a, a]
            A[unit, a, a] += raised if raised > 0.0 else 1.0
            diagonal[a] = A[unit, a, a]
        factor_block(A[unit], size, diagonal)
