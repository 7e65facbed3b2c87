"""Cross-validation: folds, scores, and the choice of k and C.

Nothing here knows what a machine is made of; `estimators.cv` brings the two together.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import check_cv
from sklearn.utils import ClassifierTags, Tags, TargetTags

from kmargin.types import Indices, Matrix, Vector
from kmargin.validate import Samples

SELECTIONS = ("best", "1se")

Scores = np.ndarray  # (n_folds, n_Cs, n_ks)


class Fold(NamedTuple):
    """Rows to fit to and rows to score, as indices into the samples that have weight."""

    train: Indices
    test: Indices


def make_folds(cv: Any, samples: Samples, n_given: int, X: Any, y: Any, groups: Any) -> list[Fold]:
    """Split the rows as they were given; leave out those without weight.

    Raises ValueError where a fold has lost a class or has nothing to score.
    """
    splitter = check_cv(cv, y, classifier=True)
    position = np.full(n_given, -1)
    position[samples.kept] = np.arange(len(samples.kept))
    folds = []
    for number, (train, test) in enumerate(splitter.split(X, y, groups)):
        fold = Fold(*(rows[rows >= 0] for rows in (position[train], position[test])))
        lost = np.setdiff1d(np.arange(len(samples.classes)), samples.codes[fold.train])
        check_fold(number, samples.classes[lost], len(fold.test))
        folds.append(fold)
    if not folds:
        raise ValueError(f"cv={cv!r} makes no folds. Use an integer >= 2, a splitter, or a list of splits.")
    return folds


def check_fold(number: int, lost: np.ndarray, n_test: int) -> None:
    """Raise where a fold has lost a class or has nothing to score."""
    if len(lost):
        raise ValueError(
            f"Fold {number} has no training sample of class {lost[0]!r}. "
            "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold."
        )
    if n_test == 0:
        raise ValueError(f"Fold {number} has no sample to score. Use fewer folds, or give its rows weight.")


class BlockFold:
    """Folds of whole blocks of a dask collection: block i is scored in fold i modulo `n_splits`.

    For data whose blocks are what should be predicted, such as days or sites. Within one block rows
    stay together, as they should if they depend on each other.
    """

    def __init__(self, n_splits: int = 5) -> None:
        self.n_splits = n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        raise ValueError(
            f"cv={self!r} makes folds of the blocks of dask collections, and X is not one. "
            "Use an integer, or a splitter of scikit-learn's."
        )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits

    def __repr__(self) -> str:
        return f"BlockFold({self.n_splits})"


class _Pairs:
    """A model that has already predicted: `X` holds the positions of its predictions."""

    _estimator_type = "classifier"

    def __init__(self, classes: np.ndarray, predicted: np.ndarray) -> None:
        self.classes_ = classes
        self.predicted = predicted

    def predict(self, X: Any) -> np.ndarray:
        return self.predicted[np.ravel(X)]

    def __sklearn_tags__(self) -> Tags:
        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )


def score_pairs(scorer: Callable[..., float], classes: np.ndarray, confusion: Matrix) -> float:
    """The score from how often each class (rows) was taken for which (columns), by weight.

    A score of predictions with weights depends on no more: each pair of true and predicted class
    stands for all the rows that it is true of.
    """
    true, predicted = np.nonzero(confusion)
    model = _Pairs(classes, classes[predicted])
    positions = np.arange(len(true))[:, None]
    if not _takes_weights(scorer):
        raise TypeError("the score takes no weights")
    return float(scorer(model, positions, classes[true], sample_weight=confusion[true, predicted]))


def score_with(scorer: Callable[..., float], model: Any, X: Matrix, y: Any, weights: Vector | None) -> float:
    """The score of a fitted model, weighted if weights were given and the scorer can take them."""
    if weights is not None and _takes_weights(scorer):
        return float(scorer(model, X, y, sample_weight=weights))
    return float(scorer(model, X, y))


def _takes_weights(scorer: Any) -> bool:
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
