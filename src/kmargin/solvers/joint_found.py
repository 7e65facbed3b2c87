"""Sets of units that several machines share, and where their columns are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.solvers.regime import Regime
from kmargin.types import Indices, Vector
from kmargin.units import Units


class JointFound(NamedTuple):
    """Units, and the coefficients of their columns in each machine."""

    support: Indices  # units, in the order of the search
    parts: tuple[Vector, ...]  # of each machine: coefficients unit by unit, then the intercept
    value: float  # the weighted sum of the machines' objectives
    all_tried: bool = False  # every exchange of one unit for another, in vain
    regime: Regime | None = None
    values: tuple[float, ...] = ()  # of each machine; none where it is only a start

    @classmethod
    def start(cls, support: Indices, units: Units, n_machines: int) -> "JointFound":
        """These units, with coefficients 0."""
        u = np.zeros(int(units.sizes[support].sum()) + 1)
        return cls(support, (u,) * n_machines, np.inf)


class Places:
    """Which columns of X the places of a panel hold: those of some units."""

    def __init__(self, units: Units, size: int) -> None:
        self.units, self.size = units, size
        self.contents = np.full(size, -1)  # the column at each place; -1 if it is empty
        self.place_of = np.full(units.n_features, -1)  # of each column; -1 if it has none
        self.held = np.zeros(units.n_units, np.bool_)  # which units have places

    def give(self, units: Indices) -> Indices:
        """Empty places to these units, in order; those that were given."""
        columns = self.units.columns_of(units)
        places = np.flatnonzero(self.contents < 0)[: len(columns)]
        self.held[units], self.place_of[columns], self.contents[places] = True, places, columns
        return places

    def empty(self, units: Indices) -> None:
        """Those of these units."""
        columns = self.units.columns_of(units)
        self.contents[self.place_of[columns]] = -1
        self.held[units], self.place_of[columns] = False, -1


def by_turns(lists: Sequence[Indices]) -> Indices:
    """The first of each list, then the second of each, and so on; what comes again is left out."""
    longest = max(len(units) for units in lists)
    padded = np.full((longest, len(lists)), -1)
    for number, units in enumerate(lists):
        padded[: len(units), number] = units
    found, first = np.unique(padded, return_index=True)
    return padded.ravel()[np.sort(first[found >= 0])]
