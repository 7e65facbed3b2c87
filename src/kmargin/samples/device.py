"""Arrays that stay on their device: read once, cut into folds, and fitted attributes of their kind.

What is as long as X is tall stays there, with three exceptions that have to be at hand: the labels from
which folds are made, predictions that are words or go to a scorer, and decisions that become probabilities.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.multiclass import check_classification_targets

from kmargin import validate
from kmargin.blocks.local import LocalBlocks
from kmargin.blocks.protocol import Block
from kmargin.blocks.space import Space, is_foreign, space_of, to_host
from kmargin.samples.array import ArraySamples
from kmargin.samples.blocks import BlockSamples
from kmargin.samples.folds import FoldsAtHand
from kmargin.samples.protocol import Given
from kmargin.types import Indices
from kmargin.weights import check_finite_weight


@dataclass(frozen=True)
class DeviceSamples(BlockSamples):
    """One block, on a device."""

    X: LocalBlocks
    given_classes: Any = None  # the classes in an array of y's kind
    kept: Any = None  # which of the rows given are left; None for all

    @property
    def space(self) -> Space:
        return space_of(self.block.X)

    @property
    def labels(self) -> Any:
        return self.given_classes

    @property
    def block(self) -> Block:
        (block,) = self.X.blocks
        return block

    def to_fit(self, rows: Indices) -> "DeviceSamples":
        """Copied on the device."""
        number, *arrays = self.block
        block = Block(number, *_take(self.space, self.space.put(rows), *arrays))
        return replace(self, X=LocalBlocks([block]), kept=None)

    def to_decide(self, rows: Indices) -> Any:
        """Copied on the device."""
        return self.space.xp.take(self.block.X, self.space.put(rows), axis=0)

    def at_hand(self) -> ArraySamples:
        """What is known in memory: all but X."""
        codes, repeats = self.space.bring(self.block.codes), self.space.bring(self.block.repeats)
        kept = np.arange(len(codes)) if self.kept is None else self.space.bring(self.kept)
        weights = repeats * self.class_weight[codes]
        return ArraySamples(None, codes, self.classes, repeats, weights, kept)

    def answering_here(self, model: Any) -> "AnswersAtHand":
        return AnswersAtHand(model)

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> FoldsAtHand:
        return FoldsAtHand(model, blueprint, self, self.at_hand(), given, weighted)


def device_space(X: Any) -> Space | None:
    """Where X is to stay: None for main memory, or if scikit-learn's `array_api_dispatch` is off."""
    return space_of(X) if get_config()["array_api_dispatch"] and is_foreign(X) else None


def detach(array: Any) -> Any:
    """An array of torch's without its gradients: how sums came about need not be remembered."""
    return array.detach() if hasattr(array, "detach") else array


def follow(X: Any, *others: Any) -> list[Any]:
    """Labels and weights brought to where X is; words stay in main memory."""
    space = space_of(X)
    arrays = [array if array is None or is_foreign(array) else np.asarray(array) for array in others]
    return [array if _is_words(array) else space.move(array) for array in arrays]


def _is_words(array: Any) -> bool:
    return array is None or (isinstance(array, np.ndarray) and array.dtype.kind not in "biuf")


def read_device(X: Any, y: Any, sample_weight: Any, class_weight: Any) -> DeviceSamples:
    """Check what goes with a valid X and bring it to where X is; encode the classes; drop rows of weight 0.

    `y` has passed scikit-learn's checks and may be of any kind; the classes keep it.
    """
    space = space_of(X)
    labels, codes = _encode(y)
    codes, classes = space.move(codes), to_host(labels)
    validate.check_classes(classes)
    repeats = validate.check_sample_weight(sample_weight, X.shape[0], space)
    counts, totals = _per_class(space, codes, repeats, len(classes))
    factors = validate.class_factors(class_weight, classes, counts)
    validate.check_totals(classes, totals * factors)
    check_finite_weight(float(np.sum(totals * factors)))
    kept = None
    if sample_weight is not None and not bool(space.xp.all(repeats > 0)):
        kept = space.xp.nonzero(repeats > 0)[0]
        X, codes, repeats = _take(space, kept, X, codes, repeats)
    blocks = LocalBlocks([Block(0, X, codes, repeats)])
    return DeviceSamples(blocks, classes, factors, given_classes=labels, kept=kept)


def _encode(y: Any) -> tuple[Any, Any]:
    """Classes and codes, where y is."""
    check_classification_targets(y)
    if not is_foreign(y):
        return np.unique(y, return_inverse=True)
    labels, codes = space_of(y).xp.unique_inverse(y)
    return labels, codes


def _per_class(space: Space, codes: Any, repeats: Any, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """How many rows each class has, and their weight."""
    sums = []
    for code in range(n_classes):
        inside = codes == code
        weight = space.xp.where(inside, repeats, space.xp.zeros_like(repeats))
        sums.append((float(space.xp.sum(space.floats(inside))), float(space.xp.sum(weight))))
    counts, totals = np.transpose(sums)
    return counts, totals


def _take(space: Space, rows: Any, *arrays: Any) -> tuple[Any, ...]:
    return tuple(space.xp.take(array, rows, axis=0) for array in arrays)


class AnswersAtHand:
    """A fitted model whose answers come to main memory, where any scorer can work with them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = to_host(model.classes_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def decision_function(self, X: Any) -> Any:
        return to_host(self.model.decision_function(X))

    def predict(self, X: Any) -> Any:
        return to_host(self.model.predict(X))

    def predict_proba(self, X: Any) -> Any:
        return to_host(self.model.predict_proba(X))
