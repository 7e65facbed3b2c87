"""What the search asks of X: the only compiled functions that touch it.

X is an (n, p) array in C order. Passes over it run row by row and skip the rows that are not active.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.linalg import axpy, axpy4
from kmargin.types import Indices, Matrix, Vector


@compiled
def design_gradient(X: Matrix, v: Vector, out: Vector) -> None:
    """out <- X'v, skipping the rows where v is 0, four rows at a time."""
    n, _p = X.shape
    rows = np.empty(n + 4, np.int64)
    m = 0
    for i in range(n):
        if v[i] != 0.0:
            rows[m] = i
            m += 1
    out[:] = 0.0
    m4 = m - m % 4
    for r in range(0, m4, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        axpy4(v[a], X[a], v[b], X[b], v[c], X[c], v[d], X[d], out)
    for r in range(m4, m):
        axpy(v[rows[r]], X[rows[r]], out)


@compiled
def design_variance(X: Matrix, c: Vector, intercept: bool, out: Vector) -> None:
    """out_j <- sum_i c_i^2 (x_ij - mean_j)^2, the mean weighted by c^2 (0 without intercept)."""
    n, p = X.shape
    mean = np.zeros(p)
    out[:] = 0.0
    for i in range(n):
        f = c[i] * c[i]
        for j in range(p):
            g = f * X[i, j]
            mean[j] += g
            out[j] += g * X[i, j]
    if intercept:
        total = 0.0
        for i in range(n):
            total += c[i] * c[i]
        for j in range(p):
            out[j] = max(out[j] - mean[j] * mean[j] / total, 0.0)


@compiled
def design_columns(X: Matrix, t: Vector, cols: Indices, slots: Indices, m: int, panel: Matrix) -> None:
    """panel[slots[a]] <- t * X[:, cols[a]] for a < m, all columns of a row at once."""
    for i in range(X.shape[0]):
        for a in range(m):
            panel[slots[a], i] = t[i] * X[i, cols[a]]


@compiled
def design_product(X: Matrix, cols: Indices, d: Vector, out: Vector) -> None:
    """out <- X[:, cols] @ d"""
    n, p = X.shape
    if 2 * cols.size > p:
        dense = np.zeros(p)
        for a in range(cols.size):
            dense[cols[a]] = d[a]
        out[:] = np.dot(X, dense)
        return
    k4 = cols.size - cols.size % 4
    for i in range(n):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for a in range(0, k4, 4):
            s0 += d[a] * X[i, cols[a]]
            s1 += d[a + 1] * X[i, cols[a + 1]]
            s2 += d[a + 2] * X[i, cols[a + 2]]
            s3 += d[a + 3] * X[i, cols[a + 3]]
        for a in range(k4, cols.size):
            s0 += d[a] * X[i, cols[a]]
        out[i] = (s0 + s1) + (s2 + s3)


@compiled
def design_rows(X: Matrix, t: Vector, cols: Indices, rows: Indices, first: int, last: int, B: Matrix) -> None:
    """B[r] <- t * X[rows[r], cols] for first <= r < last."""
    for r in range(first, last):
        i = rows[r]
        for a in range(cols.size):
            B[r, a] = t[i] * X[i, cols[a]]
