"""What the parameters of an estimator mean for the problem to solve, and how solutions become decisions."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import issparse

from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design
from kmargin.core.labels import SCHEMES, Machine, make_machines, normalize
from kmargin.core.problem import ArrayProblem
from kmargin.core.scaling import Scaling, unit_variance_scaling
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import RepeatedFeaturesWarning, called_for_a_fold, warn_caller
from kmargin.data.design import distinct_rows, make_design, n_bytes, variance_of_entries
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.kernel import MEGABYTE, KernelDesign, scaled
from kmargin.data.samples import Designs, NumberedSamples, Samples
from kmargin.data.samples.array import ArraySamples, array_problem
from kmargin.fitting.decisions import (
    KERNELS,
    Kernel,
    KernelDecisions,
    KernelInputs,
    LinearCoefs,
    LinearDecisions,
    dense_coefs,
)
from kmargin.fitting.path import SparsityPath, make_path
from kmargin.fitting.tasks import Sharing
from kmargin.solvers import Solution
from kmargin.solvers.solver import Solver


class Decisions(Protocol):
    """The decision values of several machines, as a function of X."""

    coef: Matrix  # a row per machine
    intercept: Any

    def __call__(self, X: Any) -> Matrix:
        """A column per machine, of the dtype of X."""


class Blueprint(Protocol):
    """One kind of machines with all that has to be known to make them, before there are data."""

    @property
    def things(self) -> str:
        """What k counts."""

    @property
    def multi_class(self) -> str: ...

    @property
    def shared(self) -> bool:
        """Whether machines have what k counts in common."""

    def sharing(self, samples: Any, designs: Any, n_machines: int, solver: Solver) -> Sharing | None:
        """What k counts; None for single columns, each machine by itself."""

    def n_available(self, samples: Any) -> int:
        """How many things there are for k to count."""

    def n_always(self, samples: Any) -> int:
        """How many of these are always in."""

    def resolve_k(self, k: Any, samples: Any) -> int:
        """A k as users give it. Raises ValueError if it leaves no room for what is always in."""

    def resolve_ks(self, ks: Any, samples: Any, n_default: int | None = None) -> list[int]:
        """Several, descending; see `validate.resolve_ks`."""

    def check(self) -> None:
        """Raise ValueError for what makes no sense."""

    def largest_default(self, samples: Any) -> int:
        """The largest k tried where nobody says which."""

    def part(self, samples: Any, rows: Indices) -> Any:
        """Some of the samples, to be fitted to."""

    def inputs(self, samples: Any, rows: Indices, train: Indices) -> Any:
        """What to decide about, for some rows after a fit to others."""

    def designs(self, samples: Any, k: int = 0) -> Designs:
        """What machines are made of that keep at most k things."""

    def decisions(self, designs: Any, samples: Any, solutions: Sequence[Solution]) -> Any:
        """What the machines' solutions decide; these are `Decisions`."""

    def path(
        self, designs: Any, samples: Any, by_machine: Sequence[Sequence[Solution]], ks: Sequence[int]
    ) -> SparsityPath:
        """The machines' solutions for several k as a path."""


def find_repeats(samples: Samples, solver: Solver) -> Indices:
    """The features that a search passes over because an earlier one is the same."""
    return samples.repeated_columns() if solver.skips_repeats else np.arange(0)


def repeats_to_report(samples: Samples, solver: Solver) -> Indices:
    """Those of them that users should know about.

    Constant columns are of no use, repeated or not. In a sparse matrix repeated columns are the rule, such as
    words that always occur together.
    """
    if issparse(getattr(samples, "X", None)):
        return np.arange(0)
    repeats = find_repeats(samples, solver)
    if len(repeats) == 0:
        return repeats
    constant = samples.designs(fit_intercept=True, standardize=True).are_constant
    return repeats[~constant[repeats]]


def warn_of_repeats(samples: Samples, solver: Solver) -> None:
    """Say which features a search passes over because an earlier one is the same.

    Fits to the folds of a cross-validation say nothing: a grid search warns once, at the refit to all rows.
    """
    repeats = np.arange(0) if called_for_a_fold() else repeats_to_report(samples, solver)
    if len(repeats):
        some = ", ".join(map(str, repeats[:5])) + (", ..." if len(repeats) > 5 else "")
        which = f"1 feature repeats an earlier one (column {some})"
        if len(repeats) > 1:
            which = f"{len(repeats)} features repeat an earlier one (columns {some})"
        warn_caller(f"{which}: only the first of each is used.", RepeatedFeaturesWarning)


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
        validation.check_choice("multi_class", self.multi_class, SCHEMES)
        for name in ("shared", "standardize", "fit_intercept"):
            validation.check_flag(name, getattr(self, name))

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
        k = validation.resolve_k(k, units.n_units, self.things)
        self.request.check_k(k, units)
        return k

    def resolve_ks(self, ks: Any, samples: Samples, n_default: int | None = None) -> list[int]:
        """Values without room for what is always in are refused if they were asked for, else left out."""
        units = self.units(samples)
        resolved = validation.resolve_ks(ks, units.n_units, n_default, self.things)
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


# Where the kernel with all points would not fit, so many are candidates; or so many for each to be kept.
# Of 16,000 letters 140 are chosen as well among 2,000 as among 4,000 (the objective differs more between
# samples than between their sizes), and 430 of 16,000 in clusters as well among 2,000 as among 4,300, in
# half the time.
CANDIDATES, PER_PLACE = 2000, 4


class KernelDesigns:
    """The design of each machine is K diag(y): its rows' kernel with its candidate points.

    Candidates are the machine's distinct training points, or a sample of them where `n_candidates` or
    the budget asks for that. A repeated point would only be the same column again; as it is, a point
    given twice and a point of weight 2 are the same thing. Rows are never sampled.
    Without a kernel function X is the kernel matrix itself, and every point is a candidate.
    Machines that share their points have the same candidates, those of all classes: a machine for two of
    them may decide by points of a third.

    Up to `cache_size` MB the matrix is held; beyond that it is computed as it is asked for.
    """

    stays_here = False

    def __init__(
        self,
        X: Matrix,
        kernel: Kernel | None,
        fit_intercept: bool,
        *,
        weights: Vector,  # of all rows
        cache_size: float,
        n_candidates: int | None = None,  # None: by the budget
        k: int = 0,  # the most points that a machine will keep
        seed: int = 0,
        codes: Indices,  # the class of each row
        shared: bool = False,
    ) -> None:
        self.X, self.weights = X, weights
        self.codes = codes
        self.shared = shared
        self.dtype = X.dtype
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.cache_size = cache_size
        self.n_candidates = n_candidates
        self.k = k
        self.seed = seed
        self._candidates: dict[tuple[int | None, int], Indices] = {}

    def __call__(self, machine: Machine) -> Design:
        rows, candidates = self._rows(machine), self.candidates(machine)
        signs = self.signs(machine, candidates)
        if self.kernel is None:
            return DenseDesign(scaled(self.X[np.ix_(rows, candidates)], signs), self.fit_intercept)
        X, points = self.X[rows], self.X[candidates]
        if len(candidates) <= self._n_held(len(rows)):
            return DenseDesign(scaled(self.kernel(X, points), signs), self.fit_intercept)
        kernel = self.kernel.quickly
        return KernelDesign(kernel, X, points, signs, self.fit_intercept, cache_size=self.cache_size)

    def problem(self, machine: Machine, Cs: Sequence[float]) -> tuple[ArrayProblem, list[float]]:
        return array_problem(self(machine), machine, self.weights, Cs)

    def __sizeof__(self) -> int:
        """With X: dask sends what is large to its workers once, and not with each batch."""
        return n_bytes(self.X)

    def restore(self, solution: Solution) -> Solution:
        return solution

    def unrestore(self, solution: Solution) -> Solution:
        return solution

    def stop(self) -> None:
        """Each worker has rows of its own."""

    def signs(self, machine: Machine, points: Indices) -> Vector:
        """The label of each point, as a machine sees it."""
        return np.where(self.codes[points] == machine.positive, 1.0, -1.0)

    def candidates(self, machine: Machine) -> Indices:
        """Rows of X, ascending; chosen once for each machine, or for all."""
        key = (None, 0) if self.shared else (machine.negative, machine.positive)
        if key not in self._candidates:
            rows = np.arange(self.X.shape[0]) if self.shared else self._rows(machine)
            self._candidates[key] = rows if self.kernel is None else self._choose(key, rows)
        return self._candidates[key]

    def _choose(self, key: tuple[int | None, int], rows: Indices) -> Indices:
        negative, positive = key
        distinct = rows[distinct_rows(self.X[rows])]
        count = self.n_candidates
        if count is None:
            count = max(self._n_held(len(rows)), CANDIDATES, PER_PLACE * self.k)
        if len(distinct) <= count:
            return distinct
        rng = np.random.default_rng([self.seed, positive, 0 if negative is None else negative + 1])
        return np.sort(rng.choice(distinct, count, replace=False))

    def _n_held(self, n_rows: int) -> int:
        """How many columns the budget has room for."""
        return int(self.cache_size * MEGABYTE / (8 * n_rows))

    def _rows(self, machine: Machine) -> Indices:
        return np.arange(self.X.shape[0]) if machine.rows is None else machine.rows


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
        validation.check_choice("multi_class", self.multi_class, SCHEMES)
        for name in ("shared", "standardize", "fit_intercept"):
            validation.check_flag(name, getattr(self, name))
        if self.standardize and self.is_precomputed:
            raise ValueError(
                "standardize=True scales features, but with kernel='precomputed' there are none. Scale them "
                "before the kernel is computed, or choose a kernel to compute it."
            )
        if not callable(self.kernel) or isinstance(self.kernel, type):
            validation.check_choice("kernel", self.kernel, KERNELS)
        if isinstance(self.gamma, str):
            validation.check_choice("gamma", self.gamma, ("scale", "auto"))
        elif isinstance(self.gamma, bool) or not (
            isinstance(self.gamma, numbers.Real) and 0 < float(self.gamma) < np.inf
        ):
            raise ValueError(f"gamma={self.gamma!r} is not valid. Use a number > 0, 'scale' or 'auto'.")
        for name, least in (("degree", 1.0), ("coef0", -np.inf)):
            validation.check_number(name, getattr(self, name), least)
        validation.check_cache_size(self.cache_size)
        validation.resolve_n_candidates(self.n_candidates, 1)

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
        return validation.resolve_k(k, samples.n_samples, self.things)

    def resolve_ks(self, ks: Any, samples: ArraySamples, n_default: int | None = None) -> list[int]:
        return validation.resolve_ks(ks, samples.n_samples, n_default, self.things)

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
            n_candidates=validation.resolve_n_candidates(self.n_candidates, samples.X.shape[0]),
            k=k,
            seed=validation.resolve_seed(self.random_state),
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

    def _scaling(self, samples: ArraySamples) -> Scaling:
        """To mean 0 and variance 1, each row counted as often as its weight says."""
        counts = normalize(samples.repeats)[0]
        return unit_variance_scaling(
            make_design(samples.X), lambda design: design.moments(counts, counts), True
        )

    def _gamma(self, samples: ArraySamples, scaling: Scaling | None) -> float:
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
