"""Rows that are to be fitted to, and not copied before."""

from typing import Any

import numpy as np

from kmargin.design import n_bytes
from kmargin.types import Indices


class UncopiedRows:
    """Some rows of an array or a CSR matrix, which `copied` takes out when it is their turn."""

    def __init__(self, X: Any, rows: Indices | None = None) -> None:
        self.X = X
        self.rows = np.arange(X.shape[0]) if rows is None else rows
        self.shape = len(self.rows), X.shape[1]
        self.dtype = X.dtype
        self.nbytes = n_bytes(X)

    def __getitem__(self, rows: Indices) -> "UncopiedRows":
        return UncopiedRows(self.X, self.rows[rows])


def copied(X: Any) -> Any:
    """The rows themselves."""
    return X.X[X.rows] if isinstance(X, UncopiedRows) else X
