"""The decorators of compiled functions.

Most are `compiled`, for arrays alone. What has to work for rows that are elsewhere too (in blocks on
other machines, on a GPU) is written once: `either` where it only asks questions, `question` where it
is one.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import overload

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


class Elsewhere:
    """What a solver handles without having it. Answers `question`s by methods of the same name."""


def either(function: Function) -> Function:
    """Compiled for arrays; interpreted, line by line the same, where the first argument is elsewhere."""
    return _dispatched(function, interpreted=function)


def question(function: Function) -> Function:
    """Compiled for arrays; elsewhere the first argument's own method answers."""

    @wraps(function)
    def answer(first: Any, *args: Any) -> Any:
        return getattr(first, function.__name__)(*args)

    return _dispatched(function, interpreted=answer)


def _dispatched(function: Function, interpreted: Callable[..., Any]) -> Function:
    fast = compiled(function)

    @wraps(function)
    def call(first: Any, *args: Any) -> Any:
        elsewhere = isinstance(getattr(first, "rows", first), Elsewhere)
        return (interpreted if elsewhere else fast)(first, *args)

    call.compiled = fast  # type: ignore[attr-defined]
    overload(call, strict=False)(lambda *args: function)  # called from compiled code it is compiled too
    return cast(Function, call)
