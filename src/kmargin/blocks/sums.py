"""Sums over the rows of a block: the questions of a solver, each a pure function of one block.

Weights are divided by their total, so that sums over all blocks are means.
"""

from collections.abc import Callable, Iterable
from functools import reduce, wraps
from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space, space_of
from kmargin.blocks.view import Shown, View, label, row_slices, show_columns, tiles, weigh
from kmargin.losses import squared_hinge
from kmargin.types import Indices, Matrix, Vector


def add_up(answers: Iterable[Any]) -> Any:
    """The sum of several answers, in their order; of tuples entry by entry.

    Added as they come: small results that wait between large work arrays would break up the memory.
    """
    return reduce(_add, answers)


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_add(*pair) for pair in zip(one, other, strict=True))
    return one + other


def by_tiles(question: Callable[..., Any]) -> Callable[..., Any]:
    """A sum over the rows of a block from one over those of a tile."""

    @wraps(question)
    def ask(block: Block, view: View, *args: Any) -> Any:
        return add_up(question(tile, *args) for tile in tiles(weigh(block, view), view))

    return ask


def count(block: Block, view: View) -> tuple[int, float]:
    """Rows that a view shows, and their total weight."""
    space, _, weights = label(block, view)
    return count_true(space, weights > 0), float(space.xp.sum(weights))


class BlockMoments(NamedTuple):
    """Of the rows of one block by themselves, so that X is read once for all of these."""

    share: float  # of the total weight
    mean: Vector  # of each column
    mean_label: float
    variance: Vector  # around the block's own mean
    covariance: Vector  # with the labels


def moments(block: Block, view: View, total: float) -> BlockMoments:
    """The moments of a block."""
    shown = weigh(block, view)
    mass = float(shown.space.xp.sum(shown.weights))
    scaled = shown._replace(weights=shown.weights / (mass or 1.0))
    mean, mean_label = add_up(_first_moments(tile) for tile in tiles(scaled, view))
    around = add_up(_second_moments(tile, mean, mean_label) for tile in tiles(scaled, view))
    return BlockMoments(mass / total, mean, mean_label, *around)


def _first_moments(tile: Shown) -> tuple[Vector, float]:
    space, X, y, weights = tile
    return space.bring(weights @ X), float(weights @ y)


def _second_moments(tile: Shown, mean: Vector, mean_label: float) -> tuple[Vector, Vector]:
    space, X, y, weights = tile
    with np.errstate(over="ignore", invalid="ignore"):  # columns that do overflow are then measured anew
        X = X - space.put(mean)
        return space.bring(weights @ (X * X)), space.bring((weights * (y - mean_label)) @ X)


@by_tiles
def loss_and_gradient(tile: Shown, total: float, beta: Vector) -> tuple[float, Vector, float]:
    """The mean squared hinge, halved; its gradient; and the derivative for the intercept.

    The last of beta is the intercept.
    """
    space, X, y, weights = tile
    weights = weights / total
    decision = X @ space.put(beta[:-1]) + float(beta[-1])
    loss = squared_hinge.total_value(squared_hinge.residual_of(decision, y), weights, space.xp)
    pull = squared_hinge.derivatives(decision, y, weights, space.xp)
    return loss, space.bring(pull @ X), float(space.xp.sum(pull))


@by_tiles
def bend(tile: Shown, total: float, direction: Vector) -> float:
    """The weighted mean of the squared decision values of a direction."""
    space, X, _, weights = tile
    decision = X @ space.put(direction[:-1]) + float(direction[-1])
    return float(((weights / total) * decision) @ decision)


@by_tiles
def slopes(tile: Shown, total: float, columns: Indices, u: Vector) -> tuple[Vector, int]:
    """X'(t slope) for a support and its coefficients; and how many rows are active.

    As `panel` has it: t = y sqrt(weight), resid = sqrt(weight) (1 - y decision).
    """
    space, X, y, weights = tile
    coef = np.zeros(X.shape[1])  # of all columns: to gather some takes longer than to multiply all
    coef[columns] = u[:-1]
    decision = X @ space.put(coef) + float(u[-1])
    resid = squared_hinge.residual_of(decision, y)
    short = squared_hinge.slopes(resid, space.xp)
    n_active = count_true(space, squared_hinge.is_active(resid) & (weights > 0))
    return space.bring(((weights / total) * y * short) @ X), n_active


def largest(block: Block, view: View) -> Vector:
    """The largest magnitude in each column."""
    return reduce(np.maximum, (_largest(tile) for tile in tiles(weigh(block, view), view)))


def _largest(tile: Shown) -> Vector:
    space, X, _, weights = tile
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    magnitudes = space.xp.where((weights > 0)[:, None], space.xp.abs(X), space.xp.zeros_like(X))
    return space.bring(space.xp.max(magnitudes, axis=0))


@by_tiles
def squares(tile: Shown, scale: Vector) -> Vector:
    """Sums of squares of each column in units of `scale`, so that none overflows."""
    space, X, _, weights = tile
    X = X / space.put(scale)
    squared = space.xp.where((weights > 0)[:, None], X * X, space.xp.zeros_like(X))
    return space.bring(space.xp.sum(squared, axis=0))


def fingerprints(block: Block, view: View, seed: int) -> Vector:
    """Products of each column with random numbers: equal columns have equal ones."""
    space, _, _, weights = shown = weigh(block, view)
    vector = space.put(np.random.default_rng([seed, block.number]).standard_normal(weights.shape[0]))
    shown = shown._replace(weights=space.xp.where(weights > 0, vector, space.xp.zeros_like(vector)))
    return add_up(space.bring(tile.weights @ tile.X) for tile in tiles(shown, view))


def equal_to(block: Block, view: View, columns: Indices, firsts: Indices) -> Vector:
    """Whether each of some columns equals the one beside it in `firsts`, in this block."""
    shown = weigh(block, view)
    space, _, _, weights = shown
    one, other = (show_columns(shown, view, which) for which in (columns, firsts))
    same = (one == other) | ~(weights > 0)[:, None]
    return space.bring(space.xp.all(same, axis=0))


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


def count_true(space: Space, flags: Any) -> int:
    return int(space.xp.sum(space.xp.astype(flags, space.xp.int64)))


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


class FactorBlock(NamedTuple):
    """``diag(sqrt(weights)) [X 1] = U diag(s) V'`` of a block that has all the rows."""

    U: Any
    s: Any
    Vt: Any
    rows: Any  # the left hand side
    root_weights: Any
    y: Any


def factorize(block: Block, view: View, mass: float, fit_intercept: bool) -> FactorBlock:
    """The thin SVD with weights divided by `mass`; singular values within rounding of 0 are left out."""
    shown = weigh(block, view)
    space, _, y, weights = shown
    xp = space.xp
    root_weights = xp.sqrt(weights / mass)
    rows = show_columns(shown, view, None) * root_weights[:, None]
    if fit_intercept:
        rows = xp.concat([rows, root_weights[:, None]], axis=1)
    U, s, Vt = xp.linalg.svd(rows, full_matrices=False)
    noise = float(s[0]) * max(rows.shape) * float(np.finfo(space.bring(s).dtype).eps)
    rank = count_true(space, s > noise)
    return FactorBlock(U[:, :rank], s[:rank], Vt[:rank, :], rows, root_weights, y)


def singular_values(factors: FactorBlock) -> Vector:
    return space_of(factors.s).bring(factors.s)


def pull(factors: FactorBlock, beta: Vector) -> Vector:
    """U'z, z being the shifted response, weighted."""
    space = space_of(factors.U)
    z = squared_hinge.shifted_response(
        factors.rows @ space.put(beta), factors.y, factors.root_weights, space.xp
    )
    return space.bring(z @ factors.U)


def coordinates(factors: FactorBlock, beta: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(factors.Vt @ space.put(beta))


def combine(factors: FactorBlock, coordinates: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(space.put(coordinates) @ factors.Vt)
