"""Newton steps where k exceeds the number of active rows.

The systems solved are then as large as the active rows, not as the support.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.columns import design_product, design_rows
from kmargin.solvers.linalg import axpy, solve
from kmargin.solvers.newton import NO_LOSS, exact_step, half_positive_sq
from kmargin.types import Indices, Matrix, Vector


@compiled
def enlist(
    X: Matrix, t: Vector, cols: Indices, resid: Vector, rows: Indices, n_rows: int, B: Matrix, K: Matrix
) -> tuple[Indices, int, Matrix, Matrix]:
    """Give every active row a place in B (its features) and K = B B'. Returns the (perhaps larger)
    store.
    """
    known = np.zeros(resid.size, np.bool_)
    for r in range(n_rows):
        known[rows[r]] = True
    total = n_rows
    for i in range(resid.size):
        if resid[i] > 0.0 and not known[i]:
            total += 1
    if total == n_rows:
        return rows, n_rows, B, K
    if total > rows.size:
        size = min(resid.size, total + total // 4)
        new_rows, new_B, new_K = np.empty(size, np.int64), np.empty((size, cols.size)), np.empty((size, size))
        new_rows[:n_rows] = rows[:n_rows]
        new_B[:n_rows] = B[:n_rows]
        new_K[:n_rows, :n_rows] = K[:n_rows, :n_rows]
        rows, B, K = new_rows, new_B, new_K
    r = n_rows
    for i in range(resid.size):
        if resid[i] > 0.0 and not known[i]:
            rows[r] = i
            r += 1
    design_rows(X, t, cols, rows, n_rows, total, B)
    block = np.dot(B[n_rows:total], B[:total].T)
    K[n_rows:total, :total] = block
    K[:n_rows, n_rows:total] = block[:, :n_rows].T
    return rows, total, B, K


@compiled
def dual_factor(
    K: Matrix, rows: Indices, n_rows: int, resid: Vector, mu: float
) -> tuple[Indices, Matrix, Vector]:
    """Places of the active rows, and the Cholesky factor of I + K / mu on them."""
    places = np.empty(n_rows, np.int64)
    m = 0
    for r in range(n_rows):
        if resid[rows[r]] > 0.0:
            places[m] = r
            m += 1
    places = places[:m]
    A = np.empty((m, m))
    for a in range(m):
        for b in range(m):
            A[a, b] = K[places[a], places[b]] / mu
        A[a, a] += 1.0
    return places, np.ascontiguousarray(np.linalg.cholesky(A).T), np.zeros(m)


@compiled
def newton_dual(
    X: Matrix,
    t: Vector,
    c: Vector,
    lam: float,
    intercept: bool,
    cols: Indices,
    w: Vector,
    b: float,
    resid: Vector,
    rows: Indices,
    n_rows: int,
    B: Matrix,
    K: Matrix,
    give_up: float,
    tol: float,
) -> tuple[float, float, Indices, int, Matrix, Matrix, int]:
    """`newton` with a system as large as the active rows: w = A'r / lam, (I + A A' / lam) r + t b =
    c, t'r = 0.

    With lam = 0 the step is a proximal one with a tiny weight (mu), so the system stays definite.
    """
    n, k = resid.size, cols.size
    delta, d = np.empty(n), np.empty(k)
    value = 0.5 * lam * np.dot(w, w) + half_positive_sq(resid)
    n_iter = 0
    while n_iter < 100 and value > NO_LOSS:
        rows, n_rows, B, K = enlist(X, t, cols, resid, rows, n_rows, B, K)
        trace = 0.0
        for r in range(n_rows):
            trace += K[r, r]
        eps = 1e-10 * trace / n_rows if lam == 0.0 else 0.0
        mu = lam + eps
        places, U, dead = dual_factor(K, rows, n_rows, resid, mu)
        m = places.size
        r0, r1 = np.empty(m), np.empty(m)
        for a in range(m):
            i = rows[places[a]]
            r0[a] = c[i] if eps == 0.0 else resid[i] + t[i] * b
            r1[a] = t[i]
        solve(U, m, dead, r0)
        new_b = b
        if intercept:
            solve(U, m, dead, r1)
            top, bottom = 0.0, 0.0
            for a in range(m):
                top += t[rows[places[a]]] * r0[a]
                bottom += t[rows[places[a]]] * r1[a]
            new_b = top / bottom
            for a in range(m):
                r0[a] -= new_b * r1[a]
        d[:] = 0.0
        for a in range(m):
            axpy(r0[a], B[places[a]], d)
        for j in range(k):
            d[j] = (d[j] + eps * w[j]) / mu - w[j]
        db = new_b - b
        design_product(X, cols, d, delta)
        ud, dd, slope, s = lam * np.dot(w, d), lam * np.dot(d, d), 0.0, 0.0
        uu = lam * np.dot(w, w)
        for i in range(n):
            delta[i] = t[i] * (delta[i] + db)
            slope -= delta[i] * max(resid[i], 0.0)
            f = max(resid[i] - delta[i], 0.0)
            s += f * f
        promise = -0.5 * (slope + ud)
        if promise <= tol * value or value - 2.0 * promise > give_up:
            break
        new_value = 0.5 * (s + uu + dd) + ud
        step = 1.0
        if new_value > value - 0.2 * promise:
            step = exact_step(resid, delta, ud, dd)
        flips = 0
        for j in range(k):
            w[j] += step * d[j]
        b += step * db
        for i in range(n):
            before = resid[i] > 0.0
            resid[i] -= step * delta[i]
            flips += before != (resid[i] > 0.0)
        new_value = half_positive_sq(resid) + 0.5 * lam * np.dot(w, w)
        n_iter += 1
        if not new_value < value:
            break
        value = new_value
        if flips == 0 and step == 1.0:
            break
    rows, n_rows, B, K = enlist(X, t, cols, resid, rows, n_rows, B, K)
    return value, b, rows, n_rows, B, K, n_iter


@compiled
def leverage(
    X: Matrix, t: Vector, intercept: bool, short: Indices, rows: Indices, places: Indices, U: Matrix
) -> Vector:
    """h_j = x_j'(I + K/lam)^-1 x_j over the active rows, the intercept projected out, for the
    columns `short`.
    """
    m, s = places.size, short.size
    Y = np.empty((m, s + 1))
    for a in range(m):
        i = rows[places[a]]
        Y[a, s] = t[i] if intercept else 0.0
        for j in range(s):
            Y[a, j] = t[i] * X[i, short[j]]
    h, cross = np.zeros(s + 1), np.zeros(s + 1)
    for a in range(m):
        f = 1.0 / U[a, a]
        last = Y[a, s] * f
        for j in range(s + 1):
            Y[a, j] *= f
            h[j] += Y[a, j] * Y[a, j]
            cross[j] += Y[a, j] * last
        for l in range(a + 1, m):
            axpy(-U[a, l], Y[a], Y[l])
    if h[s] > 0.0:
        for j in range(s):
            h[j] -= cross[j] * cross[j] / h[s]
    return h[:s]
