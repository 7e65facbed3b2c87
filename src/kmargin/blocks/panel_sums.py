"""A block's part of a panel of columns, and the sums over its rows that a search asks for.

As in `sums`, each question is a pure function of one block, and weights are divided by their total.
"""

from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space, space_of
from kmargin.blocks.view import Shown, View, label, row_slices, show_columns
from kmargin.losses import squared_hinge
from kmargin.types import Indices, Matrix, Vector


class PanelBlock(NamedTuple):
    """A block's part of a panel (see `solvers.panel`), without the rows of weight 0."""

    values: Any  # (q + 2, n_rows)
    tags: Any  # a random number per row: their sum over the active rows tells whether these changed


class Answer(NamedTuple):
    """What the rows say of a point: sums over all blocks."""

    loss: float  # halved
    H: Matrix  # the Gram matrix of the columns asked for, over the active rows
    z: Vector  # their products with the target
    tag: tuple[float, ...]  # equal for equal sets of active rows


def make_panel(
    block: Block, view: View, total: float, fit_intercept: bool, columns: Indices, size: int
) -> PanelBlock:
    """Room for `size` columns; those at places without a column (-1) are 0."""
    space, y, weights = label(block, view)
    xp = space.xp
    kept = xp.nonzero(weights > 0)[0]
    everything = kept.shape[0] == y.shape[0]
    y, weights = (array if everything else xp.take(array, kept, axis=0) for array in (y, weights))
    c = xp.sqrt(weights / total)
    t = y * c
    values = space.zeros((size + 2, c.shape[0]))
    end = 1 + int(np.flatnonzero(columns >= 0).max(initial=-1))  # beyond it all places are empty
    if end:  # else X need not be read
        X = block.X
        for rows in row_slices(space, c.shape[0], X.shape[1]):
            tile = Shown(space, X[rows, :] if everything else xp.take(X, kept[rows], axis=0), y, weights)
            filled = show_columns(tile, view, np.maximum(columns[:end], 0))
            values[:end, rows] = filled.T * t[rows]
    for place in np.flatnonzero(columns[:end] < 0):
        values[int(place), :] = 0.0
    if fit_intercept:
        values[size, :] = t
    values[size + 1, :] = c
    tags = np.random.default_rng([1, block.number]).random(c.shape[0])
    return PanelBlock(values, space.put(tags))


def evaluate(panel: PanelBlock, idx: Indices, u: Vector) -> Answer:
    """The loss at u and the quadratic that holds there."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    resid = panel.values[-1, :] - space.put(u) @ columns
    H, z = _gram(space, columns, panel.values[-1, :], resid)
    return Answer(squared_hinge.total_value(resid, xp=space.xp), H, z, _tag(space, panel, resid))


def full_gram(panel: PanelBlock, idx: Indices | None, u: Vector | None) -> tuple[Matrix, tuple[float, ...]]:
    """The Gram matrix of the whole panel over the rows active at u, or over all of them."""
    space = space_of(panel.values)
    if idx is None or u is None:
        values, resid = panel.values, panel.values[-1, :]  # positive everywhere: c > 0
    else:
        resid = panel.values[-1, :] - space.put(u) @ _rows_of(space, panel.values, idx)
        values = space.xp.take(panel.values, space.xp.nonzero(squared_hinge.is_active(resid))[0], axis=1)
    return space.bring(values @ values.T), _tag(space, panel, resid)


def slope_along(panel: PanelBlock, idx: Indices, u: Vector, d: Vector, t: float) -> tuple[float, float]:
    """Slope and curvature of the loss at u + t d."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    delta = space.put(d) @ columns
    resid = panel.values[-1, :] - space.put(u) @ columns - float(t) * delta
    moving = space.xp.where(squared_hinge.is_active(resid), delta, space.xp.zeros_like(delta))
    return -float(delta @ squared_hinge.slopes(resid, space.xp)), float(moving @ moving)


def pulls_and_bends(panel: PanelBlock, idx: Indices, u: Vector) -> tuple[Vector, Vector]:
    """Products of each column with the slopes at u, and its sum of squares over the active rows."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    resid = panel.values[-1, :] - space.put(u) @ columns
    active = space.xp.where(squared_hinge.is_active(resid), columns, space.xp.zeros_like(columns))
    short = squared_hinge.slopes(resid, space.xp)
    return space.bring(columns @ short), space.bring(space.xp.sum(active * active, axis=1))


def column_squares(panel: PanelBlock, idx: Indices) -> Vector:
    """The sum of squares of each column."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    return space.bring(space.xp.sum(columns * columns, axis=1))


def triangle(panel: PanelBlock, idx: Indices, u: Vector, nearly: float = 0.0) -> Matrix:
    """The triangle R of a QR factorisation of the active rows, their residuals beside them.

    Rows that miss being active by less than `nearly` are among them.

    Least squares with R have the solution of those with all rows, and nothing was squared.
    """
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    resid = panel.values[-1, :] - space.put(u) @ columns
    active = space.xp.nonzero(squared_hinge.is_active(resid + nearly))[0]
    if active.shape[0] == 0:
        return np.zeros((0, len(idx) + 1))
    beside = space.xp.concat([columns, resid[None, :]], axis=0)
    return space.bring(space.xp.linalg.qr(space.xp.take(beside, active, axis=1).T)[1])


def _rows_of(space: Space, values: Any, idx: Indices) -> Any:
    return space.xp.take(values, space.put(idx), axis=0)


def _gram(space: Space, columns: Any, target: Any, resid: Any) -> tuple[Matrix, Vector]:
    active = space.xp.nonzero(squared_hinge.is_active(resid))[0]
    columns = space.xp.take(columns, active, axis=1)
    return space.bring(columns @ columns.T), space.bring(columns @ space.xp.take(target, active, axis=0))


def _tag(space: Space, panel: PanelBlock, resid: Any) -> tuple[float, ...]:
    """The sum of the tags of the active rows."""
    tags = space.xp.where(squared_hinge.is_active(resid), panel.tags, space.xp.zeros_like(panel.tags))
    return (float(space.xp.sum(tags)),)
