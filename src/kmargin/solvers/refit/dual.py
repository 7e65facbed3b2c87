"""Newton steps where k exceeds the number of active rows.

The systems solved are then as large as the active rows, not as the support.
"""

from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design
from kmargin.core.jit import compiled
from kmargin.core.linalg import axpy, solve
from kmargin.solvers.refit.newton import NO_LOSS, Line, exact_step, total_loss

# The least ridge that a dual system is solved with, relative to the curvature of its rows.
PROXIMAL = 1e-10


class DualRows(NamedTuple):
    """The rows that have been active at some time; their features on a support, signed; K = B B'.

    The arrays have room to spare: only the first `n_rows` places count.
    """

    rows: Indices
    n_rows: int
    B: Matrix  # (room, k)
    K: Matrix  # (room, room)

    @classmethod
    def none(cls, k: int) -> "DualRows":
        return cls(np.empty(0, np.int64), 0, np.empty((0, k)), np.empty((0, 0)))

    def trimmed(self) -> "DualRows":
        """Without the room to spare."""
        m = self.n_rows
        return DualRows(self.rows[:m], m, self.B[:m], np.ascontiguousarray(self.K[:m, :m]))


def n_dual_numbers(n_active: int, k: int) -> int:
    """How many numbers a dual solve holds: B, K, and a factor of I + K / lam."""
    return n_active * (k + 3 * n_active)


def enlist(design: Design, t: Vector, cols: Indices, resid: Vector, store: DualRows) -> DualRows:
    """Give every active row a place. Returns the (perhaps larger) store."""
    rows, n_rows, B, K = store
    is_new = squared_hinge.is_active(resid)
    is_new[rows[:n_rows]] = False
    fresh = np.flatnonzero(is_new)
    if len(fresh) == 0:
        return store
    total = n_rows + len(fresh)
    if total > len(rows):
        size = min(len(resid), total + total // 4)
        larger = np.empty(size, np.int64), np.empty((size, len(cols))), np.empty((size, size))
        larger[0][:n_rows], larger[1][:n_rows] = rows[:n_rows], B[:n_rows]
        larger[2][:n_rows, :n_rows] = K[:n_rows, :n_rows]
        rows, B, K = larger
    rows[n_rows:total] = fresh
    B[n_rows:total] = t[fresh, None] * design.block(fresh, cols)
    block = B[n_rows:total] @ B[:total].T
    K[n_rows:total, :total] = block
    K[:n_rows, n_rows:total] = block[:, :n_rows].T
    return DualRows(rows, total, B, K)


@compiled
def dual_factor(
    K: Matrix, rows: Indices, n_rows: int, resid: Vector, mu: float
) -> tuple[Indices, Matrix, Vector]:
    """Places of the active rows, and the Cholesky factor of I + K / mu on them."""
    places = np.empty(n_rows, np.int64)
    m = 0
    for r in range(n_rows):
        if squared_hinge.is_active(resid[rows[r]]):
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
def proximal_weight(K: Matrix, n_rows: int, lam: float) -> float:
    """What is added to a ridge next to nothing beside the columns, so that systems are definite."""
    trace = 0.0
    for r in range(n_rows):
        trace += K[r, r]
    eps = max(PROXIMAL * trace / max(n_rows, 1) - lam, 0.0)
    return 1.0 if lam + eps == 0.0 else eps  # where the columns are zero on these rows


@compiled
def dual_direction(
    rows: Indices,
    n_rows: int,
    B: Matrix,
    K: Matrix,
    t: Vector,
    c: Vector,
    lam: float,
    intercept: bool,
    w: Vector,
    b: float,
    resid: Vector,
    d: Vector,
) -> float:
    """The way to the minimum of the quadratic: d for w, and the return value for b.

    w = A'r / lam, (I + A A' / lam) r + t b = c, t'r = 0 over the active rows. Where lam is next to
    nothing beside the columns, the step is a proximal one with a tiny weight (mu), so that the system stays
    definite.
    """
    n_active = 0
    for r in range(n_rows):
        n_active += squared_hinge.is_active(resid[rows[r]])
    if n_active == 0:  # no row falls short: all that is left to lower is the ridge
        d[:] = -w
        return 0.0
    eps = proximal_weight(K, n_rows, lam)
    mu = lam + eps
    places, U, dead = dual_factor(K, rows, n_rows, resid, mu)
    m = places.size
    r0, r1 = np.empty(m), np.empty(m)
    for a in range(m):
        i = rows[places[a]]
        r0[a] = c[i] - eps / mu * (c[i] - resid[i] - t[i] * b)
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
    for j in range(d.size):
        d[j] = (d[j] + eps * w[j]) / mu - w[j]
    return new_b - b


@compiled
def take_step(
    lam: float,
    w: Vector,
    d: Vector,
    resid: Vector,
    delta: Vector,
    value: float,
    give_up: float,
    tol: float,
) -> tuple[float, float, bool]:
    """Go along d, which lowers the residuals by delta: all the way, or to the exact minimum on it.

    w and resid are brought along. Returns the step (0 if it promises too little to be taken), the
    objective after it, and whether every row stayed on its side and the step was a full one.
    """
    ud, dd, uu = lam * np.dot(w, d), lam * np.dot(d, d), lam * np.dot(w, w)
    slope, s = 0.0, 0.0
    for i in range(resid.size):
        slope -= delta[i] * squared_hinge.slope(resid[i])
        s += squared_hinge.twice_value(resid[i] - delta[i])
    promise = -0.5 * (slope + ud)
    if promise <= tol * value or value - 2.0 * promise > give_up:
        return 0.0, value, True
    step = 1.0
    if 0.5 * (s + uu + dd) + ud > value - 0.2 * promise:
        step = exact_step(Line(resid, delta), ud, dd)
    flips = 0
    for j in range(w.size):
        w[j] += step * d[j]
    for i in range(resid.size):
        before = squared_hinge.is_active(resid[i])
        resid[i] -= step * delta[i]
        flips += before != squared_hinge.is_active(resid[i])
    return step, total_loss(resid) + 0.5 * lam * np.dot(w, w), flips == 0 and step == 1.0


def newton_dual(
    design: Design,
    t: Vector,
    c: Vector,
    lam: float,
    cols: Indices,
    w: Vector,
    b: float,
    resid: Vector,
    store: DualRows,
    give_up: float,
    tol: float,
) -> tuple[float, float, DualRows, int]:
    """`newton` with systems as large as the active rows; w and resid are brought along.

    Returns the objective, the intercept, the store and the number of steps.
    """
    d = np.empty(len(cols))
    value = 0.5 * lam * float(w @ w) + total_loss(resid)
    n_iter = 0
    while n_iter < 100 and value > NO_LOSS:
        store = enlist(design, t, cols, resid, store)
        db = dual_direction(*store, t, c, lam, design.fit_intercept, w, b, resid, d)
        delta = t * (design.product(cols, d) + db)
        step, new_value, settled = take_step(lam, w, d, resid, delta, value, give_up, tol)
        if step == 0.0:
            break
        b += step * db
        n_iter += 1
        if not new_value < value:
            break
        value = new_value
        if settled:
            break
    return value, b, enlist(design, t, cols, resid, store), n_iter


@compiled
def leverage(A: Matrix, t: Vector, U: Matrix) -> Vector:
    """h_j = x_j'(I + K/lam)^-1 x_j for the columns x_j of A, the intercept's column t projected out.

    Rows are the active ones; U'U = I + K/lam.
    """
    m, s = A.shape
    Y = np.empty((m, s + 1))
    for a in range(m):
        Y[a, s] = t[a]
        for j in range(s):
            Y[a, j] = A[a, j]
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
