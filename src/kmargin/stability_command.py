"""The command `kmargin stability`: which features come back on random halves of the rows."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from kmargin.errors import InputError
from kmargin.option_groups import with_shared_options
from kmargin.options import ColumnOptions, Data, Jobs, MachineOptions, Quiet, ReadingOptions
from kmargin.tables.stability import (
    Plan,
    Stability,
    chance_text,
    measure_stability,
    plan_text,
    stability_frame,
    stability_headline,
)
from kmargin.tables.write import check_file, write_frame
from kmargin.terminal import MOST_ROWS, console, make_grid, plainly, say, show_warnings, shown

RUNNERS_UP = 5


@plainly
@with_shared_options
def stability_command(
    data: Data,
    columns: ColumnOptions,
    reading: ReadingOptions,
    machines: MachineOptions,
    k: Annotated[
        int | None, typer.Option(help="Number of features selected on each half; default 10.")
    ] = None,
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            "-C",
            help="Inverse strength of the ridge; the default depends on the numbers of rows and features.",
        ),
    ] = None,
    pairs: Annotated[int, typer.Option(help="Number of pairs of halves.")] = 50,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Instead of --max-false: the selection frequency from which on a feature is stable."
        ),
    ] = None,
    max_false: Annotated[
        float | None,
        typer.Option(
            help="Acceptable expected number of stable features selected by chance; default 1. It determines "
            "the selection frequency from which on a feature is stable."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write, with every feature.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed for the halves.")] = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Report which features are selected consistently on random halves of the rows.

    Example: kmargin stability data.csv --target diagnosis --out stability.csv
    """
    if out is not None:
        check_file(out, (".csv",))
    if threshold is not None and max_false is not None:
        raise InputError(
            f"--threshold {threshold:g} and --max-false {max_false:g} cannot be combined. Use one of them."
        )
    settings = machines.settings(columns, quiet, seed=seed, jobs=jobs)
    dataset = columns.prepare(data, reading)
    plan = Plan(k, C, pairs, threshold, 1.0 if max_false is None else max_false)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stability = measure_stability(dataset, settings, plan)
    if out is not None:
        write_frame(stability_frame(stability), out)
    if quiet:
        return
    show_stability(stability)
    show_warnings(dataset.warnings)
    for note in (*dataset.notes, *(str(warning.message) for warning in caught)):
        say(f"Note: {note}")
    if out is not None:
        say(f"Written to {out}: {stability.selection.n_features_in_:,} features.")


def show_stability(stability: Stability) -> None:
    """The stable features with their frequencies, some that came close, and the bounds in words."""
    terminal = console()
    terminal.print(f"\n[bold]{shown(stability_headline(stability))}[/bold]\n")
    frame = stability_frame(stability)
    counted = stability.counted
    n_stable = int(frame["stable"].sum())
    group = [counted.things.removesuffix("s")] if counted.is_grouped else []
    grid = make_grid("feature", *group, "halves>", "")
    shown_rows = frame.head(min(n_stable, MOST_ROWS) + RUNNERS_UP if n_stable <= MOST_ROWS else MOST_ROWS)
    for row in shown_rows.itertuples(index=False):
        state = "always in" if row.always_in else "stable" if row.stable else ""
        cells = [row.feature, *([row[1]] if group else []), f"{100 * row.frequency:.0f} %", state]
        grid.add_row(*map(shown, cells), style=None if row.stable else "dim")
    if n_stable > MOST_ROWS:
        grid.add_row(f"... {n_stable - MOST_ROWS} more")
    terminal.print(grid)
    if stability.stable:
        terminal.print(shown(chance_text(stability)))
    terminal.print(shown(plan_text(stability)))
