"""Every parameter that users set is checked here, once; the errors and warnings that people see."""

import numbers
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from types import FrameType
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from kmargin.core.arrays import HOST, Space, Vector
from kmargin.core.labels import check_some_weight, complain_of_weight, find_bad_weight

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
    """Raise ValueErrors of argument checks as InputErrors, which the command line prints as one sentence."""
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


def check_k(k: object, things: str = "coefficients", name: str = "k") -> None:
    """k is an integer >= 0, or "all"."""
    if isinstance(k, str) and k == "all":
        return
    advice = f'Use an integer {name} >= 0, or {name}="all" to keep every one.'
    if isinstance(k, bool | np.bool_) or not isinstance(k, numbers.Integral):
        raise ValueError(f"{name}={k!r} is not a number of nonzero {things}. {advice}")
    if k < 0:
        raise ValueError(f"{name}={k} asks for {k} nonzero {things}. {advice}")


def resolve_k(k: int | str, n_available: int, things: str = "features") -> int:
    """k as a number no larger than there are things to keep; warns where it was larger."""
    if k == "all":
        return n_available
    if int(k) > n_available:
        warn_caller(f"k={k} is greater than the number of {things}, {n_available}: all of them are kept.")
    return min(int(k), n_available)


def resolve_ks(ks: Any, n_features: int, n_default: int | None = None, things: str = "features") -> list[int]:
    """The values of k of a path, descending and distinct.

    None is 20 values, log-spaced from `n_default` (all, if that is not given) down to one.
    """
    if ks is None:
        n_default = n_features if n_default is None else min(n_default, n_features)
        ks = [int(k) for k in np.round(np.geomspace(n_default, 1, 20))]
    if isinstance(ks, int | np.integer) and not isinstance(ks, bool):
        if ks < 1:
            raise ValueError(f"ks={ks} asks for a path of {ks} values of k. Use an integer >= 1 or a list.")
        # so many values, log-spaced, leave out no k
        enough = int(n_features * np.log(n_features + 1)) + 2
        ks = range(1, n_features + 1) if ks >= enough else np.round(np.geomspace(n_features, 1, int(ks)))
        ks = [int(k) for k in ks]
    if isinstance(ks, str) or not np.iterable(ks):
        raise ValueError(
            f"ks={ks!r} is not a list of values of k. Use a list such as [10, 5, 2], or a number of them."
        )
    ks = list(ks)
    if not ks:
        raise ValueError("ks=[] leaves nothing to fit. Use a list such as [10, 5, 2], or None for a default.")
    for k in ks:
        check_k(k)
    numbers_above = [int(k) for k in ks if k != "all" and int(k) > n_features]
    if numbers_above:
        resolve_k(max(numbers_above), n_features, things)
    return sorted({n_features if k == "all" else min(int(k), n_features) for k in ks}, reverse=True)


def check_flag(name: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is not a boolean. Use True or False.")


def check_C(C: object) -> None:
    """C is a number > 0; inf means no ridge."""
    if isinstance(C, bool | np.bool_) or not isinstance(C, numbers.Real) or np.isnan(float(C)):
        raise ValueError(f"C={C!r} is not a number. Use a number C > 0, or C=inf for no ridge.")
    if float(C) <= 0:
        raise ValueError(
            f"C={C} is not a positive weight of the loss. Use a number C > 0, or C=inf for no ridge."
        )


def resolve_Cs(Cs: Any) -> list[float]:
    """The values of C of a grid, ascending and distinct."""
    if isinstance(Cs, numbers.Real):
        Cs = [Cs]
    if isinstance(Cs, str) or not np.iterable(Cs):
        raise ValueError(f"Cs={Cs!r} is not a list of values of C. Use a list such as [0.1, 1.0, 10.0].")
    Cs = list(Cs)
    if not Cs:
        raise ValueError("Cs=[] leaves nothing to fit. Use a list such as [0.1, 1.0, 10.0].")
    for C in Cs:
        check_C(C)
    return sorted({float(C) for C in Cs})


def check_number(name: str, value: object, least: float) -> None:
    """A finite number, no smaller than `least`."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not least <= float(value) < np.inf or float(value) == -np.inf:  # type: ignore[arg-type]
        bound = "" if least == -np.inf else f" >= {least:g}"
        raise ValueError(f"{name}={value!r} is not valid. Use a finite number{bound}.")


def check_tolerance(tolerance: object) -> None:
    """A loss of score: a finite number >= 0."""
    is_number = isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool)
    if not is_number or not 0 <= tolerance < np.inf:  # type: ignore[operator]
        raise ValueError(
            f"tolerance={tolerance!r} is not a difference of scores. Use a number >= 0, such as 0.01."
        )


def check_count(name: str, value: object, what: str, least: int = 1) -> None:
    """An integer no smaller than `least`."""
    is_count = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not is_count or value < least:  # type: ignore[operator]
        raise ValueError(f"{name}={value!r} is not a number of {what}. Use an integer >= {least}.")


def check_cache_size(cache_size: object) -> None:
    """Megabytes: a finite number > 0."""
    is_number = isinstance(cache_size, numbers.Real) and not isinstance(cache_size, bool)
    if not is_number or not 0 < cache_size < np.inf:  # type: ignore[operator]
        raise ValueError(
            f"cache_size={cache_size!r} is not a number of megabytes for kernel values. "
            "Use a number > 0, such as 200."
        )


def resolve_n_candidates(n_candidates: object, n_samples: int) -> int | None:
    """An integer >= 1, "all", or None for a number that suits the budget."""
    if n_candidates is None:
        return None
    if isinstance(n_candidates, str) and n_candidates == "all":
        return n_samples
    is_count = isinstance(n_candidates, numbers.Integral) and not isinstance(n_candidates, bool)
    if not is_count or n_candidates < 1:  # type: ignore[operator]
        raise ValueError(
            f"n_candidates={n_candidates!r} leaves no training points to choose from. "
            'Use an integer >= 1, "all", or None for as many as suit cache_size.'
        )
    return int(n_candidates)  # type: ignore[call-overload]


def ridge(C: float, total_weight: float) -> float:
    """lam = 1/(2 C n), n counting each row by its weight: LinearSVC's meaning of C."""
    strength = 2.0 * float(C) * total_weight
    if strength == np.inf:  # more than numbers can hold is not always without end
        return 0.5 / float(C) / total_weight
    return 1.0 / strength if strength > 0 else np.inf


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name}={value!r} is not known.{suggest(value, choices)}")


def suggest(value: object, choices: Sequence[str] | dict[str, Any]) -> str:
    close = get_close_matches(str(value), list(choices), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Use one of {', '.join(map(repr, choices))}."


def resolve_seed(random_state: object) -> int:
    return int(random_source(random_state).randint(np.iinfo(np.int32).max))


def check_classes(classes: np.ndarray) -> None:
    """There are two at least."""
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}, so there is nothing to classify. "
            "Give samples of two classes or more."
        )


def class_factors(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> Vector:
    """What `class_weight` gives each class; `counts` are the numbers of its samples."""
    check_class_weight(class_weight)
    if isinstance(class_weight, str):
        return counts.sum() / (len(classes) * counts)
    known = classes.tolist()
    unknown = [name for name in class_weight or () if name not in known]
    if unknown and any(name not in class_weight for name in known):
        hint = nearest(str(unknown[0]), known)
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class in y. {hint}")
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64)
    bad = ~(np.isfinite(factors) & (factors >= 0))
    if bad.any():
        at = int(bad.argmax())
        meaning = "is negative" if factors[at] < 0 else "is not finite"
        raise ValueError(
            f"class_weight gives class {classes[at : at + 1].tolist()[0]!r} the weight {factors[at]:g}, "
            f"which {meaning}. Give finite numbers > 0."
        )
    return factors


def check_totals(classes: np.ndarray, totals: np.ndarray) -> None:
    """Each class has samples that count."""
    if not totals.all():
        lost = classes[totals == 0].tolist()[0]
        raise ValueError(
            f"The weights of all samples of class {lost!r} are zero, so the class cannot be fitted. "
            "Give some of them a weight > 0, or leave the class out of y."
        )


def check_sample_weight(sample_weight: Any, n_samples: int, space: Space = HOST) -> Any:
    """Finite weights >= 0, one per sample, brought to where the samples are."""
    if sample_weight is None:
        return space.put(np.ones(n_samples))
    try:
        weights = space.floats(space.move(sample_weight))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight={shortly(sample_weight)} is not one number per sample. Give finite numbers >= 0."
        ) from error
    if weights.ndim == 0:
        weights = space.put(np.full(n_samples, float(weights)))
    if tuple(weights.shape) != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {tuple(weights.shape)} for {n_samples} samples. "
            "Give one number per sample."
        )
    bad = find_bad_weight(weights, space)
    if bad is not None:
        raise ValueError(complain_of_weight(*bad))
    check_some_weight(float(space.xp.max(weights)))
    return weights
