"""The search over supports within a panel."""

from typing import Any

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import newton_from_gram
from kmargin.solvers.panel import build_gram, outside_of, resume, sync_gram
from kmargin.solvers.scores import double_changes, nth_pair, score, swap_changes
from kmargin.types import Flags, Indices, Matrix, Vector

# a swap is tried while the model sees the objective rise by less than this share
HOPE = 0.02

# up to this k all tries are made, beyond it in inverse proportion
TRIES = 16

# double swaps look at so many features on either side
WIDTH = 12


@compiled
def trial(
    panel: Matrix,
    ridge: Vector,
    gram: Matrix,
    active: Flags,
    idx: Indices,
    u: Vector,
    outside: Indices,
    lose: Indices,
    take: Indices,
    c: Any,
    value: float,
    tol: float,
    new_idx: Indices,
    new_u: Vector,
    new_active: Flags,
    resid: Vector,
    counts: Indices,
) -> Any:
    """Refit with idx[lose[:c]] replaced by outside[take[:c]]; on success make the exchange and
    return True.
    """
    new_idx[:] = idx
    new_u[:] = u
    for a in range(c):
        new_idx[lose[a]] = outside[take[a]]
        new_u[lose[a]] = 0.0
    counts[1] += 1
    new_value, it = newton_from_gram(
        panel, ridge, gram, active, new_idx, new_u, new_active, resid, value, tol
    )
    counts[2] += it
    if not new_value < value * (1.0 - tol):
        return value
    for a in range(c):
        outside[take[a]] = idx[lose[a]]
    idx[:] = new_idx
    u[:] = new_u
    sync_gram(panel, active, new_active, gram)
    return new_value


@compiled
def search(
    panel: Matrix,
    ridge: Vector,
    gram: Matrix,
    active: Flags,
    idx: Indices,
    u: Vector,
    value: float,
    max_tries: int,
    max_doubles: int,
    tol: float,
    counts: Indices,
) -> Any:
    """Exchange features of the panel: c for c while that pays, then the most promising swaps, then
    double swaps.

    idx (support, then intercept) and u are improved in place, with `gram` and `active` kept in
    step; returns the objective. Ends when the `max_tries` best swaps and the `max_doubles` best
    double swaps (out of the WIDTH cheapest and WIDTH most gainful features) all fail. counts:
    [rounds, trials, newton iterations].
    """
    k = idx.size
    q, n = panel.shape[0] - 2, panel.shape[1]
    outside = outside_of(idx, q)
    m = outside.size
    if k == 1 or m == 0:
        return value
    drop, spread = np.empty(k), np.empty(k)
    gain, grad, schur, R = np.empty(m), np.empty(m), np.empty(m), np.empty((k, m))
    lose, take = np.empty(k, np.int64), np.empty(m, np.int64)
    out2, in2 = np.empty(2, np.int64), np.empty(2, np.int64)
    new_idx, new_u = idx.copy(), u.copy()
    new_active, resid = active.copy(), np.empty(n)
    everything = max_tries < 0
    if everything:
        max_tries = (k - 1) * m
    else:  # large supports: fewer and dearer tries
        max_tries = max(1, min(max_tries, TRIES * max_tries // k))
    max_doubles = min(max_doubles, TRIES * max_doubles // k)
    n_lose, n_take = min(WIDTH, k - 1), min(WIDTH, m)
    n_doubles = (n_lose * (n_lose - 1) // 2) * (n_take * (n_take - 1) // 2)
    change = np.empty(max((k - 1) * m, n_doubles))
    order = np.empty(max(max_tries, max_doubles), np.int64)
    inverse = np.empty((k, k))
    small_inverse, cross = np.empty((n_lose, n_lose)), np.empty((n_take, n_take))
    blocks = k > 2
    while True:
        counts[0] += 1
        score(panel, ridge, idx, u, gram, outside, drop, spread, gain, grad, schur, R, inverse)
        before = value
        for j in range(m):
            gain[j] = -gain[j]
        if blocks:
            smallest(drop, k - 1, k - 1, lose)
            smallest(gain, m, min(m, k - 1), take)
            c = 0
            while c < min(m, (k - 1) // 2) and drop[lose[c]] < -gain[take[c]]:
                c += 1
            while c > 1 and value == before:
                value = trial(
                    panel,
                    ridge,
                    gram,
                    active,
                    idx,
                    u,
                    outside,
                    lose,
                    take,
                    c,
                    value,
                    tol,
                    new_idx,
                    new_u,
                    new_active,
                    resid,
                    counts,
                )
                c //= 2
            blocks = value < before
        if value == before:
            swap_changes(u, spread, grad, schur, R, change)
            tries = smallest(change, (k - 1) * m, min(max_tries, (k - 1) * m), order)
            for r in range(tries):
                if not everything and change[order[r]] > HOPE * value:
                    break
                out2[0], in2[0] = order[r] // m, order[r] % m
                value = trial(
                    panel,
                    ridge,
                    gram,
                    active,
                    idx,
                    u,
                    outside,
                    out2,
                    in2,
                    np.int64(1),
                    value,
                    tol,
                    new_idx,
                    new_u,
                    new_active,
                    resid,
                    counts,
                )
                if value < before:
                    break
        if value == before and max_doubles > 0 and n_doubles > 0:
            smallest(drop, k - 1, n_lose, lose)
            smallest(gain, m, n_take, take)
            for a in range(n_lose):
                for b in range(n_lose):
                    f = 0.0
                    for l in range(max(lose[a], lose[b]), k):
                        f += inverse[l, lose[a]] * inverse[l, lose[b]]
                    small_inverse[a, b] = f
            for i in range(n_take):
                for j in range(n_take):
                    f = gram[outside[take[i]], outside[take[j]]]
                    for a in range(k):
                        f -= gram[idx[a], outside[take[i]]] * R[a, take[j]]
                    cross[i, j] = f
            found = double_changes(
                u, small_inverse, grad, schur, cross, R, lose[:n_lose], take[:n_take], change
            )
            tries = smallest(change, found, min(max_doubles, found), order)
            per = n_take * (n_take - 1) // 2
            for r in range(tries):
                if change[order[r]] > HOPE * value:
                    break
                a, b = nth_pair(order[r] // per, n_lose)
                i, j = nth_pair(order[r] % per, n_take)
                out2[0], out2[1], in2[0], in2[1] = lose[a], lose[b], take[i], take[j]
                value = trial(
                    panel,
                    ridge,
                    gram,
                    active,
                    idx,
                    u,
                    outside,
                    out2,
                    in2,
                    np.int64(2),
                    value,
                    tol,
                    new_idx,
                    new_u,
                    new_active,
                    resid,
                    counts,
                )
                if value < before:
                    break
        if value == before:
            return value


@compiled
def shrink(
    panel: Matrix, ridge: Vector, gram: Matrix, active: Flags, idx: Indices, u: Vector, k: int, tol: float
) -> Any:
    """Drop the cheapest features, at most an eighth at a time with a refit between, until k are
    left.
    """
    n = panel.shape[1]
    panel.shape[0] - 2
    none = np.empty(0, np.int64)
    empty, wide = np.empty(0), np.empty((idx.size, 0))
    new_active, resid = active.copy(), np.empty(n)
    value = np.inf
    while idx.size - 1 > k:
        size = idx.size - 1
        c = min(size - k, max(1, size // 8))
        drop, spread, lose = np.empty(size), np.empty(size + 1), np.empty(c, np.int64)
        score(
            panel,
            ridge,
            idx,
            u,
            gram,
            none,
            drop,
            spread,
            empty,
            empty,
            empty,
            wide,
            np.empty((size + 1, size + 1)),
        )
        smallest(drop, size, c, lose)
        gone = np.zeros(size + 1, np.bool_)
        for a in range(c):
            gone[lose[a]] = True
        new_idx, new_u = np.empty(size + 1 - c, np.int64), np.empty(size + 1 - c)
        r = 0
        for a in range(size + 1):
            if not gone[a]:
                new_idx[r], new_u[r] = idx[a], u[a]
                r += 1
        idx, u = new_idx, new_u
        value, _ = newton_from_gram(panel, ridge, gram, active, idx, u, new_active, resid, np.inf, tol)
        sync_gram(panel, active, new_active, gram)
    return idx, u, value


@compiled
def grow(
    panel: Matrix, ridge: Vector, gram: Matrix, active: Flags, idx: Indices, u: Vector, k: int, tol: float
) -> Any:
    """Add the most gainful features, doubling at most with a refit between, until there are k."""
    n = panel.shape[1]
    q = panel.shape[0] - 2
    new_active, resid = active.copy(), np.empty(n)
    value = np.inf
    while idx.size - 1 < k:
        size = idx.size - 1
        c = min(k - size, max(1, size // 2))
        outside = outside_of(idx, q)
        m = outside.size
        drop, spread, take = np.empty(size + 1), np.empty(size + 1), np.empty(c, np.int64)
        gain, grad, schur, R = np.empty(m), np.empty(m), np.empty(m), np.empty((size + 1, m))
        score(
            panel,
            ridge,
            idx,
            u,
            gram,
            outside,
            drop,
            spread,
            gain,
            grad,
            schur,
            R,
            np.empty((size + 1, size + 1)),
        )
        for j in range(m):
            gain[j] = -gain[j]
        smallest(gain, m, c, take)
        new_idx, new_u = np.empty(size + 1 + c, np.int64), np.zeros(size + 1 + c)
        new_idx[:size], new_u[:size] = idx[:size], u[:size]
        for a in range(c):
            new_idx[size + a] = outside[take[a]]
        new_idx[size + c], new_u[size + c] = idx[size], u[size]
        idx, u = new_idx, new_u
        value, _ = newton_from_gram(panel, ridge, gram, active, idx, u, new_active, resid, np.inf, tol)
        sync_gram(panel, active, new_active, gram)
    return idx, u, value


@compiled
def same_set(a: Indices, b: Indices, q: int) -> Any:
    mark = np.zeros(q + 1, np.bool_)
    for i in range(a.size):
        mark[a[i]] = True
    for i in range(b.size):
        if not mark[b[i]]:
            return False
    return True


@compiled
def sweep(
    panel: Matrix,
    ridge: Vector,
    ks: Indices,
    supports: Indices,
    coefs: Matrix,
    values: Vector,
    warm: bool,
    max_sweeps: int,
    max_tries: int,
    max_doubles: int,
    tol: float,
    counts: Indices,
) -> Any:
    """Path over the descending sizes ks inside one panel: down, up, down ... keeping the best
    support of each size.

    supports, coefs, values are filled in; with `warm` they hold a start for every size, which is
    settled first.
    """
    q, n = panel.shape[0] - 2, panel.shape[1]
    n_ks = ks.size
    active, new_active, resid = np.ones(n, np.bool_), np.ones(n, np.bool_), np.empty(n)
    gram = np.empty((q + 2, q + 2))
    build_gram(panel, active, gram)
    for at in range(n_ks if warm else 1):
        k = ks[at]
        if warm:
            idx, u = supports[at, : k + 1].copy(), coefs[at, : k + 1].copy()
            idx[k] = q
            resume(panel, gram, active, idx, u)
        elif k == q:
            idx, u = np.arange(q + 1), np.zeros(q + 1)
        else:
            idx, u, _ = grow(panel, ridge, gram, active, np.full(1, q, np.int64), np.zeros(1), k, tol)
        value, _ = newton_from_gram(panel, ridge, gram, active, idx, u, new_active, resid, np.inf, tol)
        sync_gram(panel, active, new_active, gram)
        value = search(panel, ridge, gram, active, idx, u, value, max_tries, max_doubles, tol, counts)
        supports[at, :k], coefs[at, : k + 1], values[at] = idx[:k], u, value
    fresh = np.ones(n_ks, np.bool_)  # changed since its neighbour was last tried from it
    for s in range(max_sweeps):
        down = s % 2 == 0
        changed = False
        next_fresh = np.zeros(n_ks, np.bool_)
        for r in range(1, n_ks):
            at = r if down else n_ks - 1 - r
            start = at - 1 if down else at + 1
            if not (fresh[start] or next_fresh[start]):
                continue
            size, k = ks[start], ks[at]
            idx, u = supports[start, : size + 1].copy(), coefs[start, : size + 1].copy()
            idx[size] = q
            resume(panel, gram, active, idx, u)
            if down:
                idx, u, value = shrink(panel, ridge, gram, active, idx, u, k, tol)
            else:
                idx, u, value = grow(panel, ridge, gram, active, idx, u, k, tol)
            if values[at] < np.inf and same_set(idx[:k], supports[at, :k], q):
                continue
            value = search(panel, ridge, gram, active, idx, u, value, max_tries, max_doubles, tol, counts)
            if value < values[at] * (1.0 - tol):
                supports[at, :k], coefs[at, : k + 1], values[at] = idx[:k], u, value
                next_fresh[at] = True
                changed = True
        fresh = next_fresh if s > 0 else np.ones(n_ks, np.bool_)
        if not changed and s > 0:  # both directions were tried
            break
