"""Decorators that compile functions with numba, and keep the machine code in a cache on disk."""

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
    """Compile a function on its first call, cache its machine code on disk, and run it without the GIL.

    numba raises RuntimeError if neither the package's folder nor the user's cache folder can be written, as
    in a read-only container. Then the function is compiled anew in each process.
    """
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Function, njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """Let compiled functions call a function; Python code that calls it runs it uncompiled."""
    return register_jitable(function)


def has_cached_code(function: Any) -> bool:
    """Whether a first call is quick: machine code of a `compiled` function is on disk, or none is needed."""
    stats = getattr(function, "stats", None)
    if stats is None or stats.cache_path is None:  # compilation is switched off, or there is no cache
        return stats is None
    return any(Path(stats.cache_path).glob(f"*.{function.__name__}-*.nbi"))
