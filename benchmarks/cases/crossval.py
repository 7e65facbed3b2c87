"""Claim: choosing k and C by 10-fold cross-validation is faster than abess's own cross-validation over
the same ks and than GridSearchCV over ten Cs of LIBLINEAR L1, and the chosen model is better.

A dozen ks, three ridges; the same folds for everybody who takes folds. Times are those of the processor.
LIBLINEAR is timed with its default `intercept_scaling`; the better of that and of 100 counts.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from benchmarks.cases.case import Case, by_dataset, lead, speed
from benchmarks.datasets.simulated import hyperplane
from benchmarks.objectives import accuracy, f1
from benchmarks.records import select
from benchmarks.runner import installed, race, record_seconds
from benchmarks.solvers import HEADLINE, choose
from benchmarks.solvers.fit import unfinished_allowed
from kmargin import SparseSVCCV, honest_score

N_CAUSAL = 50
KS = (5, 10, 20, 30, 40, 45, 50, 55, 60, 75, 100, 150)
LAMS = (1e-2, 1e-3, 3e-4)
RIVALS = ("abess", "liblinear_l1")
SCALES = {  # (rows, columns), folds, seeds
    "quick": (((500, 200),), 5, 1),
    "default": (((1000, 500), (500, 1000)), 10, 1),
    "full": (((1000, 500), (500, 1000), (5000, 500)), 10, 5),
}

HONEST_KS = (1, 2, 3, 4, 6, 9, 14, 20, 30, 45, 68, 102)
HONEST_CS = (0.001, 0.01, 0.1, 1.0, 10.0)
L1_CS = np.logspace(-4, 4, 10)  # what scikit-learn means by Cs=10, in LogisticRegressionCV
HONEST_SCALES = {  # rows, columns, turns, permutations
    "quick": (60, 2_000, 1, 4),
    "default": (102, 12_600, 3, 30),
    "full": (102, 12_600, 5, 100),
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


def folds_of(X, y, n_folds):
    """The number of the fold in which each row is left out."""
    folds = np.empty(len(y), dtype=int)
    for number, (_, left_out) in enumerate(StratifiedKFold(n_folds).split(X, y)):
        folds[left_out] = number
    return folds


class Honest(Case):
    """Claims: nested cross-validation (5 x 5 folds, a dozen ks, five Cs) of 102 rows with 12,600 features
    takes no longer than one GridSearchCV over ten Cs of LIBLINEAR L1 on five folds; and for permuted labels
    the nested score is that of guessing, while the score that k and C were chosen by is above it.

    The features follow thirty factors, as genes do, two of which separate the classes. Times are processor
    times on one thread, measured in turns. The permuted labels are those of 60 rows with 1,000 such features.
    """

    name = "honest"

    def run(self, record, scale):
        n, p, turns, n_permutations = HONEST_SCALES[scale]
        X, y = genes(n, p, seed=0)
        where = {"dataset": f"genes {n}x{p}"}
        entrants = {HEADLINE: nested, "l1_grid": l1_grid}
        small = X[:40, :200].copy(), y[:40]
        with unfinished_allowed():
            runs = race(entrants, X, y, small=small, repeats=turns)
            record_seconds(record, runs, **where)
            for name, run in runs.items():
                record.add(name, "accuracy", run.result, **where)
            self.permute(record, n_permutations)

    def permute(self, record, n_permutations):
        """Nested and ordinary scores of labels that do not depend on the features."""
        X, y = genes(60, 1_000, seed=1)
        rng = np.random.default_rng(0)
        for seed in range(n_permutations):
            shuffled = rng.permutation(y)
            model = make_model(HONEST_KS)
            where = {"dataset": "permuted 60x1000", "seed": seed}
            found = honest_score(model, X, shuffled, random_state=seed)
            record.add(HEADLINE, "nested above guessing", found.score - found.guessing, **where)
            record.add(HEADLINE, "called better than guessing", found.is_better_than_guessing, **where)
            chosen_by = model.fit(X, shuffled).best_score_
            record.add(HEADLINE, "chosen by above guessing", chosen_by - found.guessing, **where)

    def reached(self, frame):
        seconds = select(frame, metric="seconds").groupby("competitor")["value"].min()
        permuted = frame[frame["dataset"].str.startswith("permuted")].groupby("metric")["value"].mean()
        share = {frame["dataset"].iloc[0]: seconds[HEADLINE] / seconds["l1_grid"]}
        found = {"share of the time of an L1 grid search": share}
        for metric in ("nested above guessing", "chosen by above guessing", "called better than guessing"):
            found[metric] = {"permuted 60x1000": permuted.get(metric, np.nan)}
        return found


def genes(n, p, seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 30))
    X = factors @ rng.standard_normal((30, p)) / 2 + rng.standard_normal((n, p))
    y = (factors[:, 0] + factors[:, 1] + 0.8 * rng.standard_normal(n) > 0).astype(int)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def make_model(ks):
    return SparseSVCCV(ks=list(ks), Cs=HONEST_CS, cv=5)


def nested(X, y):
    return honest_score(make_model(k for k in HONEST_KS if k <= len(y)), X, y, cv=5).score


def l1_grid(X, y):
    machine = LinearSVC(penalty="l1", dual=False)
    return float(GridSearchCV(machine, {"C": L1_CS}, cv=5).fit(X, y).best_score_)
