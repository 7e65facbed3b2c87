"""Runs chains side by side, and puts each unit on disk as soon as it is finished.

Before anything is timed, each process runs the beginning of one chain of each kind and drops the results, so
that no time includes compiling functions or loading them.
"""

import functools
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kmargin.blas import one_blas_thread
from kmargin.experiments import crossval, recovery, sensitivity
from kmargin.experiments.settings import DATASETS, PEERS, PROTOCOLS, SOLVERS, Settings
from kmargin.experiments.store import Row, Store
from kmargin.experiments.work import Chain, Finished, Task, Unit
from kmargin.experiments.worker import Worker
from kmargin.jit import meter
from kmargin.progress import Bar, progress_bar

EXPERIMENTS = {module.NAME: module for module in (sensitivity, recovery, crossval)}
_ORDERS = (tuple(EXPERIMENTS), PROTOCOLS, DATASETS, (*SOLVERS, *PEERS))


def plan(
    experiments: Sequence[str],
    settings: Settings,
    protocols: Sequence[str],
    datasets: Sequence[str],
    solvers: Sequence[str],
) -> list[Chain]:
    """All chains of work, each experiment's in turn."""
    chains: list[Chain] = []
    if sensitivity.NAME in experiments:
        chains += sensitivity.chains(settings, protocols, datasets, solvers)
    if recovery.NAME in experiments:
        chains += recovery.chains(settings, protocols, solvers)
    if crossval.NAME in experiments:
        chains += crossval.chains(settings, protocols, datasets, solvers)
    return chains


def run(chains: Sequence[Chain], store: Store, settings: Settings, n_jobs: int, verbose: int = 1) -> int:
    """Do what is not on disk yet, in this process or in `n_jobs` others. Returns the number of units done."""
    waiting = deque(chain for chain in chains if len(store.done(chain)) < len(chain.units))
    n_units = sum(len(chain.units) - len(store.done(chain)) for chain in waiting)
    n_jobs = min(n_jobs, len(waiting))
    kinds = {beginning(chain) for chain in waiting}
    with progress_bar("warm-up, not timed", len(kinds), verbose and n_units > 0) as bar:
        for kind in sorted(kinds):
            with quiet_and_on_one_core():
                warm_up(kind, settings)
            bar.advance()
    with progress_bar("experiments", n_units, verbose and n_units > 0) as bar:
        if n_jobs <= 1:
            _work(waiting, store, settings, bar, do)
        else:
            _work_side_by_side(waiting, store, settings, bar, n_jobs)
    store.finish(order)
    return n_units


def do(task: Task) -> Iterator[Finished]:
    """The units of a chain that are not done, on one core."""
    with quiet_and_on_one_core():
        warm_up(beginning(task.chain), task.settings)
        yield from EXPERIMENTS[task.chain.experiment].walk(*task)


@contextmanager
def quiet_and_on_one_core() -> Iterator[None]:
    with warnings.catch_warnings(), one_blas_thread:
        warnings.simplefilter("ignore", ConvergenceWarning)  # how each run ended is in its row
        yield


def beginning(chain: Chain) -> Chain:
    """Enough of a chain to call every function that it needs; the same for all its folds, starts or draws.

    A path of the exchange is needed whole. MM and SD begin with all features, which is another case.
    """
    is_whole = chain.experiment == crossval.NAME and chain.solver == "exchange"
    units = [Unit(0, unit.parameter) for unit in chain.units]
    return chain._replace(units=tuple(dict.fromkeys(units if is_whole else units[:2])))


@functools.cache
def warm_up(chain: Chain, settings: Settings) -> None:
    """Run a chain and drop the results, once in a process."""
    with meter.forced(True):
        for _ in EXPERIMENTS[chain.experiment].walk(chain, settings, [], []):
            pass


def order(row: Row) -> Any:
    """Where a row belongs in the table: by experiment, protocol, data set, solver, replicate, parameter."""
    *names, replicate, parameter = row[:6]
    places: list[Any] = []
    for name, known in zip(names, _ORDERS, strict=True):
        if name in known:
            places.append((known.index(name), ()))
        else:  # a simulated shape
            places.append((len(known), recovery.shape_of(name)))
    return *places, int(replicate), float(parameter)


def _work(
    waiting: deque[Chain],
    store: Store,
    settings: Settings,
    bar: Bar,
    do: Callable[[Task], Iterator[Finished]],
) -> None:
    """Take chains until none is left; each unit goes to disk when it is finished.

    The first unit of a chain takes up where the last one on disk ended. A warm chain whose state has
    been lost is walked again from its start; what is on disk stays.
    """
    while waiting:
        try:
            chain = waiting.popleft()
        except IndexError:  # somebody else took the last one
            return
        done = store.done(chain)
        state = store.state(chain, done)
        known = [] if chain.is_warm and not state else done
        for finished in do(Task(chain, settings, known, state)):
            if finished.unit not in done:
                store.append(chain, [finished])
                bar.advance()


def _work_side_by_side(
    waiting: deque[Chain], store: Store, settings: Settings, bar: Bar, n_jobs: int
) -> None:
    """A thread for each process: it hands out chains and takes back units.

    Threads and processes are daemons. All that is finished is on disk, so a run that is interrupted
    need not wait for them.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with Worker(do) as worker:
                _work(waiting, store, settings, bar, worker)
        except BaseException as failure:
            failures.append(failure)
            waiting.clear()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
