"""X as a CSR matrix: never an array of its full size."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from kmargin.design.affine import InUnits, typical_entry
from kmargin.design.csr import (
    CSR,
    csr_block,
    csr_columns,
    csr_moments,
    csr_slopes,
    csr_spread,
    csr_take,
    csr_take_rows,
    csr_times,
)
from kmargin.design.distinct import candidate_columns, fingerprint_vector
from kmargin.design.protocol import Design, Moments, ThinSVD
from kmargin.design.subset import ColumnSubset
from kmargin.types import Indices, Matrix, Vector

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
