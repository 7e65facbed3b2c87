"""The penalised objective f_rho, its gradient and its quadratic surrogate.

In the notation of the paper, with sample weights s and a ridge lam beside the distance penalty::

    f_rho(beta) = a^2/2 sum_i s_i max(0, 1 - y_i x_i'beta)^2 + lam/2 ||w||^2 + b^2/2 dist(beta, S_k)^2

    a^2 = 1/n            (`loss_weight`)
    b^2 = rho/(p-k+1)    (`penalty_weight`)

beta = (w, intercept); the intercept is neither penalised nor projected.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kmargin import sparsity
from kmargin.design import Columns, Design, Moments
from kmargin.losses import squared_hinge
from kmargin.types import Vector


class Factors(Protocol):
    """``diag(sqrt(weights)) [X 1] = U diag(s) V'``: U is as long as X and stays with it."""

    s: Vector

    def pull(self, beta: Vector) -> Vector:
        """U'z, z being the weighted response that the surrogate is anchored to at beta."""

    def coordinates(self, beta: Vector) -> Vector:
        """V'beta."""

    def combine(self, coordinates: Vector) -> Vector:
        """V times these."""


class FactorsAtHand:
    """The factors of a design that has its rows."""

    def __init__(self, problem: "ArrayProblem") -> None:
        self.problem = problem
        self.U, self.s, self.V = problem.design.thin_svd(problem.weights)

    def pull(self, beta: Vector) -> Vector:
        decision = self.problem.design.decision(beta)
        z = np.sqrt(self.problem.weights) * squared_hinge.shifted_response(decision, self.problem.y)
        return self.U.T @ z

    def coordinates(self, beta: Vector) -> Vector:
        return self.V.T @ beta

    def combine(self, coordinates: Vector) -> Vector:
        return self.V @ coordinates


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

    @abstractmethod
    def factors(self) -> Factors:
        """The thin SVD of the weighted X, as MM asks for it."""

    @property
    def loss_weight(self) -> float:
        return 1.0 / self.design.n_samples

    @property
    def normalizer(self) -> int:
        """What a squared distance to S_k is divided by."""
        return sparsity.normalizer(self.design.n_features, self.k)

    @property
    def keeps_all(self) -> bool:
        """Whether every feature may stay."""
        return self.k >= self.design.n_features

    def penalty_weight(self, rho: float) -> float:
        """b^2. Zero when every feature may stay: then the distance is zero everywhere."""
        n_features = self.design.n_features
        return rho / sparsity.normalizer(n_features, self.k) if self.k < n_features else 0.0

    def with_ridge(self, lam: float) -> "Problem":
        return replace(self, lam=lam)

    def with_k(self, k: int) -> "Problem":
        return replace(self, k=min(k, self.design.n_features))

    def coefficients(self, beta: Vector) -> Vector:
        """beta without the intercept (a view)."""
        return beta[: self.design.n_features]

    def project(self, beta: Vector) -> Vector:
        return sparsity.project(beta, self.k, self.design.n_features)

    def squared_distance(self, beta: Vector) -> float:
        gap = beta - self.project(beta)
        return float(gap @ gap)

    def loss(self, beta: Vector) -> float:
        """What is to be minimised over S_k: the mean squared hinge plus the ridge."""
        w = self.coefficients(beta)
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers is no good
            ridge = self.lam / 2 * float(w @ w) if self.lam > 0 else 0.0
            return self.mean_loss(beta) + ridge

    def objective(self, beta: Vector, rho: float) -> float:
        """f_rho."""
        return self.loss(beta) + self.penalty_weight(rho) / 2 * self.squared_distance(beta)

    def curvature(self, direction: Vector, rho: float) -> float:
        """The curvature of the surrogate in a direction."""
        length_sq = float(direction @ direction)
        return self.bend(direction) + (self.penalty_weight(rho) + self.lam) * length_sq

    def gradient(self, beta: Vector, rho: float) -> Vector:
        """The gradient of f_rho."""
        gradient = self.loss_gradient(beta)
        gradient += self.penalty_weight(rho) * (beta - self.project(beta))
        self.coefficients(gradient)[:] += self.lam * self.coefficients(beta)
        return gradient

    def ridge_center(self, anchor: Vector) -> Vector:
        """Where the surrogate's ridge is zero: no coefficients, the anchor's intercept."""
        center = np.zeros_like(anchor)
        center[self.design.n_features :] = anchor[self.design.n_features :]
        return center


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
        return self.loss_weight * float(self.weights @ self.design.decision(direction) ** 2)

    def mean_label(self) -> float:
        return float(self.weights @ self.y) / self.design.n_samples

    def factors(self) -> FactorsAtHand:
        return FactorsAtHand(self)

    def moments(self) -> Moments:
        return self.design.moments(self.weights, self.y)

    def surrogate(self, beta: Vector, anchor: Vector, rho: float) -> float:
        """The quadratic g_rho(beta | anchor): above f_rho everywhere, equal to it at the anchor.

        The paper's distance penalty holds the intercept to the anchor's with weight b^2. The ridge
        does the same with weight lam. Thus all of beta has curvature b^2 + lam on top of the
        data's, and one SVD of X serves every rho, k and lam.
        """
        decision, at_anchor = self.design.decision(beta), self.design.decision(anchor)
        to_projection = beta - self.project(anchor)
        to_ridge_center = beta - self.ridge_center(anchor)
        return (
            squared_hinge.mean_majorizer(decision, at_anchor, self.y, self.weights)
            + self.penalty_weight(rho) / 2 * float(to_projection @ to_projection)
            + self.lam / 2 * float(to_ridge_center @ to_ridge_center)
        )
