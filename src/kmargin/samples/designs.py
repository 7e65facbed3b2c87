"""What linear machines have in common, wherever their rows are."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kmargin.design.affine import NOTHING_KNOWN, Affine
from kmargin.solvers import Solution
from kmargin.types import Flags, Indices, Vector


class LinearDesigns:
    """Designs that may be standardised. Solutions are brought back from that."""

    def __init__(self, dtype: Any, fit_intercept: bool, scaling: Affine | None) -> None:
        self.dtype = dtype
        self.fit_intercept = fit_intercept
        self.scaling = scaling

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.leave)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.enter)

    def size_of_terms(self, solution: Solution) -> float:
        if self.scaling is None:
            return 0.0
        centers, units, _ = self.scaling
        norms = np.abs(centers[solution.support]) + units[solution.support]
        return float(np.abs(solution.coef) @ norms) + abs(solution.intercept)

    @property
    def spreads(self) -> Vector:
        """Of each feature where they are standardised, 1 for a constant one."""
        return np.ones(0) if self.scaling is None else self.scaling.units

    @property
    def are_constant(self) -> Flags:
        """Which features are constant, where they are standardised."""
        return NOTHING_KNOWN if self.scaling is None else self.scaling.are_constant

    def scaled(self, design: Any) -> Any:
        """The same design on one scale, if there is one."""
        return design if self.scaling is None else self.scaling.apply(design)


def _moved(solution: Solution, move: Callable[[Indices, Vector, float], tuple[Vector, float]]) -> Solution:
    """The same solution for other columns."""
    coef, intercept = move(solution.support, solution.coef, solution.intercept)
    return replace(solution, coef=coef, intercept=intercept)
