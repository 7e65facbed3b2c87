"""The compiled search over supports of single columns of one binary problem, for one size or a path."""

from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import Far, addresses, compiled, compiled_or_remote
from kmargin.core.linalg import smallest
from kmargin.solvers.refit.newton import (
    MAX_NEWTON_STEPS,
    NO_LOSS,
    Rows,
    companion,
    cost_of_try,
    follow,
    make_rows,
    n_columns,
    newton_from_gram,
    outside_of,
    resume,
    start_over,
    take_gram,
)
from kmargin.solvers.search.swap_scores import double_changes, nth_pair, score, swap_changes

# a swap is tried while the model sees the objective rise by less than this share
HOPE = 0.02

# up to this k all tries are made, beyond it in inverse proportion
TRIES = 16

# double swaps look at so many features on either side
WIDTH = 12

# each round lowers the objective, so there is an end; this one is for numbers that do not behave as such
MAX_ROUNDS = 10_000


class Fit(NamedTuple):
    """A support at its minimum, in a panel whose Gram matrix follows the active rows.

    The arrays are changed in place as the search goes on.
    """

    rows: Rows
    ridge: Vector
    gram: Matrix
    idx: Indices  # places in the panel: the support, then the intercept
    u: Vector  # their coefficients
    free: Flags  # which places may be exchanged; the others stay in the support, or out of it
    far: Indices  # where `far_newton` and `far_score` are


def _example_of_newton() -> tuple[Any, ...]:
    numbers, indices = np.empty(0), np.empty(0, np.int64)
    return make_rows(np.empty((2, 0))), numbers, np.empty((0, 0)), indices, numbers, 0.0, 0.0


def _example_of_score() -> tuple[Any, ...]:
    numbers, indices, matrix = np.empty(0), np.empty(0, np.int64), np.empty((0, 0))
    return (numbers, indices, numbers, matrix, indices, *[numbers] * 5, matrix, matrix)


far_newton = Far(newton_from_gram, _example_of_newton)
far_score = Far(score, _example_of_score)


_FAR = addresses(far_newton, far_score)


def find_far() -> Indices:
    return _FAR


class Scratch(NamedTuple):
    """Room for a trial, and what the trials have cost."""

    idx: Indices
    u: Vector
    rows: Rows
    counts: Indices  # rounds, trials, Newton steps; 1 if the last search tried every swap in vain


class Scores(NamedTuple):
    """What `score` fills in for a support and the features outside it."""

    drop: Vector
    spread: Vector
    gain: Vector  # negated: the most gainful feature is the smallest
    grad: Vector
    schur: Vector
    R: Matrix
    inverse: Matrix


@compiled_or_remote
def make_scores(k: int, m: int) -> Scores:
    """Room for a support of k - 1 features and the intercept, and m features outside."""
    return Scores(
        np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m), np.empty((k, m)), np.empty((k, k))
    )


@compiled_or_remote
def score_fit(fit: Fit, outside: Indices, scores: Scores) -> None:
    far_score(
        fit.far[1], fit.ridge, fit.idx, fit.u, fit.gram, outside, scores.drop, scores.spread, scores.gain,
        scores.grad, scores.schur, scores.R, scores.inverse,
    )  # fmt: skip
    order_scores(fit.idx, fit.free, scores.drop, scores.gain)


@compiled
def order_scores(idx: Indices, free: Flags, drop: Vector, gain: Vector) -> None:
    """The most gainful feature the smallest; none that has to stay the cheapest."""
    for j in range(gain.size):
        gain[j] = -gain[j]
    for a in range(idx.size - 1):
        if not free[idx[a]]:
            drop[a] = np.inf


@compiled
def are_told_apart(gram: Matrix, outside: Indices, schur: Vector) -> bool:
    """Whether no column outside depends on the support but for rounding: its exchanges would not be exact."""
    for j in range(outside.size):
        if schur[j] == np.inf and gram[outside[j], outside[j]] > 0.0:
            return False
    return True


@compiled_or_remote
def trial(
    fit: Fit,
    outside: Indices,
    lose: Indices,
    take: Indices,
    c: Any,
    value: float,
    give_up: float,
    tol: float,
    scratch: Scratch,
) -> float:
    """Refit with fit.idx[lose[:c]] replaced by outside[take[:c]].

    If that is better, make the exchange and return the new objective; else return the old one. A refit ends
    when it seems not to get below `give_up`.
    """
    scratch.idx[:] = fit.idx
    scratch.u[:] = fit.u
    for a in range(c):
        scratch.idx[lose[a]] = outside[take[a]]
        scratch.u[lose[a]] = 0.0
    start_over(scratch.rows, fit.rows)
    new_value, n_iter = far_newton(
        fit.far[0], scratch.rows, fit.ridge, fit.gram, scratch.idx, scratch.u, give_up, tol
    )
    scratch.counts[1] += 1
    scratch.counts[2] += n_iter
    if n_iter == MAX_NEWTON_STEPS:  # what more steps gain is not to be taken for what the exchange gains
        scratch.counts[3] = 0
        return value
    if not new_value < value * (1.0 - tol):
        return value
    for a in range(c):
        outside[take[a]] = fit.idx[lose[a]]
    fit.idx[:] = scratch.idx
    fit.u[:] = scratch.u
    follow(fit.rows, scratch.rows, fit.gram)
    return new_value


@compiled_or_remote
def try_blocks(
    fit: Fit, outside: Indices, scores: Scores, value: float, tol: float, scratch: Scratch
) -> float:
    """Exchange the c cheapest for the c most gainful, as many as the scores say pays; halve c on failure."""
    k, m = fit.idx.size - 1, outside.size
    lose, take = np.empty(k, np.int64), np.empty(min(m, k), np.int64)
    smallest(scores.drop, k, k, lose)
    smallest(scores.gain, m, min(m, k), take)
    c = 0
    while c < min(m, k // 2) and scores.drop[lose[c]] < -scores.gain[take[c]]:
        c += 1
    while c > 1:
        new_value = trial(fit, outside, lose, take, c, value, value, tol, scratch)
        if new_value < value:
            return new_value
        c //= 2
    return value


@compiled_or_remote
def try_swaps(
    fit: Fit,
    outside: Indices,
    scores: Scores,
    value: float,
    tol: float,
    scratch: Scratch,
    max_tries: int,
    room: float,
) -> float:
    """Exchange one feature for another, in the order of what the scores promise.

    At most `max_tries` are tried, or as many as `room` has multiplications for, and none of which the
    scores expect a rise beyond HOPE. All of them are tried if `max_tries` is negative, or room for all.
    """
    k, m = fit.idx.size - 1, outside.size
    affordable = room / cost_of_try(fit.rows, k + 1)
    everything = max_tries < 0 or affordable >= k * m
    scratch.counts[3] = everything and are_told_apart(fit.gram, outside, scores.schur)
    give_up = np.inf if everything else value  # what is claimed of a try is not to rest on what it seems
    # large supports: fewer and dearer tries
    n_tries = max(1, min(max_tries, TRIES * max_tries // (k + 1)))
    n_tries = k * m if everything else min(k * m, max(n_tries, int(affordable)))
    change, order = np.empty(k * m), np.empty(n_tries, np.int64)
    swap_changes(fit.u, scores.spread, scores.grad, scores.schur, scores.R, change)
    for a in range(k):
        if scores.drop[a] == np.inf:
            change[a * m : (a + 1) * m] = np.inf
    smallest(change, k * m, n_tries, order)
    lose, take = np.empty(1, np.int64), np.empty(1, np.int64)
    for r in range(n_tries):
        if not everything and change[order[r]] > HOPE * value:
            break
        lose[0], take[0] = order[r] // m, order[r] % m
        if scores.drop[lose[0]] == np.inf:
            continue
        new_value = trial(fit, outside, lose, take, np.int64(1), value, give_up, tol, scratch)
        if new_value < value:
            return new_value
    return value


@compiled_or_remote
def try_double_swaps(
    fit: Fit,
    outside: Indices,
    scores: Scores,
    value: float,
    tol: float,
    scratch: Scratch,
    max_tries: int,
    room: float,
) -> float:
    """Exchange two features for two, out of the WIDTH cheapest and the WIDTH most gainful."""
    k, m = fit.idx.size - 1, outside.size
    n_free = int(np.sum(scores.drop[:k] < np.inf))
    n_lose, n_take = min(WIDTH, n_free), min(WIDTH, m)
    pairs_in = n_take * (n_take - 1) // 2
    affordable = int(room / cost_of_try(fit.rows, k + 1)) if max_tries > 0 else 0
    max_tries = max(min(max_tries, TRIES * max_tries // (k + 1)), affordable)
    if max_tries == 0 or n_lose < 2 or pairs_in == 0:
        return value
    lose, take = np.empty(n_lose, np.int64), np.empty(n_take, np.int64)
    smallest(scores.drop, k, n_lose, lose)
    smallest(scores.gain, m, n_take, take)
    change = np.empty((n_lose * (n_lose - 1) // 2) * pairs_in)
    inverse, cross = pair_matrices(fit.gram, fit.idx, outside, scores, lose, take)
    found = double_changes(fit.u, inverse, scores.grad, scores.schur, cross, scores.R, lose, take, change)
    order = np.empty(min(max_tries, found), np.int64)
    smallest(change, found, order.size, order)
    out, come = np.empty(2, np.int64), np.empty(2, np.int64)
    for r in range(order.size):
        if change[order[r]] > HOPE * value:
            break
        a, b = nth_pair(order[r] // pairs_in, n_lose)
        i, j = nth_pair(order[r] % pairs_in, n_take)
        out[0], out[1], come[0], come[1] = lose[a], lose[b], take[i], take[j]
        new_value = trial(fit, outside, out, come, np.int64(2), value, value, tol, scratch)
        if new_value < value:
            return new_value
    return value


@compiled
def pair_matrices(
    gram: Matrix, idx: Indices, outside: Indices, scores: Scores, lose: Indices, take: Indices
) -> tuple[Matrix, Matrix]:
    """The inverse Hessian on `lose` x `lose`, and the Schur complement on `take` x `take`."""
    k = idx.size
    inverse, cross = np.empty((lose.size, lose.size)), np.empty((take.size, take.size))
    for a in range(lose.size):
        for b in range(lose.size):
            total = 0.0
            for r in range(max(lose[a], lose[b]), k):
                total += scores.inverse[r, lose[a]] * scores.inverse[r, lose[b]]
            inverse[a, b] = total
    for i in range(take.size):
        for j in range(take.size):
            total = gram[outside[take[i]], outside[take[j]]]
            for a in range(k):
                total -= gram[idx[a], outside[take[i]]] * scores.R[a, take[j]]
            cross[i, j] = total
    return inverse, cross


@compiled_or_remote
def search(
    fit: Fit, value: float, max_swaps: int, max_doubles: int, room: float, tol: float, counts: Indices
) -> float:
    """Exchange features while that lowers the objective; `fit` is improved in place.

    Many at a time while that pays, then one for one, then two for two. After each success the scores
    are taken anew. Where tries are cheap there are more of them: as many as `room` has multiplications for.
    Returns the objective.
    """
    counts[3] = 0
    outside = outside_of(fit.idx, fit.free)
    if fit.idx.size == 1 or outside.size == 0:  # nothing to exchange
        counts[3] = 1
        return value
    scores = make_scores(fit.idx.size, outside.size)
    scratch = Scratch(fit.idx.copy(), fit.u.copy(), companion(fit.rows), counts)
    blocks = fit.idx.size > 2
    for _ in range(MAX_ROUNDS):
        if value < NO_LOSS:  # nothing to gain
            counts[3] = 1
            return value
        counts[0] += 1
        score_fit(fit, outside, scores)
        before = value
        if blocks:
            value = try_blocks(fit, outside, scores, value, tol, scratch)
            blocks = value < before
        if value == before:
            value = try_swaps(fit, outside, scores, value, tol, scratch, max_swaps, room)
        if value == before:
            value = try_double_swaps(fit, outside, scores, value, tol, scratch, max_doubles, room)
        if value == before:
            return value
    counts[3] = 0
    return value


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


@compiled
def next_support(support: Indices, n: int) -> bool:
    """The next of the ascending choices from 0 to n - 1, in lexicographic order; False after the last."""
    k = support.size
    a = k - 1
    while a >= 0 and support[a] == n - k + a:
        a -= 1
    if a < 0:
        return False
    support[a] += 1
    for b in range(a + 1, k):
        support[b] = support[b - 1] + 1
    return True


@compiled_or_remote
def try_every_support(fit: Fit, value: float, tol: float, counts: Indices) -> float:
    """Refit every support of the size of `fit`, which is brought to the best; its objective."""
    k, n = fit.idx.size - 1, n_columns(fit.rows)
    support, idx, u = np.arange(k), fit.idx.copy(), fit.u.copy()
    rows, at = companion(fit.rows), np.zeros(n)
    while True:
        at[:] = 0.0
        for a in range(k):
            at[fit.idx[a]] = fit.u[a]
        idx[:k], u[k] = support, fit.u[k]
        for a in range(k):
            u[a] = at[support[a]]
        start_over(rows, fit.rows)
        new_value, n_iter = far_newton(fit.far[0], rows, fit.ridge, fit.gram, idx, u, np.inf, tol)
        counts[1] += 1
        counts[2] += n_iter
        if new_value < value * (1.0 - tol):
            value = new_value
            fit.idx[:] = idx
            fit.u[:] = u
            follow(fit.rows, rows, fit.gram)
        if not next_support(support, n):
            break
    outside = outside_of(fit.idx, fit.free)
    scores = make_scores(k + 1, outside.size)
    score_fit(fit, outside, scores)
    counts[3] = are_told_apart(fit.gram, outside, scores.schur)
    return value
