"""Errors and warnings for people: what was given, what is wrong with it, what to do instead."""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from types import FrameType

NOT_THEIR_CODE = ("kmargin", "sklearn", "joblib", "contextlib")  # packages between a call and a warning
FITS_TO_FOLDS = "sklearn.model_selection._validation"  # where scikit-learn fits to single folds


class InputError(ValueError):
    """A file or an option that cannot be used; the message says what to change.

    See Also
    --------
    load_model : Raises it for a file that holds no model.

    Examples
    --------
    >>> from kmargin import InputError, load_model
    >>> try:
    ...     load_model("nowhere.kmargin")
    ... except InputError as error:
    ...     print(error)
    There is no model at nowhere.kmargin. Give the folder that `kmargin fit` wrote, or its model.kmargin.
    """


class GridEdgeWarning(UserWarning):
    """The k or C that cross-validation chose, or the best score, is at the edge of the values it was given.

    See Also
    --------
    SparseSVCCV : Warns so; give it more values of k or C.

    Examples
    --------
    >>> import warnings
    >>> from kmargin import GridEdgeWarning
    >>> warnings.simplefilter("ignore", GridEdgeWarning)
    """


class RepeatedFeaturesWarning(UserWarning):
    """Some features repeat earlier ones and are never selected.

    Constant columns and sparse matrices are not warned of, nor are fits to the folds of a cross-validation.

    See Also
    --------
    SparseSVC : Warns so; drop the repeated columns.

    Examples
    --------
    >>> import warnings
    >>> from kmargin import RepeatedFeaturesWarning
    >>> warnings.simplefilter("ignore", RepeatedFeaturesWarning)
    """


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of whoever called the package, be it by way of a pipeline or a grid search."""
    level = 2  # the call of this function
    for frame in _outwards(sys._getframe(1)):
        if frame.f_globals.get("__name__", "").split(".")[0] not in NOT_THEIR_CODE:
            break
        level += 1
    warnings.warn(message, category, stacklevel=level)


def called_for_a_fold() -> bool:
    """Whether scikit-learn has called to fit to a fold; a warning about the columns is not repeated there."""
    return any(call.f_globals.get("__name__") == FITS_TO_FOLDS for call in _outwards(sys._getframe(1)))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A call, and those that led to it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


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
