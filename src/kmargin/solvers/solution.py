"""What a solver returns: a binary classifier, why the solver stopped, and how it searched."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.summary import Facts, Summarized, some


class Regime(Enum):
    """Which linear algebra a search used; its `value` explains it in words.

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
        """Whether refits use a panel of columns and solve linear systems the size of the support."""
        return self in (Regime.PANEL, Regime.WORKING_SET)


# A rise of the objective by the final projection counts as small if it is at most this value. For comparison,
# a model without features has an objective of at most 1/2, whatever the data.
SMALL_COST = 0.01


class Status(Enum):
    """Why a solver stopped; its `value` explains it in words.

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
    """Where the coefficients of a solution come from; its `value` explains it in words.

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
    """One inner iteration of MM or SD: the iterate beta_m at which it ended.

    Step 0 is the start of the descent for a value of rho; there the surrogate equals the objective.

    Attributes
    ----------
    step : int
        m, the number of steps taken at this rho.
    objective : float
        The penalised objective f_rho(beta_m).
    surrogate : float
        g_rho(beta_m | beta_{m-1}), the surrogate that this step lowered. It is never below the objective.
    gradient_sq : float
        The squared norm of the gradient of f_rho at beta_m.
    distance_sq : float
        The squared distance of beta_m to S_k.
    restarted : bool
        Whether the objective rose in this step, so that the momentum was reset.

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
    """Record of one outer iteration, that is of one value of rho.

    Attributes
    ----------
    rho : float
        The factor of the distance penalty.
    n_inner : int
        The number of inner iterations.
    objective : float
        The penalised objective f_rho at the last iterate.
    gradient_sq : float
        The squared norm of the gradient of f_rho at the last iterate.
    distance_sq : float
        The squared distance of the last iterate to S_k.
    steps : tuple of StepRecord
        Every inner iteration, with ``MM(trace="steps")``; else empty.

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
    """One fitted binary classifier with at most k nonzero coefficients, and how it was found.

    Only the nonzero coefficients are stored.

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
        Mean loss plus ridge penalty, without the distance penalty.
    projection_cost : float
        By how much the final projection onto S_k raised the objective.
    status : Status
        Why the solver stopped. `SWAP_OPTIMAL` is reported, in any regime, only if every swap of one feature
        for another was tried or is known not to lower the objective.
    n_iter : int
        The number of inner iterations over all values of rho (MM and SD), or of Newton steps (Exchange).
    trace : tuple of OuterRecord
        The outer iterations of MM and SD; empty for a search.
    ending : Ending
        Where the coefficients come from.
    regime : Regime or None
        Which linear algebra the search used; None for MM and SD.

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
            The other attributes; those with a default may be left out.

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
        """Whether the solver converged, or stalled and the projection raised the objective by at most 0.01.

        The paper's second stopping rule (STALLED) ends nearly every run, mostly close to S_k but sometimes
        far from it. The warning that a fit issues says which of the two happened.
        """
        if self.status is Status.STALLED:
            return self.projection_cost <= SMALL_COST
        return self.status is not Status.EXHAUSTED

    def dense_coef(self) -> Vector:
        """All coefficients, zeros included.

        Returns
        -------
        ndarray of shape (n_features,)
            The coefficients.
        """
        coef = np.zeros(self.n_features)
        coef[self.support] = self.coef
        return coef
