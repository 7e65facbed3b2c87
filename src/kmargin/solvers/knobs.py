"""Checking the knobs of a solver."""

import numbers
from collections.abc import Collection
from typing import Any

import numpy as np


def is_number(value: Any, above: float = -np.inf, at_least: float = -np.inf) -> bool:
    """A finite number within these bounds."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return above < float(value) < np.inf and float(value) >= at_least


def is_count(value: Any, low: int) -> bool:
    """An integer that is no smaller than `low`."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= low


def is_flag(value: Any) -> bool:
    """True or False."""
    return isinstance(value, bool | np.bool_)


def is_schedule(values: Any) -> bool:
    """A sequence of positive finite numbers, one at least."""
    if not isinstance(values, Collection) or getattr(values, "ndim", 1) != 1:
        return False
    return len(values) > 0 and all(is_number(value, above=0) for value in values)


def check_knobs(solver: Any, **rules: tuple[bool, str]) -> None:
    """Raise ValueError for the first knob that is not fine; each comes with what is expected of it."""
    for name, (fine, expected) in rules.items():
        if not fine:
            value = getattr(solver, name)
            raise ValueError(f"{name}={value!r} is not valid for {type(solver).__name__}. Use {expected}.")
