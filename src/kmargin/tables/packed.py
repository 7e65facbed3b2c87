"""Compressed files: what their endings promise, and their bytes as a reader wants them."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kmargin.errors import InputError, listing

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
