"""How a table of text is written, found out from its beginning: encoding, separator, decimal mark.

What is found is what makes the most of the first records: as many fields as there are names, and numbers
in them. What people say of their files goes first.
"""

import codecs
import csv
import io
import itertools
import re
from pathlib import Path
from typing import IO, NamedTuple

from kmargin.errors import InputError
from kmargin.tables.content import UTF_16
from kmargin.tables.packed import open_bytes

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
