"""Sample weights: what must not be among them."""

from typing import Any

import numpy as np

from kmargin.blocks.space import HOST, Space
from kmargin.types import Vector


def normalize(weights: Vector) -> tuple[Vector, float]:
    """Weights that sum to their number, and what they summed to before (perhaps to infinity).

    They are brought to order one before they are added: sums of very large ones would overflow.
    """
    largest = float(weights.max())
    relative = weights / largest
    share = float(relative.sum())
    return relative * (len(weights) / share), largest * share


def check_some_weight(largest: float) -> None:
    if largest == 0:
        raise ValueError(
            "sample_weight is zero for every sample, so there is nothing to fit. Give some samples a weight "
            "> 0."
        )


def check_finite_weight(total: float) -> None:
    if not np.isfinite(total):
        raise ValueError(
            "The sum of sample_weight times class_weight overflows. Divide the weights by their largest."
        )


def find_bad_weight(weights: Any, space: Space = HOST) -> tuple[int, float] | None:
    """The place and value of a sample weight that must not be."""
    xp = space.xp
    if not xp.all(xp.isfinite(weights)):
        worst = int(xp.argmin(xp.astype(xp.isfinite(weights), weights.dtype)))
    elif xp.any(weights < 0):
        worst = int(xp.argmin(weights))
    else:
        return None
    return worst, float(weights[worst])


def complain_of_weight(row: int, weight: float, where: str = "") -> str:
    if not np.isfinite(weight):
        return f"sample_weight contains NaN or infinity{where}. Give finite numbers >= 0."
    return f"sample_weight[{row}]={weight:g}{where} is negative. Give numbers >= 0; 0 leaves a sample out."
