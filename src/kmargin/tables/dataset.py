"""Prepare a table for analysis: join labels; read classes, features, weights and groups; find pitfalls."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.tables import pitfalls
from kmargin.tables.columns import (
    CountedFeatures,
    Encoding,
    Roles,
    count_features,
    explain_transposed,
    kind_of,
    learn_encoding,
    to_numbers,
    to_texts,
)
from kmargin.tables.read import MISSING_MARKS, Table, check_unique, read_table, to_whole


class Dataset(NamedTuple):
    """A table prepared for an analysis: features, classes, weights and groups of rows."""

    X: Matrix  # the encoded features, not yet scaled; NaN where a number is missing
    y: np.ndarray
    target: str
    roles: Roles  # as requested; if no `id` was, it is a column that seems to name rows or groups, if any
    encoding: Encoding
    counted: CountedFeatures  # the features, and the units that k counts (features, columns or groups)
    rows: Indices  # the number of each row in the file of the table, from 1
    weights: Vector | None
    ids: np.ndarray | None  # the name of each row, from the column `roles.id` or the row names of the file
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # sentences on what in this table may make the score too high
    groups: Indices | None = None  # group number of each row; folds do not split groups, such as equal rows
    group_labels: np.ndarray | None = None  # each row's value in the column `roles.grouped_by`, as text

    def restricted_to(self, rows: Indices) -> "Dataset":
        """Return the data set with only the rows at the indices `rows`."""
        per_row = ("X", "y", "rows", "weights", "ids", "groups", "group_labels")
        return self._replace(**{n: of_all[rows] for n in per_row if (of_all := getattr(self, n)) is not None})


def prepare(table: Table, roles: Roles) -> Dataset:
    """Read classes, features, weights and groups from a table with these roles of columns; find pitfalls."""
    target = _check_roles(table, roles)
    notes = list(table.notes)
    frame = table.frame
    labels = pd.Series(to_texts(frame[target]), dtype=object).str.strip()
    is_mark = labels.isin(MISSING_MARKS)
    if labels[~is_mark].nunique() < 2:  # marks such as - are then labels too, as where classes are + and -
        is_mark = labels == ""
    if marks := sorted({*labels[is_mark]} - {""}):
        notes.append(f"Read as missing values: {listing(marks)}, in {target!r}.")
    has_label = (labels.notna() & ~is_mark).to_numpy()
    if not has_label.any():
        raise InputError(f"The target column {target!r} has no values at all. Choose another with --target.")
    if n_unlabelled := int((~has_label).sum()):
        notes.append(f"{count(n_unlabelled, 'row')} without a label in column {target!r} left out.")
        frame = frame[has_label]
    weights = None
    if roles.weights is not None:
        weights = _read_weights(frame[roles.weights], roles.weights)
        if (weights == 0).any():
            notes.append(f"{count(int((weights == 0).sum()), 'row')} without weight left out.")
            frame, weights = frame[weights > 0], weights[weights > 0]
    y = read_classes(frame[target], target, notes, n_unlabelled)
    taken = {target, roles.id, roles.weights, roles.grouped_by, *roles.drop}
    features = frame[[name for name in frame.columns if name not in taken]]
    row_names, doubtful = pitfalls.find_row_names(features, roles.mentioned, notes)
    features = features.drop(columns=row_names)
    if features.shape[1] == 0:
        raise InputError(f"Besides the target {target!r} there is no column to use as a feature. Add one.")
    encoding = learn_encoding(features, roles)
    X = encoding.matrix(features)
    groups = group_labels = None
    if roles.grouped_by is not None:
        groups, group_labels = _read_groups(frame[roles.grouped_by], notes)
    id_like = {*doubtful, *(name for name in features.columns if pitfalls.has_shared_values(features[name]))}
    is_measured = [column not in id_like for column in encoding.sources]
    repeats = pitfalls.find_repeated_rows(features.drop(columns=list(id_like)), X[:, is_measured])
    groups = pitfalls.join_groups(groups, repeats)
    warnings = (
        *pitfalls.warn_of_lone_features(X, y, encoding),
        *pitfalls.warn_of_batches(frame.drop(columns={target, roles.grouped_by} - {None}), y),
        *pitfalls.warn_of_shared_values(frame.drop(columns=target), roles.grouped_by or roles.id, groups),
        *pitfalls.warn_of_repeated_rows(repeats, y),
    )
    id = roles.id
    if id is None and table.row_names is None:
        id = row_names[0] if row_names else roles.grouped_by
    ids = table.row_names if id is None else table.frame[id]
    return Dataset(
        X=X,
        y=y,
        target=target,
        roles=roles._replace(id=id),
        encoding=encoding,
        counted=count_features(encoding, roles),
        rows=frame.index.to_numpy() + 1,
        weights=weights,
        ids=None if ids is None else ids.loc[frame.index].to_numpy(),
        notes=tuple(notes),
        warnings=warnings,
        groups=groups,
        group_labels=group_labels,
    )


def _check_roles(table: Table, roles: Roles) -> str:
    """Return the name of the target column; raise InputError for unknown columns or conflicting roles."""
    for option, value, choice in (("encode", roles.encode, "onehot"), ("impute", roles.impute, "median")):
        if value not in (None, choice):
            raise InputError(f"--{option} {value} is not known. Use --{option} {choice}.")
    columns, target = table.frame.columns, roles.target or table.target
    if target is None:
        raise InputError(f"Name the column to predict with --target. The table has {listing(columns, 8)}.")
    if target not in columns:
        hint = explain_transposed(table.frame, [target]) or nearest(target, columns)
        if table.row_names is not None:  # as after --transpose: such tables seldom have a target
            hint += " If the classes are in a separate file, name it with --labels."
        raise InputError(f"The table has no column {target!r} to predict. {hint}")
    others = [("--id", roles.id), ("--weights", roles.weights), ("--rows-grouped-by", roles.grouped_by)]
    others += [("--drop", name) for name in roles.drop]
    for option, name in [*others, *(("--feature", name) for name in roles.features)]:
        if name is not None and name not in columns:
            raise InputError(f"{option}: the table has no column {name!r}. {nearest(name, columns)}")
        if name == target or (option != "--feature" and name in roles.features):
            other = "is the target" if name == target else "is also named by --feature"
            raise InputError(f"{option} {name} {other}. Leave out one of the two.")
    return target


def _read_weights(column: pd.Series, name: str) -> Vector:
    weights = to_numbers(pd.to_numeric(column, errors="coerce"))
    is_valid = np.isfinite(weights) & (weights >= 0)
    if not is_valid.all() or not weights.any():
        bad = is_valid.argmin()  # index of the first invalid weight; 0 if all weights are zero
        held = f"row {column.index[bad] + 1} of column {name!r} holds {str(column.iloc[bad])[:40]}"
        raise InputError(f"--weights: {held}. Give numbers >= 0, some of them above 0; 0 leaves a row out.")
    return weights


def _read_groups(column: pd.Series, notes: list[str]) -> tuple[Indices, np.ndarray]:
    """Return for each row the number and the name of its group; raise InputError for missing values."""
    if n_missing := int(column.isna().sum()):
        found = f"--rows-grouped-by: column {column.name!r} has {count(n_missing, 'missing value')}"
        raise InputError(f"{found}. Fill in values; give a row that belongs to no other a value of its own.")
    texts = to_texts(column).astype(str)
    names, groups = np.unique(texts, return_inverse=True)
    formed = f"{len(groups):,} rows form {len(names):,} groups by {column.name!r}"
    notes.append(f"{formed}, which stay together in folds and halves.")
    return groups, texts


def read_classes(column: pd.Series, name: str, notes: list[str], n_missing: int = 0) -> np.ndarray:
    """Return the class of each row, as text, integer or boolean; `n_missing` other rows have no class."""
    found = kind = kind_of(column)
    if kind in ("number", "text"):
        if kind == "text":
            y = _merge_spellings(to_texts(column).astype(str), name, notes)
        elif pd.api.types.is_bool_dtype(column.infer_objects().dtype):
            y = column.to_numpy(bool)
        else:
            y = to_whole(pd.Series(to_numbers(column))).to_numpy()
        distinct = np.unique(y)
        if len(distinct) == 1:
            found = f"only one class, {distinct[0].item()!r}"
            if n_missing:  # the user may have meant the texts NA, None or null as a class
                found += f", beside {count(n_missing, 'row')} left out as empty, NA, None or null"
        elif 2 * len(distinct) > len(y):
            found = f"{len(distinct):,} different values in {len(y):,} rows"
        elif y.dtype.kind == "f":
            is_whole = (np.abs(distinct) < 2**53) & (distinct == np.round(distinct))
            found = f"numbers such as {distinct[~is_whole][0]:g}"
        else:
            return y
    raise InputError(
        f"The target column {name!r} holds {found}, but kmargin predicts classes. Choose another target, or "
        "group the values into two classes or more, with whole numbers or names."
    )


def _merge_spellings(texts: np.ndarray, name: str, notes: list[str]) -> np.ndarray:
    """Merge labels that differ only by case or blanks: replace them by the most frequent spelling."""
    counts = pd.Series(texts).value_counts().sort_index().sort_values(ascending=False, kind="stable")
    spellings = counts.groupby(spelling, sort=False).groups
    notes += [
        f"{listing(same)} in column {name!r} differ only by case or blanks and are treated as one class, "
        f"{same[0].strip()!r}. Rename them if they are different classes."
        for same in spellings.values()
        if len(same) > 1
    ]
    return np.array([spellings[spelling(text)][0].strip() for text in texts])


def spelling(text: str) -> str:
    """Return a text in lower case with single blanks; spellings of the same label become equal."""
    return " ".join(text.split()).casefold()


def join_labels(
    table: Table, path: Path, id: str | None, target: str | None, wanted: Collection[str], all_rows: bool
) -> Table:
    """Add to a table the target column, and the columns in `wanted`, of the file of labels at `path`.

    Rows are matched by the column `id`. Where it is not given, or is in only one of the two, the column that
    has the most values in common with the other side is used. If neither `target` nor the table names the
    target, it is the one other column of the file. Rows without a label are left out, unless `all_rows`.
    """
    labels, file, notes = read_table(path).frame, path.name, []
    own, key = _find_ids(table, labels, file, id)
    names: Any = table.row_names if own is None else table.frame[own]
    labels = labels[labels[key].notna()]
    ids, keys = pd.Series(to_texts(names)), pd.Index(to_texts(labels.pop(key)))
    check_unique(f"--labels: {file}", keys, "row")
    others = list(labels.columns)
    target = target or table.target or (others[0] if len(others) == 1 else None)
    if target not in others and target not in table.frame.columns:
        missing = f"{file} has no column {target!r}" if target else "name the column to predict with --target"
        raise InputError(f"--labels: {missing}. {nearest(target or '', others)}")
    taken = [name for name in others if name == target or name in wanted]
    check_unique(f"--labels: {file} together with the table", [*table.frame.columns, *taken])
    rest, is_labelled = labels.columns.difference(taken, sort=False), ids.isin(keys).to_numpy()
    if len(rest) and not all_rows:
        notes.append(
            f"Not used as features: {listing(list(rest))} of {file}, for columns of a label file may "
            "describe the outcome itself. Move them into the table to use them."
        )
    if without := list(ids[~is_labelled]):
        rows = count(len(without), "row") + (", predicted anyway" if all_rows else ", left out")
        notes.append(f"{file} has no label for {rows}: {listing(without, 3)}.")
    if unused := sorted(set(keys) - set(ids)):
        unused_labels = count(len(unused), "label")
        notes.append(f"The table has no row for {unused_labels} of {file}: {listing(unused, 3)}.")
    kept = is_labelled | all_rows
    frame = table.frame[kept] if own in (None, id) else table.frame[kept].drop(columns=own)
    found = labels[taken].set_axis(keys).reindex(ids[kept]).set_axis(frame.index)  # row numbers of the file
    frame = pd.concat([frame, found], axis=1)
    return table._replace(frame=frame, target=target, notes=(*table.notes, *notes), row_names=names[kept])


def _find_ids(table: Table, labels: pd.DataFrame, file: str, id: str | None) -> tuple[str | None, str]:
    """Return the names of the columns that match rows, of the table (None: row names) and of the labels."""
    frame = table.frame
    if id is not None and id not in labels.columns and id not in frame.columns:
        hint = nearest(id, labels.columns)
        raise InputError(f"--id: neither {file} nor the table has a column {id!r}. {hint}")
    if table.row_names is not None and id not in frame.columns:
        ours: dict[str | None, np.ndarray] = {None: to_texts(table.row_names)}
    else:
        shared, texts = frame.columns.intersection(labels.columns), frame.select_dtypes(exclude="number")
        owns = [id] if id in frame.columns else [*shared, frame.columns[0], *texts.columns]
        ours = {own: to_texts(frame[own]) for own in owns}
    keys = [id] if id is not None and id in labels.columns else list(labels.columns)
    theirs = {key: to_texts(labels[key]) for key in keys}
    n_common = {(own, key): len({*ours[own]} & {*theirs[key]} - {None}) for key in keys for own in ours}
    own, key = max(n_common, key=n_common.__getitem__)
    if n_common[own, key] == 0:
        in_table, in_file = listing(list(ours[own][:2])), listing(list(theirs[key][:2]))
        raise InputError(
            f"No row of the table has a name in {file}: {in_table} in the table, {in_file} in {file}. Give "
            "both the same names, in the column of --id, or, with features in rows, add --transpose."
        )
    return own, key
