"""Probabilities from decision values of rows that had no part in the fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, softmax

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.labels import class_pairs

TILE = 2**21  # numbers that a temporary array may hold


class UnseenRows(NamedTuple):
    """Decision values of rows that the binary classifiers were not fitted to."""

    decisions: Matrix  # one column per binary classifier
    codes: Indices  # of the classes
    weights: Vector  # a row of weight 2 counts as the row twice


class Pieces(NamedTuple):
    """The rows that each binary classifier distinguishes, one classifier after another."""

    rows: UnseenRows
    machine: Indices  # the number of the binary classifier
    values: Vector  # decision values
    codes: Indices
    weights: Vector


def make_ready(rows: UnseenRows, n_classes: int, multi_class: str) -> Pieces:
    """Select the rows of each binary classifier: for a pair of classes, the rows of these two."""
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
    """What all Newton steps need: scheme, weights of the classes, and scale of the decision values."""

    n_classes: int
    multi_class: str
    totals: Vector  # the weight of each class
    mean: Vector  # of the decision values of each binary classifier
    scale: Vector  # one over their standard deviation; 0 if that is 0

    @property
    def is_joint(self) -> bool:
        """Whether each binary classifier separates one of several classes from the rest."""
        return self.n_classes > 2 and self.multi_class == "ovr"

    def targets(self) -> tuple[Vector, Vector]:
        """Target probabilities of Platt: of the own class of a row, and of the other class of a pair."""
        pseudo = 2 / (self.n_classes * (self.n_classes - 1))
        whole = self.totals + 2 * pseudo
        return (self.totals + pseudo) / whole, pseudo / whole


def class_totals(pieces: Pieces, n_classes: int) -> Vector:
    """The weight of each class."""
    return _totals(pieces.rows.codes, n_classes, pieces.rows.weights)


def first_moments(pieces: Pieces, n_machines: int) -> Matrix:
    """For each binary classifier the weight of its rows, and the weighted sum of their decision values."""
    weights = pieces.weights
    return np.array([_totals(pieces.machine, n_machines, of) for of in (weights, weights * pieces.values)])


def second_moments(pieces: Pieces, n_machines: int, mean: Vector) -> Vector:
    """For each binary classifier the weighted sum of squared deviations."""
    deviation = pieces.values - mean[pieces.machine]
    return _totals(pieces.machine, n_machines, pieces.weights * deviation**2)


def sigmoid_sums(pieces: Pieces, setting: Setting, theta: Matrix) -> Matrix:
    """For each binary classifier the negative log-likelihood at (slope, offset), gradient and Hessian."""
    _, machine, values, codes, weights = pieces
    own, other = setting.targets()
    positive = np.array([pair.positive for pair in class_pairs(setting.n_classes, setting.multi_class)])
    values = (values - setting.mean[machine]) * setting.scale[machine]
    target = np.where(codes == positive[machine], own[codes], other[codes])
    log_odds = theta[machine, 0] * values + theta[machine, 1]
    p = expit(log_odds)
    loss = weights * (np.logaddexp(0, log_odds) - target * log_odds)
    slope, curvature = weights * (p - target), weights * p * (1 - p)
    terms = loss, slope * values, slope, curvature * values**2, curvature * values, curvature
    return np.stack([_totals(machine, len(theta), term) for term in terms], axis=1)


def softmax_sums(pieces: Pieces, setting: Setting, theta: Vector) -> Vector:
    """The negative log-likelihood at (slopes, offsets); then, flat, the gradient beside the Hessian."""
    rows, n = pieces.rows, setting.n_classes
    values = (rows.decisions - setting.mean) * setting.scale
    target = np.eye(n)[rows.codes]
    log_P = log_softmax(theta[:n] * values + theta[n:], axis=1)
    P = np.exp(log_P)
    value = -rows.weights @ log_P[np.arange(len(P)), rows.codes]
    slope, weighted = rows.weights[:, None] * (P - target), rows.weights[:, None] * P
    parts = values, np.ones_like(values)
    gradient = np.concatenate([(slope * part).sum(axis=0) for part in parts])
    hessian = np.block(
        [[np.diag((weighted * a * b).sum(axis=0)) - (weighted * a).T @ (P * b) for b in parts] for a in parts]
    )
    return np.concatenate([[value], np.column_stack([gradient, hessian]).ravel()])


def mixed_softmax_sums(pieces: Pieces, setting: Setting, theta: Vector) -> Vector:
    """The same with a matrix of slopes: every binary classifier contributes to every class.

    `theta` holds the slopes, a row for each binary classifier and a column for each class, then the offsets.
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
        log_P = log_softmax(A @ theta, axis=1)
        P = np.exp(log_P)
        value -= float(weights @ log_P[np.arange(len(P)), codes])
        gradient += A.T @ (weights[:, None] * (P - target))
        products = (A[:, :, None] * P[:, None, :]).reshape(len(codes), size)
        hessian -= ((weights[:, None] * products).T @ products).reshape(hessian.shape)
        for c in range(n):
            hessian[:, c, :, c] += A.T @ (A * (weights * P[:, c])[:, None])
    together = np.column_stack([gradient.ravel(), hessian.reshape(size, size)])
    return np.concatenate([[value], together.ravel()])


def _totals(which: Indices, n: int, terms: Vector) -> Vector:
    """Sums of the terms of each of n kinds."""
    return np.bincount(which, weights=terms, minlength=n).astype(np.float64)


MAX_STEPS = 100
CLOSE = 1e-12  # predicted decrease per row below which a Newton step is the last
RIDGE = 1e-14  # per row, added to Hessians that may underflow far from the minimum
PAYS = 1.92  # least gain of log-likelihood for an offset: half of the 95 % point of chi-squared
FLAT = 1e-12  # a standard deviation below this, or this times the mean, counts as 0
LARGEST = 1e100  # weights are scaled down to this: sums of larger ones may overflow
OWN, OTHERS = 0.1, 10.0  # ridge on the slope of the own class, and on those of other classes; in rows
MOST_MIXED = 40  # with more classes, each decision value enters only the logit of its own class
MAX_SYSTEM_ENTRIES = 2**20  # numbers in the linear systems that are solved at a time

Ask = Callable[..., Any]  # sums a function of `Pieces` over all rows, in memory or in blocks


class NotTested(ValueError):
    """A class has no row in any test fold, so its probability cannot be learned."""


@dataclass(frozen=True)
class Calibration:
    """How decision values become probabilities.

    Attributes
    ----------
    slopes, offsets : ndarray of shape (n_machines,)
        The decision values of each machine times its slope, plus its offset, are the log-odds of the two
        classes that it tells apart. These slopes are never negative. With more than two classes, one versus
        rest, the slopes are of shape (n_machines, n_classes): decision values times these, plus the offsets,
        are, up to a constant, the logarithms of the probabilities.
    """

    slopes: Vector | Matrix
    offsets: Vector

    def probabilities(self, decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
        """A column per class, of the dtype of the decision values; rows sum to 1, no entry is 0 or 1."""
        decisions_64 = decisions.astype(np.float64)
        mixed = np.ndim(self.slopes) == 2
        log_odds = (decisions_64 @ self.slopes if mixed else decisions_64 * self.slopes) + self.offsets
        if n_classes == 2:
            P = np.column_stack([expit(-log_odds[:, 0]), expit(log_odds[:, 0])])
        elif multi_class == "ovr":
            P = softmax(log_odds, axis=1)
        else:
            P = couple(expit(log_odds), n_classes)
        P = np.maximum(P, np.finfo(decisions.dtype).eps)
        return (P / P.sum(axis=1, keepdims=True)).astype(decisions.dtype, copy=False)

    def log_probabilities(self, decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
        """Their logarithms."""
        return np.log(self.probabilities(decisions, n_classes, multi_class))


def fit_calibration(rows: UnseenRows, classes: np.ndarray, multi_class: str) -> Calibration:
    """Fit a calibration to rows in memory."""
    weights = rows.weights / max(1.0, float(rows.weights.max()) / LARGEST)
    rows = UnseenRows(np.asarray(rows.decisions, np.float64), rows.codes, weights)
    pieces = make_ready(rows, len(classes), multi_class)
    return fit_by_sums(lambda function, *args: function(pieces, *args), classes, multi_class)


def fit_by_sums(ask: Ask, classes: np.ndarray, multi_class: str) -> Calibration:
    """Fit a calibration to rows in memory or in blocks, by a few sums over rows in each Newton step."""
    n_classes = len(classes)
    totals = ask(class_totals, n_classes)
    if not totals.all():
        raise NotTested(
            f"No sample of class {classes[totals == 0].tolist()[0]!r} is in a test fold, so its "
            "probability cannot be estimated. Use a cv that tests every class, such as StratifiedKFold."
        )
    n_machines = len(class_pairs(n_classes, multi_class))
    weight, total = ask(first_moments, n_machines)
    mean = total / weight
    spread = np.sqrt(ask(second_moments, n_machines, mean) / weight)
    flat = spread <= FLAT * np.maximum(1, np.abs(mean))
    scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))
    setting = Setting(n_classes, multi_class, totals, mean, scale)
    if not setting.is_joint:
        return Calibration(*_fit_sigmoids(ask, setting))
    n, no_ridge = n_classes, np.zeros(n_classes)
    theta = _fit_softmax(ask, setting, softmax_sums, np.append(np.full(n, OWN), no_ridge), np.zeros(2 * n))
    slopes, offsets = np.diag(theta[:n]), theta[n:]
    if n <= MOST_MIXED:
        ridge = np.append(np.where(np.eye(n), OWN, OTHERS), no_ridge)
        theta = _fit_softmax(ask, setting, mixed_softmax_sums, ridge, np.append(slopes, offsets))
        slopes, offsets = theta[: n * n].reshape(n, n), theta[n * n :]
    slopes = scale[:, None] * slopes
    return Calibration(slopes, offsets - mean @ slopes)


def _fit_sigmoids(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    """Slopes and offsets of each binary classifier; an offset only where it raises the likelihood."""
    nothing = np.zeros_like(setting.mean)
    shifted = _with_offsets(ask, setting)
    bare = _without_offsets(ask, setting._replace(mean=nothing)), nothing
    as_given = setting._replace(mean=nothing, scale=nothing + 1)
    losses = [ask(sigmoid_sums, as_given, np.column_stack(theta))[:, 0] for theta in (shifted, bare)]
    has_offset = losses[1] - losses[0] > PAYS
    has_offset |= bare[0] == 0  # the probability is then the base rate, not 1/2
    return np.where(has_offset, shifted[0], bare[0]), np.where(has_offset, shifted[1], 0.0)


def _with_offsets(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, theta)
        hessian = packed[:, [[3, 4], [4, 5]]]
        hessian[:, 0, 0] += setting.scale == 0
        return packed[:, 0], packed[:, 1:3], hessian

    pairs = np.array(class_pairs(setting.n_classes, setting.multi_class))
    slopes, offsets = minimise(sums, np.zeros((len(pairs), 2)), float(setting.totals.sum())).T
    # If the best sigmoid falls, the constant one is the best that does not: the likelihood is concave.
    own, other = setting.targets()
    negative, positive = setting.totals[pairs].T
    mass_first = negative * own[pairs[:, 0]] + positive * other[pairs[:, 1]]
    mass_second = negative * other[pairs[:, 0]] + positive * own[pairs[:, 1]]
    falls, slopes = slopes < 0, slopes * setting.scale
    offsets = np.where(falls, np.log(mass_second) - np.log(mass_first), offsets - slopes * setting.mean)
    return np.where(falls, 0.0, slopes), offsets


def _without_offsets(ask: Ask, setting: Setting) -> Vector:
    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, np.column_stack([theta, np.zeros(len(theta))]))
        hessian = packed[:, 3] + (setting.scale == 0)
        return packed[:, 0], packed[:, 1:2], hessian[:, None, None]

    (slopes,) = minimise(sums, np.zeros((len(setting.mean), 1)), float(setting.totals.sum())).T
    return np.maximum(slopes, 0) * setting.scale


def _fit_softmax(
    ask: Ask, setting: Setting, sums_of: Callable[..., Vector], ridge: Vector, start: Vector
) -> Vector:
    """Slopes and offsets of all classes at once, for decision values of mean 0 and variance 1.

    `sums_of` is `softmax_sums` or `mixed_softmax_sums`; `ridge` penalises the squares of its parameters.
    """
    n, total = setting.n_classes, float(setting.totals.sum())

    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sums_of, setting, theta[0])
        gradient, hessian = np.split(packed[1:].reshape(len(ridge), -1).copy(), [1], axis=1)
        hessian[range(len(ridge)), range(len(ridge))] += ridge
        hessian[-n:, -n:] += total / n  # a constant in all offsets changes nothing, and stays 0
        return packed[:1] + 0.5 * (ridge @ theta[0] ** 2), gradient.T + ridge * theta, hessian[None]

    return minimise(sums, start[None], total)[0]


def minimise(sums: Callable[[Matrix], tuple[Vector, Matrix, Tensor]], theta: Matrix, n_rows: float) -> Matrix:
    """Newton's method for several smooth convex functions side by side, a row of `theta` for each.

    `sums` returns their values, gradients and Hessians. Steps are halved until they lower the value.
    """
    values, gradients, hessians = sums(theta)
    for _ in range(MAX_STEPS):
        ridge = RIDGE * n_rows * np.eye(theta.shape[1])
        steps = -np.linalg.solve(hessians + ridge, gradients[:, :, None])[:, :, 0]
        predicted = -np.einsum("ij,ij->i", gradients, steps)
        if (predicted <= CLOSE * n_rows).all():
            return theta + steps
        lengths = np.ones(len(theta))
        while True:
            trial = theta + lengths[:, None] * steps
            new = sums(trial)
            too_far = new[0] > values - 1e-4 * lengths * predicted + 1e-14 * np.abs(values)
            if not too_far.any():
                break
            lengths[too_far] /= 2
        theta, (values, gradients, hessians) = trial, new
    return theta


def couple(pairwise: Matrix, n_classes: int) -> Matrix:
    """Probabilities of all classes from those of the second class of each pair, a column per pair.

    They minimise the sum over pairs of (P(j | i or j) p_i - P(i | i or j) p_j)^2 among those that sum to 1.
    """
    n_rows, n = len(pairwise), n_classes
    P = np.empty((n_rows, n))
    height = max(1, MAX_SYSTEM_ENTRIES // (n + 1) ** 2)
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
