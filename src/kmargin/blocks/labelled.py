"""Labelled data in blocks."""

from typing import Any, NamedTuple

import numpy as np

from kmargin.blocks.protocol import Blocks
from kmargin.blocks.space import HOST, Space
from kmargin.blocks.view import Part
from kmargin.types import Vector


class BlockSamples(NamedTuple):
    """Labelled data in blocks. Classes are encoded, and rows weighted, beside each block."""

    X: Blocks
    classes: np.ndarray
    class_weight: Vector
    part: Part | None = None  # the rows of some folds
    space: Space = HOST  # where fitted attributes belong
    given_classes: Any = None  # the classes in an array of y's kind; None for NumPy's
    kept: Any = None  # which of the rows given are left; None for all

    @property
    def labels(self) -> Any:
        """The classes as `classes_` is to have them."""
        return self.classes if self.given_classes is None else self.given_classes
