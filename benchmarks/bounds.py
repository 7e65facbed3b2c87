"""Optima of small problems, and their proofs; compiled, and shares nothing with the package.

Two ways. `every_support` fits each support of k features, starting from the fit without its last
feature. `branch_and_bound` fixes features in or out; with the others free a node is bounded from below by

    (1/n) sum_i (a_i - a_i^2/2) - 1/(2 lam) (sum of c_j^2 over the features fixed in, and of the largest free)

for any a >= 0 with sum_i y_i a_i = 0 and c_j = (1/n) sum_i a_i y_i x_ij. The best a belongs to the
perspective relaxation, lam/2 sum w_j^2/z_j with 0 <= z <= 1 and sum z <= k, which is solved by turns:
w for a given z by Newton's method, then z for a given w.
"""

import heapq
import itertools
import time
from typing import NamedTuple

import numpy as np
from numba import njit

PROOF = 1e-7  # relative: what is bounded so closely counts as proven
SMALLEST_SHARE = 1e-4  # of a free feature: no z goes to zero for good


class Optimum(NamedTuple):
    """The lowest objective that was found, and whether a lower one is ruled out."""

    objective: float
    support: np.ndarray
    proven: bool
    n_nodes: int


def fold(X, y, fit_intercept):
    """A row per feature, times the labels (-1 and 1), the intercept last if there is one."""
    rows = X.T * y
    return np.ascontiguousarray(np.vstack([rows, y[None]]) if fit_intercept else rows, dtype=float)


@njit(cache=True)
def value_at(margins, beta, ridge):
    """The objective of coefficients with these margins."""
    violation = np.maximum(0.0, 1.0 - margins)
    return 0.5 * (violation @ violation) / len(margins) + 0.5 * (ridge @ beta**2)


@njit(cache=True)
def minimise(rows, ridge, beta, margins):
    """The minimum by Newton's method; `beta` and its margins become the minimiser's."""
    n = len(margins)
    value = value_at(margins, beta, ridge)
    for _ in range(200):
        was_active = margins < 1.0
        active = rows[:, np.flatnonzero(was_active)]
        A, b = active @ active.T / n, active.sum(axis=1) / n
        for r in range(len(beta)):  # an intercept has no ridge, and no curvature if no row is active
            A[r, r] += max(ridge[r], 1e-13)
        direction = np.linalg.solve(A, b) - beta
        slope = (A @ beta - b) @ direction
        if slope >= -1e-16 * value:
            break
        step, size = rows.T @ direction, 1.0
        new = value_at(margins + step, beta + direction, ridge)
        while new > value + 1e-4 * size * slope and size > 1e-12:
            size /= 2
            new = value_at(margins + size * step, beta + size * direction, ridge)
        if new >= value:
            break
        margins += size * step
        beta += size * direction
        value = new
        if size == 1.0 and np.array_equal(margins < 1.0, was_active):
            break
    return value


@njit(cache=True)
def every_support(Z, p, k, lam):
    """The lowest objective over all supports of k of the p features, and its support.

    Z has p rows, and one more if there is an intercept.
    """
    n, extra = Z.shape[1], Z.shape[0] - p
    rows, ridge = np.empty((k + extra, n)), np.full(k + extra, lam)
    betas, margins = np.zeros((k + 1, k + extra)), np.zeros((k + 1, n))
    if extra:
        rows[0] = Z[p]
        ridge[0] = 0.0
        minimise(rows[:1], ridge[:1], betas[0, :1], margins[0])
    chosen = np.full(k, -1)
    best, support = np.inf, np.zeros(k, dtype=np.int64)
    depth = 0
    while depth >= 0:
        chosen[depth] = chosen[depth - 1] + 1 if chosen[depth] < 0 and depth > 0 else chosen[depth] + 1
        if chosen[depth] > p - (k - depth):  # no features left for the places behind
            chosen[depth] = -1
            depth -= 1
            continue
        m = depth + 1 + extra
        rows[m - 1] = Z[chosen[depth]]
        betas[depth + 1, : m - 1] = betas[depth, : m - 1]
        betas[depth + 1, m - 1] = 0.0
        margins[depth + 1] = margins[depth]
        value = minimise(rows[:m], ridge[:m], betas[depth + 1, :m], margins[depth + 1])
        if depth < k - 1:
            depth += 1
        elif value < best:
            best = value
            support[:] = chosen
    return best, support


@njit(cache=True)
def shares(w, budget):
    """z = min(1, |w|/theta), theta such that the sum is the budget: the best z for this w."""
    size = np.abs(w)
    order = np.argsort(-size)
    z = np.zeros(len(w))
    rest = size.sum()
    for position in range(len(w)):
        j = order[position]
        left = budget - position
        if left <= 0:
            break
        if size[j] * left < rest:  # from here on all are below theta
            for later in order[position:]:
                z[later] = size[later] * left / rest
            break
        z[j] = 1.0
        rest -= size[j]
    return z


@njit(cache=True)
def lower_bound(rows, n_features, n_in, budget, lam, margins):
    """The bound of the violations at these margins, at its best multiple."""
    n = len(margins)
    violation = np.maximum(0.0, 1.0 - margins)
    c_sq = np.empty(n_features)
    for j in range(n_features):
        c_sq[j] = (rows[j] @ violation / n) ** 2
    free = np.sort(c_sq[n_in:])[::-1]
    top = c_sq[:n_in].sum() + free[:budget].sum()
    linear = violation.sum() / n
    quadratic = 0.5 * (violation @ violation) / n + 0.5 * top / lam
    return linear**2 / (4 * quadratic)


@njit(cache=True)
def relax(rows, n_features, n_in, budget, lam, z, known, max_rounds):
    """Bound of a node whose first `n_in` features are fixed in and the others free.

    Ends as soon as the bound passes what is known, or no longer grows. `z` starts, and returns, the
    shares of the free features.
    """
    m, n = rows.shape
    ridge, beta, margins = np.zeros(m), np.zeros(m), np.zeros(n)
    bound, last = 0.0, -1.0
    for turn in range(max_rounds):
        ridge[:n_in] = lam
        ridge[n_in:n_features] = lam / np.maximum(z, SMALLEST_SHARE)
        minimise(rows, ridge, beta, margins)
        bound = max(bound, lower_bound(rows, n_features, n_in, budget, lam, margins))
        if bound > known or (turn > 4 and bound - last < 1e-4 * (known - bound)):
            break
        last = bound
        z[:] = shares(beta[n_in:n_features], budget)
    return bound


def branch_and_bound(Z, p, k, lam, start, seconds):
    """Best-first search for a support that beats `start`, until that is ruled out or time is up."""
    best, support = start.objective, start.support
    count = itertools.count()
    everything = np.arange(p)
    heap = [(0.0, next(count), (), everything, np.full(p, k / p))]
    n_nodes, ends = 0, time.perf_counter() + seconds
    while heap and heap[0][0] < best * (1 - PROOF):
        if time.perf_counter() > ends:
            return Optimum(best, support, False, n_nodes)
        _, _, fixed, free, z = heapq.heappop(heap)
        j = int(np.argmax(np.minimum(z, 1 - z) if fixed or n_nodes else z))
        for inside in (True, False):
            n_nodes += 1
            members = (*fixed, int(free[j])) if inside else fixed
            others, shares_left = np.delete(free, j), np.delete(z, j)
            bound, found, value = examine(Z, p, k, lam, members, others, shares_left, best)
            if value < best:
                best, support = value, found
            if bound < best * (1 - PROOF) and len(members) < k < len(members) + len(others):
                heapq.heappush(heap, (bound, next(count), members, others, shares_left))
    return Optimum(best, support, True, n_nodes)


def examine(Z, p, k, lam, members, others, z, known):
    """Bound of a node, and the support that its largest shares give, with its minimum."""
    budget = k - len(members)
    inside = np.array(members, dtype=np.int64)
    used = np.concatenate([inside, others]) if budget else inside
    bound = 0.0
    if budget and len(others) > budget:
        rows = np.ascontiguousarray(Z[np.concatenate([used, np.arange(p, len(Z))])])
        bound = relax(rows, len(used), len(inside), budget, lam, z, known * (1 - PROOF), 60)
        if bound >= known:
            return bound, inside, np.inf
        used = np.concatenate([inside, others[np.argsort(-z, kind="stable")[:budget]]])
    return bound, np.sort(used), fit_support(Z, p, used, lam)


def fit_support(Z, p, support, lam):
    """The exact minimum on a support."""
    rows = np.ascontiguousarray(Z[np.concatenate([support, np.arange(p, len(Z))])])
    ridge = np.full(len(rows), lam)
    ridge[len(support) :] = 0.0
    return minimise(rows, ridge, np.zeros(len(rows)), np.zeros(rows.shape[1]))


def exchange_all(Z, p, k, lam, support):
    """Single exchanges, the best of all each time, until none helps."""
    value, n_fits = fit_support(Z, p, support, lam), 0
    while True:
        outside = np.setdiff1d(np.arange(p), support)
        trials = [np.append(np.delete(support, i), j) for i in range(len(support)) for j in outside]
        values = [fit_support(Z, p, trial, lam) for trial in trials]
        n_fits += len(trials)
        i = int(np.argmin(values))
        if values[i] >= value * (1 - 1e-12):
            return Optimum(value, np.sort(support), False, n_fits)
        value, support = values[i], trials[i]
