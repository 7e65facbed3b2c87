"""Kernel machines: what they predict, and how many training points they keep."""

from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVC

from benchmarks.solvers.fit import Competitor, unfinished_allowed
from kmargin import KernelSparseSVC


@dataclass(frozen=True)
class KernelFit:
    """Predictions for the rows asked for, and the number of training points they need."""

    predictions: np.ndarray
    n_points: int


class LibsvmRBF(Competitor):
    name = "svc"
    module = "sklearn"
    distribution = "scikit-learn"

    def kernel(self, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, C: float, gamma: float) -> KernelFit:
        model = SVC(C=C, gamma=gamma).fit(X, y)
        return KernelFit(model.predict(X_new), len(model.support_))


class OursRBF(Competitor):
    module = "kmargin"
    distribution = "kmargin"

    def __init__(self, solver: str, k: int) -> None:
        self.name = solver
        self.k = k

    def kernel(self, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, C: float, gamma: float) -> KernelFit:
        with unfinished_allowed():
            model = KernelSparseSVC(self.k, C=C, gamma=gamma, solver=self.name).fit(X, y)
        return KernelFit(model.predict(X_new), len(model.support_vectors_))
