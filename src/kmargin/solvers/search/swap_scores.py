"""The predicted change of the objective when units are dropped, added or swapped, to second order.

All scores assume that the active rows stay the same, and account for the refit of the other coefficients and
the intercept (Schur complements, not only the diagonal of the Hessian). Let u be the minimum on the support,
H the Hessian there, h the Hessian entries between the support and the columns outside, R = H^-1 h, and g and
S the gradient and the Schur complement of the columns outside. With subscripts for submatrices (H^-1_AA is
one of H^-1), dropping the columns A of the support costs u_A'(H^-1_AA)^-1 u_A / 2. Adding the columns B gains
g_B'S_BB^-1 g_B / 2. Swapping A for B changes the objective by c'M^-1 c / 2 minus that gain, with
c = u_A + R_AB S_BB^-1 g_B and M = H^-1_AA + R_AB S_BB^-1 R_AB'. Scores are summed over the binary problems.
Here units are single columns; `group_scores` computes the same for groups.
"""

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.jit import compiled, inlined
from kmargin.core.linalg import SINGULAR, U64, cholesky, eliminate

# A column outside the support counts as linearly dependent on it, and has gain 0, if its Schur complement is
# below this fraction of its diagonal entry of the Hessian.
DEPENDENT = 1e-12


@inlined
def score_columns(
    gram: Matrix,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    outside: Indices,
    variance: Vector,
    grad: Vector,
    schur: Vector,
    R: Matrix,
    inverse: Matrix,
) -> None:
    """Compute the last five arguments, from which the scores of one binary problem follow.

    idx has the places of the support in the panel, the intercept last. `variance` is the diagonal of H^-1;
    `grad` and `schur` are gradient and Schur complement of each column outside, where schur is infinite if
    the column depends on the support; R = H^-1 h; and inverse = U^-T for H = U'U, so that
    H^-1 = inverse.T @ inverse.
    """
    k, m = idx.size, outside.size
    target = gram.shape[0] - 1
    U = np.empty((k, k))
    for a in range(k):
        for b in range(a, k):
            U[a, b] = gram[idx[a], idx[b]]
        U[a, a] += ridge[idx[a]]
    cholesky(U, k)
    for a in range(k):
        for j in range(m):
            R[a, j] = gram[idx[a], outside[j]]
        for b in range(k):
            inverse[a, b] = 1.0 if a == b else 0.0
    for j in range(m):
        o = outside[j]
        grad[j] = -gram[o, target]
        schur[j] = gram[o, o] + ridge[o]
    for a in range(k):
        ua = u[a]
        for j in range(m):
            grad[j] += ua * R[a, j]
    for first in range(0, k, 4):  # forward substitution: R <- U^-T h, inverse <- U^-T
        last = min(first + 4, k)
        for a in range(first, last):
            eliminate(U, first, a - first, R, a, a + 1, 0, m, False)
            eliminate(U, first, a - first, inverse, a, a + 1, 0, a, False)
            f = g = 1.0 / U[a, a]
            if f == 0.0:  # the column depends on earlier ones; make the cost of dropping it almost 0
                f = 1.0 / np.sqrt(SINGULAR * abs(gram[idx[a], idx[a]] + ridge[idx[a]]) + 1e-300)
            for j in range(m):
                R[a, j] *= g
                schur[j] -= R[a, j] * R[a, j]
            for j in range(a + 1):
                inverse[a, j] *= f
        eliminate(U, first, last - first, R, last, k, 0, m, False)
        eliminate(U, first, last - first, inverse, last, k, 0, last, False)
    for a in range(k - 1, -1, -1):  # backward substitution: R <- U^-1 R
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
    for a in range(k):
        variance[a] = 0.0
        for j in range(a + 1):
            variance[j] += inverse[a, j] * inverse[a, j]
    for j in range(m):
        o = outside[j]
        if schur[j] <= DEPENDENT * (gram[o, o] + ridge[o]):
            schur[j] = np.inf


@compiled
def score_singles(
    gram: Tensor,
    ridge: Matrix,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    signs: Vector | None,
    drop: Vector,
    gain: Vector,
    change: Matrix,
    variance: Matrix,
    grad: Matrix,
    schur: Matrix,
    R: Tensor,
    inverse: Tensor,
) -> bool:
    """drop, gain, change <- the scores of single columns, summed over the binary problems.

    They are the cost of dropping each column of the support, the gain of adding each column outside, and the
    change by each swap. `signs` are the required signs of the columns outside; a column that would get the
    wrong sign gains nothing. `score_columns` computes the last five arguments for each binary problem.
    Returns whether no column outside depends linearly on the support, so that refits after swaps are exact.
    """
    are_independent = True
    k, m = idx.size - 1, outside.size
    for a in range(k):
        drop[a] = 0.0
        for j in range(m):
            change[a, j] = 0.0
    for j in range(m):
        gain[j] = 0.0
    for p in range(coefs.shape[0]):
        u, var, g, s, r = coefs[p], variance[p], grad[p], schur[p], R[p]
        score_columns(gram[p], ridge[p], idx, u, outside, var, g, s, r, inverse[p])
        if signs is not None:
            for j in range(m):
                if g[j] * signs[j] > 0.0:
                    g[j] = 0.0
        for j in range(m):
            gain[j] += 0.5 * g[j] * g[j] / s[j]
            if s[j] == np.inf and gram[p, outside[j], outside[j]] > 0.0:
                are_independent = False
        for a in range(k):
            drop[a] += 0.5 * u[a] * u[a] / var[a]
            for j in range(m):
                step = g[j] / s[j]
                coef = u[a] + r[a, j] * step
                change[a, j] += 0.5 * (coef * coef / (var[a] + r[a, j] * r[a, j] / s[j]) - g[j] * step)
    return are_independent


@compiled
def score_pairs(
    gram: Tensor,
    ridge: Matrix,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    grad: Matrix,
    schur: Matrix,
    R: Tensor,
    inverse: Tensor,
    lose: Indices,
    take: Indices,
    change: Matrix,
) -> None:
    """change <- the predicted change of the objective by each swap of two columns for two.

    Rows are the pairs of `lose` (indices into the support), columns pairs of `take` (indices into `outside`),
    in lexicographic order. grad, schur, R and inverse are the arrays that `score_singles` has computed.
    """
    n_lose, n_take = lose.size, take.size
    A, S = np.empty((n_lose, n_lose)), np.empty((n_take, n_take))
    for p in range(coefs.shape[0]):
        u, g, s, r, inv = coefs[p], grad[p], schur[p], R[p], inverse[p]
        for a in range(n_lose):
            for b in range(a, n_lose):
                total = 0.0
                for l in range(max(lose[a], lose[b]), idx.size):
                    total += inv[l, lose[a]] * inv[l, lose[b]]
                A[a, b] = total
        for i in range(n_take):
            for j in range(i + 1, n_take):
                total = gram[p, outside[take[i]], outside[take[j]]]
                for a in range(idx.size):
                    total -= gram[p, idx[a], outside[take[i]]] * r[a, take[j]]
                S[i, j] = total
        row = 0
        for a in range(n_lose):
            for b in range(a + 1, n_lose):
                la, lb, column = lose[a], lose[b], 0
                for i in range(n_take):
                    for j in range(i + 1, n_take):
                        ti, tj = take[i], take[j]
                        det = s[ti] * s[tj] - S[i, j] * S[i, j]
                        if not det > 1e-10 * s[ti] * s[tj] or not det < np.inf:
                            change[row, column] = np.inf
                            column += 1
                            continue
                        dii, djj, dij = s[tj] / det, s[ti] / det, -S[i, j] / det
                        si, sj = dii * g[ti] + dij * g[tj], dij * g[ti] + djj * g[tj]
                        gained = g[ti] * si + g[tj] * sj
                        ai, aj, bi, bj = r[la, ti], r[la, tj], r[lb, ti], r[lb, tj]
                        ca, cb = u[la] + ai * si + aj * sj, u[lb] + bi * si + bj * sj
                        pa, pb = ai * dii + aj * dij, ai * dij + aj * djj
                        maa = A[a, a] + pa * ai + pb * aj
                        mab = A[a, b] + pa * bi + pb * bj
                        mbb = A[b, b] + (bi * dii + bj * dij) * bi + (bi * dij + bj * djj) * bj
                        det = maa * mbb - mab * mab
                        if det > 0.0:
                            lost = (ca * ca * mbb - 2.0 * ca * cb * mab + cb * cb * maa) / det
                            change[row, column] += 0.5 * (lost - gained)
                        else:
                            change[row, column] = np.inf
                        column += 1
                row += 1
