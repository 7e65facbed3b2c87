"""Compilation: numba with a cache on disk, through one decorator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import register_jitable

from kmargin.core import squared_hinge

Function = TypeVar("Function", bound=Callable[..., Any])

for _function in squared_hinge.INLINED:
    register_jitable(_function)


def compiled(function: Function) -> Function:
    """Compile on the first call, keep the machine code on disk, release the GIL while it runs.

    numba refuses a cache where neither the package's folder nor the user's cache folder can be written, as in
    a read-only container. There the function is compiled anew in each process.
    """
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Function, njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """Mark a function that compiled callers include; called from Python it runs as written."""
    return register_jitable(function)


def has_cached_code(function: Any) -> bool:
    """Whether the machine code of a `compiled` function is on disk, so that its first call is quick."""
    stats = getattr(function, "stats", None)
    if stats is None or stats.cache_path is None:  # compilation is switched off, or nothing can be kept
        return stats is None
    return any(Path(stats.cache_path).glob(f"*.{function.__name__}-*.nbi"))
