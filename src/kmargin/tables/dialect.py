"""How a file is written: compression, kind of content, encoding, separator, decimal mark."""

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd

from kmargin.core.validation import InputError, listing


def is_whole(numbers: pd.Series) -> bool:
    """Whether all are whole numbers that floats hold exactly."""
    return bool((numbers.abs() < 2**53).all() and (numbers == numbers.round()).all())


# by ending; zip archives hold files with endings of their own
PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
BESIDE_THE_TABLE = ("__MACOSX/", ".DS_Store")  # what archivers add


def packing_of(path: Path) -> str | None:
    """How a file is compressed, by its ending."""
    return PACKED.get(path.suffix.lower())


def inner_name(path: Path) -> str:
    """The name of the table in a file: its own, or that of the file packed in it."""
    packing = packing_of(path)
    if packing is None:
        return path.name
    return Path(_only_member(path)).name if packing == "zip" else path.name[: -len(path.suffix)]


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, unpacked. Raises InputError where it is not packed as its ending says."""
    try:
        with _opened(path) as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, OSError) as error:
        packing = packing_of(path)
        if packing is None or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise InputError(
            f"{path.name} ends in {path.suffix}, but its content is not compressed with {packing}, or is "
            "damaged or truncated. Rename it, or download it again."
        ) from error


def seekable(path: Path) -> Path | io.BytesIO:
    """What readers take that jump about in a file: the file itself, or what is packed in it."""
    if packing_of(path) is None:
        return path
    with open_bytes(path) as file:
        return io.BytesIO(file.read())


def _opened(path: Path) -> Any:
    match packing_of(path):
        case "gzip":
            return gzip.open(path)
        case "bzip2":
            return bz2.open(path)
        case "xz":
            return lzma.open(path)
        case "zstd":
            import pyarrow

            return pyarrow.input_stream(str(path), compression="zstd")
        case "zip":
            return zipfile.ZipFile(path).open(_only_member(path))
    return path.open("rb")


def _only_member(path: Path) -> str:
    """The one file of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{path.name} ends in .zip, but its content is not compressed with zip, or is damaged or "
            "truncated. Rename it, or download it again."
        ) from error
    names = [name for name in names if not any(mark in name for mark in BESIDE_THE_TABLE)]
    if len(names) != 1:
        held = f"{len(names)} files: {listing(names, 3)}" if names else "no file"
        raise InputError(f"{path.name} holds {held}. Compress only the file with the table, or extract it.")
    return names[0]


ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}

# what a file may hold although its ending says otherwise, and what to do then
MAGIC = {b"PAR1": "Parquet", b"\x1f\x8b": "compressed with gzip", b"PK\x03\x04": "a ZIP archive"}
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
CONTROL = bytes([*range(7), *range(14, 27), *range(28, 32)])  # bytes that texts do not have, but for UTF-16

UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what texts in UTF-16 start with

FITTING = {
    "csv": "text",
    "tsv": "text",
    "svmlight": "text",
    "parquet": "Parquet",
    "npz": "a NumPy archive",
    "xlsx": "an Excel workbook",
}


def format_of(path: Path) -> str:
    """The format that a file's ending promises, or that of the file packed in it."""
    name = inner_name(path)
    form = ENDINGS.get(Path(name.lower()).suffix)
    if form is not None:
        return form
    raise InputError(
        f"{path.name} ends in {Path(name).suffix or 'nothing'}, which kmargin does not read. It reads "
        f"{', '.join(ENDINGS)}, also compressed ({', '.join(PACKED)}). {SAVE_AS_CSV}"
    )


def _beside(path: Path) -> str:
    """A sentence with the tables that lie where a file was looked for, and are called about the same."""
    readable = {"".join(ends) for ends in product(ENDINGS, ("", *PACKED))}
    names = sorted(p.name for p in path.parent.glob("*.*") if p.name.lower().endswith(tuple(readable)))
    close = get_close_matches(path.name, names, n=3, cutoff=0.75)
    close = close or [name for name in names if name.startswith(path.name[:3])][:3]
    return f" There is {', '.join(close)}." if close else ""


def check_content(path: Path, is_text: bool = False) -> str:
    """The format of a file, its content checked against its ending.

    `is_text` is for those who know the encoding of a text, whatever it looks like. Raises InputError where
    content and ending disagree, or where there is nothing to read.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the file with the table.")
    if not path.exists():
        raise InputError(f"There is no file {path}.{_beside(path)}")
    if path.stat().st_size == 0:
        raise InputError(_empty(path))
    form = format_of(path)
    with open_bytes(path) as file:
        start = file.read(4096)
    if not start.strip():
        raise InputError(_empty(path))
    content = "text" if is_text and form in ("csv", "tsv") else recognise(path, start)
    if content != FITTING[form]:
        ending = "".join(path.suffixes[-2:]) if path.suffix in PACKED else path.suffix
        advice = ADVICE.get(content, SAVE_AS_CSV)
        raise InputError(f"{path.name} ends in {ending}, but its content is {content}. {advice}")
    return form


def _empty(path: Path) -> str:
    return f"{path.name} is empty. Give a file with a row of names and rows of data."


def recognise(path: Path, start: bytes) -> str:
    """The content that a file starts with, in words; "text" where it may be a table of text."""
    for magic, content in MAGIC.items():
        if start.startswith(magic):
            return _archive(path) if content == "a ZIP archive" else content
    if start.startswith(UTF_16):
        return "text"
    if len(start.translate(None, CONTROL)) < len(start):
        return "not text"
    words = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "a web page" if words.startswith((b"<!doctype html", b"<html", b"<head")) else "text"


def _archive(path: Path) -> str:
    try:
        with open_bytes(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged ZIP archive"
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook"
    return "a NumPy archive" if all(name.endswith(".npy") for name in names) else "a ZIP archive"


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)", " ": "spaces"}
SPOKEN = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " "}
USUAL = {"csv": ",", "tsv": "\t"}  # separators, by format
DECIMALS = (".", ",")
FALLBACK = "cp1252"  # what spreadsheets write where it is not UTF-8; Latin-1 and a few signs more
FIRST_BYTES, MOST_BYTES = 2**20, 2**28  # that are looked at; of a line of names at most
RECORDS = 100  # that are looked at, beside the names

NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?")
WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
IN_THOUSANDS = {mark: re.compile(rf"[+-]?\d{{1,3}}({re.escape(mark)}\d{{3}})+") for mark in DECIMALS}
BOTH_MARKS = {",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+"), ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+")}
# the first line by which some programs tell spreadsheets what separates
HINT = re.compile(r'^"?sep=(.)"?\r?\n')


class Reading(NamedTuple):
    """What people say of how a file is to be read; None is to be found out."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    transpose: bool = False

    def check(self) -> "Reading":
        """The same in the reader's terms. Raises InputError for what nobody could mean."""
        sep = self.sep if self.sep is None else SPOKEN.get(self.sep.lower(), self.sep)
        if sep is not None and (len(sep) != 1 or sep in '"\r\n' or sep.isalnum()):
            raise InputError(f"--sep {self.sep!r} is not a single separator. Use , ; | tab or space.")
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InputError(f"--decimal {self.decimal!r} is not a decimal mark. Use . or , instead.")
        if sep is not None and sep == self.decimal:
            raise InputError(f"--sep and --decimal are both {sep}. Use another separator.")
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)
            except (LookupError, ValueError) as error:
                raise InputError(
                    f"--encoding {self.encoding!r} is not known. Use utf-8, latin-1, cp1252 or utf-16."
                ) from error
        return self._replace(sep=sep)


class Dialect(NamedTuple):
    """How a table is written."""

    sep: str
    decimal: str
    thousands: str | None
    encoding: str
    names: list[str]  # of the columns
    has_hint: bool  # whether the first line says what separates, and no more
    has_row_names: bool  # whether rows start with a name that has none itself, as R writes them
    notes: tuple[str, ...]


def find_dialect(path: Path, form: str, how: Reading) -> Dialect:
    """What is said, and the rest by the beginning of the file."""
    encoding, text, notes = _decode(path, how.encoding)
    hint = HINT.match(text)
    if hint:
        text = text[hint.end() :]
    sep = how.sep or (hint[1] if hint else None) or _find_separator(text, form)
    records = _records(text, sep)
    names = [name.strip() for name in records[0]]
    rows = [record for record in records[1:] if any(record)]
    decimal, thousands = _find_decimal(rows, sep, how.decimal)
    if decimal == "," and how.decimal is None:
        notes.append(f"{path.name} seems to have decimal commas. If it does not, add --decimal .")
    return Dialect(
        sep, decimal, thousands, encoding, names, hint is not None, _has_row_names(names, rows), tuple(notes)
    )


def _decode(path: Path, given: str | None) -> tuple[str, str, list[str]]:
    """The encoding, the beginning of the text, whole lines as far as possible, and what there is to say."""
    with open_bytes(path) as file:
        start, is_whole = _first_lines(file)
    notes: list[str] = []
    if given is not None:
        encoding = "utf-8-sig" if codecs.lookup(given).name == "utf-8" else given
    elif start.startswith(UTF_16):
        encoding = "utf-16"
    elif _is_utf8(path):
        encoding = "utf-8-sig"
    else:
        encoding = FALLBACK
        notes.append(
            f"{path.name} is not UTF-8: it is read as Windows-1252 ({FALLBACK}). --encoding names another."
        )
    decoder = codecs.getincrementaldecoder(encoding)("replace" if given is None else "strict")
    try:
        text = decoder.decode(start, final=is_whole)
    except UnicodeError as error:
        raise InputError(
            f"{path.name} is not text in {given} ({str(error)[:80]}). Leave out --encoding, or name another."
        ) from error
    return encoding, text.lstrip("\ufeff"), notes


def _first_lines(file: IO[bytes]) -> tuple[bytes, bool]:
    """The beginning up to the end of a line, and whether that is all; a long line of names is read whole."""
    start = file.read(FIRST_BYTES)
    while len(start) < MOST_BYTES and b"\n" not in start and b"\r" not in start:
        more = file.read(len(start))
        if not more:
            break
        start += more
    if len(start) < FIRST_BYTES:
        return start, True
    cut = max(start.rfind(b"\n"), start.rfind(b"\r")) + 1
    return start[:cut] if cut else start, False


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as file:
        try:
            while part := file.read(FIRST_BYTES):
                decoder.decode(part)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _records(text: str, sep: str) -> list[list[str]]:
    """The first records, at least one; none that a reader would trip over."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    found: list[list[str]] = []
    try:
        found += itertools.islice((record for record in reader if record), RECORDS + 1)
    except csv.Error:  # a field without an end, or a line break of another kind
        found = found or [text.splitlines()[0].split(sep)]
    return found or [[""]]


def _find_separator(text: str, form: str) -> str:
    """Of those that the line of names has: the one with as many fields in each record, and most numbers."""
    best, sep = (0.0, 0.0, False), USUAL[form]
    for other in SEPARATORS:
        if other == " " and form == "csv":
            continue
        names, *rows = _records(text, other)
        n_names = len(names)
        if n_names < 2:
            continue
        rows = [row for row in rows if any(row)]
        fields = [field for row in rows[:RECORDS] for field in row]
        fits = sum(len(row) in (n_names, n_names + 1) for row in rows) / max(len(rows), 1)
        numbers = sum(NUMBER.fullmatch(field.strip()) is not None for field in fields) / max(len(fields), 1)
        merit = (round(fits, 2), round(numbers, 2), other == USUAL[form])
        if merit > best:
            best, sep = merit, other
    return sep


def _find_decimal(rows: list[list[str]], sep: str, given: str | None) -> tuple[str, str | None]:
    """The decimal mark, and the one that groups thousands, if any does."""
    fields = [field.strip() for row in rows for field in row]
    other = {".": ",", ",": "."}
    if given is not None:
        both = any(BOTH_MARKS[given].fullmatch(field) for field in fields)
        return given, other[given] if both else None
    for decimal in DECIMALS:
        if any(BOTH_MARKS[decimal].fullmatch(field) for field in fields):
            return decimal, other[decimal]
    commas = [field for field in fields if WITH_COMMA.fullmatch(field)]
    points = [field for field in fields if WITH_POINT.fullmatch(field)]
    if sep == "," and commas and all(IN_THOUSANDS[","].fullmatch(field) for field in commas):
        return ".", ","
    return (",", None) if commas and not points else (".", None)


def _has_row_names(names: list[str], rows: list[list[str]]) -> bool:
    """Whether each row has one field more than there are names, and starts with something of its own."""
    firsts = [row[0] for row in rows]
    return (
        len(rows) > 1
        and all(len(row) == len(names) + 1 for row in rows)
        and len(set(firsts)) == len(firsts)
        and any(row[-1].strip() for row in rows)
    )
