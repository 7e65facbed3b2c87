"""X as a CSR matrix: never an array of its full size."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from kmargin.design.csr import (
    CSR,
    csr_block,
    csr_columns,
    csr_moments,
    csr_slopes,
    csr_spread,
    csr_take,
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


class SparseDesign:
    """A CSR matrix of float64 or float32 and, implicitly, a number subtracted from each column.

    What solvers gather into arrays are columns of a small support, and only if they fit (`fits`).
    """

    def __init__(self, X: Any, fit_intercept: bool = True, shift: Vector = NO_SHIFT) -> None:
        X = canonical(X)
        data = X.data if X.data.dtype == np.float32 else X.data.astype(np.float64, copy=False)
        self.stored = CSR(data, X.indices, X.indptr, shift)
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)

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
        out = np.empty(self.n_features)
        csr_spread(self.stored, c, self.fit_intercept, out)
        return out

    def moments(self, weights: Vector, v: Vector) -> Moments:
        moments = Moments(*np.empty((3, self.n_features)))
        csr_moments(self.stored, weights, v, *moments)
        return moments

    def fits(self, n_numbers: int) -> bool:
        """Those that take no more memory than X, or 32 MiB."""
        return n_numbers <= max(SMALL, len(self.stored.data))

    def distinct_columns(self) -> Indices:
        """Found once, then remembered: machines that share the design need not search again."""
        return self._distinct_columns

    def subset(self, columns: Indices) -> Design:
        return ColumnSubset(self, columns)

    def take(self, columns: Indices) -> "SparseDesign":
        data, indices, indptr = csr_take(self.stored, self._places(columns))
        X = _matrix(data, indices, indptr, (self.n_samples, len(columns)))
        return SparseDesign(X, self.fit_intercept, self.stored.shift[columns] if self._shifted else NO_SHIFT)

    def take_rows(self, rows: Indices) -> "SparseDesign":
        return SparseDesign(self.matrix[rows], self.fit_intercept, self.stored.shift)

    def standardized(self, mean: Vector, spread: Vector) -> "SparseDesign":
        """The scale is stored, the mean subtracted implicitly."""
        shift = (mean + self.stored.shift if self._shifted else mean) / spread
        scaled = self._with_data(self.stored.data / spread[self.stored.indices])
        return SparseDesign(scaled, self.fit_intercept, shift if shift.any() else NO_SHIFT)

    def unit(self) -> float:
        data, indices, *_ = self.stored
        magnitude = np.abs(data)
        largest = np.zeros(self.n_features)
        np.maximum.at(largest, indices, magnitude)
        nonzero = largest > 0
        if not nonzero.any():
            return 1.0
        largest[~nonzero] = 1.0
        squares = np.bincount(indices, (magnitude / largest[indices]) ** 2, minlength=self.n_features)
        return float(np.median((largest * np.sqrt(squares / self.n_samples))[nonzero]))

    def in_units_of(self, unit: float) -> "SparseDesign":
        return SparseDesign(
            self._with_data(self.stored.data / unit), self.fit_intercept, self.stored.shift / unit
        )

    def thin_svd(self, weights: Vector) -> ThinSVD:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are dense even where X is sparse: '
            'use solver="exchange" or solver="sd", or give X as an array (X.toarray()) if it fits in memory.'
        )

    @property
    def matrix(self) -> Any:
        """X without its shift, as scipy's; nothing is copied."""
        return self._with_data(self.stored.data)

    @property
    def _shifted(self) -> bool:
        return len(self.stored.shift) > 0

    @cached_property
    def _distinct_columns(self) -> Indices:
        fingerprint = np.empty(self.n_features)
        csr_slopes(self.stored._replace(shift=NO_SHIFT), fingerprint_vector(self.n_samples), fingerprint)
        candidates = candidate_columns(fingerprint)
        X = self.take(candidates).matrix.tocsc()
        X.eliminate_zeros()
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

    def _with_data(self, data: Vector) -> Any:
        return _matrix(data, self.stored.indices, self.stored.indptr, (self.n_samples, self.n_features))


def _matrix(data: Vector, indices: Indices, indptr: Indices, shape: tuple[int, int]) -> Any:
    """A CSR matrix of arrays that are known to be in order."""
    X = scipy.sparse.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    X.has_canonical_format = True
    return X
