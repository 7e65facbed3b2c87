"""Design matrices of kernel values, which are computed in tiles if the matrix does not fit in memory."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design, Moments, ThinSVD

# Largest numbers of rows and columns of a tile. Its 4 MiB are enough for BLAS to be fast, and little compared
# with any `cache_size`.
HEIGHT, WIDTH = 1024, 512

MEGABYTE = 2**20

KernelFunction = Callable[[Any, Any], Matrix]  # computes a new array from two matrices of points


def scaled(K: Matrix, scale: Vector) -> Matrix:
    """K diag(scale) as float64; overwrites K if K is float64."""
    return np.multiply(K, scale, out=K if K.dtype == np.float64 else None)


class KernelTiles:
    """The matrix K(X, points) diag(scale) - 1 shift', of which one tile and some columns are in memory.

    Every pass over all columns goes from the first to the last. So the first columns are cached and never
    replaced: a cache of the latest columns would drop each column shortly before its next use.
    """

    def __init__(
        self, kernel: KernelFunction, X: Any, points: Any, scale: Vector, shift: Vector | None, budget: float
    ) -> None:
        self.kernel, self.X, self.points = kernel, X, points
        self.scale, self.shift = scale, shift
        self.budget = budget  # for cached columns, in megabytes
        self.shape: tuple[int, int] = X.shape[0], points.shape[0]
        n_rows, n_columns = self.shape
        self.room = min(n_columns, int(budget * MEGABYTE / (8 * n_rows)))  # how many columns can be cached
        self.kept: Matrix = np.empty((n_rows, 0))  # the cached columns; the first `n_kept` have been computed
        self.n_kept = 0

    def everywhere(self, rows: Indices | None = None) -> Iterator[tuple[slice, slice, Matrix]]:
        """Yield tiles that cover all columns, in all rows or in `rows`.

        Each tile comes as (slice of `rows`, slice of the columns, values).
        """
        n_rows, n_columns = self.shape
        for columns in pieces(n_columns, WIDTH):
            self._keep(columns)
            for places in pieces(n_rows if rows is None else len(rows), HEIGHT):
                which = places if rows is None else rows[places]
                yield places, columns, self._values(which, columns)

    def some(self, rows: Indices | None, columns: Indices) -> Iterator[tuple[slice, slice, Matrix]]:
        """Yield tiles that cover the columns in `columns`, in all rows or in `rows`.

        Each tile comes as (slice of `rows`, slice of `columns`, values).
        """
        for places in pieces(self.shape[0] if rows is None else len(rows), HEIGHT):
            which = places if rows is None else rows[places]
            for block in pieces(len(columns), WIDTH):
                yield places, block, self._gathered(which, columns[block])

    def _keep(self, columns: slice) -> None:
        """Compute and cache these columns, as far as the budget allows, if the columns before are cached."""
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
        """Return a tile of neighbouring columns, not to be modified: it may be a view of the cache."""
        if columns.stop <= self.n_kept:
            return self.kept[rows, columns]
        if columns.start >= self.n_kept:
            return self._compute(rows, columns)
        split = self.n_kept
        fresh = self._compute(rows, slice(split, columns.stop))
        return np.hstack([self.kept[rows, columns.start : split], fresh])

    def _gathered(self, rows: Any, columns: Indices) -> Matrix:
        """Return a tile of any columns, taken from the cache as far as they are in it."""
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
    """Yield slices of at most `size` entries that together cover range(count)."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


class KernelDesign(Design):
    """The matrix with entries ``signs[j] * kernel(x_i, points[j])`` for row i and column j.

    Every method makes one pass over tiles of kernel values. The first columns, up to `cache_size` megabytes,
    are cached in the first pass; all others are computed anew in each pass.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        X: Any,
        points: Any,
        signs: Vector,
        fit_intercept: bool = True,
        *,
        cache_size: float = 200.0,
        shift: Vector | None = None,
    ) -> None:
        self.tiles = KernelTiles(kernel, X, points, signs, shift, cache_size)
        super().__init__(self.tiles.shape, fit_intercept)

    def times(self, w: Vector) -> Vector:
        out = np.zeros(self.n_samples)
        for rows, columns, tile in self.tiles.everywhere():
            out[rows] += tile @ w[columns]
        return out

    def slopes(self, v: Vector) -> Vector:
        out = np.zeros(self.n_features)
        active = np.flatnonzero(v)
        everyone = len(active) == self.n_samples
        weights = v[active]
        for rows, columns, tile in self.tiles.everywhere(None if everyone else active):
            out[columns] += weights[rows] @ tile
        return out

    def product(self, columns: Indices, d: Vector) -> Vector:
        out = np.zeros(self.n_samples)
        for rows, places, tile in self.tiles.some(None, columns):
            out[rows] += tile @ d[places]
        return out

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        for rows, block, tile in self.tiles.some(None, columns):
            panel[places[block], rows] = t[rows] * tile.T

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        out = np.empty((len(rows), len(columns)))
        for places, block, tile in self.tiles.some(rows, columns):
            out[places, block] = tile
        return out

    def moments(self, weights: Vector, v: Vector) -> Moments:
        """Computed in one pass, from deviations from the mean of the first rows, to lose few digits."""
        total = float(weights.sum())
        f = weights * (v - float(weights @ v) / total)
        origin, mean, square, covariance = np.zeros((4, self.n_features))
        for rows, columns, tile in self.tiles.everywhere():
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
        t = self.tiles
        shift = None if t.shift is None else t.shift[columns]
        return self._with(points=t.points[columns], signs=t.scale[columns], shift=shift)

    def take_rows(self, rows: Indices) -> "KernelDesign":
        return self._with(X=self.tiles.X[rows])

    def standardized(self, mean: Vector, spread: Vector) -> "KernelDesign":
        """Every tile is standardised when it is computed."""
        shift = mean if self.tiles.shift is None else mean + self.tiles.shift
        return self._with(signs=self.tiles.scale / spread, shift=shift / spread if shift.any() else None)

    def largest(self) -> Vector:
        largest = np.zeros(self.n_features)
        for _, columns, tile in self.tiles.everywhere():
            largest[columns] = np.maximum(largest[columns], np.abs(tile).max(axis=0))
        return largest

    def thin_svd(self, weights: Vector) -> ThinSVD:
        takes = 8 * self.n_samples * self.n_features / MEGABYTE
        raise ValueError(
            f'solver="mm" works with the singular vectors of the kernel matrix of {self.n_samples} by '
            f"{self.n_features} points, {takes:.0f} MB for the matrix alone, and cache_size is "
            f'{self.tiles.budget:g} MB: use solver="exchange", or raise cache_size, or lower n_candidates.'
        )

    def column_bytes(self, columns: Indices) -> Iterator[bytes]:
        rows = np.arange(self.n_samples)
        for piece in pieces(len(columns), WIDTH):
            yield from (column.tobytes() for column in self.block(rows, columns[piece]).T)

    def _with(self, **changes: Any) -> "KernelDesign":
        t = self.tiles
        given = {"X": t.X, "points": t.points, "signs": t.scale, "shift": t.shift} | changes
        return KernelDesign(t.kernel, fit_intercept=self.fit_intercept, cache_size=t.budget, **given)
