"""Where a solver starts when it has no neighbour to start from."""

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.problem import Problem
from kmargin.solvers.result import Ending, Solution, Status
from kmargin.types import Vector

# Beside a ridge this strong no coefficient can move the objective by a digit: the intercept is all there is.
HOPELESS = 1e100


def univariate_start(problem: Problem) -> Vector:
    """Each feature's own least-squares slope, and the mean label as intercept (eq. 6 of the paper).

    A constant feature explains nothing and gets 0. What counts as constant is a spread within the
    rounding error of the feature's mean, so that an offset like 0.1 cannot pass for variation.
    """
    design = problem.design
    mean, variance, covariance = problem.moments()
    varies = variance > (design.n_samples * np.finfo(np.float64).eps * mean) ** 2
    beta = np.zeros(design.n_parameters)
    np.divide(covariance, variance, out=beta[: design.n_features], where=varies)
    beta[design.n_features :] = problem.mean_label()
    return beta


def intercept_only(problem: Problem) -> Vector:
    """The minimum over S_0: no coefficients, the best constant as intercept."""
    beta = np.zeros(problem.design.n_parameters)
    beta[problem.design.n_features :] = squared_hinge.best_constant(problem.mean_label())
    return beta


def intercept_loss(problem: Problem) -> float:
    """The objective there."""
    if not problem.design.fit_intercept:
        return squared_hinge.AT_ZERO
    return squared_hinge.loss_of_best_constant(problem.mean_label())


def bare_solution(problem: Problem, status: Status) -> Solution:
    """The intercept alone."""
    beta = intercept_only(problem)
    return Solution.from_beta(
        beta,
        problem.design.n_features,
        objective=intercept_loss(problem),
        projection_cost=0.0,
        status=status,
        n_iter=0,
        ending=Ending.INTERCEPT,
    )


def normal_start(problem: Problem, rng: np.random.Generator) -> Vector:
    """Independent standard normal parameters, as in the paper's study of initial conditions."""
    return rng.standard_normal(problem.design.n_parameters)
