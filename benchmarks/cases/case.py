"""What every case has to offer, and the ratios that several cases report."""

import numpy as np

from benchmarks.records import by_competitor, select
from benchmarks.solvers import HEADLINE, OURS


class Case:
    """Measuring and judging are apart: `reached` and `tables` work on any results, old or new."""

    name: str

    def run(self, record, scale):
        """Measure. The scale is "quick", "default" or "full"."""
        raise NotImplementedError

    def reached(self, frame):
        """The numbers that `targets.csv` has bounds for: claim -> part of it (a shape, a k, ...) -> number.

        What was not measured is left out, or not a number.
        """
        raise NotImplementedError

    def tables(self, frame):
        """Tables to be shown below the claims."""
        return []


def best_seconds(frame, competitor):
    """The best time; not a number if there is none."""
    return float(select(frame, metric="seconds", competitor=competitor)["value"].min())


def times_faster(frame, ours, other):
    """The best time of another over ours."""
    return best_seconds(frame, other) / best_seconds(frame, ours)


def by_dataset(frame, function, *arguments, competitor=HEADLINE):
    """A figure for each data set that the competitor was measured on: a function of its rows."""
    groups = frame.dropna(subset="dataset").groupby("dataset", sort=False)
    return {
        str(name): function(rows, *arguments)
        for name, rows in groups
        if competitor in set(rows["competitor"])
    }


def peers_of(frame):
    """The competitors that are not ours."""
    return sorted(set(select(frame, metric="accuracy")["competitor"]) - OURS)


def by_seed(frame, metric):
    """A row per data set and seed, a column per competitor; of several times the best."""
    return by_competitor(select(frame, metric=metric), "dataset", "seed", aggfunc="min")


def speed(frame, ours, peer):
    """The peer's time over ours: best time of each seed, then the median of the seeds."""
    medians = by_seed(frame, "seconds").median()
    return float(medians.get(peer, np.nan) / medians[ours])


def largest_excess(frame, ours, peers=None, tolerance=1e-6):
    """By how much our objective exceeds the lowest of the peers', relative to it, in the worst seed.

    Two exact refits of one support differ by less than the tolerance.
    """
    table, peers = by_seed(frame, "objective"), peers or peers_of(frame)
    worst = float((table[ours] / table[peers].min(axis=1) - 1).max())
    return 0.0 if abs(worst) < tolerance else worst


def lead(frame, metric, ours, peers=None):
    """Our mean over the seeds minus that of the best peer."""
    means = by_seed(frame, metric).mean()
    return float(means[ours] - means.reindex(peers or peers_of(frame)).max())
