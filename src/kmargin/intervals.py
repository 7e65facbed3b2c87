"""How far a score can be trusted: standard errors of means over folds, intervals of rates."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from kmargin.types import Vector


class Interval(NamedTuple):
    """Where a score lies, by all that is known."""

    low: float
    high: float

    def __contains__(self, score: object) -> bool:
        return self.low <= float(score) <= self.high  # type: ignore[arg-type]


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
