"""The files of the registry as arrays, row by row in file order."""

import csv
import io
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kmargin.datasets.errors import DatasetError

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
    """A data set as numbers and labels."""

    X: np.ndarray
    y: np.ndarray
    feature_names: list[str]


def read_iris(paths: Sequence[Path], n_features: int) -> Table:
    """Four numbers and the species."""
    with _reading(paths[0]):
        cells = _read_cells(paths[0], n_features + 1)
        return Table(_numbers(cells[:, :-1]), _rename(cells[:, -1], IRIS_CLASSES), IRIS_FEATURES)


def read_letters(paths: Sequence[Path], n_features: int) -> Table:
    """The letter and sixteen integers."""
    with _reading(paths[0]):
        cells = _read_cells(paths[0], n_features + 1)
        return Table(_numbers(cells[:, 1:]), _rename(cells[:, 0], LETTERS), LETTER_FEATURES)


def read_splice(paths: Sequence[Path], n_features: int) -> Table:
    """A header, then zeros and ones and the number of the class."""
    with _reading(paths[0]):
        header, *cells = _read_cells(paths[0], n_features + 1)
        rows = np.array(cells)
        return Table(_numbers(rows[:, :-1]), _rename(rows[:, -1], SPLICE_CLASSES), header[:-1].tolist())


def read_optdigits(paths: Sequence[Path], n_features: int) -> Table:
    """64 levels of grey and the digit; the training file, then the test file."""
    parts = []
    for path in paths:
        with _reading(path):
            parts.append(_numbers(_read_cells(path, n_features + 1)))
    rows = np.vstack(parts)
    return Table(rows[:, :-1].copy(), rows[:, -1].astype(int), PIXEL_FEATURES)


def read_breast_cancer(paths: Sequence[Path], n_features: int) -> Table:
    """A number for the patient, nine grades, and the class; rows with a question mark are left out."""
    with _reading(paths[0]):
        cells = _read_cells(paths[0], n_features + 2)
        cells = cells[(cells != "?").all(axis=1)]
        return Table(_numbers(cells[:, 1:-1]), _rename(cells[:, -1], TUMOUR_CLASSES), CELL_FEATURES)


def read_tcga(paths: Sequence[Path], n_features: int) -> Table:
    """data.csv and labels.csv in an archive, matched by the name of the sample in their first columns.

    Of the genes that are not zero in every sample the first `n_features` are kept, or all if there are
    fewer. The archive is read once, from front to back, and is not unpacked on disk.
    """
    samples, X, genes, labels = None, np.empty((0, 0)), [""], None
    with _reading(paths[0]), tarfile.open(paths[0], "r:gz") as archive:
        for member in archive:
            if (stream := archive.extractfile(member)) is None:
                continue  # a folder
            with io.TextIOWrapper(stream, encoding="utf-8", newline="") as lines:
                match Path(member.name).name:
                    case "data.csv":
                        samples, X, genes = _read_expression(lines, n_features)
                    case "labels.csv":
                        labels = {row[0]: row[1] for row in csv.reader(lines) if row}
        if samples is None or labels is None:
            raise ValueError("data.csv or labels.csv is not in the archive")
        if missing := [sample for sample in samples if sample not in labels]:
            raise ValueError(f"labels.csv has no line for {len(missing)} samples, the first {missing[0]!r}")
    return Table(X, np.array([labels[sample] for sample in samples]), genes)


def _read_expression(lines: Iterable[str], n_genes: int) -> tuple[list[str], np.ndarray, list[str]]:
    """Names of the samples, their expression, and names of the genes kept.

    The more samples have been seen, the fewer genes are zero in all of them, and the earlier the columns
    end that hold the first `n_genes` others. Columns beyond that end need no reading any more.
    """
    rows = csv.reader(lines)
    header = next(rows, [""])
    nonzero = np.zeros(len(header) - 1, dtype=bool)
    samples, values = [], []
    for row in filter(None, rows):
        if len(row) != len(header):
            raise ValueError(
                f"data.csv, line {rows.line_num}: {len(row)} columns, the header has {len(header)}"
            )
        samples.append(row[0])
        values.append(np.array(row[1 : len(nonzero) + 1], dtype=float))
        nonzero |= values[-1] != 0
        nonzero = nonzero[: _end_of_first(nonzero, n_genes)]
    kept = np.flatnonzero(nonzero)
    X = np.array([row[kept] for row in values]).reshape(len(samples), len(kept))
    return samples, X, [header[1 + gene] for gene in kept]


def _end_of_first(flags: np.ndarray, count: int) -> int:
    """One past the `count`-th true flag, or the length if there are fewer."""
    true = np.flatnonzero(flags)
    return int(true[count - 1]) + 1 if len(true) >= count else len(flags)


def _read_cells(path: Path, n_columns: int) -> np.ndarray:
    """The cells of a comma-separated file as strings; empty lines are skipped."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = csv.reader(handle)
        cells = []
        for row in filter(None, rows):
            if len(row) != n_columns:
                raise ValueError(
                    f"line {rows.line_num} has {len(row)} columns where {n_columns} are expected"
                )
            cells.append(row)
    if not cells:
        raise ValueError("the file is empty")
    return np.array(cells)


def _numbers(cells: np.ndarray) -> np.ndarray:
    return np.array(cells.tolist(), dtype=float)  # from a list, for the sake of numpy's error message


def _rename(codes: np.ndarray, names: Mapping[str, str]) -> np.ndarray:
    if unknown := set(codes.tolist()) - names.keys():
        raise ValueError(f"the classes {sorted(unknown)} are not among {list(names)}")
    return np.array([names[code] for code in codes.tolist()])


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, csv.Error, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{path} cannot be read: {error}. Delete it, and the loader will download the original."
        ) from error
