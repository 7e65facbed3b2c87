"""Machines with a coefficient per feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kmargin import validate
from kmargin.multiclass import SCHEMES
from kmargin.path import LinearDecisions, SparsityPath, dense_coefs, linear_path
from kmargin.samples.protocol import Designs, NumberedSamples, Samples
from kmargin.solvers import Solution
from kmargin.types import Indices


@dataclass(frozen=True)
class LinearBlueprint:
    """See `Blueprint`; the fields are those of `SparseSVC` and `SparseSVCCV`."""

    multi_class: str = "ovo"
    fit_intercept: bool = True
    standardize: bool = False

    things: ClassVar[str] = "features"

    def check(self) -> None:
        validate.check_choice("multi_class", self.multi_class, SCHEMES)

    def n_available(self, samples: Samples) -> int:
        return samples.n_features

    def largest_default(self, samples: Samples) -> int:
        return samples.n_samples

    def part(self, samples: NumberedSamples, rows: Indices) -> NumberedSamples:
        return samples.to_fit(rows)

    def inputs(self, samples: NumberedSamples, rows: Indices, train: Indices) -> Any:
        return samples.to_decide(rows)

    def designs(self, samples: Samples, k: int = 0) -> Designs:
        return samples.designs(self.fit_intercept, self.standardize)

    def decisions(self, designs: Designs, samples: Samples, solutions: Sequence[Solution]) -> LinearDecisions:
        put, dtype = samples.space.put, samples.dtype
        intercept = np.array([s.intercept for s in solutions], dtype=dtype)
        return LinearDecisions(put(dense_coefs(solutions, dtype)), put(intercept))

    def path(
        self, designs: Designs, samples: Any, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        return linear_path(by_machine, ks, samples, self.multi_class)
