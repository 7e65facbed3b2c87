"""Prepare a table for an analysis: classes, features, weights, groups of rows, warnings."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.model_selection.scores import effective_number
from kmargin.tables.columns import (
    Encoding,
    check_finite,
    check_missing,
    explain_censored,
    explain_transposed,
    find_row_names,
    first_text,
    kind_of,
    quoted,
    to_numbers,
    to_texts,
)
from kmargin.tables.labels import read_classes
from kmargin.tables.pitfalls import (
    find_repeated_rows,
    has_shared_values,
    join_groups,
    warn_of_batches,
    warn_of_lone_features,
    warn_of_repeated_rows,
    warn_of_shared_values,
)
from kmargin.tables.read import Table, to_whole

MAX_CATEGORIES = 50  # of a text column, if they are also more than half as many as its rows


class Roles(NamedTuple):
    """The roles of columns. All columns without another role are features."""

    target: str | None = None
    id: str | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    encode: str | None = None
    impute: str | None = None
    grouped_by: str | None = None  # rows with the same value stay together in folds
    features: Sequence[str] = ()  # features even if they look like names of rows
    mentioned: Sequence[str] = ()  # names in other options, which are those of features, too


class Dataset(NamedTuple):
    """A table as features, classes and weights."""

    X: Matrix  # NaN where a number is missing
    y: np.ndarray
    target: str
    encoding: Encoding
    rows: Indices  # numbers of the rows in the file, from 1
    weights: Vector | None
    ids: pd.Series | None
    impute: bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # of what may make the score too high
    groups: Indices | None = None  # the group of each row; rows of a group stay together in folds
    grouped_by: str | None = None  # the column that defines the groups; None if these are equal rows
    group_labels: np.ndarray | None = None  # the value of each row in that column
    id: str | None = None  # the column that names the rows

    def restricted_to(self, rows: Indices) -> "Dataset":
        """Return the data set of some of the rows."""
        per_row = ("X", "y", "rows", "weights", "groups", "group_labels")
        fields: dict[str, Any] = {name: getattr(self, name) for name in per_row}
        fields = {name: None if values is None else values[rows] for name, values in fields.items()}
        return self._replace(ids=None if self.ids is None else self.ids.iloc[rows], **fields)

    @property
    def ranges(self) -> Matrix:
        """The smallest and the largest value of each feature, in two rows."""
        return np.array([np.nanmin(self.X, axis=0), np.nanmax(self.X, axis=0)])

    @property
    def n_independent(self) -> float:
        """The effective number of rows, given their weights and groups."""
        return effective_number(self.weights, len(self.y), self.groups)


def prepare(table: Table, roles: Roles) -> Dataset:
    """Read the target and the features from a table.

    Raises InputError, with one sentence, for whatever a model cannot be fitted to.
    """
    for option, value, choice in (("encode", roles.encode, "onehot"), ("impute", roles.impute, "median")):
        if value not in (None, choice):
            raise InputError(f"--{option} {value} is not known. Use --{option} {choice}.")
    target = _target_name(table, roles)
    _check_roles(table.frame, target, roles)
    notes = list(table.notes)
    frame = _labelled_rows(table.frame.reset_index(drop=True), target, notes)
    weights = None
    if roles.weights is not None:
        weights = _read_weights(frame[roles.weights], roles.weights)
        if (weights == 0).any():
            notes.append(f"{count(int((weights == 0).sum()), 'row')} without weight left out.")
            frame, weights = frame[weights > 0], weights[weights > 0]
    y, class_notes = read_classes(frame[target], target)
    taken = {target, roles.id, roles.weights, roles.grouped_by, *roles.drop}
    features = frame[[name for name in frame.columns if name not in taken]]
    row_names, doubtful, row_name_notes = find_row_names(features, {*roles.features, *roles.mentioned})
    features = features.drop(columns=row_names)
    encoding = _learn_encoding(features, target, roles)
    X = encoding.matrix(features)
    groups = group_labels = None
    notes += [*class_notes, *row_name_notes]
    if roles.grouped_by is not None:
        group_labels = to_texts(frame[roles.grouped_by])
        groups = _read_groups(group_labels, roles.grouped_by, notes)
    id_like = {*doubtful, *(name for name in features.columns if has_shared_values(features[name], name))}
    measured = [column not in id_like for column in encoding.columns for _ in encoding.names_of(column)]
    repeats = find_repeated_rows(features.drop(columns=list(id_like)), X[:, measured])
    groups = join_groups(groups, repeats)
    warnings = (
        *warn_of_lone_features(X, y, encoding),
        *warn_of_batches(frame, y, target, roles.grouped_by),
        *warn_of_shared_values(frame.drop(columns=target), roles.id, groups),
        *warn_of_repeated_rows(repeats, y),
    )
    id = roles.id
    if id is None and table.row_names is None:
        id = row_names[0] if row_names else roles.grouped_by
    places = frame.index.to_numpy()
    ids = table.row_names if id is None else table.frame[id]
    return Dataset(
        X=X,
        y=y,
        target=target,
        encoding=encoding,
        rows=places + 1,
        weights=weights,
        ids=None if ids is None else ids.iloc[places].reset_index(drop=True),
        impute=roles.impute is not None,
        notes=tuple(notes),
        warnings=warnings,
        groups=groups,
        grouped_by=roles.grouped_by,
        group_labels=None if group_labels is None else group_labels.astype(str),
        id=id,
    )


def _target_name(table: Table, roles: Roles) -> str:
    target = roles.target or table.target
    if target is None:
        raise InputError(f"Name the column to predict with --target. {nearest('', table.frame.columns)}")
    if target not in table.frame.columns:
        hint = explain_transposed(table.frame, [target]) or nearest(target, table.frame.columns)
        if table.row_names is not None:  # as in a transposed table, which seldom has a row of classes
            hint += " If the classes are in a separate file, name it with --labels."
        raise InputError(f"The table has no column {target!r} to predict. {hint}")
    return target


def _check_roles(frame: pd.DataFrame, target: str, roles: Roles) -> None:
    """Raises InputError where columns are not there, or have two roles."""
    given = [("--id", roles.id), ("--weights", roles.weights), ("--rows-grouped-by", roles.grouped_by)]
    given += [("--drop", name) for name in roles.drop]
    for option, name in [*given, *(("--feature", name) for name in roles.features)]:
        if name is not None and name not in frame.columns:
            raise InputError(f"{option}: the table has no column {name!r}. {nearest(name, frame.columns)}")
        if name == target:
            raise InputError(f"{option} {name} is the target. Leave out that option.")
    both = [name for name in roles.features if name in {name for _, name in given}]
    if both:
        raise InputError(f"--feature {both[0]} is also named by another option. Leave out one of the two.")


def _labelled_rows(frame: pd.DataFrame, target: str, notes: list[str]) -> pd.DataFrame:
    """Return the rows that have a label, with a note if others are left out."""
    column = frame[target]
    is_blank = column.map(lambda value: isinstance(value, str) and not value.strip()).astype(bool)
    has_label = ~(column.isna() | is_blank)
    if not has_label.any():
        raise InputError(f"The target column {target!r} has no values at all. Choose another with --target.")
    if has_label.all():
        return frame
    notes.append(f"{count(int((~has_label).sum()), 'row')} without a label in column {target!r} left out.")
    return frame[has_label].assign(**{target: to_whole(column[has_label].infer_objects())})


def _read_weights(column: pd.Series, name: str) -> Vector:
    if kind_of(column) != "number":
        raise InputError(f"--weights: column {name!r} holds text. Give a column of numbers >= 0.")
    weights = to_numbers(column)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"--weights: row {column.index[bad.argmax()] + 1} of column {name!r} holds "
            f"{weights[bad.argmax()]:g}. Give numbers >= 0; 0 leaves a row out."
        )
    if not weights.any():
        raise InputError(f"--weights: column {name!r} is zero in every row. Give some rows a weight > 0.")
    return weights


def _read_groups(texts: np.ndarray, name: str, notes: list[str]) -> Indices:
    """Return the number of each row's group, with a note on the groups."""
    n_missing = sum(text is None for text in texts)
    if n_missing:
        have = "row has" if n_missing == 1 else "rows have"
        raise InputError(
            f"--rows-grouped-by: {n_missing:,} {have} no value in column {name!r}. "
            "Fill it in; give a row that belongs to no other a value of its own."
        )
    groups = np.unique(texts.astype(str), return_inverse=True)[1]
    n_groups = int(groups.max()) + 1
    if n_groups == 1:
        raise InputError(
            f"--rows-grouped-by: all rows have {texts[0]!r} in column {name!r}, so the rows cannot be split "
            "into folds. Name a column that identifies, for example, the patient of each row."
        )
    if n_groups == len(groups):
        notes.append(
            f"Column {name!r} has a different value in each row, so --rows-grouped-by keeps no rows together."
        )
    else:
        notes.append(
            f"{len(groups):,} rows form {n_groups:,} groups by {name!r}, which stay together in folds and "
            "halves. Intervals count groups, not rows."
        )
    return groups


def _learn_encoding(features: pd.DataFrame, target: str, roles: Roles) -> Encoding:
    if features.shape[1] == 0:
        raise InputError(
            f"Besides the target {target!r} there is no column to use as a feature. Give at least one."
        )
    texts = _text_columns(features, roles.encode)
    if roles.impute is None:
        check_missing(features, "Fill them with --impute median, or leave out the columns with --drop.")
    empty = [name for name in features.columns if features[name].isna().all()]
    if empty:
        raise InputError(f"Column {listing(empty)} has no values at all. Leave it out with --drop.")
    check_finite(features.drop(columns=texts))
    categories = {name: tuple(sorted({*to_texts(features[name])} - {None})) for name in texts}
    encoding = Encoding(tuple(features.columns), categories)
    repeated = [name for name, times in Counter(encoding.feature_names).items() if times > 1]
    if repeated:
        raise InputError(f"--encode would create {listing(repeated)} twice. Rename that column.")
    return encoding


def _text_columns(frame: pd.DataFrame, encode: str | None) -> list[str]:
    """Return the text columns. Raises InputError where they, or others, cannot be encoded as numbers."""
    kinds = {name: kind_of(frame[name]) for name in frame.columns}
    for name, kind in kinds.items():
        if kind not in ("number", "text"):
            raise InputError(
                f"Column {name!r} holds {kind}, not numbers. Leave it out with --drop {quoted(name)}."
            )
    texts = [name for name, kind in kinds.items() if kind == "text"]
    for name in texts:
        if (advice := explain_censored(frame[name], name)) is not None:
            raise InputError(f"{advice} Or leave the column out with --drop {quoted(name)}.")
    shared = [name for name in texts if has_shared_values(frame[name], name, needs_name=False)][:1]
    grouping = "".join(
        f"If rows with the same {name!r} belong together, such as those of a patient, keep them together in "
        f"folds with --rows-grouped-by {quoted(name)}. "
        for name in shared
    )
    if texts and encode is None:
        examples = [f"{name!r} (such as {first_text(frame[name])!r})" for name in texts[:5]]
        more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
        hold, them = ("holds", "it") if len(texts) == 1 else ("hold", "them")
        raise InputError(
            f"{count(len(texts), 'column')} {hold} text, not numbers: {', '.join(examples)}{more}. {grouping}"
            f"{'Otherwise encode' if shared else 'Encode'} {them} with --encode onehot, or leave {them} out "
            "with --drop."
        )
    for name in texts:
        n_distinct, n_rows = frame[name].nunique(), len(frame)
        if n_distinct > MAX_CATEGORIES and 2 * n_distinct > n_rows:
            raise InputError(
                f"Column {name!r} holds {n_distinct:,} different texts in {n_rows:,} rows, so it is a name "
                f"rather than a feature. {grouping if name in shared else ''}Use --id {quoted(name)} to "
                f"copy it to the predictions, or --drop {quoted(name)}."
            )
    return texts
