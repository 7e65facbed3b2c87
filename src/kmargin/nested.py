"""Models fitted to outer folds, each with all its choices made from the fold's training rows alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from kmargin import arguments, validate
from kmargin.fitting.halves import fit_arguments, last_step, takes
from kmargin.fitting.pools import make_pool
from kmargin.progress import progress_bar
from kmargin.samples.read import refuse_blocks
from kmargin.selection import Fold, score_with
from kmargin.types import Indices, Vector


class Nested(NamedTuple):
    """A model with all that it is fitted to and scored by, checked."""

    model: Any
    X: Any
    y: np.ndarray
    weights: Vector | None
    groups: Any
    scorer: Callable[..., float]
    scoring: Any


class OuterResult(NamedTuple):
    """One outer fold."""

    score: float
    predicted: np.ndarray
    decisions: Vector | None  # of two classes, by which the test rows are ranked; None if the model has none
    chosen: dict[str, float]
    support: Indices


def read_nested(model: Any, X: Any, y: Any, weights: Any, groups: Any, scoring: Any) -> Nested:
    arguments.check_model(model, "honest_score")
    refuse_blocks(X, y, "honest_score")
    if groups is not None and np.shape(groups) != np.shape(y)[:1]:
        raise ValueError(
            f"groups={arguments.shortly(groups)} has shape {np.shape(groups)}, but there are {len(y)} rows. "
            "Give the group of each row, or None."
        )
    X, y, groups = indexable(X, column_or_1d(np.asarray(y)), groups)
    check_classification_targets(y)
    validate.check_classes(np.unique(y))
    if weights is not None:
        weights = validate.check_sample_weight(weights, len(y))
    fit_arguments(model, "sample_weight", weights)
    scoring = getattr(last_step(model), "scoring", None) if scoring is None else scoring
    scorer = check_scoring(model, scoring="accuracy" if scoring is None else scoring)
    groups = None if groups is None else np.asarray(groups)
    return Nested(model, X, y, weights, groups, scorer, scoring)


def run_outer_folds(jobs: Sequence[Any], n_jobs: int | None, verbose: int) -> Iterator[OuterResult]:
    with progress_bar("honest score", len(jobs), verbose) as bar:
        for result in make_pool(n_jobs)(delayed(_outer)(*job) for job in jobs):
            bar.advance()
            yield result


def _outer(data: Nested, fold: Fold) -> OuterResult:
    """One outer fold: everything from its training rows alone."""
    model, y = clone(data.model), data.y
    said = fit_arguments(model, "sample_weight", part(data.weights, fold.train))
    if data.groups is not None and takes(last_step(model), "groups"):
        said |= fit_arguments(model, "groups", data.groups[fold.train])
    model.fit(_safe_indexing(data.X, fold.train), y[fold.train], **said)
    X, weights = _safe_indexing(data.X, fold.test), part(data.weights, fold.test)
    score = score_with(data.scorer, model, X, y[fold.test], weights)
    last = last_step(model)
    chosen = {name: vars(last)[f"{name}_"] for name in ("k", "C") if f"{name}_" in vars(last)}
    support = getattr(last, "support_", np.empty(0, np.intp))
    return OuterResult(score, model.predict(X), _rank_rows(model, X), chosen, support)


def _rank_rows(model: Any, X: Any) -> Vector | None:
    """Decision values for the second of two classes, or its probabilities."""
    if len(getattr(model, "classes_", ())) != 2:
        return None
    method = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
    if method is None:
        return None
    decisions = np.asarray(method(X), dtype=float)
    return decisions if decisions.ndim == 1 else decisions[:, 1]


def part(weights: Vector | None, rows: Indices) -> Vector | None:
    return None if weights is None else weights[rows]
