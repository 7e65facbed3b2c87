"""Claims: nested cross-validation (5 x 5 folds, a dozen ks, five Cs) of 102 rows with 12,600 features takes
no longer than one GridSearchCV over ten Cs of LIBLINEAR L1 on five folds; and for labels that say nothing the
nested score is that of guessing, while the score that k and C were chosen by is above it.

The features follow thirty factors, as genes do, two of which tell the classes apart. Processor time, one
thread, in turns. Labels that say nothing are those of 60 rows with 1,000 such features, permuted.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks.cases.case import Case
from benchmarks.records import select
from benchmarks.runner import race, record_seconds
from benchmarks.solvers import HEADLINE
from benchmarks.solvers.fit import unfinished_allowed
from kmargin import SparseSVCCV, honest_score

KS = (1, 2, 3, 4, 6, 9, 14, 20, 30, 45, 68, 102)
CS = (0.001, 0.01, 0.1, 1.0, 10.0)
L1_CS = np.logspace(-4, 4, 10)  # what scikit-learn means by Cs=10, in LogisticRegressionCV
SCALES = {  # rows, columns, turns, permutations
    "quick": (60, 2_000, 1, 4),
    "default": (102, 12_600, 3, 30),
    "full": (102, 12_600, 5, 100),
}


class Honest(Case):
    name = "honest"

    def run(self, record, scale):
        n, p, turns, n_permutations = SCALES[scale]
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
            model = make_model(KS)
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
    return SparseSVCCV(ks=list(ks), Cs=CS, cv=5)


def nested(X, y):
    return honest_score(make_model(k for k in KS if k <= len(y)), X, y, cv=5).score


def l1_grid(X, y):
    machine = LinearSVC(penalty="l1", dual=False)
    return float(GridSearchCV(machine, {"C": L1_CS}, cv=5).fit(X, y).best_score_)
