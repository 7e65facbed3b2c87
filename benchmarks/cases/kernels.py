"""Claim: of 20,000 rows a kernel classifier keeps at least 20 times fewer points than SVC does, predicts at
least 20 times faster and within half a point of its accuracy; and 50,000 x 50 with k = 100 takes less than 2
GB beyond X, a tenth of the kernel matrix.

k is a twentieth of the points that SVC keeps; C (1, 10 or 100) and gamma (three values for each problem) of
either are those that predict the last fifth of the training rows best after a fit to the others. Times are
processor times.
"""

from dataclasses import replace
from typing import NamedTuple

from sklearn.svm import SVC

from benchmarks import memory
from benchmarks.cases.case import Case, by_dataset
from benchmarks.datasets.files import load
from benchmarks.datasets.simulated import arms, clusters, shells
from benchmarks.records import select
from benchmarks.runner import race, record_seconds, timed
from benchmarks.solvers import HEADLINE
from benchmarks.solvers.fit import unfinished_allowed
from kmargin import KernelSparseSVC

ROWS = {"quick": 3_000, "default": 20_000, "full": 20_000}
N_TEST = 10_000
LARGE = {"quick": (8_000, 20, 20), "default": (50_000, 50, 100), "full": (50_000, 50, 100)}


class Settings(NamedTuple):
    k: int
    ours: tuple[float, float]  # C and gamma
    svc: tuple[float, float]


def letter_halves(n, n_test):
    """A to M against N to Z: two classes of thirteen clusters each."""
    data = load("letters")
    return replace(data, X=data.X[:n], y=data.y[:n] > "M", y_test=data.y_test > "M")


PROBLEMS = {
    clusters: Settings(428, (10.0, 0.02), (1.0, 0.04)),
    shells: Settings(289, (10.0, 0.4), (100.0, 0.2)),
    arms: Settings(326, (1.0, 0.8), (1.0, 1.6)),
    letter_halves: Settings(253, (100.0, 4.0), (10.0, 16.0)),
}


def compare(record, data, settings):
    """Fit ours and SVC, and record accuracy, points and times; the shortest of three predictions counts."""
    (C, gamma), (svc_C, svc_gamma) = settings.ours, settings.svc
    ours = KernelSparseSVC(settings.k, C=C, gamma=gamma, solver=HEADLINE, shared=False, random_state=0)
    models = {HEADLINE: ours, "svc": SVC(C=svc_C, gamma=svc_gamma)}
    with unfinished_allowed():
        fits = {name: model.fit for name, model in models.items()}
        runs = race(fits, data.X, data.y, small=(data.X[:500], data.y[:500]), repeats=1)
    where = {"dataset": data.name, "seed": 0}
    record_seconds(record, runs, **where)
    for name, run in runs.items():
        predictions, seconds = zip(*(timed(run.result.predict, data.X_test) for _ in range(3)), strict=True)
        record.add(name, "accuracy", float((predictions[0] == data.y_test).mean()), **where)
        record.add(name, "points kept", len(run.result.support_), **where)
        record.add(name, "fit seconds", run.seconds[0], **where)
        record.add(name, "prediction seconds", min(seconds), **where)


def means(frame, metric):
    """Our mean and SVC's."""
    by_competitor = select(frame, metric=metric).groupby("competitor")["value"].mean()
    return float(by_competitor[HEADLINE]), float(by_competitor["svc"])


class KernelBlocks(Case):
    name = "kernel_blocks"

    def run(self, record, scale):
        for make, settings in PROBLEMS.items():
            data = make(ROWS[scale], N_TEST)
            if scale == "quick":
                settings = settings._replace(k=settings.k // 5)
            compare(record, data, settings)
        n, p, k = LARGE[scale]
        where = {"dataset": f"{n}x{p}", "seed": 0}
        for metric, value in memory.measure("kernel", n, p, k).items():
            record.add("kmargin", metric, value, **where)
        record.add("kmargin", "matrix bytes", 8.0 * n * n, **where)

    def reached(self, frame):
        accuracy = by_dataset(frame, means, "accuracy")
        reached = {"accuracy above SVC": {part: ours - svc for part, (ours, svc) in accuracy.items()}}
        for claim, metric in (
            ("times fewer points", "points kept"),
            ("times faster prediction", "prediction seconds"),
            ("times faster fit", "fit seconds"),
        ):
            ratios = by_dataset(frame, means, metric).items()
            reached[claim] = {part: svc / ours for part, (ours, svc) in ratios}
        for part, rows in select(frame, competitor="kmargin").groupby("dataset"):
            values = rows.set_index("metric")["value"]
            reached["GB beyond X"] = {str(part): values["bytes"] / 2**30}
            reached["times the matrix"] = {str(part): values["bytes"] / values["matrix bytes"]}
        return reached
