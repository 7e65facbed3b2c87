"""Tasks that travel together."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

from kmargin.blas import one_blas_thread
from kmargin.fitting.tasks import Grid, Task, make_rng, solve_task
from kmargin.samples.protocol import Designs
from kmargin.solvers.solver import Solver
from kmargin.units import Units

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
