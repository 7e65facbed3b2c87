"""Probabilities from decision values, calibrated on rows that the model was not fitted to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, softmax

from kmargin.core.arrays import Indices, Matrix, Tensor, Vector
from kmargin.core.labels import class_pairs, label_rows

TILE = 2**21  # most entries of a temporary array; if there would be more, rows are summed in several parts


class UnseenRows(NamedTuple):
    """Rows that the binary classifiers were not fitted to, with their decision values."""

    decisions: Matrix  # one column per binary classifier
    codes: Indices  # the class of each row, as an index into the sorted classes
    weights: Vector  # sample weights: a row of weight 2 counts like two rows


class Pieces(NamedTuple):
    """The rows that calibrate each binary classifier: one entry for each pair of a classifier and a row."""

    rows: UnseenRows  # all rows, once each
    classifier: Indices  # the index of the binary classifier
    values: Vector  # decision values: each entry is that of one binary classifier for one row
    codes: Indices  # the class of the row, as an index into the sorted classes
    weights: Vector  # the sample weight of the row


def make_ready(rows: UnseenRows, n_classes: int, multi_class: str) -> Pieces:
    """Select the rows for each binary classifier: those of its two classes, or all for one versus rest."""
    every = np.arange(len(rows.codes))
    own = [label_rows(rows.codes, pair)[0] for pair in class_pairs(n_classes, multi_class)]
    rows_of_each = [every if at is None else at for at in own]
    classifier = np.repeat(np.arange(len(rows_of_each)), [len(at) for at in rows_of_each])
    at = np.concatenate(rows_of_each)
    return Pieces(rows, classifier, rows.decisions[at, classifier], rows.codes[at], rows.weights[at])


class Setting(NamedTuple):
    """Data that stay the same in all Newton steps of a calibration."""

    n_classes: int
    multi_class: str
    totals: Vector  # the sum of the sample weights of each class
    mean: Vector  # the mean decision value of each binary classifier
    scale: Vector  # 1 / standard deviation of the decision values of each classifier; 0 if they are constant

    @property
    def is_joint(self) -> bool:
        """Whether one softmax of all classes is fitted: for one versus rest with more than two classes."""
        return self.n_classes > 2 and self.multi_class == "ovr"

    def targets(self) -> tuple[Vector, Vector]:
        """Platt's target probabilities of the positive class of a binary classifier, for rows of each class.

        The first vector holds the targets of each class where it is the positive class, the second where it
        is not. They differ from 1 and 0, because Platt adds two rows to each class, one for either label.
        Here these rows have a weight of 1 divided by the number of pairs of classes.
        """
        pseudo = 2 / (self.n_classes * (self.n_classes - 1))
        whole = self.totals + 2 * pseudo
        return (self.totals + pseudo) / whole, pseudo / whole


def class_totals(pieces: Pieces, n_classes: int) -> Vector:
    """The sum of the sample weights of each class."""
    return _totals(pieces.rows.codes, n_classes, pieces.rows.weights)


def first_moments(pieces: Pieces, n_classifiers: int) -> Matrix:
    """A column per binary classifier, with the sum of weights and the weighted sum of decision values."""
    terms = pieces.weights, pieces.weights * pieces.values
    return np.array([_totals(pieces.classifier, n_classifiers, term) for term in terms])


def second_moments(pieces: Pieces, n_classifiers: int, mean: Vector) -> Vector:
    """For each binary classifier, the weighted sum of squared deviations of decision values from `mean`."""
    deviation = pieces.values - mean[pieces.classifier]
    return _totals(pieces.classifier, n_classifiers, pieces.weights * deviation**2)


def sigmoid_sums(pieces: Pieces, setting: Setting, theta: Matrix) -> Matrix:
    """The negative log-likelihood of the sigmoid of each binary classifier, with gradient and Hessian.

    `theta` and the result have a row for each classifier. A row of `theta` is (slope, offset). A row of the
    result has six numbers: the value, its derivatives by slope and offset, and the entries (slope, slope),
    (slope, offset) and (offset, offset) of the Hessian.
    """
    _, classifier, values, codes, weights = pieces
    own, other = setting.targets()
    positive = np.array([pair.positive for pair in class_pairs(setting.n_classes, setting.multi_class)])
    values = (values - setting.mean[classifier]) * setting.scale[classifier]
    target = np.where(codes == positive[classifier], own[codes], other[codes])
    log_odds = theta[classifier, 0] * values + theta[classifier, 1]
    p = expit(log_odds)
    loss = weights * (np.logaddexp(0, log_odds) - target * log_odds)
    slope, curvature = weights * (p - target), weights * p * (1 - p)
    terms = loss, slope * values, slope, curvature * values**2, curvature * values, curvature
    return np.stack([_totals(classifier, len(theta), term) for term in terms], axis=1)


def softmax_sums(pieces: Pieces, setting: Setting, theta: Vector) -> Vector:
    """The negative log-likelihood of a softmax of slope * decision value + offset of each class.

    `theta` has a slope for each class, then an offset for each class. The result is one vector: the value,
    then for each entry of `theta` its entry of the gradient and its row of the Hessian.
    """
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
    """The negative log-likelihood of a softmax whose logits are linear in the decision values of all classes.

    `theta` holds the matrix of slopes (a row for each binary classifier, a column for each class), then the
    offsets. The result is one vector: the value, then for each entry of `theta` its entry of the gradient
    and its row of the Hessian.
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


def _totals(codes: Indices, n: int, terms: Vector) -> Vector:
    """For each code from 0 to n - 1, the sum of the entries of `terms` where `codes` has this code."""
    return np.bincount(codes, weights=terms, minlength=n).astype(np.float64)


MAX_NEWTON_STEPS = 100  # after this number of steps of Newton's method the last iterate is used as it is
CLOSE = 1e-12  # Newton's method ends when gradient' Hessian^-1 gradient <= this times the weight of all rows
RIDGE = 1e-14  # this times the weight of all rows is added to the diagonal of Hessians, which may be singular
MIN_OFFSET_GAIN = 1.92  # an offset must raise the log-likelihood by more: half the 95 % point of chi-squared
MIN_SPREAD = 1e-12  # a standard deviation of at most this times max(1, |mean|) counts as 0
MAX_WEIGHT = 1e100  # sample weights are scaled down until none is larger, because their sums might overflow
OWN_RIDGE, OTHER_RIDGE = 0.1, 10.0  # ridges on the slopes of a logit: for its own decision value, for others
MOST_MIXED = 40  # with more classes than this, each decision value enters only the logit of its own class
MAX_SYSTEM_ENTRIES = 2**20  # most matrix entries of the linear systems solved at a time, to bound memory

Ask = Callable[..., Any]  # ask(function, *args) sums function(pieces, *args) over all blocks of rows


class NotTested(ValueError):
    """The error that a class has no row in any test fold, so that its probability cannot be estimated."""


@dataclass(frozen=True)
class Calibration:
    """The fitted map from decision values to probabilities.

    Attributes
    ----------
    slopes, offsets : ndarray of shape (n_classifiers,)
        With two classes, or one versus one, the decision value of a binary classifier times its slope (never
        negative), plus its offset, is the log-odds of its second class against its first. With more than two
        classes and one versus rest, `slopes` has shape (n_classifiers, n_classes), and the softmax of
        ``decisions @ slopes + offsets`` gives the probabilities of the classes.
    """

    slopes: Vector | Matrix
    offsets: Vector

    def probabilities(self, decisions: Matrix, n_classes: int, multi_class: str) -> Matrix:
        """The probability of each class (a column) for each row, never exactly 0 or 1; rows sum to 1."""
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
        """The logarithms of `probabilities`."""
        return np.log(self.probabilities(decisions, n_classes, multi_class))


def fit_calibration(rows: UnseenRows, classes: np.ndarray, multi_class: str) -> Calibration:
    """Fit a calibration to rows that are all in memory."""
    weights = rows.weights / max(1.0, float(rows.weights.max()) / MAX_WEIGHT)
    rows = UnseenRows(np.asarray(rows.decisions, np.float64), rows.codes, weights)
    pieces = make_ready(rows, len(classes), multi_class)
    return fit_by_sums(lambda function, *args: function(pieces, *args), classes, multi_class)


def fit_by_sums(ask: Ask, classes: np.ndarray, multi_class: str) -> Calibration:
    """Fit a calibration to rows in blocks; `ask(function, *args)` adds up the function over all blocks."""
    n_classes = len(classes)
    totals = ask(class_totals, n_classes)
    if not totals.all():
        raise NotTested(
            f"No sample of class {classes[totals == 0].tolist()[0]!r} is in a test fold, so its "
            "probability cannot be estimated. Use a cv that tests every class, such as StratifiedKFold."
        )
    n_classifiers = len(class_pairs(n_classes, multi_class))
    weight, total = ask(first_moments, n_classifiers)
    mean = total / weight
    spread = np.sqrt(ask(second_moments, n_classifiers, mean) / weight)
    flat = spread <= MIN_SPREAD * np.maximum(1, np.abs(mean))
    scale = np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))
    setting = Setting(n_classes, multi_class, totals, mean, scale)
    if not setting.is_joint:
        return Calibration(*_fit_sigmoids(ask, setting))
    n, no_ridge = n_classes, np.zeros(n_classes)
    theta = _fit_softmax(
        ask, setting, softmax_sums, np.append(np.full(n, OWN_RIDGE), no_ridge), np.zeros(2 * n)
    )
    slopes, offsets = np.diag(theta[:n]), theta[n:]
    if n <= MOST_MIXED:
        ridge = np.append(np.where(np.eye(n), OWN_RIDGE, OTHER_RIDGE), no_ridge)
        theta = _fit_softmax(ask, setting, mixed_softmax_sums, ridge, np.append(slopes, offsets))
        slopes, offsets = theta[: n * n].reshape(n, n), theta[n * n :]
    slopes = scale[:, None] * slopes
    return Calibration(slopes, offsets - mean @ slopes)


def _fit_sigmoids(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    """Fit a slope for each binary classifier, and an offset where it is needed (see `MIN_OFFSET_GAIN`)."""
    zeros = np.zeros_like(setting.mean)
    shifted = _with_offsets(ask, setting)
    unshifted = _without_offsets(ask, setting._replace(mean=zeros)), zeros
    as_given = setting._replace(mean=zeros, scale=zeros + 1)
    losses = [ask(sigmoid_sums, as_given, np.column_stack(theta))[:, 0] for theta in (shifted, unshifted)]
    has_offset = losses[1] - losses[0] > MIN_OFFSET_GAIN
    has_offset |= unshifted[0] == 0  # with slope 0 the probability must be the base rate, not 1/2
    return np.where(has_offset, shifted[0], unshifted[0]), np.where(has_offset, shifted[1], 0.0)


def _with_offsets(ask: Ask, setting: Setting) -> tuple[Vector, Vector]:
    """For each binary classifier, the slope (at least 0) and the offset of highest likelihood."""

    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, theta)
        hessian = packed[:, [[3, 4], [4, 5]]]
        hessian[:, 0, 0] += setting.scale == 0
        return packed[:, 0], packed[:, 1:3], hessian

    pairs = np.array(class_pairs(setting.n_classes, setting.multi_class))
    slopes, offsets = minimise(sums, np.zeros((len(pairs), 2)), float(setting.totals.sum())).T
    # The log-likelihood is concave, so where the best slope is negative, the best slope >= 0 is 0. The best
    # offset is then the log-odds of the mean target probability.
    own, other = setting.targets()
    negative, positive = setting.totals[pairs].T
    first_total = negative * own[pairs[:, 0]] + positive * other[pairs[:, 1]]
    second_total = negative * other[pairs[:, 0]] + positive * own[pairs[:, 1]]
    falls, slopes = slopes < 0, slopes * setting.scale
    offsets = np.where(falls, np.log(second_total) - np.log(first_total), offsets - slopes * setting.mean)
    return np.where(falls, 0.0, slopes), offsets


def _without_offsets(ask: Ask, setting: Setting) -> Vector:
    """For each binary classifier, the slope (at least 0) of highest likelihood when all offsets are 0."""

    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sigmoid_sums, setting, np.column_stack([theta, np.zeros(len(theta))]))
        hessian = packed[:, 3] + (setting.scale == 0)
        return packed[:, 0], packed[:, 1:2], hessian[:, None, None]

    (slopes,) = minimise(sums, np.zeros((len(setting.mean), 1)), float(setting.totals.sum())).T
    return np.maximum(slopes, 0) * setting.scale


def _fit_softmax(
    ask: Ask, setting: Setting, sums_of: Callable[..., Vector], ridge: Vector, start: Vector
) -> Vector:
    """Fit the slopes and offsets of a softmax over all classes, for standardised decision values.

    The parameters theta minimise the value of `sums_of` (`softmax_sums` or `mixed_softmax_sums`) plus
    0.5 * sum(ridge * theta**2). `start` holds their starting values.
    """
    n, total = setting.n_classes, float(setting.totals.sum())

    def sums(theta: Matrix) -> tuple[Vector, Matrix, Tensor]:
        packed = ask(sums_of, setting, theta[0])
        gradient, hessian = np.split(packed[1:].reshape(len(ridge), -1).copy(), [1], axis=1)
        hessian[range(len(ridge)), range(len(ridge))] += ridge
        hessian[-n:, -n:] += total / n  # the likelihood does not depend on the mean offset: fix it at 0
        return packed[:1] + 0.5 * (ridge @ theta[0] ** 2), gradient.T + ridge * theta, hessian[None]

    return minimise(sums, start[None], total)[0]


def minimise(sums: Callable[[Matrix], tuple[Vector, Matrix, Tensor]], theta: Matrix, n_rows: float) -> Matrix:
    """By Newton's method, minimise several smooth convex functions, each from its own row of `theta`.

    `sums` returns all values, gradients and Hessians at such rows. A step is halved until it satisfies
    Armijo's rule. The tolerance is proportional to `n_rows`, because the functions are sums over rows.
    """
    values, gradients, hessians = sums(theta)
    for _ in range(MAX_NEWTON_STEPS):
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
    """Combine probabilities within pairs of classes into probabilities of all classes (Wu, Lin and Weng).

    `pairwise` has a column for each pair of classes i < j: P(j | i or j), the probability of the second. A
    result p minimises the sum over pairs of (P(j | i or j) p_i - P(i | i or j) p_j)^2 among p that sum to 1.
    """
    n_rows, n = len(pairwise), n_classes
    P = np.empty((n_rows, n))
    height = max(1, MAX_SYSTEM_ENTRIES // (n + 1) ** 2)
    i, j = np.array(class_pairs(n, "ovo")).T
    for start in range(0, n_rows, height):
        second = pairwise[start : start + height]
        of_other = np.zeros((len(second), n, n))  # entry [row, i, j]: P(class j | class i or j)
        of_other[:, i, j], of_other[:, j, i] = second, 1 - second
        system = np.ones((len(second), n + 1, n + 1))
        system[:, :n, :n] = -of_other * of_other.transpose(0, 2, 1)
        system[:, range(n), range(n)] = (of_other**2).sum(axis=2)
        system[:, n, n] = 0
        right = np.zeros((len(second), n + 1, 1))
        right[:, n] = 1
        P[start : start + height] = np.linalg.solve(system, right)[:, :n, 0]
    return np.maximum(P, 0)
