"""Machines with a coefficient per feature."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kmargin import validate
from kmargin.fitting.repeats import find_repeats
from kmargin.fitting.tasks import Sharing
from kmargin.linear_decisions import LinearCoefs, LinearDecisions, dense_coefs
from kmargin.multiclass import SCHEMES
from kmargin.path import SparsityPath, make_path
from kmargin.samples.protocol import Designs, NumberedSamples, Samples
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Indices
from kmargin.unit_request import UnitRequest
from kmargin.units import Units

NOTHING_SAID = UnitRequest()

NO_COLUMNS: Indices = np.empty(0, np.int64)


@dataclass(frozen=True)
class LinearBlueprint:
    """See `Blueprint`; the fields are those of `SparseSVC` and `SparseSVCCV`."""

    multi_class: str = "ovo"
    fit_intercept: bool = True
    standardize: bool = False
    shared: bool = True
    request: UnitRequest = NOTHING_SAID
    names: tuple[str, ...] | None = None  # of the features
    resolved: dict[int, Units] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def things(self) -> str:
        return self.request.things

    def check(self) -> None:
        validate.check_choice("multi_class", self.multi_class, SCHEMES)
        for name in ("shared", "standardize", "fit_intercept"):
            validate.check_flag(name, getattr(self, name))

    def units(self, samples: Samples) -> Units:
        """What k counts; for so many features it is made out once."""
        p = samples.n_features
        if p not in self.resolved:
            self.resolved[p] = self.request.resolve(p, self.names)
        return self.resolved[p]

    def sharing(self, samples: Samples, designs: Designs, n_machines: int, solver: Solver) -> Sharing | None:
        shared = self.shared and n_machines > 1
        if self.request.is_empty and not shared:
            return None
        units = self.units(samples)
        copies = find_repeats(samples, solver) if self.request.is_empty else NO_COLUMNS
        return Sharing(units.without_copies(copies) if len(copies) else units, shared)

    def n_available(self, samples: Samples) -> int:
        return self.units(samples).n_units

    def n_always(self, samples: Samples) -> int:
        return int(self.units(samples).fixed.sum())

    def resolve_k(self, k: Any, samples: Samples) -> int:
        units = self.units(samples)
        k = validate.resolve_k(k, units.n_units, self.things)
        self.request.check_k(k, units)
        return k

    def resolve_ks(self, ks: Any, samples: Samples, n_default: int | None = None) -> list[int]:
        """Values without room for what is always in are refused if they were asked for, else left out."""
        units = self.units(samples)
        resolved = validate.resolve_ks(ks, units.n_units, n_default, self.things)
        least = int(units.fixed.sum())
        if np.iterable(ks):
            self.request.check_k(resolved[-1], units)
            return resolved
        return [k for k in resolved if k >= least] or [least]

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
        per_machine = " of each binary classifier" if len(by_machine) > 1 and not self.shared else ""
        unit_of = None if self.request.groups is None else self.units(samples).unit_of_each_column
        solutions = tuple(zip(*by_machine, strict=True))
        path = make_path(solutions, LinearCoefs(solutions, samples.dtype), ks, samples, self.multi_class)
        return replace(path, counted=self.things + per_machine, unit_of=unit_of, feature_names=self.names)
