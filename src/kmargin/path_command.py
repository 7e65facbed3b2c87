"""The command `kmargin path`: which features come and go as k grows."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from kmargin.option_groups import parse_ks, parse_number, with_shared_options
from kmargin.options import ColumnOptions, Data, Jobs, MachineOptions, Quiet, ReadingOptions, Scoring, Seed
from kmargin.tables.analyse import trace
from kmargin.tables.column_request import count_features
from kmargin.tables.results import step_frame
from kmargin.tables.write import check_file, plot_steps, write_frame
from kmargin.terminal import plainly, say, show_notes, show_steps, show_warnings

DEFAULT_KS = "20"


@plainly
@with_shared_options
def path_command(
    data: Data,
    columns: ColumnOptions,
    reading: ReadingOptions,
    machines: MachineOptions,
    ks: Annotated[
        str, typer.Option(help="The number of values of k, or the values, such as 1,2,5.")
    ] = DEFAULT_KS,
    C: Annotated[str, typer.Option("--C", "-C", help="Inverse strength of the ridge.")] = "1",
    out: Annotated[Path | None, typer.Option(help="CSV file to write.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot of the scores to write: .svg, .png or .pdf.")
    ] = None,
    cv: Annotated[int, typer.Option(help="Number of folds; 0 for no cross-validation.")] = 5,
    scoring: Scoring = "accuracy",
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Print which features enter and leave as k grows, and the score for each k."""
    for file, endings in ((out, (".csv",)), (plot, (".svg", ".png", ".pdf"))):
        if file is not None:
            check_file(file, endings)
    settings = machines.settings(
        columns,
        quiet,
        ks=parse_ks(ks),
        Cs=[parse_number("--C", C)],
        cv=cv or 2,
        scoring=scoring,
        seed=seed,
        jobs=jobs,
    )
    dataset = columns.prepare(data, reading)
    steps = trace(dataset, settings, cross_validate=cv > 0)
    counted = count_features(dataset.encoding, settings.columns).things
    counted += " of each binary classifier" if machines.each_machine and len(np.unique(dataset.y)) > 2 else ""
    show_steps(steps, scoring, counted)
    if not quiet:
        show_warnings(dataset.warnings)
        show_notes((*dataset.notes, *explain_count(ks)))
    if out is not None:
        write_frame(step_frame(steps, scoring), out)
    if plot is not None:
        plot_steps(steps, plot, counted, scoring)
    for file in (out, plot):
        if file is not None and not quiet:
            say(f"Written to {file}.")


def explain_count(ks: str) -> list[str]:
    """A note where --ks is a single number, which may have been meant as a value of k."""
    if ks == DEFAULT_KS or "," in ks:
        return []
    return [f"--ks {ks} asks for {ks} values of k. For k = {ks} alone, add a comma: --ks {ks},"]
