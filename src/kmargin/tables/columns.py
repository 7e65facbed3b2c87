"""Columns of a frame as numbers: what each holds, and what is missing from it."""

import math
import numbers
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing
from kmargin.types import Vector

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


def is_whole(numbers: pd.Series) -> bool:
    """Whether all are whole numbers that floats hold exactly."""
    return bool((numbers.abs() < 2**53).all() and (numbers == numbers.round()).all())


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
