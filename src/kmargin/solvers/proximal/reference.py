"""Algorithms 1, 2 and 3 of the paper, line by line; comments give the paper's line numbers.

The loops in `compiled` take the same steps, as tests check, and are faster; `MM(trace="steps")` runs the code
of this file. Unlike in the paper, there may be M > 1 binary problems, with one row of beta each, and each may
have a ridge lam. With M = 1 and lam = 0 every line is the paper's.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Matrix
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.solution import OuterRecord, Status, StepRecord

# The constant r in the momentum factor (j - 1)/(j + r - 1); the paper prefers this value.
FRICTION = 3

# A function from the problem, beta, the gradient of f_rho at beta, and rho to the next beta.
Step = Callable[[PenalisedProblem, Matrix, Matrix, float], Matrix]


class Descent(NamedTuple):
    """The last iterate of the inner loop at one rho, its objective f_rho and squared gradient norm."""

    beta: Matrix
    n_inner: int  # the number of steps
    objective: float
    gradient_sq: float
    steps: tuple[StepRecord, ...] = ()


# The inner loop: a function of the problem, the start, rho and the tolerance of the squared gradient norm.
Descend = Callable[[PenalisedProblem, Matrix, float, float], Descent]


class MMStep:
    """A step of Algorithm 1 (MM): minimise the surrogate exactly, by the thin SVD of X.

    With a ridge, the penalty has weight d^2 = b^2 + lam instead of b^2, and its centre is
    (b^2 p_m + lam (0, intercept)) / d^2 instead of the projection p_m. U diag(s) V' is the SVD of X after
    row i is multiplied by the square root of its sample weight. Line 3 of Algorithm 1 computes z.
    """

    def __init__(self, problem: PenalisedProblem) -> None:
        self.svds = [one.design.thin_svd(one.weights) for one in problem.in_memory]

    def __call__(self, problem: PenalisedProblem, beta: Matrix, gradient: Matrix, rho: float) -> Matrix:
        b_sq = problem.penalty_weight(rho)  # b^2 in line 1 of Algorithm 1
        new, no_coefficients = problem.project(beta), problem.ridge_center(beta)  # Alg. 1, lines 4-5
        for m, (one, (U, s, V)) in enumerate(zip(problem.in_memory, self.svds, strict=True)):
            a_sq, d_sq = 1 / one.design.n_samples, b_sq + one.lam  # Algorithm 1, line 1
            z = squared_hinge.shifted_response(one.design.decision(beta[m]), one.y, one.targets)
            if d_sq > 0:
                new[m] = (b_sq * new[m] + one.lam * no_coefficients[m]) / d_sq
            uz, vp = U.T @ (np.sqrt(one.weights) * z), V.T @ new[m]  # Algorithm 1, lines 6-7
            c1, c2 = a_sq * s / (a_sq * s**2 + d_sq), a_sq * s**2 / (a_sq * s**2 + d_sq)  # Alg. 1, line 8
            new[m] += V @ (c1 * uz - c2 * vp)  # Algorithm 1, line 9
        return new


def sd_step(problem: PenalisedProblem, beta: Matrix, gradient: Matrix, rho: float) -> Matrix:
    """A step of Algorithm 2 (SD): minimise the surrogate along the negative gradient.

    `gradient`, lines 3 to 5 of Algorithm 2, comes from :meth:`PenalisedProblem.gradient`.
    """
    curvature = problem.curvature(gradient, rho)  # a^2 ||X g||^2 + b^2 ||g||^2, where g is the gradient
    t = float(np.vdot(gradient, gradient)) / curvature if curvature > 0 else 0.0  # Algorithm 2, line 6
    return beta - t * gradient  # Algorithm 2, line 7


def anneal(
    problem: PenalisedProblem,
    descend: Descend,
    beta: Matrix,
    rhos: Iterable[float],
    *,
    gtol: float,
    dtol: float,
    rtol: float,
) -> tuple[Matrix, Status, tuple[OuterRecord, ...]]:
    """Run Algorithm 3, the proximal distance iteration, except line 19, the final projection onto S_k.

    Returns the last iterate, why the iteration stopped, and one record for each value of rho.
    """
    trace: list[OuterRecord] = []
    d = problem.squared_distance(beta) / problem.normalizer  # Algorithm 3, line 3
    for rho in rhos:  # Algorithm 3, lines 4 and 16
        beta, n_inner, objective, gradient_sq, steps = descend(problem, beta, rho, gtol)  # Alg. 3, lines 5-11
        distance_sq = problem.squared_distance(beta)
        trace.append(OuterRecord(rho, n_inner, objective, gradient_sq, distance_sq, steps))
        previous, d = d, distance_sq / problem.normalizer  # Algorithm 3, line 12
        if d <= dtol:  # Algorithm 3, line 13
            return beta, Status.CONVERGED, tuple(trace)
        if abs(d - previous) < rtol * (1 + previous):  # Algorithm 3, line 13
            return beta, Status.STALLED, tuple(trace)
    return beta, Status.EXHAUSTED, tuple(trace)


def descend(
    problem: PenalisedProblem,
    step: Step,
    beta: Matrix,
    rho: float,
    *,
    gtol: float,
    max_inner: int,
    delay: int,
    record_steps: bool = False,
) -> Descent:
    """Minimise f_rho from beta: lines 5 to 11 of Algorithm 3, with momentum and at least one step."""
    momentum, steps = Momentum(beta, delay), list[StepRecord]()
    last_objective, last_beta, n_inner = np.inf, beta, 0
    while True:
        objective, gradient = problem.objective(beta, rho), problem.gradient(beta, rho)
        gradient_sq = float(np.vdot(gradient, gradient))
        rose = objective > last_objective
        if record_steps:
            surrogate, distance_sq = problem.surrogate(beta, last_beta, rho), problem.squared_distance(beta)
            steps.append(StepRecord(n_inner, objective, surrogate, gradient_sq, distance_sq, rose))
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:  # Algorithm 3, line 7
            return Descent(beta, n_inner, objective, gradient_sq, tuple(steps))
        if rose:
            momentum.restart()
        last_objective, last_beta = objective, beta
        beta = momentum.extrapolate(step(problem, beta, gradient, rho))  # Algorithm 3, line 6
        n_inner += 1


class Momentum:
    """Nesterov acceleration, as at the end of the paper's Section 4.

    The first `delay` updates are not extrapolated, so that the iteration reaches a neighbourhood of the
    minimum before it is accelerated.
    """

    def __init__(self, start: Matrix, delay: int) -> None:
        self.previous = start  # the last update, before it was extrapolated
        self.delay = delay
        self.n_updates = 0
        self.j = 1  # counts extrapolated updates; 1 after a restart

    def extrapolate(self, update: Matrix) -> Matrix:
        """Return the update plus a multiple of its difference from the previous update."""
        self.n_updates += 1
        extrapolated = update
        if self.n_updates > self.delay:
            extrapolated = update + (self.j - 1) / (self.j + FRICTION - 1) * (update - self.previous)
            self.j += 1
        self.previous = update
        return extrapolated

    def restart(self) -> None:
        """Reset the momentum to zero; called when the objective has risen."""
        self.j = 1
