"""Detect how a text table is written: encoding, separator, decimal mark, thousands separator, row names."""

import csv
import io
import itertools
import re
from typing import NamedTuple

from kmargin.core.validation import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)", " ": "spaces"}
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|"}
SEPARATOR_NAMES |= {"space": " "}
USUAL_SEPARATOR = {"csv": ",", "tsv": "\t"}
OTHER_MARK = {".": ",", ",": "."}
FALLBACK_ENCODING = "cp1252"  # what spreadsheets write if not UTF-8; a superset of Latin-1
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SAMPLE_LENGTH, SAMPLE_RECORDS = 2**20, 100  # characters and records from which a dialect is detected

NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?")
WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
COMMA_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
# thousands separators and a decimal mark in one number, by the decimal mark
BOTH_MARKS = {".": re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+"), ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")}
SEPARATOR_LINE = re.compile(r'^"?sep=(.)"?\r?\n')  # a first line that tells spreadsheets the separator


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
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)
            except (LookupError, ValueError) as error:
                raise InputError(
                    f"--encoding {self.encoding!r} is not known. Use utf-8, latin-1, cp1252 or utf-16."
                ) from error
        return self._replace(sep=sep)


class Dialect(NamedTuple):
    """How a text table is written."""

    sep: str
    decimal: str
    thousands: str | None
    names: list[str]  # of the columns, "" where there is none
    has_row_names: bool = False  # whether the first column holds row names, and has none itself, as R writes


def decode(file: str, content: bytes, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text in a file's content, without a byte order mark, and notes."""
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
        text = content.decode(FALLBACK_ENCODING, "replace")
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
        merit = (
            round(n_fitting / max(len(rows), 1), 2),
            round(n_numbers / max(len(fields), 1), 2),
            other == USUAL_SEPARATOR[form],
        )
        if merit > best:
            best, sep = merit, other
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
