"""Claim: at fixed k, time and memory of a fit grow at most linearly in the rows and in the columns.

One of n, p and k is doubled at a time, the other two stay. The exponent is the slope of a least-squares
line through the logarithms, and 1.05 is the bound: 1, and room for the error of such a slope. How both
grow with k is reported. Times are the processor's, the median of three seeds; memory is the peak above X,
in a process of its own (`memory.py`). Where n grows, the smallest fit works on 250 MB already: while data
and work arrays outgrow the caches, a row takes up to a third longer, and that would pass for growth.
"""

import numpy as np

from benchmarks import memory
from benchmarks.cases.case import Case
from benchmarks.datasets.simulated import dense
from benchmarks.objectives import lam_of
from benchmarks.records import select
from benchmarks.runner import timed
from benchmarks.solvers import HEADLINE, choose

C = 1.0
SECONDS, BYTES = "seconds of processor time", "bytes above X"
BASE = {  # what stays fixed while another grows
    "n": {"p": 50, "k": 10},
    "p": {"n": 2_000, "k": 20},
    "k": {"n": 10_000, "p": 1_000},
}
FIRST = {"n": 400_000, "p": 5_000, "k": 10}
N_SIZES = {"quick": 3, "default": 4, "full": 5}
N_SEEDS = {"quick": 1, "default": 3, "full": 3}


class Growth(Case):
    name = "growth"

    def run(self, record, scale):
        ours = choose()[HEADLINE]
        small = dense(500, 50, 5)
        ours.fixed(small.X, small.y, 5, lam_of(C, 500))
        for parameter, first in FIRST.items():
            for level in (first * 2**step for step in range(N_SIZES[scale])):
                size = BASE[parameter] | {parameter: level}
                name = f"{size['n']}x{size['p']}, k = {size['k']}"
                where = {"dataset": name, "parameter": parameter, "level": level}
                for seed in range(N_SEEDS[scale]):
                    record.add(HEADLINE, SECONDS, fit_seconds(ours, **size, seed=seed), seed=seed, **where)
                taken = memory.measure("dense", HEADLINE, size["n"], size["p"], size["k"], C)[BYTES]
                record.add(HEADLINE, BYTES, taken, **where)
                print(f"    {name}: {taken / 1e6:.0f} MB above X", flush=True)

    def reached(self, frame):
        reached = {}
        for metric, what in ((SECONDS, "time"), (BYTES, "memory")):
            for parameter in FIRST:
                rows = select(frame, metric=metric, parameter=parameter)
                sizes = rows.groupby("level")["value"].median()
                if len(sizes) > 2:
                    claim = f"exponent of {what} in {'k' if parameter == 'k' else 'rows and columns'}"
                    slope, _ = np.polyfit(np.log(sizes.index.to_numpy(float)), np.log(sizes), 1)
                    reached.setdefault(claim, {})[parameter] = float(slope)
        return reached


def fit_seconds(ours, n, p, k, seed):
    """Processor time of a fit."""
    data = dense(n, p, k, seed)
    return timed(ours.fixed, data.X, data.y, k, lam_of(C, n))[1]
