"""Many tasks, solved one after another or side by side."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain

from joblib import Parallel, delayed, effective_n_jobs

from kmargin.blas import one_blas_thread
from kmargin.fitting.batches import make_batches, solve_batch
from kmargin.fitting.tasks import Grid, Task, make_rng, solve_task
from kmargin.progress import Bar, progress_bar
from kmargin.solvers.solver import Solver


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
