"""Accuracy, sparsity, and how much of the truth was found."""

from itertools import combinations

import numpy as np

from benchmarks.solvers.fit import Fit


def predict(fit: Fit, X: np.ndarray) -> np.ndarray:
    """One machine per pair of classes: votes, and summed decision values where votes tie. One per class:
    the largest decision value."""
    decisions = X @ fit.coef.T + fit.intercept
    if fit.per_class and len(fit.classes) > 2:
        return fit.classes[np.argmax(decisions, axis=1)]
    n_classes = len(fit.classes)
    votes = np.zeros((len(X), n_classes))
    sums = np.zeros_like(votes)
    for column, (negative, positive) in zip(decisions.T, combinations(range(n_classes), 2), strict=True):
        votes[:, positive] += column > 0
        votes[:, negative] += column <= 0
        sums[:, positive] += column
        sums[:, negative] -= column
    return fit.classes[np.argmax(votes + sums / (2 * (1 + np.abs(sums))), axis=1)]


def accuracy(fit: Fit, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(predict(fit, X) == y))


def mean_features(fit: Fit) -> float:
    """Features per machine, on average over the machines."""
    return float(np.mean(np.count_nonzero(fit.coef, axis=1)))


def share_found(support: np.ndarray, causal: np.ndarray) -> float:
    """The share of the causal features that are in the support."""
    return len(np.intersect1d(support, causal)) / len(causal)


def f1(support: np.ndarray, causal: np.ndarray) -> float:
    """Harmonic mean of the share of the truth found and the share of the found that is true."""
    return 2 * len(np.intersect1d(support, causal)) / max(len(support) + len(causal), 1)
