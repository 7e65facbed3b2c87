"""Coefficients and decision values of machines with a coefficient per feature."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmargin.blocks.space import HOST, space_of
from kmargin.design import make_design
from kmargin.solvers import Solution
from kmargin.types import Matrix, Vector

# Decision values of so many entries of X are taken from the columns in use alone.
FEW = 2**16


class LinearDecisions:
    """Decision values of machines with a coefficient per feature."""

    def __init__(self, coef: Matrix, intercept: Vector) -> None:
        self.coef = coef
        self.intercept = intercept

    @property
    def used(self) -> Any:
        """The features that at least one machine has a coefficient for."""
        xp = space_of(self.coef).xp
        return xp.nonzero(xp.any(self.coef != 0, axis=0))[0]

    def __call__(self, X: Any) -> Matrix:
        """A column per machine, of the dtype of X.

        Of few samples the columns in use are taken out. So an array and a sparse matrix give the same
        digits, and not one that lies just on this side of the margin and one just beyond.
        """
        xp, coef = space_of(X).xp, self.coef
        if space_of(coef) is HOST:
            used = self.used
            if X.shape[0] * len(used) <= FEW:
                coef, dtype = coef[:, used], X.dtype
                X = make_design(X).block(np.arange(X.shape[0]), used).astype(dtype, copy=False)
        return X @ xp.astype(coef.T, X.dtype) + xp.astype(self.intercept, X.dtype)


class LinearCoefs(Sequence[Matrix]):
    """The coefficients for each k, written out with their zeros when they are asked for."""

    def __init__(self, solutions: tuple[tuple[Solution, ...], ...], dtype: Any) -> None:
        self.solutions = solutions
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, position: Any) -> Any:
        return dense_coefs(self.solutions[position], self.dtype)


def dense_coefs(solutions: Sequence[Solution], dtype: Any) -> Matrix:
    """A row of coefficients per solution, zeros included."""
    coefs = np.zeros((len(solutions), solutions[0].n_features), dtype=dtype)
    for row, solution in zip(coefs, solutions, strict=True):
        row[solution.support] = solution.coef
    return coefs
