"""Several machines that share one set of features, as the loops of the paper see them: as one problem.

With one row per machine in W, beside the intercepts, and omega_m the weight of machine m::

    f_rho(beta) = sum_m omega_m (loss_m(beta_m) + lam_m/2 ||w_m||^2) + b^2/2 dist(W, S_k)^2

    b^2 = rho/(n_units - k + 1)    (`penalty_weight`)

S_k counts units over all machines (see `unit_sparsity`), and is all that couples them. So the surrogate of
the sum is the sum of the surrogates, each with the distance to the machine's row of one projection; and
machine m's part of a step is its own, with penalty b^2/omega_m.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from kmargin import sparsity
from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers.steps import MMStep
from kmargin.types import Matrix, Vector
from kmargin.unit_sparsity import UnitSparsity
from kmargin.units import Units

T = TypeVar("T")


@dataclass(frozen=True)
class JointProblem:
    """At most k units of features are to explain the labels of all machines.

    beta holds the parameters of one machine after the other. It answers what a `Problem` answers, by asking
    its machines, wherever their rows are.
    """

    machines: tuple[Problem, ...]
    units: Units
    k: int
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # the same for every k

    @classmethod
    def of(cls, problems: Iterable[Problem], units: Units, k: int) -> "JointProblem":
        """Problems whose own k no longer counts."""
        return cls(tuple(p.with_k(p.design.n_features) for p in problems), units, k).with_k(k)

    def with_k(self, k: int) -> "JointProblem":
        n_fixed = int(np.count_nonzero(self.units.fixed))
        if k < n_fixed:
            raise ValueError(
                f"k={k} is less than the {n_fixed} units that are always in the model, which count in k. "
                f"Use k >= {n_fixed}, or keep fewer units."
            )
        return replace(self, k=min(k, self.units.n_units))

    @cached_property
    def sparse(self) -> UnitSparsity:
        return UnitSparsity(self.units)

    @cached_property
    def weights(self) -> Vector:
        """omega."""
        given = self.units.machine_weights
        return np.ones(len(self.machines)) if given is None else np.asarray(given, dtype=np.float64)

    @property
    def lam(self) -> float:
        """The least curvature that a ridge gives the coefficients."""
        return min(w * machine.lam for w, machine in zip(self.weights.tolist(), self.machines, strict=True))

    @property
    def normalizer(self) -> int:
        """What a squared distance to S_k is divided by."""
        return sparsity.normalizer(self.units.n_units, self.k)

    @property
    def keeps_all(self) -> bool:
        """Whether S_k holds everything."""
        return self.sparse.holds_all(self.k)

    def penalty_weight(self, rho: float) -> float:
        """b^2. Zero where the distance is zero everywhere."""
        return 0.0 if self.keeps_all else rho / self.normalizer

    def parts(self, beta: Vector) -> Matrix:
        """One row of parameters for each machine (a view)."""
        return beta.reshape(len(self.machines), -1)

    def coefficients(self, beta: Vector) -> Matrix:
        """W: beta without the intercepts (a view)."""
        return self.parts(beta)[:, : self.machines[0].design.n_features]

    def project(self, beta: Vector) -> Vector:
        projected = beta.copy()
        self.coefficients(projected)[:] = self.sparse.project(self.coefficients(beta), self.k)
        return projected

    def squared_distance(self, beta: Vector) -> float:
        gap = beta - self.project(beta)
        return float(gap @ gap)

    def loss(self, beta: Vector) -> float:
        """What is to be minimised over S_k: of each machine the loss plus the ridge."""
        return sum(w * machine.loss(part) for w, machine, part in self._each(beta))

    def objective(self, beta: Vector, rho: float) -> float:
        """f_rho."""
        return self.loss(beta) + self.penalty_weight(rho) / 2 * self.squared_distance(beta)

    def gradient(self, beta: Vector, rho: float) -> Vector:
        """The gradient of f_rho."""
        gradient = np.concatenate([w * machine.gradient(part, rho) for w, machine, part in self._each(beta)])
        gradient += self.penalty_weight(rho) * (beta - self.project(beta))
        return gradient

    def curvature(self, direction: Vector, rho: float) -> float:
        """The curvature of the surrogate in a direction."""
        of_machines = sum(w * machine.curvature(part, rho) for w, machine, part in self._each(direction))
        return of_machines + self.penalty_weight(rho) * float(direction @ direction)

    def surrogate(self, beta: Vector, anchor: Vector, rho: float) -> float:
        """The quadratic g_rho(beta | anchor): above f_rho everywhere, equal to it at the anchor."""
        to_projection = beta - self.project(anchor)
        of_machines = sum(
            w * machine.surrogate(part, at, rho)
            for w, machine, part, at in zip(
                self.weights, machines_at_hand(self), self.parts(beta), self.parts(anchor), strict=True
            )
        )
        return of_machines + self.penalty_weight(rho) / 2 * float(to_projection @ to_projection)

    def remember(self, name: str, make: Callable[[], T]) -> T:
        """What was made once for these machines, whatever k is."""
        if name not in self.memory:
            self.memory[name] = make()
        made: T = self.memory[name]
        return made

    def mm_step(self) -> "JointMMStep":
        return JointMMStep(self)

    def _each(self, beta: Vector) -> Iterable[tuple[float, Problem, Vector]]:
        return zip(self.weights.tolist(), self.machines, self.parts(beta), strict=True)


def machines_of(problem: Problem | JointProblem) -> tuple[Problem, ...]:
    """The machines of a problem, one or several."""
    return problem.machines if isinstance(problem, JointProblem) else (problem,)


def machines_at_hand(problem: "JointProblem") -> list[ArrayProblem]:
    """The machines, all of whose rows are in memory."""
    at_hand = [machine.at_hand for machine in problem.machines]
    assert None not in at_hand
    return [machine for machine in at_hand if machine is not None]


class JointMMStep:
    """Algorithm 1 for several machines: each minimises its part of the surrogate, by one SVD each."""

    def __init__(self, problem: JointProblem) -> None:
        self.problem = problem
        self.steps = problem.remember("steps", lambda: [MMStep(machine) for machine in problem.machines])

    def __call__(self, beta: Vector, gradient: Vector, rho: float) -> Vector:
        problem, b_sq = self.problem, self.problem.penalty_weight(rho)
        projected = problem.parts(problem.project(beta))
        parts = zip(self.steps, problem.parts(beta), projected, problem.weights, strict=True)
        return np.concatenate([step.minimum(part, nearest, b_sq / w) for step, part, nearest, w in parts])
