"""X as the values of a kernel: computed where they are asked for, never held as a whole."""

from typing import Any

import numpy as np

from kmargin.design.affine import InUnits, typical_entry
from kmargin.design.distinct import candidate_groups, fingerprint_vector, repeats_among
from kmargin.design.protocol import Design, Moments, ThinSVD
from kmargin.design.subset import ColumnSubset
from kmargin.design.tiles import MEGABYTE, KernelFunction, KernelTiles
from kmargin.types import Indices, Matrix, Vector


class KernelDesign(InUnits):
    """Column j is ``signs[j] * kernel(x_i, points[j])``, i = 1, ..., n.

    Every question is answered in one pass over tiles of kernel values. The first columns are kept
    from the first pass on, `cache_size` MB of them; all others are computed anew.
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
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = self.tiles.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        self._last: tuple[Vector, Moments] | None = None

    @property
    def stored(self) -> None:
        return None

    def decision(self, beta: Vector) -> Vector:
        out = np.zeros(self.n_samples)
        for rows, columns, tile in self.tiles.everywhere():
            out[rows] += tile @ beta[columns]
        return out + beta[-1] if self.fit_intercept else out

    def adjoint(self, v: Vector) -> Vector:
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

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

    def mean(self, c: Vector) -> Vector:
        return self._moments_by(c).mean

    def _moments_by(self, c: Vector) -> Moments:
        """Taken once, then remembered for this c: a pass computes the kernel anew."""
        if self._last is None or not np.array_equal(self._last[0], c):
            self._last = c, self.moments(c * c, c)
        return self._last[1]

    def spread(self, c: Vector) -> Vector:
        mean, variance, _ = self._moments_by(c)
        if not self.fit_intercept:
            variance = variance + mean**2
        return variance * float(c @ c)

    def moments(self, weights: Vector, v: Vector) -> Moments:
        """In one pass: sums are taken around the mean of the first rows, which keeps them accurate."""
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

    def fits(self, n_numbers: int) -> bool:
        """Yes: what a search gathers are kernel values it needs again and again, beside the budget."""
        return True

    def distinct_columns(self) -> Indices:
        groups = candidate_groups(self.slopes(fingerprint_vector(self.n_samples)))

        def equal(i: int, j: int) -> bool:
            pair = np.array([i, j])
            return all(np.array_equal(tile[:, 0], tile[:, 1]) for *_, tile in self.tiles.some(None, pair))

        return np.flatnonzero(~repeats_among(groups, equal, self.n_features))

    def subset(self, columns: Indices) -> Design:
        """These columns share what is kept of the whole."""
        return ColumnSubset(self, columns)

    def take(self, columns: Indices) -> "KernelDesign":
        t = self.tiles
        shift = None if t.shift is None else t.shift[columns]
        return self._with(points=t.points[columns], signs=t.scale[columns], shift=shift)

    def take_rows(self, rows: Indices) -> "KernelDesign":
        return self._with(X=self.tiles.X[rows])

    def standardized(self, mean: Vector, spread: Vector) -> "KernelDesign":
        """Mean and spread enter each tile as it is computed."""
        shift = mean if self.tiles.shift is None else mean + self.tiles.shift
        return self._with(signs=self.tiles.scale / spread, shift=shift / spread if shift.any() else None)

    def largest(self) -> Vector:
        largest = np.zeros(self.n_features)
        for _, columns, tile in self.tiles.everywhere():
            largest[columns] = np.maximum(largest[columns], np.abs(tile).max(axis=0))
        return largest

    def unit(self) -> float:
        largest, squares = np.zeros(self.n_features), np.zeros(self.n_features)
        for _, columns, tile in self.tiles.everywhere():
            before = largest[columns]
            now = np.maximum(before, np.abs(tile).max(axis=0))
            base = np.where(now > 0, now, 1.0)  # so that no square overflows
            squares[columns] = squares[columns] * (before / base) ** 2 + ((tile / base) ** 2).sum(axis=0)
            largest[columns] = now
        return typical_entry(largest, squares, self.n_samples)

    def thin_svd(self, weights: Vector) -> ThinSVD:
        takes = 8 * self.n_samples * self.n_features / MEGABYTE
        raise ValueError(
            f'solver="mm" works with the singular vectors of the kernel matrix of {self.n_samples} by '
            f"{self.n_features} points, {takes:.0f} MB for the matrix alone, and cache_size is "
            f'{self.tiles.budget:g} MB: use solver="exchange", or raise cache_size, or lower n_candidates.'
        )

    def _with(self, **changes: Any) -> "KernelDesign":
        t = self.tiles
        given = {"X": t.X, "points": t.points, "signs": t.scale, "shift": t.shift} | changes
        return KernelDesign(t.kernel, fit_intercept=self.fit_intercept, cache_size=t.budget, **given)
