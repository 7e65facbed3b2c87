"""The data sets of the paper's Table 1: addresses, checksums, and downloads that are checked."""

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal


class DatasetError(RuntimeError):
    """A data set of the paper could not be fetched or read."""


class DownloadError(DatasetError):
    """The server could not be reached, refused the request, or broke the connection."""


class ChecksumError(DatasetError):
    """A downloaded file does not have the recorded SHA-256 checksum."""


class DamagedFileError(DatasetError):
    """An existing file is incomplete or has been changed."""


class CacheFolderError(DatasetError):
    """The cache folder cannot be read or written to."""


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class RemoteFile:
    """A file to download.

    Attributes
    ----------
    name : str
        Its name in the cache folder.
    url : str
        Its address.
    sha256 : str
        Its checksum.
    """

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A row of Table 1. A data set without files is simulated.

    Attributes
    ----------
    name : str
        As in the paper.
    summary : str
        What a row, a feature and a class are.
    source : str
        Who made it, where it was described.
    licence : str
        That of the data.
    n_samples, n_features, n_classes : int
        Its shape.
    scaling : "zscore", "minmax" or "none"
        How the paper scales the features.
    kernel : "linear" or "rbf"
        The kernel that the paper uses.
    train_share : float
        Proportion of the rows, in file order, in the training set.
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
        """Rows of the paper's training set."""
        return round(self.train_share * self.n_samples)

    @property
    def n_test(self) -> int:
        """Rows of the paper's test set."""
        return self.n_samples - self.n_train


def _uci(folder: str, name: str, sha256: str) -> RemoteFile:
    return RemoteFile(name, f"{UCI}/{folder}/{name}", sha256)


_SYNTHETIC = Dataset(
    name="synthetic",
    summary="Two correlated features decide the class, 498 others have nothing to do with it.",
    source="Simulated by kmargin.datasets.make_synthetic (the paper's appendix B.1).",
    licence="none needed",
    n_samples=1000,
    n_features=500,
    n_classes=2,
    scaling="zscore",
)

_IRIS = Dataset(
    name="iris",
    summary="Four measurements of flowers from three species of iris, 50 of each.",
    source=(
        "R. A. Fisher (1936), The use of multiple measurements in taxonomic problems, Annals of Eugenics 7,"
        " 179-188. UCI Machine Learning Repository, https://doi.org/10.24432/C56C76. This is UCI's file,"
        " shipped with kmargin; scikit-learn's differs from it in two rows."
    ),
    licence="CC BY 4.0",
    n_samples=150,
    n_features=4,
    n_classes=3,
    scaling="zscore",
    files=(_uci("iris", "iris.data", "6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0"),),
)

_LETTERS = Dataset(
    name="letter-recognition",
    summary="Sixteen moments and edge counts of distorted images of the capital letters in twenty fonts.",
    source=(
        "P. W. Frey and D. J. Slate (1991), Letter recognition using Holland-style adaptive classifiers,"
        " Machine Learning 6, 161-182. UCI Machine Learning Repository, https://doi.org/10.24432/C5ZP40."
    ),
    licence="CC BY 4.0",
    n_samples=20_000,
    n_features=16,
    n_classes=26,
    scaling="minmax",
    files=(
        _uci(
            "letter-recognition",
            "letter-recognition.data",
            "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
        ),
    ),
)

_SPLICE = Dataset(
    name="splice",
    summary=(
        "Sixty nucleotides around a point of primate DNA, three binary features each; the point is a boundary"
        " from exon to intron (EI), from intron to exon (IE), or neither (N)."
    ),
    source=(
        "M. O. Noordewier, G. G. Towell and J. W. Shavlik (1991), Training knowledge-based neural networks to"
        " recognize genes in DNA sequences, Advances in Neural Information Processing Systems 3. The StatLog"
        " project's version, as data set 40670 (dna) of https://www.openml.org."
    ),
    licence="public, according to OpenML",
    n_samples=3186,
    n_features=180,
    n_classes=3,
    scaling="minmax",
    files=(
        RemoteFile(
            "dna.csv",
            "https://www.openml.org/data/get_csv/4965245/dna.arff",
            "2775c83180277226d445e66acdc6370f298e5d4811ef20b8ce9d111485600b5c",
        ),
    ),
)

_SPIRAL = Dataset(
    name="spiral",
    summary="Three noisy spirals in the plane with 600, 300 and 100 points.",
    source="Simulated by kmargin.datasets.make_spiral (the paper's appendix B.2).",
    licence="none needed",
    n_samples=1000,
    n_features=2,
    n_classes=3,
    scaling="zscore",
    kernel="rbf",
)

_OPTDIGITS = Dataset(
    name="optdigits",
    summary=(
        "Handwritten digits as 8 x 8 images with 17 levels of grey. The first 3823 rows are UCI's training"
        " file, the others its test file, by other writers; the share 0.68 puts all but the last row of the"
        " training file into the training set."
    ),
    source=(
        "E. Alpaydin and C. Kaynak (1998), Optical recognition of handwritten digits. UCI Machine Learning"
        " Repository, https://doi.org/10.24432/C50P49."
    ),
    licence="CC BY 4.0",
    n_samples=5620,
    n_features=64,
    n_classes=10,
    scaling="none",
    train_share=0.68,
    files=(
        _uci(
            "optdigits", "optdigits.tra", "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"
        ),
        _uci(
            "optdigits", "optdigits.tes", "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
        ),
    ),
)

_BREAST_CANCER = Dataset(
    name="breast-cancer-wisconsin",
    summary=(
        "Nine properties of cells from breast tumours, graded from 1 to 10. Sixteen of the file's 699 rows"
        " lack a value and are left out."
    ),
    source=(
        "W. H. Wolberg and O. L. Mangasarian (1990), Multisurface method of pattern separation for medical"
        " diagnosis applied to breast cytology, PNAS 87, 9193-9196. UCI Machine Learning Repository,"
        " https://doi.org/10.24432/C5HP4Z."
    ),
    licence="CC BY 4.0",
    n_samples=683,
    n_features=9,
    n_classes=2,
    scaling="none",
    files=(
        _uci(
            "breast-cancer-wisconsin",
            "breast-cancer-wisconsin.data",
            "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64",
        ),
    ),
)

_TCGA = Dataset(
    name="TCGA-PANCAN-HiSeq",
    summary=(
        "Expression of genes in tumours of five kinds. Of the file's 20,531 genes the paper keeps the first"
        " 10,000 that are not zero in every sample."
    ),
    source=(
        "J. N. Weinstein et al. (2013), The Cancer Genome Atlas Pan-Cancer analysis project, Nature Genetics"
        " 45, 1113-1120. S. Fiorini (2016), Gene expression cancer RNA-Seq, UCI Machine Learning Repository,"
        " https://doi.org/10.24432/C5R88H."
    ),
    licence="CC BY 4.0",
    n_samples=801,
    n_features=10_000,
    n_classes=5,
    scaling="minmax",
    files=(
        _uci(
            "00401",
            "TCGA-PANCAN-HiSeq-801x20531.tar.gz",
            "e6ea3628f9656efa2d7cf382bf5a403e2cc214df3d90312b1928f5650b43a559",
        ),
    ),
)

_ROWS = (_SYNTHETIC, _IRIS, _LETTERS, _SPLICE, _SPIRAL, _OPTDIGITS, _BREAST_CANCER, _TCGA)

TABLE_1: Mapping[str, Dataset] = MappingProxyType({row.name: row for row in _ROWS})
"""The paper's data sets by name, in the order of its Table 1."""


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
