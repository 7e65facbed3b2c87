"""What linear machines have in common, wherever their rows are."""

from typing import Any

from kmargin.fitting.scaling import Scaling
from kmargin.solvers import Solution


class LinearDesigns:
    """Designs that may be standardised. Solutions are brought back from that."""

    def __init__(self, dtype: Any, fit_intercept: bool, scaling: Scaling | None) -> None:
        self.dtype = dtype
        self.fit_intercept = fit_intercept
        self.scaling = scaling

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.redo(solution)

    def scaled(self, design: Any) -> Any:
        """The same design on one scale, if there is one."""
        return design if self.scaling is None else design.standardized(*self.scaling)
