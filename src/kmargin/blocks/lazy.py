"""Decisions about dask collections, block by block, when somebody asks for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kmargin.blocks.ingest import check_collections, check_features, check_kinds
from kmargin.blocks.space import HOST, spread
from kmargin.multiclass import choose_classes, combine_decisions
from kmargin.types import Matrix

MachineDecisions = Callable[[Matrix], Matrix]  # from X to a column per machine


def check_names(model: Any, X: Any, *, reset: bool) -> np.dtype:
    """Check number and names of X's columns by those of a fit, or remember them; the dtype to compute in."""
    check_kinds(X)
    dtype = check_features(X)
    empty = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(model, empty, reset=reset, skip_check_array=True)
    return dtype


def decide(X: Any, dtype: np.dtype, machines: MachineDecisions, n_classes: int, multi_class: str) -> Any:
    """The dask array that `decision_function` returns."""
    n_columns = None if n_classes == 2 else n_classes
    return map_rows(partial(decide_block, machines, n_classes, multi_class, dtype), X, dtype, n_columns)


def choose(scores: Any, classes: np.ndarray) -> Any:
    """The dask array that `predict` returns."""
    return map_rows(partial(choose_classes, classes=classes), scores, classes.dtype, None)


def tell(
    X: Any, dtype: np.dtype, machines: MachineDecisions, to_probabilities: MachineDecisions, n_classes: int
) -> Any:
    """The dask array that `predict_proba` returns."""
    return map_rows(partial(tell_block, machines, to_probabilities, n_classes, dtype), X, dtype, n_classes)


def take_columns(X: Any, columns: np.ndarray) -> Any:
    """Some columns of a dask collection, itself one of the same kind."""
    return X.iloc[:, columns] if hasattr(X, "columns") else X[:, columns]


def spread_columns(X: Any, columns: np.ndarray, n_features: int) -> Any:
    """The dask array that `inverse_transform` returns."""
    dtype = check_features(X)
    return map_rows(partial(spread_block, columns, n_features, dtype), X, dtype, n_features)


def spread_block(columns: np.ndarray, n_features: int, dtype: np.dtype, X: Any) -> Matrix:
    return np.asarray(spread(HOST, np.asarray(X, dtype=dtype), columns, n_features))


def map_rows(function: Callable[[Any], Any], X: Any, dtype: Any, n_columns: int | None) -> Any:
    """A dask array of what a function makes of each block: a number for each row, or some columns."""
    meta = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    if hasattr(X, "columns"):
        return X.map_partitions(function, meta=meta)
    if n_columns is None:
        return X.map_blocks(function, dtype=dtype, drop_axis=list(range(1, X.ndim)), meta=meta)
    return X.map_blocks(function, dtype=dtype, chunks=(X.chunks[0], (n_columns,)), meta=meta)


def decide_block(
    machines: MachineDecisions, n_classes: int, multi_class: str, dtype: np.dtype, X: Any
) -> Matrix:
    X = check_array(X, dtype=dtype, ensure_min_samples=0, input_name="X")
    if len(X) == 0:
        return np.empty((0,) if n_classes == 2 else (0, n_classes), dtype=dtype)
    return combine_decisions(machines(X), n_classes, multi_class)


def tell_block(
    machines: MachineDecisions, to_probabilities: MachineDecisions, n_classes: int, dtype: np.dtype, X: Any
) -> Matrix:
    X = check_array(X, dtype=dtype, ensure_min_samples=0, input_name="X")
    return to_probabilities(machines(X)) if len(X) else np.empty((0, n_classes), dtype=dtype)


def accuracy(X: Any, y: Any, sample_weight: Any, predict: Callable[[Any], Any]) -> float:
    """The share of rows, by weight, whose class is predicted."""
    import dask.array as da

    check_collections(X, y, sample_weight, "score")
    y, sample_weight = map(_as_array, (y, sample_weight))
    hits = predict(X) == y
    weights = da.ones_like(hits, dtype=float) if sample_weight is None else sample_weight
    right, total = da.compute((hits * weights).sum(), weights.sum())
    return float(right / total)


def _as_array(series: Any) -> Any:
    """A dask array of the values of a series; anything else as it is."""
    if not hasattr(series, "map_partitions"):
        return series
    dtype = series.dtype if isinstance(series.dtype, np.dtype) else object
    return series.map_partitions(np.asarray, meta=np.empty(0, dtype=dtype))
