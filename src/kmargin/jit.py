"""One decorator for every compiled function."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, release the GIL while it runs.

    numba refuses `cache=True` outright where neither the package's folder nor the user's cache
    folder can be written (a read-only container, say). There the function still has to work, so
    it is compiled anew in each process.
    """
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Function, njit(nogil=True)(function))
