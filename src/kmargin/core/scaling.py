"""Rescale badly scaled columns of X: subtract means that are too large, divide by powers of two.

Columns are rescaled once, when a problem is made; well-scaled columns stay as they are. A column divided by
a scale s gets the ridge lam / s^2, so that the minimum of the problem stays the same. If a column is centred,
the intercept changes to compensate. The spread of a column is its weighted standard deviation.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.design import Moments
from kmargin.core.problem import BinaryProblem

# Columns with variances in this range are not rescaled: products of two such variances, and of their
# inverses, neither overflow nor underflow.
SAFE_VARIANCE = (1e-12, 1e12)

# A column with a standard deviation above LARGEST_SPREAD raises an error. One below SMALLEST_SPREAD does not,
# since kernels and sample weights can make it arbitrarily small, but the column may be treated as constant.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-100, 1e100

# A column is centred if its mean is more than this many times its standard deviation: without centring, the
# variance computed from sums of squares would lose too many digits.
FAR_MEAN = 1e3

# A column counts as constant if its standard deviation is at most this fraction of its mean: rounding errors
# of equal entries are of that size.
CONSTANT_RTOL = 1e-12

# The standard deviation by which a feature is divided is rounded to this many binary digits, so that it does
# not depend on the order of summation.
SPREAD_DIGITS = 32


class Scaling(NamedTuple):
    """A centre and a scale for each column: the column x is replaced by (x - center) / scale."""

    centers: Vector
    scales: Vector
    are_constant: Flags = np.empty(0, np.bool_)  # by column; empty unless made by `unit_variance_scaling`

    def apply(self, problem: BinaryProblem) -> BinaryProblem:
        return replace(problem, design=problem.design.standardized(self.centers, self.scales))

    def scale_coefs(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Convert coefficients of original columns, and the intercept, to those of the scaled columns.

        The decision values stay the same.
        """
        return coef * self.scales[columns], intercept + float(coef @ self.centers[columns])

    def unscale_coefs(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Convert coefficients of scaled columns, and the intercept, to those of the original columns."""
        coef = coef / self.scales[columns]
        return coef, intercept - float(coef @ self.centers[columns])


def power_of_two(size: Any) -> Any:
    """The power of two nearest to each number in `size`; division by a power of two loses no digits."""
    return 2.0 ** np.round(np.log2(size))


def exact_moments(design: Any, moments: Callable[[Any], Moments]) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each column, accurate even if squares of entries overflow or underflow.

    `moments` is the function that computes the mean and the variance of each column of a design.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance, _ = moments(design)
    spread = np.sqrt(variance)
    odd = np.flatnonzero(~((variance > SAFE_VARIANCE[0]) & (variance < SAFE_VARIANCE[1])))
    if len(odd):  # recompute the moments of constant or extreme columns, divided by a power of two
        few = design.take(odd)
        largest = few.largest()
        scales = power_of_two(np.where(largest > 0, largest, 1.0))
        own_mean, own_variance, _ = moments(few.standardized(np.zeros(len(odd)), scales))
        mean[odd], spread[odd] = own_mean * scales, np.sqrt(own_variance) * scales
    return mean, spread


def typical_entry(problem: BinaryProblem) -> float:
    """The median of the root mean squares of all columns that are not zero; 1 if all are zero.

    Raises ValueError if the spread of a column is above LARGEST_SPREAD.
    """
    mean, spread = exact_moments(problem.design, lambda scaled: replace(problem, design=scaled).moments())
    check_spreads(spread, mean)
    size = np.hypot(mean, spread)
    return float(np.median(size[size > 0])) if size.any() else 1.0


def unit_variance_scaling(design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> Scaling:
    """The scaling of features to mean 0 and variance 1.

    Constant features are not divided by a scale. Without an intercept no feature is centred.
    """
    mean, spread = exact_moments(design, moments)
    check_spreads(spread, mean)
    constant = spread <= np.maximum(CONSTANT_RTOL * np.abs(mean), SMALLEST_SPREAD)
    digits, exponent = np.frexp(spread)
    spread = np.ldexp(np.round(np.ldexp(digits, SPREAD_DIGITS)), exponent - SPREAD_DIGITS)
    centers = mean if fit_intercept else np.zeros_like(mean)
    return Scaling(centers, np.where(constant, 1.0, spread), constant)


def make_scaling(
    problem: BinaryProblem, moments: Moments | None = None, check: bool = True
) -> Scaling | None:
    """The scaling of the badly scaled columns of a problem; None if no column needs rescaling.

    `moments` are those of the columns of X, if known. Raises ValueError if `check` is True and the spread
    (standard deviation) of a column is above LARGEST_SPREAD.
    """
    design = problem.design
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance, _ = problem.moments() if moments is None else moments
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
    # Scales are at least SMALLEST_SPREAD, so that the ridge divided by the squared scale does not overflow.
    scales = np.where(extreme, power_of_two(np.where(extreme, np.maximum(size, SMALLEST_SPREAD), 1.0)), 1.0)
    far = varies & (np.abs(mean) > FAR_MEAN * spread) if design.fit_intercept else np.zeros(len(mean), bool)
    return Scaling(np.where(far, mean, 0.0), scales) if far.any() or extreme.any() else None


def check_spreads(spread: Vector, mean: Vector) -> None:
    """Raise ValueError if the spread of a column that is not constant is above LARGEST_SPREAD."""
    is_constant = spread < CONSTANT_RTOL * np.abs(mean)
    too_large = np.flatnonzero(~is_constant & ~(spread <= LARGEST_SPREAD))
    if len(too_large):
        j = int(too_large[0])
        raise ValueError(
            f"Column {j} of X has a spread of {spread[j]:.3g}, and spreads have to be at most "
            f"{LARGEST_SPREAD:g}. Rescale it, for example with StandardScaler."
        )
