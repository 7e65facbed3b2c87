"""Checks of dask collections before a fit, and lazy predictions for them; only `accuracy` imports dask."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kmargin.core import validation
from kmargin.core.arrays import HOST, Indices, Matrix, Tensor, Vector, is_dask, space_of, spread
from kmargin.core.labels import check_some_weight, complain_of_weight
from kmargin.core.validation import warn_caller
from kmargin.data.blocks import Block, foreign_blocks
from kmargin.data.blocks.sums import Findings, Part, rows_of_part
from kmargin.model_selection.calibration import Pieces, UnseenRows, make_ready

NUMBERS = "biuf"  # values of `dtype.kind` that X may have: booleans, integers and floats


def check_collections(X: Any, y: Any, sample_weight: Any, who: str) -> tuple[Any, Any, Any]:
    """Return X, y and any weights; raise unless they are dask collections with equally many blocks.

    y and the weights are returned with one dimension. `who` is the name of the method in an error message.
    """
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
    """Raise unless the dask collection X is a table of numbers; return the float dtype to compute with."""
    kind = type(X).__name__
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X is a dask {kind}. Give rows of features."
        )
    if X.shape[1] == 0:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
    if hasattr(X, "columns"):
        return _check_columns(X)
    meta = X._meta
    if type(meta) is not np.ndarray:
        raise TypeError(foreign_blocks(meta))
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known. Call X.compute_chunk_sizes() first.")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is divided into {X.numblocks[1]} blocks along its columns, but each block must have all "
            "columns. Use X.rechunk({1: -1})."
        )
    if X.dtype.kind not in NUMBERS:
        raise ValueError(f"X has dtype {X.dtype}: features have to be real numbers. Use X.astype(float).")
    return X.dtype if X.dtype == np.float32 else np.dtype(np.float64)


def _check_columns(X: Any) -> np.dtype:
    """Raise unless all columns of a dask dataframe are numbers; return the float dtype to compute with."""
    dtypes = list(X.dtypes.items())
    wrong = [f"{name!r} ({dtype})" for name, dtype in dtypes if getattr(dtype, "kind", "O") not in NUMBERS]
    if wrong:
        some = ", ".join(wrong[:5]) + (", ..." if len(wrong) > 5 else "")
        raise ValueError(
            f"X has columns that are not real numbers: {some}. Encode them as numbers, or leave them out."
        )
    return np.dtype(np.float32 if all(dtype == np.float32 for _, dtype in dtypes) else np.float64)


def check_kinds(X: Any, **others: Any) -> None:
    """Raise TypeError unless X and all other arguments that are not None are dask arrays or dataframes."""
    given = {"X": X} | {name: value for name, value in others.items() if value is not None}
    for name, value in given.items():
        if is_dask(value) and not (hasattr(value, "ndim") and hasattr(value, "npartitions")):
            raise TypeError(
                f"{name} is a {_describe(value)}. Give a dask array or a dask dataframe; "
                "from an xarray.DataArray take `.data`."
            )
    lazy, eager = ([name for name in given if is_dask(given[name]) is flag] for flag in (True, False))
    if eager:
        raise TypeError(
            f"{lazy[0]} is a {_describe(given[lazy[0]])}, but {eager[0]} is a {_describe(given[eager[0]])}: "
            "one is divided into blocks, the other is not. Use dask.array.from_array for "
            f"{eager[0]}, with the blocks of {lazy[0]}, or {lazy[0]}.compute()."
        )


def _describe(value: Any) -> str:
    """Return library and name of the type of a value, such as "dask Array" or "list"."""
    kind = type(value)
    library = kind.__module__.split(".")[0]
    return kind.__name__ if library == "builtins" else f"{library} {kind.__name__}"


def _one_column(column: Any, name: str) -> Any:
    """Return y or the weights, called `name`, with one dimension; raise ValueError for several columns."""
    if column.ndim == 2 and column.shape[1] == 1:
        warn_caller(
            f"A column-vector {name} was passed when a 1d array was expected. Please change the shape of "
            f"{name} to (n_samples, ), for example using ravel().",
            DataConversionWarning,
        )
        return column.iloc[:, 0] if hasattr(column, "iloc") else column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of {column.ndim} dimensions instead.")
    return column


def _check_aligned(X: Any, other: Any, name: str) -> None:
    """Raise ValueError unless X and `other` have equally many blocks; rows are counted later."""
    if X.npartitions != other.npartitions:
        difference = f"X has {X.npartitions} blocks of rows, but {name} has {other.npartitions}"
        _raise_misaligned(difference, name)


def _raise_misaligned(difference: str, name: str) -> NoReturn:
    raise ValueError(
        f"{difference}: they must have the same blocks. Use {name}.rechunk(X.chunks[:1]); if sizes of blocks "
        "are unknown, call compute_chunk_sizes() on both first."
    )


def summarize(
    findings: Sequence[Findings], n_features: int, names: Sequence[Any] | None
) -> tuple[np.ndarray, Indices, Vector]:
    """Return the classes of all blocks, and the number of rows and the total sample weight of each class.

    `findings` has a result of `examine` for each block; the first with invalid data raises ValueError.
    """
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
    return classes, counts, totals


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
            sizes = f"{n_rows} rows, but that of {name} has {n_others}"
            _raise_misaligned(f"Block {number} of X has {sizes}", name)
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


# Returns decision values of X, with a column for each binary classifier, or converts such decision values.
MatrixFunction = Callable[[Matrix], Matrix]


def check_names(model: Any, X: Any, *, reset: bool) -> np.dtype:
    """Store the columns of X in `model` if `reset`, else check that they are the same; return X's dtype."""
    check_kinds(X)
    dtype = check_features(X)
    empty = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(model, empty, reset=reset, skip_check_array=True)
    return dtype


def decide_block(machines: MatrixFunction, convert: MatrixFunction, dtype: np.dtype, X: Any) -> Matrix:
    """Return `convert(machines(X))`, where `machines(X)` has a column of decision values per classifier."""
    return convert(machines(check_array(X, dtype=dtype, input_name="X")))


def spread_columns(X: Any, columns: np.ndarray, n_features: int) -> Any:
    """Return a dask array of `n_features` columns: column columns[j] is X[:, j], all others are 0."""
    dtype = check_features(X)
    return map_rows(partial(spread_block, columns, n_features, dtype), X, dtype, n_features)


def spread_block(columns: np.ndarray, n_features: int, dtype: np.dtype, X: Any) -> Matrix:
    return np.asarray(spread(HOST, np.asarray(X, dtype=dtype), columns, n_features))


def map_rows(function: Callable[[Any], Any], X: Any, dtype: Any, n_columns: int | None) -> Any:
    """Apply `function` to each block of X; return a dask array of `n_columns` columns (if None, a vector)."""
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
    """Return the accuracy: the weighted proportion of rows whose class is predicted correctly."""
    import dask.array as da

    check_collections(X, y, sample_weight, "score")
    y, sample_weight = map(_as_array, (y, sample_weight))
    hits = predict(X) == y
    weights = da.ones_like(hits, dtype=float) if sample_weight is None else sample_weight
    right, total = da.compute((hits * weights).sum(), weights.sum())
    return float(right / total)


def _as_array(series: Any) -> Any:
    """Return a dask array of the values of a dask series; return anything else unchanged."""
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
    """Return decision values of a block's test rows in several folds, to fit a calibration to.

    parts[i] marks the test rows of a fold. The binary classifiers fitted to its training rows have the
    coefficients coefs[i] (a row for each classifier, an entry for each of `columns`) and intercepts[i].
    """
    space = space_of(block.X)
    X = space.bring(space.xp.take(block.X, space.put(columns), axis=1))
    pieces = []
    for part, coef, intercept in zip(parts, coefs, intercepts, strict=True):
        rows, codes, repeats = rows_of_part(block, part)
        pieces.append((X[rows] @ coef.T + intercept, codes[rows], repeats[rows]))
    unseen = UnseenRows(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))
    return make_ready(unseen, n_classes, multi_class)
