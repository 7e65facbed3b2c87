"""Probabilities from the decision values of machines, learned from rows that these had not seen.

Two classes: the second has probability 1 / (1 + exp(-(slope f + offset))), Platt's sigmoid of the decision
value f. A machine for each pair of classes: such a sigmoid for each, learned from the rows of its two
classes; the probabilities of all classes are those that contradict the pairs least (Wu, Lin and Weng 2004,
their second way). A machine for each class against the rest: the softmax of slope_c f_c + offset_c, learned
at once. docs/probabilities.md tells what these were measured against.

A row of a class that has n rows is given the probability (n + q) / (n + m q) for its own class instead of 1,
and q / (n + m q) for each of the others, m being how many classes are told apart. That keeps slopes finite
where decision values separate the classes. For two classes q = 1, which is Platt's; for more it is
divided by the number of pairs, so that there are as many pseudo-rows in all.

A sigmoid has an offset only where the rows ask for one: where it raises the log-likelihood by more than
log(n)/2, Schwarz's criterion. Else the sign of f, by which classes are predicted, and the larger probability
would contradict each other for nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kmargin.multiclass import class_pairs
from kmargin.types import Indices, Matrix, Tensor, Vector

MAX_STEPS = 100
CLOSE = 1e-10  # a Newton step that promises so little per row is the last one: the next promises its square
FLAT = 1e-12  # a spread below so many times the mean is none
TILE = 2**20  # numbers in the systems of so many rows are solved at a time


class UnseenRows(NamedTuple):
    """What machines say of rows that they have not seen."""

    decisions: Matrix  # a column per machine
    codes: Indices  # of the classes
    weights: Vector  # a row of weight 2 counts as the row twice


Ask = Callable[..., Any]  # the sum over all tested rows, wherever they are, of a function of some of them


class Setting(NamedTuple):
    """What is known before the first step."""

    n_classes: int
    multi_class: str
    totals: Vector  # the weight of each class
    mean: Vector  # of each machine's decision values
    scale: Vector  # what they are multiplied by, to have a spread of one; 0 if they have none

    @property
    def is_joint(self) -> bool:
        """Whether the machines are of one class against the rest."""
        return self.n_classes > 2 and self.multi_class == "ovr"

    def targets(self) -> tuple[Vector, Vector]:
        """What a row of each class is given as the probability of its class, and of each other one."""
        pseudo = 2 / (self.n_classes * (self.n_classes - 1))
        n_told_apart = self.n_classes if self.is_joint else 2
        whole = self.totals + n_told_apart * pseudo
        return (self.totals + pseudo) / whole, pseudo / whole


class NotTested(ValueError):
    """A class without a tested row has no probability."""


@dataclass(frozen=True)
class Calibration:
    """How decision values become probabilities.

    Attributes
    ----------
    slopes, offsets : ndarray of shape (n_machines,)
        The decision values of each machine times its slope, plus its offset, are log-odds: of the two
        classes that it tells apart; or with one versus rest, up to a constant, the logarithm of the
        probability of its class. Slopes of machines for two classes are never negative.
    """

    slopes: Vector
    offsets: Vector

    def probabilities(self, decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
        """A column per class, of the dtype of the decision values; rows sum to 1, no entry is 0 or 1."""
        log_odds = decisions.astype(np.float64) * self.slopes + self.offsets
        if n_classes == 2:
            P = np.column_stack([_sigmoid(-log_odds[:, 0]), _sigmoid(log_odds[:, 0])])
        elif multi_class == "ovr":
            P = _softmax(log_odds)
        else:
            P = couple(_sigmoid(log_odds), n_classes)
        P = np.maximum(P, np.finfo(decisions.dtype).eps)
        return (P / P.sum(axis=1, keepdims=True)).astype(decisions.dtype, copy=False)

    def log_probabilities(self, decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
        return np.log(self.probabilities(decisions, n_classes, multi_class))


def fit_calibration(rows: UnseenRows, classes: np.ndarray, multi_class: str) -> Calibration:
    """The calibration of rows in memory."""
    rows = UnseenRows(np.asarray(rows.decisions, np.float64), rows.codes, rows.weights)
    return fit_by_sums(lambda function, *args: function(rows, *args), classes, multi_class)


def fit_by_sums(ask: Ask, classes: np.ndarray, multi_class: str) -> Calibration:
    """The same for rows anywhere: it takes nothing but a few sums over them for each Newton step."""
    n_classes = len(classes)
    totals = ask(class_totals, n_classes)
    if not totals.all():
        raise NotTested(
            f"No sample of class {classes[totals == 0].tolist()[0]!r} is in a test fold, so nothing is known "
            "of its probability. Use a cv that tests every class, such as StratifiedKFold."
        )
    weight, total = ask(first_moments, n_classes, multi_class)
    mean = total / weight
    spread = np.sqrt(ask(second_moments, n_classes, multi_class, mean) / weight)
    flat = spread <= FLAT * np.maximum(1, np.abs(mean))
    scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))
    setting = Setting(n_classes, multi_class, totals, mean, scale)
    return Calibration(*(_fit_softmax(ask, setting) if setting.is_joint else _fit_sigmoids(ask, setting)))


def _fit_sigmoids(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    """Slopes and offsets, each machine by itself; no offset unless the rows ask for one."""
    weight = setting.totals[np.array(class_pairs(setting.n_classes, setting.multi_class))].sum(axis=1)
    nothing = np.zeros(len(weight))
    shifted = _with_offsets(ask, setting)
    bare = _without_offsets(ask, setting._replace(mean=nothing)), nothing
    as_given = setting._replace(mean=nothing, scale=nothing + 1)
    losses = [ask(sigmoid_sums, as_given, np.column_stack(theta))[:, 0] for theta in (shifted, bare)]
    ask_for_one = losses[1] - losses[0] > np.maximum(np.log(weight) / 2, 0)
    ask_for_one |= setting.scale == 0
    return np.where(ask_for_one, shifted[0], bare[0]), np.where(ask_for_one, shifted[1], 0.0)


def _with_offsets(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, theta)
        hessian = packed[:, [[3, 4], [4, 5]]]
        hessian[:, 0, 0] += setting.scale == 0
        return packed[:, 0], packed[:, 1:3], hessian

    pairs = np.array(class_pairs(setting.n_classes, setting.multi_class))
    slopes, offsets = minimise(sums, np.zeros((len(pairs), 2)), float(setting.totals.sum())).T
    # Decision values that say the opposite of the truth say nothing: of all sigmoids that do not fall, the
    # constant one is the best, the likelihood being concave.
    own, other = setting.targets()
    negative, positive = setting.totals[pairs].T
    rate = (negative * other[pairs[:, 0]] + positive * own[pairs[:, 1]]) / (negative + positive)
    falls, slopes = slopes < 0, slopes * setting.scale
    offsets = np.where(falls, np.log(rate / (1 - rate)), offsets - slopes * setting.mean)
    return np.where(falls, 0.0, slopes), offsets


def _without_offsets(ask: Ask, setting: Setting) -> Vector:
    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, np.column_stack([theta, np.zeros(len(theta))]))
        hessian = packed[:, 3] + (setting.scale == 0)
        return packed[:, 0], packed[:, 1:2], hessian[:, None, None]

    (slopes,) = minimise(sums, np.zeros((len(setting.mean), 1)), float(setting.totals.sum())).T
    return np.maximum(slopes, 0) * setting.scale


def _fit_softmax(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    """Slopes and offsets of machines of one class against the rest, all at once."""
    n, total = setting.n_classes, float(setting.totals.sum())

    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(softmax_sums, setting, theta[0])
        gradient, hessian = np.split(packed[1:].reshape(2 * n, 2 * n + 1).copy(), [1], axis=1)
        hessian[range(n), range(n)] += setting.scale == 0
        hessian[n:, n:] += total / n  # a constant in all offsets changes nothing, and stays 0
        return packed[:1], gradient.T, hessian[None]

    slopes, offsets = minimise(sums, np.zeros((1, 2 * n)), total).reshape(2, n)
    return slopes * setting.scale, offsets - slopes * setting.scale * setting.mean


def minimise(sums: Callable[[Matrix], tuple[Vector, Matrix, Tensor]], theta: Matrix, n_rows: float) -> Matrix:
    """Newton's method for several smooth convex functions side by side, a row of `theta` for each.

    `sums` returns their values, gradients and Hessians. Steps are halved until they lower the value.
    """
    values, gradients, hessians = sums(theta)
    for _ in range(MAX_STEPS):
        steps = -np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
        promised = -np.einsum("ij,ij->i", gradients, steps)
        if (promised <= CLOSE * n_rows).all():
            return theta + steps
        lengths = np.ones(len(theta))
        while True:
            trial = theta + lengths[:, None] * steps
            new = sums(trial)
            too_far = new[0] > values - 1e-4 * lengths * promised + 1e-14 * np.abs(values)
            if not too_far.any():
                break
            lengths[too_far] /= 2
        theta, (values, gradients, hessians) = trial, new
    return theta


def class_totals(rows: UnseenRows, n_classes: int) -> Vector:
    """The weight of each class."""
    return np.bincount(rows.codes, weights=rows.weights, minlength=n_classes).astype(np.float64)


def first_moments(rows: UnseenRows, n_classes: int, multi_class: str) -> Matrix:
    """For each machine the weight of the rows that it is about, and their weighted sum of decision values."""
    of_machines = _rows_of_machines(rows, n_classes, multi_class)
    return np.array([(weights.sum(), weights @ values) for values, _, weights in of_machines]).T


def second_moments(rows: UnseenRows, n_classes: int, multi_class: str, mean: Vector) -> Vector:
    """For each machine the weighted sum of squared deviations."""
    of_machines = zip(_rows_of_machines(rows, n_classes, multi_class), mean, strict=True)
    return np.array([weights @ (values - center) ** 2 for (values, _, weights), center in of_machines])


def sigmoid_sums(rows: UnseenRows, setting: Setting, theta: Matrix) -> Matrix:
    """Of each machine: the negative log-likelihood at (slope, offset), its gradient and its Hessian."""
    own, other = setting.targets()
    scheme = setting.n_classes, setting.multi_class
    sums = np.empty((len(theta), 6))
    of_machines = zip(class_pairs(*scheme), _rows_of_machines(rows, *scheme), strict=True)
    for at, ((negative, positive), (values, codes, weights)) in enumerate(of_machines):
        values = (values - setting.mean[at]) * setting.scale[at]
        target = np.where(codes == positive, own[positive], other[negative])
        log_odds = theta[at, 0] * values + theta[at, 1]
        p = _sigmoid(log_odds)
        slope, curvature = weights * (p - target), weights * p * (1 - p)
        value = weights @ (np.logaddexp(0, log_odds) - target * log_odds)
        squares = curvature @ values**2, curvature @ values, curvature.sum()
        sums[at] = value, slope @ values, slope.sum(), *squares
    return sums


def softmax_sums(rows: UnseenRows, setting: Setting, theta: Vector) -> Vector:
    """The negative log-likelihood at (slopes, offsets); then, flat, the gradient beside the Hessian."""
    n, (own, other) = setting.n_classes, setting.targets()
    values = (rows.decisions - setting.mean) * setting.scale
    target = np.repeat(other[rows.codes, None], n, axis=1)
    target[np.arange(len(target)), rows.codes] = own[rows.codes]
    logits = theta[:n] * values + theta[n:]
    normaliser = _log_sum(logits)
    P = np.exp(logits - normaliser[:, None])
    value = rows.weights @ (normaliser - np.einsum("ij,ij->i", target, logits))
    slope, weighted = rows.weights[:, None] * (P - target), rows.weights[:, None] * P
    parts = values, np.ones_like(values)
    gradient = np.concatenate([(slope * part).sum(axis=0) for part in parts])
    hessian = np.block(
        [[np.diag((weighted * a * b).sum(axis=0)) - (weighted * a).T @ (P * b) for b in parts] for a in parts]
    )
    return np.concatenate([[value], np.column_stack([gradient, hessian]).ravel()])


def couple(pairwise: Matrix, n_classes: int) -> Matrix:
    """Probabilities of all classes from those of the second class of each pair, a column per pair.

    They minimise the sum over pairs of (P(j | i or j) p_i - P(i | i or j) p_j)^2 among those that sum to 1.
    """
    n_rows, n = len(pairwise), n_classes
    P = np.empty((n_rows, n))
    height = max(1, TILE // (n + 1) ** 2)
    i, j = np.array(class_pairs(n, "ovo")).T
    for start in range(0, n_rows, height):
        second = pairwise[start : start + height]
        of_other = np.zeros((len(second), n, n))  # [row, i, j]: the probability of j where it is i or j
        of_other[:, i, j], of_other[:, j, i] = second, 1 - second
        system = np.ones((len(second), n + 1, n + 1))
        system[:, :n, :n] = -of_other * of_other.transpose(0, 2, 1)
        system[:, range(n), range(n)] = (of_other**2).sum(axis=2)
        system[:, n, n] = 0
        right = np.zeros((len(second), n + 1, 1))
        right[:, n] = 1
        P[start : start + height] = np.linalg.solve(system, right)[:, :n, 0]
    return np.maximum(P, 0)


def _rows_of_machines(rows: UnseenRows, n_classes: int, multi_class: str) -> Iterator[UnseenRows]:
    """The rows that each machine is about, with its decision values alone."""
    for at, (negative, positive) in enumerate(class_pairs(n_classes, multi_class)):
        about: Any = slice(None)
        if negative is not None and n_classes > 2:
            about = np.flatnonzero((rows.codes == negative) | (rows.codes == positive))
        yield UnseenRows(rows.decisions[about, at], rows.codes[about], rows.weights[about])


def _sigmoid(log_odds: Matrix) -> Matrix:
    return np.exp(-np.logaddexp(0, -log_odds))


def _softmax(logits: Matrix) -> Matrix:
    return np.exp(logits - _log_sum(logits)[:, None])


def _log_sum(logits: Matrix) -> Vector:
    """The logarithm of the sum of the exponentials of each row."""
    return np.logaddexp.reduce(logits, axis=1)
