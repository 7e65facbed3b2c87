"""Labelled rows in main memory: an array, or a CSR matrix."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from kmargin import validate
from kmargin.blocks.space import HOST, Space
from kmargin.design import Design, make_design, n_bytes, repeated_columns
from kmargin.design.affine import Affine
from kmargin.multiclass import Machine, make_machines
from kmargin.problem import ArrayProblem
from kmargin.samples.designs import LinearDesigns
from kmargin.samples.folds import FoldsAtHand
from kmargin.samples.protocol import Given
from kmargin.samples.uncopied import UncopiedRows, copied
from kmargin.types import Indices, Vector
from kmargin.weights import check_finite_weight, normalize

# Kinds of dtype that can only be labels: bool, integers, text.
PLAIN = "biuU"


class ArraySamples(NamedTuple):
    """Labelled data ready to be solved for. Rows without weight are gone."""

    X: Any  # an array, or a CSR matrix
    codes: Indices  # of the classes, 0 to n_classes - 1
    classes: np.ndarray
    repeats: Vector  # sample weights: a row of weight 2 counts as the row twice
    weights: Vector  # sample weight times class weight; positive
    kept: Indices  # which of the rows given are left

    def restricted_to(self, rows: Indices) -> "ArraySamples":
        """Some of the samples."""
        return self._replace(
            X=self.X[rows],
            codes=self.codes[rows],
            repeats=self.repeats[rows],
            weights=self.weights[rows],
            kept=self.kept[rows],
        )

    @property
    def space(self) -> Space:
        return HOST

    @property
    def labels(self) -> np.ndarray:
        return self.classes

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def machines(self, multi_class: str) -> Iterator[Machine]:
        return make_machines(self.codes, len(self.classes), multi_class)

    def designs(self, fit_intercept: bool, standardize: bool = False) -> "ArrayDesigns":
        return ArrayDesigns(self, fit_intercept, standardize)

    def repeated_columns(self) -> Indices:
        return repeated_columns(copied(self.X))

    def shared(self, n_jobs: int | None, n_tasks: int) -> tuple["ArraySamples", int | None]:
        return self, n_jobs

    def to_fit(self, rows: Indices) -> "ArraySamples":
        """Machines take their rows of X when it is their turn; until then none is copied."""
        return self._replace(X=UncopiedRows(self.X)).restricted_to(rows)

    def to_decide(self, rows: Indices) -> Any:
        return self.X[rows]

    def answering_here(self, model: Any) -> Any:
        return model

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> FoldsAtHand:
        return FoldsAtHand(model, blueprint, self, self, given, weighted)


class ArrayDesigns(LinearDesigns):
    """The design of each machine is its rows of X, standardised if asked for.

    Of more than two classes, machines on all rows have one design, and with it the SVD; else it is gone
    with the machine. Mean and spread are those of the rows at hand, each counted as often as its weight says.
    """

    stays_here = False

    def __init__(self, samples: ArraySamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.X, self.weights = samples.X, samples.weights
        self.shared = len(samples.classes) > 2
        self.whole: Design | None = None
        scaling = None
        if standardize:
            counts = normalize(samples.repeats)[0]
            scaling = Affine.to_one_scale(
                make_design(copied(self.X)), lambda design: design.moments(counts, counts), fit_intercept
            )
        super().__init__(samples.dtype, fit_intercept, scaling)

    def __call__(self, machine: Machine) -> Design:
        if machine.rows is not None:
            return self._design(self.X[machine.rows])
        whole = self._design(self.X) if self.whole is None else self.whole
        if self.shared:
            self.whole = whole
        return whole

    def problem(self, machine: Machine, Cs: Sequence[float]) -> tuple[ArrayProblem, list[float]]:
        return array_problem(self(machine), machine, self.weights, Cs)

    def __sizeof__(self) -> int:
        """With X: dask sends what is large to its workers once, and not with each batch."""
        return n_bytes(self.X)

    def stop(self) -> None:
        """Each worker has rows of its own."""

    def _design(self, rows: Any) -> Design:
        return self.scaled(make_design(copied(rows), self.fit_intercept))


def array_problem(
    design: Design, machine: Machine, weights: Vector, Cs: Sequence[float]
) -> tuple[ArrayProblem, list[float]]:
    """The problem of a machine with a design, `weights` being those of all the samples; and its ridges."""
    weights = weights if machine.rows is None else weights[machine.rows]
    weights, total_weight = normalize(weights)
    lams = [validate.ridge(C, total_weight) for C in Cs]
    return ArrayProblem(design, machine.y, weights, lams[0], design.n_features), lams


def read_samples(X: Any, y: Any, sample_weight: Any, class_weight: Any) -> ArraySamples:
    """Check y and the weights that go with a valid X; encode the classes; drop rows of weight 0."""
    y = np.asarray(y)
    y = y if y.ndim == 1 else column_or_1d(y, warn=True)
    are_labels = y.dtype.kind in PLAIN
    if not are_labels:
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if are_labels and 2 * len(classes) > len(y):
        check_classification_targets(y)  # which has a word to say about so many
    validate.check_classes(classes)
    repeats = weights = validate.check_sample_weight(sample_weight, len(y))
    if class_weight is not None:
        with np.errstate(over="ignore"):
            weights = repeats * validate.class_factors(class_weight, classes, np.bincount(codes))[codes]
        check_finite_weight(float(weights.max()))
    kept = np.flatnonzero(weights)
    validate.check_totals(classes, np.bincount(codes, weights=weights, minlength=len(classes)))
    if len(kept) < len(y):
        X, codes, repeats, weights = X[kept], codes[kept], repeats[kept], weights[kept]
    return ArraySamples(X, codes, classes, repeats, weights, kept)
