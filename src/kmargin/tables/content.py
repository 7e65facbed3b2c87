"""What a file holds, told from its first bytes, whatever its name says."""

import gzip
import zipfile
import zlib
from pathlib import Path

from kmargin.errors import InputError

ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".txt": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
}

MAGIC = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "a ZIP archive",
    b"PK\x05\x06": "an empty ZIP archive",
    b"\x1f\x8b": "compressed with gzip",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x89HDF": "HDF5",
    b"\x89PNG": "a PNG image",
    b"%PDF": "a PDF",
    b"\x93NUMPY": "a single NumPy array (.npy)",
    b"BZh": "compressed with bzip2",
    b"\xff\xfe": "text in UTF-16, not UTF-8",
    b"\xfe\xff": "text in UTF-16, not UTF-8",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}

ADVICE = {
    "Parquet": "Rename it to end in .parquet.",
    "a NumPy archive (.npz)": "Rename it to end in .npz.",
    "an Excel workbook": "Save the sheet as CSV.",
    "an old Excel workbook": "Save the sheet as CSV.",
    "compressed with gzip": "Rename it to end in .gz, or unpack it.",
    "text in UTF-16, not UTF-8": "Save it as UTF-8.",
    "a web page (HTML)": "It may be a sign-in or error page: download the data again.",
    "a Python pickle": "Pickles can run code when opened, so kmargin does not: save the table as CSV.",
}

FITTING = {"csv": "text", "tsv": "text", "svmlight": "text", "parquet": "Parquet"}


def format_of(path: Path) -> str:
    """The format that a file's ending promises."""
    name = path.name.lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ENDINGS[ending]
    raise InputError(
        f"{path.name} ends in {path.suffix or 'nothing'}, which says no format that kmargin reads. "
        f"Use one of {', '.join(ENDINGS)}."
    )


def check_content(path: Path) -> str:
    """The format of a file, its content checked against its ending.

    Raises InputError where the two disagree, or where there is nothing to read.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the file with the table.")
    if not path.exists():
        beside = sorted(p.name for p in path.parent.glob(f"{path.stem[:3]}*.*"))[:3]
        hint = f" There is {', '.join(beside)}." if beside else ""
        raise InputError(f"There is no file {path}.{hint}")
    form = format_of(path)
    start = _first_bytes(path)
    if not start.strip():
        raise InputError(f"{path.name} is empty. Give a file with a row of names and rows of data.")
    content = recognise(path, start)
    promised = FITTING.get(form, "a NumPy archive (.npz)")
    if content != promised:
        ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
        advice = ADVICE.get(content, "Give a file that is what its ending says.")
        raise InputError(f"{path.name} ends in {ending}, but its content is {content}. {advice}")
    return form


def recognise(path: Path, start: bytes) -> str:
    """The content that a file starts with, in words; "text" where it may be a table of text."""
    for magic, content in MAGIC.items():
        if start.startswith(magic):
            return _archive(path) if content == "a ZIP archive" else content
    if b"\0" in start:
        return "binary"
    words = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if words.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        return "XML" if words.startswith(b"<?xml") else "a web page (HTML)"
    if words.startswith((b"{", b"[{", b"[[")):
        return "JSON"
    return "text"


def _archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged ZIP archive"
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook"
    return "a NumPy archive (.npz)" if all(name.endswith(".npy") for name in names) else "a ZIP archive"


def _first_bytes(path: Path, n_bytes: int = 4096) -> bytes:
    """As a reader will see them: unpacked, if the name says that the file is compressed."""
    with path.open("rb") as file:
        start = file.read(n_bytes)
    if not (path.name.lower().endswith(".gz") and start):
        return start
    try:
        with gzip.open(path) as unpacked:
            return unpacked.read(n_bytes)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path.name} ends in .gz, but its content is not compressed with gzip, or damaged. "
            "Rename it, or download it again."
        ) from error
