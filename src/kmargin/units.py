"""What k counts: units, sets of columns that enter a model and leave it together.

A unit is a single column, or a group of columns; where several machines share their features, it is these
columns in all of them. Some units are always in (they count in k); a column may have a sign that its
coefficient has to have. Columns of no unit are never in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from kmargin.types import Flags, Indices, Vector


@dataclass(frozen=True)
class Units:
    """Unit j is ``columns[starts[j]:starts[j + 1]]``."""

    starts: Indices
    columns: Indices  # of X, unit by unit
    fixed: Flags  # of each unit: always in
    signs: Vector  # of each column of X: 1 for coefficients >= 0, -1 for <= 0, 0 for either
    machine_weights: Vector | None = None  # of each machine's objective in the joint one; None for ones
    copies: Indices = field(default_factory=lambda: np.empty(0, np.int64))  # columns that say what others say

    @classmethod
    def of_columns(cls, n_features: int) -> "Units":
        """Each column by itself."""
        every = np.arange(n_features)
        return cls(np.arange(n_features + 1), every, np.zeros(n_features, np.bool_), np.zeros(n_features))

    @classmethod
    def of_groups(cls, groups: Sequence[Indices], n_features: int) -> "Units":
        """These columns of X together, each in one group at most."""
        sizes = [len(group) for group in groups]
        columns = np.concatenate([*groups, np.empty(0, np.int64)]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        return cls(starts, columns, np.zeros(len(groups), np.bool_), np.zeros(n_features))

    @property
    def n_units(self) -> int:
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        return len(self.signs)

    @cached_property
    def sizes(self) -> Indices:
        """How many columns each has."""
        return np.diff(self.starts)

    @cached_property
    def _columns_of_largest(self) -> Indices:
        """Of the largest unit, of the two largest, ..."""
        return np.cumsum(np.sort(self.sizes)[::-1])

    def widest(self, size: int) -> int:
        """How many columns so many units have at most."""
        return int(self._columns_of_largest[min(size, self.n_units) - 1]) if size and self.n_units else 0

    @cached_property
    def _by_row(self) -> Indices | None:
        """The columns, a row for each unit, where all units have as many."""
        size = int(self.sizes[0]) if self.n_units else 0
        return self.columns.reshape(-1, size) if size and (self.sizes == size).all() else None

    @property
    def unit_of_each_column(self) -> Indices:
        """Of each column of X; -1 for those of no unit."""
        units = np.full(self.n_features, -1)
        units[self.columns] = np.repeat(np.arange(self.n_units), self.sizes)
        return units

    @property
    def are_plain(self) -> bool:
        """Whether each column is a unit by itself, and may come and go with any coefficient."""
        every = np.arange(self.n_features)
        return (
            np.array_equal(self.columns, every)
            and self.n_units == self.n_features
            and not self.fixed.any()
            and not self.signs.any()
        )

    def columns_of(self, units: Indices) -> Indices:
        """Unit after unit."""
        if self.n_units == len(self.columns):  # single columns
            return self.columns[units]
        if self._by_row is not None:
            return self._by_row[units].ravel()
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        n_columns = int(ends[-1]) if len(ends) else 0
        return self.columns[np.arange(n_columns) + np.repeat(self.starts[units] - ends + sizes, sizes)]

    def without(self, columns: Indices) -> "Units":
        """Units that have lost these columns; those that have lost all of them are gone."""
        if self.n_units == len(self.columns):  # single columns
            stays = ~np.isin(self.columns, columns)
            left = self.columns[stays]
            return replace(self, starts=np.arange(len(left) + 1), columns=left, fixed=self.fixed[stays])
        groups = [
            np.setdiff1d(self.columns[self.starts[j] : self.starts[j + 1]], columns, assume_unique=True)
            for j in range(self.n_units)
        ]
        stays = np.array([len(group) > 0 for group in groups], np.bool_)
        rest = Units.of_groups([group for group in groups if len(group)], self.n_features)
        return replace(self, starts=rest.starts, columns=rest.columns, fixed=self.fixed[stays])

    def without_copies(self, columns: Indices) -> "Units":
        """The same; but where all units are in, these columns are in, too."""
        return replace(self.without(columns), copies=columns)

    def chosen(self, in_use: Flags) -> Flags:
        """All columns of the units that have one in use, or are always in."""
        is_in = self.fixed | (self.total(in_use.astype(float)) > 0)
        return np.append(is_in, False)[self.unit_of_each_column]  # those of no unit are at -1

    def total(self, by_column: Vector) -> Vector:
        """The sum over the columns of each unit; `by_column` has an entry for each column of X."""
        if self.n_units == len(self.columns):
            return by_column[self.columns]
        sums = np.concatenate([[0.0], np.cumsum(by_column[self.columns])])
        return sums[self.starts[1:]] - sums[self.starts[:-1]]
