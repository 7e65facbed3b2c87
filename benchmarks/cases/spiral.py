"""Claim: with a kernel, a budget of a few points per pair of classes predicts as well as SVC does with
several times as many.
"""

import pandas as pd

from benchmarks.cases.case import Reached
from benchmarks.datasets import spiral
from benchmarks.records import Recorder, select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE
from benchmarks.solvers.kernels import LibsvmRBF, OursRBF

C, GAMMA, K = 100.0, 1.0, 4
N_SEEDS = {"quick": 1, "default": 3, "full": 10}


class Spiral:
    name = "spiral"

    def run(self, record: Recorder, scale: str) -> None:
        competitors = {c.name: c for c in (OursRBF(HEADLINE, K), LibsvmRBF())}
        for seed in range(N_SEEDS[scale]):
            data = spiral(seed)
            entrants = {
                name: lambda X, y, c=c, new=data.X_test: c.kernel(X, y, new, C, GAMMA)
                for name, c in competitors.items()
            }
            runs = race(entrants, data.X, data.y, small=data.sample(), repeats=1)
            where = {"dataset": data.name, "seed": seed}
            record_seconds(record, competitors, runs, **where)
            for name, run in runs.items():
                correct = run.result.predictions == data.y_test
                record.add(name, "accuracy", float(correct.mean()), **where)
                record.add(name, "points kept", run.result.n_points, **where)

    def reached(self, frame: pd.DataFrame) -> Reached:
        def mean(competitor: str, metric: str) -> float:
            return float(select(frame, competitor=competitor, metric=metric)["value"].mean())

        return {
            "accuracy above SVC": {"": mean(HEADLINE, "accuracy") - mean("svc", "accuracy")},
            "times fewer points": {"": mean("svc", "points kept") / mean(HEADLINE, "points kept")},
        }

    def plot(self, frame: pd.DataFrame) -> None:
        return None
