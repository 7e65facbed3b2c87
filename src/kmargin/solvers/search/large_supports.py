"""The swap search for large supports, without a Gram matrix of their columns (`refit.large` refits them)."""

from collections.abc import Sequence

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.linalg import order_smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.large import DualFit, LargeFit, ProductFit
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import ArrayRows
from kmargin.solvers.search.panels import NONE, UnitScores
from kmargin.solvers.search.swap_search import BETTER, Candidate, Effort, SwapSearch, unit_effects
from kmargin.solvers.solution import Regime

# Scores are expensive with one unknown per active row (Regime.DUAL): only this many units of the support (of
# least effect on decision values) and as many outside it (of largest gradient) are scored.
N_SCORED = 64

# On the way to another size, the number of units of a support changes by at most this factor per refit.
RESIZE_FACTOR = 2

# Refits on the way to another size have the relative tolerance ROUGH_TOL. Others by conjugate gradients have
# at least PRODUCT_TOL, except the last one, which is more precise.
ROUGH_TOL, PRODUCT_TOL = 1e-4, 1e-6


class LargeSupport(SwapSearch):
    """The swap search for large supports, which are refitted without a Gram matrix of their columns.

    To save time, few swaps are tried, mostly of many units (features or groups) at once. The score of a
    group, the predicted change of the objective, is the sum of the scores of its columns.
    """

    max_rounds = 4

    def __init__(
        self,
        all_rows: Sequence[ArrayRows],
        units: Units,
        lams: Vector,
        start: Candidate,
        tol: float,
        regime: Regime,
    ) -> None:
        super().__init__(all_rows, units, lams, start, tol)
        self.array_rows = all_rows
        self.regime, self.final_tol = regime, tol
        self.tol = max(tol, PRODUCT_TOL) if regime is Regime.PRODUCTS else tol
        kind: type[LargeFit] = DualFit if regime is Regime.DUAL else ProductFit
        columns = units.columns_of(start.support)
        self.fits: list[LargeFit] = [
            kind.at(rows, lam, columns, u) for rows, lam, u in zip(all_rows, lams, start.coefs, strict=True)
        ]

    def resize(self, k: int) -> None:
        """Drop or add many units at a time, refitted roughly, until there are k; then refit precisely."""
        while len(self.support) != k:
            size = len(self.support)
            if size > k:
                count = min(size - k, size - size // RESIZE_FACTOR)
                lose, take = order_smallest(self._effects(), count), NONE
            else:
                count = min(k - size, max(size * (RESIZE_FACTOR - 1), 1))
                lose, take = NONE, self._most_promising(count)
            if len(lose) + len(take) == 0:
                break
            self._refit(lose, take, ROUGH_TOL, np.inf, np.nan)
        self._set([fit.minimised(self.tol) for fit in self.fits], self.support)

    def _set(self, fits: list[LargeFit], support: Indices) -> None:
        self.fits, self.support = fits, support
        self.coefs = np.array([fit.u for fit in fits])
        self.values = np.array([fit.value for fit in fits])
        self.value = float(self.values.sum())

    def _effects(self) -> Vector:
        """Variance of what each unit of the support adds to decision values; infinite if it must stay."""
        effects = unit_effects(self.all_rows, self.units, Candidate(self.support, self.coefs))
        effects[self.units.fixed[self.support]] = np.inf
        return effects

    def _most_promising(self, count: int) -> Indices:
        """The `count` units outside the support that, by their gradients, should lower the objective most."""
        gains = np.zeros(self.units.n_features)
        for rows, lam, fit in zip(self.array_rows, self.lams, self.fits, strict=True):
            curvature = rows.variance + lam * rows.ridge_scale
            descent = rows.descent(fit.residual)
            gains += np.divide(descent**2, curvature, out=np.zeros(len(gains)), where=curvature > 0)
        by_unit = self.units.total(gains)
        by_unit[self.support] = -np.inf
        return order_smallest(-by_unit, count)

    def outside(self) -> Indices:
        count = min(self.units.n_units - len(self.support), len(self.support))
        return self._most_promising(min(count, N_SCORED) if self.regime is Regime.DUAL else count)

    def score(self, outside: Indices) -> UnitScores:
        """Predict the objective's rise without each unit of the support, and decrease with each of `outside`.

        In the regime DUAL, to save time, rises are predicted only for the N_SCORED units of the support with
        the smallest effects on decision values; those of the other units are set to infinity.
        """
        count = N_SCORED if self.regime is Regime.DUAL else len(self.support)
        lose = order_smallest(self._effects(), count)
        places, owner_out = self._places(lose)
        columns = self.units.columns_of(outside)
        owner_in = np.repeat(np.arange(len(outside)), self.units.sizes[outside])
        drop, gain = np.zeros(len(lose)), np.zeros(len(outside))
        for fit in self.fits:
            costs, gains = fit.scores(places, columns)
            drop += np.bincount(owner_out, costs, len(lose))
            gain += np.bincount(owner_in, gains, len(outside))
        drops = np.full(len(self.support), np.inf)
        drops[lose] = drop
        return UnitScores(drops, gain)

    def _places(self, lose: Indices) -> tuple[Indices, Indices]:
        """For each column of the units support[lose]: its index in the coefficients, its unit's in `lose`."""
        sizes = self.units.sizes[self.support]
        starts = np.cumsum(sizes) - sizes
        owners = np.repeat(np.arange(len(lose)), sizes[lose])
        offsets = np.arange(len(owners)) - np.repeat(np.cumsum(sizes[lose]) - sizes[lose], sizes[lose])
        return np.repeat(starts[lose], sizes[lose]) + offsets, owners

    def exchange(self, lose: Indices, take: Indices, give_up: float, limit: float) -> bool:
        return any(
            self._refit(out, come, self.tol, give_up, limit) for out, come in zip(lose, take, strict=True)
        )

    def _refit(self, lose: Indices, take: Indices, tol: float, give_up: float, limit: float) -> bool:
        """Replace the units support[lose] by `take` and refit; return whether the result is kept.

        It is kept if its objective is below `limit` and below the present objective, or if `limit` is NaN. A
        refit may end early if its objective cannot get below `give_up`.
        """
        places, columns = self._places(lose)[0], self.units.columns_of(take)
        stays: Flags = np.ones(len(self.support), np.bool_)
        stays[lose] = False
        fits: list[LargeFit] = []
        total = 0.0
        for fit in self.fits:
            fits.append(fit.exchanged(places, columns).minimised(tol, give_up - total))
            total += fits[-1].value
            if limit == limit and not total < min(limit, BETTER * self.value):
                return False
        self._set(fits, np.append(self.support[stays], take))
        return True

    def settle(self, effort: Effort) -> None:
        super().settle(effort)
        if self.tol > self.final_tol:
            self._set([fit.minimised(self.final_tol) for fit in self.fits], self.support)

    def result(self) -> Candidate:
        self.n_newton = sum(fit.n_newton for fit in self.fits)
        nothing_to_gain = len(self.support) == self.units.n_units or self.value <= ZERO_OBJECTIVE
        return Candidate(self.support, self.coefs, self.value, nothing_to_gain, self.regime, self.values)
