"""Fits over a grid of k and C, of whole data sets and of folds; `sparse_svm_path`."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _get_feature_names, check_X_y

from kmargin.core import validation
from kmargin.core.arrays import Space
from kmargin.core.labels import class_pairs
from kmargin.core.units import UnitRequest
from kmargin.core.validation import called_for_a_fold, warn_caller
from kmargin.data.blocks.dask_input import check_features
from kmargin.data.samples import Designs, Samples
from kmargin.data.samples.read import Checks, read
from kmargin.fitting.path import SparsityPath
from kmargin.fitting.progress import Bar
from kmargin.fitting.spec import Blueprint, LinearBlueprint, warn_of_repeats
from kmargin.fitting.tasks import Grid, Sharing, Task, make_tasks, solve_tasks
from kmargin.solvers import DEFAULT, Solution, Status, resolve_solver
from kmargin.solvers.solution import SMALL_COST
from kmargin.solvers.solver import Solver


def warn_if_signs_leave_nothing(solutions: Sequence[Solution], k: int, sharing: Sharing | None) -> None:
    """One warning where no feature is of use with the sign that its coefficients have to have."""
    if sharing is None or not sharing.units.signs.any() or k == 0:
        return
    if not any(len(solution.support) for solution in solutions):
        warn_caller(
            "No feature lowers the objective with the sign that `signs` allows, so the model is the "
            "intercept alone. Check the signs, or allow either sign for some features."
        )


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """Warn once for each reason to stop early, however many solutions stopped for it.

    A run that stalled close to S_k is mentioned too, but not for each fold of a cross-validation.
    """
    early = [s for s in solutions if s.status in (Status.STALLED, Status.EXHAUSTED)]
    for status, count in Counter(s.status for s in early).items():
        message = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        message += status.value
        if all(s.is_sound for s in early if s.status is status):
            if called_for_a_fold():
                continue
            message += f" (the final projection onto S_k raised the objective by at most {SMALL_COST:g})"
        warn_caller(message, ConvergenceWarning)


class Procedure(NamedTuple):
    """How solutions are found; the fields are those of the estimators."""

    solver: Any = DEFAULT
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    bar: Bar | None = None  # to be moved on with each solution, in place of one for this fit alone


@dataclass(frozen=True)
class GridFit:
    """The machines fitted to some samples. A row is a position among the Cs, a column one among the ks."""

    blueprint: Blueprint
    samples: Any
    designs: Designs
    by_machine: list[Grid]
    sharing: Sharing | None = None

    def solutions(self, row: int, column: int) -> tuple[Solution, ...]:
        """One per machine."""
        return tuple(grid[row][column] for grid in self.by_machine)

    def decisions(self, row: int, column: int) -> Any:
        """What the machines decide; see `Blueprint.decisions`."""
        return self.blueprint.decisions(self.designs, self.samples, self.solutions(row, column))

    def path(self, ks: Sequence[int]) -> SparsityPath:
        """The machines for all ks at the last C."""
        last = [grid[-1] for grid in self.by_machine]
        return self.blueprint.path(self.designs, self.samples, last, ks)

    def without_samples(self, ks: Sequence[int]) -> "MachinesAlone":
        """All machines, without the rows that they were fitted to."""
        paths = []
        for row in range(len(self.by_machine[0])):
            of_C = [[replace(solution, trace=()) for solution in grid[row]] for grid in self.by_machine]
            paths.append(self.blueprint.path(self.designs, self.samples, of_C, ks))
        samples = self.samples
        return MachinesAlone(tuple(paths), Outline(samples.space, samples.labels, samples.n_features))


class Outline(NamedTuple):
    """What is left to say of samples that are gone."""

    space: Space
    labels: Any
    n_features: int


@dataclass(frozen=True)
class MachinesAlone:
    """What is left of a `GridFit` when its samples are gone; it answers the same questions."""

    paths: tuple[SparsityPath, ...]  # one for each C
    samples: Outline

    def solutions(self, row: int, column: int) -> tuple[Solution, ...]:
        return self.paths[row].solutions[column]

    def decisions(self, row: int, column: int) -> Any:
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
    """Walk from the first C to the last, and at each over all ks.

    Warns where the solver was not done with the machines for the last C and the k at `chosen`, None for all.
    """
    fit = _fit(blueprint, samples, Cs, ks, procedure, label)
    _warn(fit, ks, range(len(ks)) if chosen is None else [chosen])
    return fit


def refit(
    blueprint: Blueprint,
    samples: Samples,
    Cs: Sequence[float],
    ks: Sequence[int],
    column: int,
    procedure: Procedure,
) -> GridFit:
    """The path over the ks at the last C, with the final model at `column`.

    The final model is fitted for its own C and k alone, so that it is the same whether these were chosen
    among others or given. Warns where the solver was not done with it.
    """
    path = _fit(blueprint, samples, Cs, ks, procedure, "refit")
    if len(Cs) * len(ks) > 1:
        final = _fit(blueprint, samples, Cs[-1:], [ks[column]], procedure, "refit", path.designs)
        for grid, (own,) in zip(path.by_machine, final.by_machine, strict=True):
            grid[-1][column] = own[0]
    _warn(path, ks, [column])
    return path


def _fit(
    blueprint: Blueprint,
    samples: Samples,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str,
    designs: Designs | None = None,
) -> GridFit:
    n_machines = len(class_pairs(len(samples.classes), blueprint.multi_class))
    samples, n_jobs = samples.shared(procedure.n_jobs, n_machines)
    designs = blueprint.designs(samples, ks[0]) if designs is None else designs
    solver = resolve_solver(procedure.solver)
    sharing = blueprint.sharing(samples, designs, n_machines, solver)
    tasks = make_tasks(designs, samples, blueprint.multi_class, sharing)
    n_tasks = n_machines if sharing is None else sharing.n_tasks(n_machines)
    grids = _solve(solver, tasks, n_tasks, Cs, ks, procedure._replace(n_jobs=n_jobs), label)
    return GridFit(blueprint, samples, designs, list(grids), sharing)


def _warn(fit: GridFit, ks: Sequence[int], columns: Sequence[int]) -> None:
    """Warn of machines for the last C that the solver was not done with, or that their signs leave empty."""
    warn_if_signs_leave_nothing(fit.solutions(-1, columns[0]), ks[columns[0]], fit.sharing)
    warn_unless_converged([solution for column in columns for solution in fit.solutions(-1, column)])


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
    """The same for each part of the samples. The parts are asked for one by one, and not held."""
    n_machines = len(class_pairs(n_classes, blueprint.multi_class))
    n_tasks = 1 if blueprint.shared else n_machines
    solver = resolve_solver(procedure.solver).in_folds()
    under_way: deque[tuple[Any, Designs]] = deque()  # parts handed out, not yet yielded

    def tasks() -> Iterator[Task]:
        for part in parts:
            designs = blueprint.designs(part, ks[0])
            under_way.append((part, designs))
            sharing = blueprint.sharing(part, designs, n_machines, solver)
            yield from make_tasks(designs, part, blueprint.multi_class, sharing)

    grids = _solve(solver, tasks(), n_tasks * n_parts, Cs, ks, procedure, label)
    for _ in range(n_parts):
        by_machine = [next(grids) for _ in range(n_machines)]
        yield GridFit(blueprint, *under_way.popleft(), by_machine)
    next(grids, None)  # lets the progress bar finish


def _solve(
    solver: Solver,
    tasks: Iterator[Task],
    n_tasks: int,
    Cs: Sequence[float],
    ks: Sequence[int],
    procedure: Procedure,
    label: str,
) -> Iterator[Grid]:
    return solve_tasks(
        tasks,
        n_tasks,
        Cs,
        ks,
        solver=solver,
        n_jobs=procedure.n_jobs,
        seed=validation.resolve_seed(procedure.random_state),
        label=label,
        verbose=procedure.verbose,
        bar=procedure.bar,
    )


def sparse_svm_path(
    X: Any,
    y: Any,
    ks: int | Sequence[int | str] | None = None,
    *,
    C: float = 1.0,
    solver: str | Solver = DEFAULT,
    multi_class: str = "ovo",
    shared: bool = True,
    groups: Any = None,
    keep: Any = None,
    avoid: Any = None,
    signs: Any = None,
    standardize: bool = False,
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> SparsityPath:
    """Fit a model for each k, from dense to sparse, each started from the previous one.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Or a dask collection in blocks of rows; or an array on a device, under scikit-learn's
        `array_api_dispatch`.
    y : array-like of shape (n_samples,)
        The classes, two or more.
    ks : list of int, int, or None, default=None
        The values of k, or their number, log-spaced from all features down to one; None means 20.
    C : float, default=1.0
        Inverse strength of the ridge; ``inf`` means no ridge.
    solver : "exchange", "mm", "sd", or a solver object, default="exchange"
        As in :class:`~kmargin.SparseSVC`.
    multi_class : "ovo" or "ovr", default="ovo"
        With more than two classes: one binary classifier for each pair of classes, or for each class against
        the rest.
    shared : bool, default=True
        With more than two classes: whether the binary classifiers share the same features.
    groups, keep, avoid, signs : list, dict or None, default=None
        Groups of features, features that are always or never in the model, and sign constraints, as in
        :class:`~kmargin.SparseSVC`.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1. The coefficients are in the original units.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    class_weight : dict, "balanced" or None, default=None
        Class weights; they multiply the sample weights.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        A sample of weight 2 counts as two samples, a sample of weight 0 is ignored.
    n_jobs : int or None, default=None
        Number of binary classifiers fitted in parallel; the result is exactly the same for any number.
    random_state : int, RandomState or None, default=None
        Only used by ``MM(start="normal")`` and ``SD(start="normal")``.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    SparsityPath
        The models for each k.

    See Also
    --------
    SparseSVCCV : Chooses k by cross-validation.
    SparsityPathDisplay : Draws a path.

    Examples
    --------
    >>> from kmargin import sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> path = sparse_svm_path(X, y, ks=[20, 5, 2])
    >>> path.coefs.shape
    (3, 1, 20)
    >>> path.solutions[2][0].support
    array([0, 1])
    """
    validation.check_C(C)
    validation.check_n_jobs(n_jobs)
    validation.check_verbose(verbose)
    validation.random_source(random_state)
    names = _get_feature_names(X)
    blueprint = LinearBlueprint(
        multi_class,
        fit_intercept,
        standardize,
        shared,
        request=UnitRequest(groups, keep, avoid, signs),
        names=None if names is None else tuple(names),
    )
    blueprint.check()
    resolved = resolve_solver(solver)
    samples = _read(X, y, sample_weight, class_weight, resolved)
    if blueprint.request.is_empty:
        warn_of_repeats(samples, resolved)
    ks = blueprint.resolve_ks(ks, samples)
    procedure = Procedure(solver, n_jobs, random_state, verbose)
    return fit_grid(blueprint, samples, [C], ks, procedure, chosen=None).path(ks)


def _read(X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver) -> Samples:
    """Labelled data, checked."""
    check = partial(check_X_y, accept_sparse="csr", estimator="sparse_svm_path")
    return read(Checks(check, check_features), X, y, sample_weight, class_weight, solver)
