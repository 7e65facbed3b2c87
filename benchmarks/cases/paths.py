"""Claim: a whole path over k takes a fraction of the time of LIBLINEAR L1 over its values of C, and is
at least as accurate at every k as the densest L1 model with no more features.

The four data sets with several classes; one machine per pair of classes for everybody. L1 tries all its
C; our path has one. On tcga it is the default, elsewhere the one of 0.003 to 10 that 3-fold
cross-validation of a dense LinearSVC on the training rows liked best. Times are those of the processor.
LIBLINEAR is timed with its default `intercept_scaling`; at each C the more accurate of that and of 100
counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks import plots
from benchmarks.cases.case import Case, times_faster
from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import load
from benchmarks.objectives import accuracy, mean_features
from benchmarks.records import select
from benchmarks.runner import entrants_of, race, record_seconds
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.ours import Ours

CS = np.concatenate([np.linspace(*ends, 5) for ends in [(1, 0.1), (0.09, 0.01), (0.009, 0.001)]])


@dataclass(frozen=True)
class PathCase(Case):
    """One data set, one grid of k for those who take k, one grid of C for those who take C."""

    name: str
    ks: str  # property of the data set that has the sizes of our path
    Cs: np.ndarray
    C: float  # of our path
    subset: dict[str, Callable[[Dataset], Dataset]]  # for a scale: what of the data is used
    rivals: tuple[str, ...] = ("liblinear_l1", "liblinear_l2")

    def run(self, record, scale):
        data = self.subset.get(scale, lambda whole: whole)(load(self.name))
        competitors = choose(*self.rivals)
        levels = {"k": getattr(data, self.ks), "C": list(self.Cs)}
        entrants = {}
        for name, competitor in competitors.items():
            if isinstance(competitor, Ours):
                competitor.C = self.C
            entrants |= entrants_of({name: competitor}, "path", record, levels[competitor.levels])
        runs = race(entrants, data.X, data.y, small=data.sample())
        record_seconds(record, runs, dataset=data.name)
        for name, run in runs.items():
            grid = levels[competitors[name].levels]
            others = [other.path(data.X, data.y, grid) for other in competitors[name].other_settings()]
            for settings in zip(run.result, *others, strict=True):
                fit = max(settings, key=lambda fit: accuracy(fit, data.X_test, data.y_test))
                where = {"dataset": data.name, "parameter": competitors[name].levels, "level": fit.level}
                record.add(name, "features", mean_features(fit), **where)
                record.add(name, "train accuracy", accuracy(fit, data.X, data.y), **where)
                record.add(name, "accuracy", accuracy(fit, data.X_test, data.y_test), **where)

    def reached(self, frame):
        margins = accuracy_margins(frame)
        worst = min(margins, key=margins.get, default=None)
        return {
            "times faster than L1": {"": times_faster(frame, HEADLINE, "liblinear_l1")},
            "times faster than L2": {"": times_faster(frame, HEADLINE, "liblinear_l2")},
            "accuracy above L1": {} if worst is None else {f"worst at k = {worst:g}": margins[worst]},
        }

    def plot(self, frame):
        return plots.accuracy_against_features(frame, self.name)


def models(frame, competitor):
    """A row per fit, with its features and its accuracy: densest first, of equals the best first."""
    rows = select(frame, competitor=competitor, metric=["features", "accuracy"])
    table = rows.pivot_table(index="level", columns="metric", values="value")
    return table.sort_values(["features", "accuracy"], ascending=False) if len(table) else table


def accuracy_margins(frame):
    """For each k: our accuracy minus that of the densest L1 model with no more features."""
    margins, rivals = {}, models(frame, "liblinear_l1")
    for k, row in models(frame, HEADLINE).iterrows():
        no_denser = rivals[rivals["features"] <= k] if len(rivals) else rivals
        if len(no_denser):
            margins[k] = row["accuracy"] - no_denser["accuracy"].iloc[0]
    return margins


letters = PathCase(
    "letters",
    "every_k",
    np.append(CS, 1e-4),
    C=10.0,
    subset={"quick": lambda data: data.of_classes(6), "default": lambda data: data.of_classes(13)},
)
optdigits = PathCase("optdigits", "paper_ks", CS, C=0.3, subset={"quick": lambda data: data.of_classes(4)})
splice = PathCase("splice", "paper_ks", CS, C=0.01, subset={})
tcga = PathCase(
    "tcga",
    "paper_ks",
    CS,
    C=1.0,
    subset={"quick": lambda data: data.of_features(1000)},
    rivals=("liblinear_l1",),
)
