"""The real data of the cases, or a simulated stand-in of the same shape where a file is missing.

Files are looked for in the directory that KMARGIN_DATA_DIR names, then in a few places beside the
repository. A stand-in carries the word in its name, so that no table mistakes it for the real thing.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from benchmarks.datasets.dataset import Dataset, scale_to_unit

ROOT = Path(__file__).resolve().parents[2]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X, y, X_test, y_test

SHAPES = {  # n_train, n_test, n_features, n_classes
    "letters": (16_000, 4_000, 16, 26),
    "optdigits": (3_823, 1_797, 64, 10),
    "splice": (2_549, 637, 180, 3),
    "tcga": (934, 234, 10_000, 3),
    "srbct": (83, 0, 2_308, 4),
    "iris": (150, 0, 4, 3),
}


def load(name: str) -> Dataset:
    """The data set of this name, its features scaled to [0, 1]."""
    name, (X, y, X_test, y_test) = read(name)
    X, X_test = scale_to_unit(X.astype(float), X_test.astype(float))
    return Dataset(name, X, y, X_test, y_test)


def load_rows(name: str) -> tuple[str, np.ndarray, np.ndarray]:
    """All rows of the data set of this name, as they are; for cases that split them by themselves."""
    name, (X, y, X_test, y_test) = read(name)
    return name, np.concatenate([X, X_test]).astype(float), np.concatenate([y, y_test])


def read(name: str) -> tuple[str, Split]:
    """What the file has, or a stand-in with a name that says so."""
    try:
        return name, READERS[name]()
    except FileNotFoundError:
        print(f"    {name}: file not found, a simulated stand-in of the same shape is used", flush=True)
        return f"{name} (stand-in)", stand_in(*SHAPES[name])


def find(file: str) -> Path:
    """The first place that has the file."""
    places = [ROOT / "data", ROOT.parent / "data", ROOT.parent / "shared" / "data"]
    if "KMARGIN_DATA_DIR" in os.environ:
        places.insert(0, Path(os.environ["KMARGIN_DATA_DIR"]))
    for place in places:
        for candidate in (place / file, place / Path(file).name):
            if candidate.is_file():
                return candidate
    raise FileNotFoundError(f"{file} is in none of {', '.join(map(str, places))}. Set KMARGIN_DATA_DIR.")


def split_in_order(X: np.ndarray, y: np.ndarray) -> Split:
    """The paper's split: the first 80 % of the rows as they lie in the file."""
    n = round(0.8 * len(y))
    return X[:n], y[:n], X[n:], y[n:]


def read_letters() -> Split:
    table = np.genfromtxt(find("raw/letter-recognition.data"), delimiter=",", dtype=str)
    return split_in_order(table[:, 1:].astype(float), table[:, 0])


def read_optdigits() -> Split:
    train, test = (np.loadtxt(find(f"raw/optdigits.{part}"), delimiter=",") for part in ("tra", "tes"))
    return train[:, :-1], train[:, -1].astype(int), test[:, :-1], test[:, -1].astype(int)


def read_splice() -> Split:
    table = np.genfromtxt(find("raw/dna.csv"), delimiter=",", skip_header=1, dtype=str)
    table = np.char.strip(table, '"').astype(float)
    return split_in_order(table[:, :-1], table[:, -1].astype(int))


def read_tcga() -> Split:
    with np.load(find("extra/tcga_luad_coadread_10k.npz"), allow_pickle=False) as file:
        X, y = file["X"].astype(float), file["y"].astype(int)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    return X, y, X_test, y_test


def read_srbct() -> Split:
    with np.load(find("extra/srbct.npz"), allow_pickle=False) as file:
        X, y = file["X"].astype(float), file["y"].astype(int)
    return X, y, X[:0], y[:0]


def read_iris() -> Split:
    table = np.genfromtxt(find("raw/iris.data"), delimiter=",", dtype=str)
    X, y = table[:, :-1].astype(float), table[:, -1]
    return X, y, X[:0], y[:0]


def stand_in(n_train: int, n_test: int, n_features: int, n_classes: int) -> Split:
    n_informative = min(n_features, max(8, n_classes))
    X, y = make_classification(
        n_train + n_test,
        n_features,
        n_informative=n_informative,
        n_redundant=min(n_features - n_informative, n_informative),
        n_classes=n_classes,
        n_clusters_per_class=1,
        random_state=0,
    )
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


READERS: dict[str, Callable[[], Split]] = {
    "letters": read_letters,
    "optdigits": read_optdigits,
    "splice": read_splice,
    "tcga": read_tcga,
    "srbct": read_srbct,
    "iris": read_iris,
}
