"""Predict how the objective changes if blocks of columns (1 or 2 groups) are dropped, added or swapped."""

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.jit import compiled, inlined
from kmargin.solvers.search.swap_scores import DEPENDENT, score_columns

# Approximate number of swaps that are scored at once, so that their matrices fit in the processor's cache.
PAIRS_AT_A_TIME = 256

# The diagonal of a group's covariance matrix is raised by this fraction, so that the matrix is invertible
# even if columns of the group are equal.
JITTER = 1e-9


@inlined
def factor_block(A: Matrix, size: int, diagonal: Vector) -> None:
    """Overwrite A with its lower Cholesky factor L, but store 1 / L[a, a] on the diagonal.

    If column a depends linearly on earlier ones, 0 is stored; its pivot is then at most DEPENDENT *
    diagonal[a], where `diagonal` has the diagonal entries of the given A.
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


@inlined
def solve_forward(L: Matrix, size: int, x: Vector) -> float:
    """Overwrite x with L^-1 x and return its squared norm; L is a Cholesky factor from `factor_block`."""
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
    """out[r] <- c'M^-1 c for each r < n, with c[:, r] and the symmetric M[:, :, r]; overwrites c and M."""
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

    drop[a] is the predicted rise of the objective if block a of the support is dropped, gain[b] the predicted
    decrease if block b outside the support is added, and change[a, b] the change if b replaces a. Block a has
    the coefficients u[inside[lose_starts[a]:lose_starts[a + 1]]], block b the gradient entries
    grad[outside[take_starts[b]:take_starts[b + 1]]]. A column with gradient 0, such as one whose coefficient
    would get a forbidden sign, counts as absent. `schur` is the Schur complement of the columns outside; `R`
    and `inverse`: see `score_columns`. Returns False if a column outside depends linearly on its block.
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
    """Write to S the Schur complement of the columns `outside`, only for pairs in one block of `starts`."""
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
    """Predict how the objective changes if blocks of columns (1 or 2 groups) are dropped, added or swapped.

    Sums over the binary problems are written to drop[a], the rise if block a of the support is dropped,
    gain[b], the decrease if block b is added, and change[a, b], the change if b replaces a. `idx` (the
    support, intercept last) and `outside` are rows of the panel, each of which holds a column. Block a has
    the columns idx[inside_blocks[lose_starts[a]:lose_starts[a + 1]]]; block b is given likewise by `outside`,
    `outside_blocks` and `take_starts`. Columns outside that share a block lie between successive
    `schur_starts`. Returns False if a column outside depends linearly on the support or on its block.
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
    """Write to out[j] twice the predicted decrease of the objective if group j is added to the support.

    It is g'A^-1 g: g has the entries of `descent` (minus the gradient) in the columns of group j, and
    factors[j] is the Cholesky factor of A, the covariance matrix of these columns plus their ridges.
    """
    x = np.empty(factors.shape[1])
    for unit in range(out.size):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for i in range(size):
            x[i] = descent[columns[first + i]]
        out[unit] = solve_forward(factors[unit], size, x)


@compiled
def factor_covariances(A: Tensor, starts: Indices, ridge: Vector) -> None:
    """Add ridges to the covariance matrix A[j] of each group j, and overwrite it with its Cholesky factor.

    `ridge` has an entry for each column; those of group j begin at ridge[starts[j]]. Variances are also
    raised by the fraction JITTER. A variance of 0 without a ridge becomes 1, so that A[j] is invertible.
    """
    diagonal = np.empty(A.shape[1])
    for unit in range(starts.size - 1):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for a in range(size):
            raised = ridge[first + a] + JITTER * A[unit, a, a]
            A[unit, a, a] += raised if raised > 0.0 else 1.0
            diagonal[a] = A[unit, a, a]
        factor_block(A[unit], size, diagonal)
