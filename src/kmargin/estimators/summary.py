"""The features of a fitted linear model as a frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kmargin.types import Matrix
from kmargin.unit_request import UnitRequest

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {1: "+", -1: "-", 0: ""}


def make_summary(
    coef: Matrix, machines: Sequence[str], request: UnitRequest, names: Sequence[str] | None
) -> "pd.DataFrame":
    """One row per feature that some machine uses or that is always in, the heaviest first."""
    import pandas as pd

    n_features = coef.shape[1]
    units = request.resolve(n_features, names)
    unit_of, labels = units.unit_of_each_column, request.label_units(units, names)
    always_in = np.isin(unit_of, np.flatnonzero(units.fixed))
    heaviest = np.abs(coef).max(axis=0)
    shown = np.flatnonzero((heaviest > 0) | always_in)
    shown = shown[np.argsort(-heaviest[shown], kind="stable")]
    called = [f"x{j}" if names is None else str(names[int(j)]) for j in shown]
    frame = pd.DataFrame(
        {
            "feature": called,
            "group": called if request.groups is None else [labels[unit_of[j]] for j in shown],
            "always_in": always_in[shown],
            "sign": [SIGNS[int(units.signs[j])] for j in shown],
        }
    )
    columns = ["coef"] if len(machines) == 1 else [f"coef: {name}" for name in machines]
    weights = pd.DataFrame(np.asarray(coef[:, shown]).T, columns=columns)
    return pd.concat([frame, weights], axis=1)
