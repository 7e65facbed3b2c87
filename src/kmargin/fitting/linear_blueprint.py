"""Machines with a coefficient per feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kmargin import validate
from kmargin.blocks.labelled import BlockSamples
from kmargin.device import take_inputs, take_rows
from kmargin.fitting.designs import Designs, linear_designs
from kmargin.fitting.uncopied import UncopiedRows
from kmargin.multiclass import SCHEMES
from kmargin.path import LinearDecisions, SparsityPath, dense_coefs, linear_path
from kmargin.solvers import Solution
from kmargin.types import Indices
from kmargin.validate import Samples


@dataclass(frozen=True)
class LinearBlueprint:
    """See `Blueprint`; the fields are those of `SparseSVC` and `SparseSVCCV`."""

    multi_class: str = "ovo"
    fit_intercept: bool = True
    standardize: bool = False

    things: ClassVar[str] = "features"

    def check(self) -> None:
        validate.check_choice("multi_class", self.multi_class, SCHEMES)

    def n_available(self, samples: Samples | BlockSamples) -> int:
        return samples.X.shape[1]

    def largest_default(self, samples: Samples | BlockSamples) -> int:
        return samples.X.shape[0]

    def part(self, samples: Samples | BlockSamples, rows: Indices) -> Any:
        """Machines take their rows of X when it is their turn; until then none is copied."""
        if isinstance(samples, BlockSamples):
            return take_rows(samples, rows)
        return samples._replace(X=UncopiedRows(samples.X)).restricted_to(rows)

    def inputs(self, samples: Samples | BlockSamples, rows: Indices, train: Indices) -> Any:
        return take_inputs(samples, rows) if isinstance(samples, BlockSamples) else samples.X[rows]

    def designs(self, samples: Samples | BlockSamples, k: int = 0) -> Designs:
        return linear_designs(samples, self.fit_intercept, self.standardize)

    def decisions(
        self, designs: Designs, samples: Samples | BlockSamples, solutions: Sequence[Solution]
    ) -> LinearDecisions:
        put, dtype = samples.space.put, samples.X.dtype
        intercept = np.array([s.intercept for s in solutions], dtype=dtype)
        return LinearDecisions(put(dense_coefs(solutions, dtype)), put(intercept))

    def path(
        self, designs: Designs, samples: Any, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        return linear_path(by_machine, ks, samples, self.multi_class)
