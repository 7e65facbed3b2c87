"""Base classes of labelled data, and of the objects that make binary problems of their rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import HOST, Flags, Indices, Space, Vector
from kmargin.core.problem import BinaryProblem
from kmargin.core.scaling import Scaling
from kmargin.solvers import Solution

ModelAt = Callable[[int, int], Any]  # returns the model for given positions in the grids of C and k


class Designs:
    """Makes the binary problems of one data set, with standardised columns if there is a scaling."""

    stays_here = False  # whether the problems cannot be sent to other processes

    def __init__(self, dtype: Any, fit_intercept: bool, scaling: Scaling | None) -> None:
        self.dtype = dtype  # of the data and of the fitted coefficients
        self.fit_intercept = fit_intercept
        self.scaling = scaling

    def problem(self, machine: Any, Cs: Sequence[float]) -> tuple[BinaryProblem, list[float]]:
        """Return a binary problem with the ridge of Cs[0], and the ridges of all Cs."""
        raise NotImplementedError

    def restore(self, solution: Solution) -> Solution:
        """Convert a solution for standardised columns to one for the columns as given."""
        return solution if self.scaling is None else _moved(solution, self.scaling.unscale_coefs)

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of `restore`."""
        return solution if self.scaling is None else _moved(solution, self.scaling.scale_coefs)

    @property
    def spreads(self) -> Vector:
        """The spread by which each feature is divided, 1 for a constant one; empty without a scaling."""
        return np.ones(0) if self.scaling is None else self.scaling.scales

    @property
    def are_constant(self) -> Flags:
        """Whether each feature is constant; empty without a scaling."""
        return np.empty(0, np.bool_) if self.scaling is None else self.scaling.are_constant

    def stop(self) -> None:
        """Stop requests that run in the background, because the fit has been given up."""


class Given(NamedTuple):
    """The data as the user gave them, for scikit-learn's splitters."""

    X: Any
    y: Any
    groups: Any


class Samples(ABC):
    """Labelled data that have been checked: arrays in memory or on a device, or dask collections."""

    X: Any
    classes: np.ndarray
    space: Space = HOST  # the array library and device that the fitted attributes will have

    @property
    def labels(self) -> Any:
        """The classes as the attribute `classes_` holds them."""
        return self.classes

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of X."""
        return self.X.dtype

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @abstractmethod
    def machines(self, multi_class: str) -> Iterator[Any]:
        """Yield the binary problems of "ovo" or "ovr", each as an argument for `Designs.problem`."""

    @abstractmethod
    def designs(self, fit_intercept: bool, standardize: bool = False) -> Designs:
        """Return the maker of the binary problems of linear classifiers."""

    @property
    @abstractmethod
    def repeated_columns(self) -> Indices:
        """The features whose column repeats an earlier one."""

    def n_at_once(self, n_jobs: int | None, n_tasks: int) -> int | None:
        """Return how many of `n_tasks` fits to run at once."""
        return n_jobs

    @abstractmethod
    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Any:
        """Return the folds of `model.cv`; `blueprint` is the model's specification."""


def _moved(solution: Solution, move: Callable[[Indices, Vector, float], tuple[Vector, float]]) -> Solution:
    """Return a solution with coefficients and intercept converted by `move`."""
    coef, intercept = move(solution.support, solution.coef, solution.intercept)
    return replace(solution, coef=coef, intercept=intercept)
