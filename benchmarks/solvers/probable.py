"""Probabilities of models with a given number of features, their C chosen by the log loss of rows left out.

Whatever depends on y, the choice of features above all, is done anew without the rows that are left out.
"""

from functools import partial

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import l1_min_c

from benchmarks import N_THREADS
from benchmarks.objectives import log_loss
from benchmarks.solvers.fit import (
    Competitor,
    ProbableFit,
    probability_folds,
    supports_within,
    unfinished_allowed,
)
from benchmarks.solvers.liblinear import HARDLY_PENALISED, FTest, linear_svc
from benchmarks.solvers.splicing import OWN


class Probable(Competitor):
    """Chooses C for each budget by the log loss of rows left out. A subclass says how to fit."""

    module = "sklearn"

    def prepare(self, X, y, budgets, seed):
        """For each budget the number of features, and a function of new rows and C: their probabilities."""
        raise NotImplementedError

    def probable(self, X, y, X_new, budgets, Cs, seed):
        losses = np.zeros((len(budgets), len(Cs)))
        for train, test in probability_folds(y, seed).split(X, y):
            fits = self.prepare(X[train], y[train], budgets, seed)
            for row, (_, predict) in zip(losses, fits, strict=True):
                row += [len(test) * log_loss(predict(X[test], C), y[test]) for C in Cs]
        best = [Cs[at] for at in losses.argmin(axis=1)]
        return [
            ProbableFit(predict(X_new, C), n_features, C)
            for C, (n_features, predict) in zip(best, self.prepare(X, y, budgets, seed), strict=True)
        ]


class Selected(Probable):
    """Features first, then a logistic regression with a ridge on these. A subclass says which features."""

    def select(self, X, y, budgets):
        raise NotImplementedError

    def prepare(self, X, y, budgets, seed):
        supports = self.select(X, y, budgets)
        return [(len(support), partial(self.predict_on, support, X, y)) for support in supports]

    def predict_on(self, support, X, y, X_new, C):
        columns = np.ascontiguousarray(X[:, support])
        return self.probabilities(columns, y, np.ascontiguousarray(X_new[:, support]), C)

    def probabilities(self, X, y, X_new, C):
        """The probabilities of a model of all the features given."""
        if X.shape[1] == 0:
            return np.tile(np.bincount(y) / len(y), (len(X_new), 1))
        with unfinished_allowed():
            return LogisticRegression(C=C, max_iter=1000).fit(X, y).predict_proba(X_new)


class LogisticFTest(Selected):
    """The features of highest F, or all."""

    name = "logistic_f_test"
    select = FTest.select


class LogisticL1(Selected):
    """The features of an L1 penalty, one classifier per class, as weak as the budget allows."""

    name = "logistic_l1"

    def select(self, X, y, budgets):
        def support_at(C):
            one = LogisticRegression(
                l1_ratio=1.0, solver="liblinear", C=C, intercept_scaling=HARDLY_PENALISED, random_state=0
            )
            with unfinished_allowed():
                models = OneVsRestClassifier(one).fit(X, y).estimators_
            return np.flatnonzero(np.any([model.coef_[0] != 0 for model in models], axis=0))

        start = l1_min_c(X, y, loss="log", intercept_scaling=HARDLY_PENALISED)
        return supports_within(budgets, support_at, start)


class LogisticAbess(Selected):
    """abess's features; its own coefficients too, in the place of the last C.

    Its ridge hardly changes a multinomial fit and makes it far slower, so the ridge is that of a logistic
    regression on its features.
    """

    name = "abess"
    module = "abess"

    def select(self, X, y, budgets):
        coefs = (self.model(X, y, k).coef_.reshape(X.shape[1], -1) for k in budgets)
        return [np.flatnonzero(coef.any(axis=1)) for coef in coefs]

    def probabilities(self, X, y, X_new, C):
        if C != OWN or X.shape[1] == 0:
            return super().probabilities(X, y, X_new, C)
        P = self.model(X, y, X.shape[1]).predict_proba(X_new)
        return P if np.isfinite(P).all() else super().probabilities(X, y, X_new, np.inf)

    def model(self, X, y, k):
        from abess.linear import LogisticRegression, MultinomialRegression

        kind = LogisticRegression if y.max() == 1 else MultinomialRegression
        return kind(support_size=int(k), thread=N_THREADS).fit(X, y)

    def probable(self, X, y, X_new, budgets, Cs, seed):
        return super().probable(X, y, X_new, budgets, [*Cs, OWN], seed)


class CalibratedSVC(Probable):
    """CalibratedClassifierCV of a LinearSVC on the features of highest F, or on all.

    With `ensemble=False`: the members of an ensemble would each have other features.
    """

    name = "calibrated_svc"

    def prepare(self, X, y, budgets, seed):
        return [(k, partial(self.probabilities, X, y, k, seed)) for k in budgets]

    def probabilities(self, X, y, k, seed, X_new, C):
        classifier = make_pipeline(SelectKBest(f_classif, k=k), linear_svc(C))
        with unfinished_allowed(), np.errstate(divide="ignore", invalid="ignore"):
            model = CalibratedClassifierCV(classifier, cv=probability_folds(y, seed), ensemble=False)
            return model.fit(X, y).predict_proba(X_new)
