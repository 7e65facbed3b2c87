"""The linear machines of the folds for every C and k: what the choice has fitted is not fitted twice."""

from collections.abc import Sequence

import numpy as np

from kmargin.fitting.blueprint import Decisions
from kmargin.types import Indices, Matrix, Vector


class FoldMachines:
    """Weights of the used features alone, by fold, C and k."""

    def __init__(self, Cs: Sequence[float], ks: Sequence[int]) -> None:
        self.Cs, self.ks = list(Cs), list(ks)
        self._numbers: dict[tuple[int, int, int], tuple[Indices, Matrix, Vector]] = {}

    def keep(self, fold: int, row: int, column: int, decisions: Decisions) -> None:
        support = np.flatnonzero(decisions.coef.any(axis=0))
        self._numbers[fold, row, column] = support, decisions.coef[:, support], decisions.intercept

    def were_walked_to(self, Cs: Sequence[float], ks: Sequence[int]) -> bool:
        """Whether the last of these Cs was reached on the same way: a machine depends on those before it."""
        return self.ks == list(ks) and self.Cs[: len(Cs)] == list(Cs)

    def support(self, fold: int, row: int, column: int) -> Indices:
        return self._numbers[fold, row, column][0]

    def decisions(self, fold: int, row: int, column: int, X: Matrix) -> Matrix:
        """What each machine says of rows, a column for each."""
        support, coef, intercept = self._numbers[fold, row, column]
        return np.asarray(X[:, support] @ coef.T + intercept)
