"""The commands `reproduce`, which runs the paper's experiments, and `data`, which gets their data sets."""

import os
import re
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from kmargin.cli.terminal import say, show_grid
from kmargin.core.validation import InputError, blame_input
from kmargin.datasets import TABLE_1, DatasetError, cache_folder, load
from kmargin.paper.protocol import PROTOCOLS, SHIPPED, Settings
from kmargin.paper.report import main_results
from kmargin.paper.run import PARTS, Request, reproduce
from kmargin.paper.store import StoreError
from kmargin.paper.tables import NAMES
from kmargin.report.page import check_file, write_frame

app, data_app = typer.Typer(), typer.Typer(no_args_is_help=True)
app.add_typer(data_app, name="data", help="The data sets of the paper's Table 1.")


@app.command("reproduce")
def reproduce_command(
    part: Annotated[str, typer.Argument(help=f"all, or one of {', '.join(PARTS)}.")] = "all",
    datasets: Annotated[str, typer.Option(help="Data sets, as iris,splice.")] = "",
    solvers: Annotated[str, typer.Option(help="Solvers, as mm,sd,exchange; also l2r,l1r,svc.")] = "",
    protocol: Annotated[str, typer.Option(help=f"How rows are split: {', '.join(PROTOCOLS)}.")] = "paper",
    quick: Annotated[bool, typer.Option("--quick", help="A small version: minutes, not an hour.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Number of processes; default: one per core.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of simulated data, starts and shuffles.")] = Settings.seed,
    out: Annotated[Path | None, typer.Option(help="Folder for rows, tables and report.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run the paper's experiments and show our numbers beside the printed ones.

    Results are saved path by path: to continue a run that was stopped, give the same command again.

    Example: kmargin reproduce table3 --datasets iris,splice --solvers mm,sd --jobs 2
    """
    folder = out or Path("kmargin-paper-quick" if quick else "kmargin-paper")
    lists = {"datasets": datasets, "solvers": solvers, "protocols": protocol}
    chosen = {name: re.findall(r"[^,\s]+", text) for name, text in lists.items()}
    with blame_input():
        request = Request(part, **chosen, quick=quick, seed=seed)
    report = folder / "report.html"
    say(f"{request.command}: the report will be {report.absolute()}")
    say(f"Data: {', '.join(request.datasets)}. If you stop the run, the same command continues it.")
    say("First every solver runs once without being timed, so that no time includes compilation.")
    try:
        reproduce(request, folder, n_jobs=jobs or os.cpu_count() or 1, verbose=int(not quiet))
    except (DatasetError, StoreError) as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        say(f"Stopped. What was finished is in {folder}; the same command continues from there.")
        raise typer.Exit(130) from None
    if not quiet and (folder / "rows.csv").exists():
        show_results(folder, request.settings)
    typer.echo(f"Report: {report}")


def show_results(folder: Path, settings: Settings) -> None:
    """Print the chosen sparsity, test accuracy (ours, the paper's) and time of each solver; conclusions."""
    verdict = main_results(folder, settings)
    if not verdict.lines:
        return
    rows = []
    for line in verdict.lines:
        test = line.entries["test"]
        printed = "" if test.printed is None else f"{test.printed:.2f}{' ≠' if test.differs else ''}"
        numbers = (f"{line.parameter.value:g}", f"{test.value:.2f}", printed)
        rows.append([line.dataset, NAMES[line.solver], *numbers, f"{line.entries['seconds'].value:.3g}"])
    show_grid(["data set", "solver", "s (%)>", "test (%)>", "paper's test (%)>", "path (s)>"], rows)
    for sentence in verdict.sentences():
        typer.echo(sentence.replace("`", ""))
    typer.echo("≠: differs from the paper by more than noise. s: the share of features left out.")


@data_app.command("list")
def list_data() -> None:
    """List the data sets, and whether they are on this machine."""
    rows = []
    for name, entry in TABLE_1.items():
        where = "to be downloaded" if entry.files else "simulated"
        if name in SHIPPED:
            where = "comes with kmargin"
        elif entry.files and all((cache_folder() / file.name).exists() for file in entry.files):
            where = "in the cache"
        rows.append([name, entry.n_samples, entry.n_features, entry.n_classes, entry.scaling, where])
    show_grid(["name", "rows>", "features>", "classes>", "scaling", "where"], rows)
    say(f"Cache: {cache_folder()} (set KMARGIN_DATA to use another folder)")


@data_app.command("get")
def get_data(
    name: Annotated[str, typer.Argument(help="A name from `kmargin data list`.")],
    out: Annotated[Path | None, typer.Option(help="CSV to write; NAME.csv if not given.")] = None,
    seed: Annotated[int, typer.Option(help="For simulated data.")] = 0,
) -> None:
    """Download a data set, check it, and write it as a CSV for `kmargin fit`."""
    if name not in TABLE_1:
        raise InputError(f"There is no data set {name!r}. Use {', '.join(TABLE_1)}.")
    path = out or Path(f"{name}.csv")
    check_file(path, (".csv",))
    try:
        bunch = load(name, random_state=seed)
    except (DatasetError, ImportError) as error:
        raise InputError(str(error)) from error
    frame = pd.DataFrame(bunch.data, columns=list(bunch.feature_names))
    frame["class"] = bunch.target
    write_frame(frame, path)
    typer.echo(f"Written to {path}: {len(frame):,} rows. Next: kmargin fit {path} --target class")
