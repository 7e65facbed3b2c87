"""The commands fit, predict, path and stability, and their options, each declared once."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import typer

from kmargin.cli import terminal
from kmargin.cli.terminal import plainly, print_whole, say, show_notes, show_warnings, tell
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.report.frames import new_prediction_frame, stability_frame, step_frame
from kmargin.report.page import check_file, check_folder, csv_text, plot_steps, write_frame, write_results
from kmargin.report.text import percent
from kmargin.tables import model_file
from kmargin.tables.analysis import analyse, measure_stability, trace
from kmargin.tables.columns import ColumnRequest, count_features, read_groups, to_text, to_texts
from kmargin.tables.dataset import Dataset, Roles, join_labels, prepare, spelling
from kmargin.tables.read import PACKED, Reading, Table, read_table
from kmargin.tables.search import Settings


def option(help: str, *names: str, default: Any = None, panel: str | None = None) -> Any:
    """Return a dataclass field that `with_options` makes an option, under a heading of the help."""
    declared = typer.Option(*names, help=help, rich_help_panel=panel)
    return field(default=default, metadata={"option": declared})


file_option = functools.partial(option, panel="Reading the file")
column_option = functools.partial(option, panel="Roles of columns")
count_option = functools.partial(option, panel="What k counts")
fitting_option = functools.partial(option, panel="Fitting")


NUMBER_TYPES = {int: "a whole number", float: "a number"}


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command for typer, with the fields of parameters that are dataclasses as options.

    Numbers are parsed here, so that the error has the words of all others.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameter = parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
        if name not in groups:
            parameters.append(parameter)
            continue
        kinds = get_type_hints(groups[name])
        for entry in fields(groups[name]):
            kind = Annotated[kinds[entry.name], entry.metadata["option"]]  # type: ignore[valid-type, name-defined]
            parameters.append(parameter.replace(name=entry.name, default=entry.default, annotation=kind))
    numeric: dict[str, type] = {}
    for at, parameter in enumerate(parameters):
        kind, declared = get_args(parameter.annotation)
        for number in {*get_args(kind), kind} & set(NUMBER_TYPES):
            numeric[parameter.name], declared.metavar = number, "INTEGER" if number is int else "NUMBER"
            default = None if parameter.default is None else str(parameter.default)
            parameters[at] = parameter.replace(default=default, annotation=Annotated[str | None, declared])

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, kind in numeric.items():
            if given[name] is not None:
                given[name] = parse_number(f"--{name.replace('_', '-')}", given[name], kind)
        for name, group in groups.items():
            given[name] = group(**{entry.name: given.pop(entry.name) for entry in fields(group)})
        return command(**given)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def parse_number(option: str, text: str, kind: type = float) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        example = "3" if kind is int else "0.5"
        raise InputError(
            f"{option} {text} is not {NUMBER_TYPES[kind]}. Write one, such as {option} {example}."
        ) from error


def parse_ks(text: str) -> int | list[int]:
    """Return a list of values of k, or the number of values if the text has no comma."""
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--ks {text} is not a list of values of k. Write it as 1,2,5.") from error
    return values if "," in text else values[0] if values else 0


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Excel (xlsx), Parquet, svmlight or npz, by its file extension; may be compressed "
        "(gz, bz2, xz, zst, zip)."
    ),
]


@dataclass(frozen=True)
class ReadingOptions:
    """How a file is read as a table."""

    sep: str | None = file_option("Column separator, such as ; or tab; detected by default.")
    decimal: str | None = file_option("Decimal mark, . or a comma; detected by default.")
    encoding: str | None = file_option("Text encoding, such as latin-1; detected by default.")
    transpose: bool = file_option(
        "Features are in rows, named by the first column.", "--transpose", default=False
    )
    labels: Path | None = file_option(
        "A file with the target of each row, joined by the row names (see --id)."
    )
    id: str | None = column_option(
        "A column that names the rows: not a feature, copied to the predictions; --labels joins on it."
    )

    def read(self, data: Path, target: str | None, wanted: list[str], all_rows: bool = False) -> Table:
        """Return the table with its labels; `wanted` are other columns that the labels may have."""
        table = read_table(data, Reading(self.sep, self.decimal, self.encoding, self.transpose))
        if self.labels is None:
            return table
        return join_labels(table, self.labels, self.id, target, wanted, all_rows)


@dataclass(frozen=True)
class ColumnOptions:
    """The roles of columns, and what k counts."""

    target: str | None = column_option("The column to predict.")
    drop: list[str] | None = column_option("A column to leave out; may be repeated.")
    feature: list[str] | None = column_option(
        "A column to use as a feature although it seems to name the rows; may be repeated."
    )
    weights: str | None = column_option("A column with the weight of each row.")
    rows_grouped_by: str | None = column_option(
        "A column such as the patient: rows with the same value stay together in folds and halves."
    )
    encode: str | None = column_option(
        "onehot: a feature for each value of a text column; k then counts columns."
    )
    impute: str | None = column_option(
        "median: replace missing numbers by medians; missing text is encoded as none of the values."
    )
    keep: list[str] | None = count_option(
        "A column that is always in the model and counts in k; may be repeated."
    )
    avoid: list[str] | None = count_option("A column that is never in the model; may be repeated.")
    sign: list[str] | None = count_option(
        "age=+ or age=-: the weight may only be positive, or only negative; may be repeated."
    )
    groups: Path | None = count_option(
        "A table with columns feature and group; k then counts groups, and other features singly."
    )
    group_by: str | None = count_option(
        "k counts groups of columns with the same text before this separator: with --group-by _ the columns "
        "site_a and site_b form the group site."
    )
    each_value: bool = count_option(
        "With --encode onehot: k counts single values, not whole columns.", "--each-value", default=False
    )

    @property
    def request(self) -> ColumnRequest:
        groups = None if self.groups is None else read_groups(self.groups)
        lists = (self.keep or (), self.avoid or (), self.sign or ())
        return ColumnRequest(*lists, groups, self.group_by, self.each_value)

    def prepare(self, data: Path, reading: ReadingOptions) -> Dataset:
        """Read a file and prepare it as these options say."""
        mentioned = [*(self.keep or ()), *(text.rpartition("=")[0] for text in self.sign or ())]
        named = [self.weights, self.rows_grouped_by, *(self.feature or ()), *mentioned]
        table = reading.read(data, self.target, [name for name in named if name is not None])
        id = reading.id
        if reading.labels is not None and id not in table.frame.columns:
            id = None  # a column of the labels, which has become the names of the table's rows
        roles = Roles(
            target=self.target,
            id=id,
            weights=self.weights,
            drop=self.drop or (),
            encode=self.encode,
            impute=self.impute,
            grouped_by=self.rows_grouped_by,
            features=self.feature or (),
            mentioned=mentioned,
        )
        return prepare(table, roles)


@dataclass(frozen=True)
class FittingOptions:
    """How models are fitted."""

    standardize: bool = fitting_option(
        "Scale features to mean 0 and standard deviation 1. Default of the estimators: off.", default=True
    )
    balanced: bool = fitting_option("Give all classes the same total weight.", default=False)
    multi_class: str = fitting_option(
        "ovo: a binary classifier per pair of classes; ovr: one per class.", default="ovo"
    )
    each_machine: bool = fitting_option(
        "With several classes: k for each binary classifier, not for the whole model.",
        "--each-machine",
        default=False,
    )

    seed: int = option("Random seed for the folds and halves.", default=0)
    jobs: int | None = option("Number of fits in parallel; -1 for all cores.")
    quiet: bool = option("No progress, no notes, no summary.", "--quiet", "-q", default=False)

    def settings(self, columns: ColumnOptions, **more: Any) -> Settings:
        """Return the settings of an analysis with these options."""
        return Settings(
            standardize=self.standardize,
            balanced=self.balanced,
            multi_class=self.multi_class,
            shared=not self.each_machine,
            columns=columns.request,
            seed=self.seed,
            jobs=self.jobs,
            verbose=int(not self.quiet and sys.stderr.isatty()),
            **more,
        )


# The commands

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
        values = {name: value for name, value in vars(self).items() if name not in ("C", "out", "force")}
        values |= {"ks": ks}
        if self.C is not None:
            values["Cs"] = [parse_number("--C", part) for part in self.C.split(",")]
        if self.gamma not in ("scale", "auto"):
            values["gamma"] = parse_number("--gamma", self.gamma)
        return values


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
    C: float = option("Inverse strength of the ridge.", "--C", "-C", default=1)
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
    cv, Cs = options.cv or 2, [options.C]
    settings = fitting.settings(columns, ks=parse_ks(ks), Cs=Cs, cv=cv, scoring=scoring)
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
    """The command-line options of `kmargin stability`."""

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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stability = measure_stability(
            dataset,
            settings,
            k=options.k,
            C=options.C,
            n_pairs=options.pairs,
            threshold=threshold,
            max_false=1.0 if max_false is None else max_false,
        )
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
