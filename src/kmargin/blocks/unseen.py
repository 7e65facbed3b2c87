"""What machines say of the rows of a block that they have not seen."""

from collections.abc import Sequence

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import space_of
from kmargin.blocks.view import Part
from kmargin.calibration_sums import Pieces, UnseenRows, make_ready
from kmargin.types import Indices, Matrix, Tensor


def decide_unseen(
    block: Block,
    parts: Sequence[Part],
    columns: Indices,
    coefs: Tensor,
    intercepts: Matrix,
    n_classes: int,
    multi_class: str,
) -> Pieces:
    """Decision values of the rows of several parts, each part by machines of its own.

    `coefs` are those of some columns, for each part and machine.
    """
    space = space_of(block.codes)
    codes, repeats = space.bring(block.codes), space.bring(block.repeats)
    X = space.bring(space.xp.take(block.X, space.put(columns), axis=1))
    decisions = np.empty((len(codes), coefs.shape[1]))
    tested = np.zeros(len(codes), bool)
    for part, coef, intercept in zip(parts, coefs, intercepts, strict=True):
        rows = part.rows(block.number, codes) & (repeats > 0)
        decisions[rows] = X[rows] @ coef.T + intercept
        tested |= rows
    unseen = UnseenRows(decisions[tested], codes[tested], repeats[tested])
    return make_ready(unseen, n_classes, multi_class)
