"""One look at a block, by whoever has it. What is found is judged elsewhere."""

from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.types import Indices, Vector
from kmargin.weights import find_bad_weight


class Findings(NamedTuple):
    """What there is to know of one block."""

    shape: tuple[int, ...]  # of X
    n_labels: int
    n_weights: int
    unusable: tuple[str, int] | None  # what X has in which column that it must not have
    complaint: str  # about labels
    bad_weight: tuple[int, float] | None
    classes: np.ndarray
    counts: Indices  # rows of each class
    totals: Vector  # their sample weights
    fingerprint: Vector  # products of each column with random numbers: equal for equal columns


def examine(block: Block, seed: int) -> Findings:
    """Look at one block, its labels still as they were given."""
    number, X, y, weights = block.number, block.X, block.codes, block.repeats
    classes, complaint = _classes_of(y)
    counts, totals = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    fingerprint: Vector = np.zeros(0)
    if len(y) == len(weights) == len(X) and not complaint:
        codes = np.searchsorted(classes, y)
        counts += np.bincount(codes, minlength=len(classes))
        totals += np.bincount(codes, weights=weights, minlength=len(classes))
        numbers = np.random.default_rng([seed, number]).standard_normal(len(X))
        fingerprint = np.where(weights > 0, numbers, 0.0) @ X
    return Findings(
        X.shape,
        len(y),
        len(weights),
        _unusable(X),
        complaint,
        find_bad_weight(weights),
        classes,
        counts,
        totals,
        fingerprint,
    )


def _unusable(X: np.ndarray) -> tuple[str, int] | None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):  # as a rule, and then one pass without a copy is all
            return None
    columns = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(columns) == 0:
        return None
    column = int(columns[0])
    return "NaN" if np.isnan(X[:, column]).any() else "infinity", column


def _classes_of(y: np.ndarray) -> tuple[np.ndarray, str]:
    """The distinct labels, and what is wrong with them."""
    nothing = y[:0]
    if y.ndim != 1:
        return nothing, f"y should be a 1d array, got an array of {y.ndim} dimensions instead."
    if y.dtype.kind == "f" and np.isnan(y).any():
        return nothing, "y contains NaN. Leave such rows out, or give them a class."
    if y.dtype.kind == "O" and any(map(_is_missing, y)):
        return nothing, "y contains missing values. Leave such rows out, or give them a class."
    if y.dtype.kind == "f":
        between = y[y != np.round(y)]
        if len(between):
            return nothing, (
                f"Unknown label type: continuous. y holds {between[0]:g}, which is not a class. "
                "Give labels, or numbers rounded to whole ones."
            )
    try:
        return np.unique(y), ""
    except TypeError:
        return nothing, "y holds labels that cannot be put in order. Give labels of one kind."


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True  # pandas.NA, neither equal to itself nor unequal
