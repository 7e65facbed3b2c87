"""The commands fit, predict, path and stability, and the dataclasses that declare their options."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import numpy as np
import typer

from kmargin.cli.terminal import print_whole, say, show_analysis, show_notes, show_stability, show_steps, tell
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.report.frames import new_prediction_frame, stability_frame, step_frame
from kmargin.report.page import check_file, check_folder, csv_text, plot_steps, write_frame, write_results
from kmargin.report.text import percent
from kmargin.tables import model_file
from kmargin.tables.analysis import analyse, measure_stability, trace
from kmargin.tables.columns import Roles, read_groups, to_text, to_texts
from kmargin.tables.dataset import Dataset, join_labels, prepare, spelling
from kmargin.tables.read import MISSING_MARKS, PACKED, Reading, Table, read_table
from kmargin.tables.search import Settings

app = typer.Typer()


def option(help: str, *names: str, default: Any = None) -> Any:
    """Return a dataclass field that declares a command-line option; `names` are extra names, such as -C."""
    return field(default=default, metadata={"help": help, "names": names})


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a typer command that has an option for each field of each dataclass parameter of `command`.

    The help lists options under the `heading` of their dataclass. Warnings are printed as notes at the end.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameter = parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
        if name not in groups:
            parameters.append(parameter)
            continue
        kinds, heading = get_type_hints(groups[name]), getattr(groups[name], "heading", None)
        for entry in fields(groups[name]):
            names = [f"--{entry.name.replace('_', '-')}", *entry.metadata["names"]]
            names = [] if entry.default is True else names  # without names, typer adds --name and --no-name
            more: Any = {"help": entry.metadata["help"], "rich_help_panel": heading}
            for number in {int, float} & {kinds[entry.name], *get_args(kinds[entry.name])}:
                more |= {"parser": lambda text, kind=number: parse_number(text, kind), "metavar": "NUMBER"}
            declared = typer.Option(*names, **more)
            kind = Annotated[kinds[entry.name], declared]  # type: ignore[valid-type, name-defined]
            parameters.append(parameter.replace(name=entry.name, default=entry.default, annotation=kind))

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        quiet = given["quiet"]
        for name, group in groups.items():
            given[name] = group(**{entry.name: given.pop(entry.name) for entry in fields(group)})
        with warnings.catch_warnings(record=True) as caught:  # warnings of libraries and kmargin become notes
            warnings.simplefilter("always", UserWarning)
            command(**given)
        for message in dict.fromkeys(str(warning.message) for warning in caught if not quiet):
            say(f"Note: {message}")

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def parse_number(text: str, kind: type) -> Any:
    """Return the number in a text. Raises typer's BadParameter if the text is not a number."""
    try:
        return kind(text)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise typer.BadParameter(f"{text!r} is not a {what}") from None


def read_numbers(option: str, text: str, kind: type = float) -> list[Any]:
    """Return the numbers in a text such as 1,2,5; raise InputError, which names `option`, for other texts."""
    try:
        return [parse_number(part, kind) for part in text.split(",") if part.strip()] or [kind(text)]
    except (typer.BadParameter, ValueError):
        raise InputError(f"{option} {text} is not of the form {option} 1 or {option} 1,2,5.") from None


FORMATS = "CSV, TSV, Excel (xlsx), Parquet, svmlight or npz; may be compressed (gz, bz2, xz, zst, zip)."
Data = Annotated[Path, typer.Argument(help=FORMATS)]


@dataclass(frozen=True)
class FileOptions:
    """Options that say how a file is read as a table."""

    heading: ClassVar[str] = "Reading the file"
    sep: str | None = option("Column separator, such as ; or tab; detected by default.")
    decimal: str | None = option("Decimal mark, . or a comma; detected by default.")
    encoding: str | None = option("Text encoding, such as latin-1; detected by default.")
    transpose: bool = option("Features are in rows, named by the first column.", default=False)
    labels: Path | None = option("A file with the target of each row, joined by the row names (see --id).")
    id: str | None = option(
        "A column that names the rows: not a feature, copied to the predictions; --labels joins on it."
    )

    def read(self, data: Path, target: str | None, wanted: Collection[Any], all_rows: bool = False) -> Table:
        """Read a table; with --labels, add the columns `target` and `wanted` of the file with the labels.

        Rows without a label are then left out, unless `all_rows`, as in a prediction.
        """
        needed = wanted if all_rows else ()
        table = read_table(data, Reading(self.sep, self.decimal, self.encoding, self.transpose, needed))
        if self.labels is None:
            return table
        return join_labels(table, self.labels, self.id, target, wanted, all_rows)


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the roles of columns (target, features, weights, ...), and for what k counts."""

    heading: ClassVar[str] = "Roles of columns, and what k counts"
    target: str | None = option("The column to predict.")
    drop: list[str] | None = option("A column to leave out; may be repeated.")
    feature: list[str] | None = option(
        "A column to use as a feature although it seems to name the rows; may be repeated."
    )
    weights: str | None = option("A column with the weight of each row.")
    rows_grouped_by: str | None = option(
        "A column such as the patient: rows with the same value stay together in folds and halves."
    )
    encode: str | None = option("onehot: a feature for each value of a text column; k then counts columns.")
    impute: str | None = option(
        "median: replace missing numbers by medians; missing text is encoded as none of the values."
    )
    keep: list[str] | None = option("A column that is always in the model and counts in k; may be repeated.")
    avoid: list[str] | None = option("A column that is never in the model; may be repeated.")
    sign: list[str] | None = option(
        "age=+ or age=-: the weight may only be positive, or only negative; may be repeated."
    )
    groups: Path | None = option(
        "A table with columns feature and group; k then counts groups, and other features singly."
    )
    group_by: str | None = option(
        "k counts groups of columns with the same text before this separator: with --group-by _ the columns "
        "site_a and site_b form the group site."
    )
    each_value: bool = option(
        "With --encode onehot: k counts single values, not whole columns.", default=False
    )

    def prepare(self, data: Path, file: FileOptions) -> Dataset:
        """Read a table and prepare it for an analysis, with the roles that these options give to columns."""
        names = {"feature": "features", "sign": "signs", "rows_grouped_by": "grouped_by"}
        given: dict[str, Any] = {
            names.get(name, name): value for name, value in vars(self).items() if value is not None
        }
        given |= {} if self.groups is None else {"groups": read_groups(self.groups)}
        roles = Roles(**given, id=file.id)
        table = file.read(data, self.target, {self.weights, self.rows_grouped_by, *roles.mentioned})
        # --id may name a column that only the file of --labels has. The row names already come from it then.
        has_id = file.labels is None or file.id in table.frame.columns
        return prepare(table, roles if has_id else roles._replace(id=None))


@dataclass(frozen=True)
class FittingOptions:
    """Options that all commands that fit models share."""

    heading: ClassVar[str] = "Fitting"
    standardize: bool = option(
        "Scale features to mean 0 and standard deviation 1. Default of the estimators: off.", default=True
    )
    balanced: bool = option("Give all classes the same total weight.", default=False)
    multi_class: str = option(
        "ovo: a binary classifier per pair of classes; ovr: one per class.", default="ovo"
    )
    each_machine: bool = option(
        "With several classes: k limits each binary classifier, not the whole model.", default=False
    )
    seed: int = option("Random seed for the folds and halves.", default=0)
    jobs: int | None = option("Number of fits in parallel; -1 for all cores.")
    quiet: bool = option("No progress, no notes, no summary.", "-q", default=False)

    def settings(self, **more: Any) -> Settings:
        """Return the settings of an analysis: these options, and `more` fields of `Settings`, by name."""
        names = ("standardize", "balanced", "multi_class", "seed", "jobs")
        return Settings(
            **{name: getattr(self, name) for name in names},
            shared=not self.each_machine,
            verbose=int(not self.quiet and sys.stderr.isatty()),
            **more,
        )


SCORING = "Any scikit-learn score for classification."
PROBA = "Add the probability of each class to the predictions."


@dataclass(frozen=True)
class FitOptions:
    """Options of `kmargin fit`: how it chooses a model, and where it writes the results."""

    k: int | None = option("Fix the number of features (or points); one more and one fewer are scored too.")
    ks: str | None = option("Values of k to try, such as 1,2,5.")
    C: str | None = option(
        "Values of C to try, such as 0.1,1; default 0.01 to 10, and beyond if the best is at the edge. "
        "Default of the estimators: 1.",
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
    force: bool = option("Write into a folder that holds other files.", default=False)
    cv: int = option("Number of folds.", default=5)
    repeats: int | None = option(
        "Maximum number of repeats of the cross-validation, which ends when the choice is stable; default "
        "5, or 1 with five classes or more, or 20,000 rows or more. Default of the estimators: 1, unshuffled."
    )
    nested: bool = option(
        "Repeat the choice of k and C in outer folds, for an unbiased accuracy (honest_score).", default=True
    )
    permutations: int = option("Number of searches with permuted labels, for a p-value.", default=0)
    pairs: int = option("Number of pairs of random halves for selection frequencies; 0 for none.", default=25)
    proba: bool = option(PROBA, default=False)
    scoring: str = option(SCORING, default="accuracy")

    def settings(self) -> dict[str, Any]:
        """Return these options as keyword arguments of `Settings`; raise InputError for invalid ones."""
        if self.k is not None and self.ks is not None:
            raise InputError(f"--k {self.k} and --ks {self.ks} cannot be combined. Use one of them.")
        ks = None if self.ks is None else read_numbers("--ks", self.ks, int)
        if ks is not None and "," not in str(self.ks):
            raise InputError(
                f"--ks {ks[0]} is a single value of k, which leaves nothing to choose. Use --k {ks[0]} to "
                f"fix it, or list several, such as --ks 1,2,{max(*ks, 3)}."
            )
        is_name = self.gamma in ("scale", "auto")
        try:
            gamma = self.gamma if is_name else float(self.gamma)
        except ValueError:
            raise InputError(f"--gamma {self.gamma} is not a number, scale or auto. Use 0.5, say.") from None
        Cs = None if self.C is None else read_numbers("--C", self.C)
        values = {name: value for name, value in vars(self).items() if name not in ("C", "out", "force")}
        return values | {"ks": ks, "Cs": Cs, "gamma": gamma}


@app.command("fit")
@with_options
def fit_command(
    data: Data, columns: ColumnOptions, file: FileOptions, fitting: FittingOptions, options: FitOptions
) -> None:
    """Choose k and C by cross-validation; write the model, tables and a report.

    Example: kmargin fit data.csv --target diagnosis
    """
    folder = options.out or Path(f"{table_name(data)}-kmargin")
    check_folder(folder, options.force, (data, file.labels, columns.groups))
    settings = fitting.settings(**options.settings())
    analysis = analyse(columns.prepare(data, file), settings)
    written = write_results(analysis, folder, data.name)
    if not fitting.quiet:
        show_analysis(analysis)
        typer.echo()
        tell(f"Written to {folder}: {', '.join(path.name for path in written)}")


def table_name(data: Path) -> str:
    """Return the name of a file without its folder and extensions, such as "data" for `x/data.csv.gz`."""
    name = Path(data.stem if data.suffix.lower() in PACKED else data.name)
    return name.name.removesuffix(name.suffix)


@app.command("predict")
@with_options
def predict_command(
    model: Annotated[Path, typer.Argument(help="The folder that `kmargin fit` wrote, or its model.kmargin.")],
    data: Data,
    file: FileOptions,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; printed by default.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help=PROBA)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no summary.")] = False,
) -> None:
    """Predict new rows; where the table has the target, report the accuracy.

    Columns are found by name.
    """
    check_file(out, (".csv",), (data, file.labels))
    loaded = model_file.load(model)
    if proba and loaded.calibration is None:
        raise InputError(f"{model} has no probabilities. Leave out --proba, or fit the model again.")
    table = file.read(data, loaded.target, sorted(loaded.needed), all_rows=True)
    frame, row_names = table.frame, table.row_names
    id = loaded.id if file.id is None and loaded.id in frame.columns else file.id
    if id in frame.columns:
        row_names = frame[id]
    elif id is not None and file.labels is None:
        raise InputError(f"--id: the table has no column {id!r}. {nearest(id, frame.columns)}")
    classes, decisions, probabilities, notes = loaded.predict_table(table)
    actual = frame[loaded.target] if loaded.target in frame.columns else None
    rows, probabilities = frame.index.to_numpy() + 1, probabilities if proba else None
    ids, given = (None if column is None else column.to_numpy() for column in (row_names, actual))
    result = new_prediction_frame(loaded, classes, decisions, rows, ids, given, probabilities)
    if out is None:
        print_whole(csv_text(result))
    else:
        write_frame(result, out)
    if quiet:
        return
    notes = [*table.notes, *notes]
    if n_seen := round(loaded.share_seen(table) * len(frame)):
        notes.append(
            f"rows that the model was fitted to: {n_seen:,} of {len(frame):,}. Its accuracy on them is too "
            "optimistic; `kmargin fit` reports the accuracy on held-out rows."
        )
    known = {*loaded.encoding.columns, loaded.target, id}
    ignored = [name for name in frame.columns if name not in known]
    if ignored:
        notes.append(f"{count(len(ignored), 'column')} ignored: {listing(ignored)}.")
    names, predicted = ([spelling(to_text(name)) for name in c] for c in (loaded.classes_, classes))
    labels = [
        (text, name)
        for text, name in zip([] if actual is None else to_texts(actual), predicted, strict=False)
        if text is not None and (text.strip() not in MISSING_MARKS or spelling(text) in names)
    ]
    if unknown := [text for text, _ in labels if spelling(text) not in names]:
        held = f"{listing([*dict.fromkeys(unknown)])} in {count(len(unknown), 'row')}"
        notes.append(f"Column {loaded.target!r} holds {held}, unknown to the model: counted as disagreement.")
    for note in notes:
        say(f"Note: {note}")
    if labels:
        share = percent(sum(spelling(text) == name for text, name in labels) / len(labels))
        say(f"{share} of {count(len(labels), 'row')} agree with column {loaded.target!r}.")
    if out is not None:
        say(f"Written to {out}: {count(len(result), 'row')}.")


DEFAULT_KS = "20"  # default of --ks: the number of values of k on a path


@dataclass(frozen=True)
class PathOptions:
    """Options of `kmargin path`: the values of k, and the files for its table and plot."""

    ks: str = option("The number of values of k, or the values, such as 1,2,5.", default=DEFAULT_KS)
    C: float = option("Inverse strength of the ridge.", "-C", default=1)
    out: Path | None = option("CSV file to write.")
    plot: Path | None = option("Plot of the scores to write: .svg, .png or .pdf.")
    cv: int = option("Number of folds; 0 for no cross-validation.", default=5)
    scoring: str = option(SCORING, default="accuracy")


@app.command("path")
@with_options
def path_command(
    data: Data, columns: ColumnOptions, file: FileOptions, fitting: FittingOptions, options: PathOptions
) -> None:
    """Print which features enter and leave as k grows, and the score for each k."""
    ks, out, plot, scoring = options.ks, options.out, options.plot, options.scoring
    check_file(out, (".csv",), (data, file.labels, columns.groups))
    check_file(plot, (".svg", ".png", ".pdf"))
    values = read_numbers("--ks", ks, int)  # one number without a comma is the number of values of k
    values = values if "," in ks else values[0]
    settings = fitting.settings(ks=values, Cs=[options.C], cv=options.cv or 2, scoring=scoring)
    dataset = columns.prepare(data, file)
    steps, notes = trace(dataset, settings, cross_validate=options.cv > 0)
    counted = dataset.counted.unit_label
    if fitting.each_machine and len(np.unique(dataset.y)) > 2:
        counted += " of each binary classifier"
    show_steps(steps, scoring, counted)
    if out is not None:
        write_frame(step_frame(steps, scoring), out)
    if plot is not None:
        plot_steps(steps, plot, counted, scoring)
    if fitting.quiet:
        return
    notes = [*dataset.notes, *notes]
    if ks != DEFAULT_KS and "," not in ks:
        notes.append(f"--ks {ks} asks for {ks} values of k. For k = {ks} alone, add a comma: --ks {ks},")
    show_notes(notes, dataset.warnings)
    for path in (out, plot):
        if path is not None:
            say(f"Written to {path}.")


@dataclass(frozen=True)
class StabilityOptions:
    """Options of `kmargin stability`: the model, the halves, and which features count as stable."""

    k: int | None = option("Number of features selected on each half; default 10, or half of all if less.")
    C: float | None = option("Inverse strength of the ridge; the default depends on the table's size.", "-C")
    pairs: int = option("Number of pairs of halves.", default=50)
    threshold: float | None = option(
        "Instead of --max-false: the frequency from which on features are stable."
    )
    max_false: float | None = option(
        "Acceptable expected number of features stable by chance; default 1. It determines the "
        "selection frequency from which on a feature is stable."
    )
    out: Path | None = option("CSV file to write, with every feature.")


@app.command("stability")
@with_options
def stability_command(
    data: Data, columns: ColumnOptions, file: FileOptions, fitting: FittingOptions, options: StabilityOptions
) -> None:
    """Report which features are selected consistently on random halves of the rows.

    Example: kmargin stability data.csv --target diagnosis --out stability.csv
    """
    out, threshold, max_false = options.out, options.threshold, options.max_false
    check_file(out, (".csv",), (data, file.labels, columns.groups))
    if threshold is not None and max_false is not None:
        raise InputError(
            f"--threshold {threshold:g} and --max-false {max_false:g} cannot be combined. Use one of them."
        )
    dataset = columns.prepare(data, file)
    stability = measure_stability(
        dataset,
        fitting.settings(),
        k=options.k,
        C=options.C,
        n_pairs=options.pairs,
        threshold="auto" if threshold is None else threshold,
        max_false=1.0 if max_false is None else max_false,
    )
    if out is not None:
        write_frame(stability_frame(stability), out)
    if fitting.quiet:
        return
    show_stability(stability)
    show_notes(dataset.notes, dataset.warnings)
    if out is not None:
        say(f"Written to {out}: {stability.selection.n_features_in_:,} features.")
