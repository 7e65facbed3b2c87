"""Design matrices of kernel values, which are computed in tiles if the matrix does not fit in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design, Moments, ThinSVD

# Largest numbers of rows and columns of a tile, a submatrix of kernel values that is computed at once. Such a
# tile takes 4 MiB: large enough for BLAS to be fast, and small compared with usual values of `cache_size`.
HEIGHT, WIDTH = 1024, 512
MEGABYTE = 2**20

KernelFunction = Callable[[Any, Any], Matrix]  # takes two matrices of points, returns K as a new array


def scaled(K: Matrix, scale: Vector) -> Matrix:
    """Return K with column j multiplied by scale[j], as float64; K itself is overwritten if it is float64."""
    return np.multiply(K, scale, out=K if K.dtype == np.float64 else None)


def pieces(count: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `size` indices that together cover range(count)."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


class KernelDesign(Design):
    """The matrix K(X, points) * scale - shift of kernel values, with a scale and a shift for each column.

    Methods make one pass over the matrix, in submatrices called tiles. The first columns, up to `cache_size`
    megabytes, are cached in the first pass over all columns and never replaced; other columns are computed
    anew in each pass. A cache of the latest columns would not help: each pass goes from the first column to
    the last, so every column would be dropped shortly before its next use.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        X: Any,
        points: Any,
        scale: Vector,
        fit_intercept: bool = True,
        *,
        cache_size: float = 200.0,
        shift: Vector | None = None,
    ) -> None:
        super().__init__((X.shape[0], points.shape[0]), fit_intercept)
        self.kernel, self.X, self.points = kernel, X, points
        self.scale, self.shift, self.cache_size = scale, shift, cache_size
        # the number of columns for which the cache has memory
        self.room = min(self.n_features, int(cache_size * MEGABYTE / (8 * self.n_samples)))
        self.kept: Matrix = np.empty((self.n_samples, 0))  # the cache; its first `n_kept` columns are filled
        self.n_kept = 0

    def tiles(
        self, rows: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[slice, slice, Matrix]]:
        """Yield the submatrix of `rows` and `columns` (None means all) in tiles: (slice, slice, values).

        Slices are positions in `rows` and `columns`. Values may be a view of the cache: do not modify them.
        """
        for block in pieces(self.n_features if columns is None else len(columns), WIDTH):
            if columns is None:
                self._keep(block)
            wanted = block if columns is None else columns[block]
            for places in pieces(self.n_samples if rows is None else len(rows), HEIGHT):
                yield places, block, self._tile(places if rows is None else rows[places], wanted)

    def _keep(self, columns: slice) -> None:
        """Cache these columns, as many as the cache has memory for, if all columns before them are cached."""
        stop = min(columns.stop, self.room)
        if not columns.start <= self.n_kept < stop:
            return
        if self.n_kept == 0:
            self.kept = np.empty((self.n_samples, self.room))
        fresh = slice(self.n_kept, stop)
        for rows in pieces(self.n_samples, HEIGHT):
            self.kept[rows, fresh] = self._compute(rows, fresh)
        self.n_kept = stop

    def _tile(self, rows: Any, columns: Any) -> Matrix:
        """Return the entries in `rows` and `columns`; columns that are not in the cache are computed."""
        numbers = np.arange(self.n_features)[columns]
        held = numbers < self.n_kept
        if held.all():
            return self._cached(rows, columns)
        if not held.any():
            return self._compute(rows, columns)
        fresh = self._compute(rows, numbers[~held])
        tile = np.empty((len(fresh), len(numbers)))
        tile[:, held] = self._cached(rows, numbers[held])
        tile[:, ~held] = fresh
        return tile

    def _cached(self, rows: Any, columns: Any) -> Matrix:
        has_slice = isinstance(rows, slice) or isinstance(columns, slice)
        return self.kept[rows if has_slice else rows[:, None], columns]

    def _compute(self, rows: Any, columns: Any) -> Matrix:
        tile = scaled(self.kernel(self.X[rows], self.points[columns]), self.scale[columns])
        if self.shift is not None:
            tile -= self.shift[columns]
        return tile

    def times(self, w: Vector) -> Vector:
        out = np.zeros(self.n_samples)
        for rows, columns, tile in self.tiles():
            out[rows] += tile @ w[columns]
        return out

    def slopes(self, v: Vector) -> Vector:
        out = np.zeros(self.n_features)
        active = np.flatnonzero(v)
        everyone = len(active) == self.n_samples
        weights = v[active]
        for rows, columns, tile in self.tiles(None if everyone else active):
            out[columns] += weights[rows] @ tile
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        out = np.zeros(self.n_samples)
        for rows, places, tile in self.tiles(columns=columns):
            out[rows] += tile @ d[places]
        return out

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        for rows, block, tile in self.tiles(columns=columns):
            panel[places[block], rows] = t[rows] * tile.T

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        out = np.empty((len(rows), len(columns)))
        for places, block, tile in self.tiles(rows, columns):
            out[places, block] = tile
        return out

    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Moments of the columns, for accuracy from deviations from a column's mean over its first rows."""
        total = float(weights.sum())
        f = weights * (v - float(weights @ v) / total)
        origin, mean, square, covariance = np.zeros((4, self.n_features))
        for rows, columns, tile in self.tiles():
            if rows.start == 0:
                origin[columns] = tile.mean(axis=0)
            gap = tile - origin[columns]
            covariance[columns] += f[rows] @ gap
            mean[columns] += weights[rows] @ gap
            square[columns] += weights[rows] @ np.square(gap, out=gap)
        mean /= total
        variance = np.maximum(square / total - mean**2, 0.0)
        return Moments(origin + mean, variance, covariance / total)

    def take(self, columns: Indices) -> "KernelDesign":
        shift = None if self.shift is None else self.shift[columns]
        return self._with(points=self.points[columns], scale=self.scale[columns], shift=shift)

    def take_rows(self, rows: Indices) -> "KernelDesign":
        return self._with(X=self.X[rows])

    def standardized(self, mean: Vector, spread: Vector) -> "KernelDesign":
        """Return a design whose tiles are standardised when they are computed."""
        shift = mean if self.shift is None else mean + self.shift
        return self._with(scale=self.scale / spread, shift=shift / spread if shift.any() else None)

    def largest(self) -> Vector:
        largest = np.zeros(self.n_features)
        for _, columns, tile in self.tiles():
            largest[columns] = np.maximum(largest[columns], np.abs(tile).max(axis=0))
        return largest

    def thin_svd(self, weights: Vector) -> ThinSVD:
        takes = 8 * self.n_samples * self.n_features / MEGABYTE
        raise ValueError(
            f'solver="mm" works with the singular vectors of the kernel matrix of {self.n_samples} by '
            f"{self.n_features} points, {takes:.0f} MB for the matrix alone, and cache_size is "
            f'{self.cache_size:g} MB: use solver="exchange", or raise cache_size, or lower n_candidates.'
        )

    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        rows = np.arange(self.n_samples)
        for piece in pieces(len(columns), WIDTH):
            yield from (column.tobytes() for column in self.block(rows, columns[piece]).T)

    def _with(self, **changes: Any) -> "KernelDesign":
        given = {"X": self.X, "points": self.points, "scale": self.scale, "shift": self.shift} | changes
        return KernelDesign(
            self.kernel, fit_intercept=self.fit_intercept, cache_size=self.cache_size, **given
        )
