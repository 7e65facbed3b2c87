"""Columns that name the rows, or number them: on rows not seen they say nothing."""

import re
from collections.abc import Collection

import numpy as np
import pandas as pd

from kmargin.errors import count, listing
from kmargin.tables.columns import kind_of, quoted, to_numbers, to_texts

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
