"""Columns in units of their own, where numbers as they are would lose digits or leave their range."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from kmargin.design.affine import LARGEST, SMALLEST, VARIES, Affine, can_be_squared, power_of_two
from kmargin.problem import Problem
from kmargin.solvers.ending import doubt_of
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.remote import sign
from kmargin.solvers.signed import BETTER, Candidate, Signed
from kmargin.types import Indices, Vector

# A mean so many times the spread of its column costs the digits of its square.
FAR = 1e3

# The root of a ridge in a column's own unit, at most. One that is stronger leaves nothing of a coefficient.
STRONGEST = 1e150

# By so much, relatively, an objective tells in which units it was taken.
TELLS = 1e-9


class Measured:
    """A problem as the search sees it.

    Ordinary columns are left as they are. One that is very large or very small is divided by a power of
    two; one whose mean is far from 0, beside its spread, is centred, which the intercept makes up for. The
    search takes one ridge for all columns; in units of its own a column would have another, which for a
    very large one is next to nothing, and for a very small one so strong that it is of no use. What is found
    is finished with each column's own ridge (`ridge`).
    """

    def __init__(self, problem: Problem) -> None:
        self.given = self.design = sign(problem)
        self.measures = take_measures(problem, self.design)
        if self.measures is not None:
            self.design = sign(replace(problem, design=self.measures.apply(problem.design)))

    def ridge(self, lam: float, support: Indices) -> Vector:
        """Of each column of a support, in its unit."""
        if self.measures is None:
            return np.full(len(support), lam)
        return np.minimum(np.sqrt(lam) / self.measures.units[support], STRONGEST) ** 2

    def finish(self, lam: float, found: Candidate) -> Candidate:
        """At its minimum, each column with its own ridge.

        Where that costs what the search did not count, or cannot be had in numbers, other supports may be
        better: nothing is claimed.
        """
        after = self.design.finish(found, self.ridge(lam, found.support))
        return after._replace(all_tried=after.all_tried and is_as_good(after.value, found.value))

    def enter(self, found: Candidate) -> Candidate:
        """What was given for the columns as they are, for those of the search."""
        if self.measures is None:
            return found
        return found._replace(u=np.append(*self.measures.enter(found.support, found.u[:-1], found.u[-1])))

    def leave(self, lam: float, found: Candidate, keep_signs: bool = False) -> Candidate:
        """What the search has found, for the columns as they are; its objective is that of what is left.

        Coefficients that nearly cancel each other lose their digits in the columns as they are. Then the
        smallest that do as well serve better, unless their signs have to stay.
        """
        if self.measures is None:
            return found._replace(doubt=self.doubt(found.support, found.u, found.value))
        left = self._left(lam, found)
        if not keep_signs and left.value > found.value + TELLS * (found.value + NO_LOSS):
            smallest = self.design.finish_from_zero(found, self.ridge(lam, found.support))
            left = min(left, self._left(lam, smallest), key=lambda f: f.value)
        return left._replace(doubt=self.doubt(left.support, left.u, left.value))

    def doubt(self, support: Indices, u: Vector, value: float) -> float:
        """By how much rounding of decision values may change an objective, at most, for the columns given.

        A decision value is wrong by a digit of the sum of its terms' magnitudes; and the norm of a sum, over
        the weighted rows, is no larger than the sum of norms. Where large terms cancel, that is what the loss
        may be made of.
        """
        with np.errstate(over="ignore"):
            return doubt_of(float(np.abs(u[:-1]) @ self._norms[support] + abs(u[-1])), value)

    @cached_property
    def _norms(self) -> Vector:
        """Of the columns given, over the weighted rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(self.design.variance + self.design.mean**2)
            if self.measures is not None:
                norms = self.measures.units * norms + np.abs(self.measures.centers)
        return norms

    def _left(self, lam: float, found: Candidate) -> Candidate:
        assert self.measures is not None
        # next to nothing in a unit next to nothing may be a coefficient that costs its ridge
        coef = np.where(self.ridge(lam, found.support) < STRONGEST**2, found.u[:-1], 0.0)
        u = np.append(*self.measures.leave(found.support, coef, found.u[-1]))
        left = found._replace(u=u)
        return left._replace(value=self.given.objective(left, lam))


def is_as_good(after: float, before: float) -> bool:
    """Whether an objective is what it was said to be, or lower."""
    return after * BETTER <= before + NO_LOSS


def take_measures(problem: Problem, design: Signed) -> Affine | None:
    """Centres and units of the columns; None if all can stay as they are.

    Variances tell which columns need a closer look. They are NaN where a sum has overflown, 0 for constant
    columns as for very small ones, and far below the squared mean where they have lost their digits.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance, mean = design.variance, design.mean
        ordinary = can_be_squared(variance)
        ordinary &= np.abs(mean) <= FAR * np.sqrt(variance)
    odd = np.flatnonzero(~ordinary)
    if len(odd) == 0:
        return None
    columns = problem.design.subset(odd)
    largest = columns.largest()
    beyond = np.maximum(largest / LARGEST, 1.0)
    tiny = (largest > 0) & (largest < SMALLEST)
    beyond[tiny] = largest[tiny] / SMALLEST
    centers, units = np.zeros(len(variance)), np.ones(len(variance))
    units[odd] = power_of_two(beyond)
    if problem.design.fit_intercept:
        columns = columns.in_units_of(units[odd])
        mean, variance, _ = replace(problem, design=columns).moments()
        # by their values, not by their spread: that may be small because one row has nearly all of the weight
        varies = columns.standardized(mean, np.ones(len(odd))).largest() > VARIES * np.abs(mean)
        far = varies & (np.abs(mean) > FAR * np.sqrt(variance))
        centers[odd] = np.where(far, mean * units[odd], 0.0)
    return Affine(centers, units) if centers.any() or (units != 1.0).any() else None
