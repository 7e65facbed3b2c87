"""Columns of a table: what they hold, columns that name rows, and features as numbers."""

import io
import math
import numbers
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from kmargin.core.arrays import Matrix, Vector
from kmargin.core.validation import InputError, count, listing
from kmargin.tables.read import Table

# a laboratory value outside the range of measurement, such as <5 or > 100,5
CENSORED = re.compile(r"[<>≤≥]=?\s*\d+([.,]\d+)*")
LARGEST, SMALLEST_SPREAD = 1e150, 1e-150  # numbers between these can be squared
MAX_SCALED = 1e50  # largest scaled value, in standard deviations, so that its powers are finite
MAX_LISTED_COLUMNS = 8


def kind_of(column: pd.Series) -> str:
    """Return "number" (also for booleans), "text", or words for what else the column holds."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return "complex numbers" if np.issubdtype(np.asarray(column).dtype, np.complexfloating) else "number"
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "dates"
    values = column.dropna()
    if all(isinstance(value, numbers.Real | Decimal | np.bool_) for value in values):
        return "number"
    if all(isinstance(value, str | numbers.Real | Decimal | np.bool_) for value in values):
        return "text"
    return f"values of type {type(values.iloc[0]).__name__}"


def to_numbers(column: pd.Series) -> Vector:
    """Return a column of numbers, NaN where a value is missing, infinite where it is too long for a float."""
    if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
        return np.array([np.nan if pd.isna(value) else _to_float(value) for value in column], np.float64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_texts(column: pd.Series) -> np.ndarray:
    """Return a column as text, None where a value is missing."""
    return np.array([None if pd.isna(value) else to_text(value) for value in column], dtype=object)


def to_text(value: Any) -> str:
    """Return a value as text; a whole number is written the same whether it is an integer or a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def quoted(name: str) -> str:
    """Return a name as it is typed on a command line."""
    return f"'{name}'" if " " in name else name


def check_missing(frame: pd.DataFrame, advice: str) -> None:
    """Raises InputError where values are missing."""
    missing = frame.isna().sum().sort_values(ascending=False, kind="stable")
    missing = missing[missing > 0]
    if missing.empty:
        return
    total = int(missing.sum())
    columns = [f"{name!r} ({number})" for name, number in missing.head(5).items()]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    where = "column" if len(missing) == 1 else f"{len(missing)} columns:"
    is_missing = "is" if total == 1 else "are"
    raise InputError(
        f"{count(total, 'value')} {is_missing} missing, in {where} {', '.join(columns)}{more}. {advice}"
    )


def check_finite(frame: pd.DataFrame) -> None:
    """Raises InputError where numbers are infinite, or too large to be squared."""
    largest = {name: np.nanmax(np.abs(to_numbers(frame[name])), initial=0) for name in frame.columns}
    found = [name for name, size in largest.items() if size == np.inf]
    words = "infinite values"
    if not found:
        found = [name for name, size in largest.items() if size > LARGEST]
        words = f"numbers beyond {LARGEST:g}, perhaps a code for missing values"
    if found:
        raise InputError(
            f"Column {listing(found)} holds {words}. Replace them, or leave the column out with --drop."
        )


def explain_censored(column: pd.Series, name: str) -> str | None:
    """Return advice on a column of numbers and values such as '<5'; None for any other column."""
    texts = pd.Series([text for text in to_texts(column) if text is not None], dtype=object).str.strip()
    is_number = pd.to_numeric(texts.str.replace(",", ".", regex=False), errors="coerce").notna()
    is_censored = texts.str.fullmatch(CENSORED).astype(bool)
    if not is_censored.any() or not (is_number | is_censored).all():
        return None
    example, n_censored = texts[is_censored].iloc[0], int(is_censored.sum())
    limit = example.lstrip("<>≤≥= ")
    side, number = ("below", f"{limit} or half of it") if example[0] in "<≤" else ("above", limit)
    return (
        f"Column {name!r} holds laboratory values such as {example!r} ({count(n_censored, 'row')}), "
        f"{side} what was measured, not numbers. Replace each by one number, the same in every row and in "
        f"new tables (for {example!r} {number})."
    )


def first_text(column: pd.Series) -> str:
    """Return the first value that is not a number, such as a stray '?', else the first value."""
    texts = column.dropna().astype(str)
    strays = texts[pd.to_numeric(texts, errors="coerce").isna()]
    return str((strays if len(strays) else texts).iloc[0])[:40]


# Columns that name rows

MIN_ROWS = 5  # in fewer rows, values are often all different
MIN_SORTED_ROWS = 8  # fewer measurements may be in order by chance
MAX_DOUBTFUL = 3  # more columns of distinct whole numbers are counts
# patient_id, PatientID, case no., id_2, Patient; not "number of nodes", nor "body mass index"
ID_NAME = re.compile(
    r"(?i:(^|[\W_])(id|ids|nr|no|num|number|key|uid|uuid|guid|barcode|accession|mrn|pid|nummer)[\W_]*$)"
    r"|(?i:^(id|nr|no)[\W_])|(?<=[a-z])(ID|Id|Nr|No)$|(?i:nummer$)"
    r"|(?i:^(index|idx|patient|subject|sample|participant|case|record|row|name|code|fall|proband|column 1)$)"
)
NUMBER_LIKE = re.compile(r"[<>≤≥~]?\s*[+-]?\d+([.,]\d+)*\s*\S{0,3}")


def find_row_names(features: pd.DataFrame, kept: Collection[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the columns that name rows, others that may name rows, and notes on both.

    Columns of distinct texts name rows, and so do columns of distinct whole numbers that count the rows, are
    in order, or have the name of an id. Other whole numbers, such as counts, may well be all distinct.
    """
    reasons = {}
    if len(features) >= MIN_ROWS:
        reasons = {str(name): _why_row_names(features[name]) for name in features.columns if name not in kept}
    found = {name: reason for name, reason in reasons.items() if reason}
    doubtful = [name for name, reason in reasons.items() if reason == ""]
    notes = [
        f"Column {name!r} {reason}: it is left out. Use --feature {quoted(name)} to include it."
        for name, reason in list(found.items())[:MAX_DOUBTFUL]
    ]
    if len(found) > MAX_DOUBTFUL:
        more = list(found)[MAX_DOUBTFUL:]
        notes.append(f"So {'is' if len(more) == 1 else 'are'} {listing(more)}, for the same reasons.")
    if len(doubtful) > MAX_DOUBTFUL:
        doubtful = []
    if doubtful:
        names, them = ("it names", "it") if len(doubtful) == 1 else ("they name", "them")
        notes.append(
            f"{listing(doubtful)}: each row has a different whole number. If {names} the rows, leave {them} "
            "out with --drop."
        )
    return list(found), doubtful, notes


def _why_row_names(column: pd.Series) -> str | None:
    """Return why a column names rows, "" if it may name rows, None if it does not."""
    kind = kind_of(column)
    if kind == "text":
        texts = [text for text in to_texts(column) if text is not None]
        n_number_like = sum(NUMBER_LIKE.fullmatch(text) is not None for text in texts)
        if len(set(texts)) < len(column) or 2 * n_number_like > len(texts):
            return None
        return "has a different text in each row"
    if kind != "number" or pd.api.types.is_bool_dtype(column.dtype):
        return None
    values = to_numbers(column)
    if not (np.isfinite(values).all() and (values == np.round(values)).all()):
        return None
    if len(np.unique(values)) < len(values):
        return None
    if values.max() - values.min() == len(values) - 1:
        return "numbers the rows"
    if len(values) >= MIN_SORTED_ROWS and (column.is_monotonic_increasing or column.is_monotonic_decreasing):
        return "has a different whole number in each row, in order"
    is_id = ID_NAME.search(str(column.name)) is not None
    return "has a different whole number in each row, and the name of an id" if is_id else ""


def explain_transposed(frame: pd.DataFrame, wanted: Collection[str]) -> str:
    """Return advice on a table that seems to have its features in rows; nothing for any other table.

    It seems so if a wanted column is named in its first column, or if that holds distinct texts and all
    others numbers, in more rows than there are columns.
    """
    first, others = frame.iloc[:, 0], frame.iloc[:, 1:]
    if kind_of(first) != "text":
        return ""
    texts = to_texts(first)
    if found := sorted(set(wanted) & set(texts)):
        return (
            f"But {listing(found, 3)} is in the first column. If the features are in rows, add --transpose."
        )
    is_matrix = others.shape[1] >= 2 and all(map(pd.api.types.is_numeric_dtype, others.dtypes))
    if not is_matrix or len(set(texts)) < len(texts) or len(frame) <= frame.shape[1]:
        return ""
    return (
        f"With {count(len(frame), 'name')} in its first column and numbers in the others the table seems to "
        "have its features in rows: add --transpose, and --labels FILE if the classes are in a separate file."
    )


# Features as numbers


@dataclass(frozen=True)
class Encoding:
    """The columns that are features, and the values of text columns, each of which is a feature."""

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in self.names_of(column)]

    def names_of(self, column: str) -> list[str]:
        """Return the names of a column's features."""
        values = self.categories.get(column)
        return [column] if values is None else [f"{column}={value}" for value in values]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """Return the features, NaN where a number is missing; a missing or unknown text is all zeros."""
        blocks = []
        for column in self.columns:
            if column in self.categories:
                texts = to_texts(frame[column])
                blocks += [(texts == value).astype(np.float64) for value in self.categories[column]]
            else:
                blocks.append(to_numbers(frame[column]))
        return np.column_stack(blocks) if blocks else np.empty((len(frame), 0))

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """Return the features of a new table, with columns found by name, and notes.

        Features of columns that are not needed are zero. Raises InputError where needed columns or values
        are missing, or are not numbers.
        """
        columns = [column for column in self.columns if column in needed]
        absent = [column for column in columns if column not in table.frame.columns]
        if absent and not table.absent_is_zero:
            raise InputError(_explain_absent(table.frame, absent, len(columns), set(self.columns)))
        frame = table.frame.reindex(columns=columns, fill_value=0.0)
        numeric = [column for column in columns if column not in self.categories]
        for name in numeric:
            if kind_of(frame[name]) != "number":
                frame[name] = _parse_numbers(frame[name])
        if not has_medians:
            check_missing(frame, "Fill them in, or fit again with --impute median.")
        check_finite(frame[numeric])
        unknown = {
            name: sorted({*to_texts(frame[name])} - {None, *self.categories[name]})
            for name in columns
            if name in self.categories
        }
        notes = [
            f"Column {name!r} holds {listing(new)}, unknown to the model: taken as none."
            for name, new in unknown.items()
            if new
        ]
        return self.matrix(frame.reindex(columns=list(self.columns), fill_value=0.0)), notes


def _parse_numbers(column: pd.Series) -> Vector:
    """Parse texts as numbers, as in a file. Raises InputError for a column that holds anything else."""
    kind, example = kind_of(column), ""
    if kind == "text":
        text = column.to_csv(header=False, index=False)
        parsed = pd.read_csv(io.StringIO(text), header=None, na_values="?", skip_blank_lines=False)[0]
        if kind_of(parsed) == "number":
            return to_numbers(parsed)
        if (advice := explain_censored(column, str(column.name))) is not None:
            raise InputError(advice)
        example = f", such as {first_text(column)!r}"
    raise InputError(
        f"Column {column.name!r} holds {kind}{example}, but the model was fitted to numbers. Give numbers."
    )


def _explain_absent(frame: pd.DataFrame, absent: list[str], n_needed: int, known: set[str]) -> str:
    """Return a sentence with the columns that a table lacks, and the names it may have for them."""
    others = {str(name).casefold(): str(name) for name in frame.columns if name not in known}
    close = {name: get_close_matches(name.casefold(), others, n=1) for name in absent[:MAX_LISTED_COLUMNS]}
    meant = ", ".join(f"{others[names[0]]!r} for {name!r}" for name, names in close.items() if names)
    hint = f"Did you mean {meant}?" if meant else explain_transposed(frame, absent)
    which = "" if n_needed == len(absent) == 1 else f" of the {n_needed:,} it needs"
    return (
        f"The table lacks {count(len(absent), 'column')}{which}: {listing(absent, MAX_LISTED_COLUMNS)}. "
        f"{hint or 'It has none with a similar name: is it the right table?'}"
    )


@dataclass(frozen=True)
class Scaling:
    """Imputation and standardisation, learned from some rows."""

    medians: Vector | None  # None if missing values are not imputed
    mean: Vector
    spread: Vector  # the standard deviations

    @classmethod
    def learn(cls, X: Matrix, repeats: Vector, impute: bool, standardize: bool) -> "Scaling":
        """Return the medians, and the weighted means and standard deviations, of these rows.

        The standard deviation of a column that does not vary is 1.
        """
        n_features = X.shape[1]
        medians = None
        if impute:
            medians = np.zeros(n_features)
            known = ~np.isnan(X).all(axis=0)
            medians[known] = np.nanmedian(X[:, known], axis=0)
            X = np.where(np.isnan(X), medians, X)
        if not standardize:
            return cls(medians, np.zeros(n_features), np.ones(n_features))
        weights = repeats / repeats.max()
        mean = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        varies = (spread > 1e-12 * np.abs(mean)) & (spread > SMALLEST_SPREAD)
        return cls(medians, mean, np.where(varies, spread, 1.0))

    def __call__(self, X: Matrix) -> Matrix:
        if self.medians is not None:
            X = np.where(np.isnan(X), self.medians, X)
        if self.is_plain:
            return X
        return np.clip((X - self.mean) / self.spread, -MAX_SCALED, MAX_SCALED)

    @property
    def is_plain(self) -> bool:
        """Whether scaling leaves every feature unchanged: all means are 0 and all standard deviations 1."""
        return not self.mean.any() and bool((self.spread == 1).all())
