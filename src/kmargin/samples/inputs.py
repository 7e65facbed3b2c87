"""X to decide about, and what is asked of it."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kmargin.blocks import lazy
from kmargin.blocks.space import space_of
from kmargin.multiclass import choose_classes, combine_decisions
from kmargin.types import Matrix


class Machines(Protocol):
    """Decision values, as a function of X."""

    def __call__(self, X: Any) -> Matrix:
        """A column per machine."""


ToProbabilities = Callable[[Matrix], Matrix]  # of the machines' decision values, in main memory


class Inputs(Protocol):
    """X to decide about. What is decided is of its kind."""

    @property
    def n_features(self) -> int: ...

    def decide(self, machines: Machines, n_classes: int, multi_class: str) -> Any:
        """What `decision_function` returns."""

    def choose(self, scores: Any, classes: Any) -> Any:
        """What `predict` returns, from that."""

    def tell(self, machines: Machines, to_probabilities: ToProbabilities, n_classes: int) -> Any:
        """What `predict_proba` returns."""


class InputsAtHand:
    """An array or a sparse matrix."""

    def __init__(self, X: Any) -> None:
        self.X = X

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def decide(self, machines: Machines, n_classes: int, multi_class: str) -> Any:
        return combine_decisions(machines(self.X), n_classes, multi_class)

    def choose(self, scores: Any, classes: Any) -> Any:
        return choose_classes(scores, classes)

    def tell(self, machines: Machines, to_probabilities: ToProbabilities, n_classes: int) -> Any:
        decisions = machines(self.X)
        space = space_of(decisions)
        return space.put(to_probabilities(space.bring(decisions)))


class LazyInputs:
    """A dask collection: decided about when somebody asks."""

    def __init__(self, X: Any, dtype: np.dtype) -> None:
        self.X, self.dtype = X, dtype

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def decide(self, machines: Machines, n_classes: int, multi_class: str) -> Any:
        return lazy.decide(self.X, self.dtype, machines, n_classes, multi_class)

    def choose(self, scores: Any, classes: Any) -> Any:
        return lazy.choose(scores, classes)

    def tell(self, machines: Machines, to_probabilities: ToProbabilities, n_classes: int) -> Any:
        return lazy.tell(self.X, self.dtype, machines, to_probabilities, n_classes)
