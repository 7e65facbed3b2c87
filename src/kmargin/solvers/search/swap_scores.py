"""What a swap of columns, or of groups of columns, would do to the objective, to second order.

All scores keep the active rows as they are and refit the other coefficients and the intercept: they come from
Schur complements, not from the bare diagonal. For blocks of columns, with H the Hessian of the support at its
minimum u, S the Schur complement of the columns outside, g their gradient and R = H^-1 h: dropping the block
A costs u_A'(H^-1_AA)^-1 u_A / 2, adding the block B gains g_B'S_BB^-1 g_B / 2, and a swap of A for B changes
the objective by c'M^-1 c / 2 minus that gain, with c = u_A + R_AB S_BB^-1 g_B and
M = H^-1_AA + R_AB S_BB^-1 R_AB'.
"""

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.core.linalg import U64, add_products, cholesky, eliminate, scale, subtract_products


@compiled
def score(
    ridge: Vector,
    idx: Indices,
    u: Vector,
    gram: Matrix,
    outside: Indices,
    drop: Vector,
    spread: Vector,
    gain: Vector,
    grad: Vector,
    schur: Vector,
    R: Matrix,
    inverse: Matrix,
) -> None:
    """What each feature of idx costs to drop and each of `outside` gains when the rest is refitted.

    idx ends with the intercept. drop[a] = u_a^2 / (2 spread_a), spread = diag of the inverse
    Hessian; gain[j] = grad_j^2 / (2 schur_j), schur_j = h_jj - h_jS H^-1 h_Sj; R[a, j] = (H^-1
    h_Sj)_a.
    """
    k, m = idx.size, outside.size
    target = gram.shape[0] - 1
    U = np.empty((k, k))
    dead = np.empty(k)
    for a in range(k):
        for b in range(a, k):
            U[a, b] = gram[idx[a], idx[b]]
        U[a, a] += ridge[idx[a]]
    cholesky(U, k, dead)
    for a in range(k):
        for j in range(m):
            R[a, j] = gram[idx[a], outside[j]]
    for j in range(m):
        o = outside[j]
        grad[j] = -gram[o, target]
        schur[j] = gram[o, o] + ridge[o]
    for a in range(k):
        ua = u[a]
        for j in range(m):
            grad[j] += ua * R[a, j]
    inverse[:, :] = 0.0  # becomes U^-T: H^-1 = inverse.T @ inverse
    for a in range(k):
        inverse[a, a] = 1.0
    for first in range(0, k, 4):  # forward: U^-T [C, I]
        last = min(first + 4, k)
        for a in range(first, last):
            eliminate(U, first, a - first, R, a, a + 1, 0, m, False)
            eliminate(U, first, a - first, inverse, a, a + 1, 0, a, False)
            f = 1.0 / U[a, a]
            g = f if dead[a] == 0.0 else 0.0
            for j in range(m):
                R[a, j] *= g
                schur[j] -= R[a, j] * R[a, j]
            for j in range(a + 1):
                inverse[a, j] *= f
        eliminate(U, first, last - first, R, last, k, 0, m, False)
        eliminate(U, first, last - first, inverse, last, k, 0, last, False)
    for a in range(k - 1, -1, -1):  # backward: R = U^-1 (U^-T C)
        l = a + 1
        while l + 4 <= k:
            f0, f1, f2, f3 = U[a, l], U[a, l + 1], U[a, l + 2], U[a, l + 3]
            l0, l1, l2, l3 = U64(l), U64(l + 1), U64(l + 2), U64(l + 3)
            for j in range(m):
                R[a, j] -= (f0 * R[l0, j] + f1 * R[l1, j]) + (f2 * R[l2, j] + f3 * R[l3, j])
            l += 4
        while l < k:
            f0 = U[a, l]
            for j in range(m):
                R[a, j] -= f0 * R[l, j]
            l += 1
        f0 = 1.0 / U[a, a]
        for j in range(m):
            R[a, j] *= f0
    spread[:k] = 0.0
    for a in range(k):
        for j in range(a + 1):
            spread[j] += inverse[a, j] * inverse[a, j]
    for a in range(k - 1):
        drop[a] = 0.5 * u[a] * u[a] / spread[a]
    for j in range(m):
        o = outside[j]
        if schur[j] <= 1e-12 * (gram[o, o] + ridge[o]):
            gain[j], schur[j] = 0.0, np.inf  # depends on the support: nothing to gain
        else:
            gain[j] = 0.5 * grad[j] * grad[j] / schur[j]


@compiled
def swap_changes(u: Vector, spread: Vector, grad: Vector, schur: Vector, R: Matrix, change: Vector) -> None:
    """change[a * m + j]: the model's objective after a leaves and j enters, minus the one now."""
    m = grad.size
    for a in range(u.size - 1):
        for j in range(m):
            step = grad[j] / schur[j]
            coef = u[a] + R[a, j] * step
            change[a * m + j] = 0.5 * (
                coef * coef / (spread[a] + R[a, j] * R[a, j] / schur[j]) - grad[j] * step
            )


@compiled
def double_changes(
    u: Vector,
    inverse: Matrix,
    grad: Vector,
    schur: Vector,
    cross: Matrix,
    R: Matrix,
    lose: Indices,
    take: Indices,
    change: Vector,
) -> int:
    """The same for pairs: lose[a], lose[b] leave, take[i], take[j] enter; pairs in lexicographic
    order.

    inverse: H^-1 on `lose` x `lose`; cross: the Schur complement on `take` x `take`.
    """
    at = 0
    for a in range(lose.size):
        for b in range(a + 1, lose.size):
            la, lb = lose[a], lose[b]
            for i in range(take.size):
                for j in range(i + 1, take.size):
                    ti, tj = take[i], take[j]
                    det = schur[ti] * schur[tj] - cross[i, j] * cross[i, j]
                    if not det > 1e-10 * schur[ti] * schur[tj] or not det < np.inf:
                        change[at] = np.inf
                        at += 1
                        continue
                    dii, djj, dij = schur[tj] / det, schur[ti] / det, -cross[i, j] / det
                    si = dii * grad[ti] + dij * grad[tj]
                    sj = dij * grad[ti] + djj * grad[tj]
                    gained = grad[ti] * si + grad[tj] * sj
                    ai, aj, bi, bj = R[la, ti], R[la, tj], R[lb, ti], R[lb, tj]
                    ca, cb = u[la] + ai * si + aj * sj, u[lb] + bi * si + bj * sj
                    pa, pb = ai * dii + aj * dij, ai * dij + aj * djj
                    maa = inverse[a, a] + pa * ai + pb * aj
                    mab = inverse[a, b] + pa * bi + pb * bj
                    mbb = inverse[b, b] + (bi * dii + bj * dij) * bi + (bi * dij + bj * djj) * bj
                    det = maa * mbb - mab * mab
                    if det > 0.0:
                        lost = (ca * ca * mbb - 2.0 * ca * cb * mab + cb * cb * maa) / det
                        change[at] = 0.5 * (lost - gained)
                    else:
                        change[at] = np.inf
                    at += 1
    return at


@compiled
def nth_pair(r: int, n: int) -> tuple[int, int]:
    """The r-th of the pairs (a, b), a < b < n, in lexicographic order."""
    a = 0
    while r >= n - 1 - a:
        r -= n - 1 - a
        a += 1
    return a, a + 1 + r


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
