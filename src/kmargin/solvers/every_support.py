"""All supports of a size, where there are few."""

import numpy as np

from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.panel import outside_of
from kmargin.solvers.rows import companion, follow, n_columns, start_over
from kmargin.solvers.search import Fit, are_told_apart, far_newton, make_scores, score_fit
from kmargin.types import Indices


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
