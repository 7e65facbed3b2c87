"""Solving for many two-class machines, side by side if wanted."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from kmargin import hinge, validate
from kmargin.blas import one_blas_thread
from kmargin.blocks.design import NO_ROWS, BlockDesign, BlockProblem, all_rows
from kmargin.blocks.protocol import Blocks
from kmargin.blocks.space import HOST, Space
from kmargin.blocks.view import Part, View
from kmargin.design import Design, Moments, distinct_columns, make_design, n_bytes
from kmargin.multiclass import Machine, class_pairs, make_machines
from kmargin.problem import Problem
from kmargin.progress import progress_bar
from kmargin.solvers import Exchange, Solution, Status
from kmargin.solvers.signed import BETTER
from kmargin.solvers.solver import Solver
from kmargin.solvers.start import bare_solution
from kmargin.solvers.units import LARGEST, SMALLEST
from kmargin.types import Indices, Vector
from kmargin.validate import Samples
from kmargin.weights import normalize

Grid = list[list[Solution]]  # [C][k]

# Of the spread of a standardised feature so many binary digits are used.
DIGITS = 32

# A batch is at most this share of what is left for each worker.
SHARE = 1 / 4


class Designs(Protocol):
    """What each machine is made of."""

    def __call__(self, machine: Machine) -> Any:
        """The machine's design; one of blocks knows labels and weights by itself."""

    dtype: Any  # of the data, and of what is fitted to them

    def restore(self, solution: Solution) -> Solution:
        """A solution for a design, as one for the data given."""

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of that."""


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
    def of(cls, design: Any, moments: Callable[[Any], Moments], fit_intercept: bool) -> "Scaling":
        """Constant features keep their scale; without an intercept nothing is centred.

        Spreads are rounded to DIGITS binary ones, so that sums taken in another order give the same.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance, _ = moments(design)
        spread = np.sqrt(variance)
        odd = np.flatnonzero(~((variance > SMALLEST**2) & (variance < LARGEST**2)))
        if len(odd):  # constant, or such that squares overflow or vanish: in units of their own
            few = design.subset(odd)
            largest = few.largest()
            units = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
            own_mean, own_variance, _ = moments(few.in_units_of(units))
            mean[odd], spread[odd] = own_mean * units, np.sqrt(own_variance) * units
        constant = spread <= 1e-12 * np.abs(mean)
        digits, exponent = np.frexp(spread)
        spread = np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponent - DIGITS)
        return cls(mean if fit_intercept else np.zeros_like(mean), np.where(constant, 1.0, spread))

    def redo(self, solution: Solution) -> Solution:
        """The inverse of `undo`."""
        intercept = solution.intercept + float(solution.coef @ self.mean[solution.support])
        return replace(solution, coef=solution.coef * self.spread[solution.support], intercept=intercept)

    def undo(self, solution: Solution) -> Solution:
        """A solution for scaled features, as one for the features given."""
        coef = solution.coef / self.spread[solution.support]
        intercept = solution.intercept - float(coef @ self.mean[solution.support])
        return replace(solution, coef=coef, intercept=intercept)


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
    machine. Mean and spread are those of the rows at hand, each counted as often as its weight says.
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
        self.dtype = X.dtype
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.scaling: Scaling | None = None
        if standardize:
            repeats = np.ones(X.shape[0]) if repeats is None else normalize(repeats)[0]
            counts = repeats
            self.scaling = Scaling.of(
                make_design(_taken(X)), lambda design: design.moments(counts, counts), fit_intercept
            )
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
        return solution if self.scaling is None else self.scaling.undo(solution)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.redo(solution)

    def _design(self, rows: Any) -> Design:
        design = make_design(_taken(rows), self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)


class BlockDesigns:
    """The same for data in blocks: each machine has its own view of them."""

    def __init__(self, samples: BlockSamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.samples = samples
        self.dtype = samples.X.dtype
        self.fit_intercept = fit_intercept
        self.scaling: Scaling | None = None
        if standardize:
            every = all_rows(len(samples.classes))._replace(part=samples.part)
            design = BlockDesign(samples.X, every)
            self.scaling = Scaling.of(design, lambda design: design.moments(), fit_intercept)

    def __call__(self, machine: Machine) -> BlockDesign:
        samples = self.samples
        view = View(machine.positive, machine.negative, samples.class_weight, samples.part)
        design = BlockDesign(samples.X, view, self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.redo(solution)


def linear_designs(
    samples: Samples | BlockSamples, fit_intercept: bool, standardize: bool = False
) -> "Designs":
    """The designs of linear machines, wherever their rows are."""
    if isinstance(samples, BlockSamples):
        return BlockDesigns(samples, fit_intercept, standardize)
    shared = len(samples.classes) > 2
    return LinearDesigns(samples.X, fit_intercept, standardize, samples.repeats, shared)


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


def _taken(X: Any) -> Any:
    return X.take() if isinstance(X, Rows) else X


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

    A task walks its own values of C one after another: each starts from the supports of the last, and
    the solutions must not depend on how many workers there are. For the same reason BLAS keeps to one
    thread where there are several tasks: with more, it adds up in another order. The compiled loops
    release the GIL, so threads are the hint to joblib; any other backend that the caller has
    configured is taken as well.
    """
    per_task = len(Cs) * len(ks)
    n_workers = 1 if n_tasks == 1 else effective_n_jobs(n_jobs)
    # a single task has BLAS to itself, whatever n_jobs is
    threads = nullcontext() if n_tasks == 1 and solver.wants_blas_threads else one_blas_thread
    with progress_bar(label, n_tasks * per_task, verbose) as bar, threads:
        if n_workers == 1:
            for index, task in enumerate(tasks):
                yield solve_task(task, Cs, ks, solver, make_rng(seed, index), on_solution=bar.advance)
            return
        tasks = iter(tasks)
        first = next(tasks)
        blocks = first.designs.samples.X if isinstance(first.designs, BlockDesigns) else None
        jobs = (
            delayed(solve_batch)(*batch, Cs, ks, solver, seed)
            for batch in make_batches(chain([first], tasks), n_tasks, n_workers)
        )
        try:
            for grids in make_pool(n_jobs, in_this_process=blocks is not None)(jobs):
                for grid in grids:
                    bar.advance(per_task)
                    yield grid
        except BaseException:
            if blocks is not None:  # the other threads would go on asking
                blocks.stop()
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
    problem: Problem
    if isinstance(design, BlockDesign):
        lams = [validate.ridge(C, design.total) for C in Cs]
        problem = BlockProblem(design, lam=lams[0], k=design.n_features)
    else:
        weights = weights if machine.rows is None else weights[machine.rows]
        weights, total_weight = normalize(weights)
        lams = [validate.ridge(C, total_weight) for C in Cs]
        problem = Problem(design, machine.y, weights, lams[0], design.n_features)
    solutions = []
    for number, solution in enumerate(solver.iter_grid(problem, lams, ks, rng)):
        restored = designs.restore(solution)
        if designs.dtype == np.float32 and problem.weights.size:
            restored = _in_single_precision(restored, designs, replace(problem, lam=lams[number // len(ks)]))
        solutions.append(restored)
        if on_solution is not None:
            on_solution()
    grid = [solutions[start : start + len(ks)] for start in range(0, len(solutions), len(ks))]
    return [_never_worse(row) for row in grid] if solver.is_monotone else grid


def _never_worse(descending: list[Solution]) -> list[Solution]:
    """What was found for fewer features serves for more, where rounding has made that better."""
    best = descending[-1]
    for place in range(len(descending) - 2, -1, -1):
        if best.objective < descending[place].objective * BETTER:
            descending[place] = best
        best = descending[place]
    return descending


def _in_single_precision(solution: Solution, designs: Designs, problem: Problem) -> Solution:
    """What is left of a solution in float32, with the objective of that; or of the intercept, if better."""
    bare = bare_solution(problem, solution.status)
    rounded, alone = (_round(s, designs, problem) for s in (solution, designs.restore(bare)))
    if solution.status is Status.SWAP_OPTIMAL and rounded.objective * BETTER > solution.objective:
        rounded = replace(rounded, status=Status.LIMITED)  # others may suffer less from rounding
    if rounded.objective <= alone.objective:
        return rounded
    return replace(alone, trace=solution.trace, regime=solution.regime)


def _round(solution: Solution, designs: Designs, problem: Problem) -> Solution:
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: then the intercept is left
        coef = solution.coef.astype(np.float32).astype(np.float64)
        rounded = replace(solution, coef=coef, intercept=float(np.float32(solution.intercept)))
        scaled = designs.unrestore(rounded)
        decision = problem.design.product(scaled.support, scaled.coef) + scaled.intercept
        ridge = problem.lam / 2 * float(scaled.coef @ scaled.coef) if len(coef) else 0.0
        return replace(rounded, objective=hinge.loss(decision, problem.y, problem.weights) + ridge)


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """One ConvergenceWarning for all machines that the solver left before it was done."""
    unfinished = Counter(s.status for s in solutions if not s.is_sound)
    for status, count in unfinished.items():
        which = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        warnings.warn(which + status.value, ConvergenceWarning, stacklevel=3)
