"""Telling dask collections from other data, without dask."""

from typing import Any


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
