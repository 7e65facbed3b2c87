"""From a table to a data set: the target, the features, the weights."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing, nearest
from kmargin.tables.columns import check_finite, check_kinds, check_missing, kind_of, to_numbers, to_texts
from kmargin.tables.features import Encoding
from kmargin.tables.read import Table
from kmargin.types import Indices, Matrix, Vector

ENCODINGS = ("onehot",)
IMPUTATIONS = ("median",)
LARGEST_CLASS = 2**53  # beyond, numbers with a fraction skip whole ones
MOST_NUMBERS = 50  # different numbers in a target, beyond which they are no names of classes


class Roles(NamedTuple):
    """What the columns of a table are for. All that have no other role are features."""

    target: str | None = None
    id: str | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    encode: str | None = None
    impute: str | None = None


class Dataset(NamedTuple):
    """A table ready for machines."""

    X: Matrix  # NaN where a number is missing
    y: np.ndarray
    target: str
    encoding: Encoding
    rows: Indices  # numbers of the rows in the file, from 1
    weights: Vector | None
    ids: pd.Series | None
    impute: bool
    notes: tuple[str, ...]

    def restricted_to(self, rows: Indices) -> "Dataset":
        """Some of the rows."""
        return self._replace(
            X=self.X[rows],
            y=self.y[rows],
            rows=self.rows[rows],
            weights=None if self.weights is None else self.weights[rows],
            ids=None if self.ids is None else self.ids.iloc[rows],
        )


def prepare(table: Table, roles: Roles) -> Dataset:
    """Read the target and the features from a table.

    Raises InputError, in one sentence, for whatever a machine could not learn from.
    """
    for option, value, choices in (
        ("--encode", roles.encode, ENCODINGS),
        ("--impute", roles.impute, IMPUTATIONS),
    ):
        if value is not None and value not in choices:
            raise InputError(f"{option} {value} is not known. Use {option} {choices[0]}.")
    frame = table.frame
    target = _target_name(table, roles)
    for option, name in (
        ("--id", roles.id),
        ("--weights", roles.weights),
        *(("--drop", d) for d in roles.drop),
    ):
        if name is not None and name not in frame.columns:
            raise InputError(f"{option}: there is no column {name!r}. {nearest(name, frame.columns)}")
        if name == target:
            raise InputError(f"{option} {name} is the target. Leave that option out.")
    frame, weights, rows, notes = _weighted_rows(frame, roles.weights)
    y = read_classes(frame[target], target)
    taken = {target, roles.id, roles.weights, *roles.drop}
    features = frame[[name for name in frame.columns if name not in taken]]
    encoding = _learn_encoding(features, target, roles)
    return Dataset(
        X=encoding.matrix(features),
        y=y,
        target=target,
        encoding=encoding,
        rows=rows,
        weights=weights,
        ids=None if roles.id is None else frame[roles.id].reset_index(drop=True),
        impute=roles.impute is not None,
        notes=(*table.notes, *notes, *_note_counters(features)),
    )


def _note_counters(features: pd.DataFrame) -> list[str]:
    """Columns that count the rows tell the classes of a sorted table, and of no other."""
    counters = [
        name
        for name in features.columns
        if len(features) > 2
        and pd.api.types.is_integer_dtype(features[name].dtype)
        and (np.diff(to_numbers(features[name])) == 1).all()
    ]
    return [
        f"Column {name!r} numbers the rows. Is it a feature? --id or --drop leaves it out."
        for name in counters
    ]


def _target_name(table: Table, roles: Roles) -> str:
    target = roles.target or table.target
    if target is None:
        raise InputError(f"Say which column to predict, with --target. {nearest('', table.frame.columns)}")
    if target not in table.frame.columns:
        raise InputError(f"There is no column {target!r} to predict. {nearest(target, table.frame.columns)}")
    return target


def read_classes(column: pd.Series, name: str) -> np.ndarray:
    """The classes, of their own type. Raises InputError where these are not two classes or more."""
    n_missing = int(column.isna().sum())
    if n_missing:
        have = "has" if n_missing == 1 else "have"
        raise InputError(
            f"{count(n_missing, 'row')} {have} no value in the target column {name!r}. "
            "Fill in their class, or remove them."
        )
    kind = kind_of(column)
    if kind not in ("number", "text"):
        raise InputError(f"The target column {name!r} holds {kind}. Give names or numbers of classes.")
    y = to_texts(column).astype(str) if kind == "text" else np.asarray(column)
    if y.dtype == object:
        y = to_numbers(column)
        y = y.astype(bool) if all(isinstance(value, bool | np.bool_) for value in column) else y
    if y.dtype.kind == "f" and np.abs(y).max(initial=0) > LARGEST_CLASS:
        raise InputError(
            f"The target column {name!r} holds {y[np.abs(y).argmax()]:g}, and numbers of that size are not "
            "told apart. Give names, or smaller numbers, of classes."
        )
    distinct = np.unique(y)
    if len(distinct) == 1:
        raise InputError(
            f"The target column {name!r} holds one class only, {distinct[0].item()!r}: "
            "there is nothing to tell apart. Give rows of two classes or more."
        )
    if y.dtype.kind == "f" and len(distinct) <= MOST_NUMBERS and (y != np.round(y)).any():
        fraction = distinct[distinct != np.round(distinct)][0]
        raise InputError(
            f"The target column {name!r} holds fractions, such as {fraction:g}, but kmargin sorts rows into "
            "classes. Give whole numbers or names."
        )
    if 2 * len(distinct) > len(y) or (y.dtype.kind == "f" and len(distinct) > MOST_NUMBERS):
        raise InputError(
            f"The target column {name!r} holds {len(distinct):,} different values in {len(y):,} rows, but "
            "kmargin sorts rows into classes. Choose another target, or cut the values into classes."
        )
    return y


def _weighted_rows(
    frame: pd.DataFrame, name: str | None
) -> tuple[pd.DataFrame, Vector | None, Indices, list[str]]:
    """The rows that have weight, their weights, and their numbers in the file."""
    rows = np.arange(1, len(frame) + 1)
    if name is None:
        return frame, None, rows, []
    if kind_of(frame[name]) != "number":
        raise InputError(f"--weights: column {name!r} holds text. Give a column of numbers >= 0.")
    weights = to_numbers(frame[name])
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"--weights: row {int(bad.argmax()) + 1} of column {name!r} holds {weights[bad.argmax()]:g}. "
            "Give numbers >= 0; 0 leaves a row out."
        )
    kept = weights > 0
    if not kept.any():
        raise InputError(f"--weights: column {name!r} is zero in every row. Give some a weight > 0.")
    notes = [] if kept.all() else [f"{count(int((~kept).sum()), 'row')} without weight left out."]
    return frame[kept], weights[kept], rows[kept], notes


def _learn_encoding(features: pd.DataFrame, target: str, roles: Roles) -> Encoding:
    if features.shape[1] == 0:
        raise InputError(f"Beside the target {target!r} no column is left to learn from. Give a feature.")
    texts = check_kinds(features, roles.encode)
    if roles.impute is None:
        check_missing(features, "Fill them with --impute median, or leave such columns out with --drop.")
    empty = [name for name in features.columns if features[name].isna().all()]
    if empty:
        raise InputError(f"Column {listing(empty)} has no values at all. Leave it out with --drop.")
    check_finite(features.drop(columns=texts))
    categories = {
        name: tuple(sorted({text for text in to_texts(features[name]) if text is not None})) for name in texts
    }
    encoding = Encoding(tuple(features.columns), categories)
    repeated = [name for name, times in Counter(encoding.feature_names).items() if times > 1]
    if repeated:
        raise InputError(f"--encode would make {listing(repeated)} twice. Rename that column.")
    return encoding
