"""Claim: with two cores the path over all pairs of letters takes at most 0.6 of the time of one.

The same path with one job and with two, by threads (the default) and by joblib's processes, in turns;
all of them once before the clock starts, so that everything is compiled and the processes run. Two jobs
need both cores for themselves: each turn waits until others are quiet, and is taken again, up to three
times, if they kept more than a tenth of a core busy meanwhile. Of the quiet turns the median counts.
Processes have to send 5,200 solutions back, of a few hundred microseconds each, so they gain less; their
share is reported.
"""

from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config

from benchmarks import bystanders
from benchmarks.cases.case import Reached, drop_missing
from benchmarks.datasets import load
from benchmarks.grids import ks_all
from benchmarks.records import Recorder, select
from benchmarks.solvers import HEADLINE, choose
from kmargin import SparsityPath, sparse_svm_path

C = 10.0
WAYS = {"one core": ("threading", 1), "threads": ("threading", 2), "processes": ("loky", 2)}
QUIET = 0.1  # cores that others may keep busy
TURNS = 3
PATIENCE = {"quick": 1, "default": 30, "full": 60}  # seconds
N_ROUNDS = {"quick": 2, "default": 5, "full": 9}


class Cores:
    name = "cores"

    def run(self, record: Recorder, scale: str) -> None:
        data = load("letters").of_classes(8 if scale == "quick" else None)
        ks = ks_all(data.X.shape[1])
        where: dict[str, Any] = {"dataset": data.name, "version": choose()[HEADLINE].version()}

        def path(way: str) -> SparsityPath:
            backend, n_jobs = WAYS[way]
            with parallel_config(backend=backend, n_jobs=n_jobs):
                return sparse_svm_path(data.X, data.y, ks, C=C, shared=False)

        expected = path("one core")
        for way in WAYS:
            same = np.array_equal(path(way).coefs, expected.coefs)
            record.add(HEADLINE, "same coefficients", same, parameter="way", level=way, **where)
        for _ in range(N_ROUNDS[scale]):
            for way in WAYS:
                for _ in range(TURNS):
                    bystanders.wait_until_alone(PATIENCE[scale], QUIET)
                    seconds, others = bystanders.measure(lambda way=way: path(way))
                    metric = "seconds" if others < QUIET else "seconds, disturbed"
                    record.add(HEADLINE, metric, seconds, parameter="way", level=way, **where)
                    print(f"    {way:<10} {seconds:7.3f} s, others {others:.2f} cores", flush=True)
                    if others < QUIET:
                        break

    def reached(self, frame: pd.DataFrame) -> Reached:
        median = select(frame, metric="seconds").groupby("level")["value"].median()
        alone = float(median.get("one core", np.nan))
        same = select(frame, metric="same coefficients")["value"].min()
        return drop_missing(
            {
                "time over one core's": {"": float(median.get("threads", np.nan)) / alone},
                "time over one core's, processes": {"": float(median.get("processes", np.nan)) / alone},
                "same coefficients": {"": float(same)},
            }
        )

    def plot(self, frame: pd.DataFrame) -> None:
        return None
