"""What a solver returns."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from kmargin.facts import Facts, Told, some
from kmargin.solvers.regime import Regime
from kmargin.types import Indices, Vector

# The loss of a machine that knows nothing is 1/2, whatever the data. Against that, a projection that
# costs no more than this has changed little.
SMALL_COST = 0.01


class Status(Enum):
    """Why a solver stopped, in words a user can act on."""

    CONVERGED = "the squared distance to S_k fell below `dtol`"
    STALLED = (
        "the squared distance to S_k stopped changing before it reached `dtol`; "
        "raise `rho_growth` or lower `rtol`"
    )
    EXHAUSTED = "`max_outer` values of rho were used up; raise `max_outer` or `rho_growth`"
    SWAP_OPTIMAL = "no exchange of one kept feature for another lowers the objective"
    SETTLED = (
        "the most promising exchanges were tried and none lowers the objective; `max_swaps=None` tries all"
    )
    LIMITED = (
        "some exchanges were tried, and others may lower the objective; "
        "the regime of the solution says which way the search went"
    )


class Ending(Enum):
    """Where the coefficients of a solution come from."""

    SEARCH = "the search itself: each support it visits is at its minimum"
    PROJECTION = "the projection of the last iterate onto S_k"
    REFIT = "the minimum on the support of that projection"
    INTERCEPT = "the intercept alone, which nothing that was found is better than"


class OuterRecord(NamedTuple):
    """One value of rho: what it cost and where it ended."""

    rho: float
    n_inner: int
    objective: float  # f_rho
    gradient_sq: float  # squared norm of the gradient of f_rho
    distance_sq: float  # squared distance to S_k


@dataclass(frozen=True, repr=False)
class Solution(Told):
    """A point of S_k. Only its nonzero coefficients are stored.

    `regime` says which way the algebra of the search went; MM and SD have none. `SWAP_OPTIMAL` is claimed in
    any regime, but only where every exchange of one feature for another was tried or is known not to help.
    """

    support: Indices  # where they are, ascending
    coef: Vector  # what they are
    intercept: float
    n_features: int
    objective: float  # loss plus ridge, without the distance penalty
    projection_cost: float  # by how much the final projection onto S_k raised it
    status: Status
    n_iter: int  # inner iterations over all values of rho, or Newton steps
    trace: tuple[OuterRecord, ...] = ()  # of an annealing; a search leaves none
    ending: Ending = Ending.SEARCH
    regime: Regime | None = None

    @classmethod
    def from_beta(
        cls,
        beta: Vector,
        n_features: int,
        *,
        objective: float,
        projection_cost: float,
        status: Status,
        n_iter: int,
        trace: tuple[OuterRecord, ...] = (),
        ending: Ending = Ending.SEARCH,
    ) -> "Solution":
        """Take apart a parameter vector whose last entry, if it has one more, is the intercept."""
        support = np.flatnonzero(beta[:n_features])
        intercept = float(beta[n_features]) if len(beta) > n_features else 0.0
        return cls(
            support,
            beta[support],
            intercept,
            n_features,
            objective,
            projection_cost,
            status,
            n_iter,
            trace,
            ending,
        )

    def _facts(self) -> Facts:
        facts = [
            ("support", some(self.support)),
            ("coef", some(self.coef, "{:.4g}")),
            ("intercept", f"{self.intercept:.4g}"),
            ("status", f"{self.status.name}: {self.status.value}"),
            ("ending", f"{self.ending.name}: {self.ending.value}"),
        ]
        if self.regime is not None:
            facts.append(("regime", f"{self.regime.name}: {self.regime.value}"))
        if self.trace:
            first, last = self.trace[0], self.trace[-1]
            facts.append(("trace", f"{len(self.trace)} values of rho, from {first.rho:g} to {last.rho:.4g}"))
        size = f"{len(self.support):,} of {self.n_features:,} coefficients"
        return Facts(f"{size}, objective {self.objective:.6g}, {self.status.name}", facts)

    @property
    def is_sound(self) -> bool:
        """Whether the projection at the end changed little, whatever the reason for the end.

        The paper's second stopping rule ends nearly every run, mostly close to S_k; what deserves a
        warning is a run that it ended far away.
        """
        if self.status is Status.STALLED:
            return self.projection_cost <= SMALL_COST
        return self.status is not Status.EXHAUSTED

    def dense_coef(self) -> Vector:
        """All `n_features` coefficients, zeros included."""
        coef = np.zeros(self.n_features)
        coef[self.support] = self.coef
        return coef
