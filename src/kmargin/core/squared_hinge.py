"""The squared hinge: half the square of the amount by which a row falls short of its margin.

No other module writes out the formula of the loss. There are two forms. Let x be one of n rows, with label y
in {-1, 1}, weight s, and margin m, which is 1 unless a problem has another loss (`core.problem.LOSSES`).

In the *panel form* (`solvers.refit.newton`) rows are multiplied by labels and weights: a = sqrt(s/n) y x and
c = sqrt(s/n) m. The loss depends on the residual r = c - a'u, where u is the vector of coefficients:

    value                l(r)   = max(0, r)^2 / 2
    slope                l'(r)  = max(0, r)
    curvature            l''(r) = 1 where r > 0, 0 elsewhere; a row is *active* where r > 0
    conjugate            l*(t)  = sup_r (t r - l(r)) = t^2 / 2 for t >= 0, infinite for t < 0

In the *decision form* the loss is a function of the row's decision value f = x'u; its residual is m - y f:

    value                s l(m - y f)
    derivative           -s y l'(m - y f)
    second derivative    s l''(m - y f)
    shifted response     z = f + y l'(m - y f): m y where the row is active, f elsewhere

The forms agree: l(c - a'u) = s/n l(m - y f), which is the contribution of the row to the mean loss. If z is
computed at one f and then held fixed, the paper's surrogate s/2 (z - f)^2, a function of f, equals the value
at that f and is nowhere below the value, because l'' is at most CURVATURE = 1.

A function of a single number, such as `slope`, can be called from compiled code. The function with the plural
name, such as `slopes`, does the same for arrays. The argument `xp` is the array library of the arguments,
which has to follow the array API standard; None means NumPy.
"""

from typing import Any

import numpy as np

from kmargin.core.arrays import Vector

# The second derivative of the loss of an active row (residual > 0) with respect to the residual.
CURVATURE = 1.0

# The mean loss of a model whose decision values are all 0; the margins of all rows have to be 1.
AT_ZERO = 0.5


# Panel form (see above): the loss of a row, its derivatives and its conjugate as functions of the residual.


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
    """Twice the loss of a row: callers sum over rows and halve the sum, which saves multiplications."""
    short = max(residual, 0.0)
    return short * short


def values(residual: Vector) -> Vector:
    short = slopes(residual)
    return 0.5 * (short * short)


def total_value(residual: Any, weights: Any = None, xp: Any = None) -> float:
    """The sum of the losses of all rows, each multiplied by its weight if `weights` is not None."""
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


# Decision form (see above): residuals, losses and derivatives as functions of the decision values.


def residual_of(decision: Any, y: Any, margin: Any = 1.0) -> Any:
    """The residual margin - label * decision value of a row, or of each row if the arguments are arrays."""
    return margin - y * decision


def mean_loss(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """The mean over rows of weight * max(0, margin - label * decision value)^2 / 2."""
    return float(weights @ values(residual_of(decision, y, margin))) / len(y)


def derivatives(decision: Any, y: Any, weights: Any, xp: Any = None, margin: Any = 1.0) -> Any:
    """The derivative of weight * loss of each row with respect to the decision value of the row."""
    return -weights * y * slopes(residual_of(decision, y, margin), xp)


def gradient(decision: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> Vector:
    """The gradient of :func:`mean_loss` with respect to the vector of decision values."""
    return derivatives(decision, y, weights, margin=margin) / len(y)


def shifted_response(decision: Any, y: Any, margin: Any = 1.0, xp: Any = np) -> Any:
    """Return z, such that 1/(2n) sum_i s_i (z_i - f_i)^2 is nowhere below the mean loss, for any f.

    f are decision values of the n rows, s their weights. At f = `decision` the two are equal. If row i has
    loss 0 there, z_i is decision_i; otherwise z_i is the margin times the label of the row.
    """
    return xp.where(y * decision >= margin, decision, margin * y)


def mean_majorizer(decision: Vector, anchor: Vector, y: Vector, weights: Vector, margin: Any = 1.0) -> float:
    """The value at `decision` of the quadratic majoriser of the mean loss that touches it at `anchor`."""
    gap = shifted_response(anchor, y, margin) - decision
    return CURVATURE / len(y) / 2 * float(weights @ gap**2)


# The model without features: its decision value is the intercept, the same for all rows.


def best_constant(mean_label: float) -> tuple[float, float]:
    """The intercept b of least mean loss for a model without features, and that loss, (1 - b^2) / 2.

    All margins are 1. For b in [-1, 1] no row is beyond its margin, so the mean loss is quadratic in b. Its
    minimum is at the weighted mean of the labels, `mean_label`, which rounding may put outside [-1, 1].
    """
    constant = min(max(mean_label, -1.0), 1.0)
    return constant, 0.5 * (1.0 - constant) * (1.0 + constant)


# The functions of this module that `core.jit` makes callable from functions compiled by numba.
INLINED = (is_active, slope, twice_value, curvature, conjugate, residual_of)
