"""The problem: M >= 1 binary problems that share the units that k counts.

    loss(beta) = 1/(2n) sum_i s_i max(0, 1 - y_i x_i'beta)^2 + lam/2 ||w||^2

is minimised over beta = (w, intercept) for each binary problem; the intercept is neither penalised nor
counted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Vector
from kmargin.core.design import Columns, Design, Moments
from kmargin.core.loss import Loss
from kmargin.core.units import Units

# By name. The tests of `tests/core/test_losses.py` hold of each of these.
LOSSES: dict[str, Loss] = {"squared_hinge": squared_hinge}


@dataclass(frozen=True)
class BinaryProblem(ABC):
    """Labels -1 and 1 to be explained by the design's features: what a solver asks, wherever the rows are."""

    design: Columns
    lam: float

    @abstractmethod
    def mean_loss(self, beta: Vector) -> float:
        """The mean squared hinge."""

    @abstractmethod
    def loss_gradient(self, beta: Vector) -> Vector:
        """The gradient of the mean squared hinge."""

    @abstractmethod
    def curvature_along(self, direction: Vector) -> float:
        """The curvature of the quadratic majoriser of the mean loss in a direction."""

    @abstractmethod
    def mean_label(self) -> float: ...

    @abstractmethod
    def moments(self) -> Moments:
        """Weighted mean and variance of each column, and its covariance with the labels."""

    def with_ridge(self, lam: float) -> "BinaryProblem":
        return replace(self, lam=lam)

    def coefficients(self, beta: Vector) -> Vector:
        """beta without the intercept (a view)."""
        return beta[: self.design.n_features]

    def loss(self, beta: Vector) -> float:
        """The objective: mean squared hinge plus ridge."""
        w = self.coefficients(beta)
        with np.errstate(over="ignore", invalid="ignore"):
            ridge = self.lam / 2 * float(w @ w) if self.lam > 0 else 0.0
            return self.mean_loss(beta) + ridge

    def gradient(self, beta: Vector) -> Vector:
        """The gradient of `loss`."""
        gradient = self.loss_gradient(beta)
        self.coefficients(gradient)[:] += self.lam * self.coefficients(beta)
        return gradient


@dataclass(frozen=True)
class LabelledRows:
    """Rows in memory, each with its label and weight: the first fields of `ArrayProblem`."""

    design: Design
    y: Vector  # -1 or 1
    weights: Vector  # positive, summing to n


@dataclass(frozen=True)
class ArrayProblem(BinaryProblem, LabelledRows):
    """A binary problem whose rows are in memory."""

    design: Design

    def mean_loss(self, beta: Vector) -> float:
        return squared_hinge.mean_loss(self.design.decision(beta), self.y, self.weights)

    def loss_gradient(self, beta: Vector) -> Vector:
        return self.design.adjoint(squared_hinge.gradient(self.design.decision(beta), self.y, self.weights))

    def curvature_along(self, direction: Vector) -> float:
        return float(self.weights @ self.design.decision(direction) ** 2) / self.design.n_samples

    def mean_label(self) -> float:
        return float(self.weights @ self.y) / self.design.n_samples

    def moments(self) -> Moments:
        return self.design.moments(self.weights, self.y)


@dataclass(frozen=True)
class Problem:
    """Binary problems that share their units. Each has its own ridge."""

    binary: tuple[BinaryProblem, ...]
    units: Units

    @classmethod
    def of(cls, binary: BinaryProblem) -> "Problem":
        """One binary problem of which k counts the columns."""
        return cls((binary,), Units.of_columns(binary.design.n_features))

    def with_ridges(self, lams: Sequence[float]) -> "Problem":
        """The same with these ridges, one for each binary problem."""
        binary = tuple(one.with_ridge(float(lam)) for one, lam in zip(self.binary, lams, strict=True))
        return replace(self, binary=binary)
