"""All machines of a model, fitted for every C and k: to all samples, or to parts of them."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kmargin import validate
from kmargin.blocks.space import Space
from kmargin.fitting.blueprint import Blueprint
from kmargin.fitting.convergence import warn_if_signs_leave_nothing, warn_unless_converged
from kmargin.fitting.pools import solve_tasks
from kmargin.fitting.tasks import Grid, Sharing, Task, make_tasks
from kmargin.multiclass import class_pairs
from kmargin.path import SparsityPath
from kmargin.progress import Bar
from kmargin.samples.protocol import Designs, Samples
from kmargin.solvers import DEFAULT, Solution
from kmargin.solvers.solver import Solver


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
    solver = validate.resolve_solver(procedure.solver)
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
    solver = validate.resolve_solver(procedure.solver).in_folds()
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
        seed=validate.resolve_seed(procedure.random_state),
        label=label,
        verbose=procedure.verbose,
        bar=procedure.bar,
    )
