"""Sparse data: `news20` as tf-idf, `a9a` as it is."""

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import find

STAND_IN = {"news20": (2000, 500, 5000, 20), "a9a": (8000, 4000, 123, 2)}  # n_train, n_test, p, classes


def load_sparse(name: str) -> Dataset:
    """The data set of this name, or simulated counts of a smaller shape where its file is missing."""
    try:
        return READERS[name](*read_csr(name))
    except FileNotFoundError:
        print(f"    {name}: file not found, a simulated stand-in is used", flush=True)
        return stand_in(name)


def read_csr(name: str) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    with np.load(find(f"extra/{name}.npz"), allow_pickle=False) as file:
        X = scipy.sparse.csr_matrix(
            (file["data"].astype(float), file["indices"], file["indptr"]), shape=tuple(file["shape"])
        )
        return X, file["y"].astype(int)


def news20(X: scipy.sparse.csr_matrix, y: np.ndarray) -> Dataset:
    """Logarithmic counts, inverse document frequencies, rows of length one; a fifth of them to score."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    transform = TfidfTransformer(sublinear_tf=True).fit(X)
    return Dataset("news20", transform.transform(X), y, transform.transform(X_test), y_test)


def a9a(X: scipy.sparse.csr_matrix, y: np.ndarray) -> Dataset:
    """Its own split: the first 32,561 rows to fit."""
    return Dataset("a9a", X[:32561], y[:32561], X[32561:], y[32561:])


def stand_in(name: str) -> Dataset:
    """Counts, a few of whose columns are more frequent in one class than in the others."""
    n_train, n_test, p, n_classes = STAND_IN[name]
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_train + n_test)
    X = scipy.sparse.random(len(y), p, density=0.02, random_state=0, format="lil")
    for row, label in enumerate(y):
        X[row, label + n_classes * rng.integers(min(20, p // n_classes), size=3)] = 1.0
    X = scipy.sparse.csr_matrix(X)
    name = f"{name} (stand-in)"
    return Dataset(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


READERS = {"news20": news20, "a9a": a9a}


def csr_bytes(X: scipy.sparse.csr_matrix) -> int:
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
