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
import pandas as pd

from benchmarks import memory
from benchmarks.cases.case import Case, times_faster
from benchmarks.datasets.dataset import Dataset
from benchmarks.datasets.files import load, load_news20
from benchmarks.objectives import accuracy, mean_features
from benchmarks.records import select
from benchmarks.runner import entrants_of, race, record_seconds
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.fit import Fit
from benchmarks.solvers.liblinear import coefficients
from benchmarks.solvers.ours import Exchange, path_fits

CS = np.concatenate([np.linspace(*ends, 5) for ends in [(1, 0.1), (0.09, 0.01), (0.009, 0.001)]])
TEXT_KS = (2000, 500, 100, 20)
TEXT_CS = (0.08, 0.25, 1.0, 3.0)  # L1 keeps 20 to 760 features; beyond, it gets no denser and no better
N_TEXT_CLASSES = {"quick": 4, "default": 20, "full": 20}


@dataclass(frozen=True)
class PathCase(Case):
    """One data set, one grid of k for those who take k, one grid of C for those who take C."""

    name: str
    ks: str  # property of the data set that has the sizes of our path
    Cs: np.ndarray
    C: float  # of our path
    subset: dict[str, Callable[[Dataset], Dataset]]  # for a scale: what of the data is used
    rivals: tuple[str, ...] = ("liblinear_l1", "liblinear_l2")

    def data(self, scale):
        return self.subset.get(scale, lambda whole: whole)(load(self.name))

    def run(self, record, scale):
        data = self.data(scale)
        competitors = choose(*self.rivals)
        levels = {"k": getattr(data, self.ks), "C": list(self.Cs)}
        entrants = {}
        for name, competitor in competitors.items():
            if isinstance(competitor, Exchange):
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
                record.add(name, "accuracy", accuracy(fit, data.X_test, data.y_test), **where)

    def reached(self, frame):
        margins = accuracy_margins(frame, models(frame, "liblinear_l1"))
        worst = min(margins, key=margins.get, default=None)
        return {
            "times faster than L1": {"": times_faster(frame, HEADLINE, "liblinear_l1")},
            "times faster than L2": {"": times_faster(frame, HEADLINE, "liblinear_l2")},
            "accuracy above L1": {} if worst is None else {f"worst at k = {worst:g}": margins[worst]},
        }


def models(frame, competitor):
    """A row per fit, with its features and its accuracy: densest first, of equals the best first."""
    rows = select(frame, competitor=competitor, metric=["features", "accuracy"])
    table = rows.pivot_table(index="level", columns="metric", values="value")
    return table.sort_values(["features", "accuracy"], ascending=False) if len(table) else table


def accuracy_margins(frame, rivals, *, best=False):
    """For each k: our accuracy minus that of the densest rival with no more features, or of the best one."""
    margins = {}
    for k, row in models(frame, HEADLINE).iterrows():
        no_denser = rivals[rivals["features"] <= k] if len(rivals) else rivals
        if len(no_denser):
            others = no_denser["accuracy"]
            margins[k] = row["accuracy"] - (others.max() if best else others.iloc[0])
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


class News20(Case):
    """Claim: on sparse text (`news20`: 12,748 x 62,061, 20 classes, one classifier per class) paths over k =
    2000, 500, 100, 20 take no longer than LIBLINEAR L1 over four values of C and no more than 3 times the
    memory of the CSR matrix, X included; at every k the accuracy is at least that of the best L1 model with
    no more features.

    All methods get the same tf-idf rows. Features are counted per classifier, on average. Times are processor
    times. LIBLINEAR is timed with its default `intercept_scaling`; its accuracy is the better of that and of
    10.
    """

    name = "news20"

    def run(self, record, scale):
        data = load_news20().of_classes(N_TEXT_CLASSES[scale])
        entrants = {HEADLINE: fit_text, "liblinear_l1": fit_text_l1}
        runs = race(entrants, data.X, data.y, small=data.sample(200))
        record_seconds(record, runs, dataset=data.name)
        for name, run in runs.items():
            settings = {"k" if name == HEADLINE else "C": run.result}
            if name == "liblinear_l1":
                settings["C, intercept_scaling=10"] = fit_text_l1(data.X, data.y, intercept_scaling=10)
            for parameter, fit in ((parameter, fit) for parameter, fits in settings.items() for fit in fits):
                where = {"dataset": data.name, "parameter": parameter, "level": fit.level}
                record.add(name, "features", mean_features(fit), **where)
                record.add(name, "accuracy", accuracy(fit, data.X_test, data.y_test), **where)
        if scale != "quick":  # small data take what any fit takes
            taken = memory.measure("sparse", N_TEXT_CLASSES[scale], ",".join(map(str, TEXT_KS)))
            record.add(HEADLINE, "memory over X", taken["multiple"], dataset=data.name)

    def reached(self, frame):
        multiples = select(frame, metric="memory over X", competitor=HEADLINE)["value"]
        settings = select(frame, competitor="liblinear_l1", metric="accuracy")["parameter"].unique()
        rivals = [models(select(frame, parameter=setting), "liblinear_l1") for setting in settings]
        leads = accuracy_margins(frame, pd.concat(rivals), best=True)
        return {
            "times faster than L1": {"": times_faster(frame, HEADLINE, "liblinear_l1")},
            "accuracy above L1": {f"k = {k:g}": lead for k, lead in leads.items()},
            "memory over X": {"": float(multiples.max())},
        }


def fit_text(X, y):
    return path_fits(X, y, TEXT_KS, multi_class="ovr", shared=False)


def fit_text_l1(X, y, intercept_scaling=1.0):
    classes = np.unique(y)
    return [Fit(classes, *coefficients(X, y, C, "l1", intercept_scaling), C, per_class=True) for C in TEXT_CS]
