"""Predictions for the rows of a block, counted."""

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import space_of
from kmargin.blocks.view import Part
from kmargin.multiclass import choose_classes, combine_decisions
from kmargin.types import Indices, Matrix


def class_totals(block: Block, part: Part, n_classes: int) -> Matrix:
    """Rows of each class outside a part, and inside it."""
    space = space_of(block.codes)
    codes, counted = space.bring(block.codes), space.bring(block.repeats) > 0
    inside = part.rows(block.number, codes)
    return np.array([np.bincount(codes[counted & rows], minlength=n_classes) for rows in (~inside, inside)])


def weight_sums(block: Block, part: Part, weighted: bool) -> Matrix:
    """Of the rows of a part: the largest weight; relative to it, the sums of weights and of their squares."""
    space = space_of(block.codes)
    codes, repeats = space.bring(block.codes), space.bring(block.repeats)
    rows = part.rows(block.number, codes) & (repeats > 0)
    weights = repeats[rows] if weighted else np.ones(np.count_nonzero(rows))
    largest = weights.max(initial=0.0)
    relative = weights / largest if largest > 0 else weights
    return np.array([largest, relative.sum(), relative @ relative])


def confusions(
    block: Block,
    part: Part,
    columns: Indices,
    coefs: Matrix,
    intercepts: Matrix,
    n_classes: int,
    multi_class: str,
    weighted: bool,
) -> Matrix:
    """For each model: how often each class (rows) was taken for each other (columns), in a part.

    `coefs` are those of some columns, for each model and machine.
    """
    space = space_of(block.codes)
    codes, repeats = space.bring(block.codes), space.bring(block.repeats)
    rows = np.flatnonzero((repeats > 0) & part.rows(block.number, codes))
    weights = repeats[rows] if weighted else np.ones(len(rows))
    X = space.xp.take(block.X, space.put(columns), axis=1)
    X = space.bring(space.xp.take(X, space.put(rows), axis=0))
    counts = np.zeros((len(coefs), n_classes, n_classes))
    for at, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        scores = combine_decisions(X @ coef.T + intercept, n_classes, multi_class)
        predicted = choose_classes(scores, np.arange(n_classes))
        np.add.at(counts[at], (codes[rows], predicted), weights)
    return counts
