"""Runs chains side by side, and puts each unit on disk as soon as it is finished."""

import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kmargin.experiments import crossval, recovery, sensitivity
from kmargin.experiments.settings import DATASETS, PEERS, PROTOCOLS, SOLVERS, Settings
from kmargin.experiments.store import Row, Store
from kmargin.experiments.work import Chain, Finished
from kmargin.machines import thread_pools
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
    """Do what is not on disk yet. Returns the number of units done now."""
    waiting = deque(chain for chain in chains if len(store.done(chain)) < len(chain.units))
    n_units = sum(len(chain.units) - len(store.done(chain)) for chain in waiting)
    with (
        warnings.catch_warnings(),
        thread_pools().limit(limits=1, user_api="blas"),
        progress_bar("experiments", n_units, verbose and n_units > 0) as bar,
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)  # how each run ended is in its row
        _work_side_by_side(waiting, store, settings, n_jobs, bar)
    store.finish(order)
    return n_units


def remaining(chain: Chain, store: Store, settings: Settings) -> Iterator[Finished]:
    """The units of a chain that are not on disk, the first taking up where the last one ended.

    A warm chain whose state has been lost is walked again from its start; what is on disk stays.
    """
    done = store.done(chain)
    state = store.state(chain, done)
    known = [] if chain.is_warm and not state else done
    for finished in EXPERIMENTS[chain.experiment].walk(chain, settings, known, state):
        if finished.unit not in done:
            yield finished


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


def _work_side_by_side(
    waiting: deque[Chain], store: Store, settings: Settings, n_jobs: int, bar: Bar
) -> None:
    """Threads, because the loops that take the time hold no lock of Python's.

    They are daemons: all that is finished is on disk, so an interrupted run need not wait for them.
    """
    failures: list[BaseException] = []
    lock = threading.Lock()

    def work() -> None:
        while waiting and not failures:
            try:
                chain = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                for finished in remaining(chain, store, settings):
                    store.append(chain, [finished])
                    with lock:
                        bar.advance()
            except BaseException as failure:
                failures.append(failure)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(n_jobs, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
