"""Scores of machines on the rows of folds: sums over blocks, from which any score of predictions follows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.view import Part
from kmargin.multiclass import choose_classes, combine_decisions
from kmargin.types import Indices, Matrix


class Trial(NamedTuple):
    """Machines to be tried on the rows of a fold."""

    part: Part
    coefs: Matrix  # (n_models, n_machines, n_features)
    intercepts: Matrix  # (n_models, n_machines)


def count_rows(block: Block, parts: Sequence[Part], n_classes: int) -> Indices:
    """The rows with weight that each part has of each class."""
    weighty = block.repeats > 0
    return np.array(
        [
            np.bincount(block.codes[weighty & part.rows(block.number, block.codes)], minlength=n_classes)
            for part in parts
        ]
    )


def confuse(block: Block, trials: Sequence[Trial], n_classes: int, multi_class: str) -> Matrix:
    """For each trial and model the weight of the rows of one class that were taken for another."""
    return np.stack([_confuse(block, trial, n_classes, multi_class) for trial in trials])


def _confuse(block: Block, trial: Trial, n_classes: int, multi_class: str) -> Matrix:
    rows = np.flatnonzero(trial.part.rows(block.number, block.codes) & (block.repeats > 0))
    X, codes, repeats = block.X[rows], block.codes[rows].astype(np.int64), block.repeats[rows]
    found = np.zeros((len(trial.coefs), n_classes * n_classes))
    for model, (coef, intercept) in enumerate(zip(trial.coefs, trial.intercepts, strict=True)):
        scores = combine_decisions(X @ coef.T + intercept, n_classes, multi_class)
        predicted = choose_classes(scores, np.arange(n_classes))
        found[model] = np.bincount(n_classes * codes + predicted, repeats, n_classes * n_classes)
    return found.reshape(-1, n_classes, n_classes)
