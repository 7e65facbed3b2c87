"""Rescale badly scaled columns of X: subtract means that are too large, divide by powers of two.

Well-scaled columns stay as they are. Dividing a column by a scale s multiplies its coefficient by s, so its
ridge has to become lam / s^2 for the minimum of the problem to stay the same. Centring a column changes only
the intercept. The *spread* of a column is its standard deviation, weighted by the sample weights.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.design import Moments
from kmargin.core.problem import BinaryProblem

# Columns with a variance in this range are not divided by a scale: products of two such variances, or of two
# of their inverses, neither overflow nor underflow.
SAFE_VARIANCE = (1e-12, 1e12)

# A column with a standard deviation above LARGEST_SPREAD raises an error. A standard deviation below
# SMALLEST_SPREAD is no error, as kernels and weights can cause it, but the column may be treated as constant.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-100, 1e100

# A column is centred if the absolute value of its mean is more than this many times its standard deviation:
# without centring, a variance computed from sums of squares would lose too many digits.
FAR_MEAN = 1e3

# A column counts as constant if its standard deviation is at most this fraction of its mean: rounding errors
# of equal entries are of that size.
CONSTANT_RTOL = 1e-12

# When features are standardised, the standard deviations that divide them are rounded to this many binary
# digits, so that rounding errors, which depend on the order of summation, rarely change them.
SPREAD_DIGITS = 32


class Scaling(NamedTuple):
    """A centre and a scale for each column of X: a column x is replaced by (x - center) / scale."""

    centers: Vector
    scales: Vector
    are_constant: Flags = np.empty(0, np.bool_)  # of each column; set by `unit_variance_scaling` only

    def apply(self, problem: BinaryProblem) -> BinaryProblem:
        return replace(problem, design=problem.design.standardized(self.centers, self.scales))

    def scale_coefs(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Convert a model of the original X to one of the scaled X; `coef` are coefficients of `columns`."""
        return coef * self.scales[columns], intercept + float(coef @ self.centers[columns])

    def unscale_coefs(self, columns: Indices, coef: Vector, intercept: float) -> tuple[Vector, float]:
        """Convert a model of the scaled X to one of the original X; `coef` are coefficients of `columns`."""
        coef = coef / self.scales[columns]
        return coef, intercept - float(coef @ self.centers[columns])


def power_of_two(size: Any) -> Any:
    """Round each number to a power of two (on a log scale), division by which causes no rounding errors."""
    return 2.0 ** np.round(np.log2(size))


def exact_moments(design: Any, moments: Callable[[Any], Moments]) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each column, accurate even if squares of entries overflow or underflow.

    ``moments(design)`` computes moments of all columns. It is called again for columns that need rescaling.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance, _ = moments(design)
    spread = np.sqrt(variance)
    odd = np.flatnonzero(~((variance > SAFE_VARIANCE[0]) & (variance < SAFE_VARIANCE[1])))
    if len(odd):  # these columns are constant or extreme: divide them by powers of two, and recompute
        few = design.take(odd)
        largest = few.largest()
        scales = power_of_two(np.where(largest > 0, largest, 1.0))
        own_mean, own_variance, _ = moments(few.standardized(np.zeros(len(odd)), scales))
        mean[odd], spread[odd] = own_mean * scales, np.sqrt(own_variance) * scales
    return mean, spread


def typical_entry(problem: BinaryProblem) -> float:
    """The typical size of entries of X: the median over nonzero columns of the root mean square of a column.

    It is 1 if X is zero. Raises ValueError if the standard deviation of a column is above LARGEST_SPREAD.
    """
    mean, spread = exact_moments(problem.design, lambda scaled: replace(problem, design=scaled).moments())
    check_spreads(spread, mean)
    size = np.hypot(mean, spread)
    return float(np.median(size[size > 0])) if size.any() else 1.0


def unit_variance_scaling(design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> Scaling:
    """The scaling that gives features mean 0 and variance 1; ``moments(design)`` computes their moments.

    Constant features have the scale 1. Without an intercept no feature is centred.
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
    """The scaling of a problem in which some columns are badly scaled; None if no column is.

    The other columns get centre 0 and scale 1. `moments` are those of all columns of X, if already computed.
    If `check` is True, a column with a standard deviation above LARGEST_SPREAD raises ValueError.
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
    """Raise ValueError if a column, unless it is constant, has a standard deviation above LARGEST_SPREAD."""
    is_constant = spread < CONSTANT_RTOL * np.abs(mean)
    too_large = np.flatnonzero(~is_constant & ~(spread <= LARGEST_SPREAD))
    if len(too_large):
        j = int(too_large[0])
        raise ValueError(
            f"Column {j} of X has a spread of {spread[j]:.3g}, and spreads have to be at most "
            f"{LARGEST_SPREAD:g}. Rescale it, for example with StandardScaler."
        )
