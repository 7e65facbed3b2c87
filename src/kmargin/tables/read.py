"""Read files, data frames and arrays as tables."""

import bz2
import gzip
import io
import lzma
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.core.validation import InputError, count, listing
from kmargin.tables.dialect import SEPARATORS, UTF_16_MARKS, Dialect, Reading, decode, detect_dialect

MAX_BYTES = 2e9  # of a dense matrix
# texts that count as missing values in numeric columns, in addition to those of pandas
MISSING_MARKS = {
    *("?", "-", "--", ".", "*", "na", "n.a.", "N.A.", "k.A.", "k. A.", "missing", "Missing", "unknown"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?"),
}
# what NumPy, openpyxl, pyarrow and zipfile raise for damaged files
DAMAGED_ARCHIVE = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, AttributeError, SyntaxError, OverflowError),
    *(RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)


class Table(NamedTuple):
    """A table as read from a file."""

    frame: pd.DataFrame
    target: str | None = None  # the column with the classes, if the file format defines it
    absent_is_zero: bool = False  # whether columns that are not there are zero (svmlight)
    notes: tuple[str, ...] = ()
    row_names: pd.Series | None = None  # names of the rows that are in no column


AS_DETECTED = Reading()


def read_table(path: str | Path, how: Reading = AS_DETECTED) -> Table:
    """Read a file in the format of its extension.

    Raises InputError, with one sentence, for whatever keeps it from being read.
    """
    path, how = Path(path), how.check()
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the file with the table.")
    if not path.exists():
        raise InputError(f"There is no file {path}.{_similar_files(path)}")
    name, content = unpack(path)
    form = find_format(path, name, content, is_text=how.encoding is not None)
    for option in ("sep", "decimal", "encoding"):
        if form not in ("csv", "tsv") and getattr(how, option) is not None:
            raise InputError(
                f"--{option} applies to text tables (.csv, .tsv), but {path.name} is not one. Leave it out."
            )
    if form in ("csv", "tsv"):
        table = _read_text(path.name, *decode(path.name, content, how.encoding), form, how)
    elif form == "xlsx":
        table = _read_text(
            path.name, *_sheet_to_csv(path.name, content), "csv", how._replace(sep=",", decimal=".")
        )
    else:
        table = READERS[form](path.name, content)
        table = _transpose(path.name, table) if how.transpose else table
    if len(table.frame) == 0:
        raise InputError(f"{path.name} has column names but no rows. Give rows of data.")
    return table


# Compression and file formats

PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
ARCHIVER_FILES = ("__MACOSX/", ".DS_Store")  # added to zip archives by archivers
FORMATS = {
    **{".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"},
    **{".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".npz": "npz"},
    **{".xlsx": "xlsx", ".xlsm": "xlsx"},
}
CONTENTS = {"parquet": "Parquet", "npz": "a NumPy archive", "xlsx": "an Excel workbook"}  # others: text
ADVICE = {
    "Parquet": "Rename it to end in .parquet.",
    "compressed with gzip": "Rename it to end in .gz, or extract it.",
    "a ZIP archive": "Rename it to end in .zip, or extract it.",
    "a NumPy archive": "Rename it to end in .npz.",
    "an Excel workbook": "Rename it to end in .xlsx.",
    "a web page": "It may be a sign-in or error page: download the data again.",
}
SAVE_AS_CSV = (
    "Save the table as CSV: in a spreadsheet or SPSS with Save As, in R with "
    "write.csv(table, 'table.csv', row.names = FALSE), in Python with table.to_csv('table.csv', index=False)."
)
CONTROL_BYTES = bytes([*range(7), *range(14, 27), *range(28, 32)])  # not in any text but UTF-16


def unpack(path: Path) -> tuple[str, bytes]:
    """Return the name and the content of the table in a file, which may be compressed."""
    content, packing = path.read_bytes(), PACKED.get(path.suffix.lower())
    if packing is None or not content:
        return path.name, content
    try:
        match packing:
            case "gzip":
                content = gzip.decompress(content)
            case "bzip2":
                content = bz2.decompress(content)
            case "xz":
                content = lzma.decompress(content)
            case "zstd":
                import pyarrow

                content = pyarrow.input_stream(pyarrow.BufferReader(content), compression="zstd").read()
            case "zip":
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    names = [info.filename for info in archive.infolist() if not info.is_dir()]
                    names = [name for name in names if not any(mark in name for mark in ARCHIVER_FILES)]
                    if len(names) != 1:
                        held = f"{len(names)} files: {listing(names, 3)}" if names else "no file"
                        raise InputError(
                            f"{path.name} holds {held}. Compress only the file with the table, or extract it."
                        )
                    return names[0], archive.read(names[0])
    except InputError:
        raise
    except (*DAMAGED_ARCHIVE, lzma.LZMAError) as error:
        raise InputError(
            f"{path.name} ends in {path.suffix}, but its content is not compressed with {packing}, or is "
            "damaged or truncated. Rename it, or download it again."
        ) from error
    return path.stem, content


def find_format(path: Path, name: str, content: bytes, is_text: bool) -> str:
    """Return the format of a file extension. Raises InputError where the content is something else.

    `is_text` skips that check for text in an encoding that the user gave.
    """
    if not content.strip():
        raise InputError(f"{path.name} is empty. Give a file with a row of names and rows of data.")
    suffix = Path(name).suffix
    form = FORMATS.get(suffix.lower())
    if form is None:
        raise InputError(
            f"{path.name} ends in {suffix or 'nothing'}, which kmargin does not read. It reads "
            f"{', '.join(FORMATS)}, also compressed ({', '.join(PACKED)}). {SAVE_AS_CSV}"
        )
    found = "text" if is_text and form in ("csv", "tsv") else _recognise(content)
    if found != CONTENTS.get(form, "text"):
        ending = "".join(path.suffixes[-2:]) if path.suffix in PACKED else path.suffix
        raise InputError(
            f"{path.name} ends in {ending}, but its content is {found}. {ADVICE.get(found, SAVE_AS_CSV)}"
        )
    return form


def _recognise(content: bytes) -> str:
    """Return the kind of a file's content, in words; "text" if it may be a text table."""
    start = content[:4096]
    if start.startswith(b"PAR1"):
        return "Parquet"
    if start.startswith(b"\x1f\x8b"):
        return "compressed with gzip"
    if start.startswith(b"PK\x03\x04"):
        try:
            names = zipfile.ZipFile(io.BytesIO(content)).namelist()
        except (zipfile.BadZipFile, OSError):
            return "a damaged ZIP archive"
        if any(name.startswith("xl/") for name in names):
            return "an Excel workbook"
        return "a NumPy archive" if all(name.endswith(".npy") for name in names) else "a ZIP archive"
    if not start.startswith(UTF_16_MARKS) and len(start.translate(None, CONTROL_BYTES)) < len(start):
        return "not text"
    words = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "a web page" if words.startswith((b"<!doctype html", b"<html", b"<head")) else "text"


def _similar_files(path: Path) -> str:
    """Return a sentence with the tables in the same folder that have similar names, or nothing."""
    endings = tuple("".join(parts) for parts in product(FORMATS, ("", *PACKED)))
    names = sorted(p.name for p in path.parent.glob("*.*") if p.name.lower().endswith(endings))
    close = get_close_matches(path.name, names, n=3, cutoff=0.75)
    close = close or [name for name in names if name.startswith(path.name[:3])][:3]
    return f" There is {', '.join(close)}." if close else ""


# Text tables


def _read_text(file: str, text: str, notes: list[str], form: str, how: Reading) -> Table:
    text, dialect = detect_dialect(text, form, how)
    if dialect.decimal == "," and how.decimal is None:
        notes.append(f"{file} seems to have decimal commas. If it does not, add --decimal .")
    names = [name or f"column {place}" for place, name in enumerate(dialect.names, 1)]
    if len(names) - dialect.has_row_names == 1:
        raise InputError(
            f"{file} has only one column, {names[-1][:60]!r}. Give a target and at least one feature, "
            "and name the separator with --sep."
        )
    row_names: pd.Series | None = None
    if how.transpose:
        frame, row_names = _parse_transposed(file, text, dialect)
    else:
        check_unique(file, names)
        frame = _parse(file, text, dialect)
        frame.columns = names
        frame = _drop_empty(frame, dialect.names, notes)
        if frame.shape[1] == 0:
            raise InputError(f"{file} has neither names nor values. Give a row of names and rows of data.")
        first = frame.iloc[:, 0]
        if dialect.has_row_names:
            row_names, frame = first, frame.iloc[:, 1:]
        elif dialect.names[0] == "" and first.dtype == "int64" and (first.diff().iloc[1:] == 1).all():
            notes.append("The first column has no name and numbers the rows, so it is left out.")
            frame = frame.iloc[:, 1:]
    frame = _marks_to_missing(frame, dialect, notes)
    return Table(frame, notes=tuple(notes), row_names=row_names)


def _parse(file: str, text: str, dialect: Dialect, **more: Any) -> pd.DataFrame:
    options: dict[str, Any] = {"decimal": dialect.decimal, "thousands": dialect.thousands}
    options |= {"index_col": False, "skipinitialspace": True, "low_memory": False} | more
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(io.StringIO(text), sep=dialect.sep, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, UnicodeError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            reason = "rows have more fields than there are names"
        separators = SEPARATORS.get(dialect.sep, repr(dialect.sep))
        raise InputError(
            f"{file} cannot be read as columns separated by {separators}: {reason}. "
            "Give every row as many fields as there are names."
        ) from error


def _parse_transposed(file: str, text: str, dialect: Dialect) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table with a feature in each row: its samples, and the names of these in the first line."""
    as_text = {"dtype": str, "keep_default_na": False, "decimal": ".", "thousands": None}
    cells = _parse(file, text, dialect, header=None, **as_text)
    features = cells.iloc[1:, 0].str.strip()
    features = features[features != ""]
    check_unique(file, list(features), "row")
    values = cells.loc[features.index].iloc[:, 1:]
    if values.size == 0:
        raise InputError(f"{file} has nothing to transpose. Give a table with features in rows.")
    standing = values.T.to_csv(header=False, index=False)
    frame = _parse(file, standing, dialect._replace(sep=","), header=None)
    frame.columns = list(features)
    samples = [name.strip() or f"column {place}" for place, name in enumerate(cells.iloc[0, 1:], 2)]
    return frame, pd.Series(samples, name="id", dtype=object)


def _transpose(file: str, table: Table) -> Table:
    if table.target is not None or pd.api.types.is_numeric_dtype(table.frame.iloc[:, 0].dtype):
        raise InputError(
            f"--transpose takes the feature names from the first column, but {file} has no names there. "
            "Transpose the table before you save it."
        )
    dialect = Dialect(",", ".", None, list(table.frame.columns))
    frame, row_names = _parse_transposed(file, table.frame.to_csv(index=False), dialect)
    return Table(frame, row_names=row_names)


def check_unique(source: str, names: Sequence[object], thing: str = "column") -> None:
    """Raises InputError where names repeat."""
    repeated = [name for name, times in Counter(map(str, names)).items() if times > 1]
    if repeated:
        raise InputError(
            f"{source} has more than one {thing} called {listing(repeated)}. Give each a unique name."
        )


def _drop_empty(frame: pd.DataFrame, names: list[str], notes: list[str]) -> pd.DataFrame:
    """Drop rows of nothing but separators, and columns without name and values: spreadsheets write both."""
    missing = frame.isna()
    columns = np.array([name != "" for name in names]) | ~missing.all(axis=0).to_numpy()
    rows = ~missing.all(axis=1).to_numpy()
    if not rows.all() and rows.any():
        notes.append(f"{count(int((~rows).sum()), 'empty row')} left out.")
        frame = frame[rows].reset_index(drop=True).apply(to_whole)
    return frame.loc[:, columns]


def to_whole(column: pd.Series) -> pd.Series:
    """Return whole numbers as integers: missing values, now dropped, had made them floats."""
    if column.dtype != "float64" or not ((column.abs() < 2**53) & (column == column.round())).all():
        return column
    return column.astype("int64")


def _marks_to_missing(frame: pd.DataFrame, dialect: Dialect, notes: list[str]) -> pd.DataFrame:
    """Make numbers of columns that hold nothing but numbers and `MISSING_MARKS`."""
    changed: dict[str, pd.Series] = {}
    found: set[str] = set()
    for name in frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        texts = frame[name].astype(object)
        is_mark = texts.isin(MISSING_MARKS)
        if not is_mark.any() or is_mark.all():
            continue
        plain = texts.mask(is_mark)
        if dialect.thousands is not None:
            plain = plain.str.replace(dialect.thousands, "", regex=False)
        numbers = pd.to_numeric(plain.str.replace(dialect.decimal, ".", regex=False), errors="coerce")
        if (numbers.isna() == (is_mark | texts.isna())).all() and numbers.notna().any():
            changed[name] = numbers
            found |= set(texts[is_mark])
    if changed:
        verb, columns = "is" if len(found) == 1 else "are", listing(list(changed))
        where = f"column {columns}" if len(changed) == 1 else f"{len(changed)} columns: {columns}"
        notes.append(f"{listing(sorted(found))} {verb} read as missing, in {where}.")
    return frame.assign(**changed)


# Other formats


def _sheet_to_csv(file: str, content: bytes) -> tuple[str, list[str]]:
    """Return the first sheet of an Excel workbook that is not empty, as CSV, and notes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about extensions of Excel that hold no cells
            sheets: dict[str, pd.DataFrame] = pd.read_excel(
                io.BytesIO(content), None, header=None, dtype=object, na_filter=False, engine="openpyxl"
            )
    except ImportError as error:
        raise InputError(
            f"{file} is an Excel workbook, which needs openpyxl, and that is not installed. Install it "
            "(pip install openpyxl), or save the sheet as CSV."
        ) from error
    except DAMAGED_ARCHIVE as error:
        raise InputError(
            f"{file} cannot be read as an Excel workbook: it is damaged or has a password. Save it again, or "
            "save the sheet as CSV."
        ) from error
    sheets = {title: sheet for title, sheet in sheets.items() if sheet.size}
    if not sheets:
        raise InputError(f"{file} is empty. Give a sheet with a row of column names and rows of data.")
    title, sheet = next(iter(sheets.items()))
    notes = []
    if len(sheets) > 1:
        notes.append(
            f"{file} has {len(sheets)} sheets ({listing(list(sheets), 3)}): {title!r} is read. To use "
            "another sheet, save it as a separate file."
        )
    first = int((sheet != "").any(axis=1).to_numpy().argmax())
    return sheet.iloc[first:].to_csv(header=False, index=False), notes


def _read_parquet(file: str, content: bytes) -> Table:
    from pyarrow import parquet

    try:
        check_unique(file, parquet.read_schema(io.BytesIO(content)).names)
        frame = parquet.read_table(io.BytesIO(content)).to_pandas()
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:  # errors of pyarrow are among these
        raise InputError(
            f"{file} starts like Parquet but cannot be read; it may be truncated. Write it again."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return Table(frame)


def _read_svmlight(file: str, content: bytes) -> Table:
    """Read an svmlight file; f1 is the feature that the file calls 1."""
    try:
        X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{file} is not in svmlight format ({error}). "
            "Each line is a class and then index:value pairs, such as '1 3:0.5 7:2'."
        ) from error
    n_bytes = X.shape[0] * X.shape[1] * 8
    if n_bytes > MAX_BYTES:
        raise InputError(
            f"{file} has {X.shape[0]:,} rows and {X.shape[1]:,} features: {n_bytes / 1e9:.1f} GB as a "
            f"dense table, but kmargin accepts at most {MAX_BYTES / 1e9:g} GB. Leave out rows or features."
        )
    first = 1 if X.shape[1] > 1 and X[:, 0].nnz == 0 else 0
    frame = pd.DataFrame(X.toarray()[:, first:], columns=[f"f{i}" for i in range(first, X.shape[1])])
    frame["target"] = to_whole(pd.Series(y))
    return Table(frame, target="target", absent_is_zero=True)


def _read_npz(file: str, content: bytes) -> Table:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            n_bytes = sum(info.file_size for info in archive.infolist())
        if n_bytes > MAX_BYTES:
            raise InputError(
                f"{file} holds {n_bytes / 1e9:.1f} GB of arrays, but kmargin accepts at most "
                f"{MAX_BYTES / 1e9:g} GB. Leave out rows or features."
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            others = list(arrays)
            X, y, names = (arrays.get(name) for name in ("X", "y", "feature_names"))
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        is_pickle = "pickle" in str(error).lower()
        reason = "it holds Python objects, which kmargin never opens" if is_pickle else "it is damaged"
        raise InputError(f"{file} cannot be read: {reason}. Save plain arrays X and y.") from error
    if X is None:
        raise InputError(f"{file} has no array X; it has {listing(others)}. Save it with X and y.")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(
            f"X in {file} has shape {X.shape} and type {X.dtype}. Save numbers, a row per sample."
        )
    columns = [f"f{i + 1}" for i in range(X.shape[1])] if names is None else list(map(str, names.ravel()))
    if len(columns) != X.shape[1]:
        raise InputError(f"{file} has {len(columns)} feature_names for the {X.shape[1]} columns of X.")
    check_unique(file, columns if y is None else [*columns, "y"])
    frame = pd.DataFrame(X, columns=columns)
    if y is None:
        return Table(frame)
    if y.shape != (len(X),):
        raise InputError(f"y in {file} has shape {y.shape} for {len(X)} rows of X. Save one per row.")
    return Table(frame.assign(y=y), target="y")


READERS = {"svmlight": _read_svmlight, "npz": _read_npz, "parquet": _read_parquet}


# Data frames and arrays


def to_table(X: Any, columns: Sequence[str], needed: Sequence[str]) -> Table:
    """Return a data frame, a mapping or an array as a table.

    Arrays have no names: theirs are `columns`, in this order. Raises InputError where X has another number
    of columns, or is not a table.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, pd.DataFrame):
        frame = X.copy(deep=False)
    elif hasattr(X, "to_pandas"):  # polars, arrow
        frame = X.to_pandas()
    elif isinstance(X, Mapping):
        frame = pd.DataFrame(dict(X))
    elif isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        frame = pd.DataFrame(list(X))
    else:
        frame = _from_array(X, columns, needed)
    frame.columns = [str(name) for name in frame.columns]
    check_unique("X", list(frame.columns))
    return Table(frame)


def _from_array(X: Any, columns: Sequence[str], needed: Sequence[str]) -> pd.DataFrame:
    X = X.toarray() if hasattr(X, "toarray") else X  # sparse matrices
    try:
        values = np.asarray(X)
    except ValueError as error:
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
