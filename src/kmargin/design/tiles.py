"""Kernel values a tile at a time; as many columns are kept as a budget allows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kmargin.types import Indices, Matrix, Vector

# A tile has at most so many rows and columns: 4 MiB, large enough for BLAS, small beside any budget.
HEIGHT, WIDTH = 1024, 512

MEGABYTE = 2**20

KernelFunction = Callable[[Any, Any], Matrix]  # of two sets of points; returns a new array


def scaled(K: Matrix, scale: Vector) -> Matrix:
    """K diag(scale) as float64, in the place of K where that is possible."""
    return np.multiply(K, scale, out=K if K.dtype == np.float64 else None)


class KernelTiles:
    """The matrix K(X, points) diag(scale) - 1 shift', of which there is never more than a tile at once,
    and what is kept.

    A pass over all columns goes from the first to the last and begins again. So what is kept are the
    first columns, for good: to make room for the latest would throw out each column shortly before
    it is asked for again.
    """

    def __init__(
        self, kernel: KernelFunction, X: Any, points: Any, scale: Vector, shift: Vector | None, budget: float
    ) -> None:
        self.kernel, self.X, self.points = kernel, X, points
        self.scale, self.shift = scale, shift
        self.budget = budget  # MB
        self.shape: tuple[int, int] = X.shape[0], points.shape[0]
        n_rows, n_columns = self.shape
        self.room = min(n_columns, int(budget * MEGABYTE / (8 * n_rows)))  # in columns
        self.kept: Matrix = np.empty((n_rows, 0))
        self.n_kept = 0

    def everywhere(self, rows: Indices | None = None) -> Iterator[tuple[slice, slice, Matrix]]:
        """All columns, in all rows or in those given: (places of rows, columns, values)."""
        n_rows, n_columns = self.shape
        for columns in pieces(n_columns, WIDTH):
            self._keep(columns)
            for places in pieces(n_rows if rows is None else len(rows), HEIGHT):
                which = places if rows is None else rows[places]
                yield places, columns, self._values(which, columns)

    def some(self, rows: Indices | None, columns: Indices) -> Iterator[tuple[slice, slice, Matrix]]:
        """Some columns, in all rows or in those given: (places of rows, places of columns, values)."""
        for places in pieces(self.shape[0] if rows is None else len(rows), HEIGHT):
            which = places if rows is None else rows[places]
            for block in pieces(len(columns), WIDTH):
                yield places, block, self._gathered(which, columns[block])

    def _keep(self, columns: slice) -> None:
        """Fill what room there is for these columns, if they come next."""
        stop = min(columns.stop, self.room)
        if not columns.start <= self.n_kept < stop:
            return
        if self.n_kept == 0:
            self.kept = np.empty((self.shape[0], self.room))
        fresh = slice(self.n_kept, stop)
        for rows in pieces(self.shape[0], HEIGHT):
            self.kept[rows, fresh] = self._compute(rows, fresh)
        self.n_kept = stop

    def _values(self, rows: Any, columns: slice) -> Matrix:
        """A tile of neighbouring columns. It may be a part of what is kept: not to be changed."""
        if columns.stop <= self.n_kept:
            return self.kept[rows, columns]
        if columns.start >= self.n_kept:
            return self._compute(rows, columns)
        split = self.n_kept
        fresh = self._compute(rows, slice(split, columns.stop))
        return np.hstack([self.kept[rows, columns.start : split], fresh])

    def _gathered(self, rows: Any, columns: Indices) -> Matrix:
        """A tile of any columns."""
        held = columns < self.n_kept
        if not held.any():
            return self._compute(rows, columns)
        source = self.kept[rows]
        if held.all():
            return source[:, columns]
        tile = np.empty((len(source), len(columns)))
        tile[:, held] = source[:, columns[held]]
        tile[:, ~held] = self._compute(rows, columns[~held])
        return tile

    def _compute(self, rows: Any, columns: Any) -> Matrix:
        tile = scaled(self.kernel(self.X[rows], self.points[columns]), self.scale[columns])
        if self.shift is not None:
            tile -= self.shift[columns]
        return tile


def pieces(count: int, size: int) -> Iterator[slice]:
    """range(count) in slices of at most so many."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))
