"""Cross-validation: folds, scores, and the choice of k and C.

Nothing here knows what a machine is made of; `estimators.cross_validated` brings the two together.
"""

import inspect
import numbers
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from kmargin.intervals import mean_errors
from kmargin.samples.protocol import Labelled
from kmargin.types import Flags, Indices, Matrix, Vector

SELECTIONS = ("best", "1se", "tolerance")


class Fold(NamedTuple):
    """Rows to fit to and rows to score, as indices into the samples that have weight."""

    train: Indices
    test: Indices


def make_folds(splitter: Any, samples: Labelled, n_given: int, X: Any, y: Any, groups: Any) -> list[Fold]:
    """Split the rows as they were given; leave out those without weight.

    Raises ValueError where a fold has lost a class or has nothing to score.
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
    """A splitter for each repeat; `cv` itself if there is one only.

    A number of folds is stratified and, as in scikit-learn, not shuffled unless there are several repeats.
    Rows of one group stay together.
    """
    splitter = check_cv(cv, y, classifier=True)
    if cv is None or isinstance(cv, numbers.Integral):
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(splitter.n_splits, shuffle=repeats > 1)
    if repeats == 1:
        return [splitter]
    if getattr(splitter, "random_state", "none") == "none" or not getattr(splitter, "shuffle", True):
        raise ValueError(
            f"repeats={repeats} of cv={_shown(cv)} would repeat the same folds. Use a number of folds, "
            "or a splitter that shuffles, such as StratifiedKFold(5, shuffle=True)."
        )
    own = getattr(splitter, "random_state", None)
    seed = int(own) if isinstance(own, numbers.Integral) else seed
    splitters = [copy(splitter) for _ in range(repeats)]
    for number, each in enumerate(splitters):
        each.random_state = (seed + number) % 2**32
    return splitters


def _shown(cv: Any) -> str:
    """For a sentence: rows of folds that were written out are not."""
    return "a list of splits" if np.iterable(cv) else repr(cv)


def count_tested(folds: Sequence[Fold]) -> tuple[float, float]:
    """How many rows are scored, each counted once; and the test rows per training row of a fold."""
    ratios = [len(fold.test) / len(fold.train) for fold in folds]
    return float(len(np.unique(np.concatenate([fold.test for fold in folds])))), float(np.mean(ratios))


def check_fold(number: int, classes: np.ndarray, has_class: Flags, n_test: int) -> None:
    """Raise ValueError where a fold has no class to fit to, or nothing to score."""
    if not has_class.all():
        raise ValueError(
            f"Fold {number} has no training sample of class {classes[~has_class].tolist()[0]!r}. "
            "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold."
        )
    if n_test == 0:
        raise ValueError(
            f"Fold {number} has no sample to score. Use fewer folds, or give its rows positive weights."
        )


class BlockKFold:
    """Folds of whole blocks, for data in blocks: block b is scored in fold b mod `n_splits`.

    For blocks such as days or sites, whose rows must not be in both the training and the test set.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least two.

    See Also
    --------
    SparseSVCCV : Accepts it as `cv`, for dask data.

    Examples
    --------
    >>> from kmargin import BlockKFold
    >>> BlockKFold(3).get_n_splits()
    3
    """

    def __init__(self, n_splits: int = 5) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, numbers.Integral) or n_splits < 2:
            raise ValueError(f"n_splits={n_splits!r} is not a number of folds. Use an integer >= 2.")
        self.n_splits: int = int(n_splits)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are.

        Parameters
        ----------
        X, y, groups : object
            Not looked at.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Raise TypeError: data in blocks are split by the estimators, and others have no blocks.

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
    """The score of a fitted model, weighted if weights were given and the scorer can take them."""
    if weights is not None and takes_weights(scorer):
        return float(scorer(model, X, y, sample_weight=weights))
    return float(scorer(model, X, y))


def takes_weights(scorer: Any) -> bool:
    function = getattr(scorer, "_score_func", scorer)
    return "sample_weight" in inspect.signature(function).parameters


def asks_for_probabilities(scorer: Any) -> bool:
    """Whether a scorer looks at probabilities, and at nothing else."""
    return bool(getattr(scorer, "_response_method", "predict") == "predict_proba")


@dataclass(frozen=True)
class ScoreTable:
    """The score of every fold, C and k: the one source of what is chosen, told, tabulated and drawn."""

    scores: np.ndarray  # (n_folds, n_Cs, n_ks), folds of all repeats
    Cs: Sequence[float]
    ks: Sequence[int]
    n_rows: float  # that were scored, each counted once
    test_ratio: float = 0.0  # test rows per training row

    @cached_property
    def mean(self) -> Matrix:
        return np.asarray(self.scores.mean(axis=0))

    @cached_property
    def error(self) -> Matrix:
        """Standard errors of the means; see `intervals.mean_errors`."""
        return mean_errors(self.scores, self.test_ratio, self.n_rows)

    def at(self, C: float, k: int) -> tuple[float, float]:
        """The mean score, and its standard error."""
        place = self.Cs.index(C), self.ks.index(k)
        return float(self.mean[place]), float(self.error[place])

    def choose(self, selection: str, tolerance: float = 0.0) -> tuple[int, int]:
        """The positions of the chosen C and k.

        "best" is the highest mean score; among equals the smaller k, then the smaller C. "1se" is the
        smallest k with a mean score within one standard error of the best, "tolerance" within that loss of
        score; then its best C.
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
        """Whether the largest of several ks has a higher score than every smaller one."""
        best = self.mean.max(axis=0)
        return len(best) > 1 and bool(best[0] > best[1:].max() + 1e-12)

    def tabulate(self) -> dict[str, Any]:
        """In the form of GridSearchCV's `cv_results_`: one entry per pair of C and k."""
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
