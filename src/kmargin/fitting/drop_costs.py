"""What each selected feature contributes: the objective without it, and the best replacement."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Indices
from kmargin.core.units import UnitRequest
from kmargin.data.samples import Samples
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.spec import LinearBlueprint

EXCHANGE_RTOL = (
    1e-6  # relative decrease of the objective for which an exchange is made; below, it is rounding
)


class StandIn(NamedTuple):
    """What could take the place of another unit, all others staying as they are."""

    columns: Indices
    cost: float  # relative change of the objective, all coefficients refitted; negative if it improves


class Worth(NamedTuple):
    """One unit in use: a feature, or a group of them."""

    columns: Indices
    cost: float  # of doing without it, likewise
    stand_ins: tuple[StandIn, ...]  # the cheapest first


def find_stand_ins(
    blueprint: LinearBlueprint,
    samples: Samples,
    C: float,
    used: Indices,
    procedure: Procedure,
    n_best: int = 2,
) -> list[Worth]:
    """The worth of each unit that the columns in use belong to, one by one.

    For machines that share their features, or a single one. Units that are always in have no stand-ins.
    """
    units = blueprint.units(samples)
    in_use = np.unique(units.unit_of_each_column[used])
    columns_of = {int(u): np.flatnonzero(units.unit_of_each_column == u) for u in in_use}
    ask = _Question(blueprint, samples, C, procedure)
    whole = ask.objective(list(columns_of.values()))
    found = []
    for unit in columns_of:
        others = [columns for u, columns in columns_of.items() if u != unit]
        own = columns_of[unit]
        without = ask.objective(others)
        stand_ins = [] if units.fixed[unit] else ask.best_additions(others, own, whole, n_best)
        found.append(Worth(own, relative_change(without, whole), tuple(stand_ins)))
    return found


def improve_by_exchanges(
    blueprint: LinearBlueprint,
    samples: Samples,
    C: float,
    used: Indices,
    procedure: Procedure,
    n_best: int = 2,
) -> tuple[GridFit | None, list[Worth]]:
    """Exchange one unit at a time for its best stand-in while that lowers the objective.

    Returns the fit after the last exchange, None where no exchange helps, and the worths of its units.
    """
    ask, fit = _Question(blueprint, samples, C, procedure), None
    while True:
        worths = find_stand_ins(blueprint, samples, C, used, procedure, n_best)
        best = min(worths, key=_cost_of_exchange, default=None)
        if best is None or _cost_of_exchange(best) > -EXCHANGE_RTOL:
            return fit, worths
        kept = [worth.columns for worth in worths if worth is not best]
        columns = [*kept, best.stand_ins[0].columns]
        fit, used = ask.fit(len(columns), columns), np.concatenate(columns)


def _cost_of_exchange(worth: Worth) -> float:
    return worth.stand_ins[0].cost if worth.stand_ins else np.inf


def relative_change(value: float, base: float) -> float:
    """Of an objective; from zero it rises without bound."""
    if base > 0:
        return value / base - 1
    return 0.0 if value == base else np.inf


class _Question:
    """Fits with some columns always in, and others never."""

    def __init__(self, blueprint: LinearBlueprint, samples: Samples, C: float, procedure: Procedure) -> None:
        self.blueprint, self.samples, self.C, self.procedure = blueprint, samples, C, procedure
        self.said = blueprint.request.by_place(samples.n_features, blueprint.names)

    def objective(self, always: Sequence[Indices]) -> float:
        """The least with these units and no others."""
        return _objective(self.fit(len(always), always))

    def best_additions(
        self, always: Sequence[Indices], own: Indices, whole: float, n_best: int
    ) -> list[StandIn]:
        """What to add to these units, the best first, in place of `own`."""
        found: list[StandIn] = []
        never, stays = [own], np.concatenate([*always, np.empty(0, np.intp)])
        for _ in range(min(n_best, self._n_left(always))):
            fit = self.fit(len(always) + 1, always, never)
            used = np.unique(np.concatenate([solution.support for solution in fit.solutions(0, 0)]))
            added = np.setdiff1d(used, stays)
            if not len(added):
                break  # nothing lowers the objective
            columns = self._whole_unit(added)
            found.append(StandIn(columns, relative_change(_objective(fit), whole)))
            never.append(columns)
        return sorted(found, key=lambda stand_in: stand_in.cost)

    def _n_left(self, always: Sequence[Indices]) -> int:
        return self.blueprint.n_available(self.samples) - len(always) - 1

    def _whole_unit(self, columns: Indices) -> Indices:
        unit_of = self.blueprint.units(self.samples).unit_of_each_column
        return np.flatnonzero(np.isin(unit_of, unit_of[columns]))

    def fit(self, k: int, always: Sequence[Indices], never: Sequence[Indices] = ()) -> GridFit:
        """The machines with k units, those that are always in among them."""
        avoid = [*(self.said.avoid or ()), *(int(j) for columns in never for j in columns)]
        keep = [int(j) for columns in always for j in columns]
        request = UnitRequest(self.said.groups, keep or None, avoid or None, self.said.signs)
        blueprint = replace(self.blueprint, request=request, names=None)
        return fit_grid(blueprint, self.samples, [self.C], [k], self.procedure)


def _objective(fit: GridFit) -> float:
    """The mean over the machines."""
    return float(np.mean([solution.objective for solution in fit.solutions(0, 0)]))
