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
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
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
    "compressed with bzip2": "Rename it to end in .bz2, or unpack it.",
    "compressed with xz": "Rename it to end in .xz, or unpack it.",
    "compressed with zstd": "Rename it to end in .zst, or unpack it.",
    "a ZIP archive": "Rename it to end in .zip, or unpack it.",
    "a web page (HTML)": "It may be a sign-in or error page: download the data again.",
    "a Python pickle": "Pickles can run code when opened, so kmargin does not: save the table as CSV.",
}

UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what texts in UTF-16 start with

FITTING = {"csv": "text", "tsv": "text", "svmlight": "text", "parquet": "Parquet"}


def format_of(path: Path) -> str:
    """The format that a file's ending promises, or that of the file packed in it."""
    name = inner_name(path)
    form = ENDINGS.get(Path(name.lower()).suffix)
    if form is not None:
        return form
    raise InputError(
        f"{path.name} ends in {Path(name).suffix or 'nothing'}, which says no format that kmargin reads. "
        f"Use one of {', '.join(ENDINGS)}, which may be packed ({', '.join(PACKED)})."
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
    promised = FITTING.get(form, "a NumPy archive (.npz)")
    if content != promised:
        ending = "".join(path.suffixes[-2:]) if path.suffix in PACKED else path.suffix
        advice = ADVICE.get(content, "Give a file that is what its ending says.")
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
        with open_bytes(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged ZIP archive"
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook"
    return "a NumPy archive (.npz)" if all(name.endswith(".npy") for name in names) else "a ZIP archive"
