"""Solving for many two-class machines, side by side if wanted."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from kmargin import validate
from kmargin.blocks.design import NO_ROWS, BlockDesign, BlockProblem, all_rows
from kmargin.blocks.protocol import Blocks
from kmargin.blocks.space import HOST, Space
from kmargin.blocks.view import Part, View
from kmargin.design import Design, Moments, distinct_columns, make_design
from kmargin.multiclass import Machine, class_pairs, make_machines
from kmargin.problem import Problem
from kmargin.progress import progress_bar
from kmargin.solvers import Exchange, Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Indices, Vector
from kmargin.validate import Samples

Grid = list[list[Solution]]  # [C][k]


@cache
def thread_pools() -> ThreadpoolController:
    """The libraries whose threads can be limited; finding them takes longer than a small fit."""
    return ThreadpoolController()


class Designs(Protocol):
    """What each machine is made of."""

    def __call__(self, machine: Machine) -> Any:
        """The machine's design; one of blocks knows labels and weights by itself."""

    def restore(self, solution: Solution) -> Solution:
        """A solution for a design, as one for the data given."""


class BlockSamples(NamedTuple):
    """Labelled data in blocks. Classes are encoded, and rows weighted, beside each block."""

    X: Blocks
    classes: np.ndarray
    class_weight: Vector
    part: Part | None = None  # the rows of some folds
    space: Space = HOST  # where fitted attributes belong
    given_classes: Any = None  # the classes in an array of y's kind; None for NumPy's
    kept: Any = None  # which of the rows given are left; None for all

    @property
    def labels(self) -> Any:
        """The classes as `classes_` is to have them."""
        return self.classes if self.given_classes is None else self.given_classes


class Scaling(NamedTuple):
    """Features minus their mean, over their spread."""

    mean: Vector
    spread: Vector

    @classmethod
    def of(cls, moments: Moments, fit_intercept: bool) -> "Scaling":
        """Constant features keep their scale; without an intercept nothing is centred."""
        spread = np.sqrt(moments.variance)
        constant = spread <= 1e-12 * np.abs(moments.mean)
        mean = moments.mean if fit_intercept else np.zeros_like(moments.mean)
        return cls(mean, np.where(constant, 1.0, spread))

    def undo(self, solution: Solution) -> Solution:
        """A solution for scaled features, as one for the features given."""
        coef = solution.coef / self.spread[solution.support]
        intercept = solution.intercept - float(coef @ self.mean[solution.support])
        return replace(solution, coef=coef, intercept=intercept)


class LinearDesigns:
    """The design of each machine is its rows of X, standardised if asked for.

    Machines on all rows share one design, and with it the SVD. Mean and spread are those of the rows
    at hand, each counted as often as its weight says.
    """

    def __init__(self, X: Any, fit_intercept: bool, standardize: bool = False, repeats: Vector | None = None):
        self.X = X
        self.fit_intercept = fit_intercept
        self.scaling: Scaling | None = None
        if standardize:
            repeats = np.ones(X.shape[0]) if repeats is None else repeats
            self.scaling = Scaling.of(make_design(X).moments(repeats, repeats), fit_intercept)
        self.whole: Design | None = None

    def __call__(self, machine: Machine) -> Design:
        if machine.rows is not None:
            return self._design(self.X[machine.rows])
        if self.whole is None:
            self.whole = self._design(self.X)
        return self.whole

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)

    def _design(self, rows: Any) -> Design:
        design = make_design(rows, self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)


class BlockDesigns:
    """The same for data in blocks: each machine has its own view of them."""

    def __init__(self, samples: BlockSamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.samples = samples
        self.fit_intercept = fit_intercept
        self.scaling: Scaling | None = None
        if standardize:
            every = all_rows(len(samples.classes))._replace(part=samples.part)
            self.scaling = Scaling.of(BlockDesign(samples.X, every).moments(), fit_intercept)

    def __call__(self, machine: Machine) -> BlockDesign:
        samples = self.samples
        view = View(machine.positive, machine.negative, samples.class_weight, samples.part)
        design = BlockDesign(samples.X, view, self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)


def linear_designs(
    samples: Samples | BlockSamples, fit_intercept: bool, standardize: bool = False
) -> "Designs":
    """The designs of linear machines, wherever their rows are."""
    if isinstance(samples, BlockSamples):
        return BlockDesigns(samples, fit_intercept, standardize)
    return LinearDesigns(samples.X, fit_intercept, standardize, samples.repeats)


def find_repeats(samples: Samples | BlockSamples, solver: Solver) -> Indices:
    """The features that a search passes over because an earlier one is the same."""
    if not isinstance(solver, Exchange):
        return np.arange(0)
    if isinstance(samples, BlockSamples):
        every = all_rows(len(samples.classes))._replace(part=samples.part)
        design = BlockDesign(samples.X, every)
        return np.setdiff1d(np.arange(design.n_features), design.distinct_columns())
    X = samples.X
    repeats = np.setdiff1d(np.arange(X.shape[1]), distinct_columns(X))
    if issparse(X):  # that some columns are empty goes without saying
        repeats = repeats[np.bincount(X.indices, minlength=X.shape[1])[repeats] > 0]
    return repeats


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


def share_blocks(samples: Any, n_jobs: int | None, n_tasks: int) -> tuple[Any, int | None]:
    """The samples as each of several tasks gets them, and how many tasks to run at once.

    While one machine thinks, the workers of a cluster can answer another.
    """
    if not isinstance(samples, BlockSamples):
        return samples, n_jobs
    n_jobs = samples.X.n_askers if n_jobs is None else effective_n_jobs(n_jobs)
    n_jobs = min(n_jobs, n_tasks)
    return samples._replace(X=samples.X.shared_by(n_jobs)), n_jobs


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

    The compiled loops release the GIL, so threads are the hint to joblib; any other backend that
    the caller has configured is taken as well. While machines run side by side, BLAS keeps to one
    thread each.
    """
    per_task = len(Cs) * len(ks)
    tasks = iter(tasks)
    first = next(tasks)
    arguments = (
        (task, Cs, ks, solver, np.random.default_rng([seed, index]))
        for index, task in enumerate(chain([first], tasks))
    )
    with progress_bar(label, n_tasks * per_task, verbose) as bar:
        if n_tasks == 1 or effective_n_jobs(n_jobs) == 1:
            with thread_pools().limit(limits=solver.blas_threads, user_api="blas"):
                for given in arguments:
                    yield solve_task(*given, on_solution=bar.advance)
            return
        blocks = first.designs.samples.X if isinstance(first.designs, BlockDesigns) else None
        sharing = {"prefer": "threads"} if blocks is None else {"require": "sharedmem"}
        with thread_pools().limit(limits=1, user_api="blas"):
            pool = Parallel(n_jobs=n_jobs, return_as="generator", **sharing)
            try:
                for grid in pool(delayed(solve_task)(*given) for given in arguments):
                    bar.advance(per_task)
                    yield grid
            except BaseException:
                if blocks is not None:  # the other threads would go on asking
                    blocks.stop()
                raise


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
    problem: Problem
    if isinstance(design, BlockDesign):
        lams = [validate.ridge(C, design.total) for C in Cs]
        problem = BlockProblem(design, lam=lams[0], k=design.n_features)
    else:
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
