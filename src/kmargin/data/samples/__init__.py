"""Interfaces of labelled data and of their folds, which hide from the estimators where the rows are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Space, Vector
from kmargin.core.problem import BinaryProblem
from kmargin.core.scaling import Scaling
from kmargin.model_selection.calibration import Calibration
from kmargin.solvers import Solution

ModelAt = Callable[[int, int], Any]  # returns the model for given positions in the grids of C and k


class Designs(Protocol):
    """Makes the binary problems of one data set."""

    dtype: Any  # of the data and of the fitted coefficients
    stays_here: bool  # whether the problems cannot be sent to other processes

    def problem(self, machine: Any, Cs: Sequence[float]) -> tuple[BinaryProblem, list[float]]:
        """Return a binary problem with the ridge of Cs[0], and the ridges of all Cs."""

    def restore(self, solution: Solution) -> Solution:
        """Convert a solution for standardised columns to one for the columns as given."""

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of `restore`."""

    def stop(self) -> None:
        """Stop computing, because the fit has been given up."""


class LinearDesigns(Designs):
    """Makes binary problems with a column for each feature, standardised if there is a scaling."""

    def __init__(self, dtype: Any, fit_intercept: bool, scaling: Scaling | None) -> None:
        self.dtype = dtype
        self.fit_intercept = fit_intercept
        self.scaling = scaling

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.unscale_coefs)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.scale_coefs)

    @property
    def spreads(self) -> Vector:
        """The spread by which each feature is divided, 1 for a constant one; empty without a scaling."""
        return np.ones(0) if self.scaling is None else self.scaling.scales

    @property
    def are_constant(self) -> Flags:
        """Whether each feature is constant; empty without a scaling."""
        return np.empty(0, np.bool_) if self.scaling is None else self.scaling.are_constant

    def scaled(self, design: Any) -> Any:
        """Standardise the columns of a design if there is a scaling."""
        return design if self.scaling is None else self.scaling.apply_to(design)


class Folds(Protocol):
    """All folds of one cross-validation."""

    n_jobs: int | None  # number of binary classifiers to fit at once
    n_tested: float  # number of distinct rows that are scored, or their effective number if weighted
    test_ratio: float  # mean over the folds of the number of test rows divided by that of training rows

    def __len__(self) -> int: ...

    def parts(self) -> Iterator[Any]:
        """Yield the training samples of each fold."""

    def score(self, number: int, fit: Any, shape: tuple[int, int], model_at: ModelAt) -> Matrix:
        """Return the scores of the models of fold `number` on its test rows, for every C and k.

        `fit` has their decision functions, and `shape` is the number of Cs and ks. If the scorer needs an
        estimator, `model_at` makes one of a decision function.
        """

    def calibrate(self, decisions: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """Fit maps from decision values to probabilities to the test rows of all folds.

        There is one map for each entry of `left_out`. Where the entry is a number, the test rows of that fold
        are left out. `decisions` has the decision function of each fold.
        """


class Given(NamedTuple):
    """The data as the user gave them, for scikit-learn's splitters."""

    X: Any
    y: Any
    groups: Any


class Samples(Protocol):
    """Labelled data that have been checked: arrays in memory or on a device, or dask collections."""

    @property
    def classes(self) -> np.ndarray:
        """The classes as a NumPy array."""

    @property
    def labels(self) -> Any:
        """The classes as the attribute `classes_` holds them."""

    @property
    def space(self) -> Space:
        """The array library and device that the fitted attributes will have."""

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of X."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def machines(self, multi_class: str) -> Iterator[Any]:
        """Yield the binary problems of "ovo" or "ovr", each as an argument for `Designs.problem`."""

    def designs(self, fit_intercept: bool, standardize: bool = False) -> LinearDesigns:
        """Return the maker of the binary problems of linear classifiers."""

    def repeated_columns(self) -> Indices:
        """The features whose column repeats an earlier one."""

    def shared(self, n_jobs: int | None, n_tasks: int) -> tuple["Samples", int | None]:
        """Return the samples as several parallel tasks use them, and how many tasks to run at once."""

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Folds:
        """Return the folds of `model.cv`; `blueprint` is the model's specification."""


class NumberedSamples(Samples, Protocol):
    """Samples whose rows can be selected by index."""

    def to_fit(self, rows: Indices) -> "NumberedSamples":
        """Select rows as training samples."""

    def to_decide(self, rows: Indices) -> Any:
        """Select rows of X for a prediction."""

    def with_host_predictions(self, model: Any) -> Any:
        """Wrap a fitted model so that its predictions are NumPy arrays, which any scorer accepts."""


def _moved(solution: Solution, move: Callable[[Indices, Vector, float], tuple[Vector, float]]) -> Solution:
    """Return a solution with coefficients and intercept converted by `move`."""
    coef, intercept = move(solution.support, solution.coef, solution.intercept)
    return replace(solution, coef=coef, intercept=intercept)
