"""Labels in a file of their own, joined to the rows of a table by what both call them."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from kmargin.errors import InputError, count, listing, nearest
from kmargin.tables.columns import to_texts
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
