"""Dask collections: checked in one pass over the data, and predicted lazily.

This module does not import dask.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kmargin.core import validation
from kmargin.core.arrays import HOST, Indices, Matrix, Tensor, Vector, space_of, spread
from kmargin.core.labels import check_some_weight, choose_classes, combine_decisions, complain_of_weight
from kmargin.core.validation import warn_caller
from kmargin.data.blocks import Block, foreign_blocks, is_dask
from kmargin.data.blocks.sums import Findings, Part, rows_of_part
from kmargin.model_selection.calibration import Pieces, UnseenRows, make_ready

NUMBERS = "biuf"  # kinds of dtypes


class Summary(NamedTuple):
    """What there is to know of all the data."""

    classes: np.ndarray
    counts: Indices  # rows of each class
    totals: Vector  # their sample weights


def check_collections(X: Any, y: Any, sample_weight: Any, who: str) -> tuple[Any, Any, Any]:
    """X, y and the weights as dask collections with blocks that may go together."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    check_kinds(X, y=y, sample_weight=sample_weight)
    check_features(X)
    y = _one_column(y, "y")
    _check_aligned(X, y, "y")
    if sample_weight is not None:
        sample_weight = _one_column(sample_weight, "sample_weight")
        _check_aligned(X, sample_weight, "sample_weight")
    return X, y, sample_weight


def check_features(X: Any) -> np.dtype:
    """Raise unless X is rows of numbers; return the dtype that they are computed in."""
    kind = type(X).__name__
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X is a dask {kind} of {X.ndim} dimension"
            f"{'s'[: X.ndim != 1]}. Give rows of features."
        )
    if hasattr(X, "columns"):
        return _check_columns(X)
    meta = X._meta
    if type(meta) is not np.ndarray:
        raise TypeError(foreign_blocks(meta))
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known. Call X.compute_chunk_sizes() first.")
    if X.shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is divided into {X.numblocks[1]} blocks along its columns, but each block must have all "
            "columns. Use X.rechunk({1: -1})."
        )
    if X.dtype.kind not in NUMBERS:
        raise ValueError(f"X has dtype {X.dtype}: features have to be real numbers. Use X.astype(float).")
    return X.dtype if X.dtype == np.float32 else np.dtype(np.float64)


def _check_columns(X: Any) -> np.dtype:
    if len(X.columns) == 0:
        raise ValueError("X has 0 feature(s) while a minimum of 1 is required.")
    dtypes = list(X.dtypes.items())
    wrong = [f"{name!r} ({dtype})" for name, dtype in dtypes if getattr(dtype, "kind", "O") not in NUMBERS]
    if wrong:
        some = ", ".join(wrong[:5]) + (", ..." if len(wrong) > 5 else "")
        raise ValueError(
            f"X has columns that are not real numbers: {some}. Encode them as numbers, or leave them out."
        )
    all_single = all(dtype == np.float32 for _, dtype in dtypes)
    return np.dtype(np.float32 if all_single else np.float64)


def check_kinds(X: Any, **others: Any) -> None:
    """All of them are dask arrays or dataframes, or none is given."""
    given = {"X": X} | {name: thing for name, thing in others.items() if thing is not None}
    for name, thing in given.items():
        if is_dask(thing) and not (hasattr(thing, "ndim") and hasattr(thing, "npartitions")):
            raise TypeError(
                f"{name} is a {_describe(thing)}. Give a dask array or a dask dataframe; "
                "from an xarray.DataArray take `.data`."
            )
    far, near = ([name for name in given if is_dask(given[name]) is flag] for flag in (True, False))
    if near:
        advice = (
            f"Use dask.array.from_array({near[0]}, chunks=X.chunks[0]), or give all of them without dask."
            if "X" in far
            else f"Use {far[0]}.compute(), or make X a dask collection too."
        )
        raise TypeError(
            f"{far[0]} is a {_describe(given[far[0]])}, but {near[0]} is a {_describe(given[near[0]])}: "
            f"one is divided into blocks, the other is not. {advice}"
        )


def _describe(thing: Any) -> str:
    kind = type(thing)
    library = kind.__module__.split(".")[0]
    return kind.__name__ if library == "builtins" else f"{library} {kind.__name__}"


def _one_column(thing: Any, name: str) -> Any:
    """A collection of numbers or labels, one for each row."""
    if thing.ndim == 2 and thing.shape[1] == 1:
        warn_caller(
            f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of "
            f"{name} to (n_samples, ), for example using ravel().",
            DataConversionWarning,
        )
        return thing.iloc[:, 0] if hasattr(thing, "iloc") else thing[:, 0]
    if thing.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of {thing.ndim} dimensions instead.")
    return thing


def known_rows(collection: Any) -> np.ndarray:
    """The rows of each block, NaN where that is not known."""
    if hasattr(collection, "chunks"):
        return np.array(collection.chunks[0], dtype=float)
    return np.full(collection.npartitions, np.nan)


def _check_aligned(X: Any, other: Any, name: str) -> None:
    rows, others = known_rows(X), known_rows(other)
    if len(rows) != len(others):
        _raise_misaligned(f"X has {len(rows)} blocks of rows, but {name} has {len(others)}", name)
    for number in np.flatnonzero((rows != others) & ~np.isnan(rows) & ~np.isnan(others))[:1]:
        _raise_unequal(int(number), int(rows[number]), name, int(others[number]))


def _raise_unequal(number: int, n_rows: int, name: str, n_others: int) -> NoReturn:
    _raise_misaligned(f"Block {number} of X has {n_rows} rows, but that of {name} has {n_others}", name)


def _raise_misaligned(difference: str, name: str) -> NoReturn:
    raise ValueError(
        f"{difference}: they must have the same blocks. Use {name}.rechunk(X.chunks[:1]); if sizes of blocks "
        "are unknown, call compute_chunk_sizes() on both first."
    )


def summarize(findings: Sequence[Findings], n_features: int, names: Sequence[Any] | None) -> Summary:
    """All blocks together. Raises what is wrong with the first that is bad."""
    n_rows = np.array([found.shape[0] for found in findings])
    starts = np.concatenate([[0], np.cumsum(n_rows)])
    for number, found in enumerate(findings):
        _check_block(number, found, int(starts[number]), n_features, names)
    if n_rows.sum() == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {n_features})) in {len(findings)} blocks "
            "while a minimum of 1 is required."
        )
    classes = np.unique(np.concatenate([found.classes for found in findings if len(found.classes)]))
    validation.check_classes(classes)
    counts, totals = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    for found in findings:
        places = np.searchsorted(classes, found.classes)
        counts[places] += found.counts
        totals[places] += found.totals
    check_some_weight(float(totals.sum()))
    return Summary(classes, counts, totals)


def _check_block(number: int, found: Findings, first: int, n_features: int, names: Any) -> None:
    n_rows = found.shape[0]
    where = f"block {number}" + (f" (rows {first} to {first + n_rows - 1})" if n_rows else "")
    if len(found.shape) != 2 or found.shape[1] != n_features:
        raise ValueError(
            f"X has shape {found.shape} in {where}, but {n_features} columns were expected. "
            "Give every block the same columns."
        )
    for name, n_others in (("y", found.n_labels), ("sample_weight", found.n_weights)):
        if n_others != n_rows:
            _raise_unequal(number, n_rows, name, n_others)
    if found.unusable is not None:
        what, column = found.unusable
        called = "" if names is None else f" ({names[column]!r})"
        raise ValueError(
            f"X has {what} in {where}, column {column}{called}. "
            "Replace them with numbers, or leave out those rows."
        )
    if found.complaint:
        raise ValueError(f"In {where}: {found.complaint}")
    if found.bad_weight is not None:
        row, weight = found.bad_weight
        raise ValueError(complain_of_weight(first + row, weight, f" in {where}"))


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
    combine = partial(combine_decisions, n_classes=n_classes, multi_class=multi_class)
    n_columns = None if n_classes == 2 else n_classes
    return map_rows(partial(decide_block, machines, combine, dtype), X, dtype, n_columns)


def tell(
    X: Any, dtype: np.dtype, machines: MachineDecisions, to_probabilities: MachineDecisions, n_classes: int
) -> Any:
    """The dask array that `predict_proba` returns."""
    return map_rows(partial(decide_block, machines, to_probabilities, dtype), X, dtype, n_classes)


def decide_block(machines: MachineDecisions, combine: MachineDecisions, dtype: np.dtype, X: Any) -> Matrix:
    return combine(machines(check_array(X, dtype=dtype, input_name="X")))


def choose(scores: Any, classes: np.ndarray) -> Any:
    """The dask array that `predict` returns."""
    return map_rows(partial(choose_classes, classes=classes), scores, classes.dtype, None)


def take_columns(X: Any, columns: np.ndarray) -> Any:
    """The given columns of a dask collection, as a collection of the same type."""
    return X.iloc[:, columns] if hasattr(X, "columns") else X[:, columns]


def spread_columns(X: Any, columns: np.ndarray, n_features: int) -> Any:
    """The dask array that `inverse_transform` returns."""
    dtype = check_features(X)
    return map_rows(partial(spread_block, columns, n_features, dtype), X, dtype, n_features)


def spread_block(columns: np.ndarray, n_features: int, dtype: np.dtype, X: Any) -> Matrix:
    return np.asarray(spread(HOST, np.asarray(X, dtype=dtype), columns, n_features))


def map_rows(function: Callable[[Any], Any], X: Any, dtype: Any, n_columns: int | None) -> Any:
    """A dask array of the function of each block: a number for each row, or `n_columns` of them."""
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    of_block = partial(apply_to_rows, function, empty)
    if hasattr(X, "columns"):
        return X.map_partitions(of_block, meta=empty)
    if n_columns is None:
        return X.map_blocks(of_block, dtype=dtype, drop_axis=list(range(1, X.ndim)), meta=empty)
    return X.map_blocks(of_block, dtype=dtype, chunks=(X.chunks[0], (n_columns,)), meta=empty)


def apply_to_rows(function: Callable[[Any], Any], empty: np.ndarray, X: Any) -> Any:
    return function(X) if len(X) else empty


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


def decide_unseen(
    block: Block,
    parts: Sequence[Part],
    columns: Indices,
    coefs: Tensor,
    intercepts: Matrix,
    n_classes: int,
    multi_class: str,
) -> Pieces:
    """Decision values of the rows of several parts, each part by machines of its own.

    `coefs` are those of some columns, for each part and machine.
    """
    space = space_of(block.X)
    X = space.bring(space.xp.take(block.X, space.put(columns), axis=1))
    pieces = []
    for part, coef, intercept in zip(parts, coefs, intercepts, strict=True):
        rows, codes, repeats = rows_of_part(block, part)
        pieces.append((X[rows] @ coef.T + intercept, codes[rows], repeats[rows]))
    unseen = UnseenRows(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))
    return make_ready(unseen, n_classes, multi_class)
