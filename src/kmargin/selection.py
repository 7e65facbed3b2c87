"""Cross-validation: folds, scores, and the choice of k and C.

Nothing here knows what a machine is made of; `estimators.cv` brings the two together.
"""

import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import check_cv

from kmargin.samples.protocol import Labelled
from kmargin.types import Flags, Indices, Vector

SELECTIONS = ("best", "1se")

Scores = np.ndarray  # (n_folds, n_Cs, n_ks)


class Fold(NamedTuple):
    """Rows to fit to and rows to score, as indices into the samples that have weight."""

    train: Indices
    test: Indices


def make_folds(cv: Any, samples: Labelled, n_given: int, X: Any, y: Any, groups: Any) -> list[Fold]:
    """Split the rows as they were given; leave out those without weight.

    Raises ValueError where a fold has lost a class or has nothing to score.
    """
    splitter = check_cv(cv, y, classifier=True)
    position = np.full(n_given, -1)
    position[samples.kept] = np.arange(len(samples.kept))
    folds = []
    for number, (train, test) in enumerate(splitter.split(X, y, groups)):
        fold = Fold(*(rows[rows >= 0] for rows in (position[train], position[test])))
        has_class = np.isin(np.arange(len(samples.classes)), samples.codes[fold.train])
        check_fold(number, samples.classes, has_class, len(fold.test))
        folds.append(fold)
    if not folds:
        raise ValueError(f"cv={cv!r} makes no folds. Use an integer >= 2, a splitter, or a list of splits.")
    return folds


def check_fold(number: int, classes: np.ndarray, has_class: Flags, n_test: int) -> None:
    """Raise ValueError where a fold has no class to fit to, or nothing to score."""
    if not has_class.all():
        raise ValueError(
            f"Fold {number} has no training sample of class {classes[~has_class].tolist()[0]!r}. "
            "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold."
        )
    if n_test == 0:
        raise ValueError(f"Fold {number} has no sample to score. Use fewer folds, or give its rows weight.")


class BlockKFold:
    """Folds of whole blocks, for data in blocks: block b is scored in fold b mod `n_splits`.

    For blocks that belong together, such as days or sites, whose rows must not be on both sides.
    """

    def __init__(self, n_splits: int = 5) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, numbers.Integral) or n_splits < 2:
            raise ValueError(f"n_splits={n_splits!r} is not a number of folds. Use an integer >= 2.")
        self.n_splits: int = int(n_splits)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        raise TypeError(
            "BlockKFold splits blocks, and X has none. Give dask data, or use scikit-learn's GroupKFold."
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


def choose(scores: Scores, ks: Sequence[int], Cs: Sequence[float], selection: str) -> tuple[int, int]:
    """The positions of the chosen C and k.

    "best" is the highest mean score; among equals the smaller k, then the smaller C. "1se" is the
    smallest k with a mean score within one standard error of the best; then its best C.
    """
    mean = scores.mean(axis=0)
    best = np.unravel_index(mean.argmax(), mean.shape)
    slack = 1e-12 * max(1.0, abs(float(mean[best])))
    if selection == "1se" and len(scores) > 1:
        slack += float(scores[:, best[0], best[1]].std(ddof=1)) / np.sqrt(len(scores))
    close = mean >= mean[best] - slack
    column = min(np.flatnonzero(close.any(axis=0)), key=lambda c: ks[int(c)])
    highest = mean[:, column].max() - 1e-12
    row = min(np.flatnonzero(mean[:, column] >= highest), key=lambda r: Cs[int(r)])
    return int(row), int(column)


def tabulate(scores: Scores, ks: Sequence[int], Cs: Sequence[float]) -> dict[str, Any]:
    """The scores in the form of GridSearchCV's `cv_results_`: one entry per pair of C and k."""
    flat = scores.reshape(len(scores), -1)
    params = [{"C": C, "k": k} for C in Cs for k in ks]
    mean = flat.mean(axis=0)
    results: dict[str, Any] = {
        "param_C": np.array([p["C"] for p in params]),
        "param_k": np.array([p["k"] for p in params]),
        "params": params,
    }
    results |= {f"split{i}_test_score": row for i, row in enumerate(flat)}
    results["mean_test_score"] = mean
    results["std_test_score"] = flat.std(axis=0)
    results["rank_test_score"] = rankdata(-mean, method="min").astype(int)
    return results
