"""Sample weights: what must not be among them."""

import numpy as np

from kmargin.types import Vector


def check_some_weight(total: float) -> None:
    if total == 0:
        raise ValueError(
            "sample_weight is zero for every sample, so nothing is left to fit. Give some a weight > 0."
        )


def find_bad_weight(weights: Vector) -> tuple[int, float] | None:
    """The place and value of a sample weight that must not be."""
    unbounded = ~np.isfinite(weights)
    if unbounded.any():
        worst = int(unbounded.argmax())
    elif (weights < 0).any():
        worst = int(weights.argmin())
    else:
        return None
    return worst, float(weights[worst])


def complain_of_weight(row: int, weight: float, where: str = "") -> str:
    if not np.isfinite(weight):
        return f"sample_weight contains NaN or infinity{where}. Give finite numbers >= 0."
    return (
        f"sample_weight[{row}]={weight:g}{where} would reward a mistake on that sample. "
        "Give numbers >= 0; 0 leaves a sample out."
    )
