"""The model to draw: itself, or inside a pipeline or a search; fitted, or a word about it."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


class FoundModel(NamedTuple):
    """A fitted model, and what its features are called if that is known."""

    model: Any
    names: list[str] | None


def find_model(estimator: Any, attribute: str, display: str, needs: str) -> FoundModel:
    """The fitted model that has this attribute, looked for in pipelines from the last step on.

    Raises NotFittedError, or TypeError with what the display draws (`needs`).
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"{display} was given the class {estimator.__name__}. Give a fitted model instead, as in "
            f"{estimator.__name__}(...).fit(X, y)."
        )
    searched = getattr(estimator, "best_estimator_", estimator)
    if isinstance(searched, Pipeline):
        return _find_in_pipeline(searched, attribute, display, needs)
    model = _look_at(searched, attribute, display, needs)
    names = getattr(model, "feature_names_in_", None)
    return FoundModel(model, None if names is None else [str(name) for name in names])


def _find_in_pipeline(pipeline: Pipeline, attribute: str, display: str, needs: str) -> FoundModel:
    steps = [step for _, step in pipeline.steps]
    for at in reversed(range(len(steps))):
        step = getattr(steps[at], "best_estimator_", steps[at])
        if is_ours(step):
            model = _look_at(step, attribute, display, needs)
            names = getattr(model, "feature_names_in_", None)
            if names is None and at > 0:
                names = _names_after(pipeline[:at])
            return FoundModel(model, None if names is None else [str(name) for name in names])
    kinds = ", ".join(type(step).__name__ for step in steps)
    raise TypeError(f"{display} needs {needs}; this pipeline has none ({kinds}).")


def _names_after(before: Pipeline) -> Any:
    """What the features are called that come out of these steps, as far as they know."""
    try:
        return before.get_feature_names_out()
    except (AttributeError, NotFittedError, ValueError):
        return None


def is_ours(model: Any) -> bool:
    return type(model).__module__.split(".")[0] == "kmargin"


def _look_at(model: Any, attribute: str, display: str, needs: str) -> Any:
    if getattr(model, attribute, None) is not None:
        return model
    who = type(model).__name__
    if isinstance(model, BaseEstimator):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise NotFittedError(
                f"{who} is not fitted, and {display} needs a fitted model. Call fit(X, y) first."
            ) from None
    raise TypeError(f"{display} needs {needs}; it was given {who}.")


def name_features(given: Any, known: Any, n_features: int) -> list[str]:
    """The names given, those that the model knows, or x0, x1, ..."""
    if given is None and known is None:
        return [f"x{j}" for j in range(n_features)]
    names = known if given is None else given
    if isinstance(names, str) or not np.iterable(names):
        raise ValueError(f"feature_names={names!r} is not a list of names. Give a name for each feature.")
    names = list(names)
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names for {n_features} features. Give a name for each feature."
        )
    return [str(name) for name in names]
