"""The exact minimum on a given support.

The loss is piecewise quadratic. On the rows that are active its minimum is one linear system away;
going there, or to the exact minimum along the line, lowers the objective strictly, so that no set
of active rows comes back and the iteration ends.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.linalg import U64, cholesky, solve
from kmargin.solvers.panel import combine, shift_gram
from kmargin.types import Flags, Indices, Matrix, Vector

# A loss that is zero but for rounding.
NO_LOSS = 1e-20


@compiled
def half_positive_sq(e: Vector) -> float:
    """1/2 sum max(0, e)^2"""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    n = e.size
    i = 0
    while i + 4 <= n:
        a, b, c, d = max(e[i], 0.0), max(e[i + 1], 0.0), max(e[i + 2], 0.0), max(e[i + 3], 0.0)
        s0 += a * a
        s1 += b * b
        s2 += c * c
        s3 += d * d
        i += 4
    while i < n:
        a = max(e[i], 0.0)
        s0 += a * a
        i += 1
    return 0.5 * ((s0 + s1) + (s2 + s3))


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
def exact_step(e: Vector, delta: Vector, ud: float, dd: float) -> float:
    """The minimiser t > 0 of 1/2 sum max(0, e - t delta)^2 + t ud + t^2/2 dd.

    Its derivative is increasing and piecewise linear: Newton on it, kept inside a bracket, halving
    when it leaves.
    """
    lo, hi, t = 0.0, np.inf, 1.0
    for _ in range(60):
        slope, curve = ud + t * dd, dd
        for i in range(e.size):
            r = e[i] - t * delta[i]
            if r > 0.0:
                slope -= delta[i] * r
                curve += delta[i] * delta[i]
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
    d[:] = rhs
    cholesky(U, k, dead)
    solve(U, k, dead, d)
    promise = 0.0
    for a in range(k):
        promise += 0.5 * d[a] * rhs[a]
    return promise


@compiled
def note_flips(resid: Vector, active: Flags, rows: Indices, signs: Vector) -> int:
    """Bring `active` up to date; list the rows that changed sides, with +1 for those that came in."""
    flips = 0
    for i in range(resid.size):
        now = resid[i] > 0.0
        if now != active[i]:
            active[i] = now
            rows[flips] = i
            signs[flips] = 1.0 if now else -1.0
            flips += 1
    return flips


@compiled
def newton(
    panel: Matrix,
    ridge: Vector,
    idx: Indices,
    u: Vector,
    H: Matrix,
    z: Vector,
    active: Flags,
    resid: Vector,
    give_up: float,
    tol: float,
    max_iter: int,
) -> tuple[float, int]:
    """Minimise over the columns idx, from u; return the objective and the number of steps.

    H (upper triangle, without the ridge) and z are the columns' Gram matrix and their products with
    the target over the active rows; u, H, z, active and resid are brought along.

    Every step goes to the minimum of the quadratic that holds on the active rows. If the objective
    does not fall enough it goes to the exact minimum along that line. The first step comes from the
    Gram matrix alone and is not questioned. The iteration ends when the active rows stay the same,
    when the quadratic promises less than tol * objective, or as soon as twice its promise cannot
    reach `give_up`.
    """
    k, n = idx.size, panel.shape[1]
    U, d, dead, rhs = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    delta, rows, signs, work = np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty((4, k))
    target = panel[panel.shape[0] - 1]
    value = np.inf
    for n_iter in range(max_iter):
        promise = newton_direction(H, z, ridge, idx, u, U, rhs, d, dead)
        full = True
        if n_iter == 0:
            for a in range(k):
                u[a] += d[a]
            combine(panel, idx, u, delta)
            for i in range(n):
                resid[i] = target[i] - delta[i]
            uu, _, _ = ridge_terms(ridge, idx, u, u)
            value = half_positive_sq(resid) + 0.5 * uu
        else:
            if promise <= tol * value or value < NO_LOSS or value - 2.0 * promise > give_up:
                return value, n_iter
            combine(panel, idx, d, delta)
            uu, ud, dd = ridge_terms(ridge, idx, u, d)
            loss = 0.0
            for i in range(n):
                r = max(resid[i] - delta[i], 0.0)
                loss += r * r
            new_value = 0.5 * (loss + uu + dd) + ud
            t = 1.0
            if new_value > value - 0.2 * promise:
                t = exact_step(resid, delta, ud, dd)
                full = False
            for a in range(k):
                u[a] += t * d[a]
            for i in range(n):
                resid[i] -= t * delta[i]
            if not full:
                uu, _, _ = ridge_terms(ridge, idx, u, u)
                new_value = half_positive_sq(resid) + 0.5 * uu
                if not new_value < value:  # nothing left but rounding
                    return min(value, new_value), n_iter
            value = new_value
        flips = note_flips(resid, active, rows, signs)
        if flips == 0 and full:
            return value, n_iter + 1
        shift_gram(panel, idx, rows, signs, flips, H, z, work)
    return value, max_iter


def newton_readable(A: Matrix, target: Vector, ridge: Vector, u: Vector, max_iter: int = 200) -> Vector:
    """The same in NumPy: minimise 1/2 sum max(0, target - A u)^2 + 1/2 sum ridge u^2 from u."""
    for _ in range(max_iter):
        resid = target - A @ u
        active = resid > 0
        gradient = ridge * u - A[active].T @ resid[active]
        hessian = A[active].T @ A[active] + np.diag(ridge)
        d = -np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        promise = -gradient @ d / 2
        value = np.sum(np.maximum(resid, 0) ** 2) / 2 + ridge @ u**2 / 2
        if promise <= 1e-15 * value:
            break
        u = u + exact_step(resid, A @ d, float(ridge @ (u * d)), float(ridge @ (d * d))) * d
    return u


@compiled
def newton_from_gram(
    panel: Matrix,
    ridge: Vector,
    gram: Matrix,
    active: Flags,
    idx: Indices,
    u: Vector,
    new_active: Flags,
    resid: Vector,
    give_up: float,
    tol: float,
) -> tuple[float, int]:
    """Newton on idx from the panel's Gram at `active`; new_active and resid describe the result."""
    k = idx.size
    target = gram.shape[0] - 1
    H, z = np.empty((k, k)), np.empty(k)
    for a in range(k):
        z[a] = gram[idx[a], target]
        for b in range(a, k):
            H[a, b] = gram[idx[a], idx[b]]
    new_active[:] = active
    return newton(panel, ridge, idx, u, H, z, new_active, resid, give_up, tol, 100)
