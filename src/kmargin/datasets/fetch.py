"""A file of the registry on this machine: found in the cache folder, shipped, or downloaded and checked."""

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kmargin.datasets.errors import CacheFolderError, ChecksumError, DamagedFileError, DownloadError
from kmargin.datasets.registry import RemoteFile

SHIPPED = Path(__file__).parent / "files"
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two pieces of the file
WAITS = (1.0, 3.0)  # seconds before the second and the third try


def cache_folder() -> Path:
    """Return the folder of downloaded data: `KMARGIN_DATA` if it is set, else a folder in the user's cache.

    Returns
    -------
    Path
        It need not exist.
    """
    if chosen := os.environ.get("KMARGIN_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kmargin"


def fetch(file: RemoteFile) -> Path:
    """Return the path of a file whose checksum was verified, downloading it if necessary.

    A copy in the cache folder is used first, then one that is shipped with the package; neither needs a
    writable folder, a network or pooch. Otherwise the file is downloaded to the cache folder, where it gets
    its name only when it is complete and its checksum is correct.

    Parameters
    ----------
    file : RemoteFile
        One of the `files` of a row of `TABLE_1`.

    Returns
    -------
    Path
        Its path.
    """
    path = cache_folder() / file.name
    for place in (path, SHIPPED / file.name):
        if _exists(place):
            _verify(file, place)
            return place
    _download(file, path)
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise _unreadable(path, error) from error


def _verify(file: RemoteFile, path: Path) -> None:
    try:
        found, n_bytes = _sha256(path), path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error
    if found != file.sha256:
        raise DamagedFileError(
            f"{path} has {n_bytes} bytes with SHA-256 {found}, but {file.url} has {file.sha256}: the copy is"
            " incomplete or has been changed. Delete it, and it will be downloaded again."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _unreadable(path: Path, error: OSError) -> CacheFolderError:
    return CacheFolderError(
        f"{path} cannot be read ({_reason(error)}). Make it readable, or set KMARGIN_DATA to another folder."
    )


def _reason(error: OSError) -> str:
    """The system's own words, which pooch wraps into others."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return cause.strerror or str(cause)


def _download(file: RemoteFile, path: Path) -> None:
    pooch = _import_pooch(file)
    from requests import RequestException  # pooch needs it too

    for wait in (*WAITS, None):
        try:
            with _quiet(pooch.get_logger()):
                _retrieve(pooch, file, path)
            return
        except RequestException as error:
            what, may_pass = _diagnose(error)
            if wait is None or not may_pass:
                raise DownloadError(
                    f"{file.url} {what}. Try again later, download it by hand and put it at {path}, or set"
                    " KMARGIN_DATA to a folder that has it."
                ) from error
            time.sleep(wait)
        except OSError as error:
            raise CacheFolderError(
                f"{path.parent} cannot be written to ({_reason(error)}), so {file.url} was not"
                " downloaded. Make the folder writable, or set KMARGIN_DATA to another one."
            ) from error


def _retrieve(pooch: Any, file: RemoteFile, path: Path) -> None:
    """One try; pooch writes under a temporary name and renames once the checksum is right."""
    as_it_lies_there = {"Accept-Encoding": "identity"}
    http = pooch.HTTPDownloader(timeout=TIMEOUT, chunk_size=2**16, headers=as_it_lies_there)
    received = ""

    def download(url: str, output: str, caller: Any) -> None:
        nonlocal received
        http(url, output, caller)
        received = f"{Path(output).stat().st_size} bytes with SHA-256 {_sha256(Path(output))}"

    try:
        pooch.retrieve(
            file.url, f"sha256:{file.sha256}", fname=file.name, path=path.parent, downloader=download
        )
    except ValueError as error:
        if not received:  # the address itself is no good, which is requests' to say
            raise
        raise ChecksumError(
            f"{file.url} returned {received}, not {file.sha256}, and was not kept: the file has been changed"
            f" at its source or in transit. Try again; if that does not help, find the original file,"
            f" put it at {path}, or set KMARGIN_DATA to a folder that has it."
        ) from error


def _import_pooch(file: RemoteFile) -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"Downloading {file.url} needs pooch: pip install 'kmargin[experiments]'."
        ) from error
    return pooch


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _diagnose(error: Any) -> tuple[str, bool]:
    """What happened, and whether another try may go better."""
    from requests import ConnectionError, HTTPError, Timeout
    from requests.exceptions import ChunkedEncodingError

    if isinstance(error, HTTPError) and error.response is not None:
        status = error.response.status_code
        return f"answered {status} {error.response.reason}", status == 429 or status >= 500
    if isinstance(error, ChunkedEncodingError):
        return "broke off before the whole file had come", True
    if isinstance(error, Timeout):
        return "did not answer in time", True
    if isinstance(error, ConnectionError):
        return f"could not be reached ({type(error).__name__})", True
    return f"could not be downloaded ({error})", False
