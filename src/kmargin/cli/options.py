"""Options that commands share, each declared once; their texts as numbers."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kmargin.core.validation import InputError
from kmargin.tables.dataset import Dataset, Roles, join_labels, prepare
from kmargin.tables.dialect import Reading
from kmargin.tables.read import Table, read_table
from kmargin.tables.request import ColumnRequest, Settings, read_groups


def with_shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose groups of options are given one by one."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(field, kinds[field.name]) for field in fields(groups[name])]
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def _parameter(field: Field[Any], kind: Any) -> inspect.Parameter:
    assert field.default is not MISSING, "an option has a default"
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind
    )


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


FILE, COLUMNS, COUNTED, MACHINES = (
    "Reading the file",
    "Roles of columns",
    "What k counts",
    "Fitting",
)

Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Excel (xlsx), Parquet, svmlight or npz, by its file extension; may be compressed "
        "(gz, bz2, xz, zst, zip)."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no summary.")]
Proba = Annotated[bool, typer.Option("--proba", help="Add the probability of each class to the predictions.")]
Jobs = Annotated[int | None, typer.Option(help="Number of fits in parallel; -1 for all cores.")]
Seed = Annotated[int, typer.Option(help="Random seed for the folds.")]
Scoring = Annotated[str, typer.Option(help="Any scikit-learn score for classification.")]


@dataclass(frozen=True)
class ReadingOptions:
    """How a file becomes a table."""

    sep: Annotated[
        str | None,
        typer.Option(help="Column separator, such as ; or tab; detected by default.", rich_help_panel=FILE),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(help="Decimal mark, . or a comma; detected by default.", rich_help_panel=FILE),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Text encoding, such as latin-1; detected by default.", rich_help_panel=FILE),
    ] = None
    transpose: Annotated[
        bool,
        typer.Option(
            "--transpose", help="Features are in rows, named by the first column.", rich_help_panel=FILE
        ),
    ] = False
    labels: Annotated[
        Path | None,
        typer.Option(
            help="A file with the target of each row, joined by the row names (see --id).",
            rich_help_panel=FILE,
        ),
    ] = None

    id: Annotated[
        str | None,
        typer.Option(
            help="A column that names the rows: not used as a feature, copied to the predictions; --labels "
            "joins on it.",
            rich_help_panel=COLUMNS,
        ),
    ] = None

    def read(self, data: Path, target: str | None, wanted: list[str], all_rows: bool = False) -> Table:
        """The table, labels joined to it; `wanted` are other columns that the labels may have."""
        table = read_table(data, Reading(self.sep, self.decimal, self.encoding, self.transpose))
        if self.labels is None:
            return table
        return join_labels(table, self.labels, self.id, target, wanted, all_rows)


@dataclass(frozen=True)
class ColumnOptions:
    """What the columns of a table are for, and what k counts."""

    target: Annotated[str | None, typer.Option(help="The column to predict.", rich_help_panel=COLUMNS)] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column to leave out; may be repeated.", rich_help_panel=COLUMNS),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to use as a feature although it seems to name the rows; may be repeated.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    weights: Annotated[
        str | None, typer.Option(help="A column with the weight of each row.", rich_help_panel=COLUMNS)
    ] = None
    rows_grouped_by: Annotated[
        str | None,
        typer.Option(
            help="A column such as the patient: rows with the same value stay together in folds and halves.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    encode: Annotated[
        str | None,
        typer.Option(
            help="onehot: a feature for each value of a text column; k then counts columns.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    impute: Annotated[
        str | None,
        typer.Option(
            help="median: replace missing numbers by medians; missing text is encoded as none of the values.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that is always in the model and counts in k; may be repeated.",
            rich_help_panel=COUNTED,
        ),
    ] = None
    avoid: Annotated[
        list[str] | None,
        typer.Option(help="A column that is never in the model; may be repeated.", rich_help_panel=COUNTED),
    ] = None
    sign: Annotated[
        list[str] | None,
        typer.Option(
            help="age=+ or age=-: the weight may only be positive, or only negative; may be repeated.",
            rich_help_panel=COUNTED,
        ),
    ] = None
    groups: Annotated[
        Path | None,
        typer.Option(
            help="A table with columns feature and group; k then counts groups, and other features singly.",
            rich_help_panel=COUNTED,
        ),
    ] = None
    group_by: Annotated[
        str | None,
        typer.Option(
            help="k counts groups of columns with the same text before this separator: with --group-by _ the "
            "columns site_a and site_b form the group site.",
            rich_help_panel=COUNTED,
        ),
    ] = None
    each_value: Annotated[
        bool,
        typer.Option(
            "--each-value",
            help="With --encode onehot: k counts single values, not whole columns.",
            rich_help_panel=COUNTED,
        ),
    ] = False

    @property
    def request(self) -> ColumnRequest:
        """What is said about features."""
        by_file = None if self.groups is None else read_groups(self.groups)
        return ColumnRequest(
            self.keep or (), self.avoid or (), self.sign or (), by_file, self.group_by, self.each_value
        )

    def prepare(self, data: Path, reading: ReadingOptions) -> Dataset:
        """The data set that all these options make of a file."""
        spoken_of = [*(self.keep or ()), *(text.rpartition("=")[0] for text in self.sign or ())]
        named = [self.weights, self.rows_grouped_by, *(self.feature or ()), *spoken_of]
        table = reading.read(data, self.target, [name for name in named if name is not None])
        id = reading.id
        if reading.labels is not None and id not in table.frame.columns:
            id = None  # it names a column of the labels, which the table knows as the names of its rows
        roles = Roles(
            target=self.target,
            id=id,
            weights=self.weights,
            drop=self.drop or (),
            encode=self.encode,
            impute=self.impute,
            grouped_by=self.rows_grouped_by,
            features=self.feature or (),
            spoken_of=spoken_of,
        )
        return prepare(table, roles)


@dataclass(frozen=True)
class MachineOptions:
    """How each machine is fitted."""

    standardize: Annotated[
        bool,
        typer.Option(
            help="Scale features to mean 0 and standard deviation 1. Default of the estimators: off.",
            rich_help_panel=MACHINES,
        ),
    ] = True
    balanced: Annotated[
        bool, typer.Option(help="Give all classes the same total weight.", rich_help_panel=MACHINES)
    ] = False
    multi_class: Annotated[
        str,
        typer.Option(
            help="ovo: a binary classifier per pair of classes; ovr: one per class.", rich_help_panel=MACHINES
        ),
    ] = "ovo"
    each_machine: Annotated[
        bool,
        typer.Option(
            "--each-machine",
            help="With several classes: k for each binary classifier, not for the whole model.",
            rich_help_panel=MACHINES,
        ),
    ] = False

    def settings(self, columns: ColumnOptions, quiet: bool, **more: Any) -> Settings:
        """These, what is said about columns, and more."""
        return Settings(
            standardize=self.standardize,
            balanced=self.balanced,
            multi_class=self.multi_class,
            shared=not self.each_machine,
            columns=columns.request,
            verbose=int(not quiet and sys.stderr.isatty()),
            **more,
        )
