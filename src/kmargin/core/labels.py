"""Split multiclass problems into binary ones, combine their decision values, and check sample weights."""

from itertools import combinations, starmap
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import HOST, Indices, Matrix, Space, Vector, space_of, to_host

SCHEMES = ("ovo", "ovr")  # values of `multi_class`: one versus one, one versus rest


class Pair(NamedTuple):
    """The two classes that a binary problem distinguishes, as codes (indices into the sorted classes)."""

    negative: int | None  # None means that all other classes are negative
    positive: int


def class_pairs(n_classes: int, multi_class: str) -> list[Pair]:
    """List the pair of classes of each binary problem; for two classes there is one binary problem."""
    if n_classes == 2 or multi_class == "ovo":
        return list(starmap(Pair, combinations(range(n_classes), 2)))
    return [Pair(None, positive) for positive in range(n_classes)]


def label_rows(codes: Indices, pair: Pair) -> tuple[Indices | None, Vector]:
    """Return the rows whose class code is in `pair` (None for all rows), and their labels, -1 or 1."""
    y = np.where(codes == pair.positive, 1.0, -1.0)
    if pair.negative is None:
        return None, y
    rows = np.flatnonzero((codes == pair.positive) | (codes == pair.negative))
    return (None, y) if len(rows) == len(y) else (rows, y[rows])


def combine_decisions(decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
    """Combine the decision values of the binary classifiers into the result of `decision_function`.

    `decisions` has one column per classifier. For two classes the result is its only column, for one versus
    rest `decisions` itself. For one versus one, the score of a class is its number of votes plus the sum of
    the decision values in its favour, mapped to (-1/2, 1/2) so that it breaks ties between votes.
    """
    if n_classes == 2:
        return decisions[:, 0]
    if multi_class == "ovr":
        return decisions
    xp = space_of(decisions).xp
    votes = [xp.zeros_like(decisions[:, 0])] * n_classes
    sums = list(votes)
    for at, (negative, positive) in enumerate(combinations(range(n_classes), 2)):
        column = decisions[:, at]
        votes[positive] = votes[positive] + xp.astype(column > 0, decisions.dtype)
        votes[negative] = votes[negative] + xp.astype(column <= 0, decisions.dtype)
        sums[positive] = sums[positive] + column
        sums[negative] = sums[negative] - column
    total = xp.stack(sums, axis=1)
    return xp.stack(votes, axis=1) + total / (1 + xp.abs(total)) / 2


def choose_classes(scores: Any, classes: Any) -> Any:
    """Return the class of each sample from the result of `combine_decisions`.

    The result is on the device of the scores; if the classes are texts, it is a NumPy array.
    """
    space = space_of(scores)
    xp = space.xp
    codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
    if to_host(classes).dtype.kind in "biuf":
        return xp.take(space.move(classes), codes, axis=0)
    return np.take(classes, space.bring(codes))


def class_weights(coef: Matrix, n_classes: int, multi_class: str) -> Matrix:
    """Return for each class the mean of the coefficients of its binary classifiers, which are rows of `coef`.

    Where the class is the negative one, signs are changed: a positive mean coefficient favours the class.
    """
    weights, n_machines = np.zeros((n_classes, coef.shape[1])), np.zeros((n_classes, 1))
    for row, (negative, positive) in zip(coef, class_pairs(n_classes, multi_class), strict=True):
        weights[positive] += row
        n_machines[positive] += 1
        if negative is not None:
            weights[negative] -= row
            n_machines[negative] += 1
    return weights / n_machines


def machine_names(classes: Any, multi_class: str) -> list[str]:
    """Name each binary classifier by its negative and positive class, such as "a vs b" or "rest vs b"."""
    classes = to_host(classes)
    return [
        f"{'rest' if negative is None else classes[negative]} vs {classes[positive]}"
        for negative, positive in class_pairs(len(classes), multi_class)
    ]


def normalize(weights: Vector) -> tuple[Vector, float]:
    """Return the weights scaled to mean 1, and the sum of the original weights.

    If the sum of the original weights overflows, it is infinite, but the scaled weights are correct, because
    the weights are divided by the largest first.
    """
    largest = float(weights.max())
    relative = weights / largest
    share = float(relative.sum())
    return relative * (len(weights) / share), largest * share


def check_some_weight(largest: float) -> None:
    if largest == 0:
        raise ValueError(
            "sample_weight is zero for every sample, so there is nothing to fit. Give some samples a weight "
            "> 0."
        )


# An error is raised if the largest sample weight is more than this many times the smallest positive one. As
# solvers multiply rows by the square roots of weights, the roots would then differ by more than the 15 digits
# of double precision, and the rows of the smallest weights would have less effect than rounding errors.
MAX_WEIGHT_RATIO = 1e30


def check_weight_range(weights: Vector) -> None:
    """Raise ValueError if the positive weights differ by a factor of more than MAX_WEIGHT_RATIO."""
    smallest, largest = float(weights[weights > 0].min()), float(weights.max())
    if largest > MAX_WEIGHT_RATIO * smallest:
        raise ValueError(
            f"The weights of the samples range from {smallest:.3g} to {largest:.3g}, and may differ by at "
            f"most a factor of {MAX_WEIGHT_RATIO:g}. Set the smallest to 0, which leaves their samples out."
        )


def check_finite_weight(total: float) -> None:
    if not np.isfinite(total):
        raise ValueError(
            "The sum of sample_weight times class_weight overflows. Divide the weights by their largest."
        )


def find_bad_weight(weights: Any, space: Space = HOST) -> tuple[int, float] | None:
    """Return the index and value of one weight that is negative, infinite or NaN; None if there is none."""
    xp = space.xp
    if not xp.all(xp.isfinite(weights)):
        worst = int(xp.argmin(xp.astype(xp.isfinite(weights), weights.dtype)))
    elif xp.any(weights < 0):
        worst = int(xp.argmin(weights))
    else:
        return None
    return worst, float(weights[worst])


def complain_of_weight(row: int, weight: float, where: str = "") -> str:
    """Return the message for an invalid weight; `where` is empty or a phrase such as " in block 3 of X"."""
    if not np.isfinite(weight):
        return f"sample_weight contains NaN or infinity{where}. Give finite numbers >= 0."
    return f"sample_weight[{row}]={weight:g}{where} is negative. Give numbers >= 0; 0 leaves a sample out."
