"""The squared hinge: half the square of the amount by which a row falls short of its margin.

No other module spells it out. In *panel form* it is a function of one number, the residual r = c - a'u of a
row into which label and weight have been folded (`solvers.refit.newton`):

    value                l(r)   = max(0, r)^2 / 2
    slope                l'(r)  = max(0, r)
    curvature            l''(r) = 1 where r > 0, 0 elsewhere; a row is *active* where r > 0
    conjugate            l*(a)  = sup_r (a r - l(r)) = a^2 / 2 for a >= 0, infinite below

In *decision form* a row has a decision value f, a label y in {-1, 1}, a weight s and a margin m, which is 1
unless the problem has another loss (`core.problem.LOSSES`); its residual is m - y f:

    value                s l(m - y f)
    derivative           -s y l'(m - y f)
    second derivative    s l''(m - y f)
    shifted response     z = f + y l'(m - y f): m y where the row is active, f elsewhere

No row's curvature exceeds CURVATURE = 1, so s/2 (z - f)^2 lies above the value, and touches it where z was
taken: the paper's surrogate. The two forms agree because l is homogeneous of degree two: with c = m sqrt(s/n)
and a = sqrt(s/n) y x, the panel's l(c - a'u) is s/n l(m - y f), a row's share of the mean.

Functions of numbers are included in compiled callers. Each has a version for arrays beside it, in the plural;
expressions that serve both are written once. `xp` is a library that follows the array API standard, for rows
that are not NumPy arrays.
"""

from typing import Any

import numpy as np

from kmargin.core.arrays import Vector

# The curvature of an active row.
CURVATURE = 1.0

# The mean loss where every decision value is 0.
AT_ZERO = 0.5


# Panel form.


def is_active(residual: Any) -> Any:
    """Whether value, slope and curvature of a row are not 0. Of a number or of an array."""
    return residual > 0.0


def slope(residual: float) -> float:
    return max(residual, 0.0)


def slopes(residual: Any, xp: Any = None) -> Any:
    if xp is None:
        return np.maximum(residual, 0.0)
    return xp.where(is_active(residual), residual, xp.zeros_like(residual))


def twice_value(residual: float) -> float:
    """Twice the value; loops add these up, and halve the sum."""
    short = max(residual, 0.0)
    return short * short


def values(residual: Vector) -> Vector:
    short = slopes(residual)
    return 0.5 * (short * short)


def total_value(residual: Any, weights: Any = None, xp: Any = None) -> float:
    """The sum of the values, weighted if that is wanted."""
    short = slopes(residual, xp)
    return 0.5 * float((short if weights is None else weights * short) @ short)


def curvature(residual: float) -> float:
    return CURVATURE if residual > 0.0 else 0.0


def curvatures(residual: Vector) -> Vector:
    return np.where(is_active(residual), CURVATURE, 0.0)


def conjugate(a: float) -> float:
    return 0.5 * a * a if a >= 0.0 else np.inf


def conjugates(a: Vector) -> Vector:
    return np.where(a >= 0.0, 0.5 * a * a, np.inf)


# Decision form.


def residual_of(decision: Any, y: Any, margin: Any = 1.0) -> Any:
    """Of a number or of an array."""
    return margin - y * decision


def mean_loss(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """1/n sum_i s_i l(margin_i - y_i f_i)."""
    return float(weights @ values(residual_of(decision, y, margin))) / len(y)


def derivatives(decision: Any, y: Any, weights: Any, xp: Any = None, margin: Any = 1.0) -> Any:
    return -weights * y * slopes(residual_of(decision, y, margin), xp)


def gradient(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> Vector:
    """The derivative of :func:`mean_loss` with respect to each decision value."""
    return derivatives(decision, y, weights, margin=margin) / len(y)


def shifted_response(decision: Any, y: Any, margin: Any = 1.0, xp: Any = np) -> Any:
    """The response z of the quadratic majoriser 1/(2n) sum_i s_i (z_i - f_i)^2.

    A sample beyond its margin stays where it is (z = f); any other is pulled to its margin (z = margin y).
    The majoriser touches the loss at the given decision values.
    """
    return xp.where(y * decision >= margin, decision, margin * y)


def mean_majorizer(decision: Vector, anchor: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """That majoriser, which touches the mean loss at the anchor's decision values."""
    gap = shifted_response(anchor, y, margin) - decision
    return CURVATURE / len(y) / 2 * float(weights @ gap**2)


# Where all rows have the same decision value.


def best_constant(mean_label: float) -> float:
    """The one of least mean loss.

    No mean of labels lies beyond a margin but by rounding, so the loss is a parabola around it.
    """
    return min(max(mean_label, -1.0), 1.0)


def loss_of_best_constant(mean_label: float) -> float:
    """The weighted mean of (1 - y m)^2 / 2 is (1 - m^2) / 2."""
    mean_label = best_constant(mean_label)
    return 0.5 * (1.0 - mean_label) * (1.0 + mean_label)


# Functions of single numbers, which compiled loops include.
INLINED = (is_active, slope, twice_value, curvature, conjugate, residual_of)
