"""Probabilities that were told of some rows, in the form that scorers want."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from kmargin.multiclass import choose_classes
from kmargin.types import Matrix


class ToldProbabilities(ClassifierMixin, BaseEstimator):
    """What was said of some rows, in the form of a model that is asked about them."""

    def __init__(self, classes: np.ndarray, probabilities: Matrix, decisions: Matrix) -> None:
        self.classes, self.probabilities, self.decisions = classes, probabilities, decisions
        self.classes_ = classes

    def predict_proba(self, X: Matrix) -> Matrix:
        return self.probabilities

    def decision_function(self, X: Matrix) -> Matrix:
        return self.decisions

    def predict(self, X: Matrix) -> np.ndarray:
        return np.asarray(choose_classes(self.decisions, self.classes))
