"""`SparseSVCCV` and `KernelSparseSVCCV` choose k and C by cross-validation, and have probabilities."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError

from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.labels import choose_classes, combine_decisions
from kmargin.core.units import Units
from kmargin.core.validation import GridEdgeWarning, warn_caller
from kmargin.data.samples.array import ArrayFolds
from kmargin.data.samples.blocks import FoldsInBlocks
from kmargin.data.samples.read import read_for_folds
from kmargin.estimators.base import MarginClassifier
from kmargin.estimators.kernel import KernelClassifier
from kmargin.estimators.linear import LinearClassifier
from kmargin.fitting.decisions import KernelDecisions
from kmargin.fitting.fit import GridFit, Procedure, fit_parts, refit
from kmargin.fitting.spec import Blueprint, Decisions
from kmargin.model_selection.calibration import Calibration, NotTested
from kmargin.model_selection.scores import SELECTIONS, ScoreTable


class NotYetCalibrated(NotFittedError):
    """Raised if a scorer asks the model of one fold for probabilities before the other folds are fitted."""


class FoldModel(ClassifierMixin, BaseEstimator):
    """The model of one fold for one C and k, as a scikit-learn classifier that scorers accept."""

    calibration_: Calibration
    k_: int
    C_: float

    def __init__(self, decisions: Decisions, classes: np.ndarray, multi_class: str) -> None:
        self.decisions = decisions
        self.classes = self.classes_ = classes
        self.multi_class = multi_class

    @property
    def support_(self) -> Indices:
        """The features with a nonzero coefficient; with a kernel, the indices of the training points kept."""
        if isinstance(self.decisions, KernelDecisions):
            return self.decisions.inputs.columns
        return np.flatnonzero(self.coef_.any(axis=0))

    @property
    def coef_(self) -> Matrix:
        return self.decisions.coef

    @property
    def intercept_(self) -> Vector:
        return np.asarray(self.decisions.intercept)

    def fit(self, X: Any, y: Any) -> "FoldModel":
        """Do nothing, because the model is already fitted; return the model."""
        return self

    def decision_function(self, X: Any) -> Matrix:
        return combine_decisions(self.decisions(X), len(self.classes), self.multi_class)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(choose_classes(self.decision_function(X), self.classes))

    def predict_proba(self, X: Any) -> Matrix:
        if "calibration_" not in vars(self):
            raise NotYetCalibrated("predict_proba needs the decision values of all test folds.")
        return self.calibration_.probabilities(self.decisions(X), len(self.classes), self.multi_class)


class CrossValidation:
    """Fit a model for every C and k in each fold, and score it on the test rows of the fold.

    Scales, kernel widths and supports are estimated from the training rows of the fold alone. Decision values
    are not stored, but computed again when they are needed.

    `model_at(fit, row, column)` returns the model that the scorer gets for the C at `row` and the k at
    `column`. If the scorer asks it for probabilities, it raises `NotYetCalibrated`. Scoring then starts again
    when all folds are fitted; each model gets a `calibration_` from the test rows of the other folds.
    """

    def __init__(
        self,
        folds: ArrayFolds | FoldsInBlocks,
        blueprint: Blueprint,
        n_classes: int,
        Cs: Sequence[float],
        ks: Sequence[int],
        procedure: Procedure,
        model_at: Callable[[GridFit, int, int], Any],
        label: str = "cross-validation",
    ) -> None:
        self.folds, self.Cs, self.ks = folds, list(Cs), list(ks)
        self.fits: list[GridFit] = []
        self._model_at = model_at
        scores: list[Matrix] | None = []
        for fit in fit_parts(blueprint, folds.parts(), len(folds), n_classes, Cs, ks, procedure, label):
            self.fits.append(fit)
            if scores is None:
                continue
            try:
                scores.append(folds.score(len(scores), fit, (len(Cs), len(ks)), partial(model_at, fit)))
            except NotYetCalibrated:
                scores = None
        self.scores = np.array(self._score_by_probabilities() if scores is None else scores)

    @cached_property
    def table(self) -> ScoreTable:
        return ScoreTable(self.scores, self.Cs, self.ks, self.folds.n_tested, self.folds.test_ratio)

    def decisions(self, row: int, column: int) -> list[Any]:
        """The decision function of each fold, for the C at index `row` and the k at index `column`."""
        return [fit.decisions(row, column) for fit in self.fits]

    def calibrate(self, row: int, column: int, left_out: Sequence[int | None] = (None,)) -> list[Calibration]:
        """Return a probability calibration for the C at `row` and k at `column`, per entry of `left_out`.

        An entry is the index of a fold whose test rows are not used, or None to use those of all folds.
        """
        return self.folds.calibrate(self.decisions(row, column), left_out)

    def _score_by_probabilities(self) -> list[Matrix]:
        """Score each fold by probabilities that are calibrated on the test rows of the other folds."""
        n_folds, shape = len(self.fits), (len(self.Cs), len(self.ks))
        if n_folds < 2:
            raise ValueError(
                "Scoring by probabilities needs at least two folds: each is scored with probabilities "
                "learned from the others. Use a cv with at least two folds, or a scoring without "
                "probabilities."
            )
        learned = {(r, c): self.calibrate(r, c, range(n_folds)) for r, c in np.ndindex(shape)}

        def calibrated(number: int, row: int, column: int) -> Any:
            model = self._model_at(self.fits[number], row, column)
            model.calibration_ = learned[row, column][number]
            return model

        return [
            self.folds.score(number, fit, shape, partial(calibrated, number))
            for number, fit in enumerate(self.fits)
        ]


@dataclass(eq=False, repr=False)
class CrossValidated(MarginClassifier):
    """A classifier that chooses k and C by cross-validation and is then fitted to all samples.

    Its probabilities are calibrated on the test rows of the folds.
    """

    ks: Any = None
    _: KW_ONLY
    Cs: Any = (1.0,)
    cv: Any = None
    scoring: Any = None
    repeats: int = 1
    selection: str = "best"
    tolerance: float = 0.01
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "CrossValidated":
        """Choose k and C, then fit to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for the estimator with a single k, `SparseSVC` or `KernelSparseSVC`.
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Used in fitting and, if the scorer accepts weights, in scoring.
        groups : array-like of shape (n_samples,) or None, default=None
            Groups of samples that stay together in folds, if `cv` is a number or None, or a splitter that
            uses groups.

        Returns
        -------
        estimator
            Itself.
        """
        validation.check_choice("selection", self.selection, SELECTIONS)
        validation.check_tolerance(self.tolerance)
        validation.check_count("repeats", self.repeats, "times to deal the rows into folds")
        validation.check_cv(self.cv)
        validation.check_scoring(self.scoring)
        validation.check_verbose(self.verbose)
        Cs = validation.resolve_Cs(self.Cs)
        given = read_for_folds(X, y, sample_weight, groups)
        blueprint, samples, procedure = self._prepare_fit(given.X, given.y, sample_weight)
        procedure = procedure._replace(verbose=self.verbose)
        units, largest = blueprint.units(samples), blueprint.largest_default(samples)
        ks = validation.resolve_ks(self.ks, units.n_units, largest, blueprint.unit_label, units.fixed.sum())
        folds = samples.folds(self, blueprint, given, weighted=sample_weight is not None)
        template = clone(copy(self).set_params(cv=None)).set_params(cv=self.cv)  # generators cannot be cloned
        model_at = partial(self._model_at, template)
        searched = CrossValidation(folds, blueprint, len(samples.classes), Cs, ks, procedure, model_at)
        table = searched.table
        row, column = table.choose(self.selection, self.tolerance)
        fit = refit(blueprint, samples, Cs[: row + 1], ks, column, procedure)
        self._adopt(fit, 0, column)
        try:
            self.calibration_: Calibration | None = searched.calibrate(row, column)[0]
        except NotTested as error:
            self.calibration_, self._why_uncalibrated = None, str(error)
        self.path_ = replace(fit.paths[0], n_features_in=self.n_features_in_)
        self.k_ = ks[column]
        self.C_ = Cs[row]
        self.best_score_ = float(table.mean[row, column])
        self.cv_results_ = table.tabulate()
        self.n_splits_ = len(folds)
        warn_of_edges(table, row, column, units, listed=self.ks is not None)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """Predict the probability of each class.

        The probabilities are calibrated on decision values of the test rows of the folds, to which the models
        were not fitted. With two classes, the probability of the second rises with the decision value and is
        1/2 at ``-calibration_.offsets / calibration_.slopes``, whereas `predict` uses the sign of the
        decision value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, with a column for each of `classes_`. Rows sum to 1, and no entry is 0 or 1.
        """
        return self._tell(X, "predict_proba", "probabilities")

    def predict_log_proba(self, X: Any) -> Matrix:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of probabilities, with a column for each of `classes_`.
        """
        return self._tell(X, "predict_log_proba", "log_probabilities")

    def _tell(self, X: Any, method: str, what: str) -> Any:
        inputs = self._inputs(X, method)
        n_classes = self.classes_.shape[0]
        if "calibration_" not in vars(self):
            raise NotYetCalibrated(f"{method} needs the decision values of all test folds.")
        if self.calibration_ is None:
            raise ValueError(self._why_uncalibrated)
        learned = partial(getattr(self.calibration_, what), n_classes=n_classes, multi_class=self.multi_class)
        return inputs.tell(self._decisions(), learned, n_classes)

    def _fold_seed(self) -> int:
        """A seed for shuffling rows into folds, drawn from `random_state`, where None counts as 0."""
        return validation.resolve_seed(0 if self.random_state is None else self.random_state)

    def _model_at(self, model: "CrossValidated", fit: GridFit, row: int, column: int) -> "CrossValidated":
        """Return `model` with the fitted attributes of a fold, for the C at `row` and the k at `column`."""
        model.n_features_in_ = fit.paths[row].n_features_in
        model._adopt(fit, row, column)
        return model


def warn_of_edges(table: ScoreTable, row: int, column: int, units: Units, listed: bool) -> None:
    """Warn if the chosen k or C is at the edge of its grid, so that a larger grid might score better.

    The chosen C is at index `row` of its grid, the chosen k at `column`. If the user has `listed` the values
    of k, also warn if the largest k scores highest, although the selection rule has chosen a smaller k.
    """
    advice, Cs, ks, n_available = [], table.Cs, table.ks, units.n_units
    if len(Cs) > 1 and row in (0, len(Cs) - 1):
        which, beyond = ("smallest", Cs[row] / 10) if row == 0 else ("largest", Cs[row] * 10)
        advice.append(f"C_={Cs[row]:g} is the {which} of Cs: try {beyond:g}, too")
    if len(ks) > 1 and column == 0 and ks[0] < n_available:
        advice.append(f"k_={ks[0]} is the largest of ks, and there are {n_available}: try more")
    elif listed and table.rises_to_the_largest_k and ks[0] < n_available:
        advice.append(f"k={ks[0]}, the largest of ks, scores best, and there are {n_available}: try more")
    if len(ks) > 1 and column == len(ks) - 1 and ks[-1] > max(units.fixed.sum(), 1):
        advice.append(f"k_={ks[-1]} is the smallest of ks: try fewer")
    if advice:
        text = f"The choice lies at the edge of what was tried. {'; '.join(advice)}."
        warn_caller(text, GridEdgeWarning)


@dataclass(eq=False, repr=False, kw_only=True)
class SparseSVCCV(LinearClassifier, CrossValidated):
    """A linear support vector machine whose number of features is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try, or at most how many, log-spaced from all features down to one. None means up
        to 20 values from the number of features or samples, whichever is smaller, down to one.
    Cs : list of float, default=(1.0,)
        The values of C to try; see :class:`~kmargin.SparseSVC`.
    cv : int, splitter, list of splits, or None, default=None
        As in scikit-learn; None means five folds. A number means stratified folds, which keep groups of
        samples given to `fit` together; rows are reshuffled only if there are several `repeats`. With dask
        data an integer splits the rows of each class within each block, and ``BlockKFold(5)`` makes folds of
        whole blocks.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None means accuracy. With dask data, any scorer of predictions. A scorer of
        probabilities is given probabilities that were calibrated on the test rows of the other folds.
    repeats : int, default=1
        How often the cross-validation is repeated with rows reshuffled by `random_state`. The choice then
        depends less on the random assignment to folds.
    selection : "best", "1se" or "tolerance", default="best"
        The highest mean score over all folds of all repeats (ties go to the smaller k, then to the smaller
        C); or the smallest k whose mean score is within one standard error, or within `tolerance`, of the
        highest. Standard errors are those of Nadeau and Bengio, which account for the training rows that
        folds and repeats have in common; for scores that are proportions, such as the accuracy, they are at
        least those of a proportion of all tested rows.
    tolerance : float, default=0.01
        With ``selection="tolerance"``, the loss of score that is accepted for fewer features.
    verbose : int, default=0
        1 shows progress: a bar on a terminal if rich is installed, else lines of text.
    solver, multi_class, shared, groups, keep, avoid, signs : see SparseSVC
        As in :class:`~kmargin.SparseSVC`. Here `groups` are groups of features; groups of samples, which stay
        in one fold, are passed to `fit`.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, in each fold using its training rows alone. The
        coefficients are in the original units.
    fit_intercept, class_weight : see SparseSVC
        As in :class:`~kmargin.SparseSVC`.
    n_jobs : int or None, default=None
        Number of folds and binary classifiers fitted in parallel; the result does not depend on it. Within
        each fold the values of C are fitted in order: the supports found with a strong ridge are the start
        for a weaker ridge, which is faster and finds better supports. To fit each C separately and in
        parallel, use GridSearchCV with ``SparseSVC``.
    random_state : int, RandomState or None, default=None
        Shuffles the rows into folds, and draws the starts of ``MM(start="normal")`` and
        ``SD(start="normal")``.

    Attributes
    ----------
    k_, C_ : int, float
        The chosen values.
    best_score_ : float
        The mean score of the chosen k and C over the folds.
    cv_results_ : dict of arrays
        As in GridSearchCV: `param_k`, `param_C`, `params`, `split0_test_score`, ...,
        `mean_test_score`, `std_test_score`, `rank_test_score`; and `se_test_score`, the standard errors of
        the means.
    path_ : SparsityPath
        The models of all values of k at `C_`, fitted to all samples; that of `k_` is the final model.
    calibration_ : Calibration or None
        The map from decision values to probabilities; its `slopes` and `offsets` have one entry per binary
        classifier, except that `slopes` is a matrix for one versus rest with more than two classes. None if a
        class is in no test fold.
    n_splits_ : int
        The number of folds, over all repeats.
    coef_, intercept_, scale_, classes_, support_, n_iter_, objective_, solutions_
        As in :class:`~kmargin.SparseSVC`, and so are `n_features_in_` and `feature_names_in_`: the final
        model is that of ``SparseSVC(k_, C=C_)`` with the same other parameters, fitted to all samples.

    See Also
    --------
    honest_score : Scores the choice of k and C by nested cross-validation.
    CVScoreDisplay : Draws the scores.
    SparsityPathDisplay : Draws the path.

    Examples
    --------
    >>> from kmargin import SparseSVCCV
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> model = SparseSVCCV(ks=[20, 10, 5, 2, 1]).fit(X, y)
    >>> model.k_
    2
    >>> model.support_
    array([0, 1])
    >>> model.predict_proba(X[1:2]).round(2)
    array([[0.99, 0.01]])
    """


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSparseSVCCV(KernelClassifier, CrossValidated):
    """A kernel support vector machine whose number of training points is chosen by cross-validation.

    Parameters
    ----------
    ks : list of int, int or None, default=None
        The values of k to try; None means up to 20, log-spaced from 100 (or all points) down to one.
    Cs, cv, scoring, repeats, selection, tolerance, verbose : see SparseSVCCV
        As in :class:`~kmargin.SparseSVCCV`.
    kernel, gamma, degree, coef0 : see KernelSparseSVC
        As in :class:`~kmargin.KernelSparseSVC`; ``gamma="scale"`` is computed from the training rows of each
        fold.
    standardize : bool, default=False
        Scale the features to mean 0 and variance 1, in each fold using its training rows alone, before the
        kernel is computed.
    solver, multi_class, shared, fit_intercept, cache_size, n_candidates, class_weight : see KernelSparseSVC
        As in :class:`~kmargin.KernelSparseSVC`.
    n_jobs : see SparseSVCCV
        As in :class:`~kmargin.SparseSVCCV`.
    random_state : int, RandomState or None, default=None
        Shuffles the rows into folds, and draws the candidate points if they are a sample.

    Attributes
    ----------
    k_, C_, best_score_, cv_results_, calibration_, n_splits_
        As in :class:`~kmargin.SparseSVCCV`.
    support_, support_vectors_, dual_coef_, intercept_, classes_, n_iter_, objective_, solutions_
        As in :class:`~kmargin.KernelSparseSVC`, for the refit with the chosen values.
    path_ : SparsityPath
        The models of all values of k at `C_`, fitted to all samples. Its `coefs` have a column for each
        training point that is kept for some k.

    See Also
    --------
    SparseSVCCV : Chooses features instead of training points.
    honest_score : Scores the choice of k and C by nested cross-validation.

    Examples
    --------
    >>> from kmargin import KernelSparseSVCCV
    >>> from kmargin.datasets import make_spiral
    >>> X, y = make_spiral(random_state=0)
    >>> model = KernelSparseSVCCV(ks=[60, 20, 10, 5], Cs=[100.0], gamma=1.0).fit(X[::5], y[::5])
    >>> len(model.support_vectors_) == model.k_
    True
    """
