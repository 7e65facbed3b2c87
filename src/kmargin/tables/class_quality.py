"""How well each class is told: shares with intervals, and how rows are ranked."""

from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_curve

from kmargin.intervals import Estimate, RankedRows, area_under_roc, effective_number, rate_interval
from kmargin.tables.analyse import Analysis
from kmargin.types import Flags, Indices, Vector


def share_of(holds: Flags, weights: Vector, groups: Indices | None = None) -> Estimate | None:
    """The share of rows, by weight, for which something holds; None if there are no rows.

    Its interval counts groups where rows belong to such.
    """
    if not len(holds):
        return None
    value = float(np.average(holds, weights=weights))
    return Estimate(value, rate_interval(value, effective_number(weights, len(weights), groups)))


def share_among(analysis: Analysis, holds: Flags, rows: Flags) -> Estimate | None:
    """The share of some rows of the table for which something holds."""
    groups = analysis.dataset.groups
    weights = analysis.assessment.weights
    return share_of(holds[rows], weights[rows], None if groups is None else groups[rows])


def recall(analysis: Analysis, code: int) -> Estimate | None:
    """Of the rows of a class: how many were told as such."""
    assessed = analysis.assessment
    of_class = analysis.dataset.y == assessed.classes[code]
    return share_among(analysis, assessed.predicted == assessed.classes[code], of_class)


def precision(analysis: Analysis, code: int) -> Estimate | None:
    """Of the rows told as a class: how many are of it."""
    assessed = analysis.assessment
    told = assessed.predicted == assessed.classes[code]
    return share_among(analysis, analysis.dataset.y == assessed.classes[code], told)


def area_under_curve(analysis: Analysis, code: int) -> Estimate:
    """How often a row of a class is ranked above one of another, on average over the folds."""
    assessed, dataset = analysis.assessment, analysis.dataset
    decisions = assessed.decisions
    if decisions.ndim == 2:
        decisions = decisions[:, code]
    elif code == 0:
        decisions = -decisions
    folds = [RankedRows(fold.test, decisions[fold.test]) for fold in assessed.folds]
    return area_under_roc(folds, dataset.y == assessed.classes[code], assessed.weights, dataset.groups)


def roc_points(analysis: Analysis) -> tuple[Vector, Vector]:
    """Two classes: the mean of the ROC curves of the folds, whose area is `area_under_curve`.

    At each share of the first class that is taken for the second, the mean share of the second class that is
    recognised; twice where a curve rises there, before and after.
    """
    assessed = analysis.assessment
    is_second, curves = analysis.dataset.y == assessed.classes[1], []
    for _, test in assessed.folds:
        if is_second[test].any() and not is_second[test].all():
            weights = assessed.weights[test]
            curve = roc_curve(is_second[test], assessed.decisions[test], sample_weight=weights)
            curves.append((curve[0], curve[1]))
    false = np.unique(np.concatenate([rates[0] for rates in curves]))
    before, after = np.mean([_limits(*rates, false) for rates in curves], axis=0)
    return np.repeat(false, 2), np.column_stack([before, after]).ravel()


def _limits(false: Vector, true: Vector, at: Vector) -> tuple[Vector, Vector]:
    """The heights of a ROC curve just before and just after each place."""
    first, last = np.searchsorted(false, at, side="left"), np.searchsorted(false, at, side="right") - 1
    is_vertex = first <= last
    width = np.where(is_vertex, 1.0, false[first] - false[last])
    between = true[last] + (at - false[last]) / width * (true[first] - true[last])
    return np.where(is_vertex, true[first], between), np.where(is_vertex, true[last], between)


class GroupResult(NamedTuple):
    """The rows of one group: how many there are, and which share of them was predicted correctly."""

    name: str
    n_rows: int
    correct: Estimate
    most_common: float  # the share of the largest class among them


def results_by_group(analysis: Analysis) -> list[GroupResult]:
    """The accuracy within each group of rows that stay together, each by models fitted without the group."""
    dataset, assessed = analysis.dataset, analysis.assessment
    if dataset.group_labels is None:
        return []
    found = []
    for name in np.unique(dataset.group_labels):
        rows = np.flatnonzero(dataset.group_labels == name)
        weights = assessed.weights[rows]
        correct = share_of((assessed.predicted == dataset.y)[rows], weights)
        classes = np.unique(dataset.y[rows], return_inverse=True)[1]
        largest = float(np.bincount(classes, weights=weights).max() / weights.sum())
        if correct is not None:
            found.append(GroupResult(str(name), len(rows), correct, largest))
    return found


class Reliability(NamedTuple):
    """Rows with about the same probability, and how often it came true."""

    told: float  # the mean probability
    true: Estimate
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
        is_in = np.isin(np.arange(len(y)), rows)
        true = share_among(analysis, came_true, is_in)
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
