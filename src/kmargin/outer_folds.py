"""The outer folds of a nested cross-validation, and labels permuted among them."""

from typing import Any

import numpy as np

from kmargin import validate
from kmargin.errors import count
from kmargin.selection import Fold, make_splitters


def make_outer_folds(X: Any, y: np.ndarray, groups: Any, cv: Any, repeats: int, seed: int) -> list[Fold]:
    """Raises ValueError where a class, or the groups, are too few for the folds."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        validate.check_count("cv", cv, "outer folds", least=2)
        _check_enough(y, groups, int(cv))
    folds = []
    for splitter in make_splitters(cv, repeats, seed, y, groups):
        folds += [Fold(train, test) for train, test in splitter.split(X, y, groups)]
    classes = np.unique(y)
    for number, fold in enumerate(folds):
        missing = classes[~np.isin(classes, y[fold.train])].tolist()
        if missing:
            raise ValueError(
                f"Outer fold {number} has no training row of class {missing[0]!r}. "
                "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold."
            )
    return folds


def _check_enough(y: np.ndarray, groups: Any, n_folds: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < n_folds:
        raise ValueError(
            f"Class {classes[counts.argmin()].item()!r} has {counts.min()} rows, fewer than the {n_folds} "
            f"outer folds. Use cv={max(2, int(counts.min()))}"
            + (", or give more rows of that class." if counts.min() >= 2 else " and more rows of that class.")
        )
    if groups is not None and len(np.unique(groups)) < n_folds:
        n_groups = len(np.unique(groups))
        use = f"Use at most {n_groups} folds." if n_groups > 1 else "Give rows of more groups, or no groups."
        raise ValueError(
            f"The rows are in {count(n_groups, 'group')}, which cannot be split into {n_folds} folds. {use}"
        )


def permute_labels(
    y: np.ndarray, groups: Any, rng: np.random.RandomState | np.random.Generator
) -> np.ndarray:
    """Where groups have one label each, groups are permuted, else rows within them."""
    if groups is None:
        return rng.permutation(y)
    _, first, codes = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    if np.array_equal(y[first][codes], y):
        return np.asarray(rng.permutation(y[first])[codes])
    permuted = y.copy()
    for code in range(len(first)):
        permuted[codes == code] = rng.permutation(y[codes == code])
    return permuted
