"""One machine on one set of samples: its problem, and the solutions for every C and k."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kmargin import validate
from kmargin.blocks.design import BlockDesign, BlockProblem
from kmargin.blocks.labelled import BlockSamples
from kmargin.fitting.designs import Designs
from kmargin.fitting.precision import in_single_precision, never_worse
from kmargin.multiclass import Machine, class_pairs, make_machines
from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Vector
from kmargin.validate import Samples
from kmargin.weights import normalize

Grid = list[list[Solution]]  # [C][k]

NO_ROWS: Vector = np.empty(0)


class Task(NamedTuple):
    """One machine on one set of samples."""

    designs: Designs
    machine: Machine
    weights: Vector  # of all the samples


def make_tasks(designs: Designs, samples: Samples | BlockSamples, multi_class: str) -> Iterator[Task]:
    if isinstance(samples, BlockSamples):
        for negative, positive in class_pairs(len(samples.classes), multi_class):
            yield Task(designs, Machine(negative, positive, None, NO_ROWS), NO_ROWS)
        return
    for machine in make_machines(samples.codes, len(samples.classes), multi_class):
        yield Task(designs, machine, samples.weights)


def make_problem(task: Task, Cs: Sequence[float]) -> tuple[Problem, list[float]]:
    """A machine's problem under the first of the ridges, and all of these."""
    designs, machine, weights = task
    design = designs(machine)
    if isinstance(design, BlockDesign):
        lams = [validate.ridge(C, design.total) for C in Cs]
        return BlockProblem(design, lams[0], design.n_features), lams
    weights = weights if machine.rows is None else weights[machine.rows]
    weights, total_weight = normalize(weights)
    lams = [validate.ridge(C, total_weight) for C in Cs]
    return ArrayProblem(design, machine.y, weights, lams[0], design.n_features), lams


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
