"""S_k of units: the coefficients of several machines of which at most k units are not 0.

Coefficients are a matrix, one row per machine and one column per feature; a unit is some of its columns.
Intercepts are no part of it. Every coefficient has the sign that is asked of its column, or is 0.
"""

import numpy as np

from kmargin import sparsity
from kmargin.types import Flags, Indices, Matrix, Vector
from kmargin.units import Units


class UnitSparsity:
    """The projection onto S_k for every k."""

    def __init__(self, units: Units) -> None:
        self.units = units
        n_features = len(units.signs)
        self.signs = units.signs if units.signs.any() else None
        self.unit_of = np.full(n_features, units.n_units)  # what is behind the last unit is never in
        self.unit_of[units.columns] = np.repeat(np.arange(units.n_units), np.diff(units.starts))
        each = np.array_equal(self.unit_of, np.arange(n_features))
        self.are_columns = each and units.n_units == n_features

    def holds_all(self, k: int) -> bool:
        """Whether every matrix is in S_k."""
        every_column = not np.any(self.unit_of == self.units.n_units)
        return k >= self.units.n_units and every_column and self.signs is None

    def project(self, W: Matrix, k: int) -> Matrix:
        """Return the point of S_k nearest to W.

        Coefficients of the wrong sign become 0. Of what is left, the k units of largest norm over all
        machines are kept, and the others become 0. To drop a unit adds its squared norm to the squared
        distance, that is what its wrong signs add anyway and the norm after them: so the largest norms
        *after* them are to be kept. A unit that is always in comes before any other. Units of the same norm
        are kept in index order.
        """
        right = W if self.signs is None else np.where(W * self.signs < 0, 0.0, W)
        return np.where(self.kept(right, k)[self.unit_of], right, 0.0)

    def kept(self, W: Matrix, k: int) -> Flags:
        """Which units are kept of coefficients that have the right signs; behind them, what is in no unit."""
        norms_sq = self.norms_sq(W)
        norms_sq[:-1][self.units.fixed] = np.inf
        kept = sparsity.project(norms_sq, k, self.units.n_units) > 0
        kept[-1] = False
        return kept

    def norms_sq(self, W: Matrix) -> Vector:
        """The squared norm of each unit over all machines; behind them, that of what is in no unit."""
        of_columns = np.einsum("mj,mj->j", W, W)
        if self.are_columns:
            return np.append(of_columns, 0.0)
        norms_sq: Vector = np.bincount(self.unit_of, of_columns, self.units.n_units + 1).astype(np.float64)
        return norms_sq


def project_by_sorting(W: Matrix, k: int, units: Units) -> Matrix:
    """The naive twin of :meth:`UnitSparsity.project`: a stable sort of units, largest norm first."""
    right = np.where(W * units.signs < 0, 0.0, W)
    blocks: list[Indices] = [units.columns_of(np.array([unit])) for unit in range(units.n_units)]
    norms_sq = [np.inf if units.fixed[j] else np.sum(right[:, block] ** 2) for j, block in enumerate(blocks)]
    projected = np.zeros_like(W)
    for unit in np.argsort(-np.array(norms_sq), kind="stable")[:k]:
        projected[:, blocks[unit]] = right[:, blocks[unit]]
    return projected
