"""The minimum on a given support where coefficients must have given signs."""

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.measures import Measured
from kmargin.solvers.refit import refit
from kmargin.types import Flags, Indices, Vector

# A round that lowers the objective by no more than this share has only moved by rounding.
LITTLE = 1e-12


def refit_with_signs(
    problem: Problem,
    support: Indices,
    signs: Vector,
    coef: Vector,
    intercept: float,
    measured: Measured | None = None,
) -> tuple[Vector, float, float]:
    """Minimise loss plus ridge over coefficients of these signs (0 for either), and the intercept.

    Returns coefficients, intercept and objective. Starts from `coef`, of which those of the wrong sign are
    taken for 0. Coefficients that are 0 wait until the objective falls in the direction of their sign; then
    one at a time, the steepest first, is set free, and the minimum over all that are free is gone to. One
    that would change its sign on the way is stopped at 0 and waits again. The objective is convex, so it
    falls on each part of that way, no set of free coefficients comes back, and the last is the minimum.
    """
    wait = _Waiting(problem, support, signs, measured)
    free = (signs == 0) | (coef * signs > 0)
    coef = np.where(free, coef, 0.0)
    coef, intercept, objective, free = wait.settle(coef, intercept, free)
    while True:
        steepest = wait.steepest(coef, intercept, free)
        if steepest is None:
            return coef, intercept, objective
        more = free.copy()
        more[steepest] = True
        new_coef, new_intercept, new_objective, more = wait.settle(coef, intercept, more)
        if not new_objective < objective * (1.0 - LITTLE):
            return coef, intercept, objective
        coef, intercept, objective, free = new_coef, new_intercept, new_objective, more


class _Waiting:
    """A support some of whose coefficients wait at 0."""

    def __init__(self, problem: Problem, support: Indices, signs: Vector, measured: Measured | None) -> None:
        self.problem, self.support, self.signs = problem, support, signs
        self.measured = Measured(problem) if measured is None else measured

    def settle(self, coef: Vector, intercept: float, free: Flags) -> tuple[Vector, float, float, Flags]:
        """The minimum over what is free, or over the part of it that does not change its sign on the way."""
        coef, free = coef.copy(), free.copy()
        while True:
            goal, goal_intercept, objective, _ = refit(
                self.problem, self.support[free], coef[free], intercept, self.measured
            )
            here = coef[free]
            changes = goal * self.signs[free] < 0
            if not changes.any():
                coef[free] = goal
                return coef, goal_intercept, objective, free
            shares = here[changes] / (here[changes] - goal[changes])  # of the way, until each is 0
            share = shares.min()
            coef[free] = here + share * (goal - here)
            intercept += share * (goal_intercept - intercept)
            stopped = np.flatnonzero(free)[changes][shares == share]
            coef[stopped] = 0.0
            free[stopped] = False

    def steepest(self, coef: Vector, intercept: float, free: Flags) -> int | None:
        """Which of those that wait the objective falls fastest with; None if it falls with none."""
        design = self.problem.design
        beta = np.zeros(design.n_parameters)
        beta[self.support] = coef
        beta[design.n_features :] = intercept
        slopes = self.problem.loss_gradient(beta)[self.support] * self.signs
        slopes[free] = 0.0  # those that wait are 0, and so is the slope of their ridge
        best = int(np.argmin(slopes)) if len(slopes) else 0
        return best if len(slopes) and slopes[best] < 0 else None
