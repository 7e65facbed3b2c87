"""Solving for many two-class machines, side by side if wanted."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from kmargin import validate
from kmargin.blas import one_blas_thread
from kmargin.design import Design, make_design, n_bytes
from kmargin.multiclass import Machine, make_machines
from kmargin.problem import Problem
from kmargin.progress import progress_bar
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Indices, Vector
from kmargin.validate import Samples

Grid = list[list[Solution]]  # [C][k]

# A batch is at most this share of what is left for each worker.
SHARE = 1 / 4


class Designs(Protocol):
    """What each machine is made of."""

    def __call__(self, machine: Machine) -> Design:
        """The machine's design."""

    def restore(self, solution: Solution) -> Solution:
        """A solution for a design, as one for the data given."""


class Rows:
    """Some rows of an array or a CSR matrix, copied only when they are taken."""

    def __init__(self, X: Any, rows: Indices | None = None) -> None:
        self.X = X
        self.rows = np.arange(X.shape[0]) if rows is None else rows
        self.shape = len(self.rows), X.shape[1]
        self.dtype = X.dtype
        self.nbytes = n_bytes(X)

    def __getitem__(self, rows: Indices) -> "Rows":
        return Rows(self.X, self.rows[rows])

    def take(self) -> Any:
        return self.X[self.rows]


class LinearDesigns:
    """The design of each machine is its rows of X, standardised if asked for.

    If `shared`, machines on all rows have one design, and with it the SVD; else it is gone with the
    machine. Mean and spread are those of the rows at hand, each counted as often as its weight says;
    without an intercept nothing is centred.
    """

    def __init__(
        self,
        X: Any,
        fit_intercept: bool,
        standardize: bool = False,
        repeats: Vector | None = None,
        shared: bool = True,
    ) -> None:
        self.X = X
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.mean: Vector = np.zeros(X.shape[1])
        self.spread: Vector | None = None
        if standardize:
            repeats = np.ones(X.shape[0]) if repeats is None else repeats
            mean, variance, _ = make_design(_taken(X)).moments(repeats, repeats)
            spread = np.sqrt(variance)
            constant = spread <= 1e-12 * np.abs(mean)
            self.spread = np.where(constant, 1.0, spread)
            self.mean = mean if fit_intercept else self.mean
        self.whole: Design | None = None

    def __call__(self, machine: Machine) -> Design:
        if machine.rows is not None:
            return self._design(self.X[machine.rows])
        whole = self._design(self.X) if self.whole is None else self.whole
        if self.shared:
            self.whole = whole
        return whole

    def __sizeof__(self) -> int:
        """With X: dask sends what is large to its workers once, and not with each batch."""
        return n_bytes(self.X)

    def restore(self, solution: Solution) -> Solution:
        if self.spread is None:
            return solution
        coef = solution.coef / self.spread[solution.support]
        intercept = solution.intercept - float(coef @ self.mean[solution.support])
        return replace(solution, coef=coef, intercept=intercept)

    def _design(self, rows: Any) -> Design:
        design = make_design(_taken(rows), self.fit_intercept)
        return design if self.spread is None else design.standardized(self.mean, self.spread)


def _taken(X: Any) -> Any:
    return X.take() if isinstance(X, Rows) else X


class Task(NamedTuple):
    """One machine on one set of samples."""

    designs: Designs
    machine: Machine
    weights: Vector  # of all the samples


def make_tasks(designs: Designs, samples: Samples, multi_class: str) -> Iterator[Task]:
    for machine in make_machines(samples.codes, len(samples.classes), multi_class):
        yield Task(designs, machine, samples.weights)


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
) -> Iterator[Grid]:
    """Each task's solutions for every C and k, in the order of the tasks. `Cs` ascend, `ks` descend.

    A task walks its own values of C one after another: each starts from the supports of the last, and
    the solutions must not depend on how many workers there are. For the same reason BLAS keeps to one
    thread: with more, it adds up in another order. The compiled loops release the GIL, so threads are
    the hint to joblib; any other backend that the caller has configured is taken as well.
    """
    per_task = len(Cs) * len(ks)
    with progress_bar(label, n_tasks * per_task, verbose) as bar, one_blas_thread:
        n_workers = 1 if n_tasks == 1 else effective_n_jobs(n_jobs)
        if n_workers == 1:
            for index, task in enumerate(tasks):
                yield solve_task(task, Cs, ks, solver, make_rng(seed, index), on_solution=bar.advance)
            return
        jobs = (
            delayed(solve_batch)(*batch, Cs, ks, solver, seed)
            for batch in make_batches(tasks, n_tasks, n_workers)
        )
        for grids in make_pool(n_jobs)(jobs):
            for grid in grids:
                bar.advance(per_task)
                yield grid


def make_pool(n_jobs: int | None) -> Parallel:
    """Workers of joblib, who hand back each batch when it is done.

    Those of the backends "multiprocessing" and "ray" only hand back everything at the end.
    """
    try:
        return Parallel(n_jobs, prefer="threads", batch_size=1, return_as="generator")
    except ValueError:
        return Parallel(n_jobs, prefer="threads", batch_size=1)


class Batch(NamedTuple):
    """Machines that share their samples, for one worker: these travel once for all of them."""

    designs: Designs
    weights: Vector
    machines: list[Machine]
    first: int  # the number of its first task


def make_batches(tasks: Iterable[Task], n_tasks: int, n_workers: int) -> Iterator[Batch]:
    """The tasks in order, cut into batches that get shorter.

    Long ones at first, so that little time goes into handing them out; at the end single tasks, so
    that all workers finish together.
    """
    first = 0
    for designs, same in groupby(tasks, key=attrgetter("designs")):
        while batch := list(islice(same, max(1, int(SHARE * (n_tasks - first) / n_workers)))):
            yield Batch(designs, batch[0].weights, [task.machine for task in batch], first)
            first += len(batch)


def solve_batch(
    designs: Designs,
    weights: Vector,
    machines: Sequence[Machine],
    first: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    seed: int,
) -> list[Grid]:
    """The machines of a batch, one after another, wherever the worker is."""
    with one_blas_thread:
        return [
            solve_task(Task(designs, machine, weights), Cs, ks, solver, make_rng(seed, index))
            for index, machine in enumerate(machines, first)
        ]


def make_rng(seed: int, index: int) -> np.random.Generator:
    """A task's random numbers: by its number, not by who solves it."""
    return np.random.default_rng([seed, index])


def solve_task(
    task: Task,
    Cs: Sequence[float],
    ks: Sequence[int],
    solver: Solver,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> Grid:
    """One machine's solutions."""
    designs, machine, weights = task
    design = designs(machine)
    weights = weights if machine.rows is None else weights[machine.rows]
    total_weight = float(weights.sum())
    lams = [validate.ridge(C, total_weight) for C in Cs]
    weights = weights * (design.n_samples / total_weight)
    problem = Problem(design, machine.y, weights, lams[0], design.n_features)
    solutions = []
    for solution in solver.iter_grid(problem, lams, ks, rng):
        solutions.append(designs.restore(solution))
        if on_solution is not None:
            on_solution()
    return [solutions[start : start + len(ks)] for start in range(0, len(solutions), len(ks))]


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """One ConvergenceWarning for all machines that the solver left before it was done."""
    unfinished = Counter(s.status for s in solutions if not s.is_sound)
    for status, count in unfinished.items():
        which = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        warnings.warn(which + status.value, ConvergenceWarning, stacklevel=3)
