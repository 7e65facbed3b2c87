"""Claim: with 100,000 rows and 200 columns, k = 20 takes no longer than one dense LinearSVC, and no more
memory than 1.3 times X.
"""

from benchmarks import memory
from benchmarks.cases.case import Case, times_faster
from benchmarks.datasets.simulated import dense
from benchmarks.objectives import accuracy, lam_of, share_found
from benchmarks.records import select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE, choose

K = 20
C = 1.0
SHAPES = {"quick": (20_000, 200), "default": (100_000, 200), "full": (100_000, 200)}


class Dense(Case):
    name = "dense_100k"

    def run(self, record, scale):
        shape = SHAPES[scale]
        data = dense(*shape, K)
        competitors = choose("liblinear_l2")
        entrants = {
            HEADLINE: lambda X, y: competitors[HEADLINE].fixed(X, y, K, lam_of(C, len(y))),
            "liblinear_l2": lambda X, y: competitors["liblinear_l2"].path(X, y, [C])[0],
        }
        runs = race(entrants, data.X, data.y, small=data.sample(500))
        where = {"dataset": data.name, "seed": 0}
        record_seconds(record, runs, **where)
        for name, run in runs.items():
            record.add(name, "share found", share_found(run.result.support, data.causal), **where)
            record.add(name, "train accuracy", accuracy(run.result, data.X, data.y), **where)
        del data, runs
        for name in competitors:
            multiple = memory.measure("dense", name, *shape, K, C)["multiple"]
            record.add(name, "memory over X", multiple, **where)

    def reached(self, frame):
        multiples = select(frame, metric="memory over X", competitor=HEADLINE)["value"]
        return {
            "times faster than LinearSVC": {"": times_faster(frame, HEADLINE, "liblinear_l2")},
            "memory over X": {"": float(multiples.max())},
        }
