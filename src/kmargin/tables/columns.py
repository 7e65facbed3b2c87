"""Columns of a frame as numbers: what each holds, and what is missing from it."""

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing
from kmargin.types import Vector

MOST_CATEGORIES = 50  # of a text column, where they are also more than half as many as its rows
GAPS = {"", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "?"}  # texts of no value
TRUTH = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0, "TRUE": 1.0, "FALSE": 0.0}
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


def check_kinds(frame: pd.DataFrame, encode: str | None) -> list[str]:
    """The text columns of a frame. Raises InputError where they, or others, cannot be made numbers."""
    kinds = {name: kind_of(frame[name]) for name in frame.columns}
    others = [name for name, kind in kinds.items() if kind not in ("number", "text")]
    if others:
        raise InputError(
            f"Column {others[0]!r} holds {kinds[others[0]]}, not numbers. "
            f"Leave it out with --drop {quoted(others[0])}."
        )
    texts = [name for name, kind in kinds.items() if kind == "text"]
    if texts and encode is None:
        examples = [f"{name!r} (such as {first_text(frame[name])!r})" for name in texts[:5]]
        more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
        hold = "holds" if len(texts) == 1 else "hold"
        raise InputError(
            f"{count(len(texts), 'column')} {hold} text, not numbers: {', '.join(examples)}{more}. "
            "Make a feature of each of their values with --encode onehot, or leave them out with --drop."
        )
    for name in texts:
        n_distinct, n_rows = frame[name].nunique(), len(frame)
        if n_distinct > MOST_CATEGORIES and 2 * n_distinct > n_rows:
            raise InputError(
                f"Column {name!r} holds {n_distinct:,} different texts in {n_rows:,} rows: a name, not a "
                f"feature. Use --id {quoted(name)} to carry it along, or --drop {quoted(name)}."
            )
    return texts


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
            f"Column {listing(infinite)} holds infinite numbers. Replace them, or leave it out with --drop."
        )
    huge = [name for name, size in sizes.items() if (size > LARGEST).any()]
    if huge:
        raise InputError(
            f"Column {listing(huge)} holds numbers beyond {LARGEST:g}: a mark for missing values? "
            "Replace them, or leave it out with --drop."
        )


def first_text(column: pd.Series) -> str:
    """The first value that is not a number, so that a stray '?' among numbers is named."""
    texts = column.dropna().astype(str)
    strays = texts[pd.to_numeric(texts, errors="coerce").isna()]
    return str((strays if len(strays) else texts).iloc[0])[:40]


def quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
