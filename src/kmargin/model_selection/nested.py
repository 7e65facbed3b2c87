"""Nested cross-validation: the score of a whole procedure, the choice of k and C included."""

import numbers
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from kmargin.core import validation
from kmargin.core.arrays import Indices, Vector
from kmargin.core.summary import Facts, as_html
from kmargin.core.validation import GridEdgeWarning, RepeatedFeaturesWarning, count
from kmargin.data.samples.read import refuse_blocks
from kmargin.fitting.progress import progress_bar
from kmargin.fitting.subsampling import fit_arguments, last_step, takes
from kmargin.fitting.tasks import make_pool
from kmargin.model_selection.scores import (
    Estimate,
    Fold,
    Interval,
    RankedRows,
    area_under_roc,
    count_tested,
    effective_number,
    make_splitters,
    mean_interval,
    mean_of_rates,
    rate_interval,
    score_with,
)


def make_outer_folds(X: Any, y: np.ndarray, groups: Any, cv: Any, repeats: int, seed: int) -> list[Fold]:
    """Raises ValueError where a class, or the groups, are too few for the folds."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        validation.check_count("cv", cv, "outer folds", least=2)
        _check_enough(y, groups, int(cv))
    folds = []
    for splitter in make_splitters(cv, repeats, seed, y, groups):
        folds += [Fold(train, test) for train, test in splitter.split(X, y, groups)]
    classes = np.unique(y)
    for number, fold in enumerate(folds):
        missing = classes[~np.isin(classes, y[fold.train])].tolist()
        if missing:
            raise ValueError(
                f"Outer fold {number} has no training row of class {missing[0]!r}. "
                "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold."
            )
    return folds


def _check_enough(y: np.ndarray, groups: Any, n_folds: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < n_folds:
        raise ValueError(
            f"Class {classes[counts.argmin()].item()!r} has {counts.min()} rows, fewer than the {n_folds} "
            f"outer folds. Use cv={max(2, int(counts.min()))}"
            + (", or give more rows of that class." if counts.min() >= 2 else " and more rows of that class.")
        )
    if groups is not None and len(np.unique(groups)) < n_folds:
        n_groups = len(np.unique(groups))
        use = f"Use at most {n_groups} folds." if n_groups > 1 else "Give rows of more groups, or no groups."
        raise ValueError(
            f"The rows are in {count(n_groups, 'group')}, which cannot be split into {n_folds} folds. {use}"
        )


def permute_labels(
    y: np.ndarray, groups: Any, rng: np.random.RandomState | np.random.Generator
) -> np.ndarray:
    """Where groups have one label each, groups are permuted, else rows within them."""
    if groups is None:
        return rng.permutation(y)
    _, first, codes = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    if np.array_equal(y[first][codes], y):
        return np.asarray(rng.permutation(y[first])[codes])
    permuted = y.copy()
    for code in range(len(first)):
        permuted[codes == code] = rng.permutation(y[codes == code])
    return permuted


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
    validation.check_model(model, "honest_score")
    refuse_blocks(X, y, "honest_score")
    if groups is not None and np.shape(groups) != np.shape(y)[:1]:
        raise ValueError(
            f"groups={validation.shortly(groups)} has shape {np.shape(groups)}, but there are {len(y)} rows. "
            "Give the group of each row, or None."
        )
    X, y, groups = indexable(X, column_or_1d(np.asarray(y)), groups)
    check_classification_targets(y)
    validation.check_classes(np.unique(y))
    if weights is not None:
        weights = validation.check_sample_weight(weights, len(y))
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


ALPHA = 0.05  # p-values up to this are called better than guessing
UNEQUAL = 1.1  # classes are unequal where the largest has this times its equal share of the rows, or more
MEASURE_NAMES = {
    "roc_auc": "the area under the ROC curve",
    "balanced_accuracy": "the balanced accuracy",
    "permutations": "the permutation test",
}


class Evidence(NamedTuple):
    """The measure by which a model is compared with guessing: its estimate, and what guessing reaches."""

    measure: str
    estimate: Estimate
    guessing: float

    @property
    def is_better(self) -> bool:
        """Whether the whole interval lies above guessing."""
        return self.guessing < self.estimate.interval.low


@dataclass(frozen=True, repr=False)
class HonestScore:
    """The result of `honest_score`.

    Attributes
    ----------
    score : float
        The mean over the outer folds; for the accuracy, the (weighted) proportion of all rows predicted
        correctly.
    interval : (low, high)
        Confidence interval of the score: Wilson's interval for the accuracy, DeLong's for "roc_auc" with two
        classes, otherwise Student's with the standard error of Nadeau and Bengio.
    guessing : float
        The score of always predicting the most frequent class, on the same folds; NaN for a custom scorer
        that cannot score such predictions.
    scores : ndarray
        One for each outer fold, the repeats one after the other.
    chosen : list of dict
        For each outer fold, the `k` and `C` that its model chose, if it has them.
    supports : list of ndarray
        For each outer fold, the features (or points) of its model, if it has them.
    predicted : ndarray of shape (n_samples,)
        The class predicted for each row by a model fitted without it, in the first repeat. A row that is in
        no test fold has the most frequent class and is not ``tested``.
    tested : ndarray of bool, of shape (n_samples,)
        Which rows are in a test fold.
    evidence : Evidence
        The `measure` by which the model is compared with guessing, its `estimate` (`value` and `interval`),
        and the value of `guessing`. This is the score itself, except for the accuracy with classes of unequal
        size, where the largest class is hard to beat: there it is the area under the ROC curve ("roc_auc"),
        or with more than two classes the balanced accuracy ("balanced_accuracy").
    p_value : float or None
        The proportion of permutations, including the original labels, with a score at least as high.
    permuted : ndarray or None
        The scores under permuted labels.

    See Also
    --------
    honest_score : Computes it.
    """

    score: float
    interval: Interval
    guessing: float
    scores: Vector
    chosen: list[dict[str, float]]
    supports: list[Indices]
    predicted: np.ndarray
    tested: np.ndarray
    evidence: Evidence
    p_value: float | None = None
    permuted: Vector | None = None

    @property
    def is_better_than_guessing(self) -> bool:
        """Whether the p-value is at most 0.05, or without a permutation test, `evidence` above guessing.

        Fewer than 19 permutations cannot give a p-value of 0.05, and are ignored.
        """
        n_permutations = 0 if self.permuted is None else len(self.permuted)
        return is_better(self.evidence, self.p_value, n_permutations)

    @property
    def judged_by(self) -> str:
        """The measure used by `is_better_than_guessing`: "permutations", or that of `evidence`."""
        n_permutations = 0 if self.permuted is None else len(self.permuted)
        return judged_by(self.evidence, n_permutations)

    def __repr__(self) -> str:
        return f"<HonestScore {self}>"

    def _repr_html_(self) -> str:
        names = sorted({name for chosen in self.chosen for name in chosen}, reverse=True)
        rows = [
            [f"{at}", f"{score:.3f}", *(f"{chosen.get(name, np.nan):g}" for name in names)]
            for at, (score, chosen) in enumerate(zip(self.scores, self.chosen, strict=True))
        ]
        return as_html(type(self).__name__, Facts(str(self), (), ["outer fold", "score", *names], rows))

    def __str__(self) -> str:
        text = f"{self.score:.3f} ({self.interval.low:.3f} to {self.interval.high:.3f})"
        text += "" if np.isnan(self.guessing) else f", guessing {self.guessing:.3f}"
        measure, (value, interval), _ = self.evidence
        if measure in MEASURE_NAMES and not self.guessing < self.interval.low:
            name = MEASURE_NAMES[measure].removeprefix("the ")
            text += f", {name} {value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
        if self.p_value is not None:
            text += f", p = {self.p_value:.3g}"
        is_doubtful = not (self.is_better_than_guessing or np.isnan(self.guessing))
        by = f" by {MEASURE_NAMES[self.judged_by]}" if self.judged_by in MEASURE_NAMES else ""
        return text + (f": not clearly better than guessing{by}" if is_doubtful else "")


def honest_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    repeats: int = 1,
    scoring: Any = None,
    permutations: int = 0,
    confidence: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> HonestScore:
    """Evaluate a model by nested cross-validation.

    The score by which k and C were chosen is too optimistic, because it is the best of many. Here the whole
    choice is repeated in each of several outer folds, from its training rows alone, and scored on the
    held-out rows.

    Parameters
    ----------
    model : estimator
        Such as ``SparseSVCCV()``, or a Pipeline that ends in one; any classifier is accepted. It is cloned
        and not changed.
    X, y : array-like
        In memory: arrays, sparse matrices, frames.
    cv : int or splitter, default=5
        The outer folds. A number means stratified folds in the order of the rows that keep `groups` together,
        the same as in :class:`~kmargin.SparseSVCCV`. For sorted rows, give both
        ``StratifiedKFold(5, shuffle=True, random_state=0)``.
    repeats : int, default=1
        How often the outer cross-validation is repeated; more than once, rows are reshuffled.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None means the model's own (in a Pipeline, that of its last step) if it has
        one, otherwise the accuracy.
    permutations : int, default=0
        Number of repetitions of the whole procedure with permuted labels, for a p-value: how often are labels
        that are independent of X predicted as well? If each of the `groups` has a single label, labels are
        permuted between groups, otherwise between the rows of a group.
    confidence : float, default=0.95
        Confidence level of the interval.
    sample_weight : array-like or None
        Passed to `fit`, and to the scorer if it accepts weights.
    groups : array-like or None
        Rows of one group (a patient, say) stay together in every outer fold. Groups are passed to `fit` if it
        accepts them, and then stay together in the inner folds of ``SparseSVCCV`` too. Intervals count groups
        instead of rows.
    n_jobs : int or None
        Number of outer folds evaluated in parallel. The result is the same for any number.
    random_state : int or RandomState, default=0
        Shuffles the rows if there are several repeats, and permutes the labels.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    HonestScore
        The score with its interval, the baseline, and what each outer fold chose.

    Examples
    --------
    >>> from kmargin import SparseSVCCV, honest_score
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> found = honest_score(SparseSVCCV(ks=[20, 5, 2, 1]), X, y)
    >>> print(found)
    0.990 (0.964 to 0.997), guessing 0.515
    """
    validation.check_count("permutations", permutations, "times to permute the labels", least=0)
    validation.check_count("repeats", repeats, "times to deal the rows into folds")
    if not isinstance(confidence, numbers.Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} is not a probability. Use a number such as 0.95.")
    validation.check_cv(cv)
    validation.check_scoring(scoring)
    validation.check_n_jobs(n_jobs)
    validation.check_verbose(verbose)
    data = read_nested(model, X, y, sample_weight, groups, scoring)
    rng = validation.random_source(random_state)
    seed = validation.resolve_seed(rng)
    # Each labelling has folds of its own: those that are stratified for others put it at a disadvantage.
    labelled = [data] + [
        data._replace(y=permute_labels(data.y, data.groups, rng)) for _ in range(permutations)
    ]
    folds = [make_outer_folds(each.X, each.y, each.groups, cv, repeats, seed) for each in labelled]
    guessing = _guesses(data, folds[0])
    jobs = [(each, fold) for each, of in zip(labelled, folds, strict=True) for fold in of]
    with warnings.catch_warnings():
        for of_each_fold in (GridEdgeWarning, RepeatedFeaturesWarning):
            warnings.simplefilter("ignore", of_each_fold)
        results = list(run_outer_folds(jobs, n_jobs, verbose))
    n_folds = len(folds[0])
    found = _summarise(data, folds[0], results[:n_folds], guessing, confidence)
    if not permutations:
        return found
    of_each = np.array([result.score for result in results]).reshape(1 + permutations, n_folds)
    means = np.array([row @ _shares(data, of) for row, of in zip(of_each, folds, strict=True)])
    return replace(found, p_value=rank_among(means[0], means[1:]), permuted=means[1:])


def rank_among(score: float, permuted: Vector) -> float:
    """The p-value of a score: its own place among those under permuted labels, of which it is one."""
    return float((1 + np.count_nonzero(permuted >= score - 1e-12)) / (1 + len(permuted)))


def judged_by(evidence: Evidence, n_permutations: int) -> str:
    """The measure that decides whether a model is better than guessing."""
    can_tell = n_permutations > 0 and 1 / (1 + n_permutations) <= ALPHA
    return "permutations" if can_tell else evidence.measure


def is_better(evidence: Evidence, p_value: float | None, n_permutations: int) -> bool:
    """Whether a model is clearly better than guessing, by the measure that decides."""
    if p_value is not None and judged_by(evidence, n_permutations) == "permutations":
        return p_value <= ALPHA
    return evidence.is_better


def weigh_evidence(
    own: Evidence,
    y: np.ndarray,
    predicted: np.ndarray,
    ranked: Sequence[RankedRows] | None,
    weights: Vector | None,
    groups: np.ndarray | None,
    confidence: float = 0.95,
) -> Evidence:
    """The measure to compare a model with guessing by: its own, unless that is the accuracy and classes are
    of unequal size.

    Then it is the area under the ROC curve of two classes, or the balanced accuracy of more, or of models
    that rank no rows (`ranked` is None).
    """
    weights = np.ones(len(y)) if weights is None else weights
    classes, codes = np.unique(y, return_inverse=True)
    totals = np.bincount(codes, weights=weights)
    if own.measure != "accuracy" or totals.max() * len(classes) < UNEQUAL * totals.sum():
        return own
    if len(classes) == 2 and ranked is not None:
        area = area_under_roc(ranked, codes == 1, weights, groups, confidence)
        return Evidence("roc_auc", area, 0.5)
    rows = [np.flatnonzero(codes == code) for code in range(len(classes))]
    rates = np.array([np.average(predicted[own] == y[own], weights=weights[own]) for own in rows])
    ns = [effective_number(weights[r], len(r), None if groups is None else groups[r]) for r in rows]
    return Evidence("balanced_accuracy", mean_of_rates(rates, np.array(ns), confidence), 1 / len(classes))


def interval_of(
    scores: Vector, mean: float, n_rows: float, test_ratio: float, is_rate: bool, confidence: float = 0.95
) -> Interval:
    """Where a mean over folds lies: of a rate of rows by Wilson, of another score by Student."""
    if is_rate:
        return rate_interval(mean, n_rows, confidence)
    return mean_interval(scores, test_ratio, n_rows, confidence)


def guess(scorer: Callable[..., float], y: np.ndarray, weights: Vector | None, fold: Fold) -> float:
    """The score of what knows the labels' frequencies, of all rows, and nothing else.

    A class that is common among the training rows is less so among the test rows: by these alone a guess of
    two classes of one size would be right less often than every other time.
    """
    rows = np.zeros((len(y), 1))
    dummy = DummyClassifier(strategy="prior").fit(rows, y, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return score_with(scorer, dummy, rows[fold.test], y[fold.test], part(weights, fold.test))


def _is_accuracy(data: Nested) -> bool:
    return data.scoring is None or data.scoring == "accuracy"


def _guesses(data: Nested, folds: Sequence[Fold]) -> Vector:
    """What guessing has in each fold; not a number where the scorer asks for more than a guess can answer."""
    try:
        return np.array([guess(data.scorer, data.y, data.weights, fold) for fold in folds])
    except (AttributeError, TypeError, ValueError):
        return np.full(len(folds), np.nan)


def _weights(data: Nested) -> Vector:
    return np.ones(len(data.y)) if data.weights is None else data.weights


def _shares(data: Nested, folds: Sequence[Fold]) -> Vector:
    """How much each fold counts: for the accuracy by the weight of its test rows, else all the same."""
    if not _is_accuracy(data):
        return np.full(len(folds), 1 / len(folds))
    weights = _weights(data)
    totals = np.array([weights[fold.test].sum() for fold in folds])
    return totals / totals.sum()


def _summarise(
    data: Nested,
    folds: Sequence[Fold],
    results: Sequence[OuterResult],
    guessing: Vector,
    confidence: float,
) -> HonestScore:
    scores, shares = np.array([result.score for result in results]), _shares(data, folds)
    score, (n_tested, test_ratio) = float(scores @ shares), count_tested(folds)
    n_rows = effective_number(data.weights, int(n_tested), data.groups)
    classes, counts = np.unique(data.y, return_counts=True)
    predicted = np.full(len(data.y), classes[counts.argmax()], dtype=data.y.dtype)
    tested = np.zeros(len(data.y), dtype=bool)
    for fold, result in zip(reversed(folds), reversed(results), strict=True):  # the first repeat comes last
        predicted[fold.test], tested[fold.test] = result.predicted, True
    pairs = [(fold.test, result.decisions) for fold, result in zip(folds, results, strict=True)]
    ranked = [RankedRows(rows, decisions) for rows, decisions in pairs if decisions is not None] or None
    interval = interval_of(scores, score, n_rows, test_ratio, _is_accuracy(data), confidence)
    if data.scoring == "roc_auc" and ranked is not None:
        weights, groups = _weights(data), data.groups
        interval = area_under_roc(ranked, data.y == classes[1], weights, groups, confidence).interval
    guessed = float(shares @ guessing)
    name = "accuracy" if _is_accuracy(data) else data.scoring if isinstance(data.scoring, str) else "score"
    own = Evidence(name, Estimate(score, interval), guessed)
    evidence = own
    if tested.all():
        evidence = weigh_evidence(own, data.y, predicted, ranked, data.weights, data.groups, confidence)
    return HonestScore(
        score=score,
        interval=interval,
        guessing=guessed,
        scores=scores,
        chosen=[result.chosen for result in results],
        supports=[result.support for result in results],
        predicted=predicted,
        tested=tested,
        evidence=evidence,
    )
