"""The commands fit, predict, path and stability."""

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from kmargin.cli.options import (
    ColumnOptions,
    Data,
    Jobs,
    MachineOptions,
    Proba,
    Quiet,
    ReadingOptions,
    Scoring,
    Seed,
    parse_ks,
    parse_number,
    parse_numbers,
    with_shared_options,
)
from kmargin.cli.terminal import (
    MOST_ROWS,
    console,
    make_grid,
    plainly,
    print_whole,
    say,
    show_analysis,
    show_notes,
    show_steps,
    show_warnings,
    shown,
    tell,
)
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.report.frames import new_prediction_frame, stability_frame, step_frame
from kmargin.report.page import check_file, check_folder, csv_text, plot_steps, write_frame, write_results
from kmargin.report.text import chance_text, percent, plan_text, stability_headline
from kmargin.tables import model_file
from kmargin.tables.analysis import Plan, Stability, analyse, measure_stability, trace
from kmargin.tables.columns import text_of, to_texts
from kmargin.tables.dataset import spelling
from kmargin.tables.dialect import packing_of
from kmargin.tables.read import Table
from kmargin.tables.request import count_features


@plainly
@with_shared_options
def fit_command(
    data: Data,
    columns: ColumnOptions,
    reading: ReadingOptions,
    machines: MachineOptions,
    k: Annotated[
        int | None,
        typer.Option(
            help="Fix the number of features (or points); one more and one fewer are scored for comparison."
        ),
    ] = None,
    ks: Annotated[str | None, typer.Option(help="Values of k to try, such as 1,2,5.")] = None,
    C: Annotated[
        str | None,
        typer.Option(
            "--C",
            "-C",
            help="Values of C to try; default 0.01 to 10, extended if the best is at the edge. Default of "
            "the estimators: 1.",
        ),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            help="best: the highest score; 1se: the smallest k within a standard error of it; tolerance: "
            "within --tolerance of it. Default of the estimators: best, as in scikit-learn."
        ),
    ] = "1se",
    tolerance: Annotated[
        float, typer.Option(help="The loss of score that --select tolerance accepts.")
    ] = 0.01,
    kernel: Annotated[
        str | None, typer.Option(help="rbf, poly, linear or sigmoid; k then counts training points.")
    ] = None,
    gamma: Annotated[str, typer.Option(help="Width of the kernel: a number, scale or auto.")] = "scale",
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that holds other files.")
    ] = False,
    cv: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of rounds of folds, which end when the choice is stable; default 5, or 1 "
            "with five classes or more, or 20,000 rows or more. Default of the estimators: 1, with rows in "
            "their order."
        ),
    ] = None,
    nested: Annotated[
        bool,
        typer.Option(
            help="Repeat the choice of k and C in outer folds (nested cross-validation), for an unbiased "
            "accuracy. In Python: honest_score."
        ),
    ] = True,
    permutations: Annotated[
        int, typer.Option(help="Number of searches with permuted labels, for a p-value.")
    ] = 0,
    pairs: Annotated[
        int, typer.Option(help="Number of pairs of random halves for selection frequencies; 0 for none.")
    ] = 25,
    proba: Proba = False,
    scoring: Scoring = "accuracy",
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Choose k and C by cross-validation; write the model, tables and a report.

    Example: kmargin fit data.csv --target diagnosis
    """
    folder = Path(f"{stem(data)}-kmargin") if out is None else out
    check_folder(folder, force)
    if k is not None and ks is not None:
        raise InputError(f"--k {k} and --ks {ks} cannot be combined. Use one of them.")
    values = None if ks is None else parse_ks(ks)
    if isinstance(values, int):
        raise InputError(
            f"--ks {values} is a single value of k, which leaves nothing to choose. Use --k {values} to fix "
            f"it, or list several, such as --ks 1,2,{max(values, 3)}."
        )
    settings = machines.settings(
        columns,
        quiet,
        k=k,
        ks=values,
        Cs=None if C is None else parse_numbers("--C", C),
        kernel=kernel,
        gamma=gamma if gamma in ("scale", "auto") else parse_number("--gamma", gamma),
        cv=cv,
        seed=seed,
        jobs=jobs,
        repeats=repeats,
        nested=nested,
        permutations=permutations,
        pairs=pairs,
        proba=proba,
        scoring=scoring,
        select=select,
        tolerance=tolerance,
    )
    dataset = columns.prepare(data, reading)
    analysis = analyse(dataset, settings)
    written = write_results(analysis, folder, data.name)
    if not quiet:
        show_analysis(analysis)
        files = ", ".join(path.name for path in written)
        tell(f"\nWritten to {folder}: {files}")


def stem(data: Path) -> str:
    """The name of a file without its endings."""
    name = data.name if packing_of(data) is None else data.stem
    return name[: -len(Path(name).suffix)] if Path(name).suffix else name


@plainly
@with_shared_options
def predict_command(
    model: Annotated[Path, typer.Argument(help="The folder that `kmargin fit` wrote, or its model.kmargin.")],
    data: Data,
    reading: ReadingOptions,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; printed by default.")] = None,
    proba: Proba = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows. Columns are found by name; if the target is there, the accuracy is reported."""
    if out is not None:
        check_file(out, (".csv",))
    loaded = model_file.load(model)
    table = reading.read(data, loaded.target, sorted(loaded.needed), all_rows=True)
    frame = table.frame
    id = loaded.id if reading.id is None and loaded.id in frame.columns else reading.id
    ids = _find_ids(table, id, reading.labels is not None)
    if proba and loaded.calibration is None:
        raise InputError(f"{model} has no probabilities. Leave out --proba, or fit the model again.")
    prediction = loaded.answer(table)
    actual = frame[loaded.target].to_numpy() if loaded.target in frame.columns else None
    known = {*loaded.encoding.columns, loaded.target, id}
    ignored = [name for name in frame.columns if name not in known]
    result = new_prediction_frame(
        loaded,
        prediction.classes,
        prediction.decisions,
        ids,
        actual,
        prediction.probabilities if proba else None,
    )
    if out is None:
        print_whole(csv_text(result))
    else:
        write_frame(result, out)
    if quiet:
        return
    notes = [*table.notes, *prediction.notes, *tell_seen(loaded.share_seen(table), len(result))]
    for note in notes:
        say(f"Note: {note}")
    if ignored:
        say(f"Note: {count(len(ignored), 'column')} ignored: {listing(ignored)}.")
    if actual is not None and (told := share_right(frame[loaded.target], prediction.classes)):
        say(told)
    if out is not None:
        say(f"Written to {out}: {count(len(result), 'row')}.")


def tell_seen(share: float, n_rows: int) -> list[str]:
    """A word of caution about rows that the model was fitted to."""
    n_seen = round(share * n_rows)
    if n_seen == 0:
        return []
    which = f"all {n_rows:,} of these rows" if n_seen == n_rows else f"{n_seen:,} of these {n_rows:,} rows"
    which = "this row" if n_rows == 1 else which
    return [
        f"the model was fitted to {which}: its accuracy on training rows is too optimistic. `kmargin fit` "
        "reports the accuracy on held-out rows."
    ]


def _find_ids(table: Table, id: str | None, has_labels: bool) -> np.ndarray | None:
    """What rows are called: by --id, by the id of the training rows, or by the table itself."""
    columns = table.frame.columns
    if id in columns:
        return table.frame[id].to_numpy()
    if id is not None and not has_labels:
        raise InputError(f"--id: the table has no column {id!r}. {nearest(id, columns)}")
    return None if table.row_names is None else table.row_names.to_numpy()


def share_right(actual: pd.Series, predicted: np.ndarray) -> str:
    """How many predictions agree with a column, rows that it leaves open not counted."""
    known = actual.notna().to_numpy()
    said = np.array([spelling(text_of(value)) for value in predicted[known]])
    right = np.array([spelling(text) for text in to_texts(actual[known])]) == said
    rows = count(len(right), "row")
    return f"{percent(right.mean())} of {rows} agree with column {actual.name!r}." if len(right) else ""


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
    """Print the stable features with their frequencies, runners-up, and the bounds on false selections."""
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
