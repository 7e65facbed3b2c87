"""CSV that is safe to open in a spreadsheet.

A spreadsheet takes a cell that starts with = + - or @ for a formula, and formulas can start programs and
send data away. Names of columns, classes and rows come from tables that others wrote, so a text of theirs
that a spreadsheet would run gets an apostrophe in front, which makes it text there. Numbers, bare signs,
and texts such as `-1 vs 1` or `-dose`, a sign and then words and numbers only, stay as they are.
"""

import csv
import re
from typing import Any

import pandas as pd

_FORMULA = re.compile(r"[=@\t\r\n＝＠]|[+\-＋－](?![\w .,+-]*\Z)")


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV, texts protected."""
    safe = {
        at: frame.iloc[:, at].map(protect)
        for at, dtype in enumerate(frame.dtypes)
        if not pd.api.types.is_numeric_dtype(dtype)
    }
    columns = [safe.get(at, frame.iloc[:, at]) for at in range(frame.shape[1])]
    guarded = pd.concat(columns, axis=1) if columns else frame
    guarded.columns = [protect(name) for name in frame.columns]
    text = str(guarded.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # breaks the line for those who read it, unless in quotes
        text = str(guarded.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text


def protect(value: Any) -> Any:
    """A text that no spreadsheet runs; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
