"""Which rows are trained on, validated on and tested on, and how features are scaled.

"paper": the first rows of the file (80 %, or 68 % for optdigits) are the training set, cut into
blocks of neighbouring rows for cross-validation; features are scaled by all rows. "shuffled": both
the split and the folds are random and stratified; features are scaled by the rows that are fitted.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from kmargin.datasets import TABLE_1, load
from kmargin.types import Indices, Matrix


class Data(NamedTuple):
    """A data set before scaling, and its split."""

    X: Matrix
    y: np.ndarray
    train: Indices
    test: Indices
    scaling: str
    protocol: str


class Fold(NamedTuple):
    """Rows of one fold; X is scaled for it."""

    X: Matrix
    y: np.ndarray
    train: Indices
    validation: Indices
    test: Indices


@lru_cache(maxsize=2)
def read(dataset: str, protocol: str, seed: int) -> Data:
    """Load or simulate, and split."""
    X, y = load(dataset, random_state=seed, return_X_y=True)
    entry = TABLE_1[dataset]
    n = len(y)
    if protocol == "paper":
        train, test = np.arange(n)[: entry.n_train], np.arange(n)[entry.n_train :]
    else:
        rows = train_test_split(np.arange(n), train_size=entry.n_train, stratify=y, random_state=seed)
        train, test = map(np.sort, rows)
    return Data(X, y, train, test, entry.scaling, protocol)


def scale(X: Matrix, by: Matrix, scaling: str) -> Matrix:
    """X by the mean and spread, or by the range, of the rows `by`; a constant feature becomes 0."""
    if scaling == "none":
        return X
    if scaling == "zscore":
        shift, size = by.mean(axis=0), by.std(axis=0)
    else:
        shift, size = by.min(axis=0), by.max(axis=0) - by.min(axis=0)
    return (X - shift) / np.where(size > 0, size, 1.0)


def whole(data: Data) -> Fold:
    """All of the training set, nothing to validate on."""
    return _fold(data, data.train, data.train[:0])


def folds(data: Data, n_folds: int, seed: int) -> list[tuple[Indices, Indices]]:
    """The rows to fit to and to validate on, fold by fold."""
    if data.protocol == "paper":
        splits = KFold(n_folds).split(data.train)
    else:
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        splits = splitter.split(data.train, data.y[data.train])
    return [(data.train[fit], data.train[validate]) for fit, validate in splits]


def fold(data: Data, n_folds: int, seed: int, number: int) -> Fold:
    return _fold(data, *folds(data, n_folds, seed)[number])


def _fold(data: Data, train: Indices, validation: Indices) -> Fold:
    by = data.X if data.protocol == "paper" else data.X[train]
    return Fold(scale(data.X, by, data.scaling), data.y, train, validation, data.test)
