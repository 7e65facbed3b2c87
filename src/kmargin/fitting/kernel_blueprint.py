"""Machines with a coefficient per training point."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kmargin import validate
from kmargin.design import make_design, variance_of_entries
from kmargin.design.affine import Affine
from kmargin.fitting.tasks import Sharing
from kmargin.kernel_designs import KernelDesigns
from kmargin.kernels import KERNELS, Kernel, KernelDecisions, KernelInputs
from kmargin.multiclass import SCHEMES, make_machines
from kmargin.path import SparsityPath, make_path
from kmargin.samples.array import ArraySamples
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver
from kmargin.types import Indices, Matrix
from kmargin.units import Units
from kmargin.weights import normalize


@dataclass(frozen=True)
class KernelBlueprint:
    """See `Blueprint`; the fields are those of `KernelSparseSVC`."""

    multi_class: str = "ovo"
    fit_intercept: bool = True
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = 200
    n_candidates: int | str | None = None
    random_state: Any = None
    shared: bool = True
    standardize: bool = False

    things: ClassVar[str] = "training points"

    @property
    def is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def check(self) -> None:
        validate.check_choice("multi_class", self.multi_class, SCHEMES)
        for name in ("shared", "standardize", "fit_intercept"):
            validate.check_flag(name, getattr(self, name))
        if self.standardize and self.is_precomputed:
            raise ValueError(
                "standardize=True scales features, but with kernel='precomputed' there are none. Scale them "
                "before the kernel is computed, or choose a kernel to compute it."
            )
        if not callable(self.kernel) or isinstance(self.kernel, type):
            validate.check_choice("kernel", self.kernel, KERNELS)
        if isinstance(self.gamma, str):
            validate.check_choice("gamma", self.gamma, ("scale", "auto"))
        elif isinstance(self.gamma, bool) or not (
            isinstance(self.gamma, numbers.Real) and 0 < float(self.gamma) < np.inf
        ):
            raise ValueError(f"gamma={self.gamma!r} is not valid. Use a number > 0, 'scale' or 'auto'.")
        for name, least in (("degree", 1.0), ("coef0", -np.inf)):
            validate.check_number(name, getattr(self, name), least)
        validate.check_cache_size(self.cache_size)
        validate.resolve_n_candidates(self.n_candidates, 1)

    def sharing(
        self, samples: ArraySamples, designs: KernelDesigns, n_machines: int, solver: Solver
    ) -> Sharing | None:
        if not self.shared or n_machines == 1:
            return None
        first = next(samples.machines(self.multi_class))
        return Sharing(Units.of_columns(len(designs.candidates(first))), True)

    def n_available(self, samples: ArraySamples) -> int:
        return samples.n_samples

    def n_always(self, samples: ArraySamples) -> int:
        return 0

    def resolve_k(self, k: Any, samples: ArraySamples) -> int:
        return validate.resolve_k(k, samples.n_samples, self.things)

    def resolve_ks(self, ks: Any, samples: ArraySamples, n_default: int | None = None) -> list[int]:
        return validate.resolve_ks(ks, samples.n_samples, n_default, self.things)

    def largest_default(self, samples: ArraySamples) -> int:
        return 100

    def part(self, samples: ArraySamples, rows: Indices) -> ArraySamples:
        restricted = samples.restricted_to(rows)
        if not self.is_precomputed:
            return restricted
        # of the kernel matrix the rows' own columns are left, and counted anew
        return restricted._replace(X=restricted.X[:, rows], kept=np.arange(len(rows)))

    def inputs(self, samples: ArraySamples, rows: Indices, train: Indices) -> Matrix:
        inputs = samples.X[rows]
        return inputs[:, train] if self.is_precomputed else inputs

    def designs(self, samples: ArraySamples, k: int = 0) -> KernelDesigns:
        kernel = None
        if not self.is_precomputed:
            scaling = self._scaling(samples) if self.standardize else None
            gamma = self._gamma(samples, scaling)
            kernel = Kernel(self.kernel, gamma, self.degree, self.coef0, scaling)
        return KernelDesigns(
            samples.X,
            kernel,
            self.fit_intercept,
            weights=samples.weights,
            cache_size=self.cache_size,
            n_candidates=validate.resolve_n_candidates(self.n_candidates, samples.X.shape[0]),
            k=k,
            seed=validate.resolve_seed(self.random_state),
            codes=samples.codes,
            shared=self.shared and len(samples.classes) > 2,
        )

    def decisions(
        self, designs: KernelDesigns, samples: ArraySamples, solutions: Sequence[Solution]
    ) -> KernelDecisions:
        dual_coef, used = self._dual_coef(designs, samples, [solutions])
        intercept = np.array([s.intercept for s in solutions], dtype=samples.X.dtype)
        return KernelDecisions(self._inputs_of(designs, samples, used), dual_coef[0], intercept)

    def path(
        self,
        designs: KernelDesigns,
        samples: ArraySamples,
        by_machine: Sequence[Sequence[Solution]],
        ks: Sequence[int],
    ) -> SparsityPath:
        solutions = tuple(zip(*by_machine, strict=True))
        coefs, used = self._dual_coef(designs, samples, solutions)
        inputs = self._inputs_of(designs, samples, used)
        per_machine = " of each binary classifier" if len(by_machine) > 1 and not self.shared else ""
        path = make_path(solutions, list(coefs), ks, samples, self.multi_class, inputs)
        return replace(path, counted=self.things + per_machine)

    def _dual_coef(
        self, designs: KernelDesigns, samples: ArraySamples, solutions: Sequence[Sequence[Solution]]
    ) -> tuple[Matrix, Indices]:
        """y_j alpha_j of each row of machines, and the training points j that any of them keeps."""
        machines = list(make_machines(samples.codes, len(samples.classes), self.multi_class))
        candidates = [designs.candidates(machine) for machine in machines]
        kept = [[of[s.support] for of, s in zip(candidates, row, strict=True)] for row in solutions]
        used = np.unique(np.concatenate([points for row in kept for points in row]))
        dual_coef = np.zeros((len(solutions), len(machines), len(used)), dtype=samples.X.dtype)
        for at, row in enumerate(solutions):
            for m, solution in enumerate(row):
                sign = designs.signs(machines[m], kept[at][m])
                dual_coef[at, m, np.searchsorted(used, kept[at][m])] = sign * solution.coef
        return dual_coef, used

    def _inputs_of(self, designs: KernelDesigns, samples: ArraySamples, used: Indices) -> KernelInputs:
        """What a machine has to remember of these points: nothing if kernel values are handed to it."""
        points = np.empty((0, 0), samples.X.dtype) if self.is_precomputed else samples.X[used]
        return KernelInputs(designs.kernel, points, samples.kept[used], self.cache_size)

    def _scaling(self, samples: ArraySamples) -> Affine:
        """To mean 0 and variance 1, each row counted as often as its weight says."""
        counts = normalize(samples.repeats)[0]
        return Affine.to_one_scale(
            make_design(samples.X), lambda design: design.moments(counts, counts), True
        )

    def _gamma(self, samples: ArraySamples, scaling: Affine | None) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        variance = 1.0
        if self.gamma == "scale" and scaling is not None:
            variance = float(np.mean(~scaling.are_constant))
        elif self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = variance_of_entries(samples.X, normalize(samples.repeats)[0])
        if not np.isfinite(variance):
            raise ValueError(
                "gamma='scale' needs the variance of X, which overflows for entries up to "
                f"{abs(samples.X).max():g}. Scale X, or use a number for gamma."
            )
        return 1.0 / (samples.X.shape[1] * variance) if variance > 0 else 1.0
