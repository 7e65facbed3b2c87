"""Telling dask collections from other data, without dask."""

from typing import Any


def is_dask(*things: Any) -> bool:
    """Whether any of them is a dask collection."""
    return any(hasattr(type(thing), "__dask_graph__") for thing in things)
