"""Loaders that return the data sets of the paper's Table 1, parsed from their files or simulated."""

import io
import tarfile
import textwrap
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.utils import Bunch

from kmargin.datasets.download import TABLE_1, Dataset, DatasetError, fetch
from kmargin.datasets.simulate import make_spiral, make_synthetic

IRIS_FEATURES = ["sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"]
IRIS_CLASSES = {f"Iris-{species}": species for species in ("setosa", "versicolor", "virginica")}
LETTER_FEATURES = [
    *("x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar"),
    *("y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx"),
]
LETTERS = {letter: letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
SPLICE_CLASSES = {"1": "EI", "2": "IE", "3": "N"}
CELL_FEATURES = [
    "clump thickness",
    "uniformity of cell size",
    "uniformity of cell shape",
    "marginal adhesion",
    "single epithelial cell size",
    "bare nuclei",
    "bland chromatin",
    "normal nucleoli",
    "mitoses",
]
TUMOUR_CLASSES = {"2": "benign", "4": "malignant"}
PIXEL_FEATURES = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]


class Table(NamedTuple):
    """The features and labels of a data set."""

    X: np.ndarray
    y: np.ndarray
    feature_names: list[str]


class Layout(NamedTuple):
    """Where a comma-separated file has features and labels. Rows with a missing value ("?") are left out."""

    feature_names: list[str] | None = None  # None: the first line of the file has the names
    classes: Mapping[str, str] | None = None  # class names by label; None: integer labels
    label: int = -1  # index of the column with the label of each row; -1 for the last column
    n_before: int = 0  # number of columns before the first feature: they hold the label or a patient number


LAYOUTS = {
    "iris": Layout(IRIS_FEATURES, IRIS_CLASSES),
    "letter-recognition": Layout(LETTER_FEATURES, LETTERS, label=0, n_before=1),
    "splice": Layout(classes=SPLICE_CLASSES),
    "optdigits": Layout(PIXEL_FEATURES),
    "breast-cancer-wisconsin": Layout(CELL_FEATURES, TUMOUR_CLASSES, n_before=1),
}


def read_table(paths: Sequence[Path], layout: Layout) -> Table:
    """Read files that have the same layout of columns, and concatenate their rows in the order of `paths`."""
    parts = []
    for path in paths:
        with _reading(path):
            parts.append(_read_file(path, layout))
    X, y, names = zip(*parts, strict=True)
    return Table(np.vstack(X), np.concatenate(y), names[0])


def _read_file(path: Path, layout: Layout) -> Table:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    if not lines:
        raise ValueError("the file is empty")
    cells = np.loadtxt(lines, dtype=str, delimiter=",", quotechar='"', comments=None, ndmin=2)
    names, first = layout.feature_names, layout.n_before
    if names is None:
        names, cells = cells[0, first:-1].tolist(), cells[1:]
    width = first + len(names) + (layout.label == -1)
    if cells.shape[1] != width:
        raise ValueError(f"it has {cells.shape[1]} columns where {width} are expected")
    cells = cells[(cells != "?").all(axis=1)]
    labels = cells[:, layout.label].tolist()
    # Convert from lists, so that NumPy's error for a cell without a number quotes 'x', not np.str_('x').
    X = np.array(cells[:, first : first + len(names)].tolist(), dtype=float)
    if layout.classes is None:
        return Table(X, np.array(labels, dtype=int), names)
    if unknown := set(labels) - layout.classes.keys():
        raise ValueError(f"the classes {sorted(unknown)} are not among {list(layout.classes)}")
    return Table(X, np.array([layout.classes[label] for label in labels]), names)


def read_tcga(path: Path, n_features: int) -> Table:
    """Read the features in data.csv and the labels in labels.csv of an archive, without unpacking it on disk.

    The first column of both files is the name of the sample. Of the genes that are nonzero in at least one
    sample, the first `n_features` are kept.
    """
    texts = {}
    with _reading(path), tarfile.open(path, "r:gz") as archive:
        for member in archive:
            if (stream := archive.extractfile(member)) is not None:  # extractfile returns None for a folder
                lines = io.TextIOWrapper(stream, encoding="utf-8")
                texts[Path(member.name).name] = [line.rstrip("\n") for line in lines]
        if not {"data.csv", "labels.csv"} <= texts.keys():
            raise ValueError("data.csv or labels.csv is not in the archive")
        labels = dict(line.split(",")[:2] for line in texts["labels.csv"])
        samples, _, values = zip(*(line.partition(",") for line in texts["data.csv"]), strict=True)
        if missing := [sample for sample in samples[1:] if sample not in labels]:
            raise ValueError(f"labels.csv has no line for {len(missing)} samples, the first {missing[0]!r}")
        X = np.loadtxt(values[1:], delimiter=",", ndmin=2)
        kept = np.flatnonzero(X.any(axis=0))[:n_features]
        genes = np.array(values[0].split(","))
    y = np.array([labels[sample] for sample in samples[1:]])
    return Table(X.take(kept, axis=1), y, genes[kept].tolist())


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """In a `with` block: turn errors in a file's content into a DatasetError with its path and a remedy."""
    try:
        yield
    except (ValueError, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{path} cannot be read: {error}. Delete it, and the loader will download the original."
        ) from error


SIMULATORS: dict[str, Callable[..., Any]] = {"synthetic": make_synthetic, "spiral": make_spiral}
SCALINGS = {  # what `describe` says about each value of `Dataset.scaling`, the paper's preprocessing
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
    """Decorator: append LIKE_LOAD, which describes parameters and result, to the docstring of a loader."""
    loader.__doc__ = (loader.__doc__ or "").rstrip() + LIKE_LOAD
    return loader


def load(name: str, *, random_state: Any = None, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load a data set by its name in the paper's Table 1.

    Files are read from the folder in the environment variable `KMARGIN_DATA` or, if it is not set, from
    kmargin's folder in the user's cache. Missing files are downloaded, and their SHA-256 is verified. The
    data are not scaled, shuffled or split.

    Parameters
    ----------
    name : str
        A key of `TABLE_1`, such as "letter-recognition".
    random_state : int, RandomState instance or None
        Seed of the simulated data sets, "synthetic" and "spiral"; the other data sets do not use it.
    return_X_y : bool
        Whether to return only `(data, target)`, instead of a Bunch.
    as_frame : bool
        Whether `data` is a pandas DataFrame and `target` a Series, instead of NumPy arrays.

    Returns
    -------
    Bunch
        `data` (n_samples, n_features), rows in file order; `target`, the label of each row;
        `feature_names`; `target_names`, the distinct labels, sorted; `frame`, data and target side by side
        if `as_frame`, else None; `DESCR`, a description; `filenames`, the files read; and `entry`, the value
        in `TABLE_1`, with the paper's scaling, kernel and sizes of the training and test sets.

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
    if name in LAYOUTS:
        table = read_table(paths, LAYOUTS[name])
    elif name in SIMULATORS:
        X, y = SIMULATORS[name](random_state=random_state)
        table = Table(X, y, [f"x{j}" for j in range(1, X.shape[1] + 1)])
    else:
        table = read_tcga(paths[0], entry.n_features)
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
    """Load shapes of capital letters in twenty fonts: 20000 rows, 16 features, classes "A" to "Z"."""
    return load("letter-recognition", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_splice(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load DNA splice junctions: 3186 rows, 180 features, classes "EI" (exon to intron), "IE", "N" (none)."""
    return load("splice", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_optdigits(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load digits: 5620 rows (UCI's training file, then its test file), 64 pixels, classes 0 to 9."""
    return load("optdigits", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_breast_cancer_wisconsin(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load properties of cells of breast tumours: 683 rows, 9 features, classes "benign" and "malignant"."""
    return load("breast-cancer-wisconsin", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_iris(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load Fisher's iris (no download): 150 rows, 4 features, classes "setosa", "versicolor", "virginica"."""
    return load("iris", return_X_y=return_X_y, as_frame=as_frame)


@_like_load
def load_tcga_pancan_hiseq(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the expression of 10000 genes in 801 tumours of five kinds; the file to download has 72 MB."""
    return load("TCGA-PANCAN-HiSeq", return_X_y=return_X_y, as_frame=as_frame)


def describe(entry: Dataset) -> str:
    """Return `DESCR`, the text about a data set: its size, its use in the paper, its source and licence."""
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


def _as_frames(table: Table) -> tuple[Any, Any, Any]:
    import pandas as pd

    data = pd.DataFrame(table.X, columns=table.feature_names)
    target = pd.Series(table.y, name="target")
    return data, target, pd.concat([data, target], axis=1)
