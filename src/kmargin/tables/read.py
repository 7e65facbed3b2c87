"""Read files as tables: compression, file formats, encodings, separators, decimal marks, missing values."""

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from kmargin.core.validation import InputError, count, listing, nearest

MAX_BYTES = 2e9  # svmlight files that would take more bytes as a dense matrix are refused
# texts that count as missing values in columns of numbers
MISSING_MARKS = [
    *("", "NA", "NaN", "nan", "N/A", "null", "None"),  # pandas itself reads these as missing values
    *("?", "-", "--", ".", "*", "na", "n.a.", "N.A.", "k.A.", "k. A.", "missing", "Missing", "unknown"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?"),
]
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)", " ": "spaces"}
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
SEPARATOR_NAMES |= {"bar": "|", "pipe": "|"}


class Table(NamedTuple):
    """A table read from a file, with what the file says about its target and the names of its rows."""

    frame: pd.DataFrame  # the index is the number of each row of data in the file, from 0
    target: str | None = None  # name of the column with the classes, if the file format defines one
    absent_is_zero: bool = False  # whether features that the file lacks are 0, as in svmlight files
    notes: tuple[str, ...] = ()
    row_names: pd.Series | None = None  # names of the rows that the file gives besides the columns of `frame`


class Reading(NamedTuple):
    """Options for reading a file; an option that is None is detected from the content of the file."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    transpose: bool = False
    needed: Collection[str] = ()  # columns that a model needs; a file of one column must have one of them


def read_table(path: str | Path, how: Reading | None = None) -> Table:
    """Read a file as a table, in the format given by its extension, with the options `how`."""
    path, how = Path(path), how or Reading()
    if not path.is_file():
        folder = path if path.is_dir() else path.parent
        tables = sorted(p.name for p in folder.glob("*.*") if p.suffix.lower() in {*FORMATS, *PACKED})
        what = "is a folder" if path.is_dir() else "is not among the tables in its folder"
        hint = nearest(path.name, tables) if folder.is_dir() else "That folder does not exist."
        raise InputError(f"{path} {what}. {hint}")
    file, notes = path.name, list[str]()
    form, content = unpack(path, is_text=how.encoding is not None)
    for option, value in how._asdict().items():
        applies_to = ("csv", "tsv", "xlsx", "parquet") if option == "transpose" else ("csv", "tsv")
        if option != "needed" and value not in (None, False) and form not in applies_to:
            raise InputError(f"--{option} does not apply to {file}, whose format is {form}. Leave it out.")
    as_csv = how._replace(sep=",", decimal=".")
    if form in ("csv", "tsv"):
        table = _read_text(file, decode(file, content, how.encoding, notes), form, how, notes)
    elif form == "xlsx":
        table = _read_text(file, _sheet_to_csv(file, content, notes), "csv", as_csv, notes)
    else:
        table = READERS[form](file, content)
        if how.transpose:
            table = _read_text(file, table.frame.to_csv(index=False), "csv", as_csv, notes)
    if table.frame.empty:
        raise InputError(f"{file} has no rows of data. Give a row of column names and rows of data.")
    return table


@contextmanager
def readable_as(file: str, form: str, advice: str) -> Iterator[None]:
    """Convert any exception, as libraries raise for damaged files, to an InputError that ends in `advice`."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"{file} cannot be read without another package: {error}") from error
    except Exception as error:
        problem = "it is not, or is damaged or truncated"
        raise InputError(f"{file} cannot be read as {form}: {problem}. {advice}") from error


# Decompress files, and find their formats by their extensions


def _decompress_zstd(content: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.input_stream(pyarrow.BufferReader(content), compression="zstd").read())


DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}
DECOMPRESS |= {".xz": lzma.decompress, ".zst": _decompress_zstd}
PACKED = (*DECOMPRESS, ".zip")
NO_TABLE = re.compile(r"/$|__MACOSX/|\.DS_Store")  # zip entries to skip: folders, and files that macOS adds
FORMATS = {
    **{".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"},
    **{".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".npz": "npz"},
    **{".xlsx": "xlsx", ".xlsm": "xlsx"},
}
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks, with which UTF-16 texts begin


def unpack(path: Path, is_text: bool) -> tuple[str, bytes]:
    """Return the format of a file, such as "csv", and its decompressed content.

    In text formats, null bytes in the content raise InputError, unless the user gave an encoding (`is_text`).
    """
    name, content, packing = path.name, path.read_bytes(), path.suffix.lower()
    with readable_as(path.name, f"a {packing} file", "Rename it, or download it again."):
        if packing in DECOMPRESS:
            name, content = path.stem, DECOMPRESS[packing](content)
        elif packing == ".zip":
            archive = zipfile.ZipFile(io.BytesIO(content))
            names = [name for name in archive.namelist() if not NO_TABLE.search(name)]
            if len(names) != 1:
                held = f"holds {count(len(names), 'file')}: {listing(names, 3)}"
                raise InputError(f"{path.name} {held}. Compress only the file with the table, or extract it.")
            name, content = names[0], archive.read(names[0])
    suffix = Path(name).suffix
    form = FORMATS.get(suffix.lower())
    if form is None:
        raise InputError(
            f"{path.name} ends in {suffix or 'nothing'}, which kmargin does not read. It reads "
            f"{', '.join(FORMATS)}, also compressed ({', '.join(PACKED)}). Save the table as CSV: in a "
            "spreadsheet or SPSS with Save As, in R with write.csv(table, 'table.csv', row.names = FALSE), "
            "in Python with table.to_csv('table.csv', index=False)."
        )
    is_text = is_text or content.startswith(UTF_16_MARKS) or b"\0" not in content[:4096]
    if form in ("csv", "tsv", "svmlight") and not is_text:
        raise InputError(
            f"{path.name} ends in {suffix}, but its content is not text. If it is an Excel workbook, Parquet "
            "or compressed, rename it to end in .xlsx, .parquet or .gz; otherwise save the table as CSV."
        )
    return form, content


# Detect the dialect of a text table: separator, decimal mark, thousands separator

SAMPLE_LENGTH, SAMPLE_RECORDS = 2**20, 100  # a dialect is detected from at most this many characters and rows
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?")
OTHER = {".": ",", ",": "."}  # from decimal mark to the one thousands separator that is allowed beside it
SWAP_MARKS = str.maketrans(OTHER)
# For each mark m, a pattern of numbers in which m separates thousands: for the point, 1.234 or 1.234,5.
GROUPED = {m: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{m}]\d{{3}})+([{o}]\d+)?") for m, o in OTHER.items()}
MARKED = re.compile(rf"[+-]?\d*[.,]\d+([eE][+-]?\d+)?|{GROUPED['.'].pattern}|{GROUPED[','].pattern}")
SEPARATOR_LINE = re.compile(r'^"?sep=(.)"?\r?\n')  # a first line such as sep=; which names the separator


class Dialect(NamedTuple):
    """The separator, decimal mark and thousands separator of a text table, and the names of its columns."""

    text: str  # the text of the table, from the line of column names on
    sep: str
    decimal: str
    thousands: str | None
    names: list[str]  # the names of the columns, "" for a column without a name
    has_row_names: bool = False  # whether a first column without a name holds row names, as in files of R


def decode(file: str, content: bytes, encoding: str | None, notes: list[str]) -> str:
    """Decode the content of a file to text, without a byte order mark.

    If `encoding` is None, text that is not UTF-8 or UTF-16 is decoded as Windows-1252, as spreadsheets write.
    """
    tried = encoding or ("utf-16" if content.startswith(UTF_16_MARKS) else "utf-8")
    try:
        text = content.decode(tried)
    except (LookupError, ValueError) as error:
        if encoding is not None or tried == "utf-16":
            raise InputError(
                f"{file} is not text in {tried} ({str(error)[:80]}). Use another --encoding, such as utf-8, "
                "latin-1, cp1252 or utf-16, or save the file again as UTF-8."
            ) from error
        text = content.decode("cp1252", "replace")
        notes.append(f"{file} is not UTF-8: it is read as Windows-1252 (cp1252). --encoding names another.")
    return text.lstrip("\ufeff")


def detect_dialect(text: str, form: str, how: Reading) -> Dialect:
    """Detect the dialect of a text table from its first rows; options given in `how` take precedence."""
    sep = how.sep and SEPARATOR_NAMES.get(how.sep.lower(), how.sep)
    if sep is not None and (len(sep) != 1 or sep in '"\r\n' or sep.isalnum()):
        raise InputError(f"--sep {how.sep!r} is not a single separator. Use , ; | tab or space.")
    if how.decimal not in (None, ".", ","):
        raise InputError(f"--decimal {how.decimal!r} is not a decimal mark. Use . or , instead.")
    if hint := SEPARATOR_LINE.match(text):
        sep, text = sep or hint[1], text[hint.end() :]
    sample = text[: text.find("\n", SAMPLE_LENGTH) + 1] or text
    sep = sep or _detect_separator(sample, form)
    names, rows = _records(sample, sep)
    decimal, thousands = _detect_decimal([field.strip() for row in rows for field in row], sep, how.decimal)
    names = [name.strip() for name in names]
    has_row_names = (
        len(rows) > 1
        and all(len(row) == len(names) + 1 for row in rows)
        and len({row[0] for row in rows}) == len(rows)
        and any(row[-1].strip() for row in rows)
    )
    if has_row_names:
        text, names = f'""{sep}' + text.lstrip("\r\n"), ["", *names]
    return Dialect(text, sep, decimal, thousands, names, has_row_names)


def _records(text: str, sep: str) -> tuple[list[str], list[list[str]]]:
    """Split a text at `sep`; return the column names, and fields of up to `SAMPLE_RECORDS` further rows."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    found: list[list[str]] = []
    try:
        found += itertools.islice((record for record in reader if record), SAMPLE_RECORDS + 1)
    except csv.Error:  # a field is too long, as after a quotation mark that is never closed
        found = found or [text.splitlines()[0].split(sep)]
    names, *rows = found or [[""]]
    return names, [row for row in rows if any(row)]


def _detect_separator(text: str, form: str) -> str:
    """Return the separator with which most rows fit the column names; in a tie, the one with most numbers."""
    usual = "\t" if form == "tsv" else ","
    merits = {usual: (0.0, 0.0, False)}
    for sep in SEPARATORS:
        names, rows = _records(text, sep)
        if len(names) < 2 or (sep == " " and form == "csv"):
            continue
        fields = [field.strip() for row in rows for field in row]
        n_fitting = sum(len(row) in (len(names), len(names) + 1) for row in rows)
        n_numbers = sum(NUMBER.fullmatch(field) is not None for field in fields)
        shares = round(n_fitting / max(len(rows), 1), 2), round(n_numbers / max(len(fields), 1), 2)
        merits[sep] = (*shares, sep == usual)
    return max(merits, key=merits.__getitem__)


def _detect_decimal(fields: list[str], sep: str, given: str | None) -> tuple[str, str | None]:
    """Return the decimal mark (`given`, or detected) and the thousands separator (None if there is none)."""
    found = {mark: [text for text in fields if mark in text and MARKED.fullmatch(text)] for mark in OTHER}
    groups = {mark: bool(found[mark]) and all(map(GROUPED[mark].fullmatch, found[mark])) for mark in OTHER}
    is_comma = len(found[","]) > len(found["."])  # a first guess, revised if one mark separates thousands
    if found[","] and (found["."] or sep == ",") and groups["."] != groups[","]:
        is_comma = groups["."]
    decimal = given or ("," if is_comma else ".")
    is_separator = groups[OTHER[decimal]] and (given is not None or not groups[decimal])
    return decimal, OTHER[decimal] if is_separator else None


def _read_text(file: str, text: str, form: str, how: Reading, notes: list[str]) -> Table:
    if not text.strip():
        raise InputError(f"{file} is empty. Give a row of column names and rows of data.")
    if how.sep is None and text.lstrip().partition("\n")[0].strip(' "\r') in how.needed:
        how = how._replace(sep="tab")  # the file has one column, so commas and blanks separate nothing
    dialect = detect_dialect(text, form, how)
    if dialect.decimal == "," and how.decimal is None:
        notes.append(f"{file} seems to have decimal commas. If it does not, add --decimal .")
    if how.transpose:
        cells = _parse(file, dialect, header=None, dtype=str, keep_default_na=False)
        text, names = cells.T.to_csv(header=False, index=False), ["", *cells.iloc[1:, 0].str.strip()]
        dialect = dialect._replace(text=text, sep=",", names=names, has_row_names=True)
    names = [name or f"column {place}" for place, name in enumerate(dialect.names, 1)]
    if len(names) - dialect.has_row_names == 1 and names[-1] not in how.needed:
        problem = f"{file} has only one column, {names[-1][:60]!r}. Name the separator with --sep, or give"
        raise InputError(f"{problem} {listing(sorted(how.needed)) or 'a target and at least one feature'}.")
    check_unique(file, names, "row" if how.transpose else "column")
    dialect = dialect._replace(text=dialect.text.strip("\r\n"))
    frame = _parse(file, dialect, names=names, header=0, skip_blank_lines=False)
    # Drop empty rows, and columns with neither a name nor values. The index keeps row numbers of the file.
    full = frame.dropna(how="all")
    if 0 < len(full) < len(frame):
        notes.append(f"{count(len(frame) - len(full), 'empty row')} left out.")
        frame = full.apply(to_whole)
    frame = frame.loc[:, frame.notna().any().to_numpy() | (np.array(dialect.names) != "")]
    if frame.empty:
        return Table(frame)
    first, row_names = frame.iloc[:, 0], None
    if dialect.has_row_names:
        row_names, frame = first, frame.iloc[:, 1:]
    elif dialect.names[0] == "" and first.dtype == "int64" and (first.diff().iloc[1:] == 1).all():
        notes.append("The first column has no name and numbers the rows, so it is left out.")
        frame = frame.iloc[:, 1:]
    frame = _read_missing_marks(frame, dialect, notes)
    return Table(frame, notes=tuple(notes), row_names=row_names)


def _parse(file: str, dialect: Dialect, **options: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            options |= {"sep": dialect.sep, "decimal": dialect.decimal, "skipinitialspace": True}
            return pd.read_csv(io.StringIO(dialect.text), index_col=False, low_memory=False, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, UnicodeError) as error:
        reason = "rows have more fields than there are names"
        if not isinstance(error, pd.errors.ParserWarning):
            reason = str(error).strip().removeprefix("Error tokenizing data. C error: ").rstrip(".")
            reason = reason.replace("EOF inside string starting at", "no quotation mark closes the one in")
        separators = SEPARATORS.get(dialect.sep, repr(dialect.sep))
        problem = f"{file} cannot be read as columns separated by {separators}: {reason}. Close quotes"
        raise InputError(f"{problem}, and give every row as many fields as there are names.") from error


def to_whole(column: pd.Series) -> pd.Series:
    """Convert a column of floats to integers if all are whole numbers; return any other column unchanged."""
    is_whole = column.dtype == "float64" and ((column.abs() < 2**53) & (column == column.round())).all()
    return column.astype("int64") if is_whole else column


def _read_missing_marks(frame: pd.DataFrame, dialect: Dialect, notes: list[str]) -> pd.DataFrame:
    """Convert text columns that hold only numbers and `MISSING_MARKS`, which become NaN; note the marks."""
    numeric, marks, marked = {}, set[str](), list[str]()
    for name in frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        found = set(frame[name][frame[name].isin(MISSING_MARKS)])
        may_be_numbers = found or dialect.thousands is not None
        numbers = parse_numbers(frame[name], dialect.decimal, dialect.thousands) if may_be_numbers else None
        if numbers is not None and numbers.notna().any():
            numeric[name] = numbers
            marks, marked = marks | found, marked + [name] * bool(found)
    if marks:
        notes.append(f"Read as missing values: {listing(sorted(marks))}, in {listing(marked)}.")
    return frame.assign(**numeric)


def parse_numbers(texts: pd.Series, decimal: str = ".", thousands: str | None = None) -> pd.Series | None:
    """Convert texts to numbers, and `MISSING_MARKS` to NaN; return None if there is any other text."""
    texts = texts.str.strip()
    texts = texts.mask(texts.isin(MISSING_MARKS))
    if thousands is not None:  # remove the separator between groups of three digits, not from 01.03.2015
        is_grouped = texts.str.fullmatch(GROUPED[thousands].pattern, na=False)
        texts = texts.mask(is_grouped, texts.str.replace(thousands, "", regex=False))
    texts = texts.str.translate(SWAP_MARKS) if decimal == "," else texts  # marks swapped: 1,5 is read as 1.5
    numbers = pd.to_numeric(texts, errors="coerce")
    return numbers if numbers.isna().equals(texts.isna()) else None


def to_table(source: str, frame: pd.DataFrame) -> Table:
    """Convert a data frame to a `Table` whose column names are texts; raise InputError if names repeat."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    check_unique(source, frame.columns)
    return Table(frame)


def check_unique(source: str, names: Iterable[str], thing: str = "column") -> None:
    """Raises InputError, saying that `source` repeats the name of a `thing`, if a name occurs twice."""
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        problem = f"{source} has more than one {thing} called {listing(repeated)}"
        raise InputError(f"{problem}. Give each a unique name.")


def _sheet_to_csv(file: str, content: bytes, notes: list[str]) -> str:
    """Return, as CSV text, the first sheet of an Excel workbook that is not empty."""
    advice = "Remove its password if it has one and save it again, or save the sheet as CSV."
    with readable_as(file, "an Excel workbook", advice), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of parts without values, such as unknown styles
        sheets: dict[str, pd.DataFrame] = pd.read_excel(
            io.BytesIO(content), None, header=None, dtype=object, na_filter=False, engine="openpyxl"
        )
    sheets = {title: sheet for title, sheet in sheets.items() if sheet.size}
    title, sheet = next(iter(sheets.items()), ("", pd.DataFrame()))
    if len(sheets) > 1:
        found = f"{file} has {len(sheets)} sheets ({listing(list(sheets), 3)}): {title!r} is read"
        notes.append(f"{found}. To use another sheet, save it as a separate file.")
    has_values = (sheet != "").any(axis=1).cummax()  # True from the first row with values on
    return str(sheet[has_values].to_csv(header=False, index=False))


def _read_parquet(file: str, content: bytes) -> Table:
    with readable_as(file, "Parquet", "Write it again."):
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    return to_table(file, frame)


def _read_svmlight(file: str, content: bytes) -> Table:
    """Read an svmlight file; the feature with index 1 in the file becomes the column f1, and so on."""
    advice = "Each line is a class and then index:value pairs, such as '1 3:0.5 7:2'."
    with readable_as(file, "svmlight", advice):
        X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    n_bytes = X.shape[0] * X.shape[1] * 8
    if n_bytes > MAX_BYTES:
        raise InputError(
            f"{file} has {X.shape[0]:,} rows and {X.shape[1]:,} features: {n_bytes / 1e9:.1f} GB as a "
            f"dense table, but kmargin accepts at most {MAX_BYTES / 1e9:g} GB. Leave out rows or features."
        )
    first = 1 if X.shape[1] > 1 and X[:, 0].nnz == 0 else 0
    frame = pd.DataFrame(X.toarray()[:, first:], columns=[f"f{i}" for i in range(first, X.shape[1])])
    return Table(frame.assign(target=to_whole(pd.Series(y))), target="target", absent_is_zero=True)


def _read_npz(file: str, content: bytes) -> Table:
    """Read the arrays X, y and feature_names of a NumPy archive; y and feature_names may be absent."""
    advice = (
        "Save X with numbers, a row per sample; y with a class for each row; and feature_names, if you like, "
        "with a name for each column of X. Python objects are never opened."
    )
    with readable_as(file, "an npz archive", advice), np.load(io.BytesIO(content)) as archive:
        if "X" not in archive:
            raise InputError(f"{file} has no array X, only {listing(archive.files)}. {advice}")
        X = np.asarray(archive["X"] + 0)  # + 0 raises an error unless X holds numbers
        columns = [*map(str, archive.get("feature_names", [f"x{j}" for j in range(X.shape[1])]))]
        targets = {"y": archive["y"]} if "y" in archive else {}
        check_unique(file, [*columns, *targets])
        frame = pd.DataFrame(X, columns=columns).assign(**targets)
    return Table(frame, target="y" if targets else None)


READERS = {"svmlight": _read_svmlight, "npz": _read_npz, "parquet": _read_parquet}
