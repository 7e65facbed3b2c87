"""The exact minimum on a given support.

The loss is piecewise quadratic. On the rows that are active its minimum is one linear system away;
going there, or to the exact minimum along the line, lowers the objective strictly, so that no set
of active rows comes back and the iteration ends.
"""

from typing import Any

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.linalg import U64, cholesky, solve
from kmargin.solvers.panel import combine, shift_gram
from kmargin.types import Flags, Indices, Matrix, Vector


@compiled
def half_positive_sq(e: Vector) -> Any:
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
def ridge_terms(ridge: Vector, idx: Indices, u: Vector, d: Vector) -> Any:
    """u'Ru, u'Rd, d'Rd for the diagonal ridge R."""
    uu, ud, dd = 0.0, 0.0, 0.0
    for a in range(idx.size):
        r = ridge[idx[a]]
        uu += r * u[a] * u[a]
        ud += r * u[a] * d[a]
        dd += r * d[a] * d[a]
    return uu, ud, dd


@compiled
def exact_step(e: Vector, delta: Vector, ud: float, dd: float) -> Any:
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
) -> Any:
    """Minimise over the columns idx, from u. H, z: their Gram (upper, no ridge) and target products
    on `active`.

    Returns (objective, iterations); u, H, z, active, resid are brought along. Every iteration
    solves the quadratic that holds on the active rows and goes there; if the objective does not
    fall enough it steps to the exact minimum along that line, so it falls strictly and no active
    set comes back. The first step is taken without a look back. Stops when the active rows stay the
    same, when the model promises less than tol * objective, or as soon as twice that promise cannot
    reach `give_up`.
    """
    k, n = idx.size, panel.shape[1]
    target = panel.shape[0] - 1
    U = np.empty((k, k))
    d, dead, rhs, x = np.empty(k), np.empty(k), np.empty(k), np.empty((4, k))
    delta = np.empty(n)
    rows, signs = np.empty(n, np.int64), np.empty(n)
    c = panel[target]
    value = np.inf
    n_iter = 0
    while n_iter < max_iter:
        for a in range(k):
            for b in range(a, k):
                U[a, b] = H[a, b]
            U[a, a] += ridge[idx[a]]
        for a in range(k):
            d[a] = z[a] - U[a, a] * u[a]
        for a in range(k):
            ua = U64(a)
            f, g = 0.0, u[a]
            for b in range(U64(a + 1), U64(k)):
                f += H[ua, b] * u[b]
            for b in range(U64(a + 1), U64(k)):
                d[b] -= H[ua, b] * g
            d[a] -= f
        rhs[:] = d
        cholesky(U, k, dead)
        solve(U, k, dead, d)
        promise = 0.0
        for a in range(k):
            promise += 0.5 * d[a] * rhs[a]
        full = True
        if n_iter == 0:
            for a in range(k):
                u[a] += d[a]
            combine(panel, idx, u, delta)
            for i in range(n):
                resid[i] = c[i] - delta[i]
            uu, _, _ = ridge_terms(ridge, idx, u, u)
            value = half_positive_sq(resid) + 0.5 * uu
        else:
            if promise <= tol * value or value < 1e-20 or value - 2.0 * promise > give_up:
                break
            combine(panel, idx, d, delta)
            uu, ud, dd = ridge_terms(ridge, idx, u, d)
            s = 0.0
            for i in range(n):
                r = max(resid[i] - delta[i], 0.0)
                s += r * r
            new_value = 0.5 * (s + uu + dd) + ud
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
                if not new_value < value:
                    value = min(value, new_value)
                    break
            value = new_value
        n_iter += 1
        flips = 0
        for i in range(n):
            now = resid[i] > 0.0
            if now != active[i]:
                active[i] = now
                rows[flips] = i
                signs[flips] = 1.0 if now else -1.0
                flips += 1
        if flips == 0 and full:
            break
        shift_gram(panel, idx, rows, signs, flips, H, z, x)
    return value, n_iter


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
) -> Any:
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
