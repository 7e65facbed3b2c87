"""Read X and y of any kind for a fit, or X for a prediction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import indexable

from kmargin.core.arrays import HOST, Indices, Matrix, Space, is_dask, is_foreign, space_of, spread, to_host
from kmargin.core.labels import choose_classes, combine_decisions
from kmargin.data.blocks import dask_input
from kmargin.data.design.sparse import canonical
from kmargin.data.samples import Given, Samples
from kmargin.data.samples.array import read_samples
from kmargin.data.samples.blocks import detach, follow, read_device
from kmargin.solvers.solver import Solver

BinaryDecisions: TypeAlias = Callable[[Any], Matrix]  # X -> decision values, a column per classifier
ToProbabilities: TypeAlias = Callable[[Matrix], Matrix]  # decision values -> probabilities, in NumPy


class Inputs(NamedTuple):
    """X for a prediction: an array, a sparse matrix, or a dask collection (results are then dask arrays).

    The methods `decide`, `choose` and `tell` compute decision values, classes and probabilities of X.
    """

    X: Any
    dtype: np.dtype | None = None  # the dtype to compute with if X is a dask collection, else None

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def decide(self, machines: BinaryDecisions, n_classes: int, multi_class: str) -> Any:
        combine = partial(combine_decisions, n_classes=n_classes, multi_class=multi_class)
        return self._convert(machines, combine, None if n_classes == 2 else n_classes)

    def choose(self, scores: Any, classes: Any) -> Any:
        choose = partial(choose_classes, classes=classes)
        if self.dtype is None:
            return choose(scores)
        return dask_input.map_rows(choose, scores, classes.dtype, None)

    def tell(self, machines: BinaryDecisions, to_probabilities: ToProbabilities, n_classes: int) -> Any:
        return self._convert(machines, partial(on_host, to_probabilities), n_classes)

    def _convert(self, machines: BinaryDecisions, convert: ToProbabilities, n_columns: int | None) -> Any:
        """Return `convert(machines(X))`, with `n_columns` columns, or with one dimension if that is None."""
        if self.dtype is None:
            return convert(machines(self.X))
        of_rows = partial(dask_input.decide_block, machines, convert, self.dtype)
        return dask_input.map_rows(of_rows, self.X, self.dtype, n_columns)


def on_host(function: Callable[[Matrix], Matrix], array: Any) -> Any:
    """Apply a function of NumPy arrays to an array on any device; the result is on that device."""
    space = space_of(array)
    return space.put(function(space.bring(array)))


class Checks(NamedTuple):
    """The functions with which an estimator checks its input."""

    array: Callable[..., Any]  # checks X, or X and y, by scikit-learn's `validate_data`, unless they are dask
    columns: Callable[[Any], np.dtype]  # checks the columns of dask collections; returns their dtype


def read(checks: Checks, X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver) -> Samples:
    """Check X, y and the weights, and return labelled samples that stay where X is."""
    if is_dask(X, y, sample_weight):
        from kmargin.data.samples.blocks import read_dask  # needs dask, which is optional

        samples = read_dask(X, y, sample_weight, class_weight, solver)
        checks.columns(X)
        return samples
    space = device_space(X)
    if space is not None:
        y = y if hasattr(y, "shape") else np.asarray(y)
        X, y = checks.array(detach(X), y, dtype=_floats(space))
        return read_device(X, y, sample_weight, class_weight)
    with refuse_text(X):
        X, y = checks.array(X, to_host(y), dtype=[np.float64, np.float32])
    X = canonical(X) if issparse(X) else X
    return read_samples(X, y, to_host(sample_weight), class_weight)


def device_space(X: Any) -> Space | None:
    """Return the device of X; None for main memory, or if scikit-learn's `array_api_dispatch` is off."""
    return space_of(X) if get_config()["array_api_dispatch"] and is_foreign(X) else None


def read_into_memory(
    checks: Checks, X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver, who: str
) -> Any:
    """Return labelled samples for the kernel estimator `who`; raise TypeError unless X is in main memory."""
    space = device_space(X)
    if space is not None:
        raise TypeError(
            f"{who} works in main memory, but X is in {space}. Give X as a "
            "NumPy array, or turn off array_api_dispatch; SparseSVC accepts arrays on a device."
        )
    if is_dask(X, y, sample_weight):
        raise TypeError(
            f"{who} does not accept dask collections: a kernel compares every point with every "
            "other. Use SparseSVC, or as many rows as fit in memory (X.compute())."
        )
    return read(checks, X, y, sample_weight, class_weight, solver)


@contextmanager
def refuse_text(X: Any) -> Iterator[None]:
    """Replace the errors of NumPy for text and dates in X by messages that name the column and a remedy."""
    try:
        yield
    except TypeError:  # NumPy has no dtype for both numbers and dates
        dates = [str(name) for name in getattr(X, "columns", ()) if np.asarray(X[name]).dtype.kind in "mM"]
        if not dates:
            raise
        raise TypeError(
            f"Column {dates[0]!r} of X holds dates or durations, which are not numbers. Convert it to "
            "numbers, such as days since the first date, or leave it out."
        ) from None
    except ValueError as error:
        text = str(error).partition("could not convert string to float: ")[2]
        if not text:
            raise
        columns = [
            name for name in getattr(X, "columns", ()) if text in map(repr, np.asarray(X[name]).tolist())
        ]
        where = f" in column {str(columns[0])!r}" if columns else ""
        raise ValueError(
            f"X holds the text {text}{where}, which is not a number. Convert its column to numbers, for "
            "example with OneHotEncoder, or leave it out."
        ) from None


def read_for_folds(X: Any, y: Any, sample_weight: Any, groups: Any) -> Given:
    """Return X, y and groups for scikit-learn's splitters; raise ValueError if dask data have groups."""
    if not is_dask(X, y, sample_weight):
        return Given(*indexable(X, y, groups))
    if groups is not None:
        raise ValueError(
            "groups are not supported for data in blocks. Put each group into one block, and use "
            "cv=kmargin.BlockKFold(5) for folds of whole blocks."
        )
    return Given(X, y, None)


def refuse_blocks(X: Any, y: Any, who: str) -> None:
    """Raise TypeError, with the name `who` of the caller, if X or y is a dask collection."""
    if is_dask(X, y):
        raise TypeError(
            f"{who} splits rows by their indices, which dask collections do not have. Give X and y in memory "
            "(X.compute()), or a sample of the rows."
        )


def read_inputs(checks: Checks, X: Any, method: str, reference: Any) -> Inputs:
    """Check the X given to `method`, such as predict; it must be on the device of the array `reference`."""
    if is_dask(X):
        return Inputs(X, checks.columns(X))
    space = device_space(X)
    with refuse_text(X):
        X = checks.array(detach(X), dtype=[np.float64, np.float32] if space is None else _floats(space))
    _check_same_space(space_of(X), reference, method)
    return Inputs(X)


def _check_same_space(given: Space, reference: Any, method: str) -> None:
    fitted = space_of(reference)
    if given != fitted:
        raise ValueError(
            f"{method}() must use the same namespace and device as fit(): X is in {given}, the fitted "
            f"attributes are in {fitted}. Move X there, with sklearn.set_config(array_api_dispatch=True) if "
            "it is a device, or fit to data like X."
        )


def select_columns(
    checks: Checks,
    X: Any,
    columns: Indices,
    select_in_memory: Callable[[Any], Any],
    method: str,
    reference: Any,
) -> Any:
    """Return the columns of X at the indices `columns`, or `select_in_memory(X)` if X is in main memory.

    Raises ValueError, with the name `method`, if X is not on the device of the fitted array `reference`.
    """
    if is_dask(X):
        checks.columns(X)
        return X.iloc[:, columns] if hasattr(X, "columns") else X[:, columns]
    space = device_space(X)
    _check_same_space(space or HOST, reference, method)
    if space is None:
        return select_in_memory(X)
    checks.array(detach(X), dtype=None)
    return space.xp.take(X, space.put(columns), axis=1)


def add_columns(
    X: Any,
    columns: Indices,
    n_features: int,
    add_to_sparse: Callable[[Any], Any],
    method: str,
    reference: Any,
) -> Any:
    """Return a matrix with X[:, j] as column columns[j], 0 elsewhere; `add_to_sparse(X)` if X is sparse.

    Raises ValueError, with the name `method`, if X is not on the device of the fitted array `reference`.
    """
    n_given = np.shape(X)[1] if len(np.shape(X)) == 2 else None
    if n_given != len(columns):
        raise ValueError(
            f"X has shape {tuple(np.shape(X))}, but there are {len(columns)} chosen features. "
            "Give the output of transform, with one column for each."
        )
    if is_dask(X):
        return dask_input.spread_columns(X, columns, n_features)
    if issparse(X):
        return add_to_sparse(X)
    space = device_space(X) or HOST
    _check_same_space(space, reference, method)
    return spread(space, X if space is not HOST else np.asarray(X), columns, n_features)


def accuracy(predict: Callable[[Any], Any], X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy: the weighted proportion of rows whose class is predicted correctly."""
    if is_dask(X, y, sample_weight):
        return dask_input.accuracy(X, y, sample_weight, predict)
    if device_space(X) is not None:
        y, sample_weight = follow(X, y, sample_weight)
    return float(accuracy_score(y, predict(X), sample_weight=sample_weight))


def _floats(space: Space) -> list[Any]:
    return [space.wide, space.xp.float32]
