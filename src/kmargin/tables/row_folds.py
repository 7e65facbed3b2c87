"""How the rows of a table are dealt into folds."""

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from kmargin.errors import InputError, count
from kmargin.samples.array import ArraySamples
from kmargin.selection import Fold, make_folds
from kmargin.tables.prepare import Dataset
from kmargin.types import Indices


def count_classes(dataset: Dataset, samples: ArraySamples) -> Indices:
    """The rows of each class, or where rows stay together the groups that have some of it."""
    codes, groups = samples.codes, dataset.groups
    if groups is None:
        return np.bincount(codes)
    return np.array([len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)])


def count_folds(
    dataset: Dataset, samples: ArraySamples, counts: Indices, asked: int
) -> tuple[int, list[str]]:
    """As many as asked for, or as the smallest class has rows or groups; and what is to be said of that."""
    if asked < 2:
        raise InputError(f"--cv {asked} does not define folds. Use 2 or more.")
    thing = "group" if dataset.grouped_by else "row" if dataset.groups is None else "different row"
    smallest = samples.classes[counts.argmin()].item()
    n_folds = min(asked, int(counts.min()))
    if n_folds == 1:
        raise InputError(
            f"Class {smallest!r} has only one {thing}, but cross-validation needs at least two. Give more "
            f"{thing}s of that class, or remove it."
        )
    if n_folds == asked:
        return n_folds, []
    return n_folds, [f"Class {smallest!r} has {count(n_folds, thing)}: {n_folds} folds instead of {asked}."]


def deal_rows(dataset: Dataset, samples: ArraySamples, n_folds: int, seed: int) -> list[Fold]:
    """As many rows of each class in each fold, those of a group together."""
    kind = StratifiedKFold if dataset.groups is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    try:
        return make_folds(splitter, samples, len(dataset.y), dataset.X, dataset.y, dataset.groups)
    except ValueError as error:
        raise InputError(
            f"Rows that stay together leave a fold without a class ({str(error).split('. ')[0]}). "
            f"Use fewer folds than {n_folds} with --cv, or another --seed."
        ) from error
