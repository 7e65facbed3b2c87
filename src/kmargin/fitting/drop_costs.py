"""How much each selected feature contributes: the objective without it or with its best replacement."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Indices
from kmargin.core.units import UnitRequest
from kmargin.data.samples import Samples
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.spec import LinearBlueprint

# `improve_by_exchanges` makes an exchange only if it lowers the objective by at least this fraction.
EXCHANGE_RTOL = 1e-6


class StandIn(NamedTuple):
    """A unit (feature or group) that can replace one unit of a model while all others stay."""

    columns: Indices  # indices of the features of the replacement
    cost: float  # relative change of the objective when the model is refitted with this unit instead


class Worth(NamedTuple):
    """What one unit (feature or group) contributes to a model, and the units that could best replace it."""

    columns: Indices  # indices of the features of the unit
    cost: float  # the drop cost: relative rise of the objective when the model is refitted without the unit
    stand_ins: tuple[StandIn, ...]  # the best replacements, that with the lowest objective first

    @property
    def cost_of_exchange(self) -> float:
        """Relative change of the objective when the best replacement is made; infinite if there is none."""
        return self.stand_ins[0].cost if self.stand_ins else np.inf


def find_stand_ins(
    blueprint: LinearBlueprint,
    samples: Samples,
    C: float,
    used: Indices,
    procedure: Procedure,
    n_best: int = 2,
) -> list[Worth]:
    """For each unit (feature or group) of a model, compute its drop cost and find its best replacements.

    The drop cost is the relative rise of the objective when the model is refitted without the unit. The best
    replacements are up to `n_best` units outside the model: those with the lowest objective when the model is
    refitted with one of them instead of the unit. Units that every model must use get none. `used` has the
    indices of the features in the model.
    """
    units = blueprint.units(samples)
    in_use = np.unique(units.unit_of_each_column[used])
    columns_of = {int(u): np.flatnonzero(units.unit_of_each_column == u) for u in in_use}
    fits = _ConstrainedFits(blueprint, samples, C, procedure)
    whole = mean_objective(fits.fit(list(columns_of.values())))
    found = []
    for unit, own in columns_of.items():
        others = [columns for u, columns in columns_of.items() if u != unit]
        without = mean_objective(fits.fit(others))
        stand_ins = [] if units.fixed[unit] else fits.best_additions(others, own, whole, n_best)
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
    """Replace units (features or groups) of a model, one at a time, while this lowers the objective.

    `used` has the indices of the features in the model. Returns the fit after the last exchange (None if
    there was none), and for each unit of the resulting model its drop cost (the relative rise of the
    objective when the model is refitted without the unit) and its at most `n_best` best replacements.
    """
    fits, fit = _ConstrainedFits(blueprint, samples, C, procedure), None
    while True:
        worths = find_stand_ins(blueprint, samples, C, used, procedure, n_best)
        best = min(worths, key=lambda worth: worth.cost_of_exchange, default=None)
        if best is None or best.cost_of_exchange > -EXCHANGE_RTOL:
            return fit, worths
        columns = [worth.columns for worth in worths if worth is not best] + [best.stand_ins[0].columns]
        fit, used = fits.fit(columns), np.concatenate(columns)


def relative_change(value: float, base: float) -> float:
    """The relative change of an objective from `base` to `value`; infinite if `base` is 0 but not `value`."""
    if base > 0:
        return value / base - 1
    return 0.0 if value == base else np.inf


def mean_objective(fit: GridFit) -> float:
    """Average the objectives of all binary classifiers of a fit; the fit must be for a single C and k."""
    return float(np.mean([solution.objective for solution in fit.paths[0].solutions[0]]))


class _ConstrainedFits:
    """Fits models that must use some given units (features or groups) and must not use some others."""

    def __init__(self, blueprint: LinearBlueprint, samples: Samples, C: float, procedure: Procedure) -> None:
        self.blueprint, self.samples, self.C, self.procedure = blueprint, samples, C, procedure
        self.request = blueprint.request.by_place(samples.X.shape[1], blueprint.names)

    def fit(self, always: Sequence[Indices], never: Sequence[Indices] = (), n_more: int = 0) -> GridFit:
        """Fit a model with the units `always`, given by their columns, and up to `n_more` not in `never`."""
        avoid = [*(self.request.avoid or ()), *(int(j) for columns in never for j in columns)]
        keep = [int(j) for columns in always for j in columns]
        request = UnitRequest(self.request.groups, keep or None, avoid or None, self.request.signs)
        blueprint = replace(self.blueprint, request=request, names=None)
        return fit_grid(blueprint, self.samples, [self.C], [len(always) + n_more], self.procedure)

    def best_additions(
        self, always: Sequence[Indices], own: Indices, whole: float, n_best: int
    ) -> list[StandIn]:
        """Return up to `n_best` replacements of the unit with columns `own`, the lowest objective first.

        The other units of the model, `always`, stay in it. The cost of a replacement is the change of the
        objective relative to `whole`, the objective of the unchanged model.
        """
        found: list[StandIn] = []
        never, stays = [own], np.concatenate([*always, np.empty(0, np.intp)])
        unit_of = self.blueprint.units(self.samples).unit_of_each_column
        n_left = self.blueprint.units(self.samples).n_units - len(always) - 1
        for _ in range(min(n_best, n_left)):
            fit = self.fit(always, never, n_more=1)
            used = np.unique(np.concatenate([solution.support for solution in fit.paths[0].solutions[0]]))
            added = np.setdiff1d(used, stays)
            if not len(added):
                break  # no other unit lowers the objective
            columns = np.flatnonzero(np.isin(unit_of, unit_of[added]))
            found.append(StandIn(columns, relative_change(mean_objective(fit), whole)))
            never.append(columns)
        return sorted(found, key=lambda stand_in: stand_in.cost)
