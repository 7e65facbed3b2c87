"""Read files, data frames and arrays as tables: compression, formats, separators, decimal marks."""

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.core.validation import InputError, count, listing

MAX_BYTES = 2e9  # of a dense matrix
# texts that count as missing values in numeric columns, in addition to those of pandas
MISSING_MARKS = [
    *("?", "-", "--", ".", "*", "na", "n.a.", "N.A.", "k.A.", "k. A.", "missing", "Missing", "unknown"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?"),
]
# what NumPy, openpyxl, pyarrow and zipfile raise for damaged files
DAMAGED_ARCHIVE = (
    *(ValueError, OSError, EOFError, LookupError, TypeError, AttributeError, SyntaxError, OverflowError),
    *(RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
    lzma.LZMAError,
)
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)", " ": "spaces"}
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|"}
SEPARATOR_NAMES |= {"space": " "}
OTHER_MARK = {".": ",", ",": "."}


class Table(NamedTuple):
    """A table as read from a file."""

    frame: pd.DataFrame
    target: str | None = None  # the column with the classes, if the file format defines it
    absent_is_zero: bool = False  # whether columns that are not there are zero (svmlight)
    notes: tuple[str, ...] = ()
    row_names: pd.Series | None = None  # names of the rows that are in no column


class Reading(NamedTuple):
    """Options of reading a file; None means that the value is detected."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    transpose: bool = False

    def check(self) -> "Reading":
        """Return the options with the separator as a character. Raises InputError for invalid ones."""
        sep = self.sep if self.sep is None else SEPARATOR_NAMES.get(self.sep.lower(), self.sep)
        if sep is not None and (len(sep) != 1 or sep in '"\r\n' or sep.isalnum()):
            raise InputError(f"--sep {self.sep!r} is not a single separator. Use , ; | tab or space.")
        if self.decimal is not None and self.decimal not in OTHER_MARK:
            raise InputError(f"--decimal {self.decimal!r} is not a decimal mark. Use . or , instead.")
        if sep is not None and sep == self.decimal:
            raise InputError(f"--sep and --decimal are both {sep}. Use another separator.")
        try:
            "a".encode("utf-8" if self.encoding is None else self.encoding)
        except (LookupError, ValueError) as error:
            raise InputError(
                f"--encoding {self.encoding!r} is not known. Use utf-8, latin-1, cp1252 or utf-16."
            ) from error
        return self._replace(sep=sep)


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
    as_written_here = how._replace(sep=",", decimal=".")
    if form in ("csv", "tsv"):
        table = _read_text(path.name, *decode(path.name, content, how.encoding), form, how)
    elif form == "xlsx":
        table = _read_text(path.name, *_sheet_to_csv(path.name, content), "csv", as_written_here)
    else:
        table = READERS[form](path.name, content)
        if how.transpose:
            table = _read_text(path.name, _names_first(path.name, table), [], "csv", as_written_here)
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
SAVE_AS_CSV = (
    "Save the table as CSV: in a spreadsheet or SPSS with Save As, in R with "
    "write.csv(table, 'table.csv', row.names = FALSE), in Python with table.to_csv('table.csv', index=False)."
)
CONTROL_BYTES = bytes([*range(7), *range(14, 27), *range(28, 32)])  # not in any text but UTF-16
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def unpack(path: Path) -> tuple[str, bytes]:
    """Return the name and the content of the table in a file, which may be compressed."""
    content, packing = path.read_bytes(), PACKED.get(path.suffix.lower())
    if packing is None or not content:
        return path.name, content
    unpackers = {"gzip": gzip.decompress, "bzip2": bz2.decompress, "xz": lzma.decompress}
    try:
        if packing == "zip":
            return _unzip(path.name, content)
        if packing == "zstd":
            import pyarrow

            stream = pyarrow.input_stream(pyarrow.BufferReader(content), compression="zstd")
            return path.stem, stream.read()
        return path.stem, unpackers[packing](content)
    except InputError:
        raise
    except DAMAGED_ARCHIVE as error:
        raise InputError(
            f"{path.name} ends in {path.suffix}, but its content is not compressed with {packing}, or is "
            "damaged or truncated. Rename it, or download it again."
        ) from error


def _unzip(file: str, content: bytes) -> tuple[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        names = [name for name in names if not any(mark in name for mark in ARCHIVER_FILES)]
        if len(names) == 1:
            return names[0], archive.read(names[0])
    held = f"{len(names)} files: {listing(names, 3)}" if names else "no file"
    raise InputError(f"{file} holds {held}. Compress only the file with the table, or extract it.")


def find_format(path: Path, name: str, content: bytes, is_text: bool) -> str:
    """Return the format of a file extension. Raises InputError where a text table is not text.

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
    start = content[:4096]
    if form in ("csv", "tsv", "svmlight") and not is_text:
        if not start.startswith(UTF_16_MARKS) and len(start.translate(None, CONTROL_BYTES)) < len(start):
            raise InputError(
                f"{path.name} ends in {suffix}, but its content is not text. If it is an Excel workbook, a "
                "Parquet file or compressed, rename it to end in .xlsx, .parquet or .gz; otherwise save the "
                "table as CSV."
            )
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html", b"<head")):
            raise InputError(
                f"{path.name} ends in {suffix}, but its content is a web page, perhaps a sign-in or error "
                "page. Download the data again."
            )
    return form


def _similar_files(path: Path) -> str:
    """Return a sentence with the tables in the same folder that have similar names, or nothing."""
    endings = tuple("".join(parts) for parts in itertools.product(FORMATS, ("", *PACKED)))
    names = sorted(p.name for p in path.parent.glob("*.*") if p.name.lower().endswith(endings))
    close = get_close_matches(path.name, names, n=3, cutoff=0.75)
    close = close or [name for name in names if name.startswith(path.name[:3])][:3]
    return f" There is {', '.join(close)}." if close else ""


# How a text table is written

USUAL_SEPARATOR = {"csv": ",", "tsv": "\t"}
SAMPLE_LENGTH, SAMPLE_RECORDS = 2**20, 100  # characters and records from which a dialect is detected
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?")
WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
COMMA_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
# thousands separators and a decimal mark in one number, by the decimal mark
BOTH_MARKS = {".": re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+"), ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")}
SEPARATOR_LINE = re.compile(r'^"?sep=(.)"?\r?\n')  # a first line that tells spreadsheets the separator


class Dialect(NamedTuple):
    """How a text table is written."""

    sep: str
    decimal: str
    thousands: str | None
    names: list[str]  # of the columns, "" where there is none
    has_row_names: bool = False  # whether the first column holds row names, and has none itself, as R writes


def decode(file: str, content: bytes, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text in a file's content, without a byte order mark, and notes.

    Text that is not UTF-8 is read as Windows-1252, a superset of Latin-1, which spreadsheets write.
    """
    tried = encoding or ("utf-16" if content.startswith(UTF_16_MARKS) else "utf-8")
    notes = []
    try:
        text = content.decode(tried)
    except UnicodeError as error:
        if encoding is not None or tried == "utf-16":
            advice = "Name its encoding with --encoding" if encoding is None else "Leave out --encoding"
            raise InputError(
                f"{file} is not text in {tried} ({str(error)[:80]}). {advice}, or save it again as UTF-8."
            ) from error
        text = content.decode("cp1252", "replace")
        notes.append(
            f"{file} is not UTF-8: it is read as Windows-1252 (cp1252). Name another with --encoding."
        )
    return text.lstrip("\ufeff"), notes


def detect_dialect(text: str, form: str, how: Reading) -> tuple[str, Dialect]:
    """Return the text from its line of names on, and its dialect: as given, else by its first records."""
    sep = how.sep
    if hint := SEPARATOR_LINE.match(text):
        sep, text = sep or hint[1], text[hint.end() :]
    sample = text
    if len(text) > SAMPLE_LENGTH:
        sample = text[: text.find("\n", SAMPLE_LENGTH) + 1] or text
    sep = sep or _detect_separator(sample, form)
    names, *rows = _records(sample, sep)
    names = [name.strip() for name in names]
    rows = [row for row in rows if any(row)]
    decimal, thousands = _detect_decimal(rows, sep, how.decimal)
    has_row_names = (
        len(rows) > 1
        and all(len(row) == len(names) + 1 for row in rows)
        and len({row[0] for row in rows}) == len(rows)
        and any(row[-1].strip() for row in rows)
    )
    if has_row_names:
        text, names = f'""{sep}' + text.lstrip("\r\n"), ["", *names]
    return text, Dialect(sep, decimal, thousands, names, has_row_names)


def _records(text: str, sep: str) -> list[list[str]]:
    """Return the first records, at least one, up to one that is malformed."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    found: list[list[str]] = []
    try:
        found += itertools.islice((record for record in reader if record), SAMPLE_RECORDS + 1)
    except csv.Error:  # a quote that is never closed, or a line break of another kind
        found = found or [text.splitlines()[0].split(sep)]
    return found or [[""]]


def _detect_separator(text: str, form: str) -> str:
    """Return the separator that gives most records as many fields as names, and then most numbers."""
    best, sep = (0.0, 0.0, False), USUAL_SEPARATOR[form]
    for other in SEPARATORS:
        names, *rows = _records(text, other)
        if len(names) < 2 or (other == " " and form == "csv"):
            continue
        rows = [row for row in rows if any(row)]
        fields = [field.strip() for row in rows for field in row]
        n_fitting = sum(len(row) in (len(names), len(names) + 1) for row in rows)
        n_numbers = sum(NUMBER.fullmatch(field) is not None for field in fields)
        shares = (round(n_fitting / max(len(rows), 1), 2), round(n_numbers / max(len(fields), 1), 2))
        if (*shares, other == USUAL_SEPARATOR[form]) > best:
            best, sep = (*shares, other == USUAL_SEPARATOR[form]), other
    return sep


def _detect_decimal(rows: list[list[str]], sep: str, given: str | None) -> tuple[str, str | None]:
    """Return the decimal mark and the thousands separator, None if numbers have none."""
    fields = [field.strip() for row in rows for field in row]
    for decimal in OTHER_MARK if given is None else [given]:
        if any(BOTH_MARKS[decimal].fullmatch(field) for field in fields):
            return decimal, OTHER_MARK[decimal]
    if given is not None:
        return given, None
    commas = [field for field in fields if WITH_COMMA.fullmatch(field)]
    if sep == "," and commas and all(COMMA_THOUSANDS.fullmatch(field) for field in commas):
        return ".", ","
    has_points = any(WITH_POINT.fullmatch(field) for field in fields)
    return ("," if commas and not has_points else "."), None


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
    if how.transpose:
        frame, row_names = _parse_transposed(file, text, dialect, notes)
        return Table(frame, notes=tuple(notes), row_names=row_names)
    check_unique(file, names)
    frame, note = _parse(file, text, dialect, names=names, header=0)
    frame = _drop_empty(frame, dialect.names, notes)
    if frame.shape[1] == 0:
        raise InputError(f"{file} has neither names nor values. Give a row of names and rows of data.")
    first, row_names = frame.iloc[:, 0], None
    if dialect.has_row_names:
        row_names, frame = first, frame.iloc[:, 1:]
    elif dialect.names[0] == "" and first.dtype == "int64" and (first.diff().iloc[1:] == 1).all():
        notes.append("The first column has no name and numbers the rows, so it is left out.")
        frame = frame.iloc[:, 1:]
    return Table(frame, notes=(*notes, *note), row_names=row_names)


def _parse(file: str, text: str, dialect: Dialect, **more: Any) -> tuple[pd.DataFrame, list[str]]:
    """Return the parsed columns, and a note if numeric columns hold `MISSING_MARKS`, read as missing."""

    def parse(**options: Any) -> pd.DataFrame:
        return pd.read_csv(
            io.StringIO(text),
            sep=dialect.sep,
            decimal=dialect.decimal,
            thousands=dialect.thousands,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            **more | options,
        )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = parse()
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, UnicodeError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            reason = "rows have more fields than there are names"
        separators = SEPARATORS.get(dialect.sep, repr(dialect.sep))
        raise InputError(
            f"{file} cannot be read as columns separated by {separators}: {reason}. "
            "Give every row as many fields as there are names."
        ) from error
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    marked = [name for name in texts if frame[name].isin(MISSING_MARKS).any()]
    if "dtype" in more or not marked:
        return frame, []
    numbers = parse(na_values=MISSING_MARKS)[marked].select_dtypes("number").dropna(axis=1, how="all")
    changed = list(numbers.columns)
    if not changed:
        return frame, []
    found = sorted({value for name in changed for value in frame[name] if value in MISSING_MARKS})
    verb = "is" if len(found) == 1 else "are"
    where = "column" if len(changed) == 1 else f"{len(changed)} columns:"
    note = f"{listing(found)} {verb} read as missing, in {where} {listing(changed)}."
    return frame.assign(**numbers), [note]


def _parse_transposed(
    file: str, text: str, dialect: Dialect, notes: list[str]
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table with a feature in each row: its samples, and the names of these in the first line."""
    as_text = dialect._replace(decimal=".", thousands=None)
    cells, _ = _parse(file, text, as_text, header=None, dtype=str, keep_default_na=False)
    features = cells.iloc[1:, 0].str.strip()
    features = features[features != ""]
    check_unique(file, list(features), "row")
    values = cells.loc[features.index].iloc[:, 1:]
    if values.size == 0:
        raise InputError(f"{file} has nothing to transpose. Give a table with features in rows.")
    turned, names = values.T.to_csv(header=False, index=False), list(features)
    frame, note = _parse(file, turned, dialect._replace(sep=","), header=None, names=names)
    notes += note
    samples = [name.strip() or f"column {place}" for place, name in enumerate(cells.iloc[0, 1:], 2)]
    return frame, pd.Series(samples, name="id", dtype=object)


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


# Other formats


def _names_first(file: str, table: Table) -> str:
    """Return a table as CSV. Raises InputError where it cannot be transposed, for want of feature names."""
    if table.target is not None or pd.api.types.is_numeric_dtype(table.frame.iloc[:, 0].dtype):
        raise InputError(
            f"--transpose takes the feature names from the first column, but {file} has no names there. "
            "Transpose the table before you save it."
        )
    return str(table.frame.to_csv(index=False))


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
            f"{file} cannot be read as an Excel workbook: it is not one, is damaged or has a password. Save "
            "it again, or save the sheet as CSV."
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
            f"{file} cannot be read as Parquet: it is not, or is truncated or damaged. Write it again."
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
    """Read the arrays X, y and feature_names of a NumPy archive; the last two may be absent."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            others = list(arrays)
            X, y, names = (arrays.get(name) for name in ("X", "y", "feature_names"))
    except DAMAGED_ARCHIVE as error:
        is_pickle = "pickle" in str(error).lower()
        reason = (
            "it holds Python objects, which kmargin never opens"
            if is_pickle
            else "it is not an npz archive, or damaged"
        )
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
