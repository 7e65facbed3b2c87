"""Prepare a table for an analysis: labels joined to it, classes, features, weights, groups, warnings."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
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
    first_text,
    kind_of,
    quoted,
    to_numbers,
    to_texts,
)
from kmargin.tables.pitfalls import (
    find_repeated_rows,
    find_row_names,
    has_shared_values,
    join_groups,
    warn_of_batches,
    warn_of_lone_features,
    warn_of_repeated_rows,
    warn_of_shared_values,
)
from kmargin.tables.read import Table, read_table, to_whole

MAX_DISTINCT_NUMBERS = 50  # a target with more distinct floats is continuous
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


# Labels


def join_labels(
    table: Table,
    path: Path,
    id: str | None = None,
    target: str | None = None,
    wanted: Collection[str] = (),
    all_rows: bool = False,
) -> Table:
    """Return the table with the target, and other wanted columns, from a file of labels.

    `id` is the column that both have in common; without it the two columns with most values in common are
    taken. If the file has two columns, the other one is the target. Rows without a label are left out, unless
    `all_rows`. Raises InputError where the two cannot be joined.
    """
    labels = read_table(path).frame
    own, key = _find_ids(table, labels, path, id)
    names = table.row_names if own is None else table.frame[own]
    assert names is not None
    labels = labels[labels[key].notna()]
    ids, labels.index = pd.Series(to_texts(names)), pd.Index(to_texts(labels[key]))
    if labels.index.has_duplicates:
        repeated = list(labels.index[labels.index.duplicated()].unique())
        raise InputError(
            f"--labels: {path.name} has {listing(repeated)} more than once in column {key!r}. Give one row "
            "for each id."
        )
    others = [name for name in labels.columns if name != key]
    target = target or table.target or (others[0] if len(others) == 1 else None)
    taken, notes = _pick_columns(table, path, others, target, wanted)
    has_label = ids.isin(labels.index).to_numpy()
    notes = [*([] if all_rows else notes), *_describe_unmatched(ids, labels.index, path, all_rows)]
    rows = np.arange(len(ids)) if all_rows else np.flatnonzero(has_label)
    found = labels[taken].reindex(ids[rows]).reset_index(drop=True)
    frame = table.frame if own in (None, id) else table.frame.drop(columns=own)
    return table._replace(
        frame=pd.concat([frame.iloc[rows].reset_index(drop=True), found], axis=1),
        target=target,
        notes=(*table.notes, *notes),
        row_names=pd.Series(names.to_numpy()[rows], name="id"),
    )


def _find_ids(table: Table, labels: pd.DataFrame, path: Path, id: str | None) -> tuple[str | None, str]:
    """Return the columns of both that name the rows; None for the names of rows that are in no column."""
    frame = table.frame
    if id is not None and id not in labels.columns and id not in frame.columns:
        raise InputError(
            f"--id: neither {path.name} nor the table has a column {id!r}. {nearest(id, labels.columns)}"
        )
    if id in frame.columns:
        owns: dict[str | None, pd.Series] = {id: frame[id]}
    elif table.row_names is not None:
        owns = {None: table.row_names}
    else:
        texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
        common = [name for name in labels.columns if name in frame.columns]
        owns = {name: frame[name] for name in (*common, frame.columns[0], *texts)}
    keys = [str(name) for name in labels.columns if id not in labels.columns or name == id]
    own_values = {own: {*to_texts(column)} - {None} for own, column in owns.items()}
    key_values = {key: {*to_texts(labels[key])} for key in keys}
    n_common = {(own, key): len(own_values[own] & key_values[key]) for key in keys for own in owns}
    best = max(n_common, key=n_common.__getitem__)
    if n_common[best] == 0:
        for name in labels.columns:
            n_columns = len(set(map(str, frame.columns)) & {*to_texts(labels[name])})
            if n_columns > 1:
                raise InputError(
                    f"Column {name!r} of {path.name} names {count(n_columns, 'column')} of the table, not "
                    "rows: the table has its features in rows. Add --transpose."
                )
        ours, theirs = next(iter(owns.values())).iloc[:2], labels[keys[0]].iloc[:2]
        raise InputError(
            f"No row of the table has a name in {path.name}: {listing(list(ours))} in the table, "
            f"{listing(list(theirs))} in {path.name}. Give both the same names, in a column that --id names."
        )
    return best


def _pick_columns(
    table: Table, path: Path, others: list[str], target: str | None, wanted: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of the labels that are joined to the table, and a note on the others."""
    if target is None:
        raise InputError(f"Name the column of {path.name} to predict with --target. {nearest('', others)}")
    if target not in others and target not in table.frame.columns:
        raise InputError(f"--labels: {path.name} has no column {target!r}. {nearest(target, others)}")
    taken = [name for name in others if name == target or name in wanted]
    both = [name for name in taken if name in table.frame.columns]
    if both:
        raise InputError(
            f"--labels: {path.name} and the table both have a column {both[0]!r}. Rename one of them."
        )
    rest = [name for name in others if name not in taken]
    are = "is not used as a feature" if len(rest) == 1 else "are not used as features"
    note = (
        f"{listing(rest)} of {path.name} {are}: columns of a label file may describe the outcome itself. "
        "Move them into the table to use them."
    )
    return taken, [note] if rest else []


def _describe_unmatched(ids: pd.Series, keys: pd.Index, path: Path, all_rows: bool) -> list[str]:
    """Return notes on rows without a label, and labels without a row."""
    notes = []
    without = ids[~ids.isin(keys)]
    if len(without):
        done = "predicted anyway" if all_rows else "left out"
        have, names = "has" if len(without) == 1 else "have", listing(list(without.unique()), 3)
        notes.append(f"{count(len(without), 'row')} {have} no label in {path.name}, {done}: {names}.")
    unused = sorted(keys[~keys.isin(ids)])
    if unused:
        have = "has" if len(unused) == 1 else "have"
        notes.append(f"{count(len(unused), 'label')} of {path.name} {have} no row: {listing(unused, 3)}.")
    return notes


def spelling(text: str) -> str:
    """Return a text without regard to case and blanks."""
    return " ".join(text.split()).casefold()


def _merge_spellings(texts: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """Return labels in the most frequent of the spellings that differ by case or blanks, and notes."""
    counts = pd.Series(texts).value_counts().sort_index().sort_values(ascending=False, kind="stable")
    spellings: dict[str, list[str]] = {}
    for text in counts.index:
        spellings.setdefault(spelling(text), []).append(text)
    notes = [
        f"{listing(same)} in column {name!r} differ only by case or blanks and are treated as one class, "
        f"{same[0].strip()!r}. Rename them if they are different classes."
        for same in spellings.values()
        if len(same) > 1
    ]
    return np.array([spellings[spelling(text)][0].strip() for text in texts]), notes


def read_classes(column: pd.Series, name: str) -> tuple[np.ndarray, list[str]]:
    """Return the classes of a target column, and notes. Raises InputError where these are not two or more."""
    notes: list[str] = []
    kind = kind_of(column)
    if kind not in ("number", "text"):
        raise InputError(f"The target column {name!r} holds {kind}. Give class names or numbers.")
    if kind == "text":
        y, notes = _merge_spellings(to_texts(column).astype(str), name)
    else:
        y = np.asarray(column)
    if y.dtype == object:
        y = to_numbers(column)
        y = y.astype(bool) if all(isinstance(value, bool | np.bool_) for value in column) else y
    distinct = np.unique(y)
    if len(distinct) == 1:
        raise InputError(
            f"The target column {name!r} has only one class, {distinct[0].item()!r}, so there is nothing to "
            "classify. Give rows of two classes or more."
        )
    is_float, n_distinct = y.dtype.kind == "f", len(distinct)
    if 2 * n_distinct > len(y) or (is_float and n_distinct > MAX_DISTINCT_NUMBERS):
        raise InputError(
            f"The target column {name!r} holds {n_distinct:,} different values in {len(y):,} rows, but "
            "kmargin predicts classes. Choose another target, or group the values into classes."
        )
    if is_float and not (is_whole := np.isfinite(distinct) & (distinct == np.round(distinct))).all():
        raise InputError(
            f"The target column {name!r} holds numbers such as {distinct[~is_whole][0]:g}, but kmargin "
            "predicts classes. Give whole numbers or names."
        )
    return y, notes
