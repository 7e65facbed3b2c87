"""Models fitted over a grid of C and k, to all samples or to each fold; the same for any number of jobs."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from kmargin.core import squared_hinge, validation
from kmargin.core.labels import class_pairs
from kmargin.core.linalg import one_blas_thread
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.core.units import Units
from kmargin.core.validation import called_for_a_fold, warn_caller
from kmargin.data.samples import Designs, Samples
from kmargin.fitting.path import Models, SparsityPath
from kmargin.fitting.progress import progress_bar
from kmargin.fitting.spec import Blueprint
from kmargin.solvers import Exchange, Solution, Solver, Status
from kmargin.solvers.search.swap_search import BETTER
from kmargin.solvers.solution import SMALL_COST
from kmargin.solvers.solver import bare_solution

BATCH_SHARE = 1 / 4  # a batch of tasks is at most this share of the tasks that are left for each worker

Grid = list[list[tuple[Solution, ...]]]  # [C][k], a solution for each binary classifier


class Procedure(NamedTuple):
    """How solutions are computed."""

    solver: Solver = Exchange()
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0


@dataclass(frozen=True)
class GridFit:
    """Fitted models. A row is a position among the Cs, a column one among the ks."""

    paths: Sequence[SparsityPath]  # one for each C
    designs: Any = None  # None for the models of a fold, which keep none of its rows

    def solutions(self, row: int, column: int) -> tuple[Solution, ...]:
        """The solutions of one model, one for each binary classifier."""
        return self.paths[row].solutions[column]

    def decisions(self, row: int, column: int) -> Any:
        """The decision function of a model; see `SparsityPath.machines`."""
        return self.paths[row].machines(column)


def fit_grid(
    blueprint: Blueprint,
    samples: Samples,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    *,
    chosen: int | None = 0,
    label: str = "path over k",
) -> GridFit:
    """Fit to all samples for every C, ascending, and at each C for every k, descending.

    Warns if the solver has not converged for the last C and the k at `chosen`; None stands for all ks.
    """
    designs, grid = _solve_all(blueprint, samples, Cs, ks, procedure, label)
    paths = [blueprint.path([designs] * len(ks), samples, row, ks) for row in grid]
    _warn(blueprint, samples, grid[-1] if chosen is None else [grid[-1][chosen]], ks[chosen or 0])
    return GridFit(paths, designs)


def refit(
    blueprint: Blueprint,
    samples: Samples,
    Cs: Sequence[float],
    ks: Sequence[int],
    column: int,
    procedure: Procedure,
) -> GridFit:
    """The path over the ks at the last C alone, with the final model at `column`.

    The final model is fitted for its own C and k alone, so that it is the same whether these were chosen
    among others or given. Where it is better than the model of a larger k, it takes the place of that too.
    Warns if the solver has not converged for it.
    """
    designs, grid = _solve_all(blueprint, samples, Cs, ks, procedure, "refit")
    last, of_each_k = grid[-1], [designs] * len(ks)
    if len(Cs) * len(ks) > 1:
        designs, ((final,),) = _solve_all(blueprint, samples, Cs[-1:], [ks[column]], procedure, "refit")
        last[column], of_each_k[column] = final, designs
        for place, k in enumerate(ks):
            if procedure.solver.is_monotone and k > ks[column] and total(final) < total(last[place]) * BETTER:
                last[place], of_each_k[place] = final, designs
    _warn(blueprint, samples, [last[column]], ks[column])
    return GridFit([blueprint.path(of_each_k, samples, last, ks)], designs)


def fit_parts(
    blueprint: Blueprint,
    parts: Iterable[Any],
    n_parts: int,
    n_classes: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str = "cross-validation",
) -> Iterator[GridFit]:
    """Fit to each part of the samples, such as the training rows of each fold.

    The parts are asked for one by one, and neither their rows nor the traces of solvers are kept.
    """
    solver = procedure.solver.in_folds()
    for samples, designs, grid in _solve_parts(
        blueprint, parts, n_parts, n_classes, Cs, ks, procedure._replace(solver=solver), label
    ):
        paths = []
        for row in grid:
            bare = [tuple(replace(solution, trace=()) for solution in model) for model in row]
            paths.append(blueprint.path([designs] * len(ks), samples, bare, ks))
        yield GridFit(paths)


def _solve_all(
    blueprint: Blueprint,
    samples: Samples,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str,
) -> tuple[Designs, Grid]:
    n_classes = len(samples.classes)
    samples, n_jobs = samples.shared(procedure.n_jobs, len(class_pairs(n_classes, blueprint.multi_class)))
    procedure = procedure._replace(n_jobs=n_jobs)
    ((_, designs, grid),) = _solve_parts(blueprint, [samples], 1, n_classes, Cs, ks, procedure, label)
    return designs, grid


def _solve_parts(
    blueprint: Blueprint,
    parts: Iterable[Any],
    n_parts: int,
    n_classes: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str,
) -> Iterator[tuple[Any, Designs, Grid]]:
    """Each part, its designs and its solutions."""
    n_machines = len(class_pairs(n_classes, blueprint.multi_class))
    is_joint = blueprint.shared and n_machines > 1
    n_tasks = 1 if is_joint else n_machines
    under_way: deque[tuple[Any, Designs]] = deque()  # parts handed out, not yet yielded

    def tasks() -> Iterator[Task]:
        for samples in parts:
            designs = blueprint.designs(samples, ks[0])
            under_way.append((samples, designs))
            units = blueprint.problem_units(samples, designs, procedure.solver, is_joint)
            machines = samples.machines(blueprint.multi_class)
            if is_joint:
                yield Task(designs, tuple(machines), units)
            else:
                yield from (Task(designs, (machine,), units) for machine in machines)

    grids = solve_tasks(tasks(), n_tasks * n_parts, Cs, ks, procedure, label)
    for _ in range(n_parts):
        rows_of_each_C = zip(*islice(grids, n_tasks), strict=True)
        grid = [[tuple(chain(*each)) for each in zip(*rows, strict=True)] for rows in rows_of_each_C]
        yield *under_way.popleft(), grid
    next(grids, None)  # lets the progress bar finish


def _warn(blueprint: Blueprint, samples: Samples, models: Models, largest_k: int) -> None:
    """Warn if the allowed signs leave the model without features, and once for each reason to stop early.

    A run that stalled close to S_k is mentioned too, but not for each fold of a cross-validation.
    """
    has_features = largest_k == 0 or any(len(solution.support) for solution in models[0])
    if not has_features and blueprint.units(samples).signs.any():
        warn_caller(
            "No feature lowers the objective with the sign that `signs` allows, so the model is the "
            "intercept alone. Check the signs, or allow either sign for some features."
        )
    solutions = list(chain(*models))
    for status in (Status.STALLED, Status.EXHAUSTED):
        early = [solution for solution in solutions if solution.status is status]
        if not early:
            continue
        message = "" if len(solutions) == 1 else f"{len(early)} of {len(solutions)} solutions: "
        message += status.value
        if all(solution.is_sound for solution in early):
            if called_for_a_fold():
                continue
            message += f" (the final projection onto S_k raised the objective by at most {SMALL_COST:g})"
        warn_caller(message, ConvergenceWarning)


class Task(NamedTuple):
    """A problem to solve: the binary problems that share their units."""

    designs: Designs
    machines: tuple[Any, ...]  # as the designs take them
    units: Units | None = None  # None for the distinct columns of the only binary problem


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> Grid:
    """The solutions for every C and k, for the data as they were given and in their precision."""
    designs, units = task.designs, task.units
    binary, ridges = zip(*(designs.problem(machine, Cs) for machine in task.machines), strict=True)
    lams = [list(row) for row in zip(*ridges, strict=True)]
    if units is None:
        design = binary[0].design
        units = Units.of_columns(design.n_features)
        distinct = design.distinct_columns() if solver.skips_repeats else units.columns
        if len(distinct) < design.n_features:
            units = units.without_copies(np.setdiff1d(units.columns, distinct))
    problem = Problem(binary, units)
    to_round = designs.dtype == np.float32 and isinstance(binary[0], ArrayProblem)
    grid: Grid = [[] for _ in Cs]
    for number, solutions in enumerate(solver.solve_grid(problem, lams, ks, rng)):
        row = number // len(ks)
        model = tuple(map(designs.restore, solutions))
        if to_round:
            problems: Any = problem.with_ridges(lams[row]).binary
            model = tuple(
                in_single_precision(solution, designs, one)
                for solution, one in zip(model, problems, strict=True)
            )
        grid[row].append(model)
        if on_solution is not None:
            on_solution()
    return [never_worse(row) for row in grid] if solver.is_monotone else grid


def in_single_precision(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """The solution in float32, with the objective of the rounded numbers; the intercept alone if that is
    better.
    """
    bare = bare_solution(problem, solution.status)
    rounded, alone = (round_solution(s, designs, problem) for s in (solution, designs.restore(bare)))
    if rounded.objective <= alone.objective:
        is_exact = rounded.objective * BETTER <= solution.objective
        if not is_exact and solution.status is Status.SWAP_OPTIMAL:
            return replace(rounded, status=Status.SETTLED)  # another support may suffer less from rounding
        return rounded
    return replace(alone, trace=solution.trace, regime=solution.regime)


def round_solution(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """Its numbers in float32 and their objective. A coefficient that becomes 0 leaves the support."""
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


def total(model: tuple[Solution, ...]) -> float:
    """The sum of the objectives of the binary problems."""
    return sum(solution.objective for solution in model)


def never_worse(descending: list[tuple[Solution, ...]]) -> list[tuple[Solution, ...]]:
    """Solutions by descending k; that of a smaller k takes the place of one that rounding made worse."""
    totals = [total(model) for model in descending]
    for place in range(len(descending) - 2, -1, -1):
        if totals[place + 1] < totals[place] * BETTER:
            descending[place], totals[place] = descending[place + 1], totals[place + 1]
    return descending


def solve_tasks(
    tasks: Iterable[Task],
    n_tasks: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str = "path over k",
) -> Iterator[Grid]:
    """The solutions of each task for every C and k, in the order of the tasks. `Cs` ascend, `ks` descend.

    A task solves for its values of C one after another: each starts from the supports of the last, and
    the solutions must not depend on how many workers there are. For the same reason BLAS uses one
    thread where there are several tasks: with more, it adds up in another order. The compiled loops
    release the GIL, so threads are the hint to joblib; any other backend that the caller has
    configured is used as well.
    """
    solver, n_jobs, random_state, verbose = procedure
    seed = validation.resolve_seed(random_state)
    n_workers = 1 if n_tasks == 1 else effective_n_jobs(n_jobs)
    # a single task has BLAS to itself, whatever n_jobs is
    threads = nullcontext() if n_tasks == 1 and solver.wants_blas_threads else one_blas_thread
    with progress_bar(label, n_tasks * len(Cs) * len(ks), verbose) as bar, threads:
        if n_workers == 1:
            for index, task in enumerate(tasks):
                yield solve_task(task, Cs, ks, solver, np.random.default_rng([seed, index]), bar.advance)
            return
        tasks = iter(tasks)
        first = next(tasks)
        jobs = (
            delayed(solve_batch)(*batch, Cs, ks, solver, seed)
            for batch in make_batches(chain([first], tasks), n_tasks, n_workers)
        )
        try:
            for grids in make_pool(n_jobs, in_this_process=first.designs.stays_here)(jobs):
                bar.advance(len(grids) * len(Cs) * len(ks))
                yield from grids
        except BaseException:
            first.designs.stop()  # other threads would go on asking
            raise


def make_batches(
    tasks: Iterable[Task], n_tasks: int, n_workers: int
) -> Iterator[tuple[Designs, list[tuple[tuple[Any, ...], Units | None]], int]]:
    """The tasks in order, in batches for one worker: designs, the rest of each task, number of the first.

    The designs are sent once for all tasks of a batch. Batches get shorter: long ones at first, so that
    little time goes into handing them out; at the end single tasks, so that all workers finish together.
    """
    first = 0
    for designs, same in groupby(tasks, key=attrgetter("designs")):
        while batch := list(islice(same, max(1, int(BATCH_SHARE * (n_tasks - first) / n_workers)))):
            yield designs, [task[1:] for task in batch], first
            first += len(batch)


def solve_batch(
    designs: Designs,
    parts: Sequence[tuple[tuple[Any, ...], Units | None]],
    first: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    seed: int,
) -> list[Grid]:
    """Solve the tasks of a batch. Random numbers depend on the number of a task, not on the worker."""
    with one_blas_thread:
        return [
            solve_task(Task(designs, *part), Cs, ks, solver, np.random.default_rng([seed, index]))
            for index, part in enumerate(parts, first)
        ]


def make_pool(n_jobs: int | None, in_this_process: bool = False) -> Parallel:
    """Workers of joblib, which return each batch when it is done.

    The backends "multiprocessing" and "ray" only return everything at the end.
    """
    sharing = {"require": "sharedmem"} if in_this_process else {"prefer": "threads"}
    try:
        return Parallel(n_jobs, **sharing, batch_size=1, return_as="generator")
    except ValueError:
        return Parallel(n_jobs, **sharing, batch_size=1)
