"""Sums over the rows of a block, as wide as X: questions of a solver, each a pure function of one block.

Weights are divided by their total, so that sums over all blocks are means.
"""

from collections.abc import Callable, Iterable
from functools import reduce, wraps
from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space
from kmargin.blocks.view import Shown, View, label, show_columns, tiles, weigh
from kmargin.losses import squared_hinge
from kmargin.types import Indices, Vector


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


def count_true(space: Space, flags: Any) -> int:
    return int(space.xp.sum(space.xp.astype(flags, space.xp.int64)))
