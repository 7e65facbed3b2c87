"""Options that several commands share, each declared once."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kmargin.core.validation import InputError
from kmargin.tables.dataset import Dataset, Roles, join_labels, prepare
from kmargin.tables.dialect import Reading
from kmargin.tables.read import Table, read_table
from kmargin.tables.request import ColumnRequest, Settings, read_groups


def option(help: str, *names: str, default: Any = None, panel: str | None = None) -> Any:
    """Return a dataclass field that `with_options` makes an option, under a heading of the help."""
    declared = typer.Option(*names, help=help, rich_help_panel=panel)
    return field(default=default, metadata={"option": declared})


file_option = functools.partial(option, panel="Reading the file")
column_option = functools.partial(option, panel="Roles of columns")
count_option = functools.partial(option, panel="What k counts")
fitting_option = functools.partial(option, panel="Fitting")


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command in which each parameter that is a dataclass is replaced by its fields, as options."""
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

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{entry.name: given.pop(entry.name) for entry in fields(kind)})
        return command(**given)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


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
