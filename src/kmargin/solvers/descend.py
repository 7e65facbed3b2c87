"""Minimise f_rho for one rho: the readable loop."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from kmargin.solvers.momentum import Momentum
from kmargin.types import Vector

Step = Callable[[Vector, Vector, float], Vector]


class Penalised(Protocol):
    """One machine or several, as the loop sees them."""

    def objective(self, beta: Vector, rho: float) -> float:
        """f_rho."""

    def gradient(self, beta: Vector, rho: float) -> Vector:
        """The gradient of f_rho."""


class Descent(NamedTuple):
    """Where the inner loop ended."""

    beta: Vector
    n_inner: int
    objective: float
    gradient_sq: float


def descend(
    problem: Penalised, step: Step, beta: Vector, rho: float, *, gtol: float, max_inner: int, delay: int
) -> Descent:
    """Take steps, one at least, until the squared norm of the gradient of f_rho is below `gtol`."""
    momentum = Momentum(beta, delay)
    last_objective = np.inf
    n_inner = 0
    while True:
        objective = problem.objective(beta, rho)
        gradient = problem.gradient(beta, rho)
        gradient_sq = float(gradient @ gradient)
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return Descent(beta, n_inner, objective, gradient_sq)
        if objective > last_objective:
            momentum.restart()
        last_objective = objective
        beta = momentum.extrapolate(step(beta, gradient, rho))
        n_inner += 1
