"""Minimise f_rho for one rho: the readable loop."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from kmargin.solvers.momentum import Momentum
from kmargin.solvers.result import StepRecord
from kmargin.types import Vector

Step = Callable[[Vector, Vector, float], Vector]


class Penalised(Protocol):
    """One machine or several, as the loop sees them."""

    def objective(self, beta: Vector, rho: float) -> float:
        """f_rho."""

    def gradient(self, beta: Vector, rho: float) -> Vector:
        """The gradient of f_rho."""

    def surrogate(self, beta: Vector, anchor: Vector, rho: float) -> float:
        """g_rho(beta | anchor); asked for only where steps are recorded."""

    def squared_distance(self, beta: Vector) -> float:
        """The squared distance to S_k."""


class Descent(NamedTuple):
    """Where the inner loop ended."""

    beta: Vector
    n_inner: int
    objective: float
    gradient_sq: float
    steps: tuple[StepRecord, ...] = ()


def descend(
    problem: Penalised,
    step: Step,
    beta: Vector,
    rho: float,
    *,
    gtol: float,
    max_inner: int,
    delay: int,
    record_steps: bool = False,
) -> Descent:
    """Take steps, one at least, until the squared norm of the gradient of f_rho is below `gtol`."""
    momentum = Momentum(beta, delay)
    last_objective, last_beta = np.inf, beta
    n_inner = 0
    steps: list[StepRecord] = []
    while True:
        objective = problem.objective(beta, rho)
        gradient = problem.gradient(beta, rho)
        gradient_sq = float(gradient @ gradient)
        rose = objective > last_objective
        if record_steps:
            surrogate = problem.surrogate(beta, last_beta, rho)
            distance_sq = problem.squared_distance(beta)
            steps.append(StepRecord(n_inner, objective, surrogate, gradient_sq, distance_sq, rose))
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return Descent(beta, n_inner, objective, gradient_sq, tuple(steps))
        if rose:
            momentum.restart()
        last_objective, last_beta = objective, beta
        beta = momentum.extrapolate(step(beta, gradient, rho))
        n_inner += 1
