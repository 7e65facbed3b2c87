"""Claim: on at least 98 % of the 325 pairs of letters the support found for k = 2, 4 and 8 of the 16
features is the best there is.

lam = 1e-4. A support counts as the best if its exact refit is within 1e-6 of what the exhaustive search
found. The fits for one k come from a path over all k, as for any user of the path; fits of a single
k are listed beside them.
"""

import pandas as pd
from matplotlib.figure import Figure

from benchmarks import plots
from benchmarks.cases.case import Reached
from benchmarks.datasets import load
from benchmarks.grids import C_of, ks_all
from benchmarks.objectives import refit
from benchmarks.oracle import KS, LAM, Pair, find_optima, pairs_of
from benchmarks.records import Recorder, select
from benchmarks.solvers import HEADLINE, Competitor, choose
from benchmarks.solvers.ours import Ours

TOLERANCE = 1e-6
EVERY = {"quick": 15, "default": 1, "full": 1}  # which pairs: one in so many
SLOW_EVERY = {"quick": 30, "default": 10, "full": 1}  # the same for all but the headline solver


class GlobalOptimum:
    name = "global_optimum"

    def run(self, record: Recorder, scale: str) -> None:
        data = load("letters")
        all_pairs = pairs_of(data)
        pairs = all_pairs[:: EVERY[scale]]
        print(f"    exhaustive search, {len(pairs)} pairs (kept for the next run)", flush=True)
        optima = find_optima(pairs)
        for name, competitor in choose("mm", "sd", "abess", "skscope").items():
            if not competitor.is_installed():
                record.add(name, "not installed", 1)
                continue
            few = all_pairs[:: SLOW_EVERY[scale]]
            used = pairs if name == HEADLINE else [pair for pair in few if (pair.name, KS[0]) in optima]
            for pair in used:
                self.run_pair(record, competitor, pair, optima, data.name)

    def run_pair(
        self,
        record: Recorder,
        competitor: Competitor,
        pair: Pair,
        optima: dict[tuple[str, int], float],
        dataset: str,
    ) -> None:
        def add(label: str, k: int, support: object) -> None:
            found = refit(pair.X, pair.y, support, LAM).objective
            where = {"dataset": f"{dataset} {pair.name}", "parameter": "k", "level": k}
            record.add(label, "objective over optimum", found / optima[pair.name, k], **where)

        for k in KS:
            add(f"{competitor.name}, one k", k, competitor.fixed(pair.X, pair.y, k, LAM).support)
        if isinstance(competitor, Ours):
            competitor.C = C_of(LAM, len(pair.y))
            for fit in competitor.path(pair.X, pair.y, ks_all(pair.X.shape[1])):
                if fit.level in KS:
                    add(competitor.name, int(fit.level), fit.support)

    def reached(self, frame: pd.DataFrame) -> Reached:
        shares = optimal_shares(frame)
        return {
            "share at the optimum": {f"k = {k:g}": s for k, s in shares.loc[HEADLINE].items()},
            "share at the optimum, fits of one k": {
                f"k = {k:g}": s for k, s in shares.loc[f"{HEADLINE}, one k"].items()
            },
        }

    def plot(self, frame: pd.DataFrame) -> Figure:
        return plots.bars(optimal_shares(frame), "share of the pairs at the global optimum", "k of 16")


def optimal_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per competitor, a column per k."""
    rows = select(frame, metric="objective over optimum")
    hits = rows.assign(value=rows["value"] <= 1 + TOLERANCE)
    return hits.pivot_table(index="competitor", columns="level", values="value", aggfunc="mean")
