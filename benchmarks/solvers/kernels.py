"""Kernel machines: what they predict, and how many training points they keep."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.solvers.fit import Competitor, unfinished_allowed
from kmargin import KernelSparseSVC


@dataclass(frozen=True)
class KernelFit:
    """Predictions for the rows asked for, the number of training points they need, and their time."""

    predictions: np.ndarray
    n_points: int
    predict_seconds: float

    @classmethod
    def of(cls, model: Any, X_new: np.ndarray) -> "KernelFit":
        """Short predictions are timed three times, long ones once."""
        seconds: list[float] = []
        while len(seconds) < 3 and sum(seconds) < 1:
            started = time.perf_counter()
            predictions = model.predict(X_new)
            seconds.append(time.perf_counter() - started)
        return cls(predictions, len(model.support_), min(seconds))


class LibsvmRBF(Competitor):
    name = "svc"
    module = "sklearn"
    distribution = "scikit-learn"

    def kernel(self, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, C: float, gamma: float) -> KernelFit:
        model = SVC(C=C, gamma=gamma).fit(X, y)
        return KernelFit.of(model, X_new)


class OursRBF(Competitor):
    module = "kmargin"
    distribution = "kmargin"

    def __init__(self, solver: str, k: int) -> None:
        self.name = solver
        self.k = k

    def kernel(self, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, C: float, gamma: float) -> KernelFit:
        with unfinished_allowed():
            model = KernelSparseSVC(self.k, C=C, gamma=gamma, solver=self.name, random_state=0).fit(X, y)
        return KernelFit.of(model, X_new)
