"""The optimisation problem: M >= 1 binary problems that share a choice of at most k units (e.g. features).

Each binary problem minimises

    loss(beta) = 1/(2n) sum_i s_i max(0, 1 - y_i x_i'beta)^2 + lam/2 ||w||^2

over beta = (w, intercept), with weights s_i and labels y_i in {-1, 1}. The intercept is not penalised and
does not count in k.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Vector
from kmargin.core.design import Columns, Design, Moments
from kmargin.core.units import Units


class Hinge(NamedTuple):
    """A term weight/2 * max(0, margin - sign * y * f)^2 of a loss; y is the label, f the decision value."""

    sign: float = 1.0
    margin: float = 1.0
    weight: float = 1.0


# The loss functions by name. Each is the sum of the squared hinges listed here. Extensions may add others.
LOSSES: dict[str, tuple[Hinge, ...]] = {"squared_hinge": (Hinge(),)}


@dataclass(frozen=True)
class BinaryProblem(ABC):
    """One problem with labels -1 and 1 and ridge `lam`; its rows are in memory or in distributed blocks."""

    design: Columns
    lam: float

    @abstractmethod
    def mean_loss(self, beta: Vector) -> float:
        """The weighted mean of the losses of all rows, without the ridge penalty."""

    @abstractmethod
    def loss_gradient(self, beta: Vector) -> Vector:
        """The gradient of `mean_loss` with respect to beta."""

    @abstractmethod
    def curvature_along(self, direction: Vector) -> float:
        """The largest second derivative of the mean loss along `direction`, attained where no loss is 0."""

    @abstractmethod
    def mean_label(self) -> float:
        """The weighted mean of label times margin over all rows; the mean label if all margins are 1."""

    def best_constant(self) -> tuple[float, float]:
        """The intercept of least mean loss without features (0 if there is no intercept), and that loss."""
        if not self.design.fit_intercept:
            return 0.0, squared_hinge.AT_ZERO
        return squared_hinge.best_constant(self.mean_label())

    @abstractmethod
    def moments(self) -> Moments:
        """Weighted mean and variance of each column of X, and its covariance with label times margin."""

    def with_ridge(self, lam: float) -> "BinaryProblem":
        return replace(self, lam=lam)

    def coefficients(self, beta: Vector) -> Vector:
        """The coefficients w of beta = (w, intercept), as a view of beta."""
        return beta[: self.design.n_features]

    def loss(self, beta: Vector) -> float:
        """The objective: mean loss plus the ridge penalty lam/2 ||w||^2."""
        w = self.coefficients(beta)
        with np.errstate(over="ignore", invalid="ignore"):
            ridge = self.lam / 2 * float(w @ w) if self.lam > 0 else 0.0
            return self.mean_loss(beta) + ridge

    def gradient(self, beta: Vector) -> Vector:
        """The gradient of `loss`, with respect to the coefficients and the intercept."""
        gradient = self.loss_gradient(beta)
        self.coefficients(gradient)[:] += self.lam * self.coefficients(beta)
        return gradient


@dataclass(frozen=True)
class LabelledRows:
    """Rows in memory, labels and weights; a base class, so that `ArrayProblem` has these fields first."""

    design: Design
    y: Vector  # the label of each row, -1 or 1
    weights: Vector  # of the rows; positive numbers whose sum is the number of rows


@dataclass(frozen=True)
class ArrayProblem(BinaryProblem, LabelledRows):
    """A binary problem whose rows are in memory.

    `margins` holds the margin of each row; None means 1 for all rows. If the loss is a sum of several squared
    hinges, the problem contains a copy of the rows for each of them; `with_loss` makes these copies.
    """

    design: Design
    margins: Vector | None = field(default=None, kw_only=True)

    def with_loss(self, loss: str) -> "ArrayProblem":
        """Return the problem with the loss LOSSES[loss] in place of the squared hinge."""
        terms, n_samples = LOSSES[loss], self.design.n_samples
        every = np.tile(np.arange(n_samples), len(terms))
        sign, margin, weight = np.repeat(np.array(terms, dtype=float).T, n_samples, axis=1)
        return replace(
            self,
            design=self.design.take_rows(every),
            y=sign * self.y[every],
            weights=len(terms) * weight * self.weights[every],  # the mean is over len(terms) copies of rows
            margins=margin,
        )

    @property
    def targets(self) -> Vector:
        """The margin of each row, as an array even if `margins` is None."""
        return np.ones(self.design.n_samples) if self.margins is None else self.margins

    def mean_loss(self, beta: Vector) -> float:
        return squared_hinge.mean_loss(self.design.decision(beta), self.y, self.weights, self.targets)

    def loss_gradient(self, beta: Vector) -> Vector:
        decision = self.design.decision(beta)
        return self.design.adjoint(squared_hinge.gradient(decision, self.y, self.weights, self.targets))

    def curvature_along(self, direction: Vector) -> float:
        return float(self.weights @ self.design.decision(direction) ** 2) / self.design.n_samples

    def mean_label(self) -> float:
        return float(self.weights @ (self.targets * self.y)) / float(self.weights.sum())

    def best_constant(self) -> tuple[float, float]:
        if self.margins is None:
            return super().best_constant()
        constant = 0.0
        if self.design.fit_intercept:
            # The derivative by the constant is piecewise linear with kinks at `ends`. Find its zero.
            ends = np.unique(self.margins * self.y)
            derivatives = [
                squared_hinge.derivatives(end, self.y, self.weights, margin=self.margins).sum()
                for end in ends
            ]
            constant = float(np.interp(0.0, derivatives, ends))
        decision = np.full(self.design.n_samples, constant)
        return constant, squared_hinge.mean_loss(decision, self.y, self.weights, self.margins)

    def moments(self) -> Moments:
        return self.design.moments(self.weights, self.targets * self.y)


@dataclass(frozen=True)
class Problem:
    """Binary problems that have to select the same units, at most k of them; each has a ridge of its own."""

    binary: tuple[BinaryProblem, ...]
    units: Units

    @classmethod
    def of(cls, binary: BinaryProblem) -> "Problem":
        """Make a problem of one binary problem, in which each column of X is a unit."""
        return cls((binary,), Units.of_columns(binary.design.n_features))

    def with_ridges(self, lams: Sequence[float]) -> "Problem":
        """Return the same problem with the ridges `lams`, one for each binary problem."""
        binary = tuple(one.with_ridge(float(lam)) for one, lam in zip(self.binary, lams, strict=True))
        return replace(self, binary=binary)
