"""Claim: with 5, 10 or 20 features in total the probabilities of `SparseSVCCV` have, in the mean over six
data sets, a log loss and a Brier score that are at most those of any other method with no more features; and
on 10,000 simulated rows their calibration error is at most 0.03.

Real data: stratified folds, at most 1,000 training rows, tcga's first 500 features, standardised by the
training rows. Every method's C (of four) is chosen for each budget by the log loss of five folds within the
training rows; features are chosen anew in each fold. Models of all features are listed and not judged.

Simulated: 1,000 rows to fit, 10,000 to score, 20 features of which 4 count; classes drawn with the
probabilities of a logistic model.
"""

import warnings

import pandas as pd

from benchmarks.cases.case import Case
from benchmarks.cases.shared import (
    BUDGET,
    CS,
    Folds,
    budget_table,
    leads,
    mean_over_data,
    real_data,
    standardised,
)
from benchmarks.datasets.simulated import with_known_probabilities
from benchmarks.objectives import brier, calibration_error, log_loss
from benchmarks.records import by_competitor, select
from benchmarks.runner import installed
from benchmarks.solvers import PROBABLE, choose_of

BUDGETS = (5, 10, 20)
DATA = ("breast cancer", "srbct", "splice", "optdigits", "letters", "tcga")
ALL = "all features"
TAKE_ALL = ("calibrated_svc", "logistic_f_test")
SIMULATED = {"two classes": (2, 0.5), "two classes, one rare": (2, 0.1), "four classes": (4, None)}
OURS = ("kmargin", "kmargin_ovr")
METRICS = {"log loss": log_loss, "Brier score": brier}
SIMULATED_METRICS = METRICS | {"calibration error": calibration_error}

SCALES = {  # folds of real data, draws of simulated data
    "quick": (Folds(DATA[:1], 1, 1, 1000, 500), 1),
    "default": (Folds(DATA, 1, 2, 1000, 500, n_folds=2), 3),
    "full": (Folds(DATA, 3, 3, 1000, 500), 10),
}


class Probabilities(Case):
    name = "probabilities"

    def run(self, record, scale):
        folds, n_draws = SCALES[scale]
        competitors = installed(choose_of(PROBABLE), "probable", record)
        warnings.filterwarnings("ignore", "[0-9]+ features? repeat", UserWarning)  # among the rows of a fold
        for split, _, data in real_data(folds):
            self.run_fold(record, competitors, standardised(data), split)
        for name, (n_classes, share) in SIMULATED.items():
            for seed in range(n_draws):
                data = with_known_probabilities(name, seed, n_classes, share)
                for competitor in competitors.values():
                    self.score(record, competitor.name, competitor, data, seed, "", [len(data.causal)])

    def run_fold(self, record, competitors, data, split):
        p = data.X.shape[1]
        budgets = [budget for budget in BUDGETS if budget < p]
        for name, competitor in competitors.items():
            self.score(record, name, competitor, data, split, BUDGET, budgets)
            if name in TAKE_ALL:
                self.score(record, f"{name}, all", competitor, data, split, ALL, [p])

    def score(self, record, name, competitor, data, split, parameter, budgets):
        fits = competitor.probable(data.X, data.y, data.X_test, budgets, CS, split)
        for budget, fit in zip(budgets, fits, strict=True):
            where = {"dataset": data.name, "seed": split, "parameter": parameter, "level": budget}
            for metric, measure in (METRICS if parameter else SIMULATED_METRICS).items():
                record.add(name, metric, measure(fit.probabilities, data.y_test), **where)
            record.add(name, "features", fit.n_features, **where)
            record.add(name, "C", fit.C, **where)

    def reached(self, frame):
        reached = {}
        for metric in METRICS:
            losses = -mean_over_data(frame, metric)
            for ours in OURS:
                above = {part: -lead for part, lead in leads(losses, ours).items()}
                reached[f"{metric} above the best peer's, {ours}"] = above
        errors = select(frame, metric="calibration error")
        worst = errors.groupby(["competitor", "dataset"], sort=False)["value"].max()
        for ours in OURS:
            reached[f"calibration error, {ours}"] = worst.get(ours, pd.Series(dtype=float)).to_dict()
        return reached

    def tables(self, frame):
        """Log loss and Brier score, means and each data set; with all features; calibration errors."""
        names = select(frame, parameter=BUDGET)["competitor"].unique()
        shown = [
            budget_table(frame, metric, {"mean": mean_over_data(frame, metric)[names]}).rename_axis(metric)
            for metric in METRICS
        ]
        everything = by_competitor(select(frame, parameter=ALL, metric=list(METRICS)), "dataset", "metric")
        everything.index = [f"{name}, {metric}" for name, metric in everything.index]
        errors = by_competitor(select(frame, metric="calibration error"), "dataset")
        return [
            *(table.round(4) for table in shown),
            everything.round(4).rename_axis("with all features"),
            errors.round(4).rename_axis("calibration error, mean of the draws"),
        ]
