"""Claim: with two cores the path over all pairs of letters takes at most 0.6 of the time of one.

The same path with one job and with two, by threads (the default) and by joblib's processes, in turns; all of
them once before the clock starts, so that everything is compiled and the processes run. Two jobs need both
cores for themselves, so the best turn of each counts. Processes have to send 5,200 solutions back, of a few
hundred microseconds each, so they gain less; their share is reported.
"""

import time

import numpy as np
from joblib import parallel_config

from benchmarks.cases.case import Case
from benchmarks.datasets.files import load
from benchmarks.records import select
from benchmarks.solvers import HEADLINE
from kmargin import sparse_svm_path

C = 10.0
WAYS = {"one core": ("threading", 1), "threads": ("threading", 2), "processes": ("loky", 2)}
N_ROUNDS = {"quick": 2, "default": 9, "full": 15}


class Cores(Case):
    name = "cores"

    def run(self, record, scale):
        data = load("letters").of_classes(8 if scale == "quick" else None)
        where = {"dataset": data.name, "parameter": "way"}

        def path(way):
            backend, n_jobs = WAYS[way]
            with parallel_config(backend=backend, n_jobs=n_jobs):
                return sparse_svm_path(data.X, data.y, data.every_k, C=C, shared=False)

        expected = path("one core")
        for way in WAYS:
            same = np.array_equal(path(way).coefs, expected.coefs)
            record.add(HEADLINE, "same coefficients", same, level=way, **where)
        for _ in range(N_ROUNDS[scale]):
            for way in WAYS:
                started = time.perf_counter()
                path(way)
                seconds = time.perf_counter() - started
                record.add(HEADLINE, "seconds", seconds, level=way, **where)
                print(f"    {way:<10} {seconds:7.3f} s", flush=True)

    def reached(self, frame):
        best = select(frame, metric="seconds").groupby("level")["value"].min().reindex(list(WAYS))
        return {
            "time over one core's": {"": best["threads"] / best["one core"]},
            "time over one core's, processes": {"": best["processes"] / best["one core"]},
            "same coefficients": {"": float(select(frame, metric="same coefficients")["value"].min())},
        }
