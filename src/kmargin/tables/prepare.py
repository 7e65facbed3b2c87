"""From a table to a data set: the target, the features, the weights."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing, nearest
from kmargin.intervals import effective_number
from kmargin.tables.columns import check_finite, check_kinds, check_missing, kind_of, to_numbers, to_texts
from kmargin.tables.features import Encoding
from kmargin.tables.read import Table
from kmargin.tables.row_names import explain_lying, find_row_names
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
    grouped_by: str | None = None  # rows with the same value stay together in folds
    features: Sequence[str] = ()  # even if they look like names of rows
    spoken_of: Sequence[str] = ()  # names that are said to be features in passing: columns, groups, values


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
    groups: Indices | None = None  # of the rows: those of one group stay together in folds
    grouped_by: str | None = None  # the column that says so

    def restricted_to(self, rows: Indices) -> "Dataset":
        """Some of the rows."""
        return self._replace(
            X=self.X[rows],
            y=self.y[rows],
            rows=self.rows[rows],
            weights=None if self.weights is None else self.weights[rows],
            ids=None if self.ids is None else self.ids.iloc[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    @property
    def n_independent(self) -> float:
        """As many rows of one weight, each by itself, tell as much as these."""
        return effective_number(self.weights, len(self.y), self.groups)


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
    target = _target_name(table, roles)
    _check_roles(table.frame, target, roles)
    frame, weights, rows, notes = _weighted_rows(table.frame, roles.weights)
    y = read_classes(frame[target], target)
    taken = {target, roles.id, roles.weights, roles.grouped_by, *roles.drop}
    features = frame[[name for name in frame.columns if name not in taken]]
    naming, said = find_row_names(features, {*roles.features, *roles.spoken_of})
    features = features.drop(columns=naming)
    encoding = _learn_encoding(features, target, roles)
    names = table.row_names if roles.id is None else table.frame[roles.id]
    groups = None if roles.grouped_by is None else read_groups(frame[roles.grouped_by], roles.grouped_by)
    return Dataset(
        X=encoding.matrix(features),
        y=y,
        target=target,
        encoding=encoding,
        rows=rows,
        weights=weights,
        ids=None if names is None else names.iloc[rows - 1].reset_index(drop=True),
        impute=roles.impute is not None,
        notes=(*table.notes, *notes, *said, *_note_groups(groups, roles.grouped_by)),
        groups=groups,
        grouped_by=roles.grouped_by,
    )


def _check_roles(frame: pd.DataFrame, target: str, roles: Roles) -> None:
    """Raises InputError where columns are not there, or are to be two things at once."""
    said = [("--id", roles.id), ("--weights", roles.weights), ("--rows-grouped-by", roles.grouped_by)]
    said += [("--drop", name) for name in roles.drop] + [("--feature", name) for name in roles.features]
    for option, name in said:
        if name is not None and name not in frame.columns:
            raise InputError(f"{option}: there is no column {name!r}. {nearest(name, frame.columns)}")
        if name == target:
            raise InputError(f"{option} {name} is the target. Leave that option out.")
    others = {roles.id, roles.weights, roles.grouped_by, *roles.drop}
    both = [name for name in roles.features if name in others]
    if both:
        raise InputError(f"--feature {both[0]} has another part to play, too. Leave one of the two out.")


def read_groups(column: pd.Series, name: str) -> Indices:
    """The group of each row, as a number. Raises InputError where these are not several, or not all known."""
    texts = to_texts(column)
    gaps = [place for place, text in enumerate(texts) if text is None]
    if gaps:
        have = "row has" if len(gaps) == 1 else "rows have"
        raise InputError(
            f"--rows-grouped-by: {len(gaps):,} {have} no value in column {name!r}. "
            "Fill it in: a row by itself is a group of its own."
        )
    groups = np.unique(texts.astype(str), return_inverse=True)[1]
    if groups.max() == 0:
        raise InputError(
            f"--rows-grouped-by: all rows have {texts[0]!r} in column {name!r}, so no fold could do without "
            "them. Name a column with a value for each patient, or whatever rows belong to."
        )
    return groups


def _note_groups(groups: Indices | None, name: str | None) -> list[str]:
    if groups is None:
        return []
    n_groups = int(groups.max()) + 1
    if n_groups == len(groups):
        return [f"Column {name!r} differs in each row, so --rows-grouped-by keeps no rows together."]
    return [
        f"{len(groups):,} rows are in {n_groups:,} groups by {name!r}, which stay together in folds and "
        "halves. Intervals count groups, not rows."
    ]


def _target_name(table: Table, roles: Roles) -> str:
    target = roles.target or table.target
    if target is None:
        raise InputError(f"Say which column to predict, with --target. {nearest('', table.frame.columns)}")
    if target not in table.frame.columns:
        hint = explain_lying(table.frame, [target]) or nearest(target, table.frame.columns)
        if table.row_names is not None:  # it was turned, and such tables seldom have a row of classes
            hint += " If the classes are in a file of their own, name it with --labels."
        raise InputError(f"There is no column {target!r} to predict. {hint}")
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
