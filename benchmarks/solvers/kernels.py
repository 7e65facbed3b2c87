"""Kernel machines: what they predict, and how many training points they keep."""

from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVC

from benchmarks.runner import timed
from benchmarks.solvers.fit import Competitor, unfinished_allowed
from kmargin import KernelSparseSVC


@dataclass(frozen=True)
class KernelFit:
    """Predictions for the rows asked for, the number of training points they need, and seconds of
    processor time.
    """

    predictions: np.ndarray
    n_points: int
    fit_seconds: float
    predict_seconds: float

    @classmethod
    def of(cls, model, X, y, X_new):
        """Short predictions are timed three times, long ones once."""
        _, fit_seconds = timed(model.fit, X, y)
        seconds = []
        while len(seconds) < 3 and sum(seconds) < 1:
            predictions, of_turn = timed(model.predict, X_new)
            seconds.append(of_turn)
        return cls(predictions, len(model.support_), fit_seconds, min(seconds))


class LibsvmRBF(Competitor):
    name = "svc"
    module = "sklearn"

    def kernel(self, X, y, X_new, C, gamma):
        return KernelFit.of(SVC(C=C, gamma=gamma), X, y, X_new)


class OursRBF(Competitor):
    module = "kmargin"

    def __init__(self, solver, k):
        self.name = solver
        self.k = k

    def kernel(self, X, y, X_new, C, gamma):
        model = KernelSparseSVC(self.k, C=C, gamma=gamma, solver=self.name, shared=False, random_state=0)
        with unfinished_allowed():
            return KernelFit.of(model, X, y, X_new)
