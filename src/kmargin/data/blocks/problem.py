"""Binary problems whose rows are in blocks: losses, gradients and moments are sums over the blocks.

Results of blocks are added in the order of the blocks, so sums do not depend on which block is ready first.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Vector, space_of
from kmargin.core.design import SEED, Columns, Moments, candidate_groups
from kmargin.core.problem import BinaryProblem
from kmargin.data.blocks import Block, Blocks, sums
from kmargin.data.blocks.sums import View, add_up


class HeldLocally:
    """Objects in this process, one for each block of rows, such as the blocks themselves."""

    def __init__(self, objects: Sequence[Any], pool: Executor | None = None) -> None:
        self.objects, self.pool = objects, pool

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(object, *args)`` for each object, computed in the threads of `pool`, if any."""
        apply = map if self.pool is None else self.pool.map
        return list(apply(lambda held: function(held, *args), self.objects))


class LocalBlocks(HeldLocally):
    """Blocks of rows in the memory of this process, or on a device, such as a GPU, that it uses."""

    n_askers = 1

    def __init__(self, blocks: Sequence[Block], pool: Executor | None = None) -> None:
        super().__init__(blocks, pool)
        self.n_blocks = len(blocks)
        space = space_of(blocks[0].X)
        self.dtype = np.dtype("float32" if blocks[0].X.dtype == space.xp.float32 else "float64")

    @property
    def shape(self) -> tuple[int, int]:
        return sum(block.X.shape[0] for block in self.objects), self.objects[0].X.shape[1]

    def hold(self, function: Callable[..., Any], *args: Any) -> HeldLocally:
        return HeldLocally(self.ask(function, *args), self.pool)

    def encode(self, classes: np.ndarray) -> None:
        """Replace each label in all blocks by its position in `classes`."""
        self.objects = [block._replace(codes=sums.to_codes(block.codes, classes)) for block in self.objects]

    def stop(self) -> None:
        """Do nothing, because `ask` and `hold` leave nothing running in the background."""


class BlockDesign(Columns):
    """The matrix X of a binary problem whose rows are in blocks; methods add up the results of all blocks."""

    def __init__(self, blocks: Blocks, view: View, fit_intercept: bool = True) -> None:
        self.blocks = blocks
        self.view = view
        n_features = blocks.shape[1] if view.columns is None else len(view.columns)
        n_samples, self.total = self._sum(sums.count)
        super().__init__((n_samples, n_features), fit_intercept)
        self._last: tuple[bytes, float, Vector] | None = None

    def _sum(self, function: Callable[..., Any], *args: Any) -> Any:
        return add_up(self.blocks.ask(function, self.view, *args))

    def _mean(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._sum(function, self.total, *args)

    def loss_and_gradient(self, beta: Vector) -> tuple[float, Vector]:
        """Return the mean loss at beta, without the ridge, and its gradient; the latest result is cached."""
        key = beta.tobytes()
        if self._last is None or self._last[0] != key:
            loss, gradient, pull = self._mean(sums.loss_and_gradient, self._with_intercept(beta))
            gradient = np.append(gradient, pull) if self.fit_intercept else gradient
            self._last = key, loss, gradient
        return self._last[1], self._last[2].copy()

    def curvature_along(self, direction: Vector) -> float:
        return float(self._mean(sums.curvature_along, self._with_intercept(direction)))

    def slopes(self, columns: Indices, u: Vector) -> tuple[Vector, int]:
        """The negative gradient of the mean loss, for all columns, and the number of rows of positive loss.

        Both are taken where `columns` have the coefficients u[:-1], all others 0, and the intercept is u[-1].
        """
        slopes, n_active = self._mean(sums.slopes, columns, u)
        return slopes, int(n_active)

    @cached_property
    def means(self) -> tuple[Vector, float]:
        """The weighted mean of each column, and that of the labels, which are -1 or 1."""
        return self._mean(sums.first_moments)

    @cached_property
    def moments(self) -> Moments:
        """Weighted mean and variance of each column, and its covariance with the labels."""
        return Moments(self.means[0], *self._mean(sums.second_moments, *self.means))

    def panel(self, columns: Indices, size: int) -> Any:
        """Copy `columns` of each block into a dense array of `size` columns, stored where the block is."""
        return self.blocks.hold(sums.make_panel, self.view, self.total, self.fit_intercept, columns, size)

    @cached_property
    def repeated_columns(self) -> Indices:
        given = self.view._replace(center=None, scale=None)  # columns as they were before standardising
        groups = candidate_groups(add_up(self.blocks.ask(sums.fingerprints, given, SEED)))
        if not groups:
            return np.empty(0, np.intp)
        later = np.concatenate([group[1:] for group in groups])
        firsts = np.concatenate([np.full(len(group) - 1, group[0]) for group in groups])
        equal = np.all(self.blocks.ask(sums.equal_to, given, later, firsts), axis=0)
        return np.sort(later[equal])

    def take(self, columns: Indices) -> "BlockDesign":
        """Return the design of X[:, columns], without copying X."""
        view = self.view
        view = view._replace(
            columns=columns if view.columns is None else view.columns[columns],
            center=None if view.center is None else view.center[columns],
            scale=None if view.scale is None else view.scale[columns],
        )
        return BlockDesign(self.blocks, view, self.fit_intercept)

    def standardized(self, mean: Vector, spread: Vector) -> "BlockDesign":
        view = self.view
        mean = mean if view.scale is None else mean * view.scale
        mean = mean if view.center is None else mean + view.center
        spread = spread if view.scale is None else spread * view.scale
        view = view._replace(center=mean if mean.any() else None, scale=spread)
        return BlockDesign(self.blocks, view, self.fit_intercept)

    def largest(self) -> Vector:
        return np.max(self.blocks.ask(sums.largest, self.view), axis=0)

    def _with_intercept(self, beta: Vector) -> Vector:
        return beta if self.fit_intercept else np.append(beta, 0.0)


@dataclass(frozen=True)
class BlockProblem(BinaryProblem):
    """A binary problem whose rows, labels and weights are in blocks."""

    design: BlockDesign

    def mean_loss(self, beta: Vector) -> float:
        return self.design.loss_and_gradient(beta)[0]

    def loss_gradient(self, beta: Vector) -> Vector:
        return self.design.loss_and_gradient(beta)[1]

    def curvature_along(self, direction: Vector) -> float:
        return self.design.curvature_along(direction)

    def mean_label(self) -> float:
        return self.design.means[1]

    def moments(self) -> Moments:
        return self.design.moments


def block_problem(blocks: Blocks, view: View, lam: float, fit_intercept: bool = True) -> BlockProblem:
    """Make a binary problem of data in blocks; `view` says which rows, labels and columns it uses."""
    return BlockProblem(BlockDesign(blocks, view, fit_intercept), lam)
