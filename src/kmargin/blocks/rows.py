"""One block as it is read: its rows of X, and their labels and weights beside them."""

import sys
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.graphs import Source
from kmargin.blocks.kinds import foreign_blocks
from kmargin.blocks.recipes import Kept, Leaves, derive


class Labels(NamedTuple):
    """What is known of the rows of a block besides X."""

    y: Any  # as given, or codes of classes
    weights: Any  # None where none were given


class Rows:
    """A block that is made when it is asked for.

    X is kept in memory, or read each time; labels and weights are always kept, being p times smaller.
    """

    def __init__(self, number: int, X: Kept, labels: Kept) -> None:
        self.number = number
        self.X = X
        self.labels = labels

    def get(self, leaves: Leaves) -> "LazyBlock":
        return LazyBlock(self, leaves)

    def fresh(self) -> "Rows":
        return Rows(self.number, self.X.fresh(), self.labels.fresh())

    def made(self, leaves: Leaves) -> "Rows":
        """With everything made that is to be kept."""
        for part in (self.X, self.labels):
            if part.keep:
                part.get(leaves)
        return self

    def __sizeof__(self) -> int:
        return self.X.__sizeof__() + self.labels.__sizeof__()


class LazyBlock:
    """A `Block` whose X is read when it is needed."""

    def __init__(self, rows: Rows, leaves: Leaves) -> None:
        labels = rows.labels.get(leaves)
        self.number = rows.number
        self.codes = labels.y
        self.repeats = np.ones(len(labels.y)) if labels.weights is None else labels.weights
        self._read = partial(rows.X.get, leaves)

    @cached_property
    def X(self) -> np.ndarray:
        return self._read()


class Reading:
    """The recipe for something read from several sources."""

    def __init__(self, function: Callable[..., Any], *sources: Source | None) -> None:
        self.function = function
        self.sources = sources

    def __call__(self, leaves: Leaves) -> Any:
        return self.function(*(source and source.read(leaves) for source in self.sources))


def make_rows(number: int, sources: list[Source], dtype: Any, keep: bool) -> Rows:
    """A block from the sources of X, of y, and of weights if there are any."""
    X, y, weights = (*sources, None)[:3]
    return Rows(number, Kept(Reading(ToArray(dtype), X), keep), Kept(Reading(to_labels, y, weights)))


def keep_rows(rows: Rows, leaves: Leaves) -> Rows:
    """The same rows, X kept."""
    return Rows(rows.number, Kept(rows.X.recipe), rows.labels).made(leaves)


def encode(rows: Rows, leaves: Leaves, classes: np.ndarray) -> Rows:
    """The same rows with the codes of their classes as labels."""
    return Rows(rows.number, rows.X, derive(rows.labels, leaves, to_codes, (classes,)))


class ToArray:
    """X as the solvers take it: C-ordered, of one dtype in all blocks."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, X: Any) -> np.ndarray:
        if hasattr(X, "to_numpy"):
            return self._from_frame(X)
        if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
            raise TypeError(foreign_blocks(X))
        return np.ascontiguousarray(X, dtype=self.dtype)

    def _from_frame(self, X: Any) -> np.ndarray:
        plain = all(isinstance(dtype, np.dtype) for dtype in X.dtypes)
        # what is missing becomes NaN, and is found as that
        array = np.ascontiguousarray(X.to_numpy() if plain else X.to_numpy(na_value=np.nan), dtype=self.dtype)
        if "pyarrow" in sys.modules:  # keeps what it has read in memory that nobody else can use
            sys.modules["pyarrow"].default_memory_pool().release_unused()
        return array


def to_labels(y: Any, weights: Any) -> Labels:
    weights = weights if weights is None else np.asarray(weights, dtype=np.float64)
    return Labels(np.asarray(y), weights)


def to_codes(labels: Labels, classes: np.ndarray) -> Labels:
    """The place of each label among the classes, in as few bytes as will do."""
    dtype = np.min_scalar_type(-len(classes))
    return labels._replace(y=np.searchsorted(classes, labels.y).astype(dtype))
