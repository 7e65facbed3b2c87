"""What rounding to single precision leaves of solutions."""

from dataclasses import replace

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.problem import ArrayProblem
from kmargin.samples.protocol import Designs
from kmargin.solvers import Solution, Status
from kmargin.solvers.signed import BETTER
from kmargin.solvers.start import bare_solution


def in_single_precision(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """What is left of a solution in float32, with the objective of that; or of the intercept, if better."""
    bare = bare_solution(problem, solution.status)
    rounded, alone = (round_solution(s, designs, problem) for s in (solution, designs.restore(bare)))
    if solution.status is Status.SWAP_OPTIMAL and rounded.objective * BETTER > solution.objective:
        rounded = replace(rounded, status=Status.LIMITED)  # others may suffer less from rounding
    if rounded.objective <= alone.objective:
        return rounded
    return replace(alone, trace=solution.trace, regime=solution.regime)


def round_solution(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """Its numbers in float32, and the objective of these. What is 0 there is no part of the support."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: then the intercept is left
        coef = solution.coef.astype(np.float32).astype(np.float64)
        support, coef = solution.support[coef != 0], coef[coef != 0]
        intercept = float(np.float32(solution.intercept))
        rounded = replace(solution, support=support, coef=coef, intercept=intercept)
        scaled = designs.unrestore(rounded)
        decision = problem.design.product(scaled.support, scaled.coef) + scaled.intercept
        ridge = problem.lam / 2 * float(scaled.coef @ scaled.coef) if len(coef) else 0.0
        loss = squared_hinge.mean_loss(decision, problem.y, problem.weights)
        return replace(rounded, objective=loss + ridge)


def never_worse(descending: list[tuple[Solution, ...]]) -> list[tuple[Solution, ...]]:
    """What was found for less serves for more, where rounding has made that better, all machines together."""
    best = descending[-1]
    for place in range(len(descending) - 2, -1, -1):
        if _total(best) < _total(descending[place]) * BETTER:
            descending[place] = best
        best = descending[place]
    return descending


def _total(solutions: tuple[Solution, ...]) -> float:
    return sum(solution.objective for solution in solutions)
