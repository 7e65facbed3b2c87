"""Paths of several machines that share one set of features: the paper's Algorithm 3 for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.annealed import best_end, projected_solution
from kmargin.solvers.annealing_units import change_designs, in_common_units
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.measures import Measured
from kmargin.solvers.result import OuterRecord, Solution, Status
from kmargin.solvers.start import HOPELESS, bare_solution, normal_start, univariate_start
from kmargin.types import Indices, Vector
from kmargin.units import Units


class Annealer(Protocol):
    """What a path asks of its solver."""

    start: str
    ending: str

    def anneal(self, problem: JointProblem, beta: Vector) -> tuple[Vector, Status, tuple[OuterRecord, ...]]:
        """Algorithm 3 up to its last line, the projection onto S_k."""


def iter_joint_path(
    solver: Annealer, problems: Sequence[Problem], ks: Sequence[int], units: Units, rng: np.random.Generator
) -> Iterator[tuple[Solution, ...]]:
    """Solve for each k in turn, starting each from the previous solution.

    Columns of no unit are left out from the start: what is never in has no part in the annealing either.
    """
    n_features, columns = problems[0].design.n_features, np.sort(units.columns)
    if len(columns) < n_features:
        problems = change_designs(problems, lambda design: design.take(columns))
        units = _renumber(units, columns)
    for solutions in _iter_path(solver, problems, ks, units, rng):
        yield tuple(replace(s, support=columns[s.support], n_features=n_features) for s in solutions)


def _iter_path(
    solver: Annealer, problems: Sequence[Problem], ks: Sequence[int], units: Units, rng: np.random.Generator
) -> Iterator[tuple[Solution, ...]]:
    bare = tuple(bare_solution(problem, Status.CONVERGED) for problem in problems)
    if any(problem.lam > HOPELESS for problem in problems):
        yield from (bare for _ in ks)
        return
    measured = [Measured(problem) for problem in problems]
    unit, scaled = in_common_units(problems, measured)
    joint = JointProblem.of(scaled, units, units.n_units)
    beta = np.concatenate(
        [univariate_start(p) if solver.start == "univariate" else normal_start(p, rng) for p in scaled]
    )
    for k in ks:
        at_k = joint.with_k(k)
        found, status, trace = solver.anneal(at_k, beta)
        beta = at_k.project(found)
        parts = zip(problems, scaled, joint.parts(found), joint.parts(beta), strict=True)
        solutions = [projected_solution(p, own, unit, at, new, status, trace) for p, own, at, new in parts]
        if solver.ending == "best":
            support, signs = _common_support(at_k, beta), units.signs if units.signs.any() else None
            ends = zip(problems, solutions, bare, measured, strict=True)
            solutions = [best_end(*end, support, signs) for end in ends]
        yield tuple(solutions)


def _common_support(problem: JointProblem, projected: Vector) -> Indices:
    """The columns of all units that a projection has kept, whatever single coefficients are 0."""
    kept = problem.sparse.kept(problem.coefficients(projected), problem.k)
    return np.flatnonzero(kept[problem.sparse.unit_of])


def _renumber(units: Units, columns: Indices) -> Units:
    """The same units where only these columns are left."""
    return replace(units, columns=np.searchsorted(columns, units.columns), signs=units.signs[columns])
