"""The command `kmargin predict`: classes for new rows."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from kmargin import modelfile
from kmargin.errors import InputError, count, listing, nearest
from kmargin.option_groups import with_shared_options
from kmargin.options import Data, Proba, Quiet, ReadingOptions
from kmargin.tables.columns import text_of, to_texts
from kmargin.tables.prepare import spelling
from kmargin.tables.read import Table
from kmargin.tables.results import new_prediction_frame
from kmargin.tables.score_words import percent
from kmargin.tables.spreadsheet import csv_text
from kmargin.tables.write import check_file, write_frame
from kmargin.terminal import plainly, print_whole, say


@plainly
@with_shared_options
def predict_command(
    model: Annotated[Path, typer.Argument(help="The folder that `kmargin fit` wrote, or its model.kmargin.")],
    data: Data,
    reading: ReadingOptions,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; printed by default.")] = None,
    proba: Proba = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows. Columns are found by name; if the target is there, the accuracy is reported."""
    if out is not None:
        check_file(out, (".csv",))
    loaded = modelfile.load(model)
    table = reading.read(data, loaded.target, sorted(loaded.needed), all_rows=True)
    frame = table.frame
    id = loaded.id if reading.id is None and loaded.id in frame.columns else reading.id
    ids = _find_ids(table, id, reading.labels is not None)
    if proba and loaded.calibration is None:
        raise InputError(f"{model} has no probabilities. Leave out --proba, or fit the model again.")
    prediction = loaded.answer(table)
    actual = frame[loaded.target].to_numpy() if loaded.target in frame.columns else None
    known = {*loaded.encoding.columns, loaded.target, id}
    ignored = [name for name in frame.columns if name not in known]
    result = new_prediction_frame(
        loaded,
        prediction.classes,
        prediction.decisions,
        ids,
        actual,
        prediction.probabilities if proba else None,
    )
    if out is None:
        print_whole(csv_text(result))
    else:
        write_frame(result, out)
    if quiet:
        return
    notes = [*table.notes, *prediction.notes, *tell_seen(loaded.share_seen(table), len(result))]
    for note in notes:
        say(f"Note: {note}")
    if ignored:
        say(f"Note: {count(len(ignored), 'column')} ignored: {listing(ignored)}.")
    if actual is not None and (told := share_right(frame[loaded.target], prediction.classes)):
        say(told)
    if out is not None:
        say(f"Written to {out}: {count(len(result), 'row')}.")


def tell_seen(share: float, n_rows: int) -> list[str]:
    """A word of caution about rows that the model was fitted to."""
    n_seen = round(share * n_rows)
    if n_seen == 0:
        return []
    which = f"all {n_rows:,} of these rows" if n_seen == n_rows else f"{n_seen:,} of these {n_rows:,} rows"
    which = "this row" if n_rows == 1 else which
    return [
        f"the model was fitted to {which}: its accuracy on training rows is too optimistic. `kmargin fit` "
        "reports the accuracy on held-out rows."
    ]


def _find_ids(table: Table, id: str | None, has_labels: bool) -> np.ndarray | None:
    """What rows are called: by --id, by the id of the training rows, or by the table itself."""
    columns = table.frame.columns
    if id in columns:
        return table.frame[id].to_numpy()
    if id is not None and not has_labels:
        raise InputError(f"--id: the table has no column {id!r}. {nearest(id, columns)}")
    return None if table.row_names is None else table.row_names.to_numpy()


def share_right(actual: pd.Series, predicted: np.ndarray) -> str:
    """How many predictions agree with a column, rows that it leaves open not counted."""
    known = actual.notna().to_numpy()
    said = np.array([spelling(text_of(value)) for value in predicted[known]])
    right = np.array([spelling(text) for text in to_texts(actual[known])]) == said
    rows = count(len(right), "row")
    return f"{percent(right.mean())} of {rows} agree with column {actual.name!r}." if len(right) else ""
