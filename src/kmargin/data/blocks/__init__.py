"""Interfaces for data in blocks of rows, which stay on a cluster's workers, on a GPU, or in this process.

`Blocks.ask` calls a function on every block, where the block is, and returns the results in block order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["Block", "Blocks", "Held"]


class Block(NamedTuple):
    """Some rows of X with their classes and sample weights, as arrays of one library on one device."""

    number: int  # the index of the block in the list of all blocks, from 0
    X: Any  # array of shape (n_rows, n_features), float64 or float32
    codes: Any  # the class of each row, as an index into the sorted classes (before `encode`: its label)
    repeats: Any  # the sample weight of each row; a row of weight 0 is not used


class Held(Protocol):
    """One object made from each block and kept where the block is, such as a copy of some of its columns."""

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(object, *args)`` for each object, in the order of the blocks."""


class Blocks(Held, Protocol):
    """All blocks of rows of a data set; a block may have no rows.

    Functions passed to `ask` and `hold` must be pure and picklable: they may run on the workers of a cluster,
    and if a worker is lost, they are called again on another worker.
    """

    n_blocks: int
    dtype: Any  # the NumPy dtype of X
    n_askers: int  # how many binary problems are fitted at once by default, each in a thread of its own

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows of all blocks together, and the number of columns."""

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        """Call ``function(block, *args)`` for each block; the result stays there until `Held` is deleted."""

    def stop(self) -> None:
        """Cancel calls of `ask` and `hold` that run in the background, and let later calls fail."""


def foreign_blocks(block: Any) -> str:
    """Return the error message for a dask X whose blocks are not NumPy arrays; `block` is one of them."""
    kind = f"{type(block).__module__.split('.')[0]}.{type(block).__name__}"
    return (
        f"X holds blocks of type {kind}, but a dask X has to hold NumPy arrays. Convert them, for example "
        "with X.map_blocks(lambda block: block.toarray()), or give X without dask."
    )
