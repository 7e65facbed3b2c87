"""What every case has to offer."""

from typing import Protocol

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.records import Recorder, select
from benchmarks.solvers import HEADLINE

Reached = dict[str, dict[str, float]]  # claim -> part of it (a shape, a k, ...) -> number


class Case(Protocol):
    """Measuring and judging are apart: `reached` and `plot` work on any results, old or new."""

    name: str

    def run(self, record: Recorder, scale: str) -> None:
        """Measure. The scale is "quick", "default" or "full"."""

    def reached(self, frame: pd.DataFrame) -> Reached:
        """The numbers that `targets.py` has bounds for. What was not measured is left out."""

    def plot(self, frame: pd.DataFrame) -> Figure | None:
        """A picture of the results, if there is one."""


def best_seconds(frame: pd.DataFrame, competitor: str) -> float:
    """The best time; not a number if there is none."""
    return float(select(frame, metric="seconds", competitor=competitor)["value"].min())


def times_faster(frame: pd.DataFrame, ours: str, other: str) -> float:
    return best_seconds(frame, other) / best_seconds(frame, ours)


def by_dataset(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each data set that the headline solver was measured on."""
    groups = frame.dropna(subset="dataset").groupby("dataset", sort=False)
    return {str(name): rows for name, rows in groups if HEADLINE in set(rows["competitor"])}


def drop_missing(reached: Reached) -> Reached:
    """Without the parts that are not a number, and the claims that have no part left."""
    kept = {
        claim: {part: value for part, value in parts.items() if value == value}
        for claim, parts in reached.items()
    }
    return {claim: parts for claim, parts in kept.items() if parts}
