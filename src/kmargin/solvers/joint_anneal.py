"""Paths of several machines that share one set of features: the paper's Algorithm 3 for all of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.annealed import best_end, projected_solution
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.measures import ORDER_ONE, Measured, take_measures
from kmargin.solvers.remote import sign
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
    """Solve for each k in turn, each solution being the next one's start.

    Columns of no unit are left out from the start: what is never in has no part in the annealing either.
    """
    n_features, columns = problems[0].design.n_features, np.sort(units.columns)
    if len(columns) < n_features:
        problems = _change_designs(problems, lambda design: design.take(columns))
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
    unit, scaled = _in_common_units(problems, measured)
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


def _in_common_units(
    problems: Sequence[Problem], measured: Sequence[Measured]
) -> tuple[float | Vector, list[Problem]]:
    """By what the entries of X are divided, the same for all machines, and their problems in these units.

    Norms of units are sums over machines, so a column has one unit in all of them: where columns are beyond
    the range of numbers, the largest that a machine asks for.
    """
    unit = float(np.median([problem.design.unit() for problem in problems]))
    unit = 1.0 if ORDER_ONE[0] <= unit <= ORDER_ONE[1] else float(2.0 ** np.round(np.log2(unit)))
    if unit == 1.0 and all(m.measures is None for m in measured):
        return 1.0, list(problems)
    ridges = [min(problem.lam / unit / unit, 1e30) for problem in problems]
    scaled = _change_designs(problems, lambda design: design.in_units_of(unit))
    scaled = [replace(problem, lam=lam) for problem, lam in zip(scaled, ridges, strict=True)]
    measures = [take_measures(problem, sign(problem)) for problem in scaled]
    ones = np.ones(scaled[0].design.n_features)
    columns: Vector = np.max([ones if m is None else m.units for m in measures], axis=0)
    if (columns == 1.0).all():
        return unit, scaled
    return unit * columns, _change_designs(scaled, lambda design: design.in_units_of(columns))


def _change_designs(problems: Sequence[Problem], change: Callable[[Any], Any]) -> list[Problem]:
    """The problems with changed designs; machines that share one share what becomes of it."""
    changed = {id(design): change(design) for design in {id(p.design): p.design for p in problems}.values()}
    return [replace(problem, design=changed[id(problem.design)]) for problem in problems]


def _renumber(units: Units, columns: Indices) -> Units:
    """The same units where only these columns are left."""
    return replace(units, columns=np.searchsorted(columns, units.columns), signs=units.signs[columns])
