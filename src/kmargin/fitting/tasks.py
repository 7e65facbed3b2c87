"""Machines on one set of samples, each by itself or sharing what k counts: solutions for every C and k."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kmargin.fitting.precision import in_single_precision, never_worse, worth_its_digits
from kmargin.problem import Problem
from kmargin.samples.protocol import Designs, Samples
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.units import Units

Grid = list[list[Solution]]  # [C][k]


class Sharing(NamedTuple):
    """What k counts, and whether all machines have it in common."""

    units: Units
    shared: bool

    def n_tasks(self, n_machines: int) -> int:
        return 1 if self.shared else n_machines


class Task(NamedTuple):
    """Machines on one set of samples that share what k counts."""

    designs: Designs
    machines: tuple[Any, ...]  # as the designs take them
    units: Units | None = None  # None for single columns of one machine


def make_tasks(
    designs: Designs, samples: Samples, multi_class: str, sharing: Sharing | None = None
) -> Iterator[Task]:
    """One for all machines if they share what k counts, else one for each."""
    machines = samples.machines(multi_class)
    if sharing is None:
        yield from (Task(designs, (machine,)) for machine in machines)
    elif sharing.shared:
        yield Task(designs, tuple(machines), sharing.units)
    else:
        yield from (Task(designs, (machine,), sharing.units) for machine in machines)


def make_problems(task: Task, Cs: Sequence[float]) -> tuple[list[Problem], list[list[float]]]:
    """The machines' problems under the first of the ridges; and for each C the ridges of all."""
    pairs = [task.designs.problem(machine, Cs) for machine in task.machines]
    return [problem for problem, _ in pairs], [
        list(row) for row in zip(*(lams for _, lams in pairs), strict=True)
    ]


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> list[Grid]:
    """The solutions of each machine."""
    problems, lams = make_problems(task, Cs)
    rows: list[list[tuple[Solution, ...]]] = [[] for _ in Cs]
    at_lams: list[Problem] = []
    for number, solutions in enumerate(_iter_solutions(task, problems, lams, ks, solver, rng)):
        c, at = divmod(number, len(ks))
        if at == 0:
            at_lams = [problem.with_ridge(lam) for problem, lam in zip(problems, lams[c], strict=True)]
        rows[c].append(tuple(_restored(task, p, s) for p, s in zip(at_lams, solutions, strict=True)))
        if on_solution is not None:
            on_solution()
    rows = [never_worse(row) for row in rows] if solver.is_monotone else rows
    return [[[solutions[m] for solutions in row] for row in rows] for m in range(len(problems))]


def _iter_solutions(
    task: Task,
    problems: list[Problem],
    lams: list[list[float]],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
) -> Iterator[tuple[Solution, ...]]:
    if task.units is not None:
        return solver.iter_joint_grid(problems, lams, ks, task.units, rng)
    return ((solution,) for solution in solver.iter_grid(problems[0], [lam for (lam,) in lams], ks, rng))


def _restored(task: Task, problem: Problem, solution: Solution) -> Solution:
    """A solution for the data as they were given, in their precision."""
    restored = worth_its_digits(task.designs.restore(solution), task.designs, problem)
    if task.designs.dtype == np.float32 and problem.at_hand is not None:
        has_signs = task.units is not None and bool(task.units.signs.any())
        return in_single_precision(restored, task.designs, problem.at_hand, has_signs)
    return restored


def make_rng(seed: int, index: int) -> np.random.Generator:
    """A task's random numbers: by its number, not by who solves it."""
    return np.random.default_rng([seed, index])
