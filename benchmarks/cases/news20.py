"""Claim: on sparse text (`news20`: 12,748 x 62,061, 20 classes, one classifier per class) paths over k =
2000, 500, 100, 20 take no longer than LIBLINEAR L1 over four values of C and no more than 3 times the memory
of the CSR matrix, X included; at every k the accuracy is at least that of the best L1 model with no more
features.

All methods get the same tf-idf rows. Features are counted per classifier, on average. Times are processor
times. LIBLINEAR is timed with its default `intercept_scaling`; its accuracy is the better of that and of 10.
"""

import numpy as np
import pandas as pd

from benchmarks import memory
from benchmarks.cases.case import Case, times_faster
from benchmarks.cases.paths import models
from benchmarks.datasets.files import load_news20
from benchmarks.objectives import accuracy, mean_features
from benchmarks.records import select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE
from benchmarks.solvers.fit import Fit
from benchmarks.solvers.liblinear import coefficients
from benchmarks.solvers.ours import path_fits

KS = (2000, 500, 100, 20)
CS = (0.08, 0.25, 1.0, 3.0)  # L1 keeps 20 to 760 features; beyond, it gets no denser and no better
N_CLASSES = {"quick": 4, "default": 20, "full": 20}


class News20(Case):
    name = "news20"

    def run(self, record, scale):
        data = load_news20().of_classes(N_CLASSES[scale])
        entrants = {HEADLINE: fit_ours, "liblinear_l1": fit_l1}
        runs = race(entrants, data.X, data.y, small=data.sample(200))
        record_seconds(record, runs, dataset=data.name)
        for name, run in runs.items():
            settings = {"k" if name == HEADLINE else "C": run.result}
            if name == "liblinear_l1":
                settings["C, intercept_scaling=10"] = fit_l1(data.X, data.y, intercept_scaling=10)
            for parameter, fit in ((parameter, fit) for parameter, fits in settings.items() for fit in fits):
                where = {"dataset": data.name, "parameter": parameter, "level": fit.level}
                record.add(name, "features", mean_features(fit), **where)
                record.add(name, "accuracy", accuracy(fit, data.X_test, data.y_test), **where)
        if scale != "quick":  # small data take what any fit takes
            taken = memory.measure("sparse", N_CLASSES[scale], ",".join(map(str, KS)))
            record.add(HEADLINE, "memory over X", taken["multiple"], dataset=data.name)

    def reached(self, frame):
        multiples = select(frame, metric="memory over X", competitor=HEADLINE)["value"]
        return {
            "times faster than L1": {"": times_faster(frame, HEADLINE, "liblinear_l1")},
            "accuracy above L1": leads(frame),
            "memory over X": {"": float(multiples.max())},
        }


def leads(frame):
    """For each k: our accuracy minus the best of L1 with no more features."""
    settings = select(frame, competitor="liblinear_l1", metric="accuracy")["parameter"].unique()
    rivals = pd.concat([models(select(frame, parameter=setting), "liblinear_l1") for setting in settings])
    found = {}
    for k, row in models(frame, HEADLINE).iterrows():
        no_denser = rivals[rivals["features"] <= k]
        if len(no_denser):
            found[f"k = {k:g}"] = row["accuracy"] - no_denser["accuracy"].max()
    return found


def fit_ours(X, y):
    return path_fits(X, y, KS, multi_class="ovr", shared=False)


def fit_l1(X, y, intercept_scaling=1.0):
    classes = np.unique(y)
    return [Fit(classes, *coefficients(X, y, C, "l1", intercept_scaling), C, per_class=True) for C in CS]
