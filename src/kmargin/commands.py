"""The commands `kmargin fit`, `predict` and `path`: options in, words and files out."""

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from kmargin import __version__, modelfile
from kmargin.errors import InputError, count, listing, nearest
from kmargin.tables.analyse import analyse, trace
from kmargin.tables.column_request import ColumnRequest, count_features, read_groups
from kmargin.tables.columns import text_of, to_texts
from kmargin.tables.prepare import Roles, prepare
from kmargin.tables.read import read_table
from kmargin.tables.results import new_prediction_frame, step_frame
from kmargin.tables.score_words import percent
from kmargin.tables.settings import Settings
from kmargin.tables.spreadsheet import csv_text
from kmargin.tables.write import check_file, check_folder, plot_steps, write_frame, write_results
from kmargin.terminal import plainly, print_whole, printable, say, show_analysis, show_steps

app = typer.Typer(
    name="kmargin",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Support vector machines that use at most k features, or at most k training points.",
)

Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, svmlight or npz, by its ending.")]
Target = Annotated[str | None, typer.Option(help="The column to predict.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")]
Weights = Annotated[str | None, typer.Option(help="A column with the weight of each row.")]
Id = Annotated[str | None, typer.Option(help="A column that names the rows, carried to the predictions.")]
Encode = Annotated[
    str | None, typer.Option(help="onehot: a feature for each value of a text column; k then counts columns.")
]
Impute = Annotated[str | None, typer.Option(help="median: fill missing numbers; missing texts are no value.")]
Cv = Annotated[int, typer.Option(help="How many folds.")]
Seed = Annotated[int, typer.Option(help="Shuffles the rows into folds.")]
Jobs = Annotated[int | None, typer.Option(help="How many machines to fit side by side; -1 for all cores.")]
Scoring = Annotated[str, typer.Option(help="Any score of scikit-learn for classes.")]
Standardize = Annotated[bool, typer.Option(help="Scale features to mean 0 and spread 1.")]
Balanced = Annotated[bool, typer.Option(help="Give all classes the same total weight.")]
Keep = Annotated[list[str] | None, typer.Option(help="A column always in, counted in k; may be repeated.")]
Avoid = Annotated[list[str] | None, typer.Option(help="A column never in; may be repeated.")]
Sign = Annotated[
    list[str] | None,
    typer.Option(help="age=+ or age=-: a weight that may only be positive, or negative; may be repeated."),
]
Groups = Annotated[
    Path | None,
    typer.Option(help="A table with columns feature and group: k counts groups, other features one by one."),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        help="k counts groups of columns, by the text before this: with --group-by _ the columns site_a and "
        "site_b are the group site."
    ),
]
EachValue = Annotated[
    bool,
    typer.Option("--each-value", help="With --encode onehot: k counts single values, not whole columns."),
]
EachMachine = Annotated[
    bool, typer.Option("--each-machine", help="Several classes: k for each machine, not for all together.")
]
MultiClass = Annotated[str, typer.Option(help="ovo: a machine per pair of classes; ovr: one per class.")]
Proba = Annotated[bool, typer.Option("--proba", help="Add the probability of each class to the predictions.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no summary.")]


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kmargin {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
@plainly
def fit(
    data: Data,
    target: Target = None,
    k: Annotated[int | None, typer.Option(help="Fix the number of features (or points).")] = None,
    ks: Annotated[str | None, typer.Option(help="Values of k to try, as 1,2,5; or how many.")] = None,
    C: Annotated[
        str | None,
        typer.Option("--C", "-C", help="Values of C to try; else 0.01 to 10, and beyond."),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            help="best: the highest score; 1se: the smallest k within a standard error of it; tolerance: "
            "within --tolerance of it."
        ),
    ] = "1se",
    tolerance: Annotated[float, typer.Option(help="The loss of score that --select tolerance takes.")] = 0.01,
    kernel: Annotated[
        str | None, typer.Option(help="rbf, poly, linear or sigmoid: k counts training points.")
    ] = None,
    gamma: Annotated[str, typer.Option(help="Width of the kernel: a number, scale or auto.")] = "scale",
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that holds other files.")
    ] = False,
    drop: Drop = None,
    id: Id = None,
    weights: Weights = None,
    encode: Encode = None,
    impute: Impute = None,
    keep: Keep = None,
    avoid: Avoid = None,
    sign: Sign = None,
    groups: Groups = None,
    group_by: GroupBy = None,
    each_value: EachValue = False,
    each_machine: EachMachine = False,
    standardize: Standardize = True,
    balanced: Balanced = False,
    multi_class: MultiClass = "ovo",
    cv: Cv = 5,
    repeats: Annotated[
        int,
        typer.Option(help="At most so many rounds of folds, until the choice has settled."),
    ] = 5,
    nested: Annotated[
        bool,
        typer.Option(help="Choose k and C anew in outer folds, for an honest accuracy."),
    ] = True,
    permutations: Annotated[
        int, typer.Option(help="Shuffle the labels so many times and search again, for a p-value.")
    ] = 0,
    pairs: Annotated[
        int, typer.Option(help="Pairs of random halves, on which features may come back; 0 for none.")
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
        raise InputError(f"--k {k} and --ks {ks} say two things. Give one of them.")
    settings = Settings(
        k=k,
        ks=None if ks is None else parse_ks(ks),
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
        standardize=standardize,
        shared=not each_machine,
        columns=ask_columns(keep, avoid, sign, groups, group_by, each_value),
        balanced=balanced,
        multi_class=multi_class,
        verbose=int(not quiet and sys.stderr.isatty()),
    )
    dataset = prepare(read_table(data), Roles(target, id, weights, drop or (), encode, impute))
    analysis = analyse(dataset, settings)
    written = write_results(analysis, folder, data.name)
    if not quiet:
        show_analysis(analysis)
        files = ", ".join(path.name for path in written)
        typer.echo(f"\nWritten to {printable(str(folder))}: {files}")


@app.command()
@plainly
def predict(
    model: Annotated[Path, typer.Argument(help="The folder that `kmargin fit` wrote, or its model.kmargin.")],
    data: Data,
    out: Annotated[Path | None, typer.Option(help="CSV to write; otherwise it is printed.")] = None,
    id: Id = None,
    proba: Proba = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows. Columns are found by name; if the target is there, the accuracy is told."""
    if out is not None:
        check_file(out, (".csv",))
    loaded = modelfile.load(model)
    table = read_table(data)
    frame = table.frame
    if id is not None and id not in frame.columns:
        raise InputError(f"--id: there is no column {id!r}. {nearest(id, frame.columns)}")
    if proba and loaded.calibration is None:
        raise InputError(
            f"{model} was written without probabilities. Leave out --proba, or fit the model again."
        )
    prediction = loaded.predict(table)
    actual = frame[loaded.target].to_numpy() if loaded.target in frame.columns else None
    known = {*loaded.encoding.columns, loaded.target, id}
    ignored = [name for name in frame.columns if name not in known]
    result = new_prediction_frame(
        loaded,
        prediction.classes,
        prediction.decisions,
        None if id is None else frame[id].to_numpy(),
        actual,
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
    if ignored:
        say(f"Note: {count(len(ignored), 'column')} ignored: {listing(ignored)}.")
    if actual is not None and (told := share_right(frame[loaded.target], prediction.classes)):
        say(told)
    if out is not None:
        say(f"Written to {out}: {count(len(result), 'row')}.")


@app.command()
@plainly
def path(
    data: Data,
    target: Target = None,
    ks: Annotated[str, typer.Option(help="How many values of k; or the values, as 1,2,5.")] = "20",
    C: Annotated[str, typer.Option("--C", "-C", help="Inverse strength of the ridge.")] = "1",
    out: Annotated[Path | None, typer.Option(help="CSV to write.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot of the scores to write: .svg, .png or .pdf.")
    ] = None,
    drop: Drop = None,
    weights: Weights = None,
    encode: Encode = None,
    impute: Impute = None,
    keep: Keep = None,
    avoid: Avoid = None,
    sign: Sign = None,
    groups: Groups = None,
    group_by: GroupBy = None,
    each_value: EachValue = False,
    each_machine: EachMachine = False,
    standardize: Standardize = True,
    balanced: Balanced = False,
    multi_class: MultiClass = "ovo",
    cv: Annotated[int, typer.Option(help="How many folds; 0 for none.")] = 5,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Print which features enter and leave as k grows, and what that does to the accuracy."""
    for file, endings in ((out, (".csv",)), (plot, (".svg", ".png", ".pdf"))):
        if file is not None:
            check_file(file, endings)
    settings = Settings(
        ks=parse_ks(ks),
        Cs=[parse_number("--C", C)],
        cv=cv or 2,
        seed=seed,
        jobs=jobs,
        standardize=standardize,
        shared=not each_machine,
        columns=ask_columns(keep, avoid, sign, groups, group_by, each_value),
        balanced=balanced,
        multi_class=multi_class,
        verbose=int(not quiet and sys.stderr.isatty()),
    )
    dataset = prepare(read_table(data), Roles(target, None, weights, drop or (), encode, impute))
    steps = trace(dataset, settings, cross_validate=cv > 0)
    counted = count_features(dataset.encoding, settings.columns).things
    counted += " of each machine" if each_machine and len(np.unique(dataset.y)) > 2 else ""
    show_steps(steps, settings.scoring, counted)
    if out is not None:
        write_frame(step_frame(steps), out)
    if plot is not None:
        plot_steps(steps, plot, counted)


def ask_columns(
    keep: list[str] | None,
    avoid: list[str] | None,
    sign: list[str] | None,
    groups: Path | None,
    group_by: str | None,
    each_value: bool,
) -> ColumnRequest:
    """What the options say about columns."""
    by_file = None if groups is None else read_groups(groups)
    return ColumnRequest(keep or (), avoid or (), sign or (), by_file, group_by, each_value)


def share_right(actual: pd.Series, predicted: np.ndarray) -> str:
    """How many predictions agree with a column, rows that it leaves open not counted."""
    known = actual.notna().to_numpy()
    right = to_texts(actual[known]) == np.array([text_of(value) for value in predicted[known]])
    rows = count(len(right), "row")
    return f"{percent(right.mean())} of {rows} are as column {actual.name!r} says." if len(right) else ""


def stem(data: Path) -> str:
    """The name of a file without its endings."""
    name = data.name.removesuffix(".gz")
    return name[: -len(Path(name).suffix)] if Path(name).suffix else name


def parse_numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} {text} is not a list of numbers. Write it as 0.1,1,10.") from error


def parse_number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{option} {text} is not a number. Write one, such as 0.5.") from error


def parse_ks(text: str) -> int | list[int]:
    """A list of values, or how many."""
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--ks {text} is not a list of values of k. Write it as 1,2,5.") from error
    return values if "," in text else values[0] if values else 0
