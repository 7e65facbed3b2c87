"""Probabilities of models with a given number of features, their C chosen by the log loss of rows left out.

Whatever depends on y, the choice of features above all, is done anew without the rows that are left out.
"""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import l1_min_c

import kmargin
from benchmarks import N_THREADS
from benchmarks.objectives import log_loss
from benchmarks.solvers.fit import Competitor, ProbableFit, supports_within, unfinished_allowed
from benchmarks.solvers.liblinear import HARDLY_PENALISED, FTest, linear_svc
from benchmarks.solvers.splicing import OWN

N_FOLDS = 5


def folds_of(y, seed):
    """As many as the smallest class has rows, if these are few."""
    n_folds = min(N_FOLDS, np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


class Kmargin(Competitor):
    """`SparseSVCCV` for each budget, a classifier per pair of classes."""

    name = "kmargin"
    module = "kmargin"
    multi_class = "ovo"

    def probable(self, X, y, X_new, budgets, Cs, seed):
        fits = []
        for budget in budgets:
            model = kmargin.SparseSVCCV(
                [budget], Cs=Cs, cv=folds_of(y, seed), scoring="neg_log_loss", multi_class=self.multi_class
            )
            with unfinished_allowed():
                model.fit(X, y)
            fits.append(ProbableFit(model.predict_proba(X_new), len(model.support_), model.C_))
        return fits


class KmarginPerClass(Kmargin):
    """The same with a classifier per class."""

    name = "kmargin_ovr"
    multi_class = "ovr"


class Probable(Competitor):
    """Features first, then a logistic regression with a ridge on these. A subclass says which features."""

    module = "sklearn"

    def select(self, X, y, budgets):
        raise NotImplementedError

    def probabilities(self, X, y, X_new, C):
        """The probabilities of a model of all the features given."""
        if X.shape[1] == 0:
            return np.tile(np.bincount(y) / len(y), (len(X_new), 1))
        with unfinished_allowed():
            return LogisticRegression(C=C, max_iter=1000).fit(X, y).predict_proba(X_new)

    def probable(self, X, y, X_new, budgets, Cs, seed):
        losses = np.zeros((len(budgets), len(Cs)))
        for train, test in folds_of(y, seed).split(X, y):
            supports = self.select(X[train], y[train], budgets)
            for at, of_C in np.ndindex(losses.shape):
                part, new = (np.ascontiguousarray(X[rows][:, supports[at]]) for rows in (train, test))
                P = self.probabilities(part, y[train], new, Cs[of_C])
                losses[at, of_C] += len(test) * log_loss(P, y[test])
        fits = []
        for support, best in zip(self.select(X, y, budgets), losses.argmin(axis=1), strict=True):
            parts = np.ascontiguousarray(X[:, support]), y, np.ascontiguousarray(X_new[:, support])
            fits.append(ProbableFit(self.probabilities(*parts, Cs[best]), len(support), Cs[best]))
        return fits


class LogisticFTest(Probable):
    """The features of highest F, or all."""

    name = "logistic_f_test"

    def select(self, X, y, budgets):
        return FTest().select(X, y, budgets)


class LogisticL1(Probable):
    """The features of an L1 penalty, one classifier per class, as weak as the budget allows."""

    name = "logistic_l1"

    def select(self, X, y, budgets):
        def support_at(C):
            one = LogisticRegression(
                l1_ratio=1.0,
                solver="liblinear",
                C=C,
                intercept_scaling=HARDLY_PENALISED,
                random_state=0,
            )
            with unfinished_allowed():
                models = OneVsRestClassifier(one).fit(X, y).estimators_
            return np.flatnonzero(np.any([model.coef_[0] != 0 for model in models], axis=0))

        start = l1_min_c(X, y, loss="log", intercept_scaling=HARDLY_PENALISED)
        return supports_within(budgets, support_at, start)


class LogisticAbess(Probable):
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


class CalibratedSVC(Competitor):
    """CalibratedClassifierCV of a LinearSVC on the features of highest F, or on all.

    With `ensemble=False`: the members of an ensemble would each have other features.
    """

    name = "calibrated_svc"
    module = "sklearn"

    def probable(self, X, y, X_new, budgets, Cs, seed):
        def probabilities(train, codes, new, k, C):
            machine = make_pipeline(SelectKBest(f_classif, k=k), linear_svc(C))
            with unfinished_allowed(), np.errstate(divide="ignore", invalid="ignore"):
                model = CalibratedClassifierCV(machine, cv=folds_of(codes, seed), ensemble=False)
                return model.fit(train, codes).predict_proba(new)

        fits = []
        for budget in budgets:
            losses = np.zeros(len(Cs))
            for train, test in folds_of(y, seed + 1).split(X, y):
                for at, C in enumerate(Cs):
                    P = probabilities(X[train], y[train], X[test], budget, C)
                    losses[at] += len(test) * log_loss(P, y[test])
            C = Cs[int(losses.argmin())]
            fits.append(ProbableFit(probabilities(X, y, X_new, budget, C), budget, C))
        return fits
