"""The predicted change of the objective when units are dropped, added or swapped, to second order.

All scores assume that the active rows (of positive loss) stay the same, and that all other coefficients and
the intercept are refitted. Let u be the coefficients at the minimum on the support, H the Hessian there, h
its entries between the support and the columns outside, and R = H^-1 h. Let g and S be the gradient and the
Schur complement of the columns outside. Subscripts select subvectors and submatrices: H^-1_AA is one of H^-1.
Dropping the columns A of the support raises the objective by u_A'(H^-1_AA)^-1 u_A / 2. Adding the columns B
lowers it by g_B'S_BB^-1 g_B / 2. Replacing A by B changes it by c'M^-1 c / 2 minus that decrease, where
c = u_A + R_AB S_BB^-1 g_B and M = H^-1_AA + R_AB S_BB^-1 R_AB'. Scores are summed over the binary problems.
Here units are single columns; `group_scores` computes the same for groups.
"""

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.jit import compiled, inlined
from kmargin.core.linalg import SINGULAR, U64, cholesky, eliminate

# A column outside the support counts as linearly dependent on it, and is not expected to lower the objective,
# if its Schur complement is at most this fraction of its diagonal entry of the Hessian.
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
    """Fill the last five arguments, from which the scores of one binary problem are computed.

    `idx` (the support, intercept last) and `outside` are rows of the panel, each of which holds a column. Let
    H be the Hessian on the support and h its entries between support and `outside`. Then R = H^-1 h,
    `variance` is the diagonal of H^-1, and `inverse` is U^-T for H = U'U, so that H^-1 = inverse.T @ inverse.
    `grad` and `schur` are gradient and Schur complement of each column outside; schur is infinite if the
    column depends linearly on the support.
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
    for first in range(0, k, 4):  # forward substitution, where H = U'U: R <- U^-T h, inverse <- U^-T
        last = min(first + 4, k)
        for a in range(first, last):
            eliminate(U, first, a - first, R, a, a + 1, 0, m, False)
            eliminate(U, first, a - first, inverse, a, a + 1, 0, a, False)
            f = g = 1.0 / U[a, a]
            if f == 0.0:  # the column depends on earlier ones: dropping it costs almost nothing
                f = 1.0 / np.sqrt(SINGULAR * abs(gram[idx[a], idx[a]] + ridge[idx[a]]) + 1e-300)
            for j in range(m):
                R[a, j] *= g
                schur[j] -= R[a, j] * R[a, j]
            for j in range(a + 1):
                inverse[a, j] *= f
        eliminate(U, first, last - first, R, last, k, 0, m, False)
        eliminate(U, first, last - first, inverse, last, k, 0, last, False)
    for a in range(k - 1, -1, -1):  # backward substitution: R <- U^-1 R, which is H^-1 h
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
    """Predict the change of the objective if single columns are dropped, added or swapped.

    Sums over the binary problems are written to drop[a], the rise without column a of the support, gain[j],
    the decrease with column j of `outside`, and change[a, j], the change if j replaces a. `signs` are the
    required signs of the columns outside; a column that would get the wrong sign has gain 0. The last five
    arguments are filled by `score_columns`. Returns whether no column outside depends linearly on the
    support, so that refits are exact.
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
    """Predict the change of the objective by each swap of two columns for two, summed over the problems.

    The results are added to `change`, which must be zeros. Its rows are the pairs of `lose` (indices into the
    support), its columns the pairs of `take` (indices into `outside`), in lexicographic order. `grad`,
    `schur`, `R` and `inverse` are the arrays that `score_singles` has computed.
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
