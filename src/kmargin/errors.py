"""Errors for people: what was given, what is wrong with it, what to do instead."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches


class InputError(ValueError):
    """Something in the files or options given; its message is all that a person needs to see."""


class GridEdgeWarning(UserWarning):
    """What a cross-validation chose is the last of what it was given to try."""


class RepeatedFeaturesWarning(UserWarning):
    """Some features are the same as earlier ones, and are passed over."""


@contextmanager
def blame_input() -> Iterator[None]:
    """Turn the ValueErrors of argument checks into errors for people."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from error


def listing(names: Sequence[object], limit: int = 5) -> str:
    """Some names in quotes, and how many more there are."""
    shown = ", ".join(repr(str(name)) for name in names[:limit])
    return shown + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def nearest(name: str, names: Iterable[object]) -> str:
    """A sentence with the names closest to the one given, or with some of those there are."""
    there = [str(other) for other in names]
    folded = {other.casefold(): other for other in reversed(there)}
    close = [folded[match] for match in get_close_matches(name.casefold(), list(folded), n=3)]
    if close:
        return f"Did you mean {' or '.join(repr(match) for match in close)}?"
    return f"It has {listing(there, 8)}." if there else "It has none."


def count(number: int, thing: str) -> str:
    """1 row, 2 rows."""
    plural = "" if number == 1 else "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}{plural}"
