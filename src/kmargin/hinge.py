"""The squared hinge, pointwise and summed.

For a decision value f, a label y in {-1, 1} and a weight s the loss of one sample is
``s / 2 * max(0, 1 - y f)^2``. Weights sum to n, and every sum is divided by n. The functions take
decision values, not X and beta: what a machine is made of is no business of its loss.
"""

import numpy as np

from kmargin.types import Vector


def violations(decision: Vector, y: Vector) -> Vector:
    """How far each sample falls short of the margin: max(0, 1 - y f)."""
    return np.maximum(0.0, 1.0 - y * decision)


def loss(decision: Vector, y: Vector, weights: Vector) -> float:
    """The mean loss: 1/(2n) sum_i s_i max(0, 1 - y_i f_i)^2."""
    shortfall = violations(decision, y)
    return float(weights @ (shortfall * shortfall)) / (2 * len(y))


def gradient(decision: Vector, y: Vector, weights: Vector) -> Vector:
    """The derivative of :func:`loss` with respect to each decision value."""
    return -weights * y * violations(decision, y) / len(y)


def shifted_response(decision: Vector, y: Vector) -> Vector:
    """The response z of the quadratic majoriser 1/(2n) sum_i s_i (z_i - f_i)^2.

    A sample beyond its margin is content where it is (z = f); any other is pulled to its margin
    (z = y). The majoriser touches the loss at the decision values given.
    """
    return np.where(y * decision >= 1.0, decision, y)
