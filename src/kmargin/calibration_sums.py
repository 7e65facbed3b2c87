"""What calibrating asks of the decision values of unseen rows: sums over some of these, whoever has them."""

from typing import NamedTuple

import numpy as np

from kmargin.multiclass import class_pairs
from kmargin.types import Indices, Matrix, Vector

TILE = 2**21  # numbers that an array may have, beside the rows


class UnseenRows(NamedTuple):
    """What machines say of rows that they have not seen."""

    decisions: Matrix  # a column per machine
    codes: Indices  # of the classes
    weights: Vector  # a row of weight 2 counts as the row twice


class Pieces(NamedTuple):
    """The same, made ready: the rows that each machine is about, one machine after another."""

    rows: UnseenRows
    machine: Indices
    values: Vector  # decision values
    codes: Indices
    weights: Vector


def make_ready(rows: UnseenRows, n_classes: int, multi_class: str) -> Pieces:
    """The pieces of some rows."""
    about = []
    for negative, positive in class_pairs(n_classes, multi_class):
        if negative is None or n_classes == 2:
            about.append(np.arange(len(rows.codes)))
        else:
            about.append(np.flatnonzero((rows.codes == negative) | (rows.codes == positive)))
    machine = np.repeat(np.arange(len(about)), [len(one) for one in about])
    at = np.concatenate(about)
    return Pieces(rows, machine, rows.decisions[at, machine], rows.codes[at], rows.weights[at])


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
        """What a row of each class is given as the probability of its class, and of the other of a pair."""
        pseudo = 2 / (self.n_classes * (self.n_classes - 1))
        whole = self.totals + 2 * pseudo
        return (self.totals + pseudo) / whole, pseudo / whole


def class_totals(pieces: Pieces, n_classes: int) -> Vector:
    """The weight of each class."""
    return _totals(pieces.rows.codes, n_classes, pieces.rows.weights)


def first_moments(pieces: Pieces, n_machines: int) -> Matrix:
    """For each machine the weight of the rows that it is about, and their weighted sum of decision values."""
    weights = pieces.weights
    return np.array([_totals(pieces.machine, n_machines, of) for of in (weights, weights * pieces.values)])


def second_moments(pieces: Pieces, n_machines: int, mean: Vector) -> Vector:
    """For each machine the weighted sum of squared deviations."""
    deviation = pieces.values - mean[pieces.machine]
    return _totals(pieces.machine, n_machines, pieces.weights * deviation**2)


def sigmoid_sums(pieces: Pieces, setting: Setting, theta: Matrix) -> Matrix:
    """Of each machine: the negative log-likelihood at (slope, offset), its gradient and its Hessian."""
    _, machine, values, codes, weights = pieces
    own, other = setting.targets()
    positive = np.array([pair.positive for pair in class_pairs(setting.n_classes, setting.multi_class)])
    values = (values - setting.mean[machine]) * setting.scale[machine]
    target = np.where(codes == positive[machine], own[codes], other[codes])
    log_odds = theta[machine, 0] * values + theta[machine, 1]
    p = sigmoid(log_odds)
    loss = weights * (np.logaddexp(0, log_odds) - target * log_odds)
    slope, curvature = weights * (p - target), weights * p * (1 - p)
    terms = loss, slope * values, slope, curvature * values**2, curvature * values, curvature
    return np.stack([_totals(machine, len(theta), term) for term in terms], axis=1)


def softmax_sums(pieces: Pieces, setting: Setting, theta: Vector) -> Vector:
    """The negative log-likelihood at (slopes, offsets); then, flat, the gradient beside the Hessian."""
    rows, n = pieces.rows, setting.n_classes
    values = (rows.decisions - setting.mean) * setting.scale
    target = np.eye(n)[rows.codes]
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


def mixed_softmax_sums(pieces: Pieces, setting: Setting, theta: Vector) -> Vector:
    """The same where every machine has a say in every class: `theta` is, row after row, what each machine's
    decision values are multiplied by for each class, then the offsets.
    """
    rows, n = pieces.rows, setting.n_classes
    theta, size = theta.reshape(n + 1, n), n * (n + 1)
    value, gradient, hessian = 0.0, np.zeros((n + 1, n)), np.zeros((n + 1, n, n + 1, n))
    height = max(1, TILE // size)
    for start in range(0, len(rows.codes), height):
        part = slice(start, start + height)
        codes, weights = rows.codes[part], rows.weights[part]
        A = np.column_stack([(rows.decisions[part] - setting.mean) * setting.scale, np.ones(len(codes))])
        target = np.eye(n)[codes]
        logits = A @ theta
        normaliser = _log_sum(logits)
        P = np.exp(logits - normaliser[:, None])
        value += float(weights @ (normaliser - np.einsum("ij,ij->i", target, logits)))
        gradient += A.T @ (weights[:, None] * (P - target))
        products = (A[:, :, None] * P[:, None, :]).reshape(len(codes), size)
        hessian -= ((weights[:, None] * products).T @ products).reshape(hessian.shape)
        for c in range(n):
            hessian[:, c, :, c] += A.T @ (A * (weights * P[:, c])[:, None])
    together = np.column_stack([gradient.ravel(), hessian.reshape(size, size)])
    return np.concatenate([[value], together.ravel()])


def _totals(which: Indices, n: int, terms: Vector) -> Vector:
    """Terms added up by what they are of."""
    return np.bincount(which, weights=terms, minlength=n).astype(np.float64)


def sigmoid(log_odds: Matrix) -> Matrix:
    return np.exp(-np.logaddexp(0, -log_odds))


def softmax(logits: Matrix) -> Matrix:
    return np.exp(logits - _log_sum(logits)[:, None])


def _log_sum(logits: Matrix) -> Vector:
    """The logarithm of the sum of the exponentials of each row."""
    return np.logaddexp.reduce(logits, axis=1)
