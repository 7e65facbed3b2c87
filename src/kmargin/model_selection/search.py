"""Cross-validation of a grid of C and k: the models of all folds, their scores, and their probabilities."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from kmargin.core.arrays import Indices, Matrix
from kmargin.core.labels import choose_classes, combine_decisions
from kmargin.data.samples import Folds
from kmargin.fitting.fit import GridFit, MachinesAlone, Procedure, fit_parts
from kmargin.fitting.spec import Blueprint, Decisions
from kmargin.model_selection.calibration import Calibration
from kmargin.model_selection.scores import ScoreTable


class NotYetCalibrated(NotFittedError):
    """A scorer asked the model of one fold for probabilities before the other folds were fitted."""


class FoldModel(ClassifierMixin, BaseEstimator):
    """The binary classifiers of one fold, C and k as a scikit-learn classifier, for scorers."""

    calibration_: Calibration
    k_: int
    C_: float

    def __init__(self, decisions: Decisions, classes: np.ndarray, multi_class: str) -> None:
        self.decisions = decisions
        self.classes = self.classes_ = classes
        self.multi_class = multi_class

    @property
    def support_(self) -> Indices:
        """The features with a nonzero coefficient; with a kernel, the positions of the training points."""
        return np.flatnonzero(self.decisions.coef.any(axis=0))

    def fit(self, X: Any, y: Any) -> "FoldModel":
        """Return the model as it is: it was fitted before."""
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
    """The models of every fold, C and k, and their scores on the test rows of their folds.

    Each fold is fitted along its own path: over C from strong ridge to weak, over k from dense to sparse.
    Whatever is estimated (scale, kernel width, support) is estimated from its training rows alone. Neither
    training rows nor decision values are kept; decision values are computed again when they are needed.

    `model_at(fit, row, column)` returns the model that a scorer is given, for the C at `row` and the k at
    `column`. A model that raises `NotYetCalibrated` is asked again when all folds are fitted, with a
    `calibration_` learned from the test rows of the other folds.
    """

    def __init__(
        self,
        folds: Folds,
        blueprint: Blueprint,
        n_classes: int,
        Cs: Sequence[float],
        ks: Sequence[int],
        procedure: Procedure,
        model_at: Callable[[GridFit | MachinesAlone, int, int], Any],
        label: str = "cross-validation",
    ) -> None:
        self.folds, self.Cs, self.ks = folds, list(Cs), list(ks)
        self.fits: list[MachinesAlone] = []
        self._model_at = model_at
        scores: list[Matrix] | None = []
        procedure = procedure._replace(n_jobs=folds.n_jobs)
        for fit in fit_parts(blueprint, folds.parts(), len(folds), n_classes, Cs, ks, procedure, label):
            self.fits.append(fit.without_samples(ks))
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
        """The decision functions of all folds for one C and k."""
        return [fit.decisions(row, column) for fit in self.fits]

    def calibrate(self, row: int, column: int, left_out: Sequence[int | None] = (None,)) -> list[Calibration]:
        """Learn probabilities for one C and k from the test rows; see `Folds.calibrate`."""
        return self.folds.calibrate(self.decisions(row, column), left_out)

    def _score_by_probabilities(self) -> list[Matrix]:
        """Score each fold with probabilities that were learned from the test rows of the others."""
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
