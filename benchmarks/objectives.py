"""How results are scored. Written apart from the package, so that it cannot share its mistakes.

Every competitor's support is scored by the exact minimum on it, whatever loss selected it:

    1/(2n) sum_i max(0, 1 - y_i (x_i'w + b))^2 + lam/2 ||w||^2
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit

LEAST_PROBABILITY = 1e-15  # a wrong prediction made with certainty costs a finite log loss
N_BINS = 15


def C_of(lam, n_samples):
    """The C whose ridge is lam, for a problem of this many rows."""
    return 1 / (2 * lam * n_samples) if lam > 0 else math.inf


def lam_of(C, n_samples):
    """The ridge that C stands for."""
    return 1 / (2 * C * n_samples)


class Refit(NamedTuple):
    """The minimiser over the features of a support."""

    coef: np.ndarray  # of all features, zero off the support
    intercept: float
    objective: float


def objective(X, y, coef, intercept, lam):
    """The objective of coefficients as they were returned; y is -1 or 1."""
    coef = np.ravel(coef)
    violation = np.maximum(0.0, 1.0 - y * (X @ coef + np.ravel(intercept)[0]))
    return 0.5 * float(np.mean(violation**2)) + 0.5 * lam * float(coef @ coef)


def fold(X, y, fit_intercept):
    """A row per feature, times the labels (-1 and 1), the intercept last if there is one."""
    rows = X.T * y
    return np.ascontiguousarray(np.vstack([rows, y[None]]) if fit_intercept else rows, dtype=float)


@njit(cache=True)
def value_at(margins, beta, ridge):
    """The objective of coefficients with these margins."""
    violation = np.maximum(0.0, 1.0 - margins)
    return 0.5 * (violation @ violation) / len(margins) + 0.5 * (ridge @ beta**2)


@njit(cache=True)
def minimise(rows, ridge, beta, margins):
    """The minimum by Newton's method; `beta` and its margins become the minimiser's."""
    n = len(margins)
    value = value_at(margins, beta, ridge)
    for _ in range(200):
        was_active = margins < 1.0
        active = rows[:, np.flatnonzero(was_active)]
        A, b = active @ active.T / n, active.sum(axis=1) / n
        for r in range(len(beta)):  # an intercept has no ridge, and no curvature if no row is active
            A[r, r] += max(ridge[r], 1e-13)
        direction = np.linalg.solve(A, b) - beta
        slope = (A @ beta - b) @ direction
        if slope >= -1e-16 * value:
            break
        step, size = rows.T @ direction, 1.0
        new = value_at(margins + step, beta + direction, ridge)
        while new > value + 1e-4 * size * slope and size > 1e-12:
            size /= 2
            new = value_at(margins + size * step, beta + size * direction, ridge)
        if new >= value:
            break
        margins += size * step
        beta += size * direction
        value = new
        if size == 1.0 and np.array_equal(margins < 1.0, was_active):
            break
    return value


def refit(X, y, support, lam):
    """The minimum on a support, with an intercept; y is -1 or 1."""
    rows, ridge = fold(X[:, support], y, fit_intercept=True), np.append(np.full(len(support), lam), 0.0)
    beta = np.zeros(len(rows))
    value = minimise(rows, ridge, beta, np.zeros(len(y)))
    coef = np.zeros(X.shape[1])
    coef[support] = beta[:-1]
    return Refit(coef, float(beta[-1]), float(value))


def binary_problems(y, per_class):
    """Rows and labels, -1 and 1, of each binary problem: one per class, or one per pair of classes."""
    classes = np.unique(y)
    if per_class:
        return [(np.arange(len(y)), np.where(y == label, 1, -1)) for label in classes]
    pairs = [(np.flatnonzero(np.isin(y, pair)), pair[1]) for pair in combinations(classes, 2)]
    return [(rows, np.where(y[rows] == second, 1, -1)) for rows, second in pairs]


def joint_objective(X, y, support, C, per_class):
    """The sum over the binary problems of their minima on one shared support."""
    X, columns = X[:, support], np.arange(len(support))
    problems = binary_problems(y, per_class)
    return sum(refit(X[rows], labels, columns, lam_of(C, len(rows))).objective for rows, labels in problems)


def objectives_of(fit, X, y, C):
    """The objective of each binary problem, of the coefficients as they were returned."""
    problems = binary_problems(y, fit.per_class and len(fit.classes) > 2)
    return [
        objective(X[rows], labels, coef, intercept, lam_of(C, len(rows)))
        for (rows, labels), coef, intercept in zip(problems, fit.coef, fit.intercept, strict=True)
    ]


def predict(fit, X):
    """The predicted class of each row.

    One classifier per pair of classes: votes, and summed decision values where votes tie. One per class: the
    largest decision value.
    """
    decisions = X @ fit.coef.T + fit.intercept
    n_classes = len(fit.classes)
    if fit.per_class and n_classes > 2:
        return fit.classes[np.argmax(decisions, axis=1)]
    votes = np.zeros((len(decisions), n_classes))
    sums = np.zeros_like(votes)
    for column, (negative, positive) in zip(decisions.T, combinations(range(n_classes), 2), strict=True):
        votes[:, positive] += column > 0
        votes[:, negative] += column <= 0
        sums[:, positive] += column
        sums[:, negative] -= column
    return fit.classes[np.argmax(votes + sums / (2 * (1 + np.abs(sums))), axis=1)]


def accuracy(fit, X, y):
    return float(np.mean(predict(fit, X) == y))


def mean_features(fit):
    """Features per binary classifier, on average."""
    return float(np.mean(np.count_nonzero(fit.coef, axis=1)))


def share_found(support, causal):
    """The share of the causal features that are in the support."""
    return len(np.intersect1d(support, causal)) / len(causal)


def f1(support, causal):
    """Harmonic mean of the share of the truth found and the share of the found that is true."""
    return 2 * len(np.intersect1d(support, causal)) / max(len(support) + len(causal), 1)


def log_loss(P, codes):
    """Mean negative log probability of the true class; P has a column for each class code."""
    return float(-np.log(np.maximum(P[np.arange(len(P)), codes], LEAST_PROBABILITY)).mean())


def brier(P, codes):
    """The mean squared distance from the true class's indicator, summed over the classes."""
    return float(((P - np.eye(P.shape[1])[codes]) ** 2).sum(axis=1).mean())


def calibration_error(P, codes):
    """The mean difference between predicted probabilities and observed frequencies.

    In bins of equally many rows, for each class (of two, for the second alone), averaged over classes.
    """
    errors = []
    for column in [1] if P.shape[1] == 2 else range(P.shape[1]):
        predicted, true = P[:, column], codes == column
        bins = np.array_split(np.argsort(predicted, kind="stable"), N_BINS)
        errors.append(np.mean([abs(predicted[rows].mean() - true[rows].mean()) for rows in bins]))
    return float(np.mean(errors))
