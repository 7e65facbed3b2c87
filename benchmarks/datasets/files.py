"""The real data of the cases, or a simulated stand-in of the same shape where a file is missing.

Files are looked for in the directory that KMARGIN_DATA_DIR names, then in a few places beside the
repository. A stand-in carries the word in its name, so that no table mistakes it for the real data.
"""

import os
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from benchmarks.datasets.dataset import Dataset

ROOT = Path(__file__).resolve().parents[2]

SHAPES = {  # n_train, n_test, n_features, n_classes
    "letters": (16_000, 4_000, 16, 26),
    "optdigits": (3_823, 1_797, 64, 10),
    "splice": (2_549, 637, 180, 3),
    "tcga": (934, 234, 10_000, 3),
    "srbct": (83, 0, 2_308, 4),
    "iris": (150, 0, 4, 3),
    "news20": (2000, 500, 5000, 20),  # smaller than the real one
    "a9a": (8000, 4000, 123, 2),
}


def load(name):
    """The data set of this name, its features scaled to [0, 1] by the training rows; constant ones are 0."""
    name, (X, y, X_test, y_test) = read(name)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    span = np.where(span > 0, span, 1.0)
    return Dataset(name, (X - low) / span, y, (X_test - low) / span, y_test)


def load_rows(name):
    """Name, X and y of all rows, unscaled; for cases that split them by themselves."""
    name, (X, y, X_test, y_test) = read(name)
    return name, np.concatenate([X, X_test]).astype(float), np.concatenate([y, y_test])


def load_sparse(name):
    """`news20` as tf-idf or `a9a` as it is, in CSR format."""
    name, parts = read(name, sparse=True)
    return Dataset(name, *parts)


def read(name, sparse=False):
    """X, y, X_test, y_test of the file, or of a stand-in with a name that says so."""
    try:
        return name, READERS[name]()
    except FileNotFoundError:
        print(f"    {name}: file not found, a simulated stand-in is used", flush=True)
        return f"{name} (stand-in)", (sparse_stand_in if sparse else stand_in)(*SHAPES[name])


def find(file):
    """The path of a file, in the first place that has it."""
    places = [ROOT / "data", ROOT.parent / "data", ROOT.parent / "shared" / "data"]
    if "KMARGIN_DATA_DIR" in os.environ:
        places.insert(0, Path(os.environ["KMARGIN_DATA_DIR"]))
    for place in places:
        for candidate in (place / file, place / Path(file).name):
            if candidate.is_file():
                return candidate
    raise FileNotFoundError(f"{file} is in none of {', '.join(map(str, places))}. Set KMARGIN_DATA_DIR.")


def split_in_order(X, y, n_train=None):
    """The paper's split: the first 80 % of the rows as they lie in the file."""
    n = round(0.8 * len(y)) if n_train is None else n_train
    return X[:n], y[:n], X[n:], y[n:]


def split_at_random(X, y):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    return X, y, X_test, y_test


def read_genes(name):
    """X and y of a gene set."""
    with np.load(find(f"extra/{name}.npz"), allow_pickle=False) as file:
        return file["X"].astype(float), file["y"].astype(int)


def read_csr(name):
    with np.load(find(f"extra/{name}.npz"), allow_pickle=False) as file:
        parts = file["data"].astype(float), file["indices"], file["indptr"]
        return scipy.sparse.csr_matrix(parts, shape=tuple(file["shape"])), file["y"].astype(int)


def read_letters():
    table = np.genfromtxt(find("raw/letter-recognition.data"), delimiter=",", dtype=str)
    return split_in_order(table[:, 1:].astype(float), table[:, 0])


def read_optdigits():
    train, test = (np.loadtxt(find(f"raw/optdigits.{part}"), delimiter=",") for part in ("tra", "tes"))
    return train[:, :-1], train[:, -1].astype(int), test[:, :-1], test[:, -1].astype(int)


def read_splice():
    table = np.genfromtxt(find("raw/dna.csv"), delimiter=",", skip_header=1, dtype=str)
    table = np.char.strip(table, '"').astype(float)
    return split_in_order(table[:, :-1], table[:, -1].astype(int))


def read_iris():
    table = np.genfromtxt(find("raw/iris.data"), delimiter=",", dtype=str)
    return split_in_order(table[:, :-1].astype(float), table[:, -1], n_train=len(table))


def read_news20():
    """Logarithmic counts, inverse document frequencies, rows of length one; a fifth of the rows to score."""
    X, y, X_test, y_test = split_at_random(*read_csr("news20"))
    transform = TfidfTransformer(sublinear_tf=True).fit(X)
    return transform.transform(X), y, transform.transform(X_test), y_test


READERS = {
    "letters": read_letters,
    "optdigits": read_optdigits,
    "splice": read_splice,
    "tcga": lambda: split_at_random(*read_genes("tcga_luad_coadread_10k")),
    "srbct": lambda: split_in_order(*read_genes("srbct"), n_train=83),
    "iris": read_iris,
    "news20": read_news20,
    "a9a": lambda: split_in_order(*read_csr("a9a"), n_train=32_561),  # its own split
}


def stand_in(n_train, n_test, n_features, n_classes):
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
    return split_in_order(X, y, n_train)


def sparse_stand_in(n_train, n_test, n_features, n_classes):
    """Counts, a few of whose columns are more frequent in one class than in the others."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_train + n_test)
    X = scipy.sparse.random(len(y), n_features, density=0.02, random_state=0, format="lil")
    for row, label in enumerate(y):
        X[row, label + n_classes * rng.integers(min(20, n_features // n_classes), size=3)] = 1.0
    return split_in_order(scipy.sparse.csr_matrix(X), y, n_train)
