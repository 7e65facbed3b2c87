"""The swap search in panels: copies of the columns of all units, or of the support and promising units."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.linalg import order_smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.final import GRADIENT_RTOL
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import Rows
from kmargin.solvers.search.panels import NONE, Panels, UnitGains, UnitScores
from kmargin.solvers.search.remote_panels import RemotePanels
from kmargin.solvers.search.swap_search import Candidate, Effort, SwapSearch
from kmargin.solvers.solution import Regime

# A panel (copied columns) is reused even if mostly empty if its Gram matrix takes at most this many flops.
LIGHT_GRAM_FLOPS = 2e7


class WorkingSet(SwapSearch):
    """A swap search in panels (copied columns) of all units, or of the support and promising others."""

    scores_all = True

    def __init__(
        self,
        all_rows: Sequence[Rows],
        units: Units,
        lams: Vector,
        size: int,
        start: Candidate,
        tol: float,
        gains: Sequence[UnitGains],
        capacity: int = 0,
    ) -> None:
        """The search considers `size` units; the panels have room for `capacity` units, if that is more."""
        super().__init__(all_rows, units, lams, start, tol)
        self.is_whole = size >= units.n_units
        self.is_remote = any(rows.is_remote for rows in all_rows)
        self.barred: int | None = None  # a unit that may not enter the support
        make: Any = RemotePanels if self.is_remote else Panels
        self.panels: Panels = make(all_rows, units, units.widest(max(size, capacity)), gains)
        self.panels.set_ridges(lams)
        self.panels.begin_at(start.support, start.coefs)
        self.panels.hold(np.arange(units.n_units) if self.is_whole else start.support)
        self._look_at(np.arange(units.n_units))
        self.restart(lams, start, size)

    def restart(self, lams: Vector, start: Candidate, size: int = 0) -> None:
        """Move to the support `start` and ridges `lams` in the same panels, and consider `size` units."""
        is_here = lams is self.lams and start.coefs is self.coefs and self.value < np.inf
        self.lams, self.support, self.coefs = lams, start.support, start.coefs
        self.n_columns = self.units.widest(size)
        self.n_newton, self.all_tried = 0, False
        self.panels.set_ridges(lams)
        if not self.is_whole:
            self.panels.hold(self.support)
            self._look_at(self.support)
        if not is_here:
            self.move(NONE, NONE)

    def has_room(self, size: int) -> bool:
        """Whether `size` units fit into the panels, and the panels are small or would be half full."""
        n_columns, n_places = self.units.widest(size), self.panels.n_places
        is_light = sum(rows.n_samples for rows in self.all_rows) * n_places**2 <= LIGHT_GRAM_FLOPS
        return not self.is_remote and n_columns <= n_places and (is_light or n_places <= 2 * n_columns)

    def _look_at(self, units: Indices) -> None:
        self.looked_at = units if self.barred is None else units[units != self.barred]
        self._outside: Indices | None = None
        self._scored: tuple[Indices, UnitScores] | None = None

    def outside(self) -> Indices:
        if self._outside is None:  # cached until the support changes
            inside = np.zeros(self.units.n_units, np.bool_)
            inside[self.support] = True
            self._outside = self.looked_at[~inside[self.looked_at]]
        return self._outside

    def score(self, outside: Indices) -> UnitScores:
        """Predict the changes of the objective by swaps with units `outside`; cached for each support."""
        if self._scored is None or (self._scored[0] is not outside and len(outside)):
            self._scored = outside, self.panels.score(self.support, self.coefs, outside)
        return self._scored[1]

    def score_pairs(self, outside: Indices, lose: Indices, take: Indices) -> Matrix:
        return self.panels.score_pairs(self.support, self.coefs, outside, lose, take)

    def exchange(self, lose: Indices, take: Indices, give_up: float, limit: float) -> bool:
        values = np.zeros(len(self.values))
        turn, self.support, self.coefs, n_newton = self.panels.exchange(
            self.support, self.coefs, lose, take, give_up, limit, self.tol, values
        )
        self.n_newton += n_newton
        self._is_certain = turn != -2
        if turn >= 0:
            self.values, self.value = values, sum(values.tolist())
            self._outside, self._scored = None, None
        return turn >= 0

    def renew(self) -> None:
        """Copy the units that should lower the objective most into the panels; this reads X once."""
        if not self.is_whole:
            self._bring(self._most_promising())

    def _most_promising(self, of_trial: bool = False) -> Indices:
        gains = self.panels.gains(self.support, self.coefs, of_trial)
        gains[self.support] = -np.inf
        return order_smallest(-gains, self.panels.n_places)

    def _bring(self, promising: Indices) -> None:
        """Copy as many of the units `promising` into the panels as fit; swaps may then use them."""
        n_free = self.n_columns - (self.coefs.shape[1] - 1)
        n_wanted = int(np.searchsorted(np.cumsum(self.units.sizes[promising]), n_free, side="right"))
        units = np.append(self.support, promising[:n_wanted])
        self.panels.hold(units)
        self._look_at(units)

    def search_wider(self, effort: Effort) -> bool:
        """Search among units that promise a large decrease of the objective once a support unit is dropped.

        On trial, the units of the support that raise the objective least are dropped, one at a time. For
        each, a pass over X finds promising units; the flop budget limits these passes. The search is skipped
        where it rarely helps: if groups are ranked by the covariances of their columns, or if the objective
        is far above the best one found so far.
        """
        is_ranked = self.panels.unit_gains[0].covariances is not None
        if self.is_whole or not effort.wider_flops or is_ranked or self.value > self.promising:
            return False
        drop = self.score(self.outside()).drop
        pass_flops = sum(rows.n_samples * rows.n_features for rows in self.all_rows)
        n_affordable = int(effort.wider_flops * len(self.all_rows) / pass_flops)
        places = order_smallest(drop, min(self._fewer(effort.max_pair_swaps), n_affordable))
        if len(places) == 0:
            return False
        values, lists = np.empty(len(self.values)), []
        for place in places:
            _, _, _, n_newton = self.panels.exchange(
                self.support, self.coefs, np.array([[place]]), NONE[None], np.inf, -np.inf, self.tol, values
            )
            self.n_newton += n_newton
            lists.append(self._most_promising(of_trial=True))
        before = self.value
        self._bring(interleave(lists))
        self.search(effort, many=False)
        return self.value < before

    @contextmanager
    def without(self, unit: int) -> Iterator[None]:
        """Keep the unit `unit` from entering the support within the `with` block."""
        self.barred = unit
        self._look_at(np.arange(self.units.n_units))
        try:
            yield
        finally:
            self.barred = None
            self._look_at(np.arange(self.units.n_units))

    def try_every_support(self) -> None:
        """Refit all supports with the current number of units, and move to the best."""
        fixed = set(np.flatnonzero(self.units.fixed).tolist())
        free = np.flatnonzero(~self.units.fixed).tolist()
        is_certain = True
        for choice in combinations(free, len(self.support) - len(fixed)):
            chosen, now = fixed.union(choice), self.support.tolist()
            take = np.array(sorted(chosen.difference(now)), np.int64)
            if len(take):
                lose = np.array([a for a, unit in enumerate(now) if unit not in chosen], np.int64)
                self._try(lose[None], take[None], np.inf)
                is_certain = is_certain and self._is_certain
        is_exact = self.value < ZERO_OBJECTIVE or self.score(self.outside()).are_independent
        self.all_tried = is_certain and is_exact

    def result(self) -> Candidate:
        values = np.empty(len(self.values))
        slack = self.panels.finish(self.support, self.coefs, values)
        value = sum(values.tolist())
        is_exact = slack <= GRADIENT_RTOL * value or value <= ZERO_OBJECTIVE
        regime = Regime.PANEL if self.is_whole else Regime.WORKING_SET
        all_tried = self.all_tried and self.is_whole and self.barred is None
        return Candidate(self.support, self.coefs, value, all_tried, regime, values, is_exact)


def interleave(lists: Sequence[Indices]) -> Indices:
    """The first entry of each list, then the second of each, and so on, each unit only once."""
    longest = max(len(units) for units in lists)
    padded = np.full((longest, len(lists)), -1)
    for number, units in enumerate(lists):
        padded[: len(units), number] = units
    found, first = np.unique(padded, return_index=True)
    return padded.ravel()[np.sort(first[found >= 0])]
