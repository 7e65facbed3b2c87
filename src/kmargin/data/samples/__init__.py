"""Labelled data of every kind: the methods that the estimators use."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Space, Vector
from kmargin.core.problem import BinaryProblem
from kmargin.core.scaling import Scaling
from kmargin.model_selection.calibration import Calibration
from kmargin.solvers import Solution

ModelAt = Callable[[int, int], Any]  # the model for the positions of C and k


class Designs(Protocol):
    """Makes the binary problems of one data set."""

    dtype: Any  # of the data, and of the fitted coefficients
    stays_here: bool  # whether the problems can be solved in this process only

    def problem(self, machine: Any, Cs: Sequence[float]) -> tuple[BinaryProblem, list[float]]:
        """A binary problem with the first of its ridges, and all of these."""

    def restore(self, solution: Solution) -> Solution:
        """Convert a solution for standardised columns to one for the columns as given."""

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of `restore`."""

    def stop(self) -> None:
        """Stop computing, because the fit has been given up."""


class LinearDesigns(Designs):
    """Designs with a column for each feature, standardised if there is a scaling."""

    def __init__(self, dtype: Any, fit_intercept: bool, scaling: Scaling | None) -> None:
        self.dtype = dtype
        self.fit_intercept = fit_intercept
        self.scaling = scaling

    def restore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.leave)

    def unrestore(self, solution: Solution) -> Solution:
        return solution if self.scaling is None else _moved(solution, self.scaling.enter)

    @property
    def spreads(self) -> Vector:
        """The spread of each feature where they are standardised, 1 for a constant one."""
        return np.ones(0) if self.scaling is None else self.scaling.units

    @property
    def are_constant(self) -> Flags:
        """Which features are constant, where they are standardised."""
        return np.empty(0, np.bool_) if self.scaling is None else self.scaling.are_constant

    def scaled(self, design: Any) -> Any:
        """A design with its columns standardised, if there is a scaling."""
        return design if self.scaling is None else self.scaling.apply_to(design)


class Folds(Protocol):
    """All folds of one cross-validation."""

    n_jobs: int | None  # how many machines to fit at once
    n_tested: float  # rows that are scored, each counted once
    test_ratio: float  # test rows of a fold per training row

    def __len__(self) -> int: ...

    def parts(self) -> Iterator[Any]:
        """The samples that each fold is fitted to."""

    def score(self, number: int, fit: Any, shape: tuple[int, int], model_at: ModelAt) -> Matrix:
        """The scores of one fold's models on its test rows, for every C and k.

        `fit` holds its decision functions; `model_at` makes a model of them where the scorer needs one.
        """

    def calibrate(self, decisions: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """Maps from decision values to probabilities, learned from the test rows of each fold.

        One for each entry of `left_out`: None for all test rows, a number for those that are not tested in
        the fold of this number. `decisions` are the decision functions of each fold.
        """


class Given(NamedTuple):
    """The data as they were given, for a splitter."""

    X: Any
    y: Any
    groups: Any


class Samples(Protocol):
    """Labelled data that have been checked."""

    @property
    def classes(self) -> np.ndarray:
        """The classes as a NumPy array."""

    @property
    def labels(self) -> Any:
        """The classes as the attribute `classes_` holds them."""

    @property
    def space(self) -> Space:
        """The array library and device of fitted attributes."""

    @property
    def dtype(self) -> Any:
        """The dtype of X, as NumPy names it."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def machines(self, multi_class: str) -> Iterator[Any]:
        """The binary problems of a multi-class scheme, each of them an argument for `Designs.problem`."""

    def designs(self, fit_intercept: bool, standardize: bool = False) -> LinearDesigns:
        """The designs of linear classifiers, with standardised features if asked for."""

    def repeated_columns(self) -> Indices:
        """The features that repeat an earlier one."""

    def shared(self, n_jobs: int | None, n_tasks: int) -> tuple["Samples", int | None]:
        """The samples for each of several tasks, and how many tasks to run at once."""

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Folds:
        """The folds of `model.cv`; `blueprint` is the model specification."""


class NumberedSamples(Samples, Protocol):
    """Samples whose rows can be selected by index."""

    def to_fit(self, rows: Indices) -> "NumberedSamples":
        """Some of the samples, for a fit."""

    def to_decide(self, rows: Indices) -> Any:
        """Some rows of X, for a prediction."""

    def answering_here(self, model: Any) -> Any:
        """A model that was fitted to such samples, with predictions in main memory, for any scorer."""


def _moved(solution: Solution, move: Callable[[Indices, Vector, float], tuple[Vector, float]]) -> Solution:
    """The same solution for other columns."""
    coef, intercept = move(solution.support, solution.coef, solution.intercept)
    return replace(solution, coef=coef, intercept=intercept)
