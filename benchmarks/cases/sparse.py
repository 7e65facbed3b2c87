"""Claim: on sparse text (`news20`: 12,748 x 62,061, 20 classes, one classifier per class) paths over k =
2000, 500, 100, 20 take no longer than LIBLINEAR L1 over four values of C and no more than 3 times the memory
of the CSR matrix, X included; at every k the accuracy is at least that of the best L1 model with no more
features. On `a9a` sparse and dense data give the same coefficients to 1e-8.

All methods get the same tf-idf rows. Features are counted per classifier, on average. Times are processor
times. LIBLINEAR is timed with its default `intercept_scaling`; its accuracy is the better of that and of 10.
"""

import warnings

import numpy as np
import pandas as pd

from benchmarks import memory
from benchmarks.cases.case import Case, times_faster
from benchmarks.cases.paths import models
from benchmarks.datasets.files import load_sparse
from benchmarks.records import select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.fit import unfinished_allowed
from benchmarks.solvers.liblinear import linear_svc
from kmargin import SparseSVC, sparse_svm_path

KS = (2000, 500, 100, 20)
CS = (0.08, 0.25, 1.0, 3.0)  # L1 keeps 20 to 760 features; beyond, it gets no denser and no better
N_CLASSES = {"quick": 4, "default": 20, "full": 20}


class News20(Case):
    name = "news20"

    def run(self, record, scale):
        data = load_sparse("news20").of_classes(N_CLASSES[scale])
        competitors = choose("liblinear_l1")
        entrants = {HEADLINE: fit_ours, "liblinear_l1": fit_l1}
        runs = race(entrants, data.X, data.y, small=data.sample(200))
        record_seconds(record, competitors, runs, dataset=data.name)
        for name, run in runs.items():
            settings = {competitors[name].levels: run.result}
            if name == "liblinear_l1":
                settings["C, intercept_scaling=10"] = fit_l1(data.X, data.y, intercept_scaling=10)
            for parameter, level, features, predict in (
                (parameter, *fit) for parameter, fits in settings.items() for fit in fits
            ):
                where = {"dataset": data.name, "version": competitors[name].version()}
                where |= {"parameter": parameter, "level": level}
                record.add(name, "features", features, **where)
                record.add(name, "accuracy", np.mean(predict(data.X_test) == data.y_test), **where)
        if scale != "quick":  # small data take what any fit takes
            taken = memory.measure("sparse", "news20", N_CLASSES[scale], ",".join(map(str, KS)))
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
    with unfinished_allowed():
        path = sparse_svm_path(X, y, KS, multi_class="ovr", shared=False)
    features = [np.mean([len(s.support) for s in row]) for row in path.solutions]
    return [(k, mean, lambda X, k=k: path.predict(X, k)) for k, mean in zip(path.ks, features, strict=True)]


def fit_l1(X, y, intercept_scaling=1.0):
    fits = []
    for C in CS:
        with unfinished_allowed():
            model = linear_svc(C, "l1", intercept_scaling).fit(X, y)
        fits.append((C, np.mean(np.count_nonzero(model.coef_, axis=1)), model.predict))
    return fits


class A9a(Case):
    name = "a9a"

    def run(self, record, scale):
        data = load_sparse("a9a")
        warnings.simplefilter("ignore", UserWarning)  # of columns that repeat another in a few rows
        ks = (10,) if scale == "quick" else (60, 30, 10, 3, 1)
        competitors = choose()
        for k in ks:
            fits = {
                "sparse": lambda X, y, k=k: SparseSVC(k).fit(X, y),
                "dense": lambda X, y, k=k: SparseSVC(k).fit(X.toarray(), y),
            }
            runs = race(fits, data.X, data.y, small=data.sample(), repeats=1)
            sparse, dense = (runs[kind].result for kind in ("sparse", "dense"))
            where = {"dataset": data.name, "parameter": "k", "level": k}
            where["version"] = competitors[HEADLINE].version()
            for kind, run in runs.items():
                record.add(HEADLINE, f"seconds, {kind}", run.seconds[0], **where)
            gap = np.abs(np.append(sparse.coef_ - dense.coef_, sparse.intercept_ - dense.intercept_))
            record.add(HEADLINE, "difference", gap.max(), **where)
            record.add(HEADLINE, "accuracy", sparse.score(data.X_test, data.y_test), **where)

    def reached(self, frame):
        seconds = [select(frame, metric=f"seconds, {kind}")["value"].sum() for kind in ("dense", "sparse")]
        return {
            "difference": {"": float(select(frame, metric="difference")["value"].max())},
            "times faster than dense": {"": float(seconds[0] / seconds[1])},
        }


news20, a9a = News20(), A9a()
