"""How an annealing of one machine ends: what becomes of the projection of its last iterate."""

from dataclasses import replace

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.measures import Measured
from kmargin.solvers.refit import refit
from kmargin.solvers.refit_signs import refit_with_signs
from kmargin.solvers.result import Ending, OuterRecord, Solution, Status
from kmargin.types import Indices, Vector


def projected_solution(
    problem: Problem,
    scaled: Problem,
    unit: float | Vector,
    found: Vector,
    beta: Vector,
    status: Status,
    trace: tuple[OuterRecord, ...],
) -> Solution:
    """The projection `beta` of the last iterate `found`, both in `unit`, in the units of the problem."""
    original = beta.copy()
    problem.coefficients(original)[:] /= unit
    return Solution.from_beta(
        original,
        problem.design.n_features,
        objective=problem.loss(original),
        projection_cost=scaled.loss(beta) - scaled.loss(found),
        status=status,
        n_iter=sum(record.n_inner for record in trace),
        trace=trace,
        ending=Ending.PROJECTION,
    )


def best_end(
    problem: Problem,
    projected: Solution,
    bare: Solution,
    measured: Measured,
    support: Indices | None = None,
    signs: Vector | None = None,
) -> Solution:
    """The best of a projection, the minimum on its support, and the intercept alone.

    The intercept is the best unless it is worse by more than rounding may take back. Where machines share a
    `support`, the minimum is that on all of it. `signs`, one for each column of the problem, are those that
    coefficients must have.
    """
    support = projected.support if support is None else support
    coef, intercept = projected.dense_coef()[support], projected.intercept
    if not np.isfinite(projected.objective):
        coef, intercept = np.zeros(len(support)), 0.0
    if signs is None:
        coef, intercept, objective, _ = refit(problem, support, coef, intercept, measured)
    else:
        coef, intercept, objective = refit_with_signs(
            problem, support, signs[support], coef, intercept, measured
        )
    # what each is worth, whatever rounding does to it
    refitted = objective + measured.doubt(support, np.append(coef, intercept), objective)
    as_it_is = projected.objective + measured.doubt(
        projected.support, np.append(projected.coef, projected.intercept), projected.objective
    )
    if refitted <= bare.objective and not refitted >= as_it_is:
        used = np.flatnonzero(coef)
        return replace(
            projected,
            support=support[used],
            coef=coef[used],
            intercept=intercept,
            objective=objective,
            ending=Ending.REFIT,
        )
    if not as_it_is <= bare.objective:
        return replace(
            projected,
            support=bare.support,
            coef=bare.coef,
            intercept=bare.intercept,
            objective=bare.objective,
            ending=Ending.INTERCEPT,
        )
    return projected
