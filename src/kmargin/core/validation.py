"""Checks of the parameters that users set, the package's errors and warnings, and helpers for messages."""

import numbers
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from kmargin.core.arrays import HOST, Space, Vector
from kmargin.core.labels import check_some_weight, complain_of_weight, find_bad_weight

NOT_THEIR_CODE = ("kmargin", "sklearn", "joblib", "contextlib")  # not users' code; `warn_caller` skips it
FITS_TO_FOLDS = "sklearn.model_selection._validation"  # the module in which scikit-learn fits to each fold
# Matches `C=`, `n_pairs=` and so on in a message, outside quotes, if the command line has such an option.
OPTIONS = re.compile(r"(?<![\w'])(?:n_)?(C|ks?|pairs|threshold|max_false|multi_class|gamma|tolerance)=")


class InputError(ValueError):
    """Raised for a file or a command-line option that cannot be used; the message says what to change.

    See Also
    --------
    load_model : Raises this error if a file holds no model.

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
    """Cross-validation chose the smallest or largest k or C of its grid, or the largest k scored best.

    See Also
    --------
    SparseSVCCV : Issues this warning; to avoid it, give a wider range of k or C.

    Examples
    --------
    >>> import warnings
    >>> from kmargin import GridEdgeWarning
    >>> warnings.simplefilter("ignore", GridEdgeWarning)
    """


class RepeatedFeaturesWarning(UserWarning):
    """Some columns of X are equal to earlier ones and are never selected.

    Constant columns, sparse matrices and fits to the folds of a cross-validation cause no warning.

    See Also
    --------
    SparseSVC : Issues this warning in `fit`; to avoid it, drop the repeated columns of X.

    Examples
    --------
    >>> import warnings
    >>> from kmargin import RepeatedFeaturesWarning
    >>> warnings.simplefilter("ignore", RepeatedFeaturesWarning)
    """


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that shows the line of the user's code, not one of this package or scikit-learn."""
    level = 2  # the `stacklevel` of the function that called `warn_caller`
    for frame in _outwards(sys._getframe(1)):
        if frame.f_globals.get("__name__", "").split(".")[0] not in NOT_THEIR_CODE:
            break
        level += 1
    warnings.warn(message, category, stacklevel=level)


def called_for_a_fold() -> bool:
    """Whether scikit-learn's cross-validation is fitting to a fold; some warnings are not shown then."""
    return any(call.f_globals.get("__name__") == FITS_TO_FOLDS for call in _outwards(sys._getframe(1)))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a stack frame, then the frame of its caller, and so on to the outermost one."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextmanager
def blame_input() -> Iterator[None]:
    """Convert a ValueError raised in this context to an InputError, whose message the command line shows.

    Parameters in the message, such as `n_pairs=0`, become options of the command line, such as `--pairs 0`.
    """
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        words = OPTIONS.sub(lambda match: f"--{match[1].replace('_', '-')} ", str(error))
        raise InputError(words) from error


def listing(names: Sequence[object], limit: int = 5) -> str:
    """List names in quotes, at most `limit` of them, and say how many more there are."""
    shown = ", ".join(repr(str(name)) for name in names[:limit])
    return shown + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def nearest(name: str, names: Iterable[object]) -> str:
    """Return a sentence that suggests the names most similar to `name`; if none is, list some of them."""
    there = [str(other) for other in names]
    folded = {other.casefold(): other for other in reversed(there)}
    longer = [other for other in folded if name and other.startswith(name.casefold())]
    close = dict.fromkeys(longer[:3] + get_close_matches(name.casefold(), list(folded), n=3))
    if close:
        return f"Did you mean {' or '.join(repr(folded[match]) for match in [*close][:3])}?"
    return f"It has {listing(there, 8)}." if there else "It has none."


def count(number: int, thing: str) -> str:
    """Return a number and the noun `thing`, in the plural if needed, such as "1 row" or "2 rows"."""
    plural = "" if number == 1 else "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}{plural}"


def shortly(value: Any) -> str:
    """Return the `repr` of a value for a message, cut to at most 60 characters."""
    text = value.__name__ if isinstance(value, type) else " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def suggest(value: object, choices: Sequence[str] | dict[str, Any]) -> str:
    """Return sentences that suggest the choice most similar to an invalid value, and list all choices."""
    close = get_close_matches(str(value).casefold(), list(choices), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Use one of {', '.join(map(repr, choices))}."


BOOLEANS = (bool, np.bool_)


def is_integer(value: Any, at_least: float = -np.inf) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= at_least


def is_number(value: Any, above: float = -np.inf, at_least: float = -np.inf) -> bool:
    """Whether a value is a finite real number, not a boolean, that is > `above` and >= `at_least`."""
    if isinstance(value, BOOLEANS) or not isinstance(value, numbers.Real):
        return False
    return above < float(value) < np.inf and float(value) >= at_least


def invalid(name: str, value: object, meaning: str, advice: str) -> ValueError:
    """Return a ValueError with the message "<name>=<value> is not <meaning>. <advice>"."""
    return ValueError(f"{name}={shortly(value)} is not {meaning}. {advice}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if not (isinstance(value, str) and value in choices):
        raise invalid(name, value, "known", suggest(value, choices)[1:])


def check_count(name: str, value: object, what: str, least: int = 1) -> None:
    """Raise ValueError unless `value` is an integer >= `least`; `what` is the noun for what it counts."""
    if not is_integer(value, least):
        raise invalid(name, value, f"a number of {what}", f"Use an integer >= {least}.")


def check_tolerance(tolerance: object) -> None:
    """Raise ValueError unless `tolerance`, a difference of scores, is a finite number >= 0."""
    if not is_number(tolerance, at_least=0):
        raise invalid("tolerance", tolerance, "a difference of scores", "Use a number >= 0, such as 0.01.")


def check_flags(model: Any, *names: str) -> None:
    """Raise ValueError unless the parameters `names` of the estimator `model` are True or False."""
    for name in names:
        value = getattr(model, name)
        if not isinstance(value, BOOLEANS):
            raise invalid(name, value, "a boolean", "Use True or False.")


def check_n_jobs(n_jobs: object) -> None:
    """Raise ValueError unless `n_jobs` is an integer other than 0, or None."""
    if n_jobs is not None and not (is_integer(n_jobs) and n_jobs != 0):
        raise invalid("n_jobs", n_jobs, "a number of jobs", "Use an integer >= 1, -1 for all cores, or None.")


def check_verbose(verbose: object) -> None:
    """Raise ValueError unless `verbose` is True, False, or an integer >= 0."""
    if not (isinstance(verbose, BOOLEANS) or is_integer(verbose, at_least=0)):
        advice = "Use 0 for silence, or 1 for a progress bar."
        raise invalid("verbose", verbose, "a verbosity level", advice)


def random_source(random_state: Any) -> np.random.RandomState:
    """Return the RandomState that scikit-learn makes of `random_state`; raise ValueError if it cannot."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={shortly(random_state)} is not a source of randomness. Use an integer from 0 to "
            f"{2**32 - 1}, a RandomState, or None."
        ) from None


def resolve_seed(random_state: object) -> int:
    """Draw an integer seed from any `random_state` that scikit-learn accepts."""
    return int(random_source(random_state).randint(np.iinfo(np.int32).max))


def check_scoring(scoring: Any) -> None:
    """Raise ValueError unless `scoring` is None, the name of a scikit-learn scorer, or a function."""
    if scoring is None or (callable(scoring) and not isinstance(scoring, type)):
        return
    names = get_scorer_names()
    if not (isinstance(scoring, str) and scoring in names):
        advice = (
            f"{nearest(str(scoring), names)} Use one of these names, a function of (model, X, y), or None."
        )
        raise invalid("scoring", scoring, "a scikit-learn scorer", advice)


def check_cv(cv: Any) -> None:
    """Raise ValueError unless `cv` is None, a number of folds, a splitter, or a list of splits."""
    if cv is None or is_integer(cv, at_least=2):
        return
    splits = getattr(cv, "split", None) is not None and not isinstance(cv, str | type)
    is_list = np.iterable(cv) and not isinstance(cv, str | Mapping) and getattr(cv, "dtype", None) is None
    are_pairs = not isinstance(cv, list | tuple) or (
        len(cv) > 0 and all(isinstance(split, list | tuple) and len(split) == 2 for split in cv)
    )
    if not splits and not (is_list and are_pairs):
        raise ValueError(
            f"cv={shortly(cv)} does not define folds. Use a number of folds >= 2, a splitter such as "
            "StratifiedKFold(5), or a list of (training rows, test rows) pairs."
        )


def check_model(model: Any, who: str) -> None:
    """Raise TypeError unless `model` is a classifier; `who` is the name of the function that needs one."""
    if isinstance(model, type):
        raise TypeError(f"{who} was given the class {model.__name__}, not a model. Use {model.__name__}().")
    if None in (getattr(model, "fit", None), getattr(model, "get_params", None)) or not is_classifier(model):
        raise TypeError(
            f"{who} was given {shortly(model)}, which is not a classifier. Give one such as SparseSVCCV()."
        )


def check_k(k: Any, label: str = "coefficients", name: str = "k") -> None:
    """Raise ValueError unless k, called `name`, is an integer >= 0 or "all"; `label` is what k counts."""
    if isinstance(k, str) and k == "all":
        return
    advice = f'Use an integer {name} >= 0, or {name}="all" to keep every one.'
    if not is_integer(k):
        raise invalid(name, k, f"a number of nonzero {label}", advice)
    if k < 0:
        raise ValueError(f"{name}={k} asks for {k} nonzero {label}. {advice}")


def resolve_k(k: int | str, n_available: int, label: str = "features", n_fixed: int = 0) -> int:
    """Return min(k, `n_available`), where "all" means `n_available`; warn if k is larger than that.

    Raises ValueError if k is less than `n_fixed`, the number of features (or groups) that must be in the
    model. `label` is the noun for what k counts, for messages.
    """
    if k == "all":
        return n_available
    if int(k) > n_available:
        warn_caller(f"k={k} is greater than the number of {label}, {n_available}: all of them are kept.")
    if int(k) < n_fixed:
        raise ValueError(
            f"k={k} is less than the {n_fixed} {label} in `keep`, which count in k. "
            f"Use k >= {n_fixed}, or keep fewer."
        )
    return min(int(k), n_available)


def resolve_ks(
    ks: Any, n_features: int, n_default: int | None = None, label: str = "features", n_fixed: int = 0
) -> list[int]:
    """Return the values of k of a path, descending and distinct; `ks` is a list, an integer or None.

    An integer means at most that many values, log-spaced from `n_features` down to 1. None means at most 20
    values, log-spaced from `n_default` down to 1. Values below `n_fixed`, the number of features that must be
    in the model, raise ValueError if the user listed them, and are left out otherwise.
    """
    are_listed = ks is not None and not is_integer(ks)
    if not are_listed:
        largest = n_features if ks is not None or n_default is None else min(n_default, n_features)
        n_values = 20 if ks is None else int(ks)
        if n_values < 1:
            raise ValueError(f"ks={ks} asks for a path of {ks} values of k. Use an integer >= 1 or a list.")
        every_k = int(n_features * np.log(n_features + 1)) + 2  # more values would only repeat values of k
        ks = [int(k) for k in np.round(np.geomspace(largest, 1, min(n_values, every_k)))]
    ks = _listed("ks", ks, "[10, 5, 2]", "k", ", or a number of them", ", or None for a default")
    for k in ks:
        check_k(k)
    given = [n_features if k == "all" else int(k) for k in ks]
    if are_listed:
        resolve_k(min(given), n_features, label, n_fixed)  # ValueError if the smallest k is below n_fixed
        resolve_k(max(given), n_features, label)  # warns if the largest k is above n_features
    return sorted({min(k, n_features) for k in given if k >= n_fixed}, reverse=True) or [int(n_fixed)]


def resolve_Cs(Cs: Any) -> list[float]:
    """Return the values of C of a grid, ascending and distinct; `Cs` is a number or a list of numbers."""
    Cs = _listed("Cs", [Cs] if isinstance(Cs, numbers.Real) else Cs, "[0.1, 1.0, 10.0]", "C")
    for C in Cs:
        check_C(C)
    return sorted({float(C) for C in Cs})


def _listed(name: str, values: Any, example: str, of: str, other: str = "", default: str = "") -> list[Any]:
    """Return `values` as a list; raise ValueError, worded with the other arguments, if it has no values."""
    if isinstance(values, str) or not np.iterable(values):
        raise invalid(name, values, f"a list of values of {of}", f"Use a list such as {example}{other}.")
    if not list(values):
        raise ValueError(f"{name}=[] leaves nothing to fit. Use a list such as {example}{default}.")
    return list(values)


def check_C(C: Any) -> None:
    """Raise ValueError unless C is a number > 0 or infinite; an infinite C means that there is no ridge."""
    is_real = isinstance(C, numbers.Real) and not isinstance(C, BOOLEANS) and not np.isnan(float(C))
    if not (is_real and float(C) > 0):
        meaning = "a positive weight of the loss" if is_real else "a number"
        raise invalid("C", C, meaning, "Use a number C > 0, or C=inf for no ridge.")


def resolve_n_candidates(n_candidates: Any, n_samples: int) -> int | None:
    """Return from how many training points a kernel model may choose; None: as many as suit `cache_size`."""
    if n_candidates is None or (isinstance(n_candidates, str) and n_candidates == "all"):
        return None if n_candidates is None else n_samples
    if not is_integer(n_candidates, at_least=1):
        raise ValueError(
            f"n_candidates={n_candidates!r} leaves no training points to choose from. "
            'Use an integer >= 1, "all", or None for as many as suit cache_size.'
        )
    return int(n_candidates)


def ridge(C: float, total_weight: float) -> float:
    """Return the ridge lam = 1/(2 C n); n is the total weight of the rows, and C is that of LinearSVC."""
    strength = 2.0 * float(C) * total_weight
    if strength == np.inf:  # the product of two finite numbers may overflow
        return 0.5 / float(C) / total_weight
    return 1.0 / strength if strength > 0 else np.inf


def check_classes(classes: np.ndarray, totals: np.ndarray | None = None) -> None:
    """Raise ValueError if y has fewer than two classes, or if all samples of a class have weight 0.

    `totals` holds the sum of the sample weights of each class; None skips this check.
    """
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}, so there is nothing to classify. "
            "Give samples of two classes or more."
        )
    if totals is not None and not totals.all():
        lost = classes[totals == 0].tolist()[0]
        raise ValueError(
            f"The weights of all samples of class {lost!r} are zero, so the class cannot be fitted. "
            "Give some of them a weight > 0, or leave the class out of y."
        )


def class_factors(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> Vector:
    """Return the factor by which `class_weight` multiplies the sample weights of each class.

    `counts` holds the number of samples of each class.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return counts.sum() / (len(classes) * counts)
    if not (class_weight is None or isinstance(class_weight, Mapping)):
        advice = "Use 'balanced', a dict such as {'sick': 2.0}, or None."
        raise invalid("class_weight", class_weight, "a set of class weights", advice)
    known = classes.tolist()
    unknown = [name for name in class_weight or () if name not in known]
    if class_weight and unknown and any(name not in class_weight for name in known):
        hint = nearest(str(unknown[0]), known)
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class in y. {hint}")
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64)
    bad = ~(np.isfinite(factors) & (factors >= 0))
    if bad.any():
        name, weight = classes[bad].tolist()[0], factors[bad][0]
        raise ValueError(f"class_weight gives class {name!r} the weight {weight:g}. Give finite numbers > 0.")
    return factors


def check_sample_weight(sample_weight: Any, n_samples: int, space: Space = HOST) -> Any:
    """Return the weight of each sample in an array on the device `space`; raise ValueError if invalid."""
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
