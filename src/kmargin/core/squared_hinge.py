"""The squared hinge: half the square of the amount by which a row falls short of its margin.

No other module writes out the formula of the loss. In *panel form* (`solvers.refit.newton`) the loss of a row
depends only on the residual r = c - a'u, where u are the coefficients, a is the row of X times its label and
the square root of its weight, and c is the margin of the row times the same square root:

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

As l'' is at most CURVATURE = 1, the paper's surrogate s/2 (z - f)^2, with z computed at one f and held fixed,
is nowhere below the value, and equals it at that f. The two forms agree as l is homogeneous of degree two:
with c = m sqrt(s/n) and a = sqrt(s/n) y x, l(c - a'u) is s/n l(m - y f), a row's share of the mean loss.

A function of a single number, such as `slope`, can be called from compiled code; the function with the plural
name, `slopes`, does the same for arrays. If arrays are not NumPy arrays, the argument `xp` is their library,
which has to follow the array API standard.
"""

from typing import Any

import numpy as np

from kmargin.core.arrays import Vector

# The second derivative of the loss of an active row with respect to its residual.
CURVATURE = 1.0

# The mean loss of a model whose decision values are all 0, if all margins are 1.
AT_ZERO = 0.5


# Panel form: loss, slope, curvature and conjugate of a row, as functions of the residual.


def is_active(residual: Any) -> Any:
    """Whether a row with this residual has a positive loss; `residual` is a number or an array."""
    return residual > 0.0


def slope(residual: float) -> float:
    return max(residual, 0.0)


def slopes(residual: Any, xp: Any = None) -> Any:
    """The derivative of the loss of each row with respect to its residual."""
    if xp is None:
        return np.maximum(residual, 0.0)
    return xp.where(is_active(residual), residual, xp.zeros_like(residual))


def twice_value(residual: float) -> float:
    """Twice the loss of a row, so that a loop over rows multiplies by 1/2 only once."""
    short = max(residual, 0.0)
    return short * short


def values(residual: Vector) -> Vector:
    short = slopes(residual)
    return 0.5 * (short * short)


def total_value(residual: Any, weights: Any = None, xp: Any = None) -> float:
    """The sum of the losses of all rows, weighted if there are weights."""
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


# Decision form: residual, loss and derivatives, as functions of decision values, labels, weights and margins.


def residual_of(decision: Any, y: Any, margin: Any = 1.0) -> Any:
    """The residual of a row, margin - label * decision value; numbers or arrays."""
    return margin - y * decision


def mean_loss(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """The mean loss 1/n sum_i s_i l(margin_i - y_i f_i), with weights s and decision values f."""
    return float(weights @ values(residual_of(decision, y, margin))) / len(y)


def derivatives(decision: Any, y: Any, weights: Any, xp: Any = None, margin: Any = 1.0) -> Any:
    """The derivative of each row's weighted loss with respect to its decision value."""
    return -weights * y * slopes(residual_of(decision, y, margin), xp)


def gradient(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> Vector:
    """The derivative of :func:`mean_loss` with respect to each decision value."""
    return derivatives(decision, y, weights, margin=margin) / len(y)


def shifted_response(decision: Any, y: Any, margin: Any = 1.0, xp: Any = np) -> Any:
    """The response z of each row in the majoriser 1/(2n) sum_i s_i (z_i - f_i)^2 of the mean loss.

    f_i is any decision value and s_i the weight of row i. If the row is beyond its margin at `decision`, z_i
    is that decision value, else margin times label. At f = `decision` the majoriser equals the mean loss.
    """
    return xp.where(y * decision >= margin, decision, margin * y)


def mean_majorizer(decision: Vector, anchor: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """The quadratic majoriser of the mean loss that equals the mean loss at the decision values `anchor`."""
    gap = shifted_response(anchor, y, margin) - decision
    return CURVATURE / len(y) / 2 * float(weights @ gap**2)


# The model without features, whose decision value is the same for all rows.


def best_constant(mean_label: float) -> tuple[float, float]:
    """The constant decision value m of least mean loss, and that loss, which is (1 - m^2) / 2.

    For constants in [-1, 1] no row is beyond its margin, so the mean loss is a parabola in the constant. Its
    minimum is at the weighted mean of the labels, which only rounding can put outside [-1, 1].
    """
    constant = min(max(mean_label, -1.0), 1.0)
    return constant, 0.5 * (1.0 - constant) * (1.0 + constant)


# Functions that `core.jit` makes callable from compiled code.
INLINED = (is_active, slope, twice_value, curvature, conjugate, residual_of)
