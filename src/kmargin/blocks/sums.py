"""Sums over the rows of a block: the questions of a solver, each a pure function of one block.

Weights are divided by their total, so that sums over all blocks are means.
"""

from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space, space_of
from kmargin.blocks.view import View, show, show_columns, weigh
from kmargin.types import Indices, Matrix, Vector


def count(block: Block, view: View) -> tuple[int, float]:
    """Rows that a view shows, and their total weight."""
    space, _, _, weights = weigh(block, view)
    weights = space.bring(weights)
    return int(np.count_nonzero(weights)), float(weights.sum())


def first_moments(block: Block, view: View, total: float) -> tuple[Vector, float]:
    """The weighted mean of each column, and of the labels."""
    space, X, y, weights = show(block, view)
    weights = weights / total
    return space.bring(weights @ X), float(weights @ y)


def second_moments(
    block: Block, view: View, total: float, mean: Vector, mean_label: float
) -> tuple[Vector, Vector]:
    """Of each column the variance around a mean, and the covariance with the labels."""
    space, X, y, weights = show(block, view)
    weights = weights / total
    X = X - space.put(mean)
    return space.bring(weights @ (X * X)), space.bring((weights * (y - mean_label)) @ X)


def loss_and_gradient(block: Block, view: View, total: float, beta: Vector) -> tuple[float, Vector, float]:
    """The mean squared hinge, halved; its gradient; and the derivative for the intercept.

    The last of beta is the intercept.
    """
    space, X, y, weights = show(block, view)
    short = shortfall(space, 1.0 - y * (X @ space.put(beta[:-1]) + float(beta[-1])))
    pull = -(weights / total) * y * short
    loss = 0.5 * float(space.xp.sum((weights / total) * short * short))
    return loss, space.bring(pull @ X), float(space.xp.sum(pull))


def bend(block: Block, view: View, total: float, direction: Vector) -> float:
    """The weighted mean of the squared decision values of a direction."""
    space, X, _, weights = show(block, view)
    decision = X @ space.put(direction[:-1]) + float(direction[-1])
    return float(space.xp.sum((weights / total) * decision * decision))


def slopes(block: Block, view: View, total: float, columns: Indices, u: Vector) -> tuple[Vector, int]:
    """X'(t max(0, resid)) for a support and its coefficients; and how many rows are active.

    As `panel` has it: t = y sqrt(weight), resid = sqrt(weight) (1 - y decision).
    """
    shown = weigh(block, view)
    space, _, y, weights = shown
    decision = show_columns(shown, view, columns) @ space.put(u[:-1]) + float(u[-1])
    short = shortfall(space, 1.0 - y * decision)
    n_active = int(space.xp.sum(space.xp.astype((short > 0) & (weights > 0), space.xp.float64)))
    return space.bring(((weights / total) * y * short) @ show_columns(shown, view, None)), n_active


def largest(block: Block, view: View) -> Vector:
    """The largest magnitude in each column."""
    space, X, _, weights = show(block, view)
    magnitudes = space.xp.where((weights > 0)[:, None], space.xp.abs(X), space.xp.zeros_like(X))
    return space.bring(space.xp.max(magnitudes, axis=0)) if X.shape[0] else np.zeros(X.shape[1])


def squares(block: Block, view: View, scale: Vector) -> Vector:
    """Sums of squares of each column in units of `scale`, so that none overflows."""
    space, X, _, weights = show(block, view)
    X = X / space.put(scale)
    squared = space.xp.where((weights > 0)[:, None], X * X, space.xp.zeros_like(X))
    return space.bring(space.xp.sum(squared, axis=0))


def fingerprints(block: Block, view: View, seed: int) -> Vector:
    """Products of each column with random numbers: equal columns have equal ones."""
    space, X, _, weights = show(block, view)
    vector = space.put(np.random.default_rng([seed, block.number]).standard_normal(X.shape[0]))
    return space.bring(space.xp.where(weights > 0, vector, space.xp.zeros_like(vector)) @ X)


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
    shown = weigh(block, view)
    space, xp = shown.space, shown.space.xp
    kept = xp.nonzero(shown.weights > 0)[0]
    if kept.shape[0] < shown.y.shape[0]:
        shown = shown._replace(
            X=xp.take(shown.X, kept, axis=0),
            y=xp.take(shown.y, kept, axis=0),
            weights=xp.take(shown.weights, kept, axis=0),
        )
    c = xp.sqrt(shown.weights / total)
    t = shown.y * c
    n_rows = c.shape[0]
    nothing = xp.zeros_like(c)
    given = columns[columns >= 0]
    filled = show_columns(shown, view, given) * t[:, None]
    rows = [nothing] * size
    for at, place in enumerate(np.flatnonzero(columns >= 0)):
        rows[int(place)] = filled[:, at]
    rows += [t if fit_intercept else nothing, c]
    tags = np.random.default_rng([1, block.number]).random(n_rows)
    return PanelBlock(xp.stack(rows), space.put(tags))


def evaluate(panel: PanelBlock, idx: Indices, u: Vector) -> Answer:
    """The loss at u and the quadratic that holds there."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    resid = panel.values[-1, :] - space.put(u) @ columns
    short = shortfall(space, resid)
    H, z = _gram(space, columns, panel.values[-1, :], resid)
    return Answer(0.5 * float(short @ short), H, z, _tag(space, panel, resid))


def full_gram(panel: PanelBlock, idx: Indices | None, u: Vector | None) -> tuple[Matrix, tuple[float, ...]]:
    """The Gram matrix of the whole panel over the rows active at u, or over all of them."""
    space = space_of(panel.values)
    if idx is None or u is None:
        resid = panel.values[-1, :]  # positive everywhere: c > 0
    else:
        resid = panel.values[-1, :] - space.put(u) @ _rows_of(space, panel.values, idx)
    active = space.xp.nonzero(resid > 0)[0]
    values = space.xp.take(panel.values, active, axis=1)
    return space.bring(values @ values.T), _tag(space, panel, resid)


def slope_along(panel: PanelBlock, idx: Indices, u: Vector, d: Vector, t: float) -> tuple[float, float]:
    """Slope and curvature of the loss at u + t d."""
    space = space_of(panel.values)
    columns = _rows_of(space, panel.values, idx)
    delta = space.put(d) @ columns
    short = shortfall(space, panel.values[-1, :] - space.put(u) @ columns - t * delta)
    moving = space.xp.where(short > 0, delta, space.xp.zeros_like(delta))
    return -float(delta @ short), float(moving @ moving)


def shortfall(space: Space, resid: Any) -> Any:
    """max(0, resid)."""
    return space.xp.where(resid > 0, resid, space.xp.zeros_like(resid))


def _rows_of(space: Space, values: Any, idx: Indices) -> Any:
    return space.xp.take(values, space.put(idx), axis=0)


def _gram(space: Space, columns: Any, target: Any, resid: Any) -> tuple[Matrix, Vector]:
    active = space.xp.nonzero(resid > 0)[0]
    columns = space.xp.take(columns, active, axis=1)
    return space.bring(columns @ columns.T), space.bring(columns @ space.xp.take(target, active, axis=0))


def _tag(space: Space, panel: PanelBlock, resid: Any) -> tuple[float, ...]:
    """The sum of the tags of the active rows."""
    return (float(space.xp.sum(space.xp.where(resid > 0, panel.tags, space.xp.zeros_like(panel.tags)))),)


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
    space, X, y, weights = show(block, view)
    xp = space.xp
    root_weights = xp.sqrt(weights / mass)
    rows = X * root_weights[:, None]
    if fit_intercept:
        rows = xp.concat([rows, root_weights[:, None]], axis=1)
    U, s, Vt = xp.linalg.svd(rows, full_matrices=False)
    noise = float(s[0]) * max(rows.shape) * float(np.finfo(np.float64).eps)
    rank = int(np.count_nonzero(space.bring(s) > noise))
    return FactorBlock(U[:, :rank], s[:rank], Vt[:rank, :], rows, root_weights, y)


def singular_values(factors: FactorBlock) -> Vector:
    return space_of(factors.s).bring(factors.s)


def pull(factors: FactorBlock, beta: Vector) -> Vector:
    """U'z; where a row is beyond its margin z is its decision value, else its label, both weighted."""
    space = space_of(factors.U)
    decision, target = factors.rows @ space.put(beta), factors.root_weights * factors.y
    content = factors.y * decision >= factors.root_weights
    return space.bring(space.xp.where(content, decision, target) @ factors.U)


def coordinates(factors: FactorBlock, beta: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(factors.Vt @ space.put(beta))


def combine(factors: FactorBlock, coordinates: Vector) -> Vector:
    space = space_of(factors.Vt)
    return space.bring(space.put(coordinates) @ factors.Vt)
