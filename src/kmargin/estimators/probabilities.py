"""Probabilities of machines that were cross-validated, from what the folds' machines say of unseen rows."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from kmargin.calibration import Calibration, NotTested
from kmargin.estimators.classifier import MarginClassifier
from kmargin.fitting.grid_fit import GridFit, MachinesAlone
from kmargin.samples.protocol import Folds
from kmargin.types import Matrix


class NotYetCalibrated(NotFittedError):
    """A fold's machines were asked for probabilities while the other folds were still to come."""


class Probabilities(MarginClassifier):
    """A classifier that knows how its decision values become probabilities."""

    calibration_: Calibration | None
    _why_uncalibrated: str

    def predict_proba(self, X: Any) -> Matrix:
        """Predict the probability of each class.

        Calibrated on the decision values of the test folds, that is of rows that the models were not fitted
        to. With two classes, the probability of the second rises with the decision value; it passes 1/2 at
        ``-calibration_.offsets / calibration_.slopes``, whereas `predict` uses the sign of the decision
        value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_classes)
            A column for each of `classes_`. Rows sum to 1, and no entry is 0 or 1.
        """
        return self._tell(X, "predict_proba", "probabilities")

    def predict_log_proba(self, X: Any) -> Matrix:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With the features of the training data.

        Returns
        -------
        array of shape (n_samples, n_classes)
            A column for each of `classes_`.
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

    def _calibrate(self, tested: "FoldMachines", row: int, column: int) -> None:
        """Learn for the chosen C and k; a class that no fold tests leaves probabilities out, and says why."""
        try:
            (self.calibration_,) = tested.calibrate(row, column, [None])
        except NotTested as error:
            self.calibration_, self._why_uncalibrated = None, str(error)


class FoldMachines:
    """The machines of all folds for every C and k, which can be asked about their test rows.

    The rows that a fold was fitted to are not held, nor is what its machines say of others: that is
    computed for one C and k when it is needed.
    """

    def __init__(self, folds: Folds, Cs: list[float], ks: list[int]) -> None:
        self.folds, self.ks = folds, ks
        self.shape = len(Cs), len(ks)
        self.machines: list[MachinesAlone] = []

    def keep(self, fits: Iterator[GridFit]) -> Iterator[GridFit]:
        """Hand on each fold's fit, and keep its machines."""
        for fit in fits:
            self.machines.append(fit.without_samples(self.ks))
            yield fit

    def calibrate(self, row: int, column: int, left_out: Sequence[int | None]) -> list[Calibration]:
        """See `Folds.calibrate`."""
        return self.folds.calibrate([of.decisions(row, column) for of in self.machines], left_out)

    def score(self, fits: Iterator[GridFit], model_at: Callable[..., Any]) -> list[Matrix]:
        """The scores of all folds, each by probabilities that were learned from the test rows of the others.

        `fits` are those of the folds that are still to come.
        """
        for _ in fits:
            pass
        n_folds = len(self.machines)
        if n_folds < 2:
            raise ValueError(
                "Scoring by probabilities needs at least two folds: each is scored with probabilities "
                "learned from the others. Use a cv with at least two folds, or a scoring without "
                "probabilities."
            )
        each = list(range(n_folds))
        others = {(row, column): self.calibrate(row, column, each) for row, column in np.ndindex(self.shape)}

        def calibrated(number: int, row: int, column: int) -> Any:
            model = model_at(self.machines[number], row, column)
            model.calibration_ = others[row, column][number]
            return model

        return [self.folds.score(number, partial(calibrated, number), *self.shape) for number in each]
