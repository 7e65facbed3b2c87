"""What k counts: columns of X, or groups of them; which are always in, and of which sign coefficients are."""

from dataclasses import dataclass

import numpy as np

from kmargin.types import Flags, Indices, Vector


@dataclass(frozen=True)
class Units:
    """Sets of columns that enter and leave together. A column of none of them is never in."""

    starts: Indices  # unit j is columns[starts[j]:starts[j + 1]]
    columns: Indices  # of X, unit by unit
    fixed: Flags  # per unit: always in (they count in k)
    signs: Vector  # per column of X: +1, -1, or 0 for either
    machine_weights: Vector | None = None  # of each machine's objective in the joint one; None for ones

    @classmethod
    def of_columns(cls, n_features: int) -> "Units":
        """Every column by itself."""
        columns = np.arange(n_features)
        return cls(np.arange(n_features + 1), columns, np.zeros(n_features, bool), np.zeros(n_features))

    @property
    def n_units(self) -> int:
        return len(self.starts) - 1

    def columns_of(self, units: Indices) -> Indices:
        """The columns of these units, unit by unit."""
        parts = [self.columns[self.starts[j] : self.starts[j + 1]] for j in units]
        return np.concatenate(parts) if parts else self.columns[:0]
