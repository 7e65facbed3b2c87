"""Labels: a separate file of them joined to a table, and a target column read as classes."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from kmargin.core.validation import InputError, count, listing, nearest
from kmargin.tables.columns import kind_of, to_numbers, to_texts
from kmargin.tables.read import Table, read_table

MAX_CLASS_NUMBER = 2**53  # from here on, floats cannot tell integers apart
MAX_DISTINCT_NUMBERS = 50  # a target with more distinct floats is continuous


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
    ids, keys = to_texts(names), to_texts(labels[key])
    repeated = [name for name, times in Counter(keys).items() if times > 1 and name is not None]
    if repeated:
        raise InputError(
            f"--labels: {path.name} has {listing(repeated)} more than once in column {key!r}. Give one row "
            "for each id."
        )
    others = [name for name in labels.columns if name != key]
    target = target or table.target or (others[0] if len(others) == 1 else None)
    taken, notes = _pick_columns(table, path, others, target, wanted)
    place_of = {name: place for place, name in enumerate(keys)}
    places = np.array([place_of.get(name, -1) for name in ids])
    has_label = places >= 0
    notes = [*([] if all_rows else notes), *_describe_unmatched(ids, keys, has_label, path, all_rows)]
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


def _describe_unmatched(
    ids: np.ndarray, keys: np.ndarray, has_label: np.ndarray, path: Path, all_rows: bool
) -> list[str]:
    """Return notes on rows without a label, and labels without a row."""
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
    is_float = y.dtype.kind == "f"
    if is_float and np.abs(y).max(initial=0) > MAX_CLASS_NUMBER:
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
    if is_float and len(distinct) <= MAX_DISTINCT_NUMBERS and (y != np.round(y)).any():
        fraction = distinct[distinct != np.round(distinct)][0]
        raise InputError(
            f"The target column {name!r} holds fractions, such as {fraction:g}, but kmargin predicts "
            "classes. Give whole numbers or names."
        )
    if 2 * len(distinct) > len(y) or (is_float and len(distinct) > MAX_DISTINCT_NUMBERS):
        raise InputError(
            f"The target column {name!r} holds {len(distinct):,} different values in {len(y):,} rows, but "
            "kmargin predicts classes. Choose another target, or group the values into classes."
        )
    return y, notes
