"""What each unit promises beside a support, from its slopes alone: which units are worth a place in a panel.

Other coefficients stay as they are, and all rows count as active. A column gains slope^2 / (variance +
ridge). A group of columns that move together gains far less than the sum of that, so groups have the
covariances of their columns, where X is at hand.
"""

import numpy as np

from kmargin.solvers.signed import Signed
from kmargin.types import Vector
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
        A = at_hand.X.block(np.arange(at_hand.n_samples), self.units.columns)
        A -= at_hand.mean[self.units.columns]
        A *= at_hand.c[:, None]
        by_unit = np.ascontiguousarray(A.T)
        if not self.inside.all():
            by_unit = by_unit[self.places] * self.inside[:, :, None]
        by_unit = by_unit.reshape(n_units, widest, at_hand.n_samples)
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

    def gains(self, slopes: Vector) -> Vector:
        """Of each unit, doubled."""
        if self.covariance is None:
            return self.units.total(slopes * slopes * self.by_column)
        g = slopes[self.units.columns][self.places] * self.inside
        return np.einsum("ui,uij,uj->u", g, self.by_unit, g)
