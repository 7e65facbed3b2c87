"""Columns in other units and around another origin, and coefficients that follow them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kmargin.design.protocol import Moments
from kmargin.types import Flags, Indices, Vector

# Magnitudes whose fourth powers can be added up. A search multiplies two curvatures at most.
SMALLEST, LARGEST = 1e-30, 1e30

# Relative to its mean a column varies by at least this; what is less is rounding.
VARIES = 1e-12

# Of the spread of a standardised feature so many binary digits are used.
DIGITS = 32

NOTHING_KNOWN: Flags = np.empty(0, np.bool_)


class Affine(NamedTuple):
    """What is taken off each column, and what it is then divided by."""

    centers: Vector
    units: Vector
    are_constant: Flags = NOTHING_KNOWN  # which columns had no spread, where the units are spreads

    @classmethod
    def to_one_scale(cls, design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> "Affine":
        """Features minus their mean, over their spread.

        Constant features keep their scale; without an intercept nothing is centred. Spreads are rounded to
        DIGITS binary ones, so that sums taken in another order give the same.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance, _ = moments(design)
        spread = np.sqrt(variance)
        odd = np.flatnonzero(~can_be_squared(variance))
        if len(odd):  # constant, or such that squares overflow or vanish: in units of their own
            few = design.subset(odd)
            largest = few.largest()
            units = power_of_two(np.where(largest > 0, largest, 1.0))
            own_mean, own_variance, _ = moments(few.in_units_of(units))
            mean[odd], spread[odd] = own_mean * units, np.sqrt(own_variance) * units
        constant = spread <= VARIES * np.abs(mean)
        digits, exponent = np.frexp(spread)
        spread = np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponent - DIGITS)
        centers = mean if fit_intercept else np.zeros_like(mean)
        return cls(centers, np.where(constant, 1.0, spread), constant)

    def apply(self, design: Any) -> Any:
        """The design of the columns that they become."""
        return design.standardized(self.centers, self.units)

    def enter(self, support: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """A model of the columns given, as one of those that they become."""
        return coef * self.units[support], intercept + float(coef @ self.centers[support])

    def leave(self, support: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """The inverse of `enter`."""
        coef = coef / self.units[support]
        return coef, intercept - float(coef @ self.centers[support])


class InUnits(ABC):
    """Units alone, for a design that can be standardised."""

    n_features: int

    @abstractmethod
    def standardized(self, mean: Vector, spread: Vector) -> Any:
        """The columns minus `mean`, over `spread`."""

    def in_units_of(self, unit: float | Vector) -> Any:
        """The same data with every entry divided by `unit`, or by the unit of its column."""
        units: Vector = np.full(self.n_features, unit, dtype=np.float64)
        return Affine(np.zeros(self.n_features), units).apply(self)


def typical_entry(largest: Vector, squares: Vector, n_samples: int) -> float:
    """The median over columns of their root mean square; columns of zeros do not count.

    `squares` are the sums of squares of each column over its `largest` magnitude, so that none overflows.
    """
    nonzero = largest > 0
    if not nonzero.any():
        return 1.0
    return float(np.median((largest * np.sqrt(squares / n_samples))[nonzero]))


def can_be_squared(variance: Vector) -> Flags:
    """Whether columns are neither so large nor so small that powers leave the range of numbers."""
    return (variance > SMALLEST**2) & (variance < LARGEST**2)


def power_of_two(size: Any) -> Any:
    """The nearest, by which numbers are divided without loss of a digit."""
    return 2.0 ** np.round(np.log2(size))
