"""Labelled samples in memory, and their folds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from kmargin.core import validation
from kmargin.core.arrays import HOST, Indices, Matrix, Vector, to_host
from kmargin.core.design import Design
from kmargin.core.labels import (
    Pair,
    check_finite_weight,
    check_weight_range,
    choose_classes,
    combine_decisions,
    label_rows,
    normalize,
)
from kmargin.core.problem import ArrayProblem
from kmargin.core.scaling import Scaling, unit_variance_scaling
from kmargin.data.design import UncopiedRows, make_design, n_bytes
from kmargin.data.samples import Designs, Given, ModelAt, Samples
from kmargin.model_selection.calibration import Calibration, UnseenRows, fit_calibration
from kmargin.model_selection.scores import Fold, effective_number, make_folds, make_splitters, score_with


class ArrayFolds:
    """Folds of arrays in memory or on a device: their training samples, their scores, and calibrations.

    Parameters
    ----------
    blueprint : LinearBlueprint or KernelBlueprint
        All parameters of the model except k and C.
    samples : ArraySamples or DeviceSamples
        The rows of all folds.
    known : ArraySamples
        The same rows with their classes and weights in memory, even if `samples` are on a device.
    scorer : callable or None
        A scikit-learn scorer; None means accuracy.
    weighted : bool
        Whether scores are weighted by the sample weights.
    groups : ndarray or None
        The group of each row of the user's X; with groups, standard errors count groups instead of rows.
    prepare : function or None
        Takes the training rows of a fold and their weights; returns a function that transforms rows.
    """

    def __init__(
        self,
        blueprint: Any,
        samples: Any,
        known: Any,
        folds: list[Fold],
        scorer: Any,
        *,
        weighted: bool,
        groups: np.ndarray | None = None,
        prepare: Any = None,
    ) -> None:
        self.blueprint, self.samples, self.known, self.folds = blueprint, samples, known, folds
        self.scorer, self.weighted, self.prepare = scorer, weighted, prepare
        self.multi_class: str = blueprint.multi_class
        self._prepared: dict[int, Any] = {}  # what `prepare` returned for each fold, by its index
        tested = np.unique(np.concatenate([fold.test for fold in folds]))
        # how many distinct rows, or groups, the folds test; an effective number if there are weights
        self.n_tested = effective_number(
            known.repeats[tested] if weighted else None,
            len(tested),
            None if groups is None else groups[known.kept[tested]],
        )
        self.test_ratio = float(np.mean([len(fold.test) / len(fold.train) for fold in folds]))

    def __len__(self) -> int:
        return len(self.folds)

    def parts(self) -> Iterator[Any]:
        """Yield the training samples of each fold, transformed by `prepare` if there is one."""
        for number, fold in enumerate(self.folds):
            part = self.blueprint.part(self.samples, fold.train)
            if self.prepare is not None:
                X = part.X.copied() if isinstance(part.X, UncopiedRows) else part.X
                self._prepared[number] = self.prepare(X, part.repeats)
                part = replace(part, X=self._prepared[number](X))
            yield part

    def inputs(self, number: int) -> Any:
        """Return the test rows of fold `number`, transformed by `prepare` if there is one."""
        fold = self.folds[number]
        X = self.blueprint.inputs(self.samples, fold.test, fold.train)
        return X if self.prepare is None else self._prepared[number](X)

    def score(self, number: int, fit: Any, shape: tuple[int, int], model_at: ModelAt) -> Matrix:
        """Return the scores of a fold's models on its test rows; `shape` is (number of Cs, number of ks).

        `fit` has the models' decision functions; `model_at` makes an estimator if the scorer needs one.
        """
        rows, known, X = self.folds[number].test, self.known, self.inputs(number)
        y, labels = known.classes[known.codes[rows]], fit.paths[0].classes
        weights = normalize(known.repeats[rows])[0] if self.weighted else None
        scores = np.empty(shape)
        for row, column in np.ndindex(shape):
            if self.scorer is None:  # accuracy as in scikit-learn, but without a check of X for each model
                combined = combine_decisions(
                    fit.decisions(row, column)(X), len(known.classes), self.multi_class
                )
                is_right = to_host(choose_classes(combined, labels)) == y
                scores[row, column] = np.average(is_right, weights=weights)
            else:
                model = model_at(row, column)
                model = model if self.samples.space is HOST else HostPredictions(model)
                scores[row, column] = score_with(self.scorer, model, X, y, weights)
        return scores

    def calibrate(self, decisions: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """Return maps from decision values to probabilities, fitted to the test rows of the folds.

        There is one map for each entry of `left_out`: the index of a fold whose test rows it does not use, or
        None to use all folds. `decisions` has the decision function of each fold. A row that several folds
        test is used several times; its weight is divided among these uses.
        """
        folds, known = self.folds, self.known
        by_fold = [to_host(decide(self.inputs(number))) for number, decide in enumerate(decisions)]
        values = np.concatenate(by_fold)
        tested = np.concatenate([fold.test for fold in folds])
        calibrations = []
        for number in left_out:
            may_teach = np.ones(len(known.codes), bool)
            if number is not None:
                may_teach[folds[number].test] = False
            at = np.flatnonzero(may_teach[tested])
            rows = tested[at]
            weights = known.repeats[rows] / np.bincount(rows, minlength=1)[rows]
            unseen = UnseenRows(values[at], known.codes[rows], weights)
            calibrations.append(fit_calibration(unseen, known.classes, self.multi_class))
        return calibrations


class HostPredictions:
    """A fitted model whose predictions are copied to NumPy arrays, which any scorer accepts."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = to_host(model.classes_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def decision_function(self, X: Any) -> Any:
        return to_host(self.model.decision_function(X))

    def predict(self, X: Any) -> Any:
        return to_host(self.model.predict(X))

    def predict_proba(self, X: Any) -> Any:
        return to_host(self.model.predict_proba(X))


def split_rows(
    model: Any, blueprint: Any, samples: Any, known: Any, given: Given, weighted: bool
) -> ArrayFolds:
    """Make the folds that the parameters `cv`, `repeats` and `random_state` of an estimator define.

    `given` has the X, y and groups to be split. For the other arguments see `ArrayFolds`.
    """
    X, y, groups = given
    y, groups = to_host(y), None if groups is None else np.asarray(to_host(groups))
    splitters = make_splitters(model.cv, model.repeats, model._fold_seed(), y, groups)
    folds = [f for each in splitters for f in make_folds(each, known, _num_samples(X), X, y, groups)]
    if not folds:
        raise ValueError(
            f"cv={model.cv!r} does not define folds. Use an integer >= 2, a splitter, or a list of splits."
        )
    is_accuracy = model.scoring is None or model.scoring == "accuracy"
    scorer = None if is_accuracy else check_scoring(model, scoring=model.scoring)
    return ArrayFolds(blueprint, samples, known, folds, scorer, weighted=weighted, groups=groups)


# Values of `dtype.kind` (booleans, integers, text) for which y is taken as class labels without a check.
PLAIN = "biuU"


@dataclass(frozen=True)
class ArraySamples(Samples):
    """Labelled samples in memory, without the rows of weight 0."""

    X: Any  # an array, or a CSR matrix
    codes: Indices  # the class of each row, from 0 to n_classes - 1
    classes: np.ndarray
    repeats: Vector  # sample weights: a row of weight 2 counts like two rows
    weights: Vector  # sample weight times class weight; positive
    kept: Indices  # the index of each row in the X that the user gave

    def restricted_to(self, rows: Indices) -> "ArraySamples":
        """Return a copy that has only the samples with the indices `rows`."""
        return replace(
            self,
            X=self.X[rows],
            codes=self.codes[rows],
            repeats=self.repeats[rows],
            weights=self.weights[rows],
            kept=self.kept[rows],
        )

    def designs(self, fit_intercept: bool, standardize: bool = False) -> "ArrayDesigns":
        return ArrayDesigns(self, fit_intercept, standardize)

    @cached_property
    def repeated_columns(self) -> Indices:
        return make_design(self.X).repeated_columns

    def unit_variance_scaling(self, fit_intercept: bool) -> Scaling:
        counts = normalize(self.repeats)[0]
        return unit_variance_scaling(
            make_design(self.X), lambda design: design.moments(counts, counts), fit_intercept
        )

    def to_fit(self, rows: Indices) -> "ArraySamples":
        """Select rows as training samples; X is copied only when a binary problem of them is made."""
        return replace(self, X=UncopiedRows(self.X)).restricted_to(rows)

    def to_decide(self, rows: Indices) -> Any:
        """Return the rows of X with the indices `rows`, for a prediction."""
        return self.X[rows]

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> ArrayFolds:
        return split_rows(model, blueprint, self, self, given, weighted)


class ArrayDesigns(Designs):
    """Makes binary problems of samples in memory, with standardised columns if `standardize` is True.

    With more than two classes, all one-versus-rest problems share one design matrix and its SVD. Columns are
    standardised by the mean and standard deviation of all samples, weighted by the sample weights.
    """

    def __init__(self, samples: ArraySamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.X, self.codes, self.weights = samples.X, samples.codes, samples.weights
        self.dtype, self.fit_intercept = samples.X.dtype, fit_intercept
        self.scaling = samples.unit_variance_scaling(fit_intercept) if standardize else None
        self.whole: Design | None = None  # the design of all rows, once it was made for one versus rest

    def problem(self, pair: Pair, Cs: Sequence[float]) -> tuple[ArrayProblem, list[float]]:
        rows, y = label_rows(self.codes, pair)
        weights, total_weight = normalize(self.weights if rows is None else self.weights[rows])
        lams = [validation.ridge(C, total_weight) for C in Cs]
        return ArrayProblem(self.design(pair, rows), y, weights, lams[0]), lams

    def design(self, pair: Pair, rows: Indices | None) -> Design:
        """Return the matrix X of a binary problem, as a `Design`; its rows are `rows` (None means all)."""
        if rows is None and self.whole is not None:
            return self.whole
        design = make_design(self.X if rows is None else self.X[rows], self.fit_intercept)
        if self.scaling is not None:
            design = design.standardized(self.scaling.centers, self.scaling.scales)
        if pair.negative is None:
            self.whole = design
        return design

    def __sizeof__(self) -> int:
        """The size of X, for joblib's dask backend, which sends large objects to workers only once."""
        return n_bytes(self.X)


def read_samples(X: Any, y: Any, sample_weight: Any, class_weight: Any) -> ArraySamples:
    """Check y and the weights, encode y, leave out rows of weight 0; X must have been checked before."""
    y = np.asarray(y)
    y = y if y.ndim == 1 else column_or_1d(y, warn=True)
    are_labels = y.dtype.kind in PLAIN
    if not are_labels:
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if are_labels and 2 * len(classes) > len(y):
        check_classification_targets(y)  # warns if there are more classes than half the rows
    repeats = weights = validation.check_sample_weight(sample_weight, len(y))
    if class_weight is not None:
        with np.errstate(over="ignore"):
            weights = repeats * validation.class_factors(class_weight, classes, np.bincount(codes))[codes]
        check_finite_weight(float(weights.max()))
    kept = np.flatnonzero(weights)
    if weights.min() < weights.max():
        check_weight_range(weights)
    validation.check_classes(classes, np.bincount(codes, weights=weights, minlength=len(classes)))
    if len(kept) < len(y):
        X, codes, repeats, weights = X[kept], codes[kept], repeats[kept], weights[kept]
    return ArraySamples(X, codes, classes, repeats, weights, kept)
