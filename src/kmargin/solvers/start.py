"""Where a solver starts when it has no neighbour to start from."""

import numpy as np

from kmargin.problem import Problem
from kmargin.types import Vector


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
    """The minimum over S_0: no coefficients, the mean label as intercept.

    No mean of labels lies beyond a margin, so the loss is a parabola around it.
    """
    beta = np.zeros(problem.design.n_parameters)
    beta[problem.design.n_features :] = problem.mean_label()
    return beta


def normal_start(problem: Problem, rng: np.random.Generator) -> Vector:
    """Independent standard normal parameters, as in the paper's study of initial conditions."""
    return rng.standard_normal(problem.design.n_parameters)
