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


class Blocks(Held, Protocol):
    """All the blocks of a data set, any of which may be empty of rows.

    Functions are pure and can be pickled: if a worker is lost, they are called again on another one.
    """

    n_blocks: int
    dtype: Any  # NumPy's name for that of X
    n_askers: int  # how many binary problems are best fitted at once

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all of X."""

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        """The same as `ask`, but the results stay beside the blocks until nothing refers to them."""

    def stop(self) -> None:
        """Answer no more requests, not even those under way."""


def is_dask(*things: Any) -> bool:
    """Whether any of them is a dask collection."""
    return any(hasattr(type(thing), "__dask_graph__") for thing in things)


def foreign_blocks(block: Any) -> str:
    """The error message for an X whose blocks are not NumPy arrays."""
    kind = f"{type(block).__module__.split('.')[0]}.{type(block).__name__}"
    how = next((how for how in ("toarray", "todense", "filled") if hasattr(block, how)), None)
    dense = f"block.{how}()" if how else "numpy.asarray(block)"
    return (
        f"X holds blocks of type {kind}, but a dask X has to hold NumPy arrays. "
        f"Use X.map_blocks(lambda block: {dense}), or give X without dask."
    )
