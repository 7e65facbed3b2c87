"""How far a score can be trusted: standard errors of means over folds, intervals of rates and of areas."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit
from scipy.stats import rankdata

from kmargin.types import Flags, Indices, Vector


class Interval(NamedTuple):
    """Where a score lies, by all that is known."""

    low: float
    high: float

    def __contains__(self, score: object) -> bool:
        return self.low <= float(score) <= self.high  # type: ignore[arg-type]


class Estimate(NamedTuple):
    """A score and its interval."""

    value: float
    interval: Interval


class RankedRows(NamedTuple):
    """The test rows of a fold and the decision values that rank them."""

    rows: Indices
    decisions: Vector


def wilson(rate: float, n: float, z: float) -> Interval:
    """Wilson's interval for a rate among n: within [0, 1], and no point even where the rate is 0 or 1."""
    rate = min(max(rate, 0.0), 1.0)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(min(rate, max(0.0, float(centre - half))), max(rate, min(1.0, float(centre + half))))


def rate_interval(rate: float, n: float, confidence: float = 0.95) -> Interval:
    """The interval of a rate among n rows."""
    return wilson(rate, n, float(ndtri((1 + confidence) / 2)))


def rate_error(rate: float, n: float) -> float:
    """The standard error of a rate among n rows: the farther end of Wilson's interval for one of them."""
    low, high = wilson(rate, n, 1.0)
    return max(rate - low, high - rate)


def mean_of_rates(rates: Vector, ns: Vector, confidence: float = 0.95) -> Estimate:
    """The mean of independent rates, such as the balanced accuracy, and its interval.

    The distances of Wilson's limits from each rate are added as squares (Zou and Donner's MOVER).
    """
    intervals = [rate_interval(float(rate), float(n), confidence) for rate, n in zip(rates, ns, strict=True)]
    mean = float(np.mean(rates))
    below, above = (
        float(np.sqrt(np.sum((rates - np.array(ends)) ** 2)) / len(rates))
        for ends in zip(*intervals, strict=True)
    )
    return Estimate(mean, Interval(max(0.0, mean - below), min(1.0, mean + above)))


def area_under_roc(
    folds: Sequence[RankedRows],
    is_positive: Flags,
    weights: Vector,
    groups: np.ndarray | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """The area under the ROC curve, the mean of the folds that test both classes; DeLong's interval.

    Rows are ranked within folds only, because decision values of different models need not be of one scale.
    For the variance, folds are put together by these ranks: it is the sum of the squared influences of rows,
    or where these belong together of groups, on the area. The limits are computed for its logit, so that
    they lie between 0 and 1.
    """
    areas, positions, tested = [], np.zeros(len(is_positive)), np.zeros(len(is_positive))
    for rows, decisions in folds:
        own = is_positive[rows]
        if own.all() or not own.any():
            continue
        w = weights[rows]
        areas.append(np.average(_placements(decisions[own], decisions[~own], w[~own]), weights=w[own]))
        positions[rows] += (rankdata(decisions) - 0.5) / len(rows)
        tested[rows] += 1
    if not areas:
        return Estimate(np.nan, Interval(0.0, 1.0))
    value, used = float(np.mean(areas)), np.flatnonzero(tested)
    positions, own, w = positions[used] / tested[used], is_positive[used], weights[used]
    influence = np.empty(len(used))
    for these, sign in ((own, 1), (~own, -1)):
        placed = _placements(sign * positions[these], sign * positions[~these], w[~these])
        shares = w[these] / w[these].sum()
        influence[these] = shares * (placed - shares @ placed)
    codes = used if groups is None else np.unique(groups[used], return_inverse=True)[1]
    n_units = len(np.unique(codes))
    error = float(np.linalg.norm(np.bincount(codes, weights=influence)) * np.sqrt(n_units / (n_units - 1)))
    if error < 1e-12 or not 0 < value < 1:  # no row is out of place, which tells no variance
        smaller = min((own, ~own), key=np.count_nonzero)
        n = effective_number(w[smaller], int(smaller.sum()), None if groups is None else codes[smaller])
        return Estimate(value, rate_interval(value, n, confidence))
    half = float(stdtrit(n_units - 1, (1 + confidence) / 2)) * error / (value * (1 - value))
    return Estimate(value, Interval(*(float(expit(logit(value) + step)) for step in (-half, half))))


def _placements(values: Vector, others: Vector, weights: Vector) -> Vector:
    """Of each value: the share of the others, by weight, that lie below it; ties count half."""
    order = np.argsort(others, kind="stable")
    totals = np.concatenate([[0.0], np.cumsum(weights[order])])
    below, up_to = (totals[np.searchsorted(others[order], values, side=side)] for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * totals[-1]))


def difference_error(differences: Vector, test_ratio: float, n_rows: int) -> float:
    """The standard error of a mean difference of scores on the same folds, by Nadeau and Bengio.

    Folds may agree by chance. A share of rows is not known better than one row in `n_rows`, so where
    differences are those of shares, that is the least.
    """
    least = 1 / n_rows if np.abs(differences).max() <= 1 else 0.0
    if len(differences) < 2:
        return least
    return max(least, float(differences.std(ddof=1) * np.sqrt(1 / len(differences) + test_ratio)))


def mean_errors(scores: np.ndarray, test_ratio: float, n_rows: float) -> np.ndarray:
    """Standard errors of the means over folds (the first axis), folds of all repeats together.

    Folds share most of their training rows, and repeats all of them, so their scores are not independent:
    more repeats do not make the error vanish. Nadeau and Bengio's correction adds the number of test rows
    per training row (`test_ratio`) to one over the number of folds.

    Folds may agree by chance, all of them at 100 % say. A share is not known better than so many rows tell,
    so where all scores lie within 0 and 1, as shares do, that is the least.
    """
    errors = np.zeros(scores.shape[1:])
    if len(scores) > 1:
        errors = np.asarray(scores.std(axis=0, ddof=1) * np.sqrt(1 / len(scores) + test_ratio))
    if not are_shares(scores):
        return errors
    return np.maximum(errors, np.vectorize(rate_error)(scores.mean(axis=0), n_rows))


def are_shares(scores: np.ndarray) -> bool:
    return bool(scores.min() >= 0 and scores.max() <= 1)


def mean_interval(scores: Vector, test_ratio: float, n_rows: float, confidence: float = 0.95) -> Interval:
    """The interval of a mean over folds, by Student's t; without an end if there is one fold only."""
    if len(scores) < 2:
        return Interval(0.0, 1.0) if are_shares(scores) else Interval(-np.inf, np.inf)
    mean, error = float(scores.mean()), float(mean_errors(scores, test_ratio, n_rows))
    half = float(stdtrit(len(scores) - 1, (1 + confidence) / 2)) * error
    if are_shares(scores):
        return Interval(max(0.0, mean - half), min(1.0, mean + half))
    return Interval(mean - half, mean + half)


def effective_number(weights: Vector | None, n: int, groups: np.ndarray | None = None) -> float:
    """As many rows of one weight tell a mean as well as these, by Kish; rows of one group are taken for one.

    Weights here say how much rows count, not how many there were: that would make intervals too narrow.
    """
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
        weights = np.bincount(codes, weights=weights).astype(float)
        n = len(weights)
    if weights is None:
        return float(n)
    relative = weights / weights.max()  # the squares of very large ones would overflow
    return float(relative.sum() ** 2 / (relative @ relative))
