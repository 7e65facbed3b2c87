"""Folds, scores and their intervals, and the choice of k and C from a table of scores."""

import inspect
import numbers
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.validation import check_count


class Interval(NamedTuple):
    """A confidence interval of a score."""

    low: float
    high: float

    def __contains__(self, score: object) -> bool:
        return self.low <= float(score) <= self.high  # type: ignore[arg-type]


class Estimate(NamedTuple):
    """A score and its confidence interval."""

    value: float
    interval: Interval


class RankedRows(NamedTuple):
    """The test rows of a fold, as indices, and the decision values by which they are ranked."""

    rows: Indices
    decisions: Vector


def wilson(rate: float, n: float, z: float) -> Interval:
    """Wilson's interval, within [0, 1], for a rate observed in n rows; z is a standard normal quantile."""
    rate = min(max(rate, 0.0), 1.0)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(min(rate, max(0.0, float(centre - half))), max(rate, min(1.0, float(centre + half))))


def rate_interval(rate: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's confidence interval for a rate, such as an accuracy, observed in n rows."""
    return wilson(rate, n, float(ndtri((1 + confidence) / 2)))


def rate_error(rate: float, n: float) -> float:
    """Standard error > 0 of a rate in n rows: distance to the farther end of its Wilson interval, z = 1."""
    low, high = wilson(rate, n, 1.0)
    return max(rate - low, high - rate)


def mean_of_rates(rates: Vector, ns: Vector, confidence: float = 0.95) -> Estimate:
    """The mean of independent rates and its confidence interval, as for the balanced accuracy.

    Rate i was observed in ns[i] rows. The lower end is mean - sqrt(sum_i d_i^2) / m, where m is the number of
    rates and d_i the distance from rate i to the lower end of its Wilson interval; the upper end is found in
    the same way (Zou and Donner's MOVER).
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
    """The area under the ROC curve and its DeLong interval.

    It is the mean area over folds with test rows of both classes: rows are ranked within folds, as decision
    values of different models may have different scales. Its variance is the sum of the squared influences
    of rows (or `groups`) on it. The interval is computed for its logit, so that it lies between 0 and 1.
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
    if error < 1e-12 or not 0 < value < 1:  # a perfect ranking has variance 0: use Wilson's interval
        smaller = min((own, ~own), key=np.count_nonzero)
        n = effective_number(w[smaller], int(smaller.sum()), None if groups is None else codes[smaller])
        return Estimate(value, rate_interval(value, n, confidence))
    half = float(stdtrit(n_units - 1, (1 + confidence) / 2)) * error / (value * (1 - value))
    return Estimate(value, Interval(*(float(expit(logit(value) + step)) for step in (-half, half))))


def _placements(values: Vector, others: Vector, weights: Vector) -> Vector:
    """For each value, the weighted proportion of `others` that are smaller; ties count half."""
    order = np.argsort(others, kind="stable")
    totals = np.concatenate([[0.0], np.cumsum(weights[order])])
    below, up_to = (totals[np.searchsorted(others[order], values, side=side)] for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * totals[-1]))


def difference_error(differences: Vector, test_ratio: float, n_rows: int) -> float:
    """Nadeau and Bengio's standard error of the mean difference of two models' scores on the same folds.

    `test_ratio` is the number of test rows per training row. All differences may be equal by chance. If none
    exceeds 1 in absolute value, scores are taken for proportions, and the error is at least 1 / `n_rows`.
    """
    least = 1 / n_rows if np.abs(differences).max() <= 1 else 0.0
    if len(differences) < 2:
        return least
    return max(least, float(differences.std(ddof=1) * np.sqrt(1 / len(differences) + test_ratio)))


def mean_errors(scores: np.ndarray, test_ratio: float, n_rows: float) -> np.ndarray:
    """Standard errors of mean scores over the folds of all repeats, which are the first axis of `scores`.

    Folds share most of their training rows, and repeats share all rows, so scores are not independent:
    more repeats do not make the error vanish. The squared error is the variance of the scores times
    (1 / n_folds + `test_ratio`), where `test_ratio` is the number of test rows per training row (Nadeau and
    Bengio's correction).

    All folds may have the same score by chance, for example 100 %. So if all scores are between 0 and 1, as
    proportions are, the standard error is at least that of a proportion in `n_rows` rows.
    """
    errors = np.zeros(scores.shape[1:])
    if len(scores) > 1:
        errors = np.asarray(scores.std(axis=0, ddof=1) * np.sqrt(1 / len(scores) + test_ratio))
    if not are_shares(scores):
        return errors
    return np.maximum(errors, np.vectorize(rate_error)(scores.mean(axis=0), n_rows))


def are_shares(scores: np.ndarray) -> bool:
    """Whether all scores are between 0 and 1, as proportions are."""
    return bool(scores.min() >= 0 and scores.max() <= 1)


def mean_interval(scores: Vector, test_ratio: float, n_rows: float, confidence: float = 0.95) -> Interval:
    """Student's confidence interval of a mean score over folds; for one fold, all possible scores."""
    if len(scores) < 2:
        return Interval(0.0, 1.0) if are_shares(scores) else Interval(-np.inf, np.inf)
    mean, error = float(scores.mean()), float(mean_errors(scores, test_ratio, n_rows))
    half = float(stdtrit(len(scores) - 1, (1 + confidence) / 2)) * error
    if are_shares(scores):
        return Interval(max(0.0, mean - half), min(1.0, mean + half))
    return Interval(mean - half, mean + half)


def effective_number(weights: Vector | None, n: int, groups: np.ndarray | None = None) -> float:
    """Kish's effective sample size of weighted rows; the rows of a group count as one row.

    A row of weight 2 does not count as two rows here, because intervals would become too narrow.
    """
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
        weights = np.bincount(codes, weights=weights).astype(float)
        n = len(weights)
    if weights is None:
        return float(n)
    relative = weights / weights.max()  # because the squares of very large weights would overflow
    return float(relative.sum() ** 2 / (relative @ relative))


SELECTIONS = ("best", "1se", "tolerance")


class Fold(NamedTuple):
    """Training rows and test rows of a fold, as indices into the rows with positive weight."""

    train: Indices
    test: Indices


def make_folds(splitter: Any, samples: Any, n_given: int, X: Any, y: Any, groups: Any) -> list[Fold]:
    """Split the user's `n_given` rows into folds, and leave out rows of weight 0, which `samples` lacks.

    Raises ValueError if a fold has no training row of some class, or no test row.
    """
    position = np.full(n_given, -1)
    position[samples.kept] = np.arange(len(samples.kept))
    folds = []
    for number, (train, test) in enumerate(splitter.split(X, y, groups)):
        fold = Fold(*(rows[rows >= 0] for rows in (position[train], position[test])))
        has_class = np.isin(np.arange(len(samples.classes)), samples.codes[fold.train])
        check_fold(number, samples.classes, has_class, len(fold.test))
        folds.append(fold)
    return folds


def make_splitters(cv: Any, repeats: int, seed: int, y: Any, groups: Any = None) -> list[Any]:
    """Return a scikit-learn splitter for each repeat of the cross-validation.

    If `cv` is a number or None, folds are stratified, keep the rows of a group together, and are shuffled
    only if there are several repeats, and ValueError is raised if some class has a single row.
    """
    splitter = check_cv(cv, y, classifier=True)
    if cv is None or isinstance(cv, numbers.Integral):
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise ValueError(
                f"Class {classes.tolist()[counts.argmin()]!r} has 1 row, but cross-validation needs at least "
                "two. Give more of that class, or remove it."
            )
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(splitter.n_splits, shuffle=repeats > 1)
    if repeats == 1:
        return [splitter]
    if getattr(splitter, "random_state", "none") == "none" or not getattr(splitter, "shuffle", True):
        shown = "a list of splits" if np.iterable(cv) else repr(cv)
        raise ValueError(
            f"repeats={repeats} of cv={shown} would repeat the same folds. Use a number of folds, "
            "or a splitter that shuffles, such as StratifiedKFold(5, shuffle=True)."
        )
    own = getattr(splitter, "random_state", None)
    seed = int(own) if isinstance(own, numbers.Integral) else seed
    splitters = [copy(splitter) for _ in range(repeats)]
    for number, each in enumerate(splitters):
        each.random_state = (seed + number) % 2**32
    return splitters


def check_fold(number: int, classes: np.ndarray, has_class: Flags, n_test: int, kind: str = "Fold") -> None:
    """Raise ValueError if a fold has no training row of some class, or no test row."""
    if not has_class.all():
        raise ValueError(
            f"{kind} {number} has no training sample of class {classes[~has_class].tolist()[0]!r}. "
            "Use fewer folds, or a splitter such as StratifiedKFold, and at least two rows of each class."
        )
    if n_test == 0:
        raise ValueError(
            f"{kind} {number} has no sample to score. Use fewer folds, or give its rows positive weights."
        )


class BlockKFold:
    """Split dask data into folds of whole blocks: block b is tested in fold b mod `n_splits`.

    Use it if each block is a day or a site, say, whose rows must not be in both training and test set.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least two.

    See Also
    --------
    SparseSVCCV : Accepts a `BlockKFold` as `cv`, for dask data.

    Examples
    --------
    >>> from kmargin import BlockKFold
    >>> BlockKFold(3).get_n_splits()
    3
    """

    def __init__(self, n_splits: int = 5) -> None:
        check_count("n_splits", n_splits, "folds", least=2)
        self.n_splits: int = int(n_splits)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Raise TypeError: estimators split dask data themselves, and other data have no blocks.

        Parameters
        ----------
        X, y, groups : object
            Ignored.
        """
        raise TypeError(
            "BlockKFold splits blocks, but X has none. Give dask data, or use scikit-learn's GroupKFold."
        )

    def __repr__(self) -> str:
        return f"BlockKFold({self.n_splits})"


def score_with(scorer: Callable[..., float], model: Any, X: Any, y: Any, weights: Vector | None) -> float:
    """The score of a fitted model, with sample weights if they are given and the scorer accepts them."""
    if weights is not None and takes_weights(scorer):
        return float(scorer(model, X, y, sample_weight=weights))
    return float(scorer(model, X, y))


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer has the parameter `sample_weight`."""
    function = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(function).parameters


@dataclass(frozen=True)
class ScoreTable:
    """The cross-validation score of every fold, C and k, from which k and C are chosen."""

    scores: np.ndarray  # array of shape (n_folds, n_Cs, n_ks), with the folds of all repeats
    Cs: Sequence[float]
    ks: Sequence[int]
    n_rows: float  # effective number of rows tested; a row tested in several repeats counts once
    test_ratio: float = 0.0  # number of test rows per training row

    @cached_property
    def mean(self) -> Matrix:
        """The mean score over folds of each C (rows) and k (columns)."""
        return np.asarray(self.scores.mean(axis=0))

    @cached_property
    def error(self) -> Matrix:
        """The standard error of the mean score of each C (rows) and k (columns)."""
        return mean_errors(self.scores, self.test_ratio, self.n_rows)

    def at(self, C: float, k: int) -> tuple[float, float]:
        """The mean score of a pair of C and k, and its standard error."""
        place = self.Cs.index(C), self.ks.index(k)
        return float(self.mean[place]), float(self.error[place])

    def at_k(self, column: int) -> "ScoreTable":
        """Return the part of the table for the single k ``ks[column]`` and all Cs."""
        return replace(self, scores=self.scores[:, :, [column]], ks=[self.ks[column]])

    def choose(self, selection: str, tolerance: float = 0.0) -> tuple[int, int]:
        """Choose C and k by the rule `selection`; return the index of C in `Cs` and that of k in `ks`.

        "best" takes the highest mean score, and among equal scores the smallest k, then the smallest C.
        "1se" takes the smallest k whose mean score, at some C, is within one standard error of the highest,
        "tolerance" the smallest k for which it is within `tolerance`; both then take the best C for this k.
        """
        if not np.isfinite(self.mean).all():
            fold = int(np.flatnonzero(~np.isfinite(self.scores).all(axis=(1, 2)))[0])
            raise ValueError(
                f"The score of fold {fold} is not a number, so k and C cannot be chosen. Use another "
                "scoring, or fewer folds, each with test rows of every class."
            )
        mean, best = self.mean, np.unravel_index(self.mean.argmax(), self.mean.shape)
        slack = 1e-12 * max(1.0, abs(float(mean[best])))
        slack += {"1se": float(self.error[best]), "tolerance": tolerance}.get(selection, 0.0)
        close = mean >= mean[best] - slack
        column = min(np.flatnonzero(close.any(axis=0)), key=lambda c: self.ks[int(c)])
        highest = mean[:, column].max() - 1e-12
        row = min(np.flatnonzero(mean[:, column] >= highest), key=lambda r: self.Cs[int(r)])
        return int(row), int(column)

    @property
    def rises_to_the_largest_k(self) -> bool:
        """Whether the largest of several ks has, with its best C, a higher mean score than all smaller ks."""
        best = self.mean.max(axis=0)
        return len(best) > 1 and bool(best[0] > best[1:].max() + 1e-12)

    def tabulate(self) -> dict[str, Any]:
        """The scores in the form of GridSearchCV's `cv_results_`: one entry per pair of C and k."""
        flat = self.scores.reshape(len(self.scores), -1)
        params = [{"C": C, "k": k} for C in self.Cs for k in self.ks]
        results: dict[str, Any] = {
            "param_C": np.array([p["C"] for p in params]),
            "param_k": np.array([p["k"] for p in params]),
            "params": params,
        }
        results |= {f"split{i}_test_score": row for i, row in enumerate(flat)}
        results["mean_test_score"] = self.mean.ravel()
        results["std_test_score"] = flat.std(axis=0)
        results["se_test_score"] = self.error.ravel()
        results["rank_test_score"] = rankdata(-self.mean.ravel(), method="min").astype(int)
        return results
