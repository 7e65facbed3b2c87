"""What an exchange of features would do to the objective, to second order.

All scores keep the active rows as they are and refit the other coefficients and the intercept: they
come from Schur complements, not from the bare diagonal.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.linalg import U64, cholesky, eliminate
from kmargin.types import Indices, Matrix, Vector


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
