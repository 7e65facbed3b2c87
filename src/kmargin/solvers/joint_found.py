"""Sets of units that several machines share, and where their columns are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.jit import compiled
from kmargin.solvers.regime import Regime
from kmargin.types import Indices, Matrix, Vector
from kmargin.units import Units

NONE: Indices = np.empty(0, np.int64)


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

    def give(self, units: Indices, but_not_of: Indices = NONE) -> Indices:
        """Empty places to these units, in order; those that were given.

        If there are too few, all units have to leave but those named.
        """
        columns = self.units.columns_of(units)
        empty = np.flatnonzero(self.contents < 0)
        if len(empty) < len(columns):
            leaves = self.held.copy()
            leaves[but_not_of] = False
            self._empty(np.flatnonzero(leaves))
            empty = np.flatnonzero(self.contents < 0)
        places = empty[: len(columns)]
        self.held[units], self.place_of[columns], self.contents[places] = True, places, columns
        return places

    def filled(self) -> Indices:
        """Places of a panel that hold something: those of columns, of the intercept and of the target."""
        return np.concatenate((np.flatnonzero(self.contents >= 0), [self.size, self.size + 1]))

    def _empty(self, units: Indices) -> None:
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


@compiled
def locate(
    starts: Indices, columns: Indices, place_of: Indices, end: int, units: Indices
) -> tuple[Indices, Indices]:
    """The places of the columns of units, then the intercept's, `end`; where each unit begins among them.

    Unit j is columns[starts[j]:starts[j + 1]].
    """
    begins = np.zeros(units.size + 1, np.int64)
    for a in range(units.size):
        begins[a + 1] = begins[a] + starts[units[a] + 1] - starts[units[a]]
    idx = np.empty(begins[units.size] + 1, np.int64)
    for a in range(units.size):
        for i in range(begins[a + 1] - begins[a]):
            idx[begins[a] + i] = place_of[columns[starts[units[a]] + i]]
    idx[begins[units.size]] = end
    return idx, begins


@compiled
def rearrange(
    starts: Indices,
    columns: Indices,
    place_of: Indices,
    end: int,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
) -> tuple[Indices, Indices, Matrix]:
    """After an exchange of units: the support, where its columns are, then the intercept's place, `end`;
    and their coefficients in each machine, 0 for those that are new.

    Unit j is columns[starts[j]:starts[j + 1]]; it leaves if its place in the support is in `lose`.
    """
    stays = np.ones(support.size, np.bool_)
    for a in range(lose.size):
        stays[lose[a]] = False
    n_units = support.size - lose.size + take.size
    chosen, size, m = np.empty(n_units, np.int64), 0, 0
    for a in range(support.size):
        if stays[a]:
            chosen[m] = support[a]
            m += 1
    for b in range(take.size):
        chosen[m + b] = take[b]
    for a in range(n_units):
        size += starts[chosen[a] + 1] - starts[chosen[a]]
    moved = np.zeros((coefs.shape[0], size + 1))
    at, before = 0, 0
    for a in range(support.size):
        width = starts[support[a] + 1] - starts[support[a]]
        if stays[a]:
            for number in range(coefs.shape[0]):
                for i in range(width):
                    moved[number, at + i] = coefs[number, before + i]
            at += width
        before += width
    for number in range(coefs.shape[0]):
        moved[number, size] = coefs[number, before]
    return chosen, locate(starts, columns, place_of, end, chosen)[0], moved
