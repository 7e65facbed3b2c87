"""A panel: columns of the design made ready for Newton steps, and their Gram matrix on the active rows.

The problem ::

    minimise 1/(2n) sum_i s_i max(0, 1 - y_i (x_i'w + b))^2 + lam/2 ||w||^2

is rewritten once so that nothing below knows about labels, weights or the intercept. With
t_i = sqrt(s_i / n) y_i, a_ij = t_i x_ij, an intercept column t and a target c_i = sqrt(s_i / n) it reads ::

    minimise 1/2 sum_i max(0, c_i - a_i'u)^2 + 1/2 sum_j ridge_j u_j^2

with ridge = lam, and 0 for the intercept. `panel` holds these columns as contiguous rows: panel[j]
is a feature, panel[q] the intercept (zeros with ridge 1 when there is none), panel[q + 1] the target.
A panel is all of X, or a working set of columns around the support.

What a row adds is the loss of its residual c_i - a_i'u (`losses.squared_hinge`, in panel form), and it is
active while that is positive. `gram` is the panel's Gram matrix over the active rows, all of curvature 1.
Where few rows change sides it is updated, not built anew.
"""

import numpy as np

from kmargin.design import Design
from kmargin.jit import compiled
from kmargin.losses import squared_hinge
from kmargin.solvers.linalg import U64
from kmargin.types import Flags, Indices, Matrix, Vector
from kmargin.vectors import axpy, axpy4


@compiled
def build_gram(panel: Matrix, active: Flags, gram: Matrix) -> None:
    """gram <- panel[:, active] @ panel[:, active].T (our own kernel: BLAS threads would spin on
    products this small).
    """
    q, n = panel.shape
    rows, signs = np.empty(n, np.int64), np.ones(n)
    m = 0
    for i in range(n):
        if active[i]:
            rows[m] = i
            m += 1
    gram[:, :] = 0.0
    shift_gram(panel, np.arange(q), rows, signs, m, gram, np.empty(q), np.empty((4, q)))
    for a in range(q):
        for b in range(a + 1, q):
            gram[b, a] = gram[a, b]


@compiled
def renew_gram(panel: Matrix, active: Flags, places: Indices, others: Indices, gram: Matrix) -> None:
    """The same of some rows of the panel with others, in either order.

    Added up in the same order, so that it has the same bits.
    """
    n, q = panel.shape[1], others.size
    rows, x, f, H = np.zeros(n + 3, np.int64), np.zeros((4, q)), np.zeros(4), np.zeros((places.size, q))
    m = 0
    for i in range(n):
        if active[i]:
            rows[m] = i
            m += 1
    for r in range(0, m, 4):
        for s in range(4):
            for b in range(q):
                x[s, b] = panel[others[b], rows[r + s]] if r + s < m else 0.0
        for a in range(places.size):
            for s in range(4):
                f[s] = panel[places[a], rows[r + s]] if r + s < m else 0.0
            f0, f1, f2, f3 = f[0], f[1], f[2], f[3]
            for b in range(q):
                H[a, b] += (f0 * x[0, b] + f1 * x[1, b]) + (f2 * x[2, b] + f3 * x[3, b])
    for a in range(places.size):
        for b in range(q):
            gram[places[a], others[b]] = H[a, b]
            gram[others[b], places[a]] = H[a, b]


@compiled
def shift_gram(
    panel: Matrix, idx: Indices, rows: Indices, signs: Vector, n_rows: int, H: Matrix, z: Vector, x: Matrix
) -> None:
    """Add (sign +1) or remove (-1) rows in the Gram of the columns idx: upper H, and z = columns'
    target.

    Four rows at a time; x is scratch of shape (4, >= idx.size).
    """
    k = idx.size
    c = panel[panel.shape[0] - 1]
    stop = U64(k)
    for r in range(0, n_rows, 4):
        m = min(4, n_rows - r)
        for s in range(4):
            if s < m:
                i = rows[r + s]
                f = c[i] * signs[r + s]
                for a in range(k):
                    x[s, a] = panel[idx[a], i]
                    z[a] += f * x[s, a]
            else:
                x[s, :k] = 0.0
        s0 = signs[r]
        s1 = signs[r + 1] if m > 1 else 0.0
        s2 = signs[r + 2] if m > 2 else 0.0
        s3 = signs[r + 3] if m > 3 else 0.0
        a = 0
        while a < k:  # two rows of H at once
            ua = U64(a)
            f0, f1, f2, f3 = s0 * x[0, ua], s1 * x[1, ua], s2 * x[2, ua], s3 * x[3, ua]
            if a + 1 == k:
                H[ua, ua] += (f0 * x[0, ua] + f1 * x[1, ua]) + (f2 * x[2, ua] + f3 * x[3, ua])
                break
            va = U64(a + 1)
            g0, g1, g2, g3 = s0 * x[0, va], s1 * x[1, va], s2 * x[2, va], s3 * x[3, va]
            for b in range(ua, stop):
                x0, x1, x2, x3 = x[0, b], x[1, b], x[2, b], x[3, b]
                H[ua, b] += (f0 * x0 + f1 * x1) + (f2 * x2 + f3 * x3)
                H[va, b] += (g0 * x0 + g1 * x1) + (g2 * x2 + g3 * x3)
            a += 2


@compiled
def sync_gram(panel: Matrix, active: Flags, new_active: Flags, gram: Matrix) -> None:
    """Bring the full panel's Gram from `active` to `new_active` (which is copied over `active`)."""
    q, n = panel.shape
    rows, signs = np.empty(n, np.int64), np.empty(n)
    flips, kept = 0, 0
    for i in range(n):
        if active[i] != new_active[i]:
            rows[flips] = i
            signs[flips] = 1.0 if new_active[i] else -1.0
            active[i] = new_active[i]
            flips += 1
        kept += new_active[i]
    if flips == 0:
        return
    if 2 * flips > kept:
        build_gram(panel, active, gram)
        return
    shift_gram(panel, np.arange(q), rows, signs, flips, gram, np.zeros(q), np.empty((4, q)))
    for a in range(q):
        for b in range(a + 1, q):
            gram[b, a] = gram[a, b]


@compiled
def combine(panel: Matrix, idx: Indices, d: Vector, out: Vector) -> None:
    """out <- sum_a d[a] * panel[idx[a]], four columns at a time."""
    k4 = idx.size - idx.size % 4
    out[:] = 0.0
    for a in range(0, k4, 4):
        axpy4(
            d[a],
            panel[idx[a]],
            d[a + 1],
            panel[idx[a + 1]],
            d[a + 2],
            panel[idx[a + 2]],
            d[a + 3],
            panel[idx[a + 3]],
            out,
        )
    for a in range(k4, idx.size):
        axpy(d[a], panel[idx[a]], out)


@compiled
def total_loss(resid: Vector) -> float:
    """Of rows with these residuals, four at a time."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    n = resid.size
    i = 0
    while i + 4 <= n:
        s0 += squared_hinge.twice_value(resid[i])
        s1 += squared_hinge.twice_value(resid[i + 1])
        s2 += squared_hinge.twice_value(resid[i + 2])
        s3 += squared_hinge.twice_value(resid[i + 3])
        i += 4
    while i < n:
        s0 += squared_hinge.twice_value(resid[i])
        i += 1
    return 0.5 * ((s0 + s1) + (s2 + s3))


@compiled
def residual(panel: Matrix, idx: Indices, u: Vector, resid: Vector) -> None:
    combine(panel, idx, u, resid)
    c = panel[panel.shape[0] - 1]
    for i in range(resid.size):
        resid[i] = c[i] - resid[i]


@compiled
def outside_of(idx: Indices, free: Flags) -> Indices:
    """Places of a panel that are free and not in idx."""
    q = free.size
    taken = np.zeros(q + 1, np.bool_)
    for a in range(idx.size):
        taken[idx[a]] = True
    out = np.empty(q + 1 - idx.size, np.int64)
    m = 0
    for j in range(q):
        if free[j] and not taken[j]:
            out[m] = j
            m += 1
    return out[:m]


def make_panel(
    design: Design, t: Vector, c: Vector, columns: Indices, size: int, room: Matrix | None = None
) -> Matrix:
    """A panel with room for `size` columns, the first of them filled with these; in `room` if given."""
    panel = np.empty((size + 2, design.n_samples)) if room is None else room
    panel[len(columns) : size] = 0.0
    design.fill_panel(columns, t, np.arange(len(columns)), panel)
    panel[size] = t if design.fit_intercept else 0.0
    panel[size + 1] = c
    return panel


def make_ridge(lam: float, size: int, fit_intercept: bool) -> Vector:
    """The ridge of each row of such a panel."""
    ridge = np.full(size + 2, lam)
    ridge[size] = 0.0 if fit_intercept else 1.0
    return ridge
