"""Functions of a few numbers that become part of their compiled callers.

They are marked here, without numba: the workers of a cluster call them as they are, and need not have it.
`jit` registers them before anything is compiled.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

REGISTER: list[Callable[[Callable[..., Any]], Any]] = []  # numba's, once `jit` is there
WAITING: list[Callable[..., Any]] = []


def inlined(function: Function) -> Function:
    """In Python it stays what it is."""
    if REGISTER:
        REGISTER[0](function)
    else:
        WAITING.append(function)
    return function
