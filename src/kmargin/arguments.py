"""Arguments that scikit-learn has, too, checked once and refused in a sentence.

Every message says what was given, what that would mean, and what to write instead.
"""

import numbers
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state

MOST_SEEDS = 2**32 - 1


def is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def shortly(value: Any) -> str:
    """How a value is shown in a message."""
    text = value.__name__ if isinstance(value, type) else " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def check_n_jobs(n_jobs: object) -> None:
    """An integer other than 0, or None."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={shortly(n_jobs)} is not a number of jobs. Use an integer >= 1, -1 for all cores, or "
            "None."
        )


def check_verbose(verbose: object) -> None:
    """True, False, or an integer >= 0."""
    is_flag = isinstance(verbose, bool | np.bool_)
    if not is_flag and (not is_integer(verbose) or verbose < 0):  # type: ignore[operator]
        raise ValueError(
            f"verbose={shortly(verbose)} is not a verbosity level. Use 0 for silence, or 1 for a progress "
            "bar."
        )


def random_source(random_state: Any) -> np.random.RandomState:
    """Scikit-learn's random numbers, from whatever it takes."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={shortly(random_state)} is not a source of randomness. Use an integer from 0 to "
            f"{MOST_SEEDS}, a RandomState, or None."
        ) from None


def check_class_weight(class_weight: object) -> None:
    """None, "balanced", or weights by class."""
    is_name = isinstance(class_weight, str) and class_weight == "balanced"
    if class_weight is not None and not is_name and not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={shortly(class_weight)} is not a set of class weights. Use 'balanced', a dict "
            "such as {'sick': 2.0}, or None."
        )


def check_scoring(scoring: Any) -> None:
    """None, the name of a scorer, or a function."""
    if scoring is None or (callable(scoring) and not isinstance(scoring, type)):
        return
    names = get_scorer_names()
    if isinstance(scoring, str) and scoring in names:
        return
    close = get_close_matches(scoring, names, n=1) if isinstance(scoring, str) else []
    hint = f"Did you mean {close[0]!r}? " if close else ""
    raise ValueError(
        f"scoring={shortly(scoring)} is not a scikit-learn scorer. {hint}Use a name such as 'accuracy', "
        "'balanced_accuracy' or 'roc_auc', a function of (model, X, y), or None."
    )


def check_cv(cv: Any) -> None:
    """None, a number of folds, something that splits, or a list of splits."""
    if cv is None or (is_integer(cv) and cv >= 2):
        return
    splits = getattr(cv, "split", None) is not None and not isinstance(cv, str | type)
    is_list = np.iterable(cv) and not isinstance(cv, str | Mapping) and getattr(cv, "dtype", None) is None
    if not splits and (not is_list or (isinstance(cv, list | tuple) and not all(map(is_pair, cv)))):
        raise ValueError(
            f"cv={shortly(cv)} does not define folds. Use a number of folds >= 2, a splitter such as "
            "StratifiedKFold(5), or a list of (training rows, test rows) pairs."
        )
    if isinstance(cv, list | tuple) and not cv:
        raise ValueError(f"cv={cv!r} is empty. Use a number of folds >= 2, or a list of at least one pair.")


def is_pair(split: object) -> bool:
    return isinstance(split, list | tuple) and len(split) == 2


def check_model(model: Any, who: str) -> None:
    """An estimator of scikit-learn's kind."""
    if isinstance(model, type):
        raise TypeError(f"{who} was given the class {model.__name__}, not a model. Use {model.__name__}().")
    if getattr(model, "fit", None) is None or getattr(model, "get_params", None) is None:
        raise TypeError(
            f"{who} was given {shortly(model)}, which cannot be fitted. Give an estimator such as "
            "SparseSVCCV()."
        )
