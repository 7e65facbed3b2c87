"""A file, a frame or an array as a table."""

import csv
import io
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.core.validation import InputError, count, listing
from kmargin.tables.dialect import (
    FALLBACK,
    SEPARATORS,
    Dialect,
    Reading,
    check_content,
    find_dialect,
    is_whole,
    open_bytes,
    seekable,
)

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


MOST_BYTES = 2e9  # of a dense matrix

# what NumPy and zipfile raise for bytes that are not what they should be
DAMAGED_ARCHIVE = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, SyntaxError, OverflowError, NotImplementedError),
    *(
        RuntimeError,
        MemoryError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        tokenize.TokenError,
    ),
)


class Table(NamedTuple):
    """A table as it lies in a file."""

    frame: pd.DataFrame
    target: str | None = None  # the column with the classes, if the format itself says which
    absent_is_zero: bool = False  # columns that are not there are zero (svmlight)
    notes: tuple[str, ...] = ()
    row_names: pd.Series | None = None  # where rows have names in no column


AS_FOUND = Reading()


def read_table(path: str | Path, how: Reading = AS_FOUND) -> Table:
    """Read a file in the format of its ending.

    Raises InputError, with one sentence, for whatever keeps it from being read.
    """
    path, how = Path(path), how.check()
    form = check_content(path, is_text=how.encoding is not None)
    if form not in ("csv", "tsv"):
        _check_unsaid(path, how)
    if form in ("csv", "tsv", "xlsx"):
        text = read_text(path, form, how)
        table = Table(text.frame, notes=text.notes, row_names=text.row_names)
    else:
        table = READERS[form](path)
        table = _transpose(path, table) if how.transpose else table
    if len(table.frame) == 0:
        raise InputError(f"{path.name} has column names but no rows. Give rows of data.")
    return table


def _check_unsaid(path: Path, how: Reading) -> None:
    """Raises InputError where something is said of text, and the file holds none."""
    for option in ("sep", "decimal", "encoding"):
        if getattr(how, option) is not None:
            raise InputError(
                f"--{option} applies to text tables (.csv, .tsv), but {path.name} is not one. Leave it out."
            )


def _transpose(path: Path, table: Table) -> Table:
    """Rows as columns, named by the first column, which has to be of texts."""
    frame = table.frame
    if table.target is not None or pd.api.types.is_numeric_dtype(frame.iloc[:, 0].dtype):
        raise InputError(
            f"--transpose takes the feature names from the first column, but {path.name} has no names there. "
            "Transpose the table before you save it."
        )
    names = [str(name) for name in frame.iloc[:, 0]]
    check_names(path, names, "row")
    turned = frame.iloc[:, 1:].T.reset_index(drop=True).infer_objects()
    turned.columns = names
    return Table(turned, row_names=pd.Series(frame.columns[1:], name="id", dtype=object))


def _read_parquet(path: Path) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        content = seekable(path)
        check_names(path, parquet.read_schema(content).names)
        frame = parquet.read_table(content).to_pandas()
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} starts like Parquet but cannot be read; it may be truncated. Write it again."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame)


def _read_svmlight(path: Path) -> Table:
    """Columns are named by the indices of the file: f1 is what the file calls 1."""
    try:
        with open_bytes(path) as file:
            X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path.name} is not in svmlight format ({error}). "
            "Each line is a class and then index:value pairs, such as '1 3:0.5 7:2'."
        ) from error
    if X.shape[0] * X.shape[1] * 8 > MOST_BYTES:
        raise InputError(
            f"{path.name} has {X.shape[0]:,} rows and {X.shape[1]:,} features: {_gigabytes(X.shape)} as a "
            f"dense table, but kmargin accepts at most {MOST_BYTES / 1e9:g} GB. Leave out rows or features."
        )
    first = 1 if X.shape[1] > 1 and X[:, 0].nnz == 0 else 0
    frame = pd.DataFrame(X.toarray()[:, first:], columns=[f"f{i}" for i in range(first, X.shape[1])])
    frame["target"] = y.astype(np.int64) if (y == np.round(y)).all() else y
    return Table(frame, target="target", absent_is_zero=True)


def _read_npz(path: Path) -> Table:
    try:
        content = seekable(path)
        _check_sizes(path, content)
        if isinstance(content, io.BytesIO):
            content.seek(0)
        with np.load(content, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("X", "y", "feature_names") if name in archive}
            others = list(archive)
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        is_pickle = "pickle" in str(error).lower()
        reason = "it holds Python objects, which kmargin never opens" if is_pickle else "it is damaged"
        raise InputError(f"{path.name} cannot be read: {reason}. Save plain arrays X and y.") from error
    if "X" not in arrays:
        raise InputError(f"{path.name} has no array X; it has {listing(others)}. Save it with X and y.")
    X, y = arrays["X"], arrays.get("y")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(
            f"X in {path.name} has shape {X.shape} and type {X.dtype}. Save numbers, a row per sample."
        )
    names = [str(name) for name in arrays.get("feature_names", [f"f{i + 1}" for i in range(X.shape[1])])]
    if len(names) != X.shape[1]:
        raise InputError(f"{path.name} has {len(names)} feature_names for the {X.shape[1]} columns of X.")
    frame = pd.DataFrame(X, columns=names)
    if y is None:
        check_names(path, names)
        return Table(frame)
    if y.shape != (len(X),):
        raise InputError(f"y in {path.name} has shape {y.shape} for {len(X)} rows of X. Save one per row.")
    check_names(path, [*names, "y"])
    return Table(frame.assign(y=y), target="y")


def _check_sizes(path: Path, content: Path | io.BytesIO) -> None:
    """Raises InputError where arrays say that they are larger than kmargin takes, before they are made."""
    with zipfile.ZipFile(content) as archive:
        for info in archive.infolist():
            with archive.open(info) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
                shape, _, dtype = (read or np.lib.format.read_array_header_2_0)(file)
            if math.prod(shape) * dtype.itemsize > MOST_BYTES:
                raise InputError(
                    f"{info.filename} in {path.name} has shape {shape}, but kmargin accepts at most "
                    f"{MOST_BYTES / 1e9:g} GB. Leave out rows or features."
                )


READERS = {"svmlight": _read_svmlight, "npz": _read_npz, "parquet": _read_parquet}


def _gigabytes(shape: tuple[int, int]) -> str:
    return f"{shape[0] * shape[1] * 8 / 1e9:.1f} GB"


def to_table(X: Any, columns: Sequence[str], needed: Sequence[str]) -> Table:
    """A table of these columns, by name where there are names, else in this order.

    Raises InputError where X has another number of columns, or is no table at all.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, pd.DataFrame):
        return Table(_named(X.copy(deep=False)))
    if hasattr(X, "to_pandas"):  # polars, arrow
        return Table(_named(X.to_pandas()))
    if isinstance(X, Mapping):
        return Table(_named(pd.DataFrame(dict(X))))
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return Table(_named(pd.DataFrame(list(X))))
    return Table(_from_array(X, columns, needed))


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = [str(name) for name in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"X has more than one column called {listing(list(repeated.unique()))}. Give each a unique name."
        )
    return frame


def _from_array(X: Any, columns: Sequence[str], needed: Sequence[str]) -> pd.DataFrame:
    """Rows of numbers or texts without names: all columns that the model was fitted to, in their order."""
    X = X.toarray() if hasattr(X, "toarray") else X  # sparse matrices
    try:
        values = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise InputError(
            "X has rows of different lengths. Give one value per column in every row."
        ) from error
    if values.ndim != 2:
        raise InputError(
            f"X of shape {values.shape} is not a table. Give a data frame with the columns "
            f"{listing(needed)}, or a two-dimensional array; a single row is [row]."
        )
    if values.shape[1] != len(columns):
        raise InputError(
            f"X has {count(values.shape[1], 'column')}, but without names the model expects the "
            f"{len(columns):,} that it was fitted to, in this order: {listing(columns, 8)}. A data frame "
            f"needs only {listing(needed, 8)}."
        )
    return pd.DataFrame(values, columns=list(columns))
