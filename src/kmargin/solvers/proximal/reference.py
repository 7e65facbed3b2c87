"""Algorithms 1, 2 and 3 of the paper, line by line; comments give the paper's line numbers.

Algorithms 1 and 2 (MM and SD) minimise f_rho (loss, ridge and the squared distance to the sparse set S_k
times rho, see `penalised`). Algorithm 3 repeats them for growing rho. The loops in `compiled` take the same
steps faster. Unlike in the paper, there may be sample weights, a ridge, and M > 1 binary problems.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Matrix
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.solution import OuterRecord, Status, StepRecord

# The constant r in the factor (j - 1)/(j + r - 1) of Nesterov's momentum at step j; 3 is the paper's choice.
FRICTION = 3

# A step maps the problem, beta, the gradient of the penalised objective at beta, and rho to the next beta.
Step = Callable[[PenalisedProblem, Matrix, Matrix, float], Matrix]


class Descent(NamedTuple):
    """Result of the inner loop for one rho: beta, penalised objective f_rho(beta), squared gradient norm."""

    beta: Matrix
    n_inner: int  # the number of steps that the inner loop took
    objective: float
    gradient_sq: float
    steps: tuple[StepRecord, ...] = ()


# The inner loop maps the problem, a first beta, rho, and a bound on the squared gradient norm to its result.
Descend = Callable[[PenalisedProblem, Matrix, float, float], Descent]


class MMStep:
    """A step of Algorithm 1 (MM): minimise the surrogate, a quadratic majoriser of f_rho, by an SVD of X.

    The paper's surrogate is 1/(2n) ||z - X beta||^2 + b^2/2 ||beta - p_m||^2 with b^2 = rho/(p-k+1). z has
    decision values for rows beyond their margin and labels for others, p_m is the last beta projected onto
    S_k. A ridge lam replaces b^2 by d^2 = b^2 + lam and p_m by (b^2 p_m + lam (0, intercept)) / d^2. The SVD
    U diag(s) V' is that of [X 1] with row i multiplied by the square root of its sample weight.
    """

    def __init__(self, problem: PenalisedProblem) -> None:
        self.svds = [one.design.thin_svd(one.weights) for one in problem.in_memory]

    def __call__(self, problem: PenalisedProblem, beta: Matrix, gradient: Matrix, rho: float) -> Matrix:
        b_sq = problem.penalty_weight(rho)  # b^2, the weight of the distance penalty (Algorithm 1, line 1)
        # Lines 4 and 5 of Algorithm 1: the new beta is first set to p_m, the projection of beta onto S_k.
        new, no_coefficients = problem.project(beta), problem.ridge_center(beta)
        for m, (one, (U, s, V)) in enumerate(zip(problem.in_memory, self.svds, strict=True)):
            a_sq, d_sq = 1 / one.design.n_samples, b_sq + one.lam  # a^2 = 1/n (Algorithm 1, line 1)
            z = squared_hinge.shifted_response(one.design.decision(beta[m]), one.y, one.targets)
            if d_sq > 0:
                new[m] = (b_sq * new[m] + one.lam * no_coefficients[m]) / d_sq
            # Lines 6 to 9 of Algorithm 1, a loop over the singular values s, here for all of them at once.
            uz, vp = U.T @ (np.sqrt(one.weights) * z), V.T @ new[m]
            c1, c2 = a_sq * s / (a_sq * s**2 + d_sq), a_sq * s**2 / (a_sq * s**2 + d_sq)
            new[m] += V @ (c1 * uz - c2 * vp)
        return new


def sd_step(problem: PenalisedProblem, beta: Matrix, gradient: Matrix, rho: float) -> Matrix:
    """A step of Algorithm 2 (SD): minimise the surrogate (majoriser of f_rho) along the negative gradient."""
    # Line 6 of Algorithm 2: the length t of the step minimises the surrogate along the gradient g. There its
    # second derivative is ||X g||^2 / n + rho/(p-k+1) ||g||^2 in the paper; ours adds weights and the ridge.
    curvature = problem.curvature(gradient, rho)
    t = float(np.vdot(gradient, gradient)) / curvature if curvature > 0 else 0.0
    return beta - t * gradient  # line 7 of Algorithm 2: a step of length t


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
    """Minimise f_rho (loss, ridge, distance penalty) for one rho after another: Algorithm 3 except line 19.

    Line 19 is the final projection onto S_k. Returns the last iterate, why the loop over rho stopped, and one
    record for each rho used.
    """
    trace: list[OuterRecord] = []
    d = problem.squared_distance(beta) / problem.normalizer  # line 3 of Algorithm 3: d at the start
    for rho in rhos:  # the outer loop: lines 4 and 16 of Algorithm 3; `descend` is the inner one, lines 5-11
        beta, n_inner, objective, gradient_sq, steps = descend(problem, beta, rho, gtol)
        distance_sq = problem.squared_distance(beta)
        trace.append(OuterRecord(rho, n_inner, objective, gradient_sq, distance_sq, steps))
        previous, d = d, distance_sq / problem.normalizer  # line 12 of Algorithm 3: d for this rho
        if d <= dtol:  # line 13 of Algorithm 3, first part: beta is close enough to S_k
            return beta, Status.CONVERGED, tuple(trace)
        if abs(d - previous) < rtol * (1 + previous):  # line 13 of Algorithm 3, second part: d hardly changes
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
    """Minimise f_rho (loss, ridge, distance penalty) for one rho, by at least one `step`, with momentum."""
    momentum, steps = Momentum(beta, delay), list[StepRecord]()
    last_objective, last_beta, n_inner = np.inf, beta, 0
    while True:
        objective, gradient = problem.objective(beta, rho), problem.gradient(beta, rho)
        gradient_sq = float(np.vdot(gradient, gradient))
        rose = objective > last_objective
        if record_steps:
            surrogate, distance_sq = problem.surrogate(beta, last_beta, rho), problem.squared_distance(beta)
            steps.append(StepRecord(n_inner, objective, surrogate, gradient_sq, distance_sq, rose))
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:  # lines 5 and 7 of Algorithm 3: end
            return Descent(beta, n_inner, objective, gradient_sq, tuple(steps))
        if rose:
            momentum.restart()
        last_objective, last_beta = objective, beta
        beta = momentum.extrapolate(step(problem, beta, gradient, rho))  # line 6 of Algorithm 3: a step
        n_inner += 1


class Momentum:
    """Nesterov acceleration of MM and SD, as at the end of the paper's Section 4.

    The first `delay` updates (results of steps) are not extrapolated: beta should first come near a minimum.
    """

    def __init__(self, start: Matrix, delay: int) -> None:
        self.previous = start  # the result of the previous step, before it was extrapolated
        self.delay = delay
        self.n_updates = 0
        self.j = 1  # 1 plus the number of extrapolations since the start or the last restart

    def extrapolate(self, update: Matrix) -> Matrix:
        """Return `update`, the result of a step, plus a multiple of its change from the previous update."""
        self.n_updates += 1
        extrapolated = update
        if self.n_updates > self.delay:
            extrapolated = update + (self.j - 1) / (self.j + FRICTION - 1) * (update - self.previous)
            self.j += 1
        self.previous = update
        return extrapolated

    def restart(self) -> None:
        """Set the factor of the momentum back to zero, because the objective has risen."""
        self.j = 1
