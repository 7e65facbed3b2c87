"""Two products that compiled loops ask of X, whatever it is stored as.

numba chooses the code by the type of X when it compiles the loop that asks.
"""

from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import overload

from kmargin.design.csr import csr_slopes, csr_times
from kmargin.design.passes import column_slopes, column_times, dense_slopes, dense_times
from kmargin.types import Vector


def times(X: Any, v: Vector, out: Vector) -> None:
    """out <- X v"""
    _times(typeof(X), v, out)(X, v, out)  # where nothing is compiled; compiled code chooses by itself


def add_rows(X: Any, weights: Vector, out: Vector) -> None:
    """out <- X'weights.

    Samples beyond their margin have weight 0, and mostly they are the many; then only the other rows
    are read. Where they are not, BLAS does the whole product of an array.
    """
    _add_rows(typeof(X), weights, out)(X, weights, out)


def _is_blas(X: Any) -> bool:
    return isinstance(X, types.Array) and X.dtype == types.float64


def _is_by_columns(X: Any) -> bool:
    return isinstance(X, types.Array) and X.layout == "F"


@overload(times)
def _times(X: Any, v: Any, out: Any) -> Any:
    def by_blas(X: Any, v: Any, out: Any) -> Any:
        np.dot(X, v, out)

    def by_rows(X: Any, v: Any, out: Any) -> Any:
        dense_times(X, v, out)

    def by_columns(X: Any, v: Any, out: Any) -> Any:
        column_times(X, v, out)

    def by_entries(X: Any, v: Any, out: Any) -> Any:
        csr_times(X, v, out)

    if _is_blas(X):
        return by_blas
    if _is_by_columns(X):
        return by_columns
    return by_rows if isinstance(X, types.Array) else by_entries


@overload(add_rows)
def _add_rows(X: Any, weights: Any, out: Any) -> Any:
    slopes = column_slopes if _is_by_columns(X) else dense_slopes

    def by_blas(X: Any, weights: Any, out: Any) -> Any:
        n_read = 0  # np.count_nonzero takes ten times as long to compile
        for weight in weights:
            n_read += weight != 0.0
        if 2 * n_read > len(weights):
            np.dot(weights, X, out)
        else:
            slopes(X, weights, out)

    def by_passes(X: Any, weights: Any, out: Any) -> Any:
        slopes(X, weights, out)

    def by_entries(X: Any, weights: Any, out: Any) -> Any:
        csr_slopes(X, weights, out)

    if _is_blas(X):
        return by_blas
    return by_passes if isinstance(X, types.Array) else by_entries
