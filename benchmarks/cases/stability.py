"""Claim: stability selection keeps its bounds, and finds more true features than the same procedure with L1;
50 pairs of halves of 200 x 10,000, k = 20, take no longer than 20 L1 fits.

10 of 1000 features decide between two classes; they are independent, or correlated by 0.5 within blocks of
10. Both competitors select 10 features on each of the same 100 halves, so that their bounds are the same. The
default C of `StabilitySelection` was chosen on other draws of such data. Counted are the features found at
the lowest threshold that keeps a bound to 1, and at a threshold of 0.9. Features that are only correlated
with a true one count as false, though no bound is about them.
"""

from itertools import product

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.svm import LinearSVC, l1_min_c

from benchmarks.cases.case import Case
from benchmarks.datasets.simulated import scattered
from benchmarks.records import by_competitor, select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers.fit import supports_within
from kmargin import SelectionBounds, StabilitySelection

K, TIMED_K, ALLOWED = 10, 20, 1.0
HIGH = "threshold 0.9"
OURS, L1, L1_FIT = "kmargin", "l1_halves", "liblinear_l1"
N_FITS = 20  # of L1, that all halves together may take as long as
SCALES = {  # rows, draws
    "quick": ((200,), 1),
    "default": ((100, 200, 400), 20),
    "full": ((100, 200, 400), 50),
}
STRENGTHS, CORRELATIONS = (1.0, 2.0), (0.0, 0.5)


class Stability(Case):
    name = "stability"

    def run(self, record, scale):
        sizes, n_draws = SCALES[scale]
        self.run_time(record)
        for strength, correlation, n in product(STRENGTHS, CORRELATIONS, sizes):
            for seed in range(n_draws):
                self.run_draw(record, scattered(n, seed, correlation, strength), seed)

    def run_time(self, record):
        data = scattered(200, 0, p=10_000)
        entrants = {
            OURS: lambda X, y: StabilitySelection(k=TIMED_K, random_state=0).fit(X, y),
            L1_FIT: lambda X, y: LinearSVC(penalty="l1", dual=False).fit(X, y),
        }
        small = scattered(100, 0)
        runs = race(entrants, data.X, data.y, small=(small.X, small.y), patience=60)
        record_seconds(record, runs, dataset=data.name)

    def run_draw(self, record, data, seed):
        selections = {
            OURS: StabilitySelection(k=K, random_state=seed),
            L1: StabilitySelection(L1OfSize(K), random_state=seed),
        }
        where = {"dataset": data.name, "seed": seed}
        for name, selection in selections.items():
            selection.fit(data.X, data.y)
            record.add(name, "selected on a half", selection.q_, **where)
            levels = {bound: selection.threshold_for(ALLOWED, bound) for bound in SelectionBounds._fields}
            for level, threshold in (levels | {HIGH: 0.9}).items():
                stable = np.flatnonzero(selection.frequencies_ >= threshold - 1e-9)
                true = len(np.intersect1d(stable, data.causal))
                for metric, value in (("true found", true), ("false found", len(stable) - true)):
                    record.add(name, metric, value, parameter=level, level=threshold, **where)
        print(f"    {data.name}, draw {seed}", flush=True)

    def reached(self, frame):
        true, false = (means(frame, metric) for metric in ("true found", "false found"))
        seconds = select(frame, metric="seconds").groupby("competitor")["value"].min()
        true = true.drop(index=HIGH, level="parameter")
        false = false.drop(index=HIGH, level="parameter")
        worst = false[OURS].groupby("dataset", sort=False).max()
        lead = (true[OURS] - true[L1]).xs("r_concave", level="parameter")
        return {
            "false found": {str(d): float(value) for d, value in worst.items()},
            "true found above L1": {str(d): round(float(value), 9) for d, value in lead.items()},
            "time over 20 L1 fits": {"": seconds[OURS] / (N_FITS * seconds[L1_FIT])},
        }

    def tables(self, frame):
        """Means over the draws, at the lowest of the thresholds and at 0.9."""
        tables = []
        for metric in ("true found", "false found"):
            table = means(select(frame, parameter=["r_concave", HIGH]), metric)
            table.index = pd.Index([f"{d}, {b}" for d, b in table.index], name=metric)
            tables.append(table.round(2))
        return tables


def means(frame, metric):
    """A row for each data set and bound, a column for each competitor."""
    return by_competitor(select(frame, metric=metric), "dataset", "parameter")


class L1OfSize(BaseEstimator):
    """L1 with at most k features: C by bisection."""

    def __init__(self, k):
        self.k = k

    def fit(self, X, y):
        def support_at(C):
            return np.flatnonzero(LinearSVC(penalty="l1", dual=False, C=C, tol=1e-3).fit(X, y).coef_)

        (support,) = supports_within([self.k], support_at, start=l1_min_c(X, y, loss="squared_hinge"))
        self.coef_ = np.zeros((1, X.shape[1]))
        self.coef_[0, support] = 1.0  # only the selection counts
        return self
