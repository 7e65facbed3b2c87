"""`Blueprint`: turns an estimator's parameters into problems, and their solutions into decision functions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import issparse

from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design
from kmargin.core.labels import SCHEMES, Pair, class_pairs, label_rows, normalize
from kmargin.core.scaling import Scaling
from kmargin.core.units import UnitRequest, Units
from kmargin.core.validation import RepeatedFeaturesWarning, called_for_a_fold, warn_caller
from kmargin.data.design import distinct_rows, variance_of_entries
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.kernel import MEGABYTE, KernelDesign, scaled
from kmargin.data.samples import Designs, Samples
from kmargin.data.samples.array import ArrayDesigns, ArraySamples
from kmargin.fitting.decisions import KERNELS, Kernel, KernelInputs
from kmargin.fitting.path import LinearCoefs, Models, SparsityPath
from kmargin.solvers.solver import Solver


class Decisions(Protocol):
    """A function that maps X to the decision values of binary classifiers."""

    coef: Matrix  # one row per binary classifier
    intercept: Any

    def __call__(self, X: Any) -> Matrix:
        """Return the decision values, one column per binary classifier, in the dtype of X."""


@dataclass(frozen=True)
class Blueprint(ABC):
    """The parameters of an estimator that define the optimisation problem, except k and C.

    The fields, here and in the subclasses for linear and kernel models, are named like the parameters.
    """

    multi_class: str = "ovo"
    fit_intercept: bool = True
    standardize: bool = False
    shared: bool = True

    @property
    def request(self) -> UnitRequest:
        """The user's `groups` of features, features to `keep` or `avoid` in every model, and `signs`."""
        return UnitRequest()

    @property
    @abstractmethod
    def unit_label(self) -> str:
        """The plural noun for what k counts ("features", "groups", "training points"), for messages."""

    def check(self) -> None:
        """Raise ValueError for an invalid parameter."""
        validation.check_choice("multi_class", self.multi_class, SCHEMES)
        validation.check_flags(self, "shared", "standardize", "fit_intercept")

    @abstractmethod
    def units(self, samples: Any) -> Units:
        """The units that k counts: features, groups of features, or training points."""

    @abstractmethod
    def problem_units(self, samples: Any, designs: Any, solver: Solver, is_joint: bool) -> Units | None:
        """Return the units that k counts in a problem for the solver; None means that each column is one.

        `is_joint` says whether that problem consists of several binary problems that use the same units.
        """

    @abstractmethod
    def largest_default(self, samples: Any) -> int:
        """Upper limit of k in the default grid of a cross-validation, besides the number of units."""

    @abstractmethod
    def part(self, samples: Any, rows: Indices) -> Any:
        """Return the samples at the indices `rows`, to which the models of a fold are fitted."""

    @abstractmethod
    def inputs(self, samples: Any, rows: Indices, train: Indices) -> Any:
        """Return X of the samples at indices `rows`, as needed by a model fitted to those at `train`."""

    @abstractmethod
    def designs(self, samples: Any, k: int = 0) -> Any:
        """Return an object that makes the design matrices of binary problems; k is the largest k to fit."""

    @abstractmethod
    def path(self, designs: Sequence[Any], samples: Any, models: Models, ks: Sequence[int]) -> SparsityPath:
        """Make a `SparsityPath` of the solutions `models` for `ks`; `designs` made the problem for each k."""

    def _make_path(
        self, models: Models, by_k: Sequence[Matrix], ks: Sequence[int], samples: Any, **more: Any
    ) -> SparsityPath:
        """Make a `SparsityPath` of the solutions and coefficients for each k; `more` are other attributes."""
        put, is_each = samples.space.put, len(models[0]) > 1 and not self.shared
        intercepts, objectives = np.empty((2, len(models), len(models[0])))
        for at, m in np.ndindex(intercepts.shape):
            intercepts[at, m], objectives[at, m] = models[at][m].intercept, models[at][m].objective
        return SparsityPath(
            ks=np.array(ks),
            by_k=by_k,
            intercepts=put(intercepts.astype(samples.X.dtype)),
            objectives=put(objectives),
            solutions=tuple(models),
            classes=samples.classes if samples.given_classes is None else samples.given_classes,
            multi_class=self.multi_class,
            n_features_in=samples.X.shape[1],
            counted=self.unit_label + (" of each binary classifier" if is_each else ""),
            **more,
        )


def repeats_to_report(samples: Samples, solver: Solver) -> Indices:
    """Return the indices of features to warn of: they equal an earlier feature, so the solver skips them.

    There is no warning of constant features, which no model uses anyway, nor of features of sparse matrices,
    where equal columns are common, such as words that always occur together.
    """
    if not solver.skips_repeats or issparse(getattr(samples, "X", None)):
        return np.arange(0)
    repeats = samples.repeated_columns
    if len(repeats) == 0:
        return repeats
    return repeats[~samples.unit_variance_scaling(fit_intercept=True).are_constant[repeats]]


def warn_of_repeats(samples: Samples, solver: Solver) -> None:
    """Warn of features that the solver skips because they equal an earlier feature.

    Fits to folds of a cross-validation do not warn, so a grid search warns once, when it refits to all rows.
    """
    repeats = repeats_to_report(samples, solver)
    if len(repeats) and not called_for_a_fold():
        some = ", ".join(map(str, repeats[:5])) + (", ..." if len(repeats) > 5 else "")
        which = "1 feature repeats" if len(repeats) == 1 else f"{len(repeats)} features repeat"
        text = f"{which} an earlier one (column {some}): only the first of each is used."
        warn_caller(text, RepeatedFeaturesWarning)


@dataclass(frozen=True)
class LinearBlueprint(Blueprint):
    """The parameters of a linear model, which has a coefficient for each feature."""

    request: UnitRequest = UnitRequest()  # noqa: RUF009
    names: tuple[str, ...] | None = None  # the column names of X

    @property
    def unit_label(self) -> str:
        return "features" if self.request.groups is None else "groups"

    def units(self, samples: Samples) -> Units:
        """The features or groups that k counts; cached, because reading a group label per feature is slow."""
        known, n_features = vars(self).setdefault("_units", {}), samples.X.shape[1]
        if n_features not in known:
            known[n_features] = self.request.resolve(n_features, self.names)
        units: Units = known[n_features]
        return units

    def problem_units(self, samples: Samples, designs: Any, solver: Solver, is_joint: bool) -> Units | None:
        units = self.units(samples)
        if units.are_plain and not is_joint and len(samples.classes) > 2:
            return None
        if units.are_plain and solver.skips_repeats and len(samples.repeated_columns):
            return units.without_copies(samples.repeated_columns)
        return units

    def largest_default(self, samples: Samples) -> int:
        return samples.X.shape[0]

    def part(self, samples: Any, rows: Indices) -> Samples:
        return samples.to_fit(rows)

    def inputs(self, samples: Any, rows: Indices, train: Indices) -> Any:
        return samples.to_decide(rows)

    def designs(self, samples: Samples, k: int = 0) -> Designs:
        return samples.designs(self.fit_intercept, self.standardize)

    def path(self, designs: Sequence[Any], samples: Any, models: Models, ks: Sequence[int]) -> SparsityPath:
        return self._make_path(
            models,
            LinearCoefs(models, samples.X.dtype),
            ks,
            samples,
            unit_of=None if self.request.groups is None else self.units(samples).unit_of_each_column,
            feature_names=self.names,
        )


# If the kernel matrix of all training points would exceed `cache_size`, the k points of a model are selected
# from a random sample of at least CANDIDATES and at least CANDIDATES_PER_POINT * k training points. Larger
# samples are slower and gave no better models in two experiments with 16,000 training points.
CANDIDATES, CANDIDATES_PER_POINT = 2000, 4


class KernelDesigns(ArrayDesigns):
    """Makes the binary problems of kernel models.

    A design matrix is K diag(y): K has a row for each training point and a column for each candidate point, y
    the labels of the candidates. Candidates are the points that may get a nonzero coefficient: the distinct
    training points of the binary problem, or a random sample of them if `n_candidates` or the memory budget
    requires it. Rows are never sampled. If the kernel is precomputed, every point is a candidate. Binary
    problems that share their points have the same candidates from all classes, so a classifier of two
    classes may use points of a third.

    A matrix K of at most `cache_size` MB is stored; the entries of a larger one are computed when needed.
    """

    def __init__(self, blueprint: "KernelBlueprint", samples: ArraySamples, k: int = 0) -> None:
        super().__init__(samples, blueprint.fit_intercept)
        self.kernel, self.cache_size = blueprint.make_kernel(samples), blueprint.cache_size
        # number of candidate points; None means as many as the memory budget allows
        self.n_candidates = validation.resolve_n_candidates(blueprint.n_candidates, len(samples.codes))
        self.k = k  # the largest number of points that a model may use
        self.shared = blueprint.shared and len(samples.classes) > 2
        self.seed = validation.resolve_seed(blueprint.random_state)
        self._candidates: dict[Pair, Indices] = {}

    def design(self, pair: Pair, rows: Indices | None) -> Design:
        rows = np.arange(len(self.codes)) if rows is None else rows
        candidates = self.candidates(pair)
        signs = self.signs(pair, candidates)
        if self.kernel is None:
            return DenseDesign(scaled(self.X[np.ix_(rows, candidates)], signs), self.fit_intercept)
        X, points = self.X[rows], self.X[candidates]
        if len(candidates) <= self._n_held(len(rows)):
            return DenseDesign(scaled(self.kernel(X, points), signs), self.fit_intercept)
        kernel = self.kernel.quickly
        return KernelDesign(kernel, X, points, signs, self.fit_intercept, cache_size=self.cache_size)

    def signs(self, pair: Pair, points: Indices) -> Vector:
        """For a binary problem, return the label of each point: 1 in its positive class, otherwise -1."""
        return np.where(self.codes[points] == pair.positive, 1.0, -1.0)

    def candidates(self, pair: Pair) -> Indices:
        """Indices of the points that may get a nonzero coefficient in a binary problem, ascending; cached."""
        pair = Pair(None, 0) if self.shared else pair
        if pair not in self._candidates:
            rows = label_rows(self.codes, pair)[0]
            rows = np.arange(len(self.codes)) if rows is None else rows
            self._candidates[pair] = rows if self.kernel is None else self._choose(pair, rows)
        return self._candidates[pair]

    def _choose(self, pair: Pair, rows: Indices) -> Indices:
        negative, positive = pair
        distinct = rows[distinct_rows(self.X[rows])]
        count = self.n_candidates
        if count is None:
            count = max(self._n_held(len(rows)), CANDIDATES, CANDIDATES_PER_POINT * self.k)
        if len(distinct) <= count:
            return distinct
        rng = np.random.default_rng([self.seed, positive, 0 if negative is None else negative + 1])
        return np.sort(rng.choice(distinct, count, replace=False))

    def _n_held(self, n_rows: int) -> int:
        """The number of columns of a kernel matrix with `n_rows` rows that fit into `cache_size` MB."""
        return int(self.cache_size * MEGABYTE / (8 * n_rows))


@dataclass(frozen=True)
class KernelBlueprint(Blueprint):
    """The parameters of a kernel model, which has a coefficient for each training point."""

    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = 200
    n_candidates: int | str | None = None
    random_state: Any = None

    unit_label: ClassVar[str] = "training points"

    @property
    def is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def check(self) -> None:
        super().check()
        if self.standardize and self.is_precomputed:
            raise ValueError(
                "standardize=True scales features, but with kernel='precomputed' there are none. Scale them "
                "before the kernel is computed, or choose a kernel to compute it."
            )
        if not callable(self.kernel) or isinstance(self.kernel, type):
            validation.check_choice("kernel", self.kernel, KERNELS)
        if isinstance(self.gamma, str):
            validation.check_choice("gamma", self.gamma, ("scale", "auto"))
        elif not validation.is_number(self.gamma, above=0):
            advice = "Use a number > 0, 'scale' or 'auto'."
            raise validation.invalid("gamma", self.gamma, "valid", advice)
        for name, least in (("degree", 1.0), ("coef0", -np.inf)):
            if not validation.is_number(getattr(self, name), at_least=least):
                advice = "Use a finite number, for degree at least 1."
                raise validation.invalid(name, getattr(self, name), "valid", advice)
        if not validation.is_number(self.cache_size, above=0):
            meaning, advice = "a number of megabytes for kernel values", "Use a number > 0, such as 200."
            raise validation.invalid("cache_size", self.cache_size, meaning, advice)
        validation.resolve_n_candidates(self.n_candidates, 1)

    def units(self, samples: ArraySamples) -> Units:
        return Units.of_columns(samples.X.shape[0])

    def problem_units(
        self, samples: ArraySamples, designs: "KernelDesigns", solver: Solver, is_joint: bool
    ) -> Units | None:
        if not is_joint:
            return None
        return Units.of_columns(len(designs.candidates(Pair(None, 0))))  # all pairs have the same candidates

    def largest_default(self, samples: ArraySamples) -> int:
        return 100

    def part(self, samples: ArraySamples, rows: Indices) -> ArraySamples:
        restricted = samples.restricted_to(rows)
        if not self.is_precomputed:
            return restricted
        # X is the kernel matrix, so its columns are points too: keep those in `rows`, and number them from 0
        return replace(restricted, X=restricted.X[:, rows], kept=np.arange(len(rows)))

    def inputs(self, samples: ArraySamples, rows: Indices, train: Indices) -> Matrix:
        inputs = samples.X[rows]
        return inputs[:, train] if self.is_precomputed else inputs

    def designs(self, samples: ArraySamples, k: int = 0) -> KernelDesigns:
        return KernelDesigns(self, samples, k)

    def make_kernel(self, samples: ArraySamples) -> Kernel | None:
        """The kernel function, with scaling and gamma from `samples`; None if X holds kernel values."""
        if self.is_precomputed:
            return None
        scaling = samples.unit_variance_scaling(fit_intercept=True) if self.standardize else None
        return Kernel(self.kernel, self._gamma(samples, scaling), self.degree, self.coef0, scaling)

    def path(self, designs: Sequence[Any], samples: Any, models: Models, ks: Sequence[int]) -> SparsityPath:
        pairs = class_pairs(len(samples.classes), self.multi_class)
        kept = [
            [own.candidates(pair)[s.support] for pair, s in zip(pairs, model, strict=True)]
            for own, model in zip(designs, models, strict=True)
        ]
        used = np.unique(np.concatenate([points for row in kept for points in row]))
        dual_coefs = np.zeros((len(models), len(pairs), len(used)), dtype=samples.X.dtype)
        for at, model in enumerate(models):
            for m, solution in enumerate(model):
                signs = designs[at].signs(pairs[m], kept[at][m])
                dual_coefs[at, m, np.searchsorted(used, kept[at][m])] = signs * solution.coef
        points = np.empty((0, 0), samples.X.dtype) if self.is_precomputed else samples.X[used]
        inputs = KernelInputs(designs[0].kernel, points, samples.kept[used], self.cache_size)
        return self._make_path(models, list(dual_coefs), ks, samples, inputs=inputs)

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
