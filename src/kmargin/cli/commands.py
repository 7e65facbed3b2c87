"""The commands fit, predict, path and stability."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from kmargin.cli import terminal
from kmargin.cli.options import (
    ColumnOptions,
    Data,
    FittingOptions,
    ReadingOptions,
    option,
    parse_ks,
    parse_number,
    parse_numbers,
    with_options,
)
from kmargin.cli.terminal import plainly, print_whole, say, show_notes, show_warnings, tell
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.report.frames import new_prediction_frame, stability_frame, step_frame
from kmargin.report.page import check_file, check_folder, csv_text, plot_steps, write_frame, write_results
from kmargin.report.text import percent
from kmargin.tables import model_file
from kmargin.tables.analysis import Plan, analyse, measure_stability, trace
from kmargin.tables.columns import to_text, to_texts
from kmargin.tables.dataset import spelling
from kmargin.tables.read import PACKED, Table
from kmargin.tables.request import count_features

SCORING = "Any scikit-learn score for classification."
PROBA = "Add the probability of each class to the predictions."


@dataclass(frozen=True)
class FitOptions:
    """How `kmargin fit` chooses a model, and where it writes."""

    k: int | None = option(
        "Fix the number of features (or points); one more and one fewer are scored for comparison."
    )
    ks: str | None = option("Values of k to try, such as 1,2,5.")
    C: str | None = option(
        "Values of C to try; default 0.01 to 10, extended if the best is at the edge. Default of the "
        "estimators: 1.",
        "--C",
        "-C",
    )
    select: str = option(
        "best: the highest score; 1se: the smallest k within a standard error of it; tolerance: within "
        "--tolerance of it. Default of the estimators: best, as in scikit-learn.",
        default="1se",
    )
    tolerance: float = option("The loss of score that --select tolerance accepts.", default=0.01)
    kernel: str | None = option("rbf, poly, linear or sigmoid; k then counts training points.")
    gamma: str = option("Width of the kernel: a number, scale or auto.", default="scale")
    out: Path | None = option("Folder for the results.")
    force: bool = option("Write into a folder that holds other files.", "--force", default=False)
    cv: int = option("Number of folds.", default=5)
    repeats: int | None = option(
        "Maximum number of rounds of folds, which end when the choice is stable; default 5, or 1 with five "
        "classes or more, or 20,000 rows or more. Default of the estimators: 1, with rows in their order."
    )
    nested: bool = option(
        "Repeat the choice of k and C in outer folds (nested cross-validation), for an unbiased accuracy. In "
        "Python: honest_score.",
        default=True,
    )
    permutations: int = option("Number of searches with permuted labels, for a p-value.", default=0)
    pairs: int = option("Number of pairs of random halves for selection frequencies; 0 for none.", default=25)
    proba: bool = option(PROBA, "--proba", default=False)
    scoring: str = option(SCORING, default="accuracy")

    def settings(self) -> dict[str, Any]:
        """Return these options as arguments of `Settings`."""
        if self.k is not None and self.ks is not None:
            raise InputError(f"--k {self.k} and --ks {self.ks} cannot be combined. Use one of them.")
        ks = None if self.ks is None else parse_ks(self.ks)
        if isinstance(ks, int):
            raise InputError(
                f"--ks {ks} is a single value of k, which leaves nothing to choose. Use --k {ks} to fix it, "
                f"or list several, such as --ks 1,2,{max(ks, 3)}."
            )
        plain = ("k", "kernel", "cv", "repeats", "nested", "permutations", "pairs", "proba", "scoring")
        is_name = self.gamma in ("scale", "auto")
        return {name: getattr(self, name) for name in (*plain, "select", "tolerance")} | {
            "ks": ks,
            "Cs": None if self.C is None else parse_numbers("--C", self.C),
            "gamma": self.gamma if is_name else parse_number("--gamma", self.gamma),
        }


@plainly
@with_options
def fit_command(
    data: Data, columns: ColumnOptions, reading: ReadingOptions, fitting: FittingOptions, options: FitOptions
) -> None:
    """Choose k and C by cross-validation; write the model, tables and a report.

    Example: kmargin fit data.csv --target diagnosis
    """
    folder = options.out or Path(f"{table_name(data)}-kmargin")
    check_folder(folder, options.force)
    settings = fitting.settings(columns, **options.settings())
    analysis = analyse(columns.prepare(data, reading), settings)
    written = write_results(analysis, folder, data.name)
    if not fitting.quiet:
        terminal.show_analysis(analysis)
        tell(f"\nWritten to {folder}: {', '.join(path.name for path in written)}")


def table_name(data: Path) -> str:
    """Return the name of a file without its extensions."""
    name = Path(data.stem if data.suffix.lower() in PACKED else data.name)
    return name.name.removesuffix(name.suffix)


@plainly
@with_options
def predict_command(
    model: Annotated[Path, typer.Argument(help="The folder that `kmargin fit` wrote, or its model.kmargin.")],
    data: Data,
    reading: ReadingOptions,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; printed by default.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help=PROBA)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no summary.")] = False,
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
    actual = frame[loaded.target] if loaded.target in frame.columns else None
    result = new_prediction_frame(
        loaded,
        prediction.classes,
        prediction.decisions,
        ids,
        None if actual is None else actual.to_numpy(),
        prediction.probabilities if proba else None,
    )
    if out is None:
        print_whole(csv_text(result))
    else:
        write_frame(result, out)
    if quiet:
        return
    for note in (*table.notes, *prediction.notes):
        say(f"Note: {note}")
    n_seen, n_rows = round(loaded.share_seen(table) * len(frame)), len(frame)
    if n_seen:
        which = f"{n_seen:,} of these {n_rows:,} rows" if n_seen < n_rows else f"all {n_rows:,} of these rows"
        say(
            f"Note: the model was fitted to {which if n_rows > 1 else 'this row'}: its accuracy on training "
            "rows is too optimistic. `kmargin fit` reports the accuracy on held-out rows."
        )
    known = {*loaded.encoding.columns, loaded.target, id}
    ignored = [name for name in frame.columns if name not in known]
    if ignored:
        say(f"Note: {count(len(ignored), 'column')} ignored: {listing(ignored)}.")
    if actual is not None and actual.notna().any():
        say(_describe_agreement(actual, prediction.classes))
    if out is not None:
        say(f"Written to {out}: {count(len(result), 'row')}.")


def _find_ids(table: Table, id: str | None, has_labels: bool) -> np.ndarray | None:
    """Return the names of rows: of --id, of the model's id column, or of the table itself."""
    columns = table.frame.columns
    if id in columns:
        return table.frame[id].to_numpy()
    if id is not None and not has_labels:
        raise InputError(f"--id: the table has no column {id!r}. {nearest(id, columns)}")
    return None if table.row_names is None else table.row_names.to_numpy()


def _describe_agreement(actual: pd.Series, predicted: np.ndarray) -> str:
    """Return a sentence with the share of predictions that agree with the target, where it has a value."""
    known = actual.notna().to_numpy()
    expected = [spelling(text) for text in to_texts(actual[known])]
    n_right = sum(spelling(to_text(p)) == e for p, e in zip(predicted[known], expected, strict=True))
    rows = count(len(expected), "row")
    return f"{percent(n_right / len(expected))} of {rows} agree with column {actual.name!r}."


DEFAULT_KS = "20"


@dataclass(frozen=True)
class PathOptions:
    """Options of `kmargin path`: the values of k, and the files for its table and plot."""

    ks: str = option("The number of values of k, or the values, such as 1,2,5.", default=DEFAULT_KS)
    C: str = option("Inverse strength of the ridge.", "--C", "-C", default="1")
    out: Path | None = option("CSV file to write.")
    plot: Path | None = option("Plot of the scores to write: .svg, .png or .pdf.")
    cv: int = option("Number of folds; 0 for no cross-validation.", default=5)
    scoring: str = option(SCORING, default="accuracy")


@plainly
@with_options
def path_command(
    data: Data, columns: ColumnOptions, reading: ReadingOptions, fitting: FittingOptions, options: PathOptions
) -> None:
    """Print which features enter and leave as k grows, and the score for each k."""
    ks, out, plot, scoring = options.ks, options.out, options.plot, options.scoring
    for file, endings in ((out, (".csv",)), (plot, (".svg", ".png", ".pdf"))):
        if file is not None:
            check_file(file, endings)
    Cs = [parse_number("--C", options.C)]
    settings = fitting.settings(columns, ks=parse_ks(ks), Cs=Cs, cv=options.cv or 2, scoring=scoring)
    dataset = columns.prepare(data, reading)
    steps = trace(dataset, settings, cross_validate=options.cv > 0)
    counted = count_features(dataset.encoding, settings.columns).things
    if fitting.each_machine and len(np.unique(dataset.y)) > 2:
        counted += " of each binary classifier"
    terminal.show_steps(steps, scoring, counted)
    if not fitting.quiet:
        show_warnings(dataset.warnings)
        notes = list(dataset.notes)
        if ks != DEFAULT_KS and "," not in ks:
            notes.append(f"--ks {ks} asks for {ks} values of k. For k = {ks} alone, add a comma: --ks {ks},")
        show_notes(notes)
    if out is not None:
        write_frame(step_frame(steps, scoring), out)
    if plot is not None:
        plot_steps(steps, plot, counted, scoring)
    for file in (out, plot):
        if file is not None and not fitting.quiet:
            say(f"Written to {file}.")


@dataclass(frozen=True)
class StabilityOptions:
    """The plan of `kmargin stability`, and where it writes."""

    k: int | None = option("Number of features selected on each half; default 10.")
    C: float | None = option(
        "Inverse strength of the ridge; the default depends on the numbers of rows and features.", "--C", "-C"
    )
    pairs: int = option("Number of pairs of halves.", default=50)
    threshold: float | None = option(
        "Instead of --max-false: the selection frequency from which on a feature is stable."
    )
    max_false: float | None = option(
        "Acceptable expected number of stable features selected by chance; default 1. It determines the "
        "selection frequency from which on a feature is stable."
    )
    out: Path | None = option("CSV file to write, with every feature.")


@plainly
@with_options
def stability_command(
    data: Data,
    columns: ColumnOptions,
    reading: ReadingOptions,
    fitting: FittingOptions,
    options: StabilityOptions,
) -> None:
    """Report which features are selected consistently on random halves of the rows.

    Example: kmargin stability data.csv --target diagnosis --out stability.csv
    """
    out, threshold, max_false = options.out, options.threshold, options.max_false
    if out is not None:
        check_file(out, (".csv",))
    if threshold is not None and max_false is not None:
        raise InputError(
            f"--threshold {threshold:g} and --max-false {max_false:g} cannot be combined. Use one of them."
        )
    settings = fitting.settings(columns)
    dataset = columns.prepare(data, reading)
    plan = Plan(options.k, options.C, options.pairs, threshold, 1.0 if max_false is None else max_false)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stability = measure_stability(dataset, settings, plan)
    if out is not None:
        write_frame(stability_frame(stability), out)
    if fitting.quiet:
        return
    terminal.show_stability(stability)
    show_warnings(dataset.warnings)
    for note in (*dataset.notes, *(str(warning.message) for warning in caught)):
        say(f"Note: {note}")
    if out is not None:
        say(f"Written to {out}: {stability.selection.n_features_in_:,} features.")
