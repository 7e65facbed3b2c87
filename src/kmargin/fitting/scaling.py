"""Features brought to one scale, and solutions brought back from it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.design import Moments
from kmargin.solvers import Solution
from kmargin.solvers.units import LARGEST, SMALLEST
from kmargin.types import Vector

# Of the spread of a standardised feature so many binary digits are used.
DIGITS = 32


class Scaling(NamedTuple):
    """Features minus their mean, over their spread."""

    mean: Vector
    spread: Vector

    @classmethod
    def of(cls, design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> "Scaling":
        """Constant features keep their scale; without an intercept nothing is centred.

        Spreads are rounded to DIGITS binary ones, so that sums taken in another order give the same.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance, _ = moments(design)
        spread = np.sqrt(variance)
        odd = np.flatnonzero(~((variance > SMALLEST**2) & (variance < LARGEST**2)))
        if len(odd):  # constant, or such that squares overflow or vanish: in units of their own
            few = design.subset(odd)
            largest = few.largest()
            units = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
            own_mean, own_variance, _ = moments(few.in_units_of(units))
            mean[odd], spread[odd] = own_mean * units, np.sqrt(own_variance) * units
        constant = spread <= 1e-12 * np.abs(mean)
        digits, exponent = np.frexp(spread)
        spread = np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponent - DIGITS)
        return cls(mean if fit_intercept else np.zeros_like(mean), np.where(constant, 1.0, spread))

    def redo(self, solution: Solution) -> Solution:
        """The inverse of `undo`."""
        intercept = solution.intercept + float(solution.coef @ self.mean[solution.support])
        return replace(solution, coef=solution.coef * self.spread[solution.support], intercept=intercept)

    def undo(self, solution: Solution) -> Solution:
        """A solution for scaled features, as one for the features given."""
        coef = solution.coef / self.spread[solution.support]
        intercept = solution.intercept - float(coef @ self.mean[solution.support])
        return replace(solution, coef=coef, intercept=intercept)
