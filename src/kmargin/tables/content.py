"""What a file holds, told from its first bytes, whatever its name says."""

import zipfile
from difflib import get_close_matches
from itertools import product
from pathlib import Path

from kmargin.errors import InputError
from kmargin.tables.packed import PACKED, inner_name, open_bytes

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
