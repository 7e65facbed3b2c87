"""Draws of a case: always the same for the same number."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Draw:
    """A source of choices."""

    def __init__(self, number: int, family: int) -> None:
        self.rng = np.random.default_rng([number, family])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def below(self, end: int) -> int:
        return int(self.rng.integers(end))

    def one(self, things: Sequence[Any]) -> Any:
        return things[self.below(len(things))]

    def some(self, things: Sequence[Any], n_things: int) -> list[Any]:
        return [self.one(things) for _ in range(n_things)]

    def weighted(self, shares: Mapping[Any, float]) -> Any:
        """One of the keys, as often as its share of the sum says."""
        shares_of = np.array(list(shares.values()), dtype=float)
        return list(shares)[int(self.rng.choice(len(shares), p=shares_of / shares_of.sum()))]
