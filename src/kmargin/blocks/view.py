"""A two-class machine's view of the data: which rows, with which labels and weights, which columns."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space, space_of
from kmargin.types import Flags, Indices, Vector

# So many numbers of X are made float64, or centred, or squared, at a time: what the caches of a processor
# hold, or what keeps a GPU busy.
TILE, GPU_TILE = 2**20, 2**24


class Part(NamedTuple):
    """The rows of some folds. Rows are dealt to the folds class by class within each block, or blocks as
    a whole.
    """

    n_folds: int
    fold: int
    inside: bool  # the rows of this fold, or all others
    seed: int = 0
    whole_blocks: bool = False

    def rows(self, number: int, codes: Vector) -> Flags:
        """Which rows of a block belong to this part."""
        if self.whole_blocks:
            return np.full(len(codes), (number % self.n_folds == self.fold) == self.inside)
        order = np.random.default_rng([self.seed, number]).permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        folds = np.empty(len(codes), np.int64)
        # where a block begins to deal is its own, so that small classes are not all dealt to fold 0
        folds[order] = (np.arange(len(codes)) + number) % self.n_folds
        return (folds == self.fold) == self.inside


class View(NamedTuple):
    """What a machine sees of every block."""

    positive: int  # the class with label 1
    negative: int | None  # the class with label -1; None for all others
    class_weight: Vector
    part: Part | None = None
    columns: Indices | None = None  # None for all
    center: Vector | None = None  # taken off each column
    scale: Vector | None = None  # by which it is then divided


class Shown(NamedTuple):
    """A block's rows as a view shows them; those it does not show have weight 0."""

    space: Space
    X: Any
    y: Any  # -1 or 1
    weights: Any


def label(block: Block, view: View) -> tuple[Space, Any, Any]:
    """Labels and weights, for which X need not be read."""
    space = space_of(block.codes)
    xp, codes = space.xp, block.codes
    weights = xp.take(space.put(view.class_weight), codes, axis=0) * block.repeats
    nothing = xp.zeros_like(weights)
    if view.negative is not None:
        weights = xp.where((codes == view.positive) | (codes == view.negative), weights, nothing)
    if view.part is not None:
        weights = xp.where(space.put(view.part.rows(block.number, space.bring(codes))), weights, nothing)
    y = xp.where(codes == view.positive, nothing + 1.0, nothing - 1.0)
    return space, y, weights


def weigh(block: Block, view: View) -> Shown:
    """Labels and weights, X as it is."""
    space, y, weights = label(block, view)
    return Shown(space, block.X, y, weights)


def tiles(shown: Shown, view: View) -> Iterator[Shown]:
    """The rows, some at a time, with all columns of a view: centred and scaled, as `wide` floats.

    What a question makes of X is thus never much larger than `TILE`, however tall X is.
    """
    for rows in row_slices(shown.space, *shown.X.shape):
        tile = Shown(shown.space, shown.X[rows, :], shown.y[rows], shown.weights[rows])
        yield tile._replace(X=show_columns(tile, view, None))


def row_slices(space: Space, n_rows: int, n_columns: int) -> Iterator[slice]:
    """Some rows after the other; one slice even of no rows."""
    height = max(1, (TILE if space.on_cpu else GPU_TILE) // max(n_columns, 1))
    for start in range(0, max(n_rows, 1), height):
        yield slice(start, min(start + height, n_rows))


def show_columns(shown: Shown, view: View, columns: Indices | None) -> Any:
    """Some of the columns that a view shows; None for all of them. Not a copy if they are as in X."""
    space, X = shown.space, shown.X
    wanted = view.columns
    if columns is not None:
        wanted = columns if wanted is None else wanted[columns]
    if wanted is not None:
        X = space.xp.take(X, space.put(wanted), axis=1)
    X = space.floats(X)
    if view.center is not None:
        X = X - space.put(view.center if columns is None else view.center[columns])
    if view.scale is not None:
        X = X / space.put(view.scale if columns is None else view.scale[columns])
    return X
