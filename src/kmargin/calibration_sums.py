"""What calibrating asks of the decision values of unseen rows: sums over some of these, whoever has them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kmargin.multiclass import class_pairs
from kmargin.types import Indices, Matrix, Vector


class UnseenRows(NamedTuple):
    """What machines say of rows that they have not seen."""

    decisions: Matrix  # a column per machine
    codes: Indices  # of the classes
    weights: Vector  # a row of weight 2 counts as the row twice


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
        p = sigmoid(log_odds)
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


def _rows_of_machines(rows: UnseenRows, n_classes: int, multi_class: str) -> Iterator[UnseenRows]:
    """The rows that each machine is about, with its decision values alone."""
    for at, (negative, positive) in enumerate(class_pairs(n_classes, multi_class)):
        about: Any = slice(None)
        if negative is not None and n_classes > 2:
            about = np.flatnonzero((rows.codes == negative) | (rows.codes == positive))
        yield UnseenRows(rows.decisions[about, at], rows.codes[about], rows.weights[about])


def sigmoid(log_odds: Matrix) -> Matrix:
    return np.exp(-np.logaddexp(0, -log_odds))


def softmax(logits: Matrix) -> Matrix:
    return np.exp(logits - _log_sum(logits)[:, None])


def _log_sum(logits: Matrix) -> Vector:
    """The logarithm of the sum of the exponentials of each row."""
    return np.logaddexp.reduce(logits, axis=1)
