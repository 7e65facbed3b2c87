"""From the name of a table or figure to rows on disk and a report."""

from collections.abc import Sequence
from pathlib import Path

from kmargin.datasets import TABLE_1, cache_folder
from kmargin.experiments import crossval, protocol, recovery, sensitivity
from kmargin.experiments.report import write_report
from kmargin.experiments.runner import plan, run
from kmargin.experiments.settings import DATASETS, PEERS, PROTOCOLS, QUICK, SHIPPED, SOLVERS, Settings
from kmargin.experiments.store import Store

# the experiment that each part of the page needs; the supplement's figures only show data
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
    """What to reproduce, with every default filled in."""

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
    """Run what is not in the folder `out` yet; write its tables and its report, whose path is returned."""
    experiments = {PARTS[part] for part in request.parts} - {None}
    chains = plan(
        [str(name) for name in experiments],
        request.settings,
        request.protocols,
        request.datasets,
        request.solvers,
    )
    for dataset in {chain.dataset for chain in chains} & {*TABLE_1}:  # found missing before hours of work
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
