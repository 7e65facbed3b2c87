"""Columns: what they hold, row names among them, and features encoded as numbers."""

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

GAPS = {"", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "?"}  # texts of no value
TRUTH = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0, "TRUE": 1.0, "FALSE": 0.0}
# a laboratory value below or above what was measured, such as <5 or > 100,5
CENSORED = re.compile(r"[<>≤≥]=?\s*\d+([.,]\d+)*")
LARGEST = 1e150  # beyond, squares are no numbers


def kind_of(column: pd.Series) -> str:
    """ "number" (true and false are numbers), "text", or what else the column holds."""
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
    """A column of numbers, NaN where a value is missing."""
    if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
        return np.array([np.nan if pd.isna(value) else float_of(value) for value in column], dtype=np.float64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def texts_to_numbers(column: pd.Series) -> pd.Series | None:
    """A column of texts of numbers, as readers of files would read it; None where one is no number."""
    texts = column.map(lambda value: value.strip() if isinstance(value, str) else value)
    texts = texts.map(lambda value: np.nan if isinstance(value, str) and value in GAPS else value)
    truth = texts.map(TRUTH)
    numbers = truth if (truth.notna() | texts.isna()).all() else pd.to_numeric(texts, errors="coerce")
    return numbers.astype(float) if (numbers.notna() | texts.isna()).all() else None


def float_of(value: Any) -> float:
    """A number, infinite if it is too long to be one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_texts(column: pd.Series) -> np.ndarray:
    """A column as text, None where a value is missing. Whole numbers read the same however stored."""
    return np.array([None if pd.isna(value) else text_of(value) for value in column], dtype=object)


def text_of(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


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
    sizes = {name: np.abs(to_numbers(frame[name])) for name in frame.columns}
    infinite = [name for name, size in sizes.items() if np.isinf(size).any()]
    if infinite:
        raise InputError(
            f"Column {listing(infinite)} holds infinite values. Replace them, or leave the column out with "
            "--drop."
        )
    huge = [name for name, size in sizes.items() if (size > LARGEST).any()]
    if huge:
        raise InputError(
            f"Column {listing(huge)} holds numbers beyond {LARGEST:g}, perhaps a code for missing values. "
            "Replace them, or leave the column out with --drop."
        )


def explain_censored(column: pd.Series, name: str) -> str | None:
    """Advice on a column of numbers with values such as '<5' among them; None for any other column."""
    texts = pd.Series([text for text in to_texts(column) if text is not None], dtype=object).str.strip()
    is_number = pd.to_numeric(texts.str.replace(",", ".", regex=False), errors="coerce").notna()
    is_censored = texts.str.fullmatch(CENSORED).astype(bool)
    if not is_censored.any() or not (is_number | is_censored).all():
        return None
    example, n_censored = texts[is_censored].iloc[0], int(is_censored.sum())
    below = example[0] in "<≤"
    limit = example.lstrip("<>≤≥= ")
    number = f"{limit} or half of it" if below else limit
    return (
        f"Column {name!r} holds laboratory values such as {example!r} ({count(n_censored, 'row')}), "
        f"{'below' if below else 'above'} what was measured, not numbers. Replace each by one number, "
        f"the same in every row and in new tables (for {example!r} {number})."
    )


def first_text(column: pd.Series) -> str:
    """The first value that is not a number, so that a stray '?' among numbers is named."""
    texts = column.dropna().astype(str)
    strays = texts[pd.to_numeric(texts, errors="coerce").isna()]
    return str((strays if len(strays) else texts).iloc[0])[:40]


def quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name


LEAST_ROWS = 5  # below, values differ without naming anything
LEAST_IN_ORDER = 8  # so many measurements are not in order by chance
MOST_DOUBTS = 3  # more columns of different whole numbers are counts
# patient_id, PatientID, case no., id_2, Patient; not "number of nodes", nor "body mass index"
NAMING = re.compile(
    r"(?i:(^|[\W_])(id|ids|nr|no|num|number|key|uid|uuid|guid|barcode|accession|mrn|pid|nummer)[\W_]*$)"
    r"|(?i:^(id|nr|no)[\W_])|(?<=[a-z])(ID|Id|Nr|No)$|(?i:nummer$)"
    r"|(?i:^(index|idx|patient|subject|sample|participant|case|record|row|name|code|fall|proband|column 1)$)"
)
NUMBER_LIKE = re.compile(r"[<>≤≥~]?\s*[+-]?\d+([.,]\d+)*\s*\S{0,3}")


def find_row_names(features: pd.DataFrame, kept: Collection[str]) -> tuple[list[str], list[str], list[str]]:
    """The columns to leave out, others that may name rows, and what there is to say about both.

    Left out are columns of different texts, and of different whole numbers that count the rows, are in
    order, or are called as ids are. Other whole numbers, such as counts, may well be different in each row.
    """
    found: dict[str, str] = {}
    doubtful: list[str] = []
    if len(features) >= LEAST_ROWS:
        for name in features.columns:
            if name in kept:
                continue
            reason = _reason(features[name], str(name))
            if reason == "":
                doubtful.append(str(name))
            elif reason is not None:
                found[str(name)] = reason
    notes = [
        f"Column {name!r} {reason}: it is left out. Use --feature {quoted(name)} to include it."
        for name, reason in list(found.items())[:MOST_DOUBTS]
    ]
    if len(found) > MOST_DOUBTS:
        more = list(found)[MOST_DOUBTS:]
        notes.append(f"So {'is' if len(more) == 1 else 'are'} {listing(more)}, for the same reasons.")
    if 0 < len(doubtful) <= MOST_DOUBTS:
        notes.append(
            f"{listing(doubtful)}: each row has a different whole number. If {_it(doubtful)} the rows, leave "
            f"{'it' if len(doubtful) == 1 else 'them'} out with --drop."
        )
        return list(found), doubtful, notes
    return list(found), [], notes


def _it(names: list[str]) -> str:
    return "it names" if len(names) == 1 else "they name"


def _reason(column: pd.Series, name: str) -> str | None:
    """Why a column is no feature; nothing where that is in doubt, None where it may be one."""
    kind = kind_of(column)
    if kind == "text":
        texts = [text for text in to_texts(column) if text is not None]
        if len(set(texts)) < len(column):
            return None
        are_numbers = sum(NUMBER_LIKE.fullmatch(text) is not None for text in texts)
        return None if 2 * are_numbers > len(texts) else "has a different text in each row"
    if kind != "number" or pd.api.types.is_bool_dtype(column.dtype):
        return None
    numbers = to_numbers(column)
    if not (np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()):
        return None
    if len(np.unique(numbers)) < len(numbers):
        return None
    steps = np.diff(numbers)
    if numbers.max() - numbers.min() == len(numbers) - 1:
        return "numbers the rows"
    if len(numbers) >= LEAST_IN_ORDER and ((steps > 0).all() or (steps < 0).all()):
        return "has a different whole number in each row, in order"
    return "has a different whole number in each row, and the name of an id" if NAMING.search(name) else ""


def explain_lying(frame: pd.DataFrame, wanted: Collection[str]) -> str:
    """What to do about a table that lies on its side, if this one does; else nothing.

    It does if its first column has what is wanted, or if that holds different texts and all others numbers,
    in more rows than there are columns.
    """
    first = frame.iloc[:, 0]
    if kind_of(first) != "text":
        return ""
    texts = to_texts(first)
    if set(wanted) & set(texts):
        return (
            f"But {listing(sorted(set(wanted) & set(texts)), 3)} is in the first column. If the features are "
            "in rows, add --transpose."
        )
    others = frame.iloc[:, 1:]
    if len(set(texts)) < len(texts) or len(frame) <= frame.shape[1] or others.shape[1] < 2:
        return ""
    if not all(pd.api.types.is_numeric_dtype(dtype) for dtype in others.dtypes):
        return ""
    return (
        f"With {count(len(frame), 'name')} in its first column and numbers in the others the table seems to "
        "have its features in rows: add --transpose, and --labels FILE if the classes are in a separate file."
    )


SMALLEST = 1e-150  # spreads below are none; `columns.LARGEST` is the other end
MOST_NAMED = 8  # of the columns that a table lacks
FARTHEST = 1e50  # in spreads: a number farther out counts as this far, so that powers of it are numbers


@dataclass(frozen=True)
class Encoding:
    """Which columns are features, and which values of a text column are features of their own."""

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in self.names_of(column)]

    def names_of(self, column: str) -> list[str]:
        """The features that a column becomes."""
        values = self.categories.get(column)
        return [column] if values is None else [f"{column}={value}" for value in values]

    def matrix(self, frame: pd.DataFrame) -> Matrix:
        """The features, NaN where a number is missing; a missing text, or a new one, is all zeros."""
        blocks = []
        for column in self.columns:
            if column in self.categories:
                texts = to_texts(frame[column])
                blocks += [(texts == value).astype(np.float64) for value in self.categories[column]]
            else:
                blocks.append(to_numbers(frame[column]))
        return np.column_stack(blocks) if blocks else np.empty((len(frame), 0))

    def match(self, table: Table, needed: set[str], has_medians: bool) -> tuple[Matrix, list[str]]:
        """The features of a new table, found by name, and what there is to say about it.

        Features of columns that are not needed are zero, whatever the table holds. Raises InputError
        where needed columns or values are missing, or are no numbers.
        """
        frame = table.frame
        columns = [column for column in self.columns if column in needed]
        absent = [column for column in columns if column not in frame.columns]
        if absent and table.absent_is_zero:
            zeros = pd.DataFrame(0.0, columns=absent, index=frame.index)
            frame = pd.concat([frame, zeros], axis=1)
        elif absent:
            raise InputError(_explain_absent(frame, absent, len(columns), set(self.columns)))
        frame = frame[columns].copy()
        numeric = [column for column in columns if column not in self.categories]
        for name in numeric:
            if (kind := kind_of(frame[name])) == "number":
                continue
            numbers = texts_to_numbers(frame[name]) if kind == "text" else None
            if numbers is None:
                example = f", such as {first_text(frame[name])!r}" if kind == "text" else ""
                if kind == "text" and (advice := explain_censored(frame[name], name)) is not None:
                    raise InputError(advice)
                raise InputError(
                    f"Column {name!r} holds {kind}{example}, but the model was fitted to numbers. Give "
                    "numbers."
                )
            frame[name] = numbers
        if not has_medians:
            check_missing(frame, "Fill them in, or fit again with --impute median.")
        check_finite(frame[numeric])
        others = [column for column in self.columns if column not in needed]
        nothing = pd.DataFrame(0.0, columns=others, index=frame.index)
        return self.matrix(pd.concat([frame, nothing], axis=1)), self._notes(frame)

    def _notes(self, frame: pd.DataFrame) -> list[str]:
        notes = []
        for column in [column for column in frame.columns if column in self.categories]:
            known = self.categories[column]
            new = sorted({text for text in to_texts(frame[column]) if text is not None} - set(known))
            if new:
                notes.append(f"Column {column!r} holds {listing(new)}, unknown to the model: taken as none.")
        return notes


def _explain_absent(frame: pd.DataFrame, absent: list[str], n_needed: int, known: set[str]) -> str:
    """Which columns a table lacks, and what it may call them."""
    free = [name for name in frame.columns if name not in known]
    folded = {str(name).casefold(): str(name) for name in free}
    near = {}
    for name in absent[:MOST_NAMED]:
        close = get_close_matches(name.casefold(), folded, n=1)
        if close:
            near[name] = folded[close[0]]
    which = "" if n_needed == len(absent) == 1 else f" of the {n_needed:,} it needs"
    hint = explain_lying(frame, absent)
    if near:
        meant = ", ".join(f"{there!r} for {name!r}" for name, there in near.items())
        hint = f"Did you mean {meant}?"
    return (
        f"The table lacks {count(len(absent), 'column')}{which}: {listing(absent, MOST_NAMED)}. "
        f"{hint or 'It has none that is called alike: is it the right table?'}"
    )


@dataclass(frozen=True)
class Scaling:
    """Missing numbers filled in, then mean and spread taken out; all learned from some rows."""

    medians: Vector | None
    mean: Vector
    spread: Vector

    @classmethod
    def learn(cls, X: Matrix, repeats: Vector, impute: bool, standardize: bool) -> "Scaling":
        """Fit the preparation to these rows: medians, and weighted means and standard deviations."""
        n_features = X.shape[1]
        medians = None
        if impute:
            medians = np.zeros(n_features)
            known = ~np.isnan(X).all(axis=0)
            medians[known] = np.nanmedian(X[:, known], axis=0)
            X = np.where(np.isnan(X), medians, X)
        if not standardize:
            return cls(medians, np.zeros(n_features), np.ones(n_features))
        return cls(medians, *measure(X, repeats))

    def __call__(self, X: Matrix) -> Matrix:
        if self.medians is not None:
            X = np.where(np.isnan(X), self.medians, X)
        if self.is_plain:
            return X
        return np.clip((X - self.mean) / self.spread, -FARTHEST, FARTHEST)

    @property
    def is_plain(self) -> bool:
        """Whether scaling leaves every feature unchanged: all means are 0 and all standard deviations 1."""
        return not self.mean.any() and bool((self.spread == 1).all())


def measure(X: Matrix, repeats: Vector) -> tuple[Vector, Vector]:
    """Mean and spread of each column; the spread of one that does not vary is 1.

    Numbers up to `columns.LARGEST` can be squared, and added if their weights are of the order of one.
    """
    weights = repeats / repeats.max()
    mean = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    varies = (spread > 1e-12 * np.abs(mean)) & (spread > SMALLEST)
    return mean, np.where(varies, spread, 1.0)
