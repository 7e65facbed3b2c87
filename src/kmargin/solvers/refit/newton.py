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

from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.design import Design
from kmargin.core.jit import asked_of_rows, compiled, compiled_or_remote
from kmargin.core.linalg import U64, axpy, axpy4, cholesky, solve


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


class Rows(NamedTuple):
    """A panel at hand. The arrays are changed in place."""

    panel: Matrix
    active: Flags  # the rows that a Gram matrix was taken over
    resid: Vector  # of each row at the point
    delta: Vector  # by how much a step lowers it
    changed: Indices  # scratch: rows that change sides
    signs: Vector  # scratch: on which side they come out


class Line(NamedTuple):
    """Residuals and how a step changes them, without a panel."""

    resid: Vector
    delta: Vector


def make_rows(panel: Matrix) -> Rows:
    """All active, at no point yet."""
    n = panel.shape[1]
    return Rows(panel, np.ones(n, np.bool_), np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n))


@asked_of_rows
def n_columns(rows: Rows) -> int:
    """How many features the panel has room for."""
    return rows.panel.shape[0] - 2


@compiled
def cost_of_refit(n_samples: int, k: int) -> float:
    """About how many multiplications a step or two towards the minimum over k coefficients take."""
    return 2.0 * (k * n_samples + k * k * k)


@asked_of_rows
def cost_of_try(rows: Rows, k: int) -> float:
    """The same for the rows of a panel."""
    return cost_of_refit(rows.resid.size, k)


@asked_of_rows
def companion(rows: Rows) -> Rows:
    """The same rows, to try another point with: active where these are."""
    n = rows.active.size
    return Rows(rows.panel, rows.active.copy(), np.empty(n), rows.delta, rows.changed, rows.signs)


@asked_of_rows
def start_over(rows: Rows, others: Rows) -> None:
    """Active where the others are."""
    rows.active[:] = others.active


@asked_of_rows
@compiled
def place(rows: Rows, idx: Indices, u: Vector) -> None:
    """Go to a point, and let the rows be active that are so there."""
    residual(rows.panel, idx, u, rows.resid)
    for i in range(rows.resid.size):
        rows.active[i] = squared_hinge.is_active(rows.resid[i])


@asked_of_rows
def take_gram(rows: Rows, gram: Matrix) -> None:
    """The panel's Gram matrix over the active rows."""
    build_gram(rows.panel, rows.active, gram)


@asked_of_rows
def retake_gram(rows: Rows, places: Indices, others: Indices, gram: Matrix) -> None:
    """The same where only what these places of the panel have to do with others is to be made anew."""
    if 2 * places.size > rows.panel.shape[0]:
        build_gram(rows.panel, rows.active, gram)
    else:
        renew_gram(rows.panel, rows.active, places, others, gram)


@asked_of_rows
def follow(rows: Rows, others: Rows, gram: Matrix) -> None:
    """Bring the panel's Gram matrix to where the others are active."""
    sync_gram(rows.panel, rows.active, others.active, gram)


@compiled_or_remote
def resume(rows: Rows, idx: Indices, u: Vector, gram: Matrix) -> None:
    """Go to a point, and bring the Gram matrix there from where it was."""
    others = companion(rows)
    place(others, idx, u)
    follow(rows, others, gram)


@asked_of_rows
def move_to(rows: Rows, idx: Indices, u: Vector) -> float:
    """Go to u; the loss there."""
    residual(rows.panel, idx, u, rows.resid)
    return total_loss(rows.resid)


@asked_of_rows
@compiled
def look_along(rows: Rows, idx: Indices, d: Vector) -> float:
    """The loss a full step d away, doubled."""
    combine(rows.panel, idx, d, rows.delta)
    loss = 0.0
    for i in range(rows.resid.size):
        loss += squared_hinge.twice_value(rows.resid[i] - rows.delta[i])
    return loss


@asked_of_rows
@compiled
def slope_along(rows: Rows | Line, t: float, slope: float, curve: float) -> tuple[float, float]:
    """To slope and curvature, those of the loss at t times the step are added."""
    for i in range(rows.resid.size):
        r = rows.resid[i] - t * rows.delta[i]
        if squared_hinge.is_active(r):
            slope -= rows.delta[i] * squared_hinge.slope(r)
            curve += squared_hinge.curvature(r) * rows.delta[i] * rows.delta[i]
    return slope, curve


@asked_of_rows
@compiled
def advance(rows: Rows, t: float) -> None:
    """Take t times the step looked along."""
    for i in range(rows.resid.size):
        rows.resid[i] -= t * rows.delta[i]


@asked_of_rows
def loss_here(rows: Rows) -> float:
    return total_loss(rows.resid)


@asked_of_rows
@compiled
def renew_system(rows: Rows, idx: Indices, H: Matrix, z: Vector) -> bool:
    """Bring the Gram matrix of the columns idx, and their products with the target, to the rows that
    are active now; False if none has changed sides.
    """
    flips, n_active = 0, 0
    for i in range(rows.resid.size):
        now = squared_hinge.is_active(rows.resid[i])
        n_active += now
        if now != rows.active[i]:
            rows.active[i] = now
            rows.changed[flips] = i
            rows.signs[flips] = 1.0 if now else -1.0
            flips += 1
    if flips > n_active:  # to begin anew costs less, and leaves no rounding errors of the rows that are gone
        renewed = 0
        for i in range(rows.resid.size):
            if rows.active[i]:
                rows.changed[renewed] = i
                rows.signs[renewed] = 1.0
                renewed += 1
        H[:, :], z[:] = 0.0, 0.0
        shift_gram(rows.panel, idx, rows.changed, rows.signs, renewed, H, z, np.empty((4, idx.size)))
    elif flips > 0:
        shift_gram(rows.panel, idx, rows.changed, rows.signs, flips, H, z, np.empty((4, idx.size)))
    return flips > 0


@compiled_or_remote
def exact_step(rows: Rows | Line, ud: float, dd: float) -> float:
    """The minimiser t > 0 of the loss at the residuals resid - t delta, plus t ud + t^2/2 dd.

    Its derivative is increasing and piecewise linear: Newton on it, kept inside a bracket, halving
    when it leaves.
    """
    lo, hi, t = 0.0, np.inf, 1.0
    for _ in range(60):
        slope, curve = slope_along(rows, t, ud + t * dd, dd)
        if slope > 0.0:
            hi = t
        else:
            lo = t
        if not curve > 0.0:
            break
        new = t - slope / curve
        if not (lo < new < hi):
            if hi == np.inf:
                break
            new = 0.5 * (lo + hi)
        if abs(new - t) <= 1e-12 * t:
            t = new
            break
        t = new
    return t


# A loss that is zero but for rounding.
NO_LOSS = 1e-20

# A search compares objectives to `tol`. The coefficients it ends with have to be more exact: an error in
# them shows in the objective only by its square. A step that promises less than this share of what `tol`
# asks for is the last one, and is taken; one that promises nothing but rounding is not.
EXACT, NOTHING = 1e-4, 1e-20

# By so much, relatively, an objective may seem to rise when it only stays.
ROUNDING = 1e-12

MAX_NEWTON_STEPS = 100


@compiled
def ridge_terms(ridge: Vector, idx: Indices, u: Vector, d: Vector) -> tuple[float, float, float]:
    """u'Ru, u'Rd, d'Rd for the diagonal ridge R."""
    uu, ud, dd = 0.0, 0.0, 0.0
    for a in range(idx.size):
        r = ridge[idx[a]]
        uu += r * u[a] * u[a]
        ud += r * u[a] * d[a]
        dd += r * d[a] * d[a]
    return uu, ud, dd


@compiled
def newton_direction(
    H: Matrix,
    z: Vector,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    U: Matrix,
    rhs: Vector,
    d: Vector,
    dead: Vector,
) -> float:
    """d = (H + ridge)^-1 (z - (H + ridge) u), the way to the minimum of the quadratic.

    H holds an upper triangle. Returns by how much the quadratic falls on that way; U, rhs and dead
    are work arrays.
    """
    k = idx.size
    for a in range(k):
        for b in range(a, k):
            U[a, b] = H[a, b]
        U[a, a] += ridge[idx[a]]
        rhs[a] = z[a] - U[a, a] * u[a]
    for a in range(k):
        row, total, at = U64(a), 0.0, u[a]
        for b in range(U64(a + 1), U64(k)):
            total += H[row, b] * u[b]
        for b in range(U64(a + 1), U64(k)):
            rhs[b] -= H[row, b] * at
        rhs[a] -= total
    for a in range(k):  # not by slices, which take a second to compile
        d[a] = rhs[a]
    cholesky(U, k, dead)
    solve(U, k, dead, d)
    promise = 0.0
    for a in range(k):
        promise += 0.5 * d[a] * rhs[a]
    return promise


@compiled_or_remote
def take_step(
    rows: Rows,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    d: Vector,
    promise: float,
    value: float,
    tol: float,
    longest: float,
) -> tuple[float, bool, bool]:
    """Go from u along d, which promises that the objective falls from `value`; u and rows are brought along.

    A full step, if the objective falls enough; else to the exact minimum on the line, or to `longest` times d
    if that is nearer. If that does not lower the objective it is taken back. Returns the objective that
    was reached, whether the step was a full one, and whether it is the last.
    """
    k = idx.size
    uu, ud, dd = ridge_terms(ridge, idx, u, d)
    new_value = 0.5 * (look_along(rows, idx, d) + uu + dd) + ud
    # a small promise may still lie far away, along a direction that is nearly flat
    last = promise <= EXACT * tol * value and new_value <= value * (1.0 + ROUNDING)
    t, full = 1.0, True
    if not last and not new_value <= value - 0.2 * promise:
        t = min(exact_step(rows, ud, dd), longest)
        full = False
    for a in range(k):
        u[a] += t * d[a]
    advance(rows, t)
    if not full:
        uu, _, _ = ridge_terms(ridge, idx, u, u)
        new_value = loss_here(rows) + 0.5 * uu
        if not new_value < value:
            for a in range(k):
                u[a] -= t * d[a]
            advance(rows, -t)
    return new_value, full, last


@compiled_or_remote
def newton(
    rows: Rows,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    H: Matrix,
    z: Vector,
    give_up: float,
    tol: float,
    max_iter: int,
) -> tuple[float, int]:
    """Minimise over the columns idx, from u; return the objective and the number of steps.

    H (upper triangle, without the ridge) and z are the columns' Gram matrix and their products with
    the target over the active rows; u, H, z and rows are brought along.

    Every step goes to the minimum of the quadratic that holds on the active rows. If the objective
    does not fall enough it goes to the exact minimum along that line. The first step comes from the
    Gram matrix alone and is not questioned. The iteration ends when the active rows stay the same,
    after a step that promised less than EXACT * tol * objective, or as soon as twice its promise cannot
    reach `give_up`.
    """
    k = idx.size
    U, d, dead, rhs = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    value = np.inf
    for n_iter in range(max_iter):
        promise = newton_direction(H, z, ridge, idx, u, U, rhs, d, dead)
        full, last = True, False
        if n_iter == 0:
            for a in range(k):
                u[a] += d[a]
            loss = move_to(rows, idx, u)
            uu, _, _ = ridge_terms(ridge, idx, u, u)
            value = loss + 0.5 * uu
        else:
            if promise <= NOTHING * value or value < NO_LOSS or value - 2.0 * promise > give_up:
                return value, n_iter
            new_value, full, last = take_step(rows, ridge, idx, u, d, promise, value, tol, np.inf)
            if not (full or new_value < value):  # nothing left but rounding
                return value, n_iter
            value = new_value
        stays = not renew_system(rows, idx, H, z)
        if last or (stays and full):
            return value, n_iter + 1
    return value, max_iter


@compiled
def part_of_gram(gram: Matrix, idx: Indices) -> tuple[Matrix, Vector]:
    """The Gram matrix of the columns idx (its upper triangle), and their products with the target."""
    k = idx.size
    target = gram.shape[0] - 1
    H, z = np.empty((k, k)), np.empty(k)
    for a in range(k):
        z[a] = gram[idx[a], target]
        for b in range(a, k):
            H[a, b] = gram[idx[a], idx[b]]
    return H, z


@compiled_or_remote
def newton_from_gram(
    rows: Rows, ridge: Vector, gram: Matrix, idx: Indices, u: Vector, give_up: float, tol: float
) -> tuple[float, int]:
    """Newton on idx from the panel's Gram matrix over the rows that are active; rows end at the result."""
    H, z = part_of_gram(gram, idx)
    return newton(rows, ridge, idx, u, H, z, give_up, tol, MAX_NEWTON_STEPS)
