"""Nested cross-validation: scores of a model that chooses its k and C from the training rows alone."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.summary import Facts, as_html
from kmargin.core.validation import GridEdgeWarning, RepeatedFeaturesWarning, count
from kmargin.data.samples.read import refuse_blocks
from kmargin.fitting.fit import make_pool
from kmargin.fitting.progress import progress_bar
from kmargin.fitting.subsampling import fit_arguments, last_step
from kmargin.model_selection.scores import (
    Estimate,
    Fold,
    Interval,
    RankedRows,
    area_under_roc,
    check_fold,
    effective_number,
    make_splitters,
    mean_interval,
    mean_of_rates,
    rate_interval,
    score_with,
)

ALPHA = 0.05  # a model is called better than guessing if its p-value is at most this
UNEQUAL = 1.1  # class sizes count as unequal if the largest is at least this times the mean class size
MEASURE_NAMES = {
    "roc_auc": "the area under the ROC curve",
    "balanced_accuracy": "the balanced accuracy",
    "permutations": "the permutation test",
}


class ScoredRows(NamedTuple):
    """Labelled rows, and the scorer by which models are scored on them."""

    X: Any
    y: np.ndarray
    weights: Vector | None
    groups: np.ndarray | None
    scorer: Callable[..., float]
    scoring: Any = None  # name of the scorer, or the scorer itself; None means the accuracy

    @property
    def is_accuracy(self) -> bool:
        return self.scoring is None or self.scoring == "accuracy"

    @property
    def row_weights(self) -> Vector:
        """The sample weights, all 1 if none were given."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    def shares(self, folds: Sequence[Fold]) -> Vector:
        """Weight of each fold in the mean score: for accuracy that of its test rows, otherwise equal."""
        totals = np.ones(len(folds))
        if self.is_accuracy:
            totals = np.array([self.row_weights[fold.test].sum() for fold in folds])
        return totals / totals.sum()

    def score(self, model: Any, X: Any, rows: Indices) -> float:
        """The score of a fitted model on the rows with indices `rows`; X has the features of these rows."""
        weights = None if self.weights is None else self.weights[rows]
        return score_with(self.scorer, model, X, self.y[rows], weights)

    def guess(self, fold: Fold) -> float:
        """The score, on the test rows of `fold`, of a model that only knows how frequent the classes are.

        The frequencies are those in all rows. Frequencies in the training rows alone would be unfair: a class
        that is more frequent in the training rows is less frequent in the test rows, so guessing one of two
        equally frequent classes would fail too often.
        """
        X = np.zeros((len(self.y), 1))
        dummy = DummyClassifier(strategy="prior").fit(X, self.y, self.weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return self.score(dummy, X[fold.test], fold.test)


class OuterResult(NamedTuple):
    """Results of the model fitted in an outer fold: score and predictions on the test rows, k, C, support."""

    score: float
    predicted: np.ndarray
    decisions: Matrix | None  # decision values, or else probabilities; None if the model has neither
    chosen: dict[str, Any]  # the k and C that the model chose; empty for a model that does not choose
    support: Indices  # indices of the features (or training points) used; empty without `support_`


def evaluate(rows: ScoredRows, fold: Fold, model: Any, X: Any = None) -> OuterResult:
    """Score a fitted model on the test rows of a fold; X has their features, None means those in `rows`."""
    X = _safe_indexing(rows.X, fold.test) if X is None else X
    last = last_step(model)
    decide = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
    return OuterResult(
        rows.score(model, X, fold.test),
        model.predict(X),
        None if decide is None else np.asarray(decide(X), dtype=float),
        {name: vars(last)[f"{name}_"] for name in ("k", "C") if f"{name}_" in vars(last)},
        getattr(last, "support_", np.empty(0, np.intp)),
    )


def split_outer(rows: ScoredRows, cv: Any, repeats: int, seed: int) -> list[Fold]:
    """Make the outer folds of all repeats. Raises ValueError for too few groups, or rows of a class."""
    y, groups = rows.y, rows.groups
    splitters = make_splitters(cv, repeats, seed, y, groups)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        validation.check_count("cv", cv, "outer folds", least=2)
        _check_enough(y, groups, int(cv))
    folds = []
    for splitter in splitters:
        folds += [Fold(train, test) for train, test in splitter.split(rows.X, y, groups)]
    classes = np.unique(y)
    for number, fold in enumerate(folds):
        check_fold(number, classes, np.isin(classes, y[fold.train]), len(fold.test), "Outer fold")
    return folds


def _check_enough(y: np.ndarray, groups: Any, n_folds: int) -> None:
    """Raise ValueError if a class has fewer than `n_folds` rows, or there are fewer than `n_folds` groups."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < n_folds:
        raise ValueError(
            f"Class {classes.tolist()[counts.argmin()]!r} has {counts.min()} rows, fewer than the {n_folds} "
            "outer folds. Use fewer folds, or give more rows of that class."
        )
    if groups is not None and len(np.unique(groups)) < n_folds:
        raise ValueError(
            f"The rows are in {count(len(np.unique(groups)), 'group')}, which cannot be split into {n_folds} "
            "folds. Use fewer folds, or give rows of more groups."
        )


def permute_labels(
    y: np.ndarray, groups: Any, rng: np.random.RandomState | np.random.Generator
) -> np.ndarray:
    """Permute the labels: among groups if each group has a single label; otherwise among groups with the same
    number of rows, as blocks, and within each group.
    """
    if groups is None:
        return rng.permutation(y)
    _, first, codes = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    if np.array_equal(y[first][codes], y):
        return np.asarray(rng.permutation(y[first])[codes])
    permuted, ordered, sizes = y.copy(), np.argsort(codes, kind="stable"), np.bincount(codes)
    for size in np.unique(sizes):
        # a line of `blocks` has the indices of the rows of one group
        blocks = ordered[sizes[codes[ordered]] == size].reshape(-1, size)
        permuted[blocks] = [rng.permutation(labels) for labels in y[rng.permutation(blocks)]]
    return permuted


def permutation_test(
    own: float,
    scores_of: Callable[[list[np.ndarray]], Iterable[float]],
    rows: ScoredRows,
    n_permutations: int,
    rng: np.random.RandomState | np.random.Generator,
) -> tuple[float, Vector]:
    """Return the p-value of `own`, the score of a model, and the scores for permuted labels.

    `scores_of` computes the scores for a list of label vectors. The p-value is the proportion of permutations
    that have a score of at least `own`; the original labels count as one of them.
    """
    labels = [permute_labels(rows.y, rows.groups, rng) for _ in range(n_permutations)]
    permuted = np.array(list(scores_of(labels)))
    return float((1 + np.count_nonzero(permuted >= own - 1e-12)) / (1 + n_permutations)), permuted


class Evidence(NamedTuple):
    """How a model compares with guessing: a measure, its estimate for the model, its value for guessing."""

    measure: str
    estimate: Estimate
    guessing: float

    @property
    def is_better(self) -> bool:
        """Whether the whole confidence interval lies above the value for guessing."""
        return self.guessing < self.estimate.interval.low


@dataclass(frozen=True, repr=False)
class HonestScore:
    """The score of a model by nested cross-validation, as returned by `honest_score`.

    Attributes
    ----------
    score : float
        The mean score over the outer folds; for the accuracy, the (weighted) proportion of all rows predicted
        correctly.
    interval : (low, high)
        Confidence interval of the score: Wilson's interval for the accuracy, DeLong's for "roc_auc" with two
        classes, otherwise Student's with the standard error of Nadeau and Bengio.
    guessing : float
        The score, on the same folds, of a model that knows only the class frequencies and so predicts the
        most frequent class; NaN for a custom scorer that cannot score such a model.
    scores : ndarray
        The score of each outer fold: all folds of the first repeat, then those of the second, and so on.
    chosen : list of dict
        For each outer fold, the `k` and `C` that its model chose; empty for a model that does not choose.
    supports : list of ndarray
        For each outer fold, the features (or training points) used; empty for models without `support_`.
    predicted : ndarray of shape (n_samples,)
        The class predicted for each row in the first repeat, by a model that was not fitted to this row. For
        rows in no test fold (see `tested`) it is the most frequent class.
    tested : ndarray of bool, of shape (n_samples,)
        Whether each row is in a test fold.
    evidence : Evidence
        The `measure` by which the model is compared with guessing, its `estimate` (`value` and `interval`),
        and its value for `guessing`. The measure is the score itself, except for the accuracy with classes of
        unequal size, where always predicting the largest class scores high. There it is the area under the
        ROC curve ("roc_auc"), or with more than two classes the balanced accuracy ("balanced_accuracy").
    p_value : float or None
        The proportion of permutations of the labels with a score of at least `score`, where the original
        labels count as one permutation. None without a permutation test.
    permuted : ndarray or None
        The score for each permutation of the labels. None without a permutation test.

    See Also
    --------
    honest_score : Computes this result.
    """

    score: float
    interval: Interval
    guessing: float
    scores: Vector
    chosen: list[dict[str, Any]]
    supports: list[Indices]
    predicted: np.ndarray
    tested: np.ndarray
    evidence: Evidence
    p_value: float | None = None
    permuted: Vector | None = None

    @property
    def n_permutations(self) -> int:
        """The number of permutations of the labels, 0 without a permutation test."""
        return 0 if self.permuted is None else len(self.permuted)

    @property
    def is_better_than_guessing(self) -> bool:
        """Whether the model is better than guessing, by the permutation test or else by `evidence`.

        With at least 19 permutations, the p-value must be at most 0.05, which fewer cannot reach. Otherwise
        the whole interval of ``evidence.estimate`` must be above ``evidence.guessing``.
        """
        if self.p_value is not None and self.judged_by == "permutations":
            return self.p_value <= ALPHA
        return self.evidence.is_better

    @property
    def judged_by(self) -> str:
        """What decides if the model is better than guessing: "permutations", or the name of a score."""
        can_decide = self.n_permutations > 0 and 1 / (1 + self.n_permutations) <= ALPHA
        return "permutations" if can_decide else self.evidence.measure

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

    The score by which k and C were chosen is too optimistic, because it is the best of many. Here k and C are
    chosen anew in each of several outer folds, from its training rows alone, and the model is scored on the
    held-out rows.

    Parameters
    ----------
    model : estimator
        Any classifier, such as ``SparseSVCCV()`` or a Pipeline that ends in one. It is cloned, so that it
        does not change.
    X, y : array-like
        Features and labels in memory: arrays, sparse matrices, or data frames.
    cv : int or splitter, default=5
        The outer folds. A number means stratified folds that are not shuffled and keep `groups` together, as
        in :class:`~kmargin.SparseSVCCV`. If the rows are sorted, give both this function and the model
        ``StratifiedKFold(5, shuffle=True, random_state=0)``.
    repeats : int, default=1
        How often the outer cross-validation is done; if more than once, each time with reshuffled rows.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer. None means the `scoring` of the model (in a Pipeline, of its last step) if it
        has one, otherwise the accuracy.
    permutations : int, default=0
        How often the whole procedure is repeated with permuted labels, to compute a p-value: the probability
        of a score at least as high if labels were independent of X. If each of the `groups` has a single
        label, labels are permuted among groups; otherwise among groups with the same number of rows, the
        labels of a group together, and among the rows of each group.
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
        The score with its interval, the score of guessing, and the k and C chosen in each outer fold.

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
    if not (validation.is_number(confidence, above=0) and confidence < 1):
        raise validation.invalid("confidence", confidence, "a probability", "Use a number such as 0.95.")
    validation.check_cv(cv)
    validation.check_scoring(scoring)
    validation.check_n_jobs(n_jobs)
    validation.check_verbose(verbose)
    rows = read_rows(model, X, y, sample_weight, groups, scoring)
    rng = validation.random_source(random_state)
    seed = validation.resolve_seed(rng)
    folds = split_outer(rows, cv, repeats, seed)
    results = list(_fit_folds(model, [(rows, fold) for fold in folds], n_jobs, verbose))
    found = summarise(rows, folds, results, confidence)
    if not permutations:
        return found

    def scores_of(labels: list[np.ndarray]) -> Iterator[float]:
        # Split rows anew for permuted labels: folds stratified by the original labels would lower the scores.
        labelled = [rows._replace(y=permuted) for permuted in labels]
        folds = [split_outer(each, cv, repeats, seed) for each in labelled]
        jobs = [(each, fold) for each, own in zip(labelled, folds, strict=True) for fold in own]
        results = _fit_folds(model, jobs, n_jobs, verbose, "permutations")
        for each, own in zip(labelled, folds, strict=True):
            yield float(np.array([next(results).score for _ in own]) @ each.shares(own))

    p_value, permuted = permutation_test(found.score, scores_of, rows, permutations, rng)
    return replace(found, p_value=p_value, permuted=permuted)


def read_rows(model: Any, X: Any, y: Any, weights: Any, groups: Any, scoring: Any) -> ScoredRows:
    """Check the arguments of `honest_score`, and return the rows with their labels and the scorer."""
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
    return ScoredRows(X, y, weights, None if groups is None else np.asarray(groups), scorer, scoring)


def _fit_folds(
    model: Any, jobs: Sequence[Any], n_jobs: int | None, verbose: int, label: str = "honest score"
) -> Iterator[OuterResult]:
    """Fit and score a clone of `model` for each pair (rows, fold) in `jobs`; yield results in this order."""
    with progress_bar(label, len(jobs), verbose) as bar, warnings.catch_warnings():
        for category in (GridEdgeWarning, RepeatedFeaturesWarning):  # otherwise every fold would repeat them
            warnings.simplefilter("ignore", category)
        for result in make_pool(n_jobs)(delayed(_fit_fold)(model, *job) for job in jobs):
            bar.advance()
            yield result


def _fit_fold(model: Any, rows: ScoredRows, fold: Fold) -> OuterResult:
    """Fit a clone of `model` to the training rows of an outer fold, and score it on the test rows."""
    model, train = clone(model), fold.train
    arguments: dict[str, Any] = {}
    if rows.weights is not None:
        arguments |= fit_arguments(model, "sample_weight", rows.weights[train])
    if rows.groups is not None and has_fit_parameter(last_step(model), "groups"):
        arguments |= fit_arguments(model, "groups", rows.groups[train])
    model.fit(_safe_indexing(rows.X, train), rows.y[train], **arguments)
    return evaluate(rows, fold, model)


def summarise(
    rows: ScoredRows, folds: Sequence[Fold], results: Sequence[OuterResult], confidence: float = 0.95
) -> HonestScore:
    """Combine the results of outer folds: one score, its confidence interval, a comparison with guessing."""
    scores, shares = np.array([result.score for result in results]), rows.shares(folds)
    score = float(scores @ shares)
    classes, counts = np.unique(rows.y, return_counts=True)
    predicted = np.full(len(rows.y), classes[counts.argmax()], dtype=rows.y.dtype)
    tested = np.zeros(len(rows.y), dtype=bool)
    # repeats predict the same rows: go backwards, so that the predictions of the first repeat stay
    for fold, result in zip(reversed(folds), reversed(results), strict=True):
        predicted[fold.test], tested[fold.test] = result.predicted, True
    ranked = [
        RankedRows(fold.test, result.decisions if result.decisions.ndim == 1 else result.decisions[:, 1])
        for fold, result in zip(folds, results, strict=True)
        if len(classes) == 2 and result.decisions is not None
    ] or None
    n_rows = effective_number(rows.weights, int(tested.sum()), rows.groups)
    if rows.scoring == "roc_auc" and ranked is not None:
        area = area_under_roc(ranked, rows.y == classes[1], rows.row_weights, rows.groups, confidence)
        interval = area.interval
    elif rows.is_accuracy:
        interval = rate_interval(score, n_rows, confidence)
    else:
        test_ratio = float(np.mean([len(fold.test) / len(fold.train) for fold in folds]))
        interval = mean_interval(scores, test_ratio, n_rows, confidence)
    try:
        guessing = float(shares @ [rows.guess(fold) for fold in folds])
    except (AttributeError, TypeError, ValueError):  # the scorer cannot score a DummyClassifier
        guessing = np.nan
    name = "accuracy" if rows.is_accuracy else rows.scoring if isinstance(rows.scoring, str) else "score"
    evidence = Evidence(name, Estimate(score, interval), guessing)
    if tested.all():
        evidence = weigh_evidence(evidence, rows, predicted, ranked, confidence)
    return HonestScore(
        score=score,
        interval=interval,
        guessing=guessing,
        scores=scores,
        chosen=[result.chosen for result in results],
        supports=[result.support for result in results],
        predicted=predicted,
        tested=tested,
        evidence=evidence,
    )


def weigh_evidence(
    own: Evidence,
    rows: ScoredRows,
    predicted: np.ndarray,
    ranked: Sequence[RankedRows] | None,
    confidence: float,
) -> Evidence:
    """Return the measure by which to compare a model with guessing: usually its score, which is `own`.

    If the score is the accuracy and classes have unequal sizes, the measure is the area under the ROC curve
    for two classes; for more classes, or without decision values (`ranked` is None), the balanced accuracy.
    """
    weights, groups = rows.row_weights, rows.groups
    classes, codes = np.unique(rows.y, return_inverse=True)
    totals = np.bincount(codes, weights=weights)
    if own.measure != "accuracy" or totals.max() * len(classes) < UNEQUAL * totals.sum():
        return own
    if len(classes) == 2 and ranked is not None:
        return Evidence("roc_auc", area_under_roc(ranked, codes == 1, weights, groups, confidence), 0.5)
    by_class = [np.flatnonzero(codes == code) for code in range(len(classes))]
    is_right = predicted == rows.y
    rates = np.array([np.average(is_right[own], weights=weights[own]) for own in by_class])
    ns = [effective_number(weights[r], len(r), None if groups is None else groups[r]) for r in by_class]
    return Evidence("balanced_accuracy", mean_of_rates(rates, np.array(ns), confidence), 1 / len(classes))
