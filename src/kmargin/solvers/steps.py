"""One step of MM and one of SD, in the words of the paper.

These are the readable twins of the loops in `compiled`. Both lower the same surrogate
:meth:`ArrayProblem.surrogate`: MM jumps to its minimum, SD to its minimum along the gradient.
"""

from typing import Protocol

from kmargin.problem import Problem
from kmargin.types import Vector


class Curved(Protocol):
    """One machine or several, as SD sees them."""

    def curvature(self, direction: Vector, rho: float) -> float:
        """The curvature of the surrogate in a direction."""


class MMStep:
    """Algorithm 1: minimise the surrogate exactly, by the thin SVD of X.

    With centre c (the projection of beta, drawn to 0 by the ridge) and curvature
    d^2 = b^2 + lam the stationary equation ``(a^2 X'SX + d^2 I) beta = a^2 X'Sz + d^2 c`` has the
    solution ``c + a^2 V (a^2 s^2 + d^2)^{-1} (s U'z - s^2 V'c)``.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.factors = problem.factors()

    def __call__(self, beta: Vector, gradient: Vector, rho: float) -> Vector:
        return self.minimum(beta, self.problem.project(beta), self.problem.penalty_weight(rho))

    def minimum(self, beta: Vector, projected: Vector, b_sq: float) -> Vector:
        """The minimum of the surrogate whose distance is that to `projected`, with weight `b_sq`."""
        problem, factors, s = self.problem, self.factors, self.factors.s
        a_sq, lam, center = problem.loss_weight, problem.lam, projected
        if b_sq + lam > 0:
            center = (b_sq * center + lam * problem.ridge_center(beta)) / (b_sq + lam)
        pull = s * factors.pull(beta) - s**2 * factors.coordinates(center)
        return center + factors.combine(a_sq * pull / (a_sq * s**2 + b_sq + lam))


class SDStep:
    """Algorithm 2: the exact minimum of the surrogate along the steepest descent."""

    def __init__(self, problem: Curved) -> None:
        self.problem = problem

    def __call__(self, beta: Vector, gradient: Vector, rho: float) -> Vector:
        slope = float(gradient @ gradient)
        curvature = self.problem.curvature(gradient, rho)
        return beta - slope / curvature * gradient if curvature > 0 else beta
