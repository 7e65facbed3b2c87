"""Rows that stay where they are: on the workers of a cluster, in files, on a device.

A block is a range of rows; `Blocks` asks every block one question and returns the answers in order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["Block", "Blocks", "Held"]


class Block(NamedTuple):
    """Some rows of the data, as arrays of one kind on one device."""

    number: int  # of the block, from 0
    X: Any  # (n_rows, n_features), float64 or float32
    codes: Any  # (n_rows,), integers: the class of each row
    repeats: Any  # (n_rows,), float64: sample weights; 0 leaves a row out


class Held(Protocol):
    """Something made of each block, kept beside it."""

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """``function(thing, *args)`` for what is held of each block, in the order of the blocks."""


class Blocks(Protocol):
    """All the blocks of a data set. Any may be empty of rows."""

    n_blocks: int
    shape: tuple[int, int]  # rows and columns of all of X
    dtype: Any  # NumPy's name for that of X
    n_askers: int  # how many machines are best fitted at once, each asking in its turn

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """``function(block, *args)`` of each block, in their order.

        The function is pure and can be pickled: a block whose machine is lost is asked again elsewhere.
        """

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        """The same, but the results stay where they were made, until nothing refers to them any more."""

    def fits(self, n_numbers: int) -> bool:
        """Whether so many numbers, over all blocks, can be held."""

    def shared_by(self, n_askers: int) -> "Blocks":
        """The same blocks for each of several machines: none may take all the room."""

    def stop(self) -> None:
        """Answer no more questions, not even those under way."""


def is_dask(*things: Any) -> bool:
    """Whether any of them is a dask collection."""
    return any(hasattr(type(thing), "__dask_graph__") for thing in things)


def foreign_blocks(block: Any) -> str:
    """What is wrong with blocks that are no arrays of NumPy's."""
    kind = f"{type(block).__module__.split('.')[0]}.{type(block).__name__}"
    how = next((how for how in ("toarray", "todense", "filled") if hasattr(block, how)), None)
    dense = f"block.{how}()" if how else "numpy.asarray(block)"
    return (
        f"X holds blocks of type {kind}, but a dask X has to hold NumPy arrays. "
        f"Use X.map_blocks(lambda block: {dense}), or give X without dask."
    )
