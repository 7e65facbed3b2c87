"""The real data of the cases.

Files are looked for in kmargin's data folder (that which KMARGIN_DATA names, if it is set) and its subfolders
`raw` and `extra`, then beside the repository. A data set whose file is missing is left out.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

import kmargin.datasets
from benchmarks.datasets.dataset import Dataset

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    kmargin.datasets.cache_folder(),
    *(ROOT / "data", ROOT.parent / "data", ROOT.parent / "shared" / "data"),
)


@cache
def load(name):
    """The data set of this name, its features scaled to [0, 1] by the training rows; constant ones are 0."""
    X, y, X_test, y_test = READERS[name]()
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    span = np.where(span > 0, span, 1.0)
    return Dataset(name, (X - low) / span, y, (X_test - low) / span, y_test)


def load_rows(names):
    """Name, X (unscaled) and class codes of all rows of each data set, for cases that split them."""
    for name in names:
        try:
            X, y, X_test, y_test = READERS[name]()
        except FileNotFoundError as error:
            print(f"    {name} is left out: {error}", flush=True)
        else:
            codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)[1]
            yield name, np.concatenate([X, X_test]), codes


def find(file):
    """The path of a file, in the first place that has it."""
    for place in PLACES:
        for folder in (place, place / "raw", place / "extra"):
            if (folder / file).is_file():
                return folder / file
    raise FileNotFoundError(f"{file} is in none of {', '.join(map(str, PLACES))}. Set KMARGIN_DATA.")


def split_in_order(X, y, n_train=None):
    """The paper's split: the first 80 % of the rows as they lie in the file."""
    n = round(0.8 * len(y)) if n_train is None else n_train
    return X[:n], y[:n], X[n:], y[n:]


def split_at_random(X, y):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    return X, y, X_test, y_test


def read_paper(name):
    """X and y of a data set of the paper's Table 1; downloaded if no place has its file."""
    with suppress(FileNotFoundError):
        os.environ["KMARGIN_DATA"] = str(find(kmargin.datasets.TABLE_1[name].files[0].name).parent)
    try:
        return kmargin.datasets.load(name, return_X_y=True)
    except kmargin.datasets.DatasetError as error:
        raise FileNotFoundError(str(error)) from error


def read_genes(name):
    """X and y of a gene set."""
    with np.load(find(f"{name}.npz"), allow_pickle=False) as file:
        return file["X"].astype(float), file["y"].astype(int)


def load_news20():
    """Logarithmic counts, inverse document frequencies, rows of length one; a fifth of the rows to score."""
    with np.load(find("news20.npz"), allow_pickle=False) as file:
        parts = file["data"].astype(float), file["indices"], file["indptr"]
        X, y = scipy.sparse.csr_matrix(parts, shape=tuple(file["shape"])), file["y"].astype(int)
    X, y, X_test, y_test = split_at_random(X, y)
    transform = TfidfTransformer(sublinear_tf=True).fit(X)
    return Dataset("news20", transform.transform(X), y, transform.transform(X_test), y_test)


READERS = {
    "letters": lambda: split_in_order(*read_paper("letter-recognition")),
    "optdigits": lambda: split_in_order(*read_paper("optdigits"), n_train=3823),  # its own split
    "splice": lambda: split_in_order(*read_paper("splice")),
    "iris": lambda: split_in_order(*read_paper("iris")),
    "breast cancer": lambda: split_in_order(*load_breast_cancer(return_X_y=True)),
    "tcga": lambda: split_at_random(*read_genes("tcga_luad_coadread_10k")),
    "srbct": lambda: split_in_order(*read_genes("srbct")),
}
