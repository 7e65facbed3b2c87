"""Decorators that compile functions with numba, and keep the machine code in a cache on disk."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import register_jitable

from kmargin.core import squared_hinge

Function = TypeVar("Function", bound=Callable[..., Any])

# numba compiles inlined functions, and its own versions of NumPy functions, anew for each set of options of a
# calling function. To save this time, all functions have the same options. They include a wrapper for calls
# from Python, although inlined functions need none, but no wrapper for calls from C, which do not occur.
OPTIONS: Any = {"nogil": True, "no_cpython_wrapper": False, "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile a function on its first call, cache its machine code on disk, and run it without the GIL.

    numba raises RuntimeError if neither the package's folder nor the user's cache folder can be written, as
    in a read-only container. Then the function is compiled anew in each process.

    numba compiles a function again when its file changes. Here it is also compiled again when a function or
    constant that it uses from another file changes, because a digest of them is in the cache file's name.
    """
    digest = hashlib.sha256("\n".join(list_uses(function)).encode()).hexdigest()[:8]
    function.__qualname__ += f"-{digest}"
    try:
        return cast(Function, njit(cache=True, **OPTIONS)(function))
    except RuntimeError:
        return cast(Function, njit(**OPTIONS)(function))


def list_uses(function: Any) -> Iterator[str]:
    """Yield a text for each numeric constant and each function of this package that a function depends on."""
    names, package = function.__code__.co_names, function.__module__.split(".")[0]
    for name in names:
        value = function.__globals__.get(name)
        found = [vars(value).get(other) for other in names] if isinstance(value, ModuleType) else [value]
        for used in found:
            used = getattr(used, "py_func", used)
            if isinstance(used, int | float):
                yield f"{name} = {used!r}"
            elif isinstance(used, FunctionType) and used.__module__.split(".")[0] == package:
                numbers = [
                    constant for constant in used.__code__.co_consts if isinstance(constant, int | float)
                ]
                yield f"{used.__name__}: {used.__code__.co_code!r} {numbers}"
                yield from list_uses(used)


def inlined(function: Function) -> Function:
    """Make a function callable from compiled functions; Python code that calls it runs it uncompiled."""
    return register_jitable(**OPTIONS)(function)


for _function in squared_hinge.INLINED:
    inlined(_function)


def has_cached_code(function: Any) -> bool:
    """Whether a `compiled` function can run at once: its machine code is on disk, or numba is disabled."""
    stats = getattr(function, "stats", None)
    if stats is None or stats.cache_path is None:  # numba is disabled, or the cache has no folder
        return stats is None
    return any(Path(stats.cache_path).glob(f"*.{function.__qualname__}-*.nbi"))
