"""One machine on one set of samples: its problem, and the solutions for every C and k."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.fitting.precision import in_single_precision, never_worse
from kmargin.problem import Problem
from kmargin.samples.protocol import Designs, Samples
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver

Grid = list[list[Solution]]  # [C][k]


class Task(NamedTuple):
    """One machine on one set of samples."""

    designs: Designs
    machine: Any  # as the designs take it


def make_tasks(designs: Designs, samples: Samples, multi_class: str) -> Iterator[Task]:
    for machine in samples.machines(multi_class):
        yield Task(designs, machine)


def make_problem(task: Task, Cs: Sequence[float]) -> tuple[Problem, list[float]]:
    """A machine's problem under the first of the ridges, and all of these."""
    return task.designs.problem(task.machine, Cs)


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> Grid:
    """One machine's solutions."""
    designs = task.designs
    problem, lams = make_problem(task, Cs)
    solutions = []
    for number, solution in enumerate(solver.iter_grid(problem, lams, ks, rng)):
        restored = designs.restore(solution)
        if designs.dtype == np.float32 and problem.at_hand is not None:
            at_lam = replace(problem.at_hand, lam=lams[number // len(ks)])
            restored = in_single_precision(restored, designs, at_lam)
        solutions.append(restored)
        if on_solution is not None:
            on_solution()
    grid = [solutions[start : start + len(ks)] for start in range(0, len(solutions), len(ks))]
    return [never_worse(row) for row in grid] if solver.is_monotone else grid


def make_rng(seed: int, index: int) -> np.random.Generator:
    """A task's random numbers: by its number, not by who solves it."""
    return np.random.default_rng([seed, index])
