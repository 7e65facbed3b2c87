"""The data sets of the paper's Table 1: their sizes, sources and checksums, and downloads of their files."""

import hashlib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal


class DatasetError(RuntimeError):
    """A data set of the paper could not be fetched or read."""


class DownloadError(DatasetError):
    """The server could not be reached, refused the request, or broke the connection."""


class ChecksumError(DatasetError):
    """A downloaded file does not have the SHA-256 checksum that is recorded for it."""


class DamagedFileError(DatasetError):
    """A file found in the cache folder or in the package is incomplete or has been changed."""


class CacheFolderError(DatasetError):
    """The cache folder cannot be read or written to."""


@dataclass(frozen=True)
class RemoteFile:
    """A file to download.

    Attributes
    ----------
    name : str
        The name of the file in the cache folder.
    url : str
        The address to download the file from.
    sha256 : str
        The SHA-256 checksum of the file.
    """

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A data set in the paper's Table 1. If `files` is empty, the data are simulated.

    Attributes
    ----------
    name : str
        The name of the data set in the paper.
    summary : str
        What a row, a feature and a class are.
    source : str
        Who made the data, and where they were described.
    licence : str
        Licence of the data.
    n_samples, n_features, n_classes : int
        Numbers of rows, columns and classes.
    scaling : "zscore", "minmax" or "none"
        How the paper scales the features.
    kernel : "linear" or "rbf"
        The kernel that the paper uses.
    train_share : float
        The proportion of the rows that form the training set: the first rows, in file order.
    files : tuple of RemoteFile
        The files to download.
    """

    name: str
    summary: str
    source: str
    licence: str
    n_samples: int
    n_features: int
    n_classes: int
    scaling: Literal["zscore", "minmax", "none"]
    kernel: Literal["linear", "rbf"] = "linear"
    train_share: float = 0.8
    files: tuple[RemoteFile, ...] = ()

    @property
    def n_train(self) -> int:
        """Number of rows of the paper's training set."""
        return round(self.train_share * self.n_samples)

    @property
    def n_test(self) -> int:
        """Number of rows of the paper's test set."""
        return self.n_samples - self.n_train


def read_table_1() -> Mapping[str, Dataset]:
    """Read `table1.toml`; return the description of each data set by its name."""
    rows = tomllib.loads(Path(__file__).with_name("table1.toml").read_text(encoding="utf-8"))["dataset"]
    for row in rows:
        row["files"] = tuple(RemoteFile(**file) for file in row.get("files", ()))
    return MappingProxyType({row["name"]: Dataset(**row) for row in rows})


TABLE_1 = read_table_1()
"""The paper's data sets by name, in the order of its Table 1."""


SHIPPED = Path(__file__).parent / "files"  # the folder of the data files that come with kmargin
TIMEOUT = (10.0, 60.0)  # seconds to wait for a connection, and then for each next part of a file
N_RETRIES = 2  # how often a failed download is tried again


def cache_folder() -> Path:
    """Return the folder for downloaded files.

    Returns
    -------
    Path
        The folder in the environment variable `KMARGIN_DATA` or, if this is not set, kmargin's folder in the
        user's cache. It may not exist yet.
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
    """Return the path of a data file after a check of its checksum; download the file if it is not there.

    A file in the cache folder or in the package is not downloaded. Any other file is downloaded to the cache
    folder with pooch, which keeps it only if its checksum is correct.

    Parameters
    ----------
    file : RemoteFile
        One of the `files` of a data set in `TABLE_1`.

    Returns
    -------
    Path
        The path of the file, in the cache folder or in the package.
    """
    path = cache_folder() / file.name
    for place in (path, SHIPPED / file.name):
        try:
            if not place.exists():
                continue
            found, n_bytes = _sha256(place), place.stat().st_size
        except OSError as error:
            raise CacheFolderError(
                f"{place} cannot be read ({_reason(error)}). Make it readable, or set KMARGIN_DATA to another"
                " folder."
            ) from error
        if found != file.sha256:
            raise DamagedFileError(
                f"{place} has {n_bytes} bytes with SHA-256 {found}, but {file.url} has {file.sha256}: the"
                " copy is incomplete or has been changed. Delete it, and it will be downloaded again."
            )
        return place
    _download(file, path)
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _reason(error: OSError) -> str:
    """Return the operating system's message about an error, which pooch may have wrapped in another error."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return cause.strerror or str(cause)


def _download(file: RemoteFile, path: Path) -> None:
    """Download a file to `path` with pooch, which retries, and deletes a file that has a wrong checksum."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"Downloading {file.url} needs pooch: pip install 'kmargin[experiments]'."
        ) from error
    from requests import RequestException  # pooch depends on requests, so it is installed

    headers = {"Accept-Encoding": "identity"}  # asks the server not to compress the file for the transfer
    http = pooch.HTTPDownloader(timeout=TIMEOUT, chunk_size=2**16, headers=headers)
    registry, urls = {file.name: f"sha256:{file.sha256}"}, {file.name: file.url}
    store = pooch.create(path.parent, "", registry=registry, urls=urls, retry_if_failed=N_RETRIES)
    by_hand = f"put it at {path}, or set KMARGIN_DATA to a folder that has it"
    try:
        store.fetch(file.name, downloader=http)
    except RequestException as error:
        raise DownloadError(
            f"{file.url} could not be downloaded ({error}). Try again later, or download it by hand and "
            f"{by_hand}."
        ) from error
    except ValueError as error:
        raise ChecksumError(
            f"{file.url} is not the recorded file, and was not kept: it has been changed at its source or in"
            f" transit ({error}). If trying again does not help, find the original file, {by_hand}."
        ) from error
    except OSError as error:
        raise CacheFolderError(
            f"{path.parent} cannot be written to ({_reason(error)}), so {file.url} was not"
            " downloaded. Make the folder writable, or set KMARGIN_DATA to another one."
        ) from error
