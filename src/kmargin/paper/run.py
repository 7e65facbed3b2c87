"""The experiments run in worker processes; a run that was interrupted continues."""

import functools
import multiprocessing
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kmargin.core.linalg import one_blas_thread
from kmargin.datasets import TABLE_1, cache_folder
from kmargin.fitting.progress import Bar, progress_bar
from kmargin.paper import crossval, protocol, recovery, sensitivity
from kmargin.paper.protocol import (
    DATASETS,
    PEERS,
    PROTOCOLS,
    QUICK,
    SHIPPED,
    SOLVERS,
    Chain,
    Finished,
    Settings,
    Task,
    Unit,
)
from kmargin.paper.report import write_report
from kmargin.paper.store import Row, Store


class Worker:
    """Calls a generator function in a process of its own; iterating over a call gives what it yields.

    If the program that started it is killed, the process ends when it next writes to the closed pipe.
    """

    def __init__(self, function: Callable[[Any], Iterator[Any]]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(other_end, function), daemon=True)
        self.process.start()
        other_end.close()

    def __call__(self, argument: Any) -> Iterator[Any]:
        self.pipe.send(argument)
        while True:
            kind, value = self._receive()
            if kind == "end":
                return
            if kind == "failure":
                raise value
            yield value

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()  # not closed: multiprocessing uses it once more when the program ends

    def _receive(self) -> tuple[str, Any]:
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(
                f"A worker process ended unexpectedly (exit code {self.process.exitcode}), perhaps because "
                "memory ran out. Finished results are on disk; run again with fewer jobs."
            ) from None


def _serve(pipe: Connection, function: Callable[[Any], Iterator[Any]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    try:
        while True:
            argument = pipe.recv()
            try:
                for value in function(argument):
                    pipe.send(("value", value))
                pipe.send(("end", None))
            except (EOFError, BrokenPipeError):
                raise
            except Exception as failure:
                pipe.send(("failure", failure))
    except (EOFError, BrokenPipeError):
        return  # the parent has ended


EXPERIMENTS = {module.NAME: module for module in (sensitivity, recovery, crossval)}
_ORDERS = (tuple(EXPERIMENTS), PROTOCOLS, DATASETS, (*SOLVERS, *PEERS))


def plan(
    experiments: Sequence[str],
    settings: Settings,
    protocols: Sequence[str],
    datasets: Sequence[str],
    solvers: Sequence[str],
) -> list[Chain]:
    """All chains of work, one experiment after the other."""
    chains: list[Chain] = []
    if sensitivity.NAME in experiments:
        chains += sensitivity.chains(settings, protocols, datasets, solvers)
    if recovery.NAME in experiments:
        chains += recovery.chains(settings, protocols, solvers)
    if crossval.NAME in experiments:
        chains += crossval.chains(settings, protocols, datasets, solvers)
    return chains


def run(chains: Sequence[Chain], store: Store, settings: Settings, n_jobs: int, verbose: int = 1) -> int:
    """Run the units that are not on disk yet, in this process or in `n_jobs` others; return their number."""
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
    """Run the units of a chain that are not done, on one core."""
    with quiet_and_on_one_core():
        warm_up(beginning(task.chain), task.settings)
        yield from EXPERIMENTS[task.chain.experiment].walk(*task)


@contextmanager
def quiet_and_on_one_core() -> Iterator[None]:
    with warnings.catch_warnings(), one_blas_thread:
        warnings.simplefilter("ignore", ConvergenceWarning)  # how each run ended is in its row
        yield


def beginning(chain: Chain) -> Chain:
    """The first units of a chain, which call every function that the chain needs; the same for all folds.

    The exchange needs its whole path. MM and SD need two units, since they begin with all features.
    """
    is_whole = chain.experiment == crossval.NAME and chain.solver == "exchange"
    units = [Unit(0, unit.parameter) for unit in chain.units]
    return chain._replace(units=tuple(dict.fromkeys(units if is_whole else units[:2])))


@functools.cache
def warm_up(chain: Chain, settings: Settings) -> None:
    """Run a chain once in a process and discard the results, so that everything is compiled."""
    for _ in EXPERIMENTS[chain.experiment].walk(chain, settings, [], []):
        pass


def order(row: Row) -> Any:
    """The sort key of a row: experiment, protocol, data set, solver, replicate, parameter."""
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
    """Run chains until none is left; each unit is saved when it is finished.

    A chain continues after its last unit on disk. A warm chain whose state was lost is run again from its
    start; rows that are on disk are not written again.
    """
    while waiting:
        try:
            chain = waiting.popleft()
        except IndexError:  # another thread took the last one
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
    """Run chains in `n_jobs` processes; a thread for each of them sends chains and receives units.

    Threads and processes are daemons: finished units are on disk, so an interrupted run need not wait.
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


# the experiment that each part of the page needs; the supplement's figures show data alone
PARTS: dict[str, str | None] = {
    "descent": None,
    "figure1": sensitivity.NAME,
    "figure2": recovery.NAME,
    "table2": crossval.NAME,
    "table3": crossval.NAME,
    "figure3": crossval.NAME,
    "table4": crossval.NAME,
    "figureS1": None,
    "figureS2": None,
}


class Request:
    """The parts, data sets, solvers and settings to reproduce, with all defaults resolved."""

    def __init__(
        self,
        part: str = "all",
        *,
        datasets: Sequence[str] = (),
        solvers: Sequence[str] = (),
        protocols: Sequence[str] = ("paper",),
        quick: bool = False,
        seed: int = Settings.seed,
    ) -> None:
        _check("part", [part], (*PARTS, "all"))
        _check("dataset", datasets, DATASETS)
        _check("solver", solvers, (*SOLVERS, *PEERS))
        _check("protocol", protocols, PROTOCOLS)
        self.part = part
        self.parts = tuple(PARTS) if part == "all" else (part,)
        self.protocols = tuple(name for name in PROTOCOLS if name in protocols)
        base = QUICK if quick else Settings()
        self.settings = Settings(**{**base.__dict__, "seed": seed})
        self.datasets = tuple(datasets) or self._default_datasets(quick)
        peers = PEERS if "table4" in self.parts else ()
        self.solvers = tuple(solvers) or (*SOLVERS, *peers)
        words = ["kmargin reproduce", part]
        for option, given in (("datasets", datasets), ("solvers", solvers)):
            words += [f"--{option} {','.join(given)}"] if given else []
        words += [f"--protocol {','.join(self.protocols)}"] if self.protocols != ("paper",) else []
        words += ["--quick"] if quick else []
        words += [f"--seed {seed}"] if seed != Settings.seed else []
        self.command = " ".join(words)

    def _default_datasets(self, quick: bool) -> tuple[str, ...]:
        if self.part == "table2":
            return ("synthetic",)
        if quick:
            return SHIPPED
        return tuple(name for name in DATASETS if name != "TCGA-PANCAN-HiSeq" or _is_cached(name))


def reproduce(request: Request, out: Path, *, n_jobs: int = 1, verbose: int = 1) -> Path:
    """Run what is not in the folder `out` yet, write tables and report, and return the report's path."""
    experiments = {PARTS[part] for part in request.parts} - {None}
    chains = plan(
        [str(name) for name in experiments],
        request.settings,
        request.protocols,
        request.datasets,
        request.solvers,
    )
    for dataset in {chain.dataset for chain in chains} & {*TABLE_1}:  # a missing file stops a run at once
        protocol.read(dataset, request.protocols[0], request.settings.seed)
    with Store(out, request.settings.to_dict(), request.command) as store:
        run(chains, store, request.settings, n_jobs, verbose)
    return write_report(out, request.parts, request.settings)


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"There is no {what} {name!r}. Use {', '.join(known)}.")


def _is_cached(dataset: str) -> bool:
    return all((cache_folder() / file.name).exists() for file in TABLE_1[dataset].files)
