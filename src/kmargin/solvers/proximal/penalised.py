"""The penalised objective f_rho of M binary problems, its gradient and its quadratic surrogate.

This is the paper's objective, extended by sample weights s_i, a ridge lam, and a sum over binary problems
m = 1, ..., M, which share the units that k counts (features, or groups of features)::

    f_rho(beta) = sum_m [a^2/2 sum_i s_i max(0, 1 - y_i x_i'beta_m)^2 + lam/2 ||w_m||^2]
                  + b^2/2 dist(W, S_k)^2

    a^2 = 1/n,    b^2 = rho/(p-k+1)    (`penalty_weight`; p is the number of units)

beta is a matrix with one row beta_m = (w_m, intercept) for each binary problem. W is beta without the
intercepts, which are neither penalised nor projected. S_k is the set of all W with at most k nonzero units
and with the signs that are required. The paper's problem has M = 1, s_i = 1 and lam = 0. The surrogate is a
quadratic majoriser of f_rho: MM and SD lower f_rho by lowering the surrogate.
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
    """The objective f_rho (loss + ridge + distance penalty) of binary problems that share at most k units."""

    problems: tuple[BinaryProblem, ...]
    units: Units
    k: int

    @classmethod
    def of(cls, problems: Iterable[BinaryProblem], units: Units, k: int) -> "PenalisedProblem":
        return cls(tuple(problems), units, units.n_units).with_k(k)

    @classmethod
    def of_one(cls, problem: BinaryProblem, k: int) -> "PenalisedProblem":
        """Return the paper's problem: a single binary problem, where k counts the columns of X."""
        return cls.of([problem], Units.of_columns(problem.design.n_features), k)

    def with_k(self, k: int) -> "PenalisedProblem":
        return replace(self, k=self.units.check_size(k))

    @property
    def n_features(self) -> int:
        return self.problems[0].design.n_features

    @property
    def in_memory(self) -> list[ArrayProblem]:
        """The binary problems whose X is in memory, which means neither in blocks nor on a device."""
        return [problem for problem in self.problems if isinstance(problem, ArrayProblem)]

    @cached_property
    def sparsity_set(self) -> sparsity.UnitSparsity:
        """The sets S_k (coefficients with at most k nonzero units) for every k, and projections onto them."""
        return sparsity.UnitSparsity(self.units)

    @property
    def normalizer(self) -> int:
        """The number p - k + 1 by which squared distances to S_k are divided; p is the number of units."""
        return sparsity.normalizer(self.units.n_units, self.k)

    @cached_property
    def keeps_all(self) -> bool:
        """Whether S_k contains every beta (any units and signs are allowed): no distance is penalised."""
        return self.sparsity_set.holds_all(self.k)

    def penalty_weight(self, rho: float) -> float:
        """The factor b^2 = rho/(p-k+1) of half the squared distance to S_k, for p units; 0 if keeps_all."""
        return 0.0 if self.keeps_all else rho / self.normalizer

    def project(self, beta: Matrix) -> Matrix:
        """Return the point nearest to beta in S_k (at most k nonzero units), with the intercepts of beta."""
        p, projected = self.n_features, beta.copy()
        projected[:, :p] = self.sparsity_set.project(beta[:, :p], self.k)
        return projected

    def kept_columns(self, projected: Matrix) -> Indices:
        """Return the columns of all units that must be kept or have a nonzero coefficient in `projected`."""
        kept = self.sparsity_set.kept(projected[:, : self.n_features], self.k)
        return np.flatnonzero(kept[self.sparsity_set.unit_of])

    def squared_distance(self, beta: Matrix) -> float:
        """Return the squared distance of beta, without its intercepts, to S_k (at most k nonzero units)."""
        gap = beta - self.project(beta)
        return float(np.vdot(gap, gap))

    def loss(self, beta: Matrix) -> float:
        """Return mean loss plus ridge penalty, summed over the binary problems (no distance penalty)."""
        return sum(problem.loss(row) for problem, row in zip(self.problems, beta, strict=True))

    def objective(self, beta: Matrix, rho: float) -> float:
        """Return f_rho(beta): loss + ridge + `penalty_weight(rho)`/2 times the squared distance to S_k."""
        return self.loss(beta) + self.penalty_weight(rho) / 2 * self.squared_distance(beta)

    def gradient(self, beta: Matrix, rho: float) -> Matrix:
        """Return the gradient at beta of the penalised objective f_rho, a matrix of the shape of beta."""
        gradient = self.penalty_weight(rho) * (beta - self.project(beta))
        for m, problem in enumerate(self.problems):
            gradient[m] += problem.gradient(beta[m])
        return gradient

    def curvature(self, direction: Matrix, rho: float) -> float:
        """Return the second derivative of the surrogate (quadratic majoriser of f_rho) along `direction`."""
        b_sq = self.penalty_weight(rho)
        rows = zip(self.problems, direction, strict=True)
        return sum(
            problem.curvature_along(row) + (b_sq + problem.lam) * float(row @ row) for problem, row in rows
        )

    def surrogate(self, beta: Matrix, anchor: Matrix, rho: float) -> float:
        """Return the surrogate g_rho(beta | anchor) of the penalised objective f_rho.

        It is quadratic in beta, nowhere below f_rho, and equal to f_rho at `anchor`. Unlike f_rho, it also
        penalises changes of the intercepts: (b^2 + lam)/2 times the squared difference from the intercepts of
        `anchor`, where b^2 is `penalty_weight(rho)` and lam the ridge (0 in the paper). Its penalties then
        have the same curvature in all parameters, and one SVD of X serves every rho, k and lam.
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
        """Return the minimum of the surrogate's ridge penalty: coefficients 0, the intercepts of `anchor`."""
        center = anchor.copy()
        center[:, : self.n_features] = 0.0
        return center
