"""Claims about the compiled loops: see `compiled_loops.py`, which states and measures them."""

import pandas as pd

from benchmarks import compiled_loops
from benchmarks.cases.case import Reached
from benchmarks.records import Recorder, select


class Loops:
    name = "loops"

    def run(self, record: Recorder, scale: str) -> None:
        for claim in compiled_loops.measure():
            compiled_loops.report(claim)
            record.add("kmargin", claim.topic, claim.ratio, dataset=claim.part)

    def reached(self, frame: pd.DataFrame) -> Reached:
        topics = frame["metric"].unique()
        return {
            t: dict(select(frame, metric=t)[["dataset", "value"]].itertuples(index=False)) for t in topics
        }

    def plot(self, frame: pd.DataFrame) -> None:
        return None
