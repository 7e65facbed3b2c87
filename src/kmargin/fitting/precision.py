"""What rounding leaves of solutions, above all to single precision."""

from dataclasses import replace

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.problem import ArrayProblem, Problem
from kmargin.samples.protocol import Designs
from kmargin.solvers import Solution, Status
from kmargin.solvers.ending import NEXT_TO_NOTHING, doubt_of, is_affordable, newton_by_least_squares
from kmargin.solvers.signed import BETTER, sign
from kmargin.solvers.start import bare_solution

# A number is rounded by up to half of the last digit of float32, and on average by this share of it, squared.
ROUNDED = (0.5 * float(np.finfo(np.float32).eps)) ** 2 / 3


def worth_its_digits(solution: Solution, designs: Designs, problem: Problem) -> Solution:
    """A solution for the data given, or the intercept: unless that is worse by more than rounding costs."""
    doubt = doubt_of(designs.size_of_terms(solution), solution.objective)
    if doubt <= NEXT_TO_NOTHING:
        return solution
    bare = bare_solution(problem, Status.LIMITED)
    if solution.objective + doubt <= bare.objective:
        return solution
    return replace(designs.restore(bare), trace=solution.trace, regime=solution.regime)


def in_single_precision(
    solution: Solution, designs: Designs, problem: ArrayProblem, keep_signs: bool = False
) -> Solution:
    """What is left of a solution in float32, with the objective of that; or of the intercept, if better.

    Where rounding tells, coefficients that allow for it may be better on the same support; not where signs
    have to stay.
    """
    bare = bare_solution(problem, solution.status)
    rounded, alone = (round_solution(s, designs, problem) for s in (solution, designs.restore(bare)))
    if not rounded.objective * BETTER <= solution.objective:
        if solution.status is Status.SWAP_OPTIMAL:
            rounded = replace(rounded, status=Status.LIMITED)  # others may suffer less from rounding
        if not keep_signs:
            sturdy = round_solution(allow_for_rounding(solution, designs, problem), designs, problem)
            sturdy = replace(sturdy, status=rounded.status)
            rounded = min(rounded, sturdy, key=lambda s: s.objective if np.isfinite(s.objective) else np.inf)
    if rounded.objective <= alone.objective:
        return rounded
    return replace(alone, trace=solution.trace, regime=solution.regime)


def allow_for_rounding(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """The minimum on the same support of the objective that rounded coefficients have on average.

    A coefficient that is rounded by a share of itself moves decision values by that share of its term. That
    costs as much as a ridge in proportion to the squares of its column, and holds back terms that cancel.
    """
    scaled = designs.unrestore(solution)
    signed = sign(problem).at_hand
    if signed is None or not is_affordable(signed.n_samples, len(scaled.support)):
        return solution
    columns = signed.columns(scaled.support)
    with np.errstate(over="ignore"):
        ridge = ROUNDED * columns.squares() + problem.lam
    if not np.all(np.isfinite(ridge)):  # nothing in proportion to such columns is left in float32
        return solution
    ridge[-1] = ROUNDED if problem.design.fit_intercept else 1.0
    u, _, _ = newton_by_least_squares(columns, ridge, np.zeros(len(ridge)))
    return designs.restore(replace(scaled, coef=u[:-1], intercept=float(u[-1])))


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
