"""What people hold in Python, as a table: frames, arrays, columns by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing
from kmargin.tables.read import Table


def to_table(X: Any, columns: Sequence[str], needed: Sequence[str]) -> Table:
    """A table of these columns, by name where there are names, else in this order.

    Raises InputError where X has another number of columns, or is no table at all.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, pd.DataFrame):
        return Table(_named(X.copy(deep=False)))
    if hasattr(X, "to_pandas"):  # polars, arrow
        return Table(_named(X.to_pandas()))
    if isinstance(X, Mapping):
        return Table(_named(pd.DataFrame(dict(X))))
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return Table(_named(pd.DataFrame(list(X))))
    return Table(_from_array(X, columns, needed))


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = [str(name) for name in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"X has more than one column called {listing(list(repeated.unique()))}. Give each a unique name."
        )
    return frame


def _from_array(X: Any, columns: Sequence[str], needed: Sequence[str]) -> pd.DataFrame:
    """Rows of numbers or texts without names: all columns that the model was fitted to, in their order."""
    X = X.toarray() if hasattr(X, "toarray") else X  # sparse matrices
    try:
        values = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise InputError(
            "X has rows of different lengths. Give one value per column in every row."
        ) from error
    if values.ndim != 2:
        raise InputError(
            f"X of shape {values.shape} is not a table. Give a data frame with the columns "
            f"{listing(needed)}, or a two-dimensional array; a single row is [row]."
        )
    if values.shape[1] != len(columns):
        raise InputError(
            f"X has {count(values.shape[1], 'column')}, but without names the model expects the "
            f"{len(columns):,} that it was fitted to, in this order: {listing(columns, 8)}. A data frame "
            f"needs only {listing(needed, 8)}."
        )
    return pd.DataFrame(values, columns=list(columns))
