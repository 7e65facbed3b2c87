"""Tables of text, and sheets: fields to numbers, marks for missing values, tables that lie on their side."""

import csv
import io
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing
from kmargin.tables.columns import is_whole
from kmargin.tables.dialect import FALLBACK, SEPARATORS, Dialect, Reading, find_dialect
from kmargin.tables.packed import open_bytes, seekable

# beside those that pandas knows: taken for missing in columns that hold numbers otherwise
MARKS = {
    *("?", "-", "--", ".", "*", "na", "n.a.", "N.A.", "k.A.", "k. A.", "missing", "Missing", "unknown"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?"),
}


# what openpyxl raises for files that are no workbooks
DAMAGED_WORKBOOK = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
)
Opener = Callable[[], AbstractContextManager[IO[bytes]]]


class TextTable(NamedTuple):
    """A table of text as columns, and what there is to say about it."""

    frame: pd.DataFrame
    row_names: pd.Series | None  # where rows have names in no column
    notes: tuple[str, ...]


def read_text(path: Path, form: str, how: Reading) -> TextTable:
    """Raises InputError, with one sentence, for whatever keeps it from being read."""
    opener: Opener = partial(open_bytes, path)
    if form == "xlsx":
        content, dialect = _sheet_as_text(path)
        opener = partial(io.BytesIO, content)
    else:
        dialect = find_dialect(path, form, how)
    names = [name or f"column {at + 1}" for at, name in enumerate(dialect.names)]
    if len(names) == 1:
        raise InputError(
            f"{path.name} has only one column, {names[0][:60]!r}. Give a target and at least one feature, "
            "and name the separator with --sep."
        )
    if how.transpose:
        return _read_transposed(path, dialect, names, opener)
    check_names(path, names)
    frame = _parse(path, dialect, opener)
    row_names = None
    if dialect.has_row_names:
        row_names = frame.index.to_series().reset_index(drop=True)
        frame = frame.reset_index(drop=True)
    frame.columns = names
    notes = list(dialect.notes)
    frame = _without_empty(frame, dialect.names, notes)
    frame = _without_row_numbers(frame, dialect.names, notes)
    return TextTable(_marks_to_gaps(frame, dialect, notes), row_names, tuple(notes))


def _sheet_as_text(path: Path) -> tuple[bytes, Dialect]:
    """The first sheet of an Excel workbook that holds something, as CSV."""
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{path.name} is an Excel workbook, which needs openpyxl, and that is not installed. Install it "
            "(pip install openpyxl), or save the sheet as CSV."
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # extensions of Excel that hold no cells
            workbook = openpyxl.load_workbook(seekable(path), read_only=True, data_only=True)
            sheets = {sheet.title: _cells(sheet) for sheet in workbook.worksheets}
            workbook.close()
    except DAMAGED_WORKBOOK as error:
        raise InputError(
            f"{path.name} cannot be read as an Excel workbook: it is damaged or has a password. Save it "
            "again, or save the sheet as CSV."
        ) from error
    sheets = {title: rows for title, rows in sheets.items() if rows}
    if not sheets:
        raise InputError(f"{path.name} is empty. Give a sheet with a row of column names and rows of data.")
    title, rows = next(iter(sheets.items()))
    width = max(map(len, rows))
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    notes = (
        ()
        if len(sheets) == 1
        else (
            (
                f"{path.name} has {len(sheets)} sheets ({listing(list(sheets), 3)}): {title!r} is read. To "
                "use another sheet, save it as a separate file."
            ),
        )
    )
    names = [name.strip() for name in rows[0]]
    return text.getvalue().encode(), Dialect(",", ".", None, "utf-8", names, False, False, notes)


def _cells(sheet: Any) -> list[list[str]]:
    """The cells of a sheet as texts, from the first row that has any; gaps at the end of a row left out."""
    sheet.reset_dimensions()  # some programs write wrong ones
    rows: list[list[str]] = []
    for values in sheet.iter_rows(values_only=True):
        row = ["" if value is None else str(value) for value in values]
        while row and not row[-1].strip():
            row.pop()
        if row or rows:
            rows.append(row)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _parse(path: Path, dialect: Dialect, opener: Opener, **more: Any) -> pd.DataFrame:
    options: dict[str, Any] = {
        "sep": dialect.sep,
        "decimal": dialect.decimal,
        "thousands": dialect.thousands,
        "encoding": dialect.encoding,
        "encoding_errors": "replace" if dialect.encoding == FALLBACK else "strict",
        "index_col": None if dialect.has_row_names else False,
        "skiprows": 1 if dialect.has_hint else 0,
        "skipinitialspace": True,
        "low_memory": False,
    }
    try:
        with warnings.catch_warnings(), opener() as file:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return _read_csv(file, **options | more)
    except UnicodeError as error:
        raise InputError(
            f"{path.name} is not text in {dialect.encoding} ({str(error)[:80]}). Name its encoding with "
            "--encoding."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            reason = "rows have more fields than there are names"
        separators = SEPARATORS.get(dialect.sep, repr(dialect.sep))
        raise InputError(
            f"{path.name} cannot be read as columns separated by {separators}: {reason}. "
            "Give every row as many fields as there are names."
        ) from error


def _read_csv(file: IO[bytes] | IO[str], **options: Any) -> pd.DataFrame:
    return pd.read_csv(file, **options)


def _read_transposed(path: Path, dialect: Dialect, names: list[str], opener: Opener) -> TextTable:
    """A table whose rows are features: what its first column names, of what the first line names."""
    cells = _parse(path, dialect, opener, dtype=str, keep_default_na=False, decimal=".", thousands=None)
    if dialect.has_row_names:
        cells, names = cells.reset_index(), ["", *names]
    features = [str(name).strip() for name in cells.iloc[:, 0]]
    named = [place for place, name in enumerate(features) if name]
    features = [features[place] for place in named]
    check_names(path, features, "row")
    rows = pd.Series(names[1:], name="id", dtype=object)
    lying = cells.iloc[named, 1:].T
    if lying.size == 0:
        raise InputError(f"{path.name} has nothing to transpose. Give a table with features in rows.")
    # read as the file that it would be
    standing = io.StringIO(str(lying.to_csv(header=False, index=False)))
    options = {"decimal": dialect.decimal, "thousands": dialect.thousands, "low_memory": False}
    frame = _read_csv(standing, header=None, skipinitialspace=True, skip_blank_lines=False, **options)
    frame.columns = features
    notes = list(dialect.notes)
    return TextTable(_marks_to_gaps(frame, dialect, notes), rows, tuple(notes))


def check_names(path: Path, names: list[str], thing: str = "column") -> None:
    """Raises InputError where names repeat."""
    repeated = [name for name, times in Counter(map(str, names)).items() if times > 1]
    if repeated:
        raise InputError(
            f"{path.name} has more than one {thing} called {listing(repeated)}. Give each a unique name."
        )


def _without_empty(frame: pd.DataFrame, names: list[str], notes: list[str]) -> pd.DataFrame:
    """Without columns that have neither name nor values, and rows of separators: spreadsheets write them."""
    gaps = frame.isna()
    named = np.array([name != "" for name in names])
    columns = named | ~gaps.all(axis=0).to_numpy()
    rows = ~gaps.all(axis=1).to_numpy()
    if not rows.all() and rows.any():
        notes.append(f"{count(int((~rows).sum()), 'empty row')} left out.")
        frame = frame[rows].reset_index(drop=True)
        whole = [name for name in frame.columns[frame.dtypes == "float64"] if is_whole(frame[name])]
        frame = frame.astype(dict.fromkeys(whole, "int64"))  # which the empty rows had made fractions
    return frame.loc[:, columns]


def _without_row_numbers(frame: pd.DataFrame, names: list[str], notes: list[str]) -> pd.DataFrame:
    """Leave out a nameless first column that counts the rows: many programs write one."""
    first = frame.iloc[:, 0]
    if names[0] == "" and len(frame) and pd.api.types.is_integer_dtype(first):
        steps = first.to_numpy() - np.arange(len(frame))
        if (steps == steps[0]).all():
            notes.append("The first column has no name and numbers the rows, so it is left out.")
            return frame.iloc[:, 1:]
    return frame


def _marks_to_gaps(frame: pd.DataFrame, dialect: Dialect, notes: list[str]) -> pd.DataFrame:
    """Numbers with marks for missing values among them, as numbers with gaps."""
    changed: dict[str, pd.Series] = {}
    found: set[str] = set()
    for name in frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        texts = frame[name].astype(object)
        is_mark = texts.isin(MARKS)
        if not is_mark.any() or is_mark.all():
            continue
        numbers = pd.to_numeric(_plain(texts.mask(is_mark), dialect), errors="coerce")
        if (numbers.isna() == (is_mark | texts.isna())).all() and numbers.notna().any():
            changed[name] = numbers
            found |= set(texts[is_mark])
    if changed:
        verb = "is" if len(found) == 1 else "are"
        notes.append(f"{listing(sorted(found))} {verb} read as missing, in {_columns(list(changed))}.")
        frame = frame.assign(**changed)
    return frame


def _plain(texts: pd.Series, dialect: Dialect) -> pd.Series:
    """Numbers as Python writes them."""
    if dialect.thousands is not None:
        texts = texts.str.replace(dialect.thousands, "", regex=False)
    return texts.str.replace(",", ".", regex=False) if dialect.decimal == "," else texts


def _columns(names: list[str]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns: {listing(names)}"
