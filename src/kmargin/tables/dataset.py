"""A table with its labels, ready for an analysis."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.model_selection.scores import effective_number
from kmargin.tables.columns import (
    Encoding,
    check_finite,
    check_missing,
    explain_censored,
    explain_lying,
    find_row_names,
    first_text,
    kind_of,
    quoted,
    to_numbers,
    to_texts,
)
from kmargin.tables.dialect import is_whole
from kmargin.tables.pitfalls import (
    find_repeated_rows,
    has_shared_values,
    join_groups,
    warn_of_batches,
    warn_of_lone_features,
    warn_of_repeated_rows,
    warn_of_shared_values,
)
from kmargin.tables.read import Table, read_table


def join_labels(
    table: Table,
    path: Path,
    id: str | None = None,
    target: str | None = None,
    wanted: Collection[str] = (),
    all_rows: bool = False,
) -> Table:
    """The table with the target, and what else is wanted, from a file with a row for each of its rows.

    `id` names the column that both have in common; else it is found out. Where the file has two columns, the
    other one is the target. Rows without a label are left out, unless `all_rows`; labels without a row have
    no part in it. Raises InputError where the two do not meet.
    """
    labels = read_table(path).frame
    own, key = _find_ids(table, labels, path, id)
    names = table.row_names if own is None else table.frame[own]
    assert names is not None
    ids, keys = to_texts(names), to_texts(labels[key])
    _check_keys(path, key, keys)
    others = [name for name in labels.columns if name != key]
    target = target or table.target or (others[0] if len(others) == 1 else None)
    taken, notes = _pick_columns(table, path, others, target, wanted)
    notes = [] if all_rows else notes
    place_of = {name: place for place, name in enumerate(keys)}
    places = np.array([place_of.get(name, -1) for name in ids])
    has_label = places >= 0
    notes += _tell_unmatched(ids, keys, has_label, path, all_rows)
    rows = np.arange(len(ids)) if all_rows else np.flatnonzero(has_label)
    found = labels[taken].iloc[np.maximum(places[rows], 0)].reset_index(drop=True)
    if not has_label[rows].all():
        found = found.mask(pd.Series(~has_label[rows]))
    frame = table.frame if own in (None, id) else table.frame.drop(columns=own)
    return table._replace(
        frame=pd.concat([frame.iloc[rows].reset_index(drop=True), found], axis=1),
        target=target,
        notes=(*table.notes, *notes),
        row_names=pd.Series(names.to_numpy()[rows], name="id"),
    )


def _find_ids(table: Table, labels: pd.DataFrame, path: Path, id: str | None) -> tuple[str | None, str]:
    """The columns of both that name the rows; None for names that are in no column."""
    if id is not None and id not in labels.columns and id not in table.frame.columns:
        raise InputError(
            f"--id: neither {path.name} nor the table has a column {id!r}. {nearest(id, labels.columns)}"
        )
    frame = table.frame
    if id in frame.columns:
        owns: list[str | None] = [id]
    elif table.row_names is not None:
        owns = [None]
    else:
        texts = frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]
        owns = list(
            dict.fromkeys([*(n for n in labels.columns if n in frame.columns), frame.columns[0], *texts])
        )
    keys = [str(name) for name in labels.columns if id not in labels.columns or name == id]
    best, pair = 0, None
    for key in keys:
        of_labels = set(to_texts(labels[key])) - {None}
        for own in owns:
            of_table = table.row_names if own is None else frame[own]
            assert of_table is not None
            n_common = len(of_labels & set(to_texts(of_table)))
            if n_common > best:
                best, pair = n_common, (own, key)
    if pair is None:
        raise InputError(_explain_strangers(table, labels, path, keys[0], owns[0]))
    return pair


def _explain_strangers(table: Table, labels: pd.DataFrame, path: Path, key: str, own: str | None) -> str:
    """Why no label is that of a row."""
    columns = set(map(str, table.frame.columns))
    for name in labels.columns:
        n_columns = len(columns & set(to_texts(labels[name])))
        if n_columns > 1:
            return (
                f"Column {name!r} of {path.name} names {count(n_columns, 'column')} of the table, not rows: "
                "the table lies on its side. Add --transpose."
            )
    of_table = table.row_names if own is None else table.frame[own]
    assert of_table is not None
    return (
        f"No row of the table is called as {path.name} calls it: {listing(list(of_table.iloc[:2]))} there, "
        f"{listing(list(labels[key].iloc[:2]))} here. Give both the same names, in a column that --id names."
    )


def _check_keys(path: Path, key: str, keys: np.ndarray) -> None:
    twice = [name for name, times in Counter(keys).items() if times > 1 and name is not None]
    if twice:
        raise InputError(
            f"--labels: {path.name} has {listing(twice)} more than once in column {key!r}. Give one row for "
            "each id."
        )


def _pick_columns(
    table: Table, path: Path, others: list[str], target: str | None, wanted: Collection[str]
) -> tuple[list[str], list[str]]:
    """The columns of the labels that have a part to play, and a word about the others."""
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
    if not rest:
        return taken, []
    are = "is not used as a feature" if len(rest) == 1 else "are not used as features"
    return taken, [
        f"{listing(rest)} of {path.name} {are}: columns of a label file may describe the outcome itself. "
        "Move them into the table to use them."
    ]


def _tell_unmatched(
    ids: np.ndarray, keys: np.ndarray, has_label: np.ndarray, path: Path, all_rows: bool
) -> list[str]:
    """A word about rows without labels, and labels without rows."""
    notes = []
    if not has_label.all():
        without = list(dict.fromkeys(str(name) for name in ids[~has_label]))
        done = "predicted anyway" if all_rows else "left out"
        n_rows = int((~has_label).sum())
        have = "has" if n_rows == 1 else "have"
        notes.append(f"{count(n_rows, 'row')} {have} no label in {path.name}, {done}: {listing(without, 3)}.")
    unused = sorted(set(keys) - {None} - set(ids))
    if unused:
        have = "has" if len(unused) == 1 else "have"
        notes.append(f"{count(len(unused), 'label')} of {path.name} {have} no row: {listing(unused, 3)}.")
    return notes


ENCODINGS = ("onehot",)
IMPUTATIONS = ("median",)
LARGEST_CLASS = 2**53  # beyond, numbers with a fraction skip whole ones
MOST_CATEGORIES = 50  # of a text column, where they are also more than half as many as its rows
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
    warnings: tuple[str, ...] = ()  # of what may make the score too high
    groups: Indices | None = None  # of the rows: those of one group stay together in folds
    grouped_by: str | None = None  # the column that says so; without one, groups are of equal rows
    group_labels: np.ndarray | None = None  # the value of each row in that column
    id: str | None = None  # the column that names the rows

    def restricted_to(self, rows: Indices) -> "Dataset":
        """Some of the rows."""
        return self._replace(
            X=self.X[rows],
            y=self.y[rows],
            rows=self.rows[rows],
            weights=None if self.weights is None else self.weights[rows],
            ids=None if self.ids is None else self.ids.iloc[rows],
            groups=None if self.groups is None else self.groups[rows],
            group_labels=None if self.group_labels is None else self.group_labels[rows],
        )

    @property
    def ranges(self) -> Matrix:
        """The smallest and the largest value of each feature, in two rows."""
        return np.array([np.nanmin(self.X, axis=0), np.nanmax(self.X, axis=0)])

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
    labelled, rows, notes = _labelled_rows(table.frame, target)
    frame, weights, has_weight, said = _weighted_rows(labelled, roles.weights)
    rows, notes = rows[has_weight], [*notes, *said]
    y, said = read_classes(frame[target], target)
    notes += said
    taken = {target, roles.id, roles.weights, roles.grouped_by, *roles.drop}
    features = frame[[name for name in frame.columns if name not in taken]]
    naming, doubtful, said = find_row_names(features, {*roles.features, *roles.spoken_of})
    features = features.drop(columns=naming)
    encoding = _learn_encoding(features, target, roles)
    X = encoding.matrix(features)
    groups = None if roles.grouped_by is None else read_groups(frame[roles.grouped_by], roles.grouped_by)
    notes += [*said, *_note_groups(groups, roles.grouped_by)]
    ids = {*doubtful, *(name for name in features.columns if has_shared_values(features[name], str(name)))}
    measured = [column not in ids for column in encoding.columns for _ in encoding.names_of(column)]
    repeats = find_repeated_rows(features.drop(columns=list(ids)), X[:, measured])
    groups = join_groups(groups, repeats)
    warnings = [
        *warn_of_lone_features(X, y, encoding),
        *warn_of_batches(frame, y, target, roles.grouped_by),
        *warn_of_shared_values(frame.drop(columns=target), roles.id, groups),
        *warn_of_repeated_rows(repeats, y),
    ]
    id = roles.id
    if id is None and table.row_names is None:
        id = naming[0] if naming else roles.grouped_by
    names = table.row_names if id is None else table.frame[id]
    return Dataset(
        X=X,
        y=y,
        target=target,
        encoding=encoding,
        rows=rows,
        weights=weights,
        ids=None if names is None else names.iloc[rows - 1].reset_index(drop=True),
        impute=roles.impute is not None,
        notes=(*table.notes, *notes),
        warnings=tuple(warnings),
        groups=groups,
        grouped_by=roles.grouped_by,
        group_labels=None if roles.grouped_by is None else to_texts(frame[roles.grouped_by]).astype(str),
        id=id,
    )


def _check_roles(frame: pd.DataFrame, target: str, roles: Roles) -> None:
    """Raises InputError where columns are not there, or are to be two things at once."""
    said = [("--id", roles.id), ("--weights", roles.weights), ("--rows-grouped-by", roles.grouped_by)]
    said += [("--drop", name) for name in roles.drop] + [("--feature", name) for name in roles.features]
    for option, name in said:
        if name is not None and name not in frame.columns:
            raise InputError(f"{option}: the table has no column {name!r}. {nearest(name, frame.columns)}")
        if name == target:
            raise InputError(f"{option} {name} is the target. Leave out that option.")
    others = {roles.id, roles.weights, roles.grouped_by, *roles.drop}
    both = [name for name in roles.features if name in others]
    if both:
        raise InputError(f"--feature {both[0]} is also named by another option. Leave out one of the two.")


def read_groups(column: pd.Series, name: str) -> Indices:
    """The group of each row, as a number. Raises InputError where these are not several, or not all known."""
    texts = to_texts(column)
    gaps = [place for place, text in enumerate(texts) if text is None]
    if gaps:
        have = "row has" if len(gaps) == 1 else "rows have"
        raise InputError(
            f"--rows-grouped-by: {len(gaps):,} {have} no value in column {name!r}. "
            "Fill it in; give a row that belongs to no other a value of its own."
        )
    groups = np.unique(texts.astype(str), return_inverse=True)[1]
    if groups.max() == 0:
        raise InputError(
            f"--rows-grouped-by: all rows have {texts[0]!r} in column {name!r}, so the rows cannot be split "
            "into folds. Name a column that identifies, for example, the patient of each row."
        )
    return groups


def _note_groups(groups: Indices | None, name: str | None) -> list[str]:
    if groups is None:
        return []
    n_groups = int(groups.max()) + 1
    if n_groups == len(groups):
        return [
            f"Column {name!r} has a different value in each row, so --rows-grouped-by keeps no rows together."
        ]
    return [
        f"{len(groups):,} rows form {n_groups:,} groups by {name!r}, which stay together in folds and "
        "halves. Intervals count groups, not rows."
    ]


def _target_name(table: Table, roles: Roles) -> str:
    target = roles.target or table.target
    if target is None:
        raise InputError(f"Name the column to predict with --target. {nearest('', table.frame.columns)}")
    if target not in table.frame.columns:
        hint = explain_lying(table.frame, [target]) or nearest(target, table.frame.columns)
        if table.row_names is not None:  # it was turned, and such tables seldom have a row of classes
            hint += " If the classes are in a separate file, name it with --labels."
        raise InputError(f"The table has no column {target!r} to predict. {hint}")
    return target


def _labelled_rows(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, Indices, list[str]]:
    """The rows that have a label, their numbers in the file, and a note where others are left out."""
    column = frame[target]
    is_blank = column.map(lambda value: isinstance(value, str) and not value.strip()).astype(bool)
    has_label = ~(column.isna() | is_blank).to_numpy()
    rows = np.flatnonzero(has_label) + 1
    if len(rows) == 0:
        raise InputError(f"The target column {target!r} has no values at all. Choose another with --target.")
    if has_label.all():
        return frame, rows, []
    labels = column[has_label].infer_objects()
    if pd.api.types.is_float_dtype(labels.dtype) and is_whole(labels):
        labels = labels.astype("int64")  # which the gaps had made fractions
    n_left_out = int((~has_label).sum())
    note = f"{count(n_left_out, 'row')} without a label in column {target!r} left out."
    return frame[has_label].assign(**{target: labels}), rows, [note]


def spelling(text: str) -> str:
    """A text without regard to case and blanks."""
    return " ".join(text.split()).casefold()


def _merge_spellings(texts: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """Labels that differ only by case or blanks as one, in the most frequent spelling; and a note of each."""
    counts = pd.Series(texts).value_counts().sort_index().sort_values(ascending=False, kind="stable")
    kinds: dict[str, list[str]] = {}
    for text in counts.index:
        kinds.setdefault(spelling(text), []).append(text)
    notes = [
        f"{listing(texts)} in column {name!r} differ only by case or blanks and are treated as one class, "
        f"{texts[0].strip()!r}. Rename them if they are different classes."
        for texts in kinds.values()
        if len(texts) > 1
    ]
    return np.array([kinds[spelling(text)][0].strip() for text in texts]), notes


def read_classes(column: pd.Series, name: str) -> tuple[np.ndarray, list[str]]:
    """The classes, of their own type, and notes. Raises InputError where these are not two or more."""
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
    if y.dtype.kind == "f" and np.abs(y).max(initial=0) > LARGEST_CLASS:
        raise InputError(
            f"The target column {name!r} holds {y[np.abs(y).argmax()]:g}, and numbers of that size cannot be "
            "distinguished. Use names or smaller numbers for classes."
        )
    distinct = np.unique(y)
    if len(distinct) == 1:
        raise InputError(
            f"The target column {name!r} has only one class, {distinct[0].item()!r}, so there is nothing to "
            "classify. Give rows of two classes or more."
        )
    if y.dtype.kind == "f" and len(distinct) <= MOST_NUMBERS and (y != np.round(y)).any():
        fraction = distinct[distinct != np.round(distinct)][0]
        raise InputError(
            f"The target column {name!r} holds fractions, such as {fraction:g}, but kmargin predicts "
            "classes. Give whole numbers or names."
        )
    if 2 * len(distinct) > len(y) or (y.dtype.kind == "f" and len(distinct) > MOST_NUMBERS):
        raise InputError(
            f"The target column {name!r} holds {len(distinct):,} different values in {len(y):,} rows, but "
            "kmargin predicts classes. Choose another target, or group the values into classes."
        )
    return y, notes


def _weighted_rows(
    frame: pd.DataFrame, name: str | None
) -> tuple[pd.DataFrame, Vector | None, Flags, list[str]]:
    """The rows that have weight, their weights, and which of the rows given these are."""
    if name is None:
        return frame, None, np.ones(len(frame), np.bool_), []
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
        raise InputError(f"--weights: column {name!r} is zero in every row. Give some rows a weight > 0.")
    notes = [] if kept.all() else [f"{count(int((~kept).sum()), 'row')} without weight left out."]
    return frame[kept], weights[kept], kept, notes


def _learn_encoding(features: pd.DataFrame, target: str, roles: Roles) -> Encoding:
    if features.shape[1] == 0:
        raise InputError(
            f"Besides the target {target!r} there is no column to use as a feature. Give at least one."
        )
    texts = _find_texts(features, roles.encode)
    if roles.impute is None:
        check_missing(features, "Fill them with --impute median, or leave out the columns with --drop.")
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
        raise InputError(f"--encode would create {listing(repeated)} twice. Rename that column.")
    return encoding


def _find_texts(frame: pd.DataFrame, encode: str | None) -> list[str]:
    """The text columns of a frame. Raises InputError where they, or others, cannot be made numbers."""
    kinds = {name: kind_of(frame[name]) for name in frame.columns}
    others = [name for name, kind in kinds.items() if kind not in ("number", "text")]
    if others:
        raise InputError(
            f"Column {others[0]!r} holds {kinds[others[0]]}, not numbers. "
            f"Leave it out with --drop {quoted(others[0])}."
        )
    texts = [name for name, kind in kinds.items() if kind == "text"]
    for name in texts:
        if (advice := explain_censored(frame[name], name)) is not None:
            raise InputError(f"{advice} Or leave the column out with --drop {quoted(name)}.")
    shared = [name for name in texts if has_shared_values(frame[name], name, needs_name=False)]
    together = "".join(
        f"If rows with the same {name!r} belong together, such as those of a patient, keep them together in "
        f"folds with --rows-grouped-by {quoted(name)}. "
        for name in shared[:1]
    )
    if texts and encode is None:
        examples = [f"{name!r} (such as {first_text(frame[name])!r})" for name in texts[:5]]
        more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
        hold, they = ("holds", "it") if len(texts) == 1 else ("hold", "them")
        raise InputError(
            f"{count(len(texts), 'column')} {hold} text, not numbers: {', '.join(examples)}{more}. {together}"
            f"{'Otherwise encode' if shared else 'Encode'} {they} with --encode onehot, or leave {they} out "
            "with --drop."
        )
    for name in texts:
        n_distinct, n_rows = frame[name].nunique(), len(frame)
        if n_distinct > MOST_CATEGORIES and 2 * n_distinct > n_rows:
            raise InputError(
                f"Column {name!r} holds {n_distinct:,} different texts in {n_rows:,} rows, so it is a name "
                f"rather than a feature. {together if name in shared[:1] else ''}Use --id {quoted(name)} to "
                f"copy it to the predictions, or --drop {quoted(name)}."
            )
    return texts
