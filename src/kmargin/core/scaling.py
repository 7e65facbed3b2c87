"""Columns on a safe scale: centred where their mean is far beyond their spread, scaled by powers of two.

This happens once, when a problem is made. Ordinary columns are left as they are. A column that is divided by
its unit has a ridge of its own, lam / unit^2, which the search carries along, so that the problem stays the
same; a shift is made up for by the intercept.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.design import Moments
from kmargin.core.problem import BinaryProblem

# Variances within this range are left as they are: products of two of them, and of their inverses, are
# finite.
SAFE_VARIANCE = (1e-12, 1e12)

# A column with a larger spread is refused. One with a smaller spread may count as constant: kernels and
# sample weights can make the spread of a column as small as they like.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-100, 1e100

# A column is centred where its mean exceeds its spread by this factor, beyond which squares lose digits.
FAR_MEAN = 1e3

# A column whose spread is below this fraction of its mean is constant.
CONSTANT_RTOL = 1e-12

# The spread of a standardised feature is rounded to this many binary digits, so that sums taken in another
# order give the same scale.
SPREAD_DIGITS = 32


class Scaling(NamedTuple):
    """Scaled columns are (x - center) / unit."""

    centers: Vector
    units: Vector
    are_constant: Flags = np.empty(0, np.bool_)  # which columns have no spread, where units are spreads

    def apply(self, problem: BinaryProblem) -> BinaryProblem:
        return replace(problem, design=problem.design.standardized(self.centers, self.units))

    def enter(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Coefficients and intercept for the columns as given, as those for the scaled columns."""
        return coef * self.units[columns], intercept + float(coef @ self.centers[columns])

    def leave(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """The inverse of `enter`."""
        coef = coef / self.units[columns]
        return coef, intercept - float(coef @ self.centers[columns])


def power_of_two(size: Any) -> Any:
    """The nearest power of two, by which numbers are divided without loss of a digit."""
    return 2.0 ** np.round(np.log2(size))


def exact_moments(design: Any, moments: Callable[[Any], Moments]) -> tuple[Vector, Vector]:
    """Mean and spread of each column, also where squares of the entries would overflow or vanish."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance, _ = moments(design)
    spread = np.sqrt(variance)
    odd = np.flatnonzero(~((variance > SAFE_VARIANCE[0]) & (variance < SAFE_VARIANCE[1])))
    if len(odd):  # constant, or extreme: in units of their largest entry
        few = design.take(odd)
        largest = few.largest()
        units = power_of_two(np.where(largest > 0, largest, 1.0))
        own_mean, own_variance, _ = moments(few.standardized(np.zeros(len(odd)), units))
        mean[odd], spread[odd] = own_mean * units, np.sqrt(own_variance) * units
    return mean, spread


def typical_entry(problem: BinaryProblem) -> float:
    """The median over the columns of their root mean square; columns of zeros do not count.

    Raises ValueError for spreads that are too large.
    """
    mean, spread = exact_moments(problem.design, lambda scaled: replace(problem, design=scaled).moments())
    check_spreads(spread, mean)
    size = np.hypot(mean, spread)
    return float(np.median(size[size > 0])) if size.any() else 1.0


def unit_variance_scaling(design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> Scaling:
    """Scale features to mean 0 and variance 1; constant features keep their scale, without an intercept
    nothing is centred.
    """
    mean, spread = exact_moments(design, moments)
    check_spreads(spread, mean)
    constant = spread <= np.maximum(CONSTANT_RTOL * np.abs(mean), SMALLEST_SPREAD)
    digits, exponent = np.frexp(spread)
    spread = np.ldexp(np.round(np.ldexp(digits, SPREAD_DIGITS)), exponent - SPREAD_DIGITS)
    centers = mean if fit_intercept else np.zeros_like(mean)
    return Scaling(centers, np.where(constant, 1.0, spread), constant)


def make_scaling(problem: BinaryProblem, check: bool = True) -> Scaling | None:
    """Centres and units for badly scaled columns; None if no column needs rescaling.

    Raises ValueError if `check` is True and the spread of a column is too large.
    """
    design = problem.design
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance, _ = problem.moments()
        ordinary = (variance > SAFE_VARIANCE[0]) & (variance < SAFE_VARIANCE[1])
        ordinary &= np.abs(mean) <= FAR_MEAN * np.sqrt(variance)
    if ordinary.all():
        return None
    mean, spread = exact_moments(design, lambda scaled: replace(problem, design=scaled).moments())
    if check:
        check_spreads(spread, mean)
    varies = spread > CONSTANT_RTOL * np.abs(mean)
    size = np.where(varies, spread, np.abs(mean)) if design.fit_intercept else np.hypot(spread, mean)
    extreme = (size > 0) & ~((size > SAFE_VARIANCE[0] ** 0.5) & (size < SAFE_VARIANCE[1] ** 0.5))
    # the inverse square of a smaller scale would overflow
    units = np.where(extreme, power_of_two(np.where(extreme, np.maximum(size, SMALLEST_SPREAD), 1.0)), 1.0)
    far = varies & (np.abs(mean) > FAR_MEAN * spread) if design.fit_intercept else np.zeros(len(mean), bool)
    return Scaling(np.where(far, mean, 0.0), units) if far.any() or extreme.any() else None


def check_spreads(spread: Vector, mean: Vector) -> None:
    """Raise ValueError for a column that is not constant and has a spread too large to compute with."""
    is_constant = spread < CONSTANT_RTOL * np.abs(mean)
    too_large = np.flatnonzero(~is_constant & ~(spread <= LARGEST_SPREAD))
    if len(too_large):
        j = int(too_large[0])
        raise ValueError(
            f"Column {j} of X has a spread of {spread[j]:.3g}, and spreads have to be at most "
            f"{LARGEST_SPREAD:g}. Rescale it, for example with StandardScaler."
        )
