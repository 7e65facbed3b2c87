"""What linear machines are made of, wherever their rows are."""

from typing import Any, Protocol

import numpy as np

from kmargin.blocks.design import BlockDesign, all_rows
from kmargin.blocks.labelled import BlockSamples
from kmargin.blocks.view import View
from kmargin.design import Design, make_design, n_bytes
from kmargin.fitting.scaling import Scaling
from kmargin.fitting.uncopied import copied
from kmargin.multiclass import Machine
from kmargin.solvers import Solution
from kmargin.types import Vector
from kmargin.validate import Samples
from kmargin.weights import normalize


class Designs(Protocol):
    """What each machine is made of."""

    def __call__(self, machine: Machine) -> Any:
        """The machine's design; one of blocks knows labels and weights by itself."""

    dtype: Any  # of the data, and of what is fitted to them

    def restore(self, solution: Solution) -> Solution:
        """A solution for a design, as one for the data given."""

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of that."""


class LinearDesigns:
    """The design of each machine is its rows of X, standardised if asked for.

    If `shared`, machines on all rows have one design, and with it the SVD; else it is gone with the
    machine. Mean and spread are those of the rows at hand, each counted as often as its weight says.
    """

    def __init__(
        self,
        X: Any,
        fit_intercept: bool,
        standardize: bool = False,
        repeats: Vector | None = None,
        shared: bool = True,
    ) -> None:
        self.X = X
        self.dtype = X.dtype
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.scaling: Scaling | None = None
        if standardize:
            repeats = np.ones(X.shape[0]) if repeats is None else normalize(repeats)[0]
            counts = repeats
            self.scaling = Scaling.of(
                make_design(copied(X)), lambda design: design.moments(counts, counts), fit_intercept
            )
        self.whole: Design | None = None

    def __call__(self, machine: Machine) -> Design:
        if machine.rows is not None:
            return self._design(self.X[machine.rows])
        whole = self._design(self.X) if self.whole is None else self.whole
        if self.shared:
            self.whole = whole
        return whole

    def __sizeof__(self) -> int:
        """With X: dask sends what is large to its workers once, and not with each batch."""
        return n_bytes(self.X)

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.redo(solution)

    def _design(self, rows: Any) -> Design:
        design = make_design(copied(rows), self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)


class BlockDesigns:
    """The same for data in blocks: each machine has its own view of them."""

    def __init__(self, samples: BlockSamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.samples = samples
        self.dtype = samples.X.dtype
        self.fit_intercept = fit_intercept
        self.scaling: Scaling | None = None
        if standardize:
            every = all_rows(len(samples.classes))._replace(part=samples.part)
            design = BlockDesign(samples.X, every)
            self.scaling = Scaling.of(design, lambda design: design.moments(), fit_intercept)

    def __call__(self, machine: Machine) -> BlockDesign:
        samples = self.samples
        view = View(machine.positive, machine.negative, samples.class_weight, samples.part)
        design = BlockDesign(samples.X, view, self.fit_intercept)
        return design if self.scaling is None else design.standardized(*self.scaling)

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.undo(solution)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else self.scaling.redo(solution)


def linear_designs(
    samples: Samples | BlockSamples, fit_intercept: bool, standardize: bool = False
) -> Designs:
    """The designs of linear machines, wherever their rows are."""
    if isinstance(samples, BlockSamples):
        return BlockDesigns(samples, fit_intercept, standardize)
    shared = len(samples.classes) > 2
    return LinearDesigns(samples.X, fit_intercept, standardize, samples.repeats, shared)
