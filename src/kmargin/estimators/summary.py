"""The features of a fitted linear model as a frame, and what each is worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kmargin.fitting.stand_ins import Worth
from kmargin.types import Indices, Matrix, Vector
from kmargin.unit_request import UnitRequest

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {1: "+", -1: "-", 0: ""}


def make_summary(
    coef: Matrix,
    machines: Sequence[str],
    request: UnitRequest,
    names: Sequence[str] | None,
    spreads: Vector | None = None,
    worths: Sequence[Worth] | None = None,
) -> "pd.DataFrame":
    """One row per feature that was chosen, the largest first: by weight where spreads are known, else by
    coefficient.
    """
    import pandas as pd

    n_features = coef.shape[1]
    units = request.resolve(n_features, names)
    unit_of, labels = units.unit_of_each_column, request.label_units(units, names)
    chosen = np.flatnonzero(units.chosen((coef != 0).any(axis=0)))
    weights = coef if spreads is None else coef * spreads
    shown = chosen[np.argsort(-np.abs(weights[:, chosen]).max(axis=0), kind="stable")]
    called = [_name(j, names) for j in shown]
    columns: dict[str, Any] = {
        "feature": called,
        "group": called if request.groups is None else [labels[unit_of[j]] for j in shown],
        "always_in": units.fixed[unit_of[shown]],
        "sign": [SIGNS[int(units.signs[j])] for j in shown],
    }
    columns |= _by_machine("coef", coef[:, shown], machines)
    if spreads is not None:
        columns |= _by_machine("weight", weights[:, shown], machines)
    if worths is not None:
        columns |= _costs(worths, shown, request, names)
    return pd.DataFrame(columns)


def _by_machine(what: str, values: Matrix, machines: Sequence[str]) -> dict[str, Vector]:
    called = [what] if len(machines) == 1 else [f"{what}: {name}" for name in machines]
    return dict(zip(called, np.asarray(values), strict=True))


def _costs(
    worths: Sequence[Worth], shown: Indices, request: UnitRequest, names: Sequence[str] | None
) -> dict[str, list[float] | list[str]]:
    of_column = {int(j): worth for worth in worths for j in worth.columns}
    found = [of_column[int(j)] for j in shown]
    firsts = [worth.stand_ins[0] if worth.stand_ins else None for worth in found]
    join = " + ".join
    return {
        "cost_without": [worth.cost for worth in found],
        "stand_in": ["" if at is None else join(_name(j, names) for j in at.columns) for at in firsts],
        "stand_in_cost": [np.nan if at is None else at.cost for at in firsts],
    }


def _name(place: int, names: Sequence[str] | None) -> str:
    return f"x{place}" if names is None else str(names[int(place)])
