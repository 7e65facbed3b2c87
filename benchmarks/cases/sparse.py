"""Claim: on sparse text (`news20`: 12,748 x 62,061, 20 classes, one machine per class) paths over k = 2000,
500, 100, 20 take no longer than LIBLINEAR L1 over four values of C and no more than 3 times the memory of
the CSR matrix, X included; at every k the accuracy is at least that of the best L1 model with no more
features. On `a9a` sparse and dense data give the same coefficients to 1e-8.

Everybody gets the same tf-idf rows. Features are counted per machine, as the mean over machines. Times
are those of the processor: both take one thread, and on a busy machine the clock on the wall misleads.
LIBLINEAR is timed with its default `intercept_scaling`; its accuracy is the better of that and of 10.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.svm import LinearSVC

from benchmarks.cases.case import Reached, drop_missing
from benchmarks.cases.paths import models
from benchmarks.datasets.files import ROOT
from benchmarks.datasets.text import load_sparse
from benchmarks.records import Recorder, select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.fit import unfinished_allowed
from kmargin import SparseSVC, sparse_svm_path

KS = (2000, 500, 100, 20)
CS = (0.08, 0.25, 1.0, 3.0)  # L1 keeps 20 to 760 features; beyond, it gets no denser and no better
CPU_SECONDS = "seconds of processor time"
N_CLASSES = {"quick": 4, "default": 20, "full": 20}


class News20:
    name = "news20"

    def run(self, record: Recorder, scale: str) -> None:
        data = load_sparse("news20").of_classes(N_CLASSES[scale])
        competitors = choose("liblinear_l1")
        entrants = {HEADLINE: on_processor(fit_ours), "liblinear_l1": on_processor(fit_l1)}
        runs = race(entrants, data.X, data.y, small=data.sample(200))
        record_seconds(record, competitors, runs, dataset=data.name)
        for name, run in runs.items():
            fits, seconds = run.result
            record.add(name, CPU_SECONDS, seconds, dataset=data.name)
            settings = {competitors[name].levels: fits}
            if name == "liblinear_l1":
                settings["C, intercept_scaling=10"] = fit_l1(data.X, data.y, intercept_scaling=10)
            for parameter, level, features, predict in (
                (parameter, *fit) for parameter, fits in settings.items() for fit in fits
            ):
                where: dict[str, Any] = {"dataset": data.name, "version": competitors[name].version()}
                where |= {"parameter": parameter, "level": level}
                record.add(name, "features", features, **where)
                record.add(name, "accuracy", np.mean(predict(data.X_test) == data.y_test), **where)
        if scale != "quick":  # small data take what any fit takes
            record.add(HEADLINE, "memory over X", peak_memory(N_CLASSES[scale]), dataset=data.name)

    def reached(self, frame: pd.DataFrame) -> Reached:
        memory = select(frame, metric="memory over X", competitor=HEADLINE)["value"]
        ours, theirs = (
            select(frame, metric=CPU_SECONDS, competitor=name)["value"].min()
            for name in (HEADLINE, "liblinear_l1")
        )
        return drop_missing(
            {
                "times faster than L1": {"": float(theirs / ours)},
                "accuracy above L1": leads(frame),
                "memory over X": {"": float(memory.max())},
            }
        )

    def plot(self, frame: pd.DataFrame) -> None:
        return None


def leads(frame: pd.DataFrame) -> dict[str, float]:
    """For each k: our accuracy minus the best of L1 with no more features."""
    settings = select(frame, competitor="liblinear_l1", metric="accuracy")["parameter"].unique()
    rivals = pd.concat([models(select(frame, parameter=setting), "liblinear_l1") for setting in settings])
    found = {}
    for k, row in models(frame, HEADLINE).iterrows():
        no_denser = rivals[rivals["features"] <= k]
        if len(no_denser):
            found[f"k = {k:g}"] = row["accuracy"] - no_denser["accuracy"].max()
    return found


def on_processor(fit: Callable[..., Any]) -> Callable[..., tuple[Any, float]]:
    """The same, with the seconds of processor time it took."""

    def timed(X: scipy.sparse.csr_matrix, y: np.ndarray) -> tuple[Any, float]:
        started = time.process_time()
        fitted = fit(X, y)
        return fitted, time.process_time() - started

    return timed


def fit_ours(X: scipy.sparse.csr_matrix, y: np.ndarray) -> list[tuple]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # words that always come together
        path = sparse_svm_path(X, y, KS, multi_class="ovr", shared=False)
    features = [np.mean([len(s.support) for s in row]) for row in path.solutions]
    return [(k, mean, lambda X, k=k: path.predict(X, k)) for k, mean in zip(path.ks, features, strict=True)]


def fit_l1(X: scipy.sparse.csr_matrix, y: np.ndarray, intercept_scaling: float = 1.0) -> list[tuple]:
    fits = []
    for C in CS:
        with unfinished_allowed():
            model = LinearSVC(
                penalty="l1", dual=False, C=C, intercept_scaling=intercept_scaling, random_state=0
            ).fit(X, y)
        fits.append((C, np.mean(np.count_nonzero(model.coef_, axis=1)), model.predict))
    return fits


def peak_memory(n_classes: int) -> float:
    """Peak resident memory of our path, X included, as a multiple of X; in a process of its own."""
    ks = ",".join(map(str, KS))
    command = [sys.executable, "-m", "benchmarks.sparse_memory", "news20", str(n_classes), ks]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return float(json.loads(output.splitlines()[-1])["multiple"])


class A9a:
    name = "a9a"

    def run(self, record: Recorder, scale: str) -> None:
        data = load_sparse("a9a")
        warnings.simplefilter("ignore", UserWarning)  # of columns that repeat another in a few rows
        ks = (10,) if scale == "quick" else (60, 30, 10, 3, 1)
        competitors = choose()
        for k in ks:
            fits = {
                "sparse": on_processor(lambda X, y, k=k: SparseSVC(k).fit(X, y)),
                "dense": on_processor(lambda X, y, k=k: SparseSVC(k).fit(X.toarray(), y)),
            }
            runs = race(fits, data.X, data.y, small=data.sample(), repeats=1)
            sparse, dense = (runs[kind].result[0] for kind in ("sparse", "dense"))
            where: dict[str, Any] = {"dataset": data.name, "parameter": "k", "level": k}
            where["version"] = competitors[HEADLINE].version()
            for kind, run in runs.items():
                record.add(HEADLINE, f"seconds, {kind}", run.result[1], **where)
            gap = np.abs(np.append(sparse.coef_ - dense.coef_, sparse.intercept_ - dense.intercept_))
            record.add(HEADLINE, "difference", gap.max(), **where)
            record.add(HEADLINE, "accuracy", sparse.score(data.X_test, data.y_test), **where)

    def reached(self, frame: pd.DataFrame) -> Reached:
        seconds = [select(frame, metric=f"seconds, {kind}")["value"].sum() for kind in ("dense", "sparse")]
        return drop_missing(
            {
                "difference": {"": float(select(frame, metric="difference")["value"].max())},
                "times faster than dense": {"": float(seconds[0] / seconds[1])},
            }
        )

    def plot(self, frame: pd.DataFrame) -> None:
        return None


news20, a9a = News20(), A9a()
