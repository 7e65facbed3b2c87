"""Decorators that compile functions with numba, and keep the machine code in a cache on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import register_jitable

from kmargin.core import squared_hinge

Function = TypeVar("Function", bound=Callable[..., Any])

# numba compiles an inlined function, and its own implementation of a NumPy function, once for each set of
# options among its callers. So all functions have the same ones, although inlined functions need no wrapper
# for calls from Python. No function is called from C.
OPTIONS: Any = {"nogil": True, "no_cpython_wrapper": False, "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile a function on its first call, cache its machine code on disk, and run it without the GIL.

    numba raises RuntimeError if neither the package's folder nor the user's cache folder can be written, as
    in a read-only container. Then the function is compiled anew in each process.
    """
    try:
        return cast(Function, njit(cache=True, **OPTIONS)(function))
    except RuntimeError:
        return cast(Function, njit(**OPTIONS)(function))


def inlined(function: Function) -> Function:
    """Let compiled functions call a function; Python code that calls it runs it uncompiled."""
    return register_jitable(**OPTIONS)(function)


for _function in squared_hinge.INLINED:
    inlined(_function)


def has_cached_code(function: Any) -> bool:
    """Whether a first call is quick: machine code of a `compiled` function is on disk, or none is needed."""
    stats = getattr(function, "stats", None)
    if stats is None or stats.cache_path is None:  # compilation is switched off, or there is no cache
        return stats is None
    return any(Path(stats.cache_path).glob(f"*.{function.__name__}-*.nbi"))
