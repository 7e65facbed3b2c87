"""The penalised objective f_rho of M binary problems, its gradient and its quadratic surrogate.

In the notation of the paper, with sample weights s, a ridge lam besides the distance penalty, and a sum over
the binary problems m = 1, ..., M, which share the features (or other units) that k counts::

    f_rho(beta) = sum_m [a^2/2 sum_i s_i max(0, 1 - y_i x_i'beta_m)^2 + lam/2 ||w_m||^2]
                  + b^2/2 dist(W, S_k)^2

    a^2 = 1/n
    b^2 = rho/(p-k+1)    (`penalty_weight`; p is the number of units, by default the features)

beta is a matrix with one row beta_m = (w_m, intercept) for each binary problem. W is beta without the
intercepts, which are neither penalised nor projected. The paper's problem has M = 1. Only the projection onto
S_k couples the rows of beta, so the surrogate of the sum is the sum of the surrogates.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kmargin.core import sparsity, squared_hinge
from kmargin.core.arrays import Indices, Matrix
from kmargin.core.problem import ArrayProblem, BinaryProblem
from kmargin.core.units import Units


@dataclass(frozen=True)
class PenalisedProblem:
    """The binary problems whose penalised objective f_rho is minimised, the units they share, and k."""

    problems: tuple[BinaryProblem, ...]
    units: Units
    k: int

    @classmethod
    def of(cls, problems: Iterable[BinaryProblem], units: Units, k: int) -> "PenalisedProblem":
        return cls(tuple(problems), units, units.n_units).with_k(k)

    @classmethod
    def of_one(cls, problem: BinaryProblem, k: int) -> "PenalisedProblem":
        """The paper's problem: M = 1, and k counts columns."""
        return cls.of([problem], Units.of_columns(problem.design.n_features), k)

    def with_k(self, k: int) -> "PenalisedProblem":
        return replace(self, k=self.units.check_size(k))

    @property
    def n_features(self) -> int:
        return self.problems[0].design.n_features

    @property
    def in_memory(self) -> list[ArrayProblem]:
        """The binary problems whose rows are in memory."""
        return [problem for problem in self.problems if isinstance(problem, ArrayProblem)]

    @cached_property
    def sparsity_set(self) -> sparsity.UnitSparsity:
        """The sets S_k for every k, with the projections onto them."""
        return sparsity.UnitSparsity(self.units)

    @property
    def normalizer(self) -> int:
        """The number p - k + 1 by which a squared distance to S_k is divided."""
        return sparsity.normalizer(self.units.n_units, self.k)

    @cached_property
    def keeps_all(self) -> bool:
        """Whether S_k contains every beta, so that the distance penalty is zero."""
        return self.sparsity_set.holds_all(self.k)

    def penalty_weight(self, rho: float) -> float:
        """b^2, the weight of the squared distance; zero if S_k contains every beta."""
        return 0.0 if self.keeps_all else rho / self.normalizer

    def project(self, beta: Matrix) -> Matrix:
        """Return the point of S_k nearest to beta, with the same intercepts."""
        p, projected = self.n_features, beta.copy()
        projected[:, :p] = self.sparsity_set.project(beta[:, :p], self.k)
        return projected

    def kept_columns(self, projected: Matrix) -> Indices:
        """Return the columns of all units that the projection kept, even columns with a coefficient of 0."""
        kept = self.sparsity_set.kept(projected[:, : self.n_features], self.k)
        return np.flatnonzero(kept[self.sparsity_set.unit_of])

    def squared_distance(self, beta: Matrix) -> float:
        """Return the squared distance of the coefficients to S_k."""
        gap = beta - self.project(beta)
        return float(np.vdot(gap, gap))

    def loss(self, beta: Matrix) -> float:
        """Return the objective without the distance penalty: the sum of mean losses and ridge penalties."""
        return sum(problem.loss(row) for problem, row in zip(self.problems, beta, strict=True))

    def objective(self, beta: Matrix, rho: float) -> float:
        """Return f_rho(beta)."""
        return self.loss(beta) + self.penalty_weight(rho) / 2 * self.squared_distance(beta)

    def gradient(self, beta: Matrix, rho: float) -> Matrix:
        """Return the gradient of f_rho."""
        gradient = self.penalty_weight(rho) * (beta - self.project(beta))
        for m, problem in enumerate(self.problems):
            gradient[m] += problem.gradient(beta[m])
        return gradient

    def curvature(self, direction: Matrix, rho: float) -> float:
        """Return the second derivative of the surrogate along `direction`."""
        b_sq = self.penalty_weight(rho)
        rows = zip(self.problems, direction, strict=True)
        return sum(
            problem.curvature_along(row) + (b_sq + problem.lam) * float(row @ row) for problem, row in rows
        )

    def surrogate(self, beta: Matrix, anchor: Matrix, rho: float) -> float:
        """Return the surrogate g_rho(beta | anchor): a quadratic above f_rho, and equal to it at the anchor.

        Unlike in f_rho, the penalties also pull the intercept to that of the anchor: the distance penalty
        with weight b^2, as in the paper, and the ridge with weight lam. Thus b^2 + lam is added to the
        curvature of all entries of beta_m, and one SVD of X serves every rho, k and lam.
        """
        to_projection, to_ridge_center = beta - self.project(anchor), beta - self.ridge_center(anchor)
        value = self.penalty_weight(rho) / 2 * float(np.vdot(to_projection, to_projection))
        for m, problem in enumerate(self.in_memory):
            decision, at_anchor = problem.design.decision(beta[m]), problem.design.decision(anchor[m])
            value += squared_hinge.mean_majorizer(
                decision, at_anchor, problem.y, problem.weights, problem.targets
            )
            value += problem.lam / 2 * float(to_ridge_center[m] @ to_ridge_center[m])
        return value

    def ridge_center(self, anchor: Matrix) -> Matrix:
        """Return the point where the surrogate's ridge is zero: coefficients 0, intercepts of the anchor."""
        center = anchor.copy()
        center[:, : self.n_features] = 0.0
        return center
