"""Columns in units of their own, where their squares would leave the range of numbers."""

from dataclasses import replace

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.elsewhere import sign
from kmargin.solvers.signed import Found, Signed
from kmargin.types import Indices, Vector

# Magnitudes whose fourth powers can be added up. A search multiplies two curvatures at most.
SMALLEST, LARGEST = 1e-30, 1e30


class Measured:
    """A problem as the search sees it, every column within the range of numbers.

    Columns of ordinary size are left as they are. Others are divided by a power of two, which changes
    no digit. The search takes one ridge for all columns; in units of its own a column would have another,
    which for a very large one is next to nothing, and for a very small one so strong that it is of no use.
    What is found is finished with each column's own ridge (`ridge`).
    """

    def __init__(self, problem: Problem) -> None:
        self.units: Vector | None = None
        self.design: Signed = sign(problem)
        units = column_units(problem, self.design)
        if units is not None:
            self.units = units
            self.design = sign(replace(problem, design=problem.design.in_units_of(units)))

    def ridge(self, lam: float, support: Indices) -> Vector:
        """Of each column of a support, in its unit."""
        if self.units is None:
            return np.full(len(support), lam)
        return np.minimum((np.sqrt(lam) / self.units[support]) ** 2, 1e300)

    def enter(self, found: Found) -> Found:
        """What was given in the problem's units, in those of the search."""
        return found if self.units is None else found.rescaled(self.units)

    def leave(self, found: Found) -> Found:
        """What the search has found, in the problem's units."""
        return found if self.units is None else found.rescaled(1.0 / self.units)


def column_units(problem: Problem, design: Signed) -> Vector | None:
    """By what each column is to be divided; None if none needs it.

    Variances tell which columns need a closer look. They are NaN where a sum has overflown, and 0 for
    constant columns as for very small ones.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance = design.variance
    odd = np.flatnonzero(~((variance > SMALLEST**2) & (variance < LARGEST**2)))
    if len(odd) == 0:
        return None
    largest = problem.design.subset(odd).largest()
    beyond = np.where(largest > LARGEST, largest / LARGEST, 1.0)
    beyond = np.where((largest > 0) & (largest < SMALLEST), largest / SMALLEST, beyond)
    if (beyond == 1.0).all():
        return None
    units = np.ones(len(variance))
    units[odd] = 2.0 ** np.round(np.log2(beyond))
    return units
