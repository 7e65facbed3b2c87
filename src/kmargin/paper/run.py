"""Run the experiments in several processes; continue a run that was interrupted."""

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
from kmargin.paper.report import OPTIONAL, write_report
from kmargin.paper.store import Key, Store, locked

# The order in files of results: of experiments, then of protocols, of data sets and of solvers.
_ORDERS = (tuple(EXPERIMENTS), PROTOCOLS, DATASETS, (*SOLVERS, *PEERS))


def run(jobs: Sequence[Job], store: Store, settings: Settings, n_jobs: int, verbose: int = 1) -> int:
    """Run the jobs that `store` has no results of, in `n_jobs` processes; return the number of fits run.

    The results of a job are added to `store` as soon as it ends. With n_jobs=1 no process is started.
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
            # Workers must end before joblib removes their temporary folder, which they still use.
            get_reusable_executor().shutdown(wait=True, kill_workers=True)
            raise
        except TerminatedWorkerError as error:
            raise RuntimeError(
                "A worker process ended unexpectedly, perhaps because memory ran out. Finished results are "
                "on disk; run again with fewer jobs."
            ) from error
    store.finish(order)
    return n_fits


def run_job(job: Job, settings: Settings) -> tuple[Job, list[Row]]:
    """Run the fits of a job on one core; return the job with a row of results for each fit."""
    with warnings.catch_warnings(), one_blas_thread:
        # the column `stalled` has the share of runs that ended early; it is empty in rows for Figure 2
        warnings.simplefilter("ignore", ConvergenceWarning)
        warm_up(beginning(job), settings)
        return job, list(EXPERIMENTS[job.experiment].run(job, settings))


def beginning(job: Job) -> Job:
    """Shorten a job, but let it run, and so compile, all functions it uses. All folds share the result.

    It has two fits, since the first may be a simple one with all features. A path of Exchange keeps its fits.
    """
    is_path = job.experiment == "crossval" and job.solver == "exchange"
    fits = [Fit(0, fit.parameter) for fit in job.fits]
    return job._replace(fits=tuple(dict.fromkeys(fits if is_path else fits[:2])))


@functools.cache
def warm_up(job: Job, settings: Settings) -> None:
    """Run a job once per process, without using its results, so that measured times exclude compilation."""
    for _ in EXPERIMENTS[job.experiment].run(job, settings):
        pass


def order(key: Key) -> Any:
    """Convert the key of a fit (its values in the columns `KEYS`) to a key that sorts the results."""
    *names, replicate, parameter = key
    places: list[Any] = []
    for name, known in zip(names, _ORDERS, strict=True):
        if name in known:
            places.append((known.index(name), ()))
        else:  # `name` is a shape of simulated data, such as "500x1000", and not in DATASETS
            places.append((len(known), shape_of(name)))
    return *places, int(replicate), float(parameter)


# For each part of the report, the experiment whose results it shows; None if it shows no such results.
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
    """The options of `kmargin reproduce`: parts of the report, data sets, solvers, protocols, settings."""

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
        has_file = (cache_folder() / TABLE_1[OPTIONAL].files[0].name).exists()
        return tuple(name for name in DATASETS if name != OPTIONAL or has_file)


def plan(request: Request) -> list[Job]:
    """List all jobs of the experiments whose results the requested parts of the report show."""
    needed = {PARTS[part] for part in request.parts}
    chosen = (request.settings, request.protocols, request.datasets, request.solvers)
    return [job for name in EXPERIMENTS if name in needed for job in EXPERIMENTS[name].jobs(*chosen)]


def reproduce(request: Request, out: Path, *, n_jobs: int = 1, verbose: int = 1) -> Path:
    """Run the jobs that the folder `out` has no results of; write tables and a page, return its path."""
    settings = request.settings
    jobs = plan(request)
    for dataset in {job.dataset for job in jobs} & {*TABLE_1}:  # a missing file is an error before any fit
        protocol.read(dataset, request.protocols[0], settings.seed)
    with locked(out):
        run(jobs, Store(out, settings.to_dict(), request.command), settings, n_jobs, verbose)
        return write_report(out, request.parts, settings)


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"There is no {what} {name!r}. Use {', '.join(known)}.")
