"""What each unit promises beside a support, from its slopes alone: which units are worth a place in a panel.

Other coefficients stay as they are, and all rows count as active. A column gains slope^2 / (variance +
ridge). A group of columns that move together gains far less than the sum of that, so groups have the
covariances of their columns, where X is at hand.
"""

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.signed import Signed
from kmargin.solvers.unit_blocks import factor_block, solve_forward
from kmargin.types import Indices, Matrix, Vector
from kmargin.units import Units
from kmargin.vectors import dot

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
        self.covariance = self._covariances(int(units.sizes.max()))

    def _covariances(self, widest: int) -> np.ndarray | None:
        """Of the columns of each unit, lower triangles; None where units are single columns, or X is not at
        hand.
        """
        at_hand, q = self.design.at_hand, len(self.units.columns)
        if widest == 1 or at_hand is None or self.units.n_units * widest**2 > MOST_PER_COLUMN * q:
            return None
        if not at_hand.fits(q * at_hand.n_samples):
            return None
        A = np.empty((q, at_hand.n_samples))
        at_hand.X.fill_panel(self.units.columns, at_hand.c, np.arange(q), A)
        covariance = np.zeros((self.units.n_units, widest, widest))
        take_covariances(A, at_hand.c, at_hand.mean[self.units.columns], self.units.starts, covariance)
        return covariance

    def go_to(self, ridge: float) -> None:
        """Another ridge."""
        if ridge == self.ridge:
            return
        self.ridge, bend = ridge, self.design.variance + ridge
        with np.errstate(over="ignore"):  # a column that hardly varies promises without end
            self.by_column = np.divide(1.0, bend, out=np.zeros(len(bend)), where=bend > 0)
        if self.covariance is not None:
            self.factors = np.empty_like(self.covariance)
            factor_each(self.covariance, self.units.sizes, ridge, self.factors)

    def add_gains(self, slopes: Vector, weight: float, out: Vector) -> None:
        """To what units promise is added `weight` times what they do in this machine, doubled."""
        if self.covariance is None:
            add_squares(slopes, self.units.starts, self.units.columns, self.by_column, weight, out)
        else:
            add_quadratic_forms(slopes, self.units.starts, self.units.columns, self.factors, weight, out)


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
    slopes: Vector, starts: Indices, columns: Indices, factors: np.ndarray, weight: float, out: Vector
) -> None:
    """Of each unit g'A^-1 g, with the slopes g of its columns and the factor of its own A."""
    x = np.empty(factors.shape[1])
    for unit in range(out.size):
        first, size = starts[unit], starts[unit + 1] - starts[unit]
        for i in range(size):
            x[i] = slopes[columns[first + i]]
        out[unit] += weight * solve_forward(factors[unit], size, x)


@compiled
def take_covariances(A: Matrix, c: Vector, mean: Vector, starts: Indices, out: np.ndarray) -> None:
    """Of the rows of A, once c times their mean is taken from them, in place: those of one unit."""
    n = c.size
    for j in range(mean.size):
        for i in range(n):
            A[j, i] -= mean[j] * c[i]
    for unit in range(starts.size - 1):
        first = starts[unit]
        for a in range(starts[unit + 1] - first):
            for b in range(a + 1):
                out[unit, a, b] = dot(A[first + a], A[first + b])


@compiled
def factor_each(covariance: np.ndarray, sizes: Indices, ridge: float, out: np.ndarray) -> None:
    """Each covariance with a ridge, raised a little, so that it has an inverse; 1 where nothing varies."""
    diagonal = np.empty(covariance.shape[1])
    for unit in range(sizes.size):
        for a in range(sizes[unit]):
            for b in range(a + 1):
                out[unit, a, b] = covariance[unit, a, b]
            raised = ridge + APART * covariance[unit, a, a]
            out[unit, a, a] += raised if raised > 0.0 else 1.0
            diagonal[a] = out[unit, a, a]
        factor_block(out[unit], sizes[unit], diagonal)
