"""What a solver returns: a binary classifier, why the solver stopped, and how it searched."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.summary import Facts, Summarized, some


class Regime(Enum):
    """Which linear algebra the solver `Exchange` used; the `value` of a member explains it in words.

    Examples
    --------
    >>> from kmargin import Regime
    >>> Regime.PANEL.value
    'all columns in one panel; linear systems the size of the support'
    """

    PANEL = "all columns in one panel; linear systems the size of the support"
    WORKING_SET = (
        "a panel of the support and the most promising other columns, renewed from X; "
        "linear systems the size of the support"
    )
    DUAL = "more features than active rows; linear systems the size of the active rows"
    PRODUCTS = "neither a panel nor linear systems fit in memory; products with X alone"
    INTERCEPT = "no search: the intercept alone, because k = 0 or the ridge is extremely strong"

    @property
    def takes_panel(self) -> bool:
        """Whether refits use a panel (a copy of columns of X) and linear systems the size of the support."""
        return self in (Regime.PANEL, Regime.WORKING_SET)


# The final projection of MM and SD onto S_k is harmless if it raises the objective (loss + ridge) by at most
# this much. For comparison, a model without features has an objective of at most 1/2.
SMALL_COST = 0.01


class Status(Enum):
    """Why a solver stopped; the `value` of a member explains it in words.

    Examples
    --------
    >>> from kmargin import Status
    >>> Status.CONVERGED.value
    'the squared distance to S_k fell below `dtol`'
    """

    CONVERGED = "the squared distance to S_k fell below `dtol`"
    STALLED = (
        "the squared distance to S_k stopped changing before it reached `dtol`; "
        "raise `rho_growth` or lower `rtol`"
    )
    EXHAUSTED = (
        "the last value of rho was reached and the squared distance to S_k is above `dtol`; "
        "raise `max_outer` or `rho_growth`, or end `rhos` with a larger value"
    )
    SWAP_OPTIMAL = "no swap of one feature of the model for another lowers the objective"
    SETTLED = (
        "the most promising swaps were tried and none lowers the objective; `effort='thorough'` tries all"
    )
    LIMITED = (
        "only some swaps were tried, and others may lower the objective; "
        "`regime` tells how the search was done"
    )


class Ending(Enum):
    """Where the coefficients of a solution come from; the `value` of a member explains it in words.

    Examples
    --------
    >>> from kmargin import Ending
    >>> Ending.REFIT.value
    'the minimum of the objective on the support of the projected iterate'
    """

    SEARCH = "the search, which fits every support it visits exactly"
    PROJECTION = "the projection of the last iterate onto S_k"
    REFIT = "the minimum of the objective on the support of the projected iterate"
    INTERCEPT = "the intercept alone, because no other solution found has a lower objective"


class StepRecord(NamedTuple):
    """Record of one iterate beta_m of MM or SD: the one after m steps for the same value of rho.

    f_rho is the loss plus the ridge plus rho times the squared distance (scaled) to S_k, the set with at most
    k nonzero coefficients. beta_0 is the start for this rho; its surrogate equals its objective.

    Attributes
    ----------
    step : int
        The number m of steps taken for this rho.
    objective : float
        The penalised objective f_rho at beta_m.
    surrogate : float
        g_rho(beta_m | beta_{m-1}): the value at beta_m of the quadratic majoriser of f_rho that equals f_rho
        at beta_{m-1}. The step minimises this majoriser (SD: along the gradient) before momentum is added.
    gradient_sq : float
        The squared norm of the gradient of f_rho at beta_m.
    distance_sq : float
        The squared distance of beta_m to S_k.
    restarted : bool
        Whether the objective is higher than at beta_{m-1}, so that the momentum was set to zero.

    See Also
    --------
    OuterRecord : Holds the steps for one value of rho.
    ConvergenceDisplay : Plots these records.
    """

    step: int
    objective: float
    surrogate: float
    gradient_sq: float
    distance_sq: float
    restarted: bool


class OuterRecord(NamedTuple):
    """Record of one outer iteration of MM or SD: the minimisation for one value of rho.

    Attributes
    ----------
    rho : float
        The factor of the distance penalty.
    n_inner : int
        The number of inner iterations (steps).
    objective : float
        The penalised objective f_rho (mean loss, ridge and distance penalty) at the last iterate.
    gradient_sq : float
        The squared norm of the gradient of f_rho at the last iterate.
    distance_sq : float
        The squared distance of the last iterate to S_k, the set with at most k nonzero coefficients.
    steps : tuple of StepRecord
        One record for each inner iteration if the solver has ``trace="steps"``; else empty.

    See Also
    --------
    ConvergenceDisplay : Plots these records.
    """

    rho: float
    n_inner: int
    objective: float
    gradient_sq: float
    distance_sq: float
    steps: tuple[StepRecord, ...] = ()


@dataclass(frozen=True, repr=False)
class Solution(Summarized):
    """One fitted binary classifier, stored as its nonzero coefficients and intercept, and how it was found.

    Attributes
    ----------
    support : ndarray of int
        Indices of the nonzero coefficients, ascending.
    coef : ndarray
        The nonzero coefficients.
    intercept : float
        The intercept, which is not penalised and not counted by k.
    n_features : int
        The number of coefficients, including zeros.
    objective : float
        Mean loss plus ridge penalty, without the distance penalty of MM and SD.
    projection_cost : float
        By how much the final projection of MM and SD onto S_k (at most k nonzeros) raised the objective.
    status : Status
        Why the solver stopped. `SWAP_OPTIMAL` is reported, in any regime, only if every swap of one feature
        for another was tried or is known not to lower the objective.
    n_iter : int
        The number of inner iterations over all values of rho (MM and SD), or of Newton steps (Exchange).
    trace : tuple of OuterRecord
        One record for each value of rho (MM and SD); empty for Exchange.
    ending : Ending
        Where the coefficients come from.
    regime : Regime or None
        Which linear algebra Exchange used; None for MM and SD.

    Examples
    --------
    >>> from kmargin import SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> SparseSVC(k=2).fit(X, y).solutions_
    (<Solution: 2 of 8 coefficients, objective 0.0542709, SWAP_OPTIMAL>,)
    """

    support: Indices
    coef: Vector
    intercept: float
    n_features: int
    objective: float
    projection_cost: float
    status: Status
    n_iter: int
    trace: tuple[OuterRecord, ...] = ()
    ending: Ending = Ending.SEARCH
    regime: Regime | None = None

    @classmethod
    def from_beta(cls, beta: Vector, n_features: int, **attributes: Any) -> "Solution":
        """Create a solution from a parameter vector.

        Parameters
        ----------
        beta : ndarray
            Coefficients, followed by the intercept if there is one.
        n_features : int
            The number of coefficients in `beta`.
        **attributes : object
            The other attributes of the solution; those with a default may be left out.

        Returns
        -------
        Solution
            A solution with the nonzero coefficients of `beta`.
        """
        support = np.flatnonzero(beta[:n_features])
        intercept = float(beta[n_features]) if len(beta) > n_features else 0.0
        return cls(support, beta[support], intercept, n_features, **attributes)

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
        """Whether the status is not EXHAUSTED and, if it is STALLED, the last iterate was close to S_k.

        Close means that its projection onto S_k (at most k nonzeros) raised the objective by at most 0.01.
        Nearly every run of MM and SD ends as STALLED, mostly close to S_k, but sometimes far from it.
        """
        if self.status is Status.STALLED:
            return self.projection_cost <= SMALL_COST
        return self.status is not Status.EXHAUSTED

    def dense_coef(self) -> Vector:
        """Return all coefficients, including those that are zero.

        Returns
        -------
        ndarray of shape (n_features,)
            The coefficients.
        """
        coef = np.zeros(self.n_features)
        coef[self.support] = self.coef
        return coef
