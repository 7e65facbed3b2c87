"""The data sets of Table 1, each as scikit-learn would hand it out."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import Bunch

from kmargin.datasets import parsers
from kmargin.datasets.errors import DatasetError
from kmargin.datasets.fetch import fetch
from kmargin.datasets.parsers import Table
from kmargin.datasets.registry import TABLE_1, Dataset
from kmargin.datasets.simulate import make_spiral, make_synthetic

READERS: Mapping[str, Callable[[Sequence[Path], int], Table]] = {
    "iris": parsers.read_iris,
    "letter-recognition": parsers.read_letters,
    "splice": parsers.read_splice,
    "optdigits": parsers.read_optdigits,
    "breast-cancer-wisconsin": parsers.read_breast_cancer,
    "TCGA-PANCAN-HiSeq": parsers.read_tcga,
}
SIMULATORS: Mapping[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "synthetic": make_synthetic,
    "spiral": make_spiral,
}
SCALINGS = {
    "zscore": "features have mean 0 and variance 1",
    "minmax": "features are scaled to [0, 1]",
    "none": "features stay as they are",
}


Loader = TypeVar("Loader", bound=Callable[..., Any])

LIKE_LOAD = """

    Parameters
    ----------
    return_X_y : bool, default=False
        Return `(data, target)` alone.
    as_frame : bool, default=False
        Return pandas objects.

    Returns
    -------
    Bunch
        `data`, `target` and a description; see :func:`load`.

    See Also
    --------
    load : Any data set of the paper, by its name.
    """


def _like_load(loader: Loader) -> Loader:
    """Parameters and Bunch are those of `load`, and documented so."""
    loader.__doc__ = (loader.__doc__ or "").rstrip() + LIKE_LOAD
    return loader


def load(name: str, *, random_state: Any = None, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load a data set by its name in the paper's Table 1.

    Files are looked for in the folder named by the environment variable `KMARGIN_DATA`, else in kmargin's
    folder in the user's cache; missing files are downloaded and their SHA-256 is verified. Nothing is scaled,
    shuffled or split.

    Parameters
    ----------
    name : str
        A key of `TABLE_1`, such as "letter-recognition".
    random_state : int, RandomState instance or None
        For "synthetic" and "spiral", which are simulated; the other data sets do not use it.
    return_X_y : bool
        Return `(data, target)` alone.
    as_frame : bool
        Return pandas objects.

    Returns
    -------
    Bunch
        `data` (n_samples, n_features), rows in file order; `target`, the label of each row;
        `feature_names`; `target_names`, the distinct labels, sorted; `frame`, data and target side by side
        if `as_frame`, else None; `DESCR`; `filenames`, the files read; and `entry`, the row of `TABLE_1`
        with the paper's scaling, kernel and sizes of the training and test sets.

    Examples
    --------
    >>> from kmargin.datasets import load
    >>> iris = load("iris")
    >>> iris.data.shape, iris.entry.n_train
    ((150, 4), 120)
    """
    if name not in TABLE_1:
        raise ValueError(f"name={name!r} is not a data set of the paper. Use one of {', '.join(TABLE_1)}.")
    entry = TABLE_1[name]
    paths = [fetch(file) for file in entry.files]
    table = READERS[name](paths, entry.n_features) if paths else _simulate(entry, random_state)
    if table.X.shape != (entry.n_samples, entry.n_features):
        raise DatasetError(
            f"{name} was read with shape {table.X.shape}, but Table 1 has"
            f" {(entry.n_samples, entry.n_features)}. Please report this as a bug, with the file {paths}."
        )
    data, target, frame = _as_frames(table) if as_frame else (table.X, table.y, None)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=list(table.feature_names),
        target_names=np.unique(table.y),
        DESCR=describe(entry),
        filenames=[str(path) for path in paths],
        entry=entry,
    )


@_like_load
def load_letter_recognition(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Capital letters in twenty fonts: 20000 x 16, classes "A" to "Z"."""
    return load("letter-recognition", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_splice(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Splice junctions of DNA: 3186 x 180, classes "EI", "IE", "N"."""
    return load("splice", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_optdigits(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Handwritten digits: 5620 x 64, classes 0 to 9, UCI's training file before its test file."""
    return load("optdigits", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_breast_cancer_wisconsin(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Cells of breast tumours: 683 x 9, classes "benign" and "malignant"."""
    return load("breast-cancer-wisconsin", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_iris(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Fisher's iris: 150 x 4, classes "setosa", "versicolor", "virginica"; shipped with the package."""
    return load("iris", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_tcga_pancan_hiseq(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Gene expression in five kinds of tumour: 801 x 10000; a download of 72 MB."""
    return load("TCGA-PANCAN-HiSeq", return_X_y=return_X_y, as_frame=as_frame)


def describe(entry: Dataset) -> str:
    """A row of Table 1 in words."""
    scaling, kernel = SCALINGS[entry.scaling], {"linear": "linear", "rbf": "Gaussian"}[entry.kernel]
    paragraphs = [
        f"{entry.n_samples} samples, {entry.n_features} features, {entry.n_classes} classes. {entry.summary}",
        f"In the paper, {scaling}, the kernel is {kernel}, the first {entry.n_train} rows are for"
        f" training and the other {entry.n_test} for testing. The loader leaves all of this to you.",
        f"Source: {entry.source}",
        f"Licence: {entry.licence}.",
        *(f"File: {file.url}, SHA-256 {file.sha256}" for file in entry.files),
    ]
    wrapped = [textwrap.fill(text, 88, break_long_words=False, break_on_hyphens=False) for text in paragraphs]
    return "\n\n".join([f"{entry.name}\n{'=' * len(entry.name)}", *wrapped])


def _simulate(entry: Dataset, random_state: Any) -> Table:
    X, y = SIMULATORS[entry.name](random_state=random_state)
    return Table(X, y, [f"x{j}" for j in range(1, X.shape[1] + 1)])


def _as_frames(table: Table) -> tuple[Any, Any, Any]:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install pandas.") from error
    data = pd.DataFrame(table.X, columns=table.feature_names)
    target = pd.Series(table.y, name="target")
    return data, target, pd.concat([data, target], axis=1)
