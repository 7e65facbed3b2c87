"""What is asked of X where it is sparse: compiled passes over the arrays of a CSR matrix.

Sums run over the rows in the order of `passes`, so that data stored either way give the same bits.
Centring is implicit: an entry is its stored value minus the `shift` of its column.
"""

from typing import NamedTuple

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Matrix, Vector

# A difference of sums that is less than this share of them may be rounding.
ROUNDED = 1e-9


class CSR(NamedTuple):
    """The arrays of a CSR matrix without duplicates, and what is subtracted from its columns."""

    data: Vector
    indices: Indices
    indptr: Indices
    shift: Vector  # one number per column, or empty if nothing is subtracted


@compiled
def csr_times(X: CSR, v: Vector, out: Vector) -> None:
    """out <- X v"""
    offset = np.dot(X.shift, v) if X.shift.size else 0.0
    for i in range(out.size):
        total = 0.0
        for e in range(X.indptr[i], X.indptr[i + 1]):
            total += X.data[e] * v[X.indices[e]]
        out[i] = total - offset


@compiled
def csr_slopes(X: CSR, v: Vector, out: Vector) -> None:
    """out <- X'v, skipping the rows where v is 0.

    Four rows at a time, (a + b) + (c + d), as for arrays.
    """
    rows, m = np.empty(v.size, np.int64), 0  # np.flatnonzero takes longer to compile than all of this
    for i in range(v.size):
        if v[i] != 0.0:
            rows[m] = i
            m += 1
    pairs = np.zeros((2, out.size))
    out[:] = 0.0
    m4 = m - m % 4
    for r in range(0, m4, 4):
        for s in range(4):
            i = rows[r + s]
            pair = pairs[s // 2]
            for e in range(X.indptr[i], X.indptr[i + 1]):
                pair[X.indices[e]] += v[i] * X.data[e]
        for s in range(4):
            i = rows[r + s]
            for e in range(X.indptr[i], X.indptr[i + 1]):
                j = X.indices[e]
                out[j] += pairs[0, j] + pairs[1, j]
                pairs[0, j] = pairs[1, j] = 0.0
    for r in range(m4, m):
        i = rows[r]
        for e in range(X.indptr[i], X.indptr[i + 1]):
            out[X.indices[e]] += v[i] * X.data[e]
    if X.shift.size:
        out -= X.shift * v.sum()


@compiled
def csr_spread(X: CSR, c: Vector, intercept: bool, out: Vector) -> None:
    """out_j <- sum_i c_i^2 (x_ij - mean_j)^2, the mean weighted by c^2 or, without intercept, 0."""
    mean = np.zeros(out.size)
    out[:] = 0.0
    total = 0.0
    for i in range(c.size):
        f = c[i] * c[i]
        if f == 0.0:
            continue
        total += f
        for e in range(X.indptr[i], X.indptr[i + 1]):
            j = X.indices[e]
            g = f * X.data[e]
            mean[j] += g
            out[j] += g * X.data[e]
    if intercept:
        for j in range(out.size):
            out[j] = max(out[j] - mean[j] * mean[j] / total, 0.0)


@compiled
def csr_absent_weight(X: CSR, weights: Vector, column: int) -> float:
    """The weight of the rows that do not store an entry of a column."""
    total = 0.0
    for i in range(weights.size):
        stored = False
        for e in range(X.indptr[i], X.indptr[i + 1]):
            if X.indices[e] == column:
                stored = True
                break
        if not stored:
            total += weights[i]
    return total


@compiled
def csr_moments(
    X: CSR, weights: Vector, total: float, v: Vector, mean: Vector, variance: Vector, covariance: Vector
) -> None:
    """Weighted mean, variance and covariance with v of every column, in two passes.

    `total` is that of the weights. Means are added up as those of an array.
    """
    v_sum = 0.0
    variance[:], covariance[:] = 0.0, 0.0
    csr_slopes(CSR(X.data, X.indices, X.indptr, np.empty(0)), weights, mean)
    mean /= total
    held = np.zeros(mean.size)  # the weight of the entries that are stored, and how many these are
    n_held = np.zeros(mean.size, np.int64)
    for i in range(weights.size):
        v_sum += weights[i] * v[i]
    for i in range(weights.size):
        f = weights[i] * (v[i] - v_sum / total)
        for e in range(X.indptr[i], X.indptr[i + 1]):
            j = X.indices[e]
            gap = X.data[e] - mean[j]
            held[j] += weights[i]
            n_held[j] += 1
            variance[j] += weights[i] * gap * gap
            covariance[j] += f * X.data[e]
    for j in range(mean.size):
        absent = total - held[j]
        if absent <= ROUNDED * total:  # what is left of large sums is their rounding
            absent = csr_absent_weight(X, weights, j) if n_held[j] < weights.size else 0.0
        variance[j] = (variance[j] + absent * mean[j] * mean[j]) / total
        covariance[j] /= total
        if X.shift.size:
            mean[j] -= X.shift[j]


@compiled
def csr_columns(X: CSR, t: Vector, place: Indices, offset: Vector, slots: Indices, panel: Matrix) -> None:
    """panel[slots[place[j]]] <- t * X[:, j] for the columns that have a place; -1 marks the others.

    `offset` holds the shift of each place.
    """
    shifted = offset.any()
    for a in range(slots.size):
        panel[slots[a]] = 0.0
    for i in range(t.size):
        if shifted:
            for a in range(slots.size):
                panel[slots[a], i] = -t[i] * offset[a]
        for e in range(X.indptr[i], X.indptr[i + 1]):
            a = place[X.indices[e]]
            if a >= 0:
                panel[slots[a], i] = t[i] * (X.data[e] - offset[a])


@compiled
def csr_block(X: CSR, rows: Indices, place: Indices, offset: Vector, out: Matrix) -> None:
    """out[r, place[j]] <- X[rows[r], j] for the columns with a place."""
    for r in range(rows.size):
        i = rows[r]
        for a in range(offset.size):
            out[r, a] = -offset[a]
        for e in range(X.indptr[i], X.indptr[i + 1]):
            a = place[X.indices[e]]
            if a >= 0:
                out[r, a] = X.data[e] - offset[a]


@compiled
def csr_take_rows(X: CSR, rows: Indices) -> tuple[Vector, Indices, Indices]:
    """data, indices and indptr of some rows."""
    indptr = np.zeros(rows.size + 1, X.indptr.dtype)
    for r in range(rows.size):
        indptr[r + 1] = indptr[r] + X.indptr[rows[r] + 1] - X.indptr[rows[r]]
    size = indptr[rows.size]
    data, indices = np.empty(size, X.data.dtype), np.empty(size, X.indices.dtype)
    for r in range(rows.size):
        first, last = X.indptr[rows[r]], X.indptr[rows[r] + 1]
        data[indptr[r] : indptr[r + 1]] = X.data[first:last]
        indices[indptr[r] : indptr[r + 1]] = X.indices[first:last]
    return data, indices, indptr


@compiled
def csr_take(X: CSR, place: Indices) -> tuple[Vector, Indices, Indices]:
    """data, indices and indptr of the columns with a place."""
    n = X.indptr.size - 1
    indptr = np.zeros(n + 1, X.indptr.dtype)
    for i in range(n):
        count = 0
        for e in range(X.indptr[i], X.indptr[i + 1]):
            count += place[X.indices[e]] >= 0
        indptr[i + 1] = indptr[i] + count
    data, indices = np.empty(indptr[n], X.data.dtype), np.empty(indptr[n], X.indices.dtype)
    at = 0
    for e in range(X.indptr[0], X.indptr[n]):
        a = place[X.indices[e]]
        if a >= 0:
            data[at], indices[at] = X.data[e], a
            at += 1
    return data, indices, indptr
