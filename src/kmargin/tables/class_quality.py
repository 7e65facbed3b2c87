"""How well each class is told: shares with intervals, and how rows are ranked."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve

from kmargin.intervals import Interval, effective_number, mean_interval, rate_interval
from kmargin.tables.analyse import Analysis
from kmargin.types import Flags, Vector


class Share(NamedTuple):
    """Of how many rows something holds, and how far that can be trusted."""

    value: float
    interval: Interval


def share_of(holds: Flags, weights: Vector) -> Share | None:
    """By weight; None if there are no such rows."""
    if not len(holds):
        return None
    value = float(np.average(holds, weights=weights))
    return Share(value, rate_interval(value, effective_number(weights, len(weights))))


def recall(analysis: Analysis, code: int) -> Share | None:
    """Of the rows of a class: how many were told as such."""
    assessed = analysis.assessment
    of_class = analysis.dataset.y == assessed.classes[code]
    return share_of((assessed.predicted == assessed.classes[code])[of_class], assessed.weights[of_class])


def precision(analysis: Analysis, code: int) -> Share | None:
    """Of the rows told as a class: how many are of it."""
    assessed = analysis.assessment
    told = assessed.predicted == assessed.classes[code]
    return share_of((analysis.dataset.y == assessed.classes[code])[told], assessed.weights[told])


def area_under_curve(analysis: Analysis, code: int) -> Share:
    """How often a row of a class is ranked above one of the others; the mean of the folds, whose decision
    values need not be of one scale.
    """
    assessed, is_class = analysis.assessment, analysis.dataset.y == analysis.assessment.classes[code]
    ranks = _ranks(analysis, code)
    areas = [
        roc_auc_score(is_class[fold.test], ranks[fold.test], sample_weight=assessed.weights[fold.test])
        for fold in assessed.folds
    ]
    n_folds = len(areas)
    return Share(float(np.mean(areas)), mean_interval(np.array(areas), 1 / (n_folds - 1), assessed.n_rows))


def roc_points(analysis: Analysis) -> tuple[Vector, Vector]:
    """Two classes: shares of the first and of the second that are told as the second, as the threshold falls.

    Rows are ranked within their folds, and the folds put together by these ranks.
    """
    assessed = analysis.assessment
    within = np.empty(len(assessed.fold))
    for fold in assessed.folds:
        within[fold.test] = pd.Series(assessed.decisions[fold.test]).rank(pct=True)
    is_second = analysis.dataset.y == assessed.classes[1]
    false, true, _ = roc_curve(is_second, within, sample_weight=assessed.weights)
    return false, true


def _ranks(analysis: Analysis, code: int) -> Vector:
    decisions = analysis.assessment.decisions
    if decisions.ndim == 2:
        return decisions[:, code]
    return decisions if code == 1 else -decisions


class Reliability(NamedTuple):
    """Rows with about the same probability, and how often it came true."""

    told: float  # the mean probability
    true: Share
    n_rows: int


def reliability(analysis: Analysis, n_bins: int = 10) -> list[Reliability]:
    """Two classes: by the probability of the second. More: by the probability of the class that has the most.

    Bins have about the same number of rows, so that each says as much.
    """
    assessed, y = analysis.assessment, analysis.dataset.y
    P = assessed.probabilities
    if P.shape[1] == 2:
        told, came_true = P[:, 1], y == assessed.classes[1]
    else:
        told, came_true = P.max(axis=1), y == assessed.classes[P.argmax(axis=1)]
    order = np.argsort(told, kind="stable")
    bins = []
    for rows in np.array_split(order, min(n_bins, max(1, len(order) // 5))):
        true = share_of(came_true[rows], assessed.weights[rows])
        if true is not None:
            mean = float(np.average(told[rows], weights=assessed.weights[rows]))
            bins.append(Reliability(mean, true, len(rows)))
    return bins


def calibration_error(analysis: Analysis) -> float:
    """By how much probabilities are off, on average over the rows."""
    bins = reliability(analysis)
    sizes = np.array([b.n_rows for b in bins])
    return float(np.average([abs(b.told - b.true.value) for b in bins], weights=sizes))


def log_loss_of(analysis: Analysis) -> float:
    """Of the probabilities told of rows not seen."""
    assessed = analysis.assessment
    own = assessed.probabilities[
        np.arange(len(assessed.fold)), np.searchsorted(assessed.classes, analysis.dataset.y)
    ]
    return float(-np.average(np.log(own), weights=assessed.weights))
