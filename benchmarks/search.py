"""Branch and bound over supports, compiled; shares nothing with the package.

A node is a set of features and the exact minimum on it, a lower bound for all its subsets. Children
drop one feature each, in an order that visits every subset once. Minima come from Newton's method on
the piecewise quadratic loss; the Gram matrix of the rows inside the margin is kept up to date row by
row, since few rows change sides between one fit and the next.
"""

import numpy as np
from numba import njit


def best_support(
    X: np.ndarray, y: np.ndarray, k: int, lam: float, prune: bool = True
) -> tuple[float, np.ndarray]:
    """The lowest objective over all supports of k features, and its support."""
    p = X.shape[1]
    Z = np.column_stack([X, np.ones(len(y))]) * y[:, None]
    order = np.argsort(-drop_costs(Z, lam), kind="stable")  # the features hardest to miss come first
    Z = np.ascontiguousarray(Z[:, np.append(order, p)])
    value, kept = branch_and_bound(Z, k, lam, prune)
    return value, np.sort(order[np.flatnonzero(kept)])


@njit(cache=True)
def start(Z):
    """Coefficients zero: every row is inside the margin."""
    n, width = Z.shape
    return np.zeros(width), np.ones(n, dtype=np.bool_), Z.T @ Z, Z.sum(axis=0)


@njit(cache=True)
def value_at(Z, beta, features, lam, margins):
    """The objective; the margins are left in the last argument."""
    total, ridge = 0.0, 0.0
    last = Z.shape[1] - 1
    for i in range(Z.shape[0]):
        margin = Z[i, last] * beta[last]
        for j in features:
            margin += Z[i, j] * beta[j]
        margins[i] = margin
        if margin < 1.0:
            total += (1.0 - margin) ** 2
    for j in features:
        ridge += beta[j] ** 2
    return 0.5 * total / Z.shape[0] + 0.5 * lam * ridge


@njit(cache=True)
def update_rows(Z, margins, inside, gram, moment):
    """Bring Gram matrix and moment in line with the margins; how many rows changed sides."""
    changed = 0
    for i in range(Z.shape[0]):
        if (margins[i] < 1.0) != inside[i]:
            sign = -1.0 if inside[i] else 1.0
            inside[i] = not inside[i]
            changed += 1
            for a in range(Z.shape[1]):
                moment[a] += sign * Z[i, a]
                for b in range(Z.shape[1]):
                    gram[a, b] += sign * Z[i, a] * Z[i, b]
    return changed


@njit(cache=True)
def solve_piece(gram, moment, features, lam, n, beta):
    """The minimiser of the quadratic piece, on the features and the intercept."""
    m = len(features) + 1
    kept = np.empty(m, dtype=np.int64)
    kept[: m - 1] = features
    kept[m - 1] = gram.shape[0] - 1
    A, b = np.empty((m, m)), np.empty(m)
    for r in range(m):
        b[r] = moment[kept[r]] / n
        for c in range(m):
            A[r, c] = gram[kept[r], kept[c]] / n
        A[r, r] += lam if r < m - 1 else 1e-14
    solution = np.linalg.solve(A, b)
    out = np.zeros_like(beta)
    for r in range(m):
        out[kept[r]] = solution[r]
    return out


@njit(cache=True)
def minimise(Z, features, lam, beta, inside, gram, moment):
    """The minimum on the features, from `beta`, which becomes the minimiser."""
    n, width = Z.shape
    margins = np.empty(n)
    wanted = np.zeros(width, dtype=np.bool_)
    wanted[features] = True
    for j in range(width - 1):
        if not wanted[j]:
            beta[j] = 0.0
    value = value_at(Z, beta, features, lam, margins)
    update_rows(Z, margins, inside, gram, moment)
    for _ in range(200):
        target = solve_piece(gram, moment, features, lam, n, beta)
        size = 1.0
        trial = target
        new = value_at(Z, trial, features, lam, margins)
        while new > value * (1 + 1e-14) and size > 1e-9:
            size /= 2
            trial = beta + size * (target - beta)
            new = value_at(Z, trial, features, lam, margins)
        if new > value:
            break
        gained = value - new
        beta[:] = trial
        value = new
        changed = update_rows(Z, margins, inside, gram, moment)
        if size == 1.0 and (changed == 0 or gained <= 1e-15 * value):
            break
    return value


@njit(cache=True)
def drop_costs(Z, lam):
    """The minimum without each feature in turn."""
    beta, inside, gram, moment = start(Z)
    everything = np.arange(Z.shape[1] - 1)
    minimise(Z, everything, lam, beta, inside, gram, moment)
    costs = np.empty(len(everything))
    for j in everything:
        costs[j] = minimise(Z, everything[everything != j], lam, beta.copy(), inside, gram, moment)
    return costs


@njit(cache=True)
def eliminate(Z, k, lam):
    """Drop the cheapest feature again and again: a first support to beat."""
    beta, inside, gram, moment = start(Z)
    features = np.arange(Z.shape[1] - 1)
    value = minimise(Z, features, lam, beta, inside, gram, moment)
    while len(features) > k:
        best, best_beta, best_j = np.inf, beta, -1
        for j in features:
            trial = beta.copy()
            cost = minimise(Z, features[features != j], lam, trial, inside, gram, moment)
            if cost < best:
                best, best_beta, best_j = cost, trial, j
        features = features[features != best_j]
        value, beta = best, best_beta
    return value, features


@njit(cache=True)
def branch_and_bound(Z, k, lam, prune):
    """The best value, and for each feature whether it is in the best support."""
    p = Z.shape[1] - 1
    best, features = eliminate(Z, k, lam)
    kept = np.zeros(p, dtype=np.bool_)
    kept[features] = True
    beta, inside, gram, moment = start(Z)
    value = minimise(Z, np.arange(p), lam, beta, inside, gram, moment)
    stack = [(np.ones(p, dtype=np.bool_), 0, value, beta)]
    while len(stack) > 0:
        node, first, value, beta = stack.pop()
        if prune and value >= best:
            continue
        size = node.sum() - 1
        for j in range(first, p):
            if p - 1 - j < size - k:  # too few features left to drop
                break
            child = node.copy()
            child[j] = False
            child_beta = beta.copy()
            value = minimise(Z, np.flatnonzero(child), lam, child_beta, inside, gram, moment)
            if size == k:
                if value < best:
                    best = value
                    kept[:] = child
            elif value < best or not prune:
                stack.append((child, j + 1, value, child_beta))
    return best, kept
