"""What is asked of X where it is an array: compiled passes over it.

X is (n, p), in C order, of float64 or float32; all sums are float64. Passes run row by row and skip
the rows that are not active.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Matrix, Vector
from kmargin.vectors import axpy, axpy4


@compiled
def dense_slopes(X: Matrix, v: Vector, out: Vector) -> None:
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
def dense_spread(X: Matrix, c: Vector, intercept: bool, out: Vector) -> None:
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
def dense_columns(X: Matrix, t: Vector, cols: Indices, slots: Indices, panel: Matrix) -> None:
    """panel[slots[a]] <- t * X[:, cols[a]] for every a, all columns of a row at once."""
    for i in range(X.shape[0]):
        for a in range(cols.size):
            panel[slots[a], i] = t[i] * X[i, cols[a]]


@compiled
def dense_times(X: Matrix, v: Vector, out: Vector) -> None:
    """out <- X v"""
    n, p = X.shape
    p4 = p - p % 4
    for i in range(n):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, p4, 4):
            s0 += v[j] * X[i, j]
            s1 += v[j + 1] * X[i, j + 1]
            s2 += v[j + 2] * X[i, j + 2]
            s3 += v[j + 3] * X[i, j + 3]
        for j in range(p4, p):
            s0 += v[j] * X[i, j]
        out[i] = (s0 + s1) + (s2 + s3)


@compiled
def dense_product(X: Matrix, cols: Indices, d: Vector, out: Vector) -> None:
    """out <- X[:, cols] @ d"""
    k4 = cols.size - cols.size % 4
    for i in range(X.shape[0]):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for a in range(0, k4, 4):
            s0 += d[a] * X[i, cols[a]]
            s1 += d[a + 1] * X[i, cols[a + 1]]
            s2 += d[a + 2] * X[i, cols[a + 2]]
            s3 += d[a + 3] * X[i, cols[a + 3]]
        for a in range(k4, cols.size):
            s0 += d[a] * X[i, cols[a]]
        out[i] = (s0 + s1) + (s2 + s3)
