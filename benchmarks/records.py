"""Results on disk: one CSV per case, a row per measurement.

Rows are written as they come to `<case>.csv.part`, which takes the name `<case>.csv` when the case
is done. A run that is killed leaves every finished result as it was.
"""

import csv
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn

import kmargin
from benchmarks import N_THREADS

RESULTS = Path(__file__).parent / "results"
MEASURED = ("dataset", "seed", "competitor", "version", "parameter", "level", "metric", "value")


class Recorder:
    """Takes the measurements of one case; to be used as a context."""

    def __init__(self, case, scale):
        RESULTS.mkdir(exist_ok=True)
        self.target = RESULTS / f"{case}.csv"
        self.part = RESULTS / f"{case}.csv.part"
        self.context = {
            "case": case,
            "scale": scale,
            "threads": N_THREADS,
            "kmargin": kmargin.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit_learn": sklearn.__version__,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def __enter__(self):
        self.file = self.part.open("w", newline="")
        self.writer = csv.DictWriter(self.file, (*MEASURED, *self.context), restval="", lineterminator="\n")
        self.writer.writeheader()
        return self

    def __exit__(self, kind, error, trace):
        self.file.close()
        if kind is None:
            os.replace(self.part, self.target)

    def add(self, competitor, metric, value, **where):
        """`where`: dataset, seed, version, and the parameter (k, C) with its level."""
        row = {"competitor": competitor, "metric": metric, "value": f"{value:.10g}", **where}
        self.writer.writerow(row | self.context)
        self.file.flush()


def read(case):
    """The last finished results of a case."""
    path = RESULTS / f"{case}.csv"
    return pd.read_csv(path) if path.is_file() else None


def select(frame, **where):
    """The rows whose columns have these values, or one of these if a list is given."""
    for column, wanted in where.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        frame = frame[frame[column].isin(values)]
    return frame


def by_competitor(frame, *index, aggfunc="mean"):
    """A column for each competitor, a row for each combination of values of these columns."""
    return frame.pivot_table(
        index=list(index), columns="competitor", values="value", aggfunc=aggfunc, sort=False
    )
