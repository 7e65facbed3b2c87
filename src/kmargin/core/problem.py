"""A binary problem: mean squared hinge plus ridge, of which at most k features are to be used.

    loss(beta) = 1/(2n) sum_i s_i max(0, 1 - y_i x_i'beta)^2 + lam/2 ||w||^2

beta = (w, intercept); the intercept is neither penalised nor counted.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Vector
from kmargin.core.design import Columns, Design, Moments
from kmargin.core.loss import Loss

# By name. The tests of `tests/core/test_losses.py` hold of each of these.
LOSSES: dict[str, Loss] = {"squared_hinge": squared_hinge}


@dataclass(frozen=True)
class Problem(ABC):
    """At most k of the design's features are to explain the labels: what a solver asks, wherever rows are."""

    design: Columns
    lam: float
    k: int

    @property
    @abstractmethod
    def at_hand(self) -> "ArrayProblem | None":
        """This problem, if its rows are in memory, where compiled loops reach them."""

    @abstractmethod
    def mean_loss(self, beta: Vector) -> float:
        """The mean squared hinge."""

    @abstractmethod
    def loss_gradient(self, beta: Vector) -> Vector:
        """The gradient of the mean squared hinge."""

    @abstractmethod
    def bend(self, direction: Vector) -> float:
        """The curvature of the surrogate's loss in a direction."""

    @abstractmethod
    def mean_label(self) -> float: ...

    @abstractmethod
    def moments(self) -> Moments:
        """Of each column, the covariance being that with the labels."""

    def with_ridge(self, lam: float) -> "Problem":
        return replace(self, lam=lam)

    def with_k(self, k: int) -> "Problem":
        return replace(self, k=min(k, self.design.n_features))

    def coefficients(self, beta: Vector) -> Vector:
        """beta without the intercept (a view)."""
        return beta[: self.design.n_features]

    def loss(self, beta: Vector) -> float:
        """What is to be minimised over S_k: the mean squared hinge plus the ridge."""
        w = self.coefficients(beta)
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers is no good
            ridge = self.lam / 2 * float(w @ w) if self.lam > 0 else 0.0
            return self.mean_loss(beta) + ridge

    def gradient(self, beta: Vector) -> Vector:
        """The gradient of `loss`."""
        gradient = self.loss_gradient(beta)
        self.coefficients(gradient)[:] += self.lam * self.coefficients(beta)
        return gradient


@dataclass(frozen=True)
class LabelledRows:
    """Rows in memory, each with its label and weight: what `ArrayProblem` is given first."""

    design: Design
    y: Vector  # -1 or 1
    weights: Vector  # positive, summing to n


@dataclass(frozen=True)
class ArrayProblem(Problem, LabelledRows):
    """A problem whose rows are in memory."""

    design: Design

    @property
    def at_hand(self) -> "ArrayProblem":
        return self

    def mean_loss(self, beta: Vector) -> float:
        return squared_hinge.mean_loss(self.design.decision(beta), self.y, self.weights)

    def loss_gradient(self, beta: Vector) -> Vector:
        return self.design.adjoint(squared_hinge.gradient(self.design.decision(beta), self.y, self.weights))

    def bend(self, direction: Vector) -> float:
        return float(self.weights @ self.design.decision(direction) ** 2) / self.design.n_samples

    def mean_label(self) -> float:
        return float(self.weights @ self.y) / self.design.n_samples

    def moments(self) -> Moments:
        return self.design.moments(self.weights, self.y)
