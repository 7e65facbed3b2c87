"""Labelled data of every kind: what the estimators ask of them."""

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
    """What each machine is made of."""

    dtype: Any  # of the data, and of what is fitted to them
    stays_here: bool  # whether only this process can ask

    def problem(self, machine: Any, Cs: Sequence[float]) -> tuple[BinaryProblem, list[float]]:
        """A machine's problem under the first of the ridges, and all of these."""

    def restore(self, solution: Solution) -> Solution:
        """A solution for a design, as one for the data given."""

    def unrestore(self, solution: Solution) -> Solution:
        """The inverse of that."""

    def stop(self) -> None:
        """Answer no more questions: whoever asked has given up, and others may still be asking."""


class FeatureDesigns(Designs, Protocol):
    """The same, with a column for each feature."""

    @property
    def spreads(self) -> Vector:
        """Of each feature where they are on one scale, 1 for a constant one."""

    @property
    def are_constant(self) -> Flags:
        """Which features are constant, where they are on one scale."""


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
    """What a splitter gets to see: the data as they were given."""

    X: Any
    y: Any
    groups: Any


class Samples(Protocol):
    """Labelled data ready to be solved for."""

    @property
    def classes(self) -> np.ndarray:
        """In an array of NumPy's."""

    @property
    def labels(self) -> Any:
        """The classes as `classes_` is to have them."""

    @property
    def space(self) -> Space:
        """Where fitted attributes belong."""

    @property
    def dtype(self) -> Any:
        """NumPy's name for that of X."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def machines(self, multi_class: str) -> Iterator[Any]:
        """The machines of a scheme, as `Designs` take them."""

    def designs(self, fit_intercept: bool, standardize: bool = False) -> FeatureDesigns:
        """What linear machines are made of, on features of one scale if asked for."""

    def repeated_columns(self) -> Indices:
        """The features that say what an earlier one says."""

    def shared(self, n_jobs: int | None, n_tasks: int) -> tuple["Samples", int | None]:
        """The samples as each of several tasks gets them, and how many tasks to run at once."""

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Folds:
        """The folds of `model.cv`, of machines that a blueprint knows how to make."""


class NumberedSamples(Samples, Protocol):
    """Samples whose rows have numbers, by which folds are made."""

    def to_fit(self, rows: Indices) -> "NumberedSamples":
        """Some of the samples, to be fitted to."""

    def to_decide(self, rows: Indices) -> Any:
        """Some rows of X, to decide about."""

    def answering_here(self, model: Any) -> Any:
        """A model that was fitted to such samples, with answers in main memory, where any scorer is."""


class LinearDesigns:
    """Designs that may be standardised. Solutions are brought back from that."""

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
        """Of each feature where they are standardised, 1 for a constant one."""
        return np.ones(0) if self.scaling is None else self.scaling.units

    @property
    def are_constant(self) -> Flags:
        """Which features are constant, where they are standardised."""
        return np.empty(0, np.bool_) if self.scaling is None else self.scaling.are_constant

    def scaled(self, design: Any) -> Any:
        """The same design on one scale, if there is one."""
        return design if self.scaling is None else self.scaling.apply_to(design)


def _moved(solution: Solution, move: Callable[[Indices, Vector, float], tuple[Vector, float]]) -> Solution:
    """The same solution for other columns."""
    coef, intercept = move(solution.support, solution.coef, solution.intercept)
    return replace(solution, coef=coef, intercept=intercept)
