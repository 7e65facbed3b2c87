"""What each unit promises beside a support, from its slopes alone: which units are worth a place in a panel.

Other coefficients stay as they are, and all rows count as active. A column gains slope^2 / (variance +
ridge). A group of columns that move together gains far less than the sum of that, so groups have the
covariances of their columns, where X is at hand.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.signed import Signed
from kmargin.types import Indices, Vector
from kmargin.units import Units

# Numbers that the covariances may have for each column there is. Groups of unequal size all have as many as
# the largest.
MOST_PER_COLUMN = 64

# By this share a variance is raised, so that a matrix has an inverse where columns repeat each other.
APART = 1e-9


class Promise:
    """Of the units of one machine."""

    def __init__(self, design: Signed, units: Units) -> None:
        self.design, self.units = design, units
        self.ridge = np.nan
        widest = int(units.sizes.max())
        self.places = units.starts[:-1, None] + np.arange(widest)
        self.inside = np.arange(widest) < units.sizes[:, None]  # the others only fill up
        self.places[~self.inside] = 0
        self.covariance = self._covariances()

    def _covariances(self) -> np.ndarray | None:
        """Of the columns of each unit; None where units are single columns, or X is not at hand."""
        n_units, widest = self.places.shape
        at_hand, q = self.design.at_hand, len(self.units.columns)
        if widest == 1 or at_hand is None or n_units * widest**2 > MOST_PER_COLUMN * q:
            return None
        if not at_hand.fits(q * at_hand.n_samples):
            return None
        A = np.empty((q, at_hand.n_samples))
        at_hand.X.fill_panel(self.units.columns, at_hand.c, np.arange(q), A)
        A -= at_hand.mean[self.units.columns][:, None] * at_hand.c
        every = A if self.inside.all() else A[self.places] * self.inside[:, :, None]
        by_unit = every.reshape(n_units, widest, at_hand.n_samples)
        return by_unit @ by_unit.transpose(0, 2, 1)

    def go_to(self, ridge: float) -> None:
        """Another ridge."""
        if ridge == self.ridge:
            return
        self.ridge, bend = ridge, self.design.variance + ridge
        with np.errstate(over="ignore"):  # a column that hardly varies promises without end
            self.by_column = np.divide(1.0, bend, out=np.zeros(len(bend)), where=bend > 0)
        if self.covariance is not None:
            raised = ridge + APART * np.diagonal(self.covariance, axis1=1, axis2=2)
            raised = np.where(self.inside & (raised > 0), raised, 1.0)
            self.by_unit = np.linalg.inv(self.covariance + raised[:, :, None] * np.eye(raised.shape[1]))

    def add_gains(self, slopes: Vector, weight: float, out: Vector) -> None:
        """To what units promise is added `weight` times what they do in this machine, doubled."""
        if self.covariance is None:
            add_squares(slopes, self.units.starts, self.units.columns, self.by_column, weight, out)
        else:
            add_quadratic_forms(slopes, self.units.starts, self.units.columns, self.by_unit, weight, out)


@compiled
def add_squares(
    slopes: Vector, starts: Indices, columns: Indices, scale: Vector, weight: float, out: Vector
) -> None:
    """Of each unit: the sum of the squared slopes of its columns, each times a number of its own."""
    for unit in range(out.size):
        total = 0.0
        for i in range(starts[unit], starts[unit + 1]):
            slope = slopes[columns[i]]
            total += slope * slope * scale[columns[i]]
        out[unit] += weight * total


@compiled
def add_quadratic_forms(
    slopes: Vector, starts: Indices, columns: Indices, A: np.ndarray, weight: float, out: Vector
) -> None:
    """Of each unit g'Ag, with the slopes g of its columns and its own A."""
    for unit in range(out.size):
        first, size, total = starts[unit], starts[unit + 1] - starts[unit], 0.0
        for i in range(size):
            part = 0.0
            for j in range(size):
                part += A[unit, i, j] * slopes[columns[first + j]]
            total += slopes[columns[first + i]] * part
        out[unit] += weight * total
