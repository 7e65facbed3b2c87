"""Fit models over a grid of C and k, to all samples or to each fold; `n_jobs` does not change the results."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from kmargin.core import squared_hinge, validation
from kmargin.core.arrays import Vector
from kmargin.core.labels import Pair, class_pairs
from kmargin.core.linalg import one_blas_thread
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.core.units import Units
from kmargin.core.validation import called_for_a_fold, warn_caller
from kmargin.data.samples import Designs, Samples
from kmargin.fitting.path import Models, SparsityPath
from kmargin.fitting.progress import progress_bar
from kmargin.fitting.spec import Blueprint
from kmargin.solvers import Exchange, Solution, Solver, Status
from kmargin.solvers.refit.support import refit as refit_support
from kmargin.solvers.search.swap_search import BETTER
from kmargin.solvers.solution import SMALL_COST
from kmargin.solvers.solver import bare_solution

# Workers get tasks in batches. The size of a batch is this fraction of the remaining tasks per worker, but at
# least one task. A smaller fraction balances the load better, but needs more communication.
BATCH_SHARE = 1 / 4

# If rounding to float32 raises an objective by more than this fraction, a refit with more ridge is tried.
MAX_ROUNDING_RISE = 1e-6

Grid = list[list[tuple[Solution, ...]]]  # grid[c][i]: for Cs[c] and ks[i], one solution per binary classifier


class Procedure(NamedTuple):
    """The solver and how it runs: the parameters of an estimator that do not define what is to be fitted."""

    solver: Solver = Exchange()
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0


@dataclass(frozen=True)
class GridFit:
    """Fitted models for a grid of values of C and k."""

    paths: Sequence[SparsityPath]  # for each C, the models for all values of k
    designs: Any = None  # makes the design matrices of the fit; None after a fit to a fold, to free its rows

    def decisions(self, row: int, column: int) -> Any:
        """The decision function of the model for the C at index `row` and the k at index `column`."""
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
    """Fit a model to all samples for every C and k; `Cs` ascend and `ks` descend.

    Warns if the solver has not converged for the last C and ``ks[chosen]``. If `chosen` is None, warns if the
    solver has not converged for at least one k at the last C. `label` is shown by the progress bar.
    """
    n_classes = len(samples.classes)
    ((_, designs, grid),) = _solve_parts(blueprint, [samples], 1, n_classes, Cs, ks, procedure, label)
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
    """Fit to all samples after C and k have been chosen: the last of `Cs`, and ``ks[column]``.

    Returns the models of all `ks` for the chosen C; the other Cs serve as warm starts. The model of the
    chosen k is fitted again without warm starts, so that it equals the model of an estimator with this C and
    k. If the solver is one for which a larger k has no higher objective (`is_monotone`), this model replaces
    those of larger k that have one. Warns if the solver has not converged for the chosen model.
    """
    given = blueprint, [samples], 1, len(samples.classes)
    ((_, designs, grid),) = _solve_parts(*given, Cs, ks, procedure, "refit")
    last, of_each_k = grid[-1], [designs] * len(ks)
    if len(Cs) * len(ks) > 1:
        ((_, designs, ((final,),)),) = _solve_parts(*given, Cs[-1:], [ks[column]], procedure, "refit")
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
    """Fit models for every C and k to each of several subsets of samples, such as training rows of folds.

    `parts` is an iterable of `n_parts` subsets. Each subset is made when it is needed. To save memory, its
    rows and the solver's record of iterations are not kept. `label` is shown by the progress bar.
    """
    solver = procedure.solver.in_folds()
    for samples, designs, grid in _solve_parts(
        blueprint, parts, n_parts, n_classes, Cs, ks, procedure._replace(solver=solver), label
    ):
        paths = []
        for row in grid:
            models = [tuple(replace(solution, trace=()) for solution in model) for model in row]
            paths.append(blueprint.path([designs] * len(ks), samples, models, ks))
        yield GridFit(paths)


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
    """Solve for every C and k on each subset of samples in `parts`; yield (subset, designs, solutions)."""
    pairs = class_pairs(n_classes, blueprint.multi_class)
    is_joint = blueprint.shared and len(pairs) > 1
    tasks_of_part = [tuple(pairs)] if is_joint else [(pair,) for pair in pairs]
    under_way: deque[tuple[Any, Designs]] = deque()  # subsets, with designs, whose solutions are not complete

    def tasks() -> Iterator[Task]:
        for samples in parts:
            designs = blueprint.designs(samples, ks[0])
            under_way.append((samples, designs))
            units = blueprint.problem_units(samples, designs, procedure.solver, is_joint)
            for own_pairs in tasks_of_part:
                yield Task(designs, own_pairs, units)

    grids = solve_tasks(tasks(), len(tasks_of_part) * n_parts, Cs, ks, procedure, label)
    for _ in range(n_parts):
        grid = next(grids)
        for of_next_task in islice(grids, len(tasks_of_part) - 1):
            for row, column in np.ndindex(len(Cs), len(ks)):
                grid[row][column] += of_next_task[row][column]
        yield *under_way.popleft(), grid
    next(grids, None)  # lets the generator `solve_tasks` run to its end, where it closes the progress bar


def _warn(blueprint: Blueprint, samples: Samples, models: Models, largest_k: int) -> None:
    """Warn if a solver did not converge, or if `signs` keeps all features out of the model of `largest_k`.

    That model is ``models[0]``. There is one warning for all STALLED solutions and one for all EXHAUSTED
    ones. Fits to folds of scikit-learn's cross-validation do not warn of STALLED solutions if the final
    projection onto S_k raised the objective of each of them by at most `SMALL_COST`.
    """
    has_signs = blueprint.request.signs is not None and blueprint.units(samples).signs.any()
    if has_signs and largest_k > 0 and not any(len(solution.support) for solution in models[0]):
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
    """What one call of a solver solves: one binary problem, or several that must use the same features."""

    designs: Designs
    pairs: tuple[Pair, ...]  # the two classes of each binary problem
    units: Units | None = None  # what k counts; None if that is the columns of a single binary problem


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> Grid:
    """Solve a task for every C and k; convert coefficients to the scale and precision of the user's X."""
    designs, units, binary, ridges = task.designs, task.units, [], []
    for pair in task.pairs:
        one, lams_of_one = designs.problem(pair, Cs)
        binary.append(one)
        ridges.append(lams_of_one)
    lams = np.transpose(ridges).tolist()
    if units is None:
        design = binary[0].design
        units = Units.of_columns(design.n_features)
        if solver.skips_repeats and len(design.repeated_columns):
            units = units.without_copies(design.repeated_columns)
    problem = Problem(tuple(binary), units)
    to_round = designs.dtype == np.float32 and isinstance(binary[0], ArrayProblem)
    solutions = solver.solve_grid(problem, lams, ks, rng)
    grid: Grid = []
    for row in lams:
        models = []
        for solution in islice(solutions, len(ks)):
            model = solution if designs.scaling is None else tuple(map(designs.restore, solution))
            if to_round:
                own: Any = problem.with_ridges(row).binary
                model = tuple(map(in_single_precision, model, repeat(designs), own, repeat(units.signs)))
            models.append(model)
            if on_solution is not None:
                on_solution()
        grid.append(never_worse(models) if solver.is_monotone and len(ks) > 1 else models)
    return grid


def in_single_precision(
    solution: Solution, designs: Designs, problem: ArrayProblem, signs: Vector
) -> Solution:
    """Round a solution to float32; return the intercept alone instead if that has a lower objective.

    Nearly dependent columns may have large coefficients of opposite effect, which no longer cancel once they
    are rounded. If rounding raises the objective, the support is also refitted with a slightly larger ridge,
    which keeps coefficients small, and the better of the two rounded solutions is used.
    """
    alone = designs.restore(bare_solution(problem, solution.status))
    rounded, alone = (round_solution(s, designs, problem) for s in (solution, alone))
    support = solution.support
    if len(support) and not rounded.objective * (1.0 - MAX_ROUNDING_RISE) <= solution.objective:
        damping = float(np.finfo(np.float32).eps * np.median(problem.moments().variance[support]))
        damped_problem = problem.with_ridge(problem.lam + damping)
        coef, intercept, *_ = refit_support(damped_problem, support, signs=signs[support])
        damped = designs.restore(replace(solution, coef=coef, intercept=intercept))
        rounded = min(round_solution(damped, designs, problem), rounded, key=attrgetter("objective"))
    if rounded.objective <= alone.objective:
        is_exact = rounded.objective * BETTER <= solution.objective
        if not is_exact and solution.status is Status.SWAP_OPTIMAL:
            # after rounding, a swap might lower the objective, which SWAP_OPTIMAL excludes
            return replace(rounded, status=Status.SETTLED)
        return rounded
    return replace(alone, trace=solution.trace, regime=solution.regime)


def round_solution(solution: Solution, designs: Designs, problem: ArrayProblem) -> Solution:
    """Round coefficients and intercept to float32, drop those that become 0, and update the objective."""
    with np.errstate(over="ignore", invalid="ignore"):  # after overflow the caller uses the intercept alone
        coef: Vector = solution.coef.astype(np.float32).astype(np.float64)
        support, coef = solution.support[coef != 0], coef[coef != 0]
        intercept = float(np.float32(solution.intercept))
        rounded = replace(solution, support=support, coef=coef, intercept=intercept)
        if designs.scaling is not None:
            coef, intercept = designs.scaling.scale_coefs(support, coef, intercept)
        decision = problem.design.product(support, coef) + intercept
        ridge = problem.lam / 2 * float(coef @ coef) if len(coef) else 0.0
        loss = squared_hinge.mean_loss(decision, problem.y, problem.weights)
        return replace(rounded, objective=loss + ridge)


def total(model: tuple[Solution, ...]) -> float:
    """The sum of the objectives of the binary classifiers of a model."""
    return sum(solution.objective for solution in model)


def never_worse(descending: list[tuple[Solution, ...]]) -> list[tuple[Solution, ...]]:
    """Replace each model by that of the next smaller k if rounding errors gave that a lower objective."""
    totals = [total(model) for model in descending]
    for place in range(len(descending) - 2, -1, -1):
        if totals[place + 1] < totals[place] * BETTER:
            descending[place], totals[place] = descending[place + 1], totals[place + 1]
    return descending


def solve_tasks(
    tasks: Iterator[Task],
    n_tasks: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str = "path over k",
) -> Iterator[Grid]:
    """Yield the solutions of each task for every C and k, in the order of the tasks.

    `Cs` ascend and `ks` descend. Solutions must not depend on the number of workers. Therefore one worker
    solves a task for all values of C, where each C starts from the supports of the previous one. If there are
    several tasks, BLAS uses one thread, because more threads would add numbers in another order. joblib is
    asked for threads, since compiled code releases the GIL, but users can configure another joblib backend.
    """
    solver, n_jobs, random_state, verbose = procedure
    seed = validation.resolve_seed(random_state)
    # n_jobs does not apply to a single task, which may use all threads of BLAS
    threads = nullcontext() if n_tasks == 1 and solver.wants_blas_threads else one_blas_thread
    with progress_bar(label, n_tasks * len(Cs) * len(ks), verbose) as bar, threads:
        first = next(tasks)
        tasks = chain([first], tasks)
        n_jobs = first.designs.default_n_jobs if n_jobs is None else n_jobs
        n_workers = 1 if n_tasks == 1 else effective_n_jobs(n_jobs)
        if n_workers == 1:
            del first  # frees the rows of the first task as soon as it has been solved
            on_solution = bar.advance if verbose else None
            for index, task in enumerate(tasks):
                yield solve_task(task, Cs, ks, solver, np.random.default_rng([seed, index]), on_solution)
            return
        jobs = (
            delayed(solve_batch)(*batch, Cs, ks, solver, seed)
            for batch in make_batches(tasks, n_tasks, n_workers)
        )
        try:
            for grids in make_pool(n_jobs, in_this_process=first.designs.stays_here)(jobs):
                bar.advance(len(grids) * len(Cs) * len(ks))
                yield from grids
        except BaseException:
            first.designs.stop()  # otherwise the other threads would go on with their tasks
            raise


def make_batches(
    tasks: Iterable[Task], n_tasks: int, n_workers: int
) -> Iterator[tuple[Designs, list[tuple[tuple[Pair, ...], Units | None]], int]]:
    """Yield batches of tasks: the `designs` they share, their other fields, and the index of the first task.

    The designs hold the data and are sent to a worker once per batch. Batches are long at first, which saves
    communication. They become shorter, down to one task, so that all workers finish at about the same time.
    """
    first = 0
    for designs, same in groupby(tasks, key=attrgetter("designs")):
        while batch := list(islice(same, max(1, int(BATCH_SHARE * (n_tasks - first) / n_workers)))):
            yield designs, [task[1:] for task in batch], first
            first += len(batch)


def solve_batch(
    designs: Designs,
    parts: Sequence[tuple[tuple[Pair, ...], Units | None]],
    first: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    seed: int,
) -> list[Grid]:
    """Solve a batch of tasks that share `designs`; `parts` has the other fields of each task.

    `first` is the index of the first task. The index of a task, not its worker, seeds its random numbers.
    """
    with one_blas_thread:
        return [
            solve_task(Task(designs, *part), Cs, ks, solver, np.random.default_rng([seed, index]))
            for index, part in enumerate(parts, first)
        ]


def make_pool(n_jobs: int | None, in_this_process: bool = False) -> Parallel:
    """Make a joblib pool that yields results one by one or, if its backend cannot do that, all at the end."""
    sharing = {"require": "sharedmem"} if in_this_process else {"prefer": "threads"}
    try:
        return Parallel(n_jobs, **sharing, batch_size=1, return_as="generator")
    except ValueError:
        return Parallel(n_jobs, **sharing, batch_size=1)
