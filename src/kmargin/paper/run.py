"""The experiments run in several processes; a run that was interrupted continues."""

import functools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.exceptions import ConvergenceWarning

from kmargin.core.linalg import one_blas_thread
from kmargin.datasets import TABLE_1, cache_folder
from kmargin.fitting.progress import progress_bar
from kmargin.paper import protocol
from kmargin.paper.experiments import EXPERIMENTS, Row, shape_of
from kmargin.paper.protocol import DATASETS, PEERS, PROTOCOLS, QUICK, SHIPPED, SOLVERS, Fit, Job, Settings
from kmargin.paper.report import write_report
from kmargin.paper.store import Key, Store, locked

_ORDERS = (tuple(EXPERIMENTS), PROTOCOLS, DATASETS, (*SOLVERS, *PEERS))


def run(jobs: Sequence[Job], store: Store, settings: Settings, n_jobs: int, verbose: int = 1) -> int:
    """Run the jobs that are not on disk yet, in `n_jobs` processes; return the number of fits.

    A finished job is saved at once. With one process, it is this one.
    """
    waiting = [job for job in jobs if not store.has(job)]
    n_fits = sum(len(job.fits) for job in waiting)
    n_jobs = max(1, min(n_jobs, len(waiting)))
    pool = Parallel(n_jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    with progress_bar("experiments", n_fits, verbose and n_fits > 0) as bar:
        try:
            for job, rows in pool(delayed(run_job)(job, settings) for job in waiting):
                store.append(job, rows)
                bar.advance(len(rows))
        except KeyboardInterrupt:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)  # before its folder is removed
            raise
        except TerminatedWorkerError as error:
            raise RuntimeError(
                "A worker process ended unexpectedly, perhaps because memory ran out. Finished results are "
                "on disk; run again with fewer jobs."
            ) from error
    store.finish(order)
    return n_fits


def run_job(job: Job, settings: Settings) -> tuple[Job, list[Row]]:
    """Run the fits of a job on one core."""
    with warnings.catch_warnings(), one_blas_thread:
        warnings.simplefilter("ignore", ConvergenceWarning)  # each row records how well it converged
        warm_up(beginning(job), settings)
        return job, list(EXPERIMENTS[job.experiment].run(job, settings))


def beginning(job: Job) -> Job:
    """The first fits of a job, which call every function that the job needs; the same for all folds.

    The exchange needs its whole path. MM and SD need two fits, since they begin with all features.
    """
    is_path = job.experiment == "crossval" and job.solver == "exchange"
    fits = [Fit(0, fit.parameter) for fit in job.fits]
    return job._replace(fits=tuple(dict.fromkeys(fits if is_path else fits[:2])))


@functools.cache
def warm_up(job: Job, settings: Settings) -> None:
    """Run a job once in a process and discard the results, so that no time includes compilation."""
    for _ in EXPERIMENTS[job.experiment].run(job, settings):
        pass


def order(key: Key) -> Any:
    """The sort key of a row: experiment, protocol, data set, solver, replicate, parameter."""
    *names, replicate, parameter = key
    places: list[Any] = []
    for name, known in zip(names, _ORDERS, strict=True):
        if name in known:
            places.append((known.index(name), ()))
        else:  # a simulated shape
            places.append((len(known), shape_of(name)))
    return *places, int(replicate), float(parameter)


# the experiment that each part of the page needs; the supplement's figures show data alone
PARTS: dict[str, str | None] = {
    "descent": None,
    "figure1": "sensitivity",
    "figure2": "recovery",
    "table2": "crossval",
    "table3": "crossval",
    "figure3": "crossval",
    "table4": "crossval",
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


def plan(request: Request) -> list[Job]:
    """All jobs, one experiment after the other."""
    needed = {PARTS[part] for part in request.parts}
    chosen = (request.settings, request.protocols, request.datasets, request.solvers)
    return [job for name in EXPERIMENTS if name in needed for job in EXPERIMENTS[name].jobs(*chosen)]


def reproduce(request: Request, out: Path, *, n_jobs: int = 1, verbose: int = 1) -> Path:
    """Run what is not in the folder `out` yet, write tables and report, and return the report's path."""
    settings = request.settings
    jobs = plan(request)
    for dataset in {job.dataset for job in jobs} & {*TABLE_1}:  # a missing file stops a run at once
        protocol.read(dataset, request.protocols[0], settings.seed)
    with locked(out):
        run(jobs, Store(out, settings.to_dict(), request.command), settings, n_jobs, verbose)
        return write_report(out, request.parts, settings)


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"There is no {what} {name!r}. Use {', '.join(known)}.")


def _is_cached(dataset: str) -> bool:
    return all((cache_folder() / file.name).exists() for file in TABLE_1[dataset].files)
