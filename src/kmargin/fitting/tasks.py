"""Many problems solved side by side, in batches, with the same result for any number of jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from kmargin.core import squared_hinge
from kmargin.core.linalg import one_blas_thread
from kmargin.core.problem import ArrayProblem, BinaryProblem, Problem
from kmargin.core.units import Units
from kmargin.data.samples import Designs, Samples
from kmargin.fitting.progress import Bar, progress_bar
from kmargin.solvers import Solution, Status
from kmargin.solvers.search.swap_search import BETTER
from kmargin.solvers.solver import Solver, bare_solution


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


def never_worse(descending: list[tuple[Solution, ...]]) -> list[tuple[Solution, ...]]:
    """Solutions by descending k; that of a smaller k takes the place of one that rounding made worse."""

    def total(solutions: tuple[Solution, ...]) -> float:
        return sum(solution.objective for solution in solutions)

    best = descending[-1]
    for place in range(len(descending) - 2, -1, -1):
        if total(best) < total(descending[place]) * BETTER:
            descending[place] = best
        best = descending[place]
    return descending


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


def make_problem(task: Task, Cs: Sequence[float], solver: Solver) -> tuple[Problem, list[list[float]]]:
    """The task's problem, and for each C the ridges of its binary problems."""
    pairs = [task.designs.problem(machine, Cs) for machine in task.machines]
    binary, lams = (
        [problem for problem, _ in pairs],
        [list(row) for row in zip(*(lams for _, lams in pairs), strict=True)],
    )
    units = task.units
    if units is None:
        design = binary[0].design
        units = Units.of_columns(design.n_features)
        distinct = design.distinct_columns() if solver.skips_repeats else units.columns
        if len(distinct) < design.n_features:
            units = units.without_copies(np.setdiff1d(units.columns, distinct))
    return Problem(tuple(binary), units), lams


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> list[Grid]:
    """The solutions of each binary problem."""
    problem, lams = make_problem(task, Cs, solver)
    rows: list[list[tuple[Solution, ...]]] = [[] for _ in Cs]
    for number, solutions in enumerate(solver.solve_grid(problem, lams, ks, rng)):
        c, at = divmod(number, len(ks))
        if at == 0:
            binary = problem.with_ridges(lams[c]).binary
        rows[c].append(tuple(_restored(task, p, s) for p, s in zip(binary, solutions, strict=True)))
        if on_solution is not None:
            on_solution()
    rows = [never_worse(row) for row in rows] if solver.is_monotone else rows
    return [[[solutions[m] for solutions in row] for row in rows] for m in range(len(problem.binary))]


def _restored(task: Task, problem: BinaryProblem, solution: Solution) -> Solution:
    """A solution for the data as they were given, in their precision."""
    restored = task.designs.restore(solution)
    if task.designs.dtype == np.float32 and isinstance(problem, ArrayProblem):
        return in_single_precision(restored, task.designs, problem)
    return restored


def make_rng(seed: int, index: int) -> np.random.Generator:
    """A task's random numbers: by its number, not by who solves it."""
    return np.random.default_rng([seed, index])


# A batch is at most this share of what is left for each worker.
SHARE = 1 / 4


class Batch(NamedTuple):
    """Machines that share their samples, for one worker: these travel once for all of them."""

    designs: Designs
    parts: list[tuple[tuple[Any, ...], Units | None]]  # the rest of each task
    first: int  # the number of its first task


def make_batches(tasks: Iterable[Task], n_tasks: int, n_workers: int) -> Iterator[Batch]:
    """The tasks in order, cut into batches that get shorter.

    Long ones at first, so that little time goes into handing them out; at the end single tasks, so
    that all workers finish together.
    """
    first = 0
    for designs, same in groupby(tasks, key=attrgetter("designs")):
        while batch := list(islice(same, max(1, int(SHARE * (n_tasks - first) / n_workers)))):
            yield Batch(designs, [task[1:] for task in batch], first)
            first += len(batch)


def solve_batch(
    designs: Designs,
    parts: Sequence[tuple[tuple[Any, ...], Units | None]],
    first: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    seed: int,
) -> list[list[Grid]]:
    """The machines of a batch, one after another, wherever the worker is."""
    with one_blas_thread:
        return [
            solve_task(Task(designs, *part), Cs, ks, solver, make_rng(seed, index))
            for index, part in enumerate(parts, first)
        ]


def solve_tasks(
    tasks: Iterable[Task],
    n_tasks: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    *,
    solver: Solver,
    n_jobs: int | None,
    seed: int,
    label: str = "path over k",
    verbose: int = 0,
    bar: Bar | None = None,
) -> Iterator[Grid]:
    """Each machine's solutions for every C and k, in the order of the tasks. `Cs` ascend, `ks` descend.

    A task walks its own values of C one after another: each starts from the supports of the last, and
    the solutions must not depend on how many workers there are. For the same reason BLAS keeps to one
    thread where there are several tasks: with more, it adds up in another order. The compiled loops
    release the GIL, so threads are the hint to joblib; any other backend that the caller has
    configured is taken as well. A bar that is given is moved on, in place of one of its own.
    """
    per_task = len(Cs) * len(ks)
    n_workers = 1 if n_tasks == 1 else effective_n_jobs(n_jobs)
    # a single task has BLAS to itself, whatever n_jobs is
    threads = nullcontext() if n_tasks == 1 and solver.wants_blas_threads else one_blas_thread
    own_bar = progress_bar(label, n_tasks * per_task, verbose) if bar is None else nullcontext(bar)
    with own_bar as bar, threads:
        if n_workers == 1:
            for index, task in enumerate(tasks):
                yield from solve_task(task, Cs, ks, solver, make_rng(seed, index), on_solution=bar.advance)
            return
        tasks = iter(tasks)
        first = next(tasks)
        jobs = (
            delayed(solve_batch)(*batch, Cs, ks, solver, seed)
            for batch in make_batches(chain([first], tasks), n_tasks, n_workers)
        )
        try:
            for grids in make_pool(n_jobs, in_this_process=first.designs.stays_here)(jobs):
                for of_task in grids:
                    bar.advance(per_task)
                    yield from of_task
        except BaseException:
            first.designs.stop()  # other threads would go on asking
            raise


def make_pool(n_jobs: int | None, in_this_process: bool = False) -> Parallel:
    """Workers of joblib, who hand back each batch when it is done.

    Those of the backends "multiprocessing" and "ray" only hand back everything at the end.
    """
    sharing = {"require": "sharedmem"} if in_this_process else {"prefer": "threads"}
    try:
        return Parallel(n_jobs, **sharing, batch_size=1, return_as="generator")
    except ValueError:
        return Parallel(n_jobs, **sharing, batch_size=1)
