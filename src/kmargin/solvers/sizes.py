"""Moving between sizes of the support within a panel, and the path over many sizes."""

import numpy as np

from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.linalg import smallest
from kmargin.solvers.panel import outside_of
from kmargin.solvers.rows import Rows, companion, follow, n_columns, resume, take_gram
from kmargin.solvers.search import Fit, far_newton, make_scores, score_fit, search
from kmargin.types import Flags, Indices, Matrix, Vector


@compiled_or_remote
def minimize(fit: Fit, tol: float, counts: Indices) -> float:
    """Bring the coefficients to their minimum, and the Gram matrix with them."""
    rows = companion(fit.rows)
    value, n_iter = far_newton(fit.far[0], rows, fit.ridge, fit.gram, fit.idx, fit.u, np.inf, tol)
    follow(fit.rows, rows, fit.gram)
    counts[2] += n_iter
    return value


@compiled_or_remote
def with_support(fit: Fit, idx: Indices, u: Vector) -> Fit:
    """Another support in the same panel."""
    return Fit(fit.rows, fit.ridge, fit.gram, idx, u, fit.free, fit.far)


@compiled_or_remote
def shrink(fit: Fit, k: int, tol: float, counts: Indices) -> tuple[Fit, float]:
    """Drop the cheapest features, at most an eighth at a time with a refit between, until k are left."""
    value = np.inf
    while fit.idx.size - 1 > k:
        size = fit.idx.size - 1
        c = min(size - k, max(1, size // 8))
        scores = make_scores(size + 1, 0)
        score_fit(fit, np.empty(0, np.int64), scores)
        lose = np.empty(c, np.int64)
        smallest(scores.drop, size, c, lose)
        stays = np.ones(size + 1, np.bool_)
        for a in range(c):
            stays[lose[a]] = False
        fit = with_support(fit, fit.idx[stays], fit.u[stays])
        value = minimize(fit, tol, counts)
    return fit, value


@compiled_or_remote
def grow(fit: Fit, k: int, tol: float, counts: Indices) -> tuple[Fit, float]:
    """Add the most gainful features, half as many again at most with a refit between, until there are k, or
    all that are free.
    """
    value = np.inf
    while fit.idx.size - 1 < k:
        size = fit.idx.size - 1
        outside = outside_of(fit.idx, fit.free)
        c = min(k - size, max(1, size // 2), outside.size)
        if c == 0:  # there are no more
            break
        scores = make_scores(size + 1, outside.size)
        score_fit(fit, outside, scores)
        take = np.empty(c, np.int64)
        smallest(scores.gain, outside.size, c, take)
        idx, u = np.empty(size + 1 + c, np.int64), np.zeros(size + 1 + c)
        idx[:size], u[:size] = fit.idx[:size], fit.u[:size]
        for a in range(c):
            idx[size + a] = outside[take[a]]
        idx[size + c], u[size + c] = fit.idx[size], fit.u[size]
        fit = with_support(fit, idx, u)
        value = minimize(fit, tol, counts)
    return fit, value


@compiled
def same_set(a: Indices, b: Indices, q: int) -> bool:
    """Whether a and b, each without repetitions and as long as the other, hold the same places."""
    mark = np.zeros(q + 1, np.bool_)
    for i in range(a.size):
        mark[a[i]] = True
    for i in range(b.size):
        if not mark[b[i]]:
            return False
    return True


@compiled_or_remote
def first_fit(
    rows: Rows,
    ridge: Vector,
    gram: Matrix,
    support: Indices,
    u: Vector,
    free: Flags,
    far: Indices,
    warm: bool,
    tol: float,
    counts: Indices,
) -> tuple[Fit, float]:
    """A fit of one size: from the support given if `warm`, else of all features, or grown from none."""
    q, k = n_columns(rows), support.size - 1
    if warm:
        fit = Fit(rows, ridge, gram, support.copy(), u.copy(), free, far)
        fit.idx[k] = q
        resume(rows, fit.idx, fit.u, gram)
    elif k == q:
        fit = Fit(rows, ridge, gram, np.arange(q + 1), np.zeros(q + 1), free, far)
    else:
        bare = Fit(rows, ridge, gram, np.full(1, q, np.int64), np.zeros(1), free, far)
        fit, _ = grow(bare, k, tol, counts)
    return fit, minimize(fit, tol, counts)


@compiled_or_remote
def sweep(
    rows: Rows,
    ridge: Vector,
    ks: Indices,
    supports: Indices,
    coefs: Matrix,
    values: Vector,
    free: Flags,
    far: Indices,
    warm: bool,
    max_sweeps: int,
    max_swaps: int,
    max_doubles: int,
    room: float,
    tol: float,
    counts: Indices,
    tried: Flags,
) -> None:
    """The path over the descending sizes ks: down, up, down, ..., keeping the best support of each size.

    `supports`, `coefs` and `values` are filled in; with `warm` they hold a start for every size. `tried`
    tells for which of them every single swap was tried.
    """
    q, n_ks = n_columns(rows), ks.size
    gram = np.empty((q + 2, q + 2))
    take_gram(rows, gram)
    for at in range(n_ks if warm else 1):
        k = ks[at]
        fit, value = first_fit(
            rows, ridge, gram, supports[at, : k + 1], coefs[at, : k + 1], free, far, warm, tol, counts
        )
        value = search(fit, value, max_swaps, max_doubles, room, tol, counts)
        supports[at, :k], coefs[at, : k + 1], values[at] = fit.idx[:k], fit.u, value
        tried[at] = counts[3] == 1
    fresh = np.ones(n_ks, np.bool_)  # changed since its neighbour was last tried from it
    for number in range(max_sweeps):
        down = number % 2 == 0
        changed = np.zeros(n_ks, np.bool_)
        for r in range(1, n_ks):
            at = r if down else n_ks - 1 - r
            start = at - 1 if down else at + 1
            if not (fresh[start] or changed[start]):
                continue
            size, k = ks[start], ks[at]
            support, u = supports[start, : size + 1].copy(), coefs[start, : size + 1].copy()
            fit = Fit(rows, ridge, gram, support, u, free, far)
            fit.idx[size] = q
            resume(rows, fit.idx, fit.u, gram)
            fit, value = shrink(fit, k, tol, counts) if down else grow(fit, k, tol, counts)
            if values[at] < np.inf and same_set(fit.idx[:k], supports[at, :k], q):
                continue
            if value < np.inf:  # from beyond all numbers no search leads anywhere
                value = search(fit, value, max_swaps, max_doubles, room, tol, counts)
            # a size that has no support yet takes any: it is where the next one starts
            if value < values[at] * (1.0 - tol) or values[at] == np.inf:
                supports[at, :k], coefs[at, : k + 1], values[at] = fit.idx[:k], fit.u, value
                tried[at] = counts[3] == 1
                changed[at] = True
        if number > 0 and not changed.any():  # both directions were tried
            break
        if number > 0:
            fresh = changed
