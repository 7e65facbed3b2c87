"""Design matrices in CSR format, with their compiled passes."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import (
    ColumnSubset,
    Design,
    InUnits,
    Moments,
    ThinSVD,
    candidate_columns,
    fingerprint_vector,
    typical_entry,
)
from kmargin.core.jit import compiled

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


# Work arrays of so many numbers (32 MiB) are always in proportion.
SMALL = 2**22

NO_SHIFT = np.empty(0)


def canonical(X: Any) -> Any:
    """X in CSR form without duplicate entries, indices in order; a copy where it has to be changed."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class SparseDesign(InUnits):
    """A CSR matrix of float64 or float32 and, implicitly, a number subtracted from each column.

    What solvers gather into arrays are columns of a small support, and only if they fit (`fits`).
    """

    def __init__(self, X: Any, fit_intercept: bool = True) -> None:
        X = canonical(X)
        data = X.data if X.data.dtype == np.float32 else X.data.astype(np.float64, copy=False)
        small = max(*X.shape, len(data)) <= np.iinfo(np.int32).max  # one kind of index, if it can be
        indices, indptr = (
            a.astype(np.int32 if small else np.int64, copy=False) for a in (X.indices, X.indptr)
        )
        self._set(CSR(data, indices, indptr, NO_SHIFT), X.shape[1], fit_intercept)

    def _set(self, stored: CSR, n_features: int, fit_intercept: bool) -> None:
        self.stored = stored
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = len(stored.indptr) - 1, n_features
        self.n_parameters = n_features + int(fit_intercept)

    def _like(self, stored: CSR, n_features: int | None = None) -> "SparseDesign":
        """Another design of arrays that are known to hold no duplicates."""
        other = object.__new__(SparseDesign)
        other._set(stored, self.n_features if n_features is None else n_features, self.fit_intercept)
        return other

    def decision(self, beta: Vector) -> Vector:
        out = np.empty(self.n_samples)
        csr_times(self.stored, np.ascontiguousarray(beta[: self.n_features]), out)
        return out + beta[-1] if self.fit_intercept else out

    def adjoint(self, v: Vector) -> Vector:
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def slopes(self, v: Vector) -> Vector:
        out = np.empty(self.n_features)
        csr_slopes(self.stored, v, out)
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        everywhere, out = np.zeros(self.n_features), np.empty(self.n_samples)
        everywhere[columns] = d
        csr_times(self.stored, everywhere, out)
        return out

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        csr_columns(self.stored, t, self._places(columns), self._shift_of(columns), places, panel)

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        out = np.empty((len(rows), len(columns)))
        csr_block(self.stored, rows, self._places(columns), self._shift_of(columns), out)
        return out

    def spread(self, c: Vector) -> Vector:
        if self._shifted:  # the stored numbers may be far from zero: their squares would lose all digits
            mean, variance, _ = self.moments(c * c, np.zeros(self.n_samples))
            return float(c @ c) * (variance if self.fit_intercept else variance + mean * mean)
        out = np.empty(self.n_features)
        csr_spread(self.stored, c, self.fit_intercept, out)
        return out

    def mean(self, c: Vector) -> Vector:
        return self.slopes(c * c) / float(c @ c)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        moments = Moments(*np.empty((3, self.n_features)))
        csr_moments(self.stored, weights, float(weights.sum()), v, *moments)
        return moments

    def fits(self, n_numbers: int) -> bool:
        """Those that take no more memory than X, or 32 MiB."""
        return n_numbers <= max(SMALL, len(self.stored.data))

    def distinct_columns(self) -> Indices:
        """Candidate once, then remembered: machines that share the design need not search again."""
        return self._distinct_columns

    def subset(self, columns: Indices) -> Design:
        return ColumnSubset(self, columns)

    def take(self, columns: Indices) -> "SparseDesign":
        shift = self.stored.shift[columns] if self._shifted else NO_SHIFT
        return self._like(CSR(*csr_take(self.stored, self._places(columns)), shift), len(columns))

    def take_rows(self, rows: Indices) -> "SparseDesign":
        return self._like(CSR(*csr_take_rows(self.stored, rows), self.stored.shift))

    def standardized(self, mean: Vector, spread: Vector) -> "SparseDesign":
        """The scale is stored, the mean subtracted implicitly."""
        shift = (mean + self.stored.shift if self._shifted else mean) / spread
        scaled = self.stored.data / spread[self.stored.indices]
        standardized = self._like(self.stored._replace(data=scaled, shift=shift if shift.any() else NO_SHIFT))
        standardized.__dict__["_distinct_columns"] = self._distinct_columns
        return standardized

    def largest(self) -> Vector:
        return self._magnitudes()[3]

    def _magnitudes(self) -> tuple[Vector, Vector, Indices, Vector]:
        """The shift of each column, the magnitude of each stored entry, how many entries of each column
        are not stored, and the largest magnitude in each.
        """
        data, indices, *_ = self.stored
        shift = self._shift_of(np.arange(self.n_features))
        magnitude = np.abs(data - shift[indices])
        n_absent = self.n_samples - np.bincount(indices, minlength=self.n_features)
        largest = np.where(n_absent > 0, np.abs(shift), 0.0)
        np.maximum.at(largest, indices, magnitude)
        return shift, magnitude, n_absent, largest

    def unit(self) -> float:
        indices = self.stored.indices
        shift, magnitude, n_absent, largest = self._magnitudes()
        base = np.where(largest > 0, largest, 1.0)
        squares = n_absent * (shift / base) ** 2
        squares += np.bincount(indices, (magnitude / base[indices]) ** 2, minlength=self.n_features)
        return typical_entry(largest, squares, self.n_samples)

    def thin_svd(self, weights: Vector) -> ThinSVD:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are dense even where X is sparse: '
            'use solver="exchange" or solver="sd", or give X as an array (X.toarray()) if it fits in memory.'
        )

    @property
    def _shifted(self) -> bool:
        return len(self.stored.shift) > 0

    @cached_property
    def _distinct_columns(self) -> Indices:
        fingerprint = np.empty(self.n_features)
        csr_slopes(self.stored._replace(shift=NO_SHIFT), fingerprint_vector(self.n_samples), fingerprint)
        candidates = candidate_columns(fingerprint)
        if len(candidates) == 0:
            return np.arange(self.n_features)
        shape = self.n_samples, len(candidates)
        X = scipy.sparse.csr_matrix(csr_take(self.stored, self._places(candidates)), shape).tocsc()
        X.eliminate_zeros()
        X.sort_indices()
        seen: set[bytes] = set()
        repeats = np.zeros(self.n_features, dtype=bool)
        for place, j in enumerate(candidates):
            entries = slice(X.indptr[place], X.indptr[place + 1])
            column = X.indices[entries].tobytes() + X.data[entries].tobytes()
            repeats[j] = column in seen
            seen.add(column)
        return np.flatnonzero(~repeats)

    def _places(self, columns: Indices) -> Indices:
        """For every column its place among `columns`, or -1."""
        places = np.full(self.n_features, -1, dtype=np.int32)
        places[columns] = np.arange(len(columns))
        return places

    def _shift_of(self, columns: Indices) -> Vector:
        return self.stored.shift[columns] if self._shifted else np.zeros(len(columns))
