"""Interfaces for rows that stay where they are: on the workers of a cluster, in files, or on a device.

The rows are divided into blocks. `Blocks.ask` calls a function on every block, where the block is stored, and
returns the results in the order of the blocks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["Block", "Blocks", "Held"]


class Block(NamedTuple):
    """Some rows of the data, as arrays of one library on one device."""

    number: int  # the position of the block among all blocks, from 0
    X: Any  # (n_rows, n_features), float64 or float32
    codes: Any  # (n_rows,), integers: the class of each row
    repeats: Any  # (n_rows,), float64: sample weights; a row of weight 0 is left out


class Held(Protocol):
    """One object for each block, kept where the block is; for example a copy of some of its columns."""

    def ask(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return ``function(object, *args)`` for each of the objects, in the order of their blocks."""


class Blocks(Held, Protocol):
    """All blocks of a data set; a block may have no rows.

    Functions passed to `ask` and `hold` must be pure and picklable: if a worker of a cluster is lost, they
    are called again on another one.
    """

    n_blocks: int
    dtype: Any  # the NumPy dtype of X
    n_askers: int  # how many binary problems to fit at once, each in a thread that calls `ask`

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows of all blocks together, and the number of columns."""

    def hold(self, function: Callable[..., Any], *args: Any) -> Held:
        """Call a function on every block as `ask` does, but leave the results where the blocks are.

        The results are deleted when nothing refers to the returned object any more.
        """

    def stop(self) -> None:
        """Cancel the calls of `ask` and `hold` that are running, and refuse new ones."""


def foreign_blocks(block: Any) -> str:
    """Return the error message for an X whose blocks are not NumPy arrays."""
    kind = f"{type(block).__module__.split('.')[0]}.{type(block).__name__}"
    return (
        f"X holds blocks of type {kind}, but a dask X has to hold NumPy arrays. Convert them, for example "
        "with X.map_blocks(lambda block: block.toarray()), or give X without dask."
    )
