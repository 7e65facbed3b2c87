"""Claim: choosing k and C by 10-fold cross-validation is faster than abess's own cross-validation over
the same ks and than GridSearchCV over ten Cs of LIBLINEAR L1, and the chosen model is better.

A dozen ks, three ridges; the same folds for everybody who takes folds. Times are those of the processor.
LIBLINEAR is timed with its default `intercept_scaling`; the better of that and of 100 counts.
"""

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks import plots
from benchmarks.cases.case import Case, by_dataset, lead, speed
from benchmarks.datasets.simulated import hyperplane
from benchmarks.objectives import accuracy, f1
from benchmarks.runner import installed, race, record_seconds
from benchmarks.solvers import HEADLINE, choose

N_CAUSAL = 50
KS = (5, 10, 20, 30, 40, 45, 50, 55, 60, 75, 100, 150)
LAMS = (1e-2, 1e-3, 3e-4)
RIVALS = ("abess", "liblinear_l1")
SCALES = {  # (rows, columns), folds, seeds
    "quick": (((500, 200),), 5, 1),
    "default": (((1000, 500), (500, 1000)), 10, 1),
    "full": (((1000, 500), (500, 1000), (5000, 500)), 10, 5),
}


class CrossValidation(Case):
    name = "crossval"

    def run(self, record, scale):
        shapes, n_folds, n_seeds = SCALES[scale]
        for shape in shapes:
            for seed in range(n_seeds):
                self.run_one(record, hyperplane(*shape, N_CAUSAL, seed), n_folds, seed)

    def run_one(self, record, data, n_folds, seed):
        competitors = installed(choose(*RIVALS), "crossval", record)
        entrants = {
            name: lambda X, y, c=c: c.crossval(X, y, KS, LAMS, folds_of(X, y, n_folds))
            for name, c in competitors.items()
        }
        small = data.X[:200, :160].copy(), data.y[:200]
        runs = race(entrants, data.X, data.y, small=small, repeats=1)
        where = {"dataset": data.name, "seed": seed}
        record_seconds(record, runs, **where)
        for name, run in runs.items():
            folds = folds_of(data.X, data.y, n_folds)
            others = competitors[name].other_settings()
            fits = [run.result] + [other.crossval(data.X, data.y, KS, LAMS, folds) for other in others]
            best = max(fits, key=lambda fit: accuracy(fit, data.X_test, data.y_test))
            record.add(name, "f1", max(f1(fit.support, data.causal) for fit in fits), **where)
            record.add(name, "accuracy", accuracy(best, data.X_test, data.y_test), **where)
            record.add(name, "features", len(best.support), **where)

    def reached(self, frame):
        return {
            "times faster than abess": by_dataset(frame, speed, HEADLINE, "abess"),
            "times faster than L1": by_dataset(frame, speed, HEADLINE, "liblinear_l1"),
            "F1 above the best peer": by_dataset(frame, lead, "f1", HEADLINE),
            "accuracy above the best peer": by_dataset(frame, lead, "accuracy", HEADLINE),
        }

    def plot(self, frame):
        return plots.tradeoff(frame, "f1", "F1 of the chosen features")


def folds_of(X, y, n_folds):
    """The number of the fold in which each row is left out."""
    folds = np.empty(len(y), dtype=int)
    for number, (_, left_out) in enumerate(StratifiedKFold(n_folds).split(X, y)):
        folds[left_out] = number
    return folds
