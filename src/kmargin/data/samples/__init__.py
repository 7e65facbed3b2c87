"""Base classes of labelled data, and of the objects that turn such data into binary problems."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin.core.arrays import HOST, Indices, Space
from kmargin.core.labels import Pair
from kmargin.core.problem import BinaryProblem
from kmargin.core.scaling import Scaling
from kmargin.solvers import Solution

ModelAt = Callable[[int, int], Any]  # takes the positions of C and k in their grids, returns the model


class Designs:
    """Makes the binary problems of one data set, with standardised columns if `scaling` is not None."""

    stays_here = False  # whether the problems cannot be sent to other processes
    default_n_jobs: int | None = None  # how many problems are solved at once if `n_jobs` is None
    dtype: Any  # the dtype of the data and of the fitted coefficients
    fit_intercept: bool
    scaling: Scaling | None

    def problem(self, pair: Pair, Cs: Sequence[float]) -> tuple[BinaryProblem, list[float]]:
        """Return the binary problem of two classes, with the ridge for Cs[0], and the ridge of each C."""
        raise NotImplementedError

    def restore(self, solution: Solution) -> Solution:
        """Convert a solution for standardised columns to one for the columns that the user gave."""
        if self.scaling is None:
            return solution
        coef, intercept = self.scaling.unscale_coefs(solution.support, solution.coef, solution.intercept)
        return replace(solution, coef=coef, intercept=intercept)

    def stop(self) -> None:
        """Cancel computations that run in the background; called when a fit has failed or was interrupted."""


class Given(NamedTuple):
    """The data as the user gave them, for scikit-learn's splitters."""

    X: Any
    y: Any
    groups: Any


class Samples(ABC):
    """Labelled data that have been checked: arrays in memory or on a device, or dask collections."""

    X: Any  # features as an array, a sparse matrix or `Blocks`; has a `shape` and a `dtype`
    classes: np.ndarray
    given_classes: Any = None  # if X is on a device, the classes as an array of y's library
    space: Space = HOST  # the array library and device that the fitted attributes will have

    @abstractmethod
    def designs(self, fit_intercept: bool, standardize: bool = False) -> Designs:
        """Return an object that makes the binary problems of linear classifiers from these samples."""

    @property
    @abstractmethod
    def repeated_columns(self) -> Indices:
        """Indices of the features whose column equals an earlier column."""

    @abstractmethod
    def unit_variance_scaling(self, fit_intercept: bool) -> Scaling:
        """The scaling of features to mean 0 and variance 1; a row of sample weight 2 counts like two rows."""

    @abstractmethod
    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Any:
        """Return the folds that `model.cv` defines; they make training sets, and score and calibrate models.

        `blueprint` has all parameters of the model except k and C. If `weighted`, scores use sample weights.
        """
