"""LIBLINEAR through scikit-learn: L1 and L2 penalties; and features selected first, then a LinearSVC on them.

It penalises the intercept. A large `intercept_scaling` makes that harmless, but slows its L1 by a quarter. So
the default is timed, and what it scores is the better of the default and of `HARDLY_PENALISED`.
"""

from dataclasses import replace

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import LinearSVC, l1_min_c

from benchmarks.solvers.fit import (
    Competitor,
    Fit,
    PairwiseCompetitor,
    shrink_to,
    supports_within,
    two_class_fit,
    unfinished_allowed,
)

HARDLY_PENALISED = 100.0  # an intercept_scaling
FINE_BELOW = 100  # up to so many features they are eliminated one by one
CROSSVAL_CS = tuple(np.geomspace(1e-3, 1.0, 10))


class LiblinearL2(PairwiseCompetitor):
    """Squared hinge, solved in the primal. With the L2 penalty every feature stays."""

    name = "liblinear_l2"
    module = "sklearn"
    penalty = "l2"

    def __init__(self, intercept_scaling=1.0):
        self.intercept_scaling = intercept_scaling

    def other_settings(self):
        return [type(self)(HARDLY_PENALISED)] if self.intercept_scaling != HARDLY_PENALISED else []

    def fit_two(self, X, y, C):
        coef, intercept = coefficients(X, y, C, self.penalty, self.intercept_scaling)
        return coef[0], float(intercept[0])


class LiblinearL1(LiblinearL2):
    """For k features, C is bisected until it leaves k. Cross-validation is GridSearchCV over ten C."""

    name = "liblinear_l1"
    penalty = "l1"
    takes_ridge = False

    def fixed(self, X, y, k, lam):
        return two_class_fit(y, *shrink_to(k, lambda C: self.fit_two(X, y, C)), k)

    def crossval(self, X, y, ks, lams, folds):
        model = linear_svc(1.0, self.penalty, self.intercept_scaling)
        with unfinished_allowed():
            search = GridSearchCV(model, {"C": CROSSVAL_CS}, cv=PredefinedSplit(folds)).fit(X, y)
        best = search.best_estimator_
        return two_class_fit(y, best.coef_, best.intercept_, search.best_params_["C"])


def linear_svc(C, penalty="l2", scaling=HARDLY_PENALISED):
    return LinearSVC(penalty=penalty, dual=False, C=C, intercept_scaling=scaling, random_state=0)


def coefficients(X, y, C, penalty="l2", scaling=HARDLY_PENALISED):
    with unfinished_allowed():
        model = linear_svc(C, penalty, scaling).fit(X, y)
    return model.coef_, model.intercept_


def fit_on(X, y, support, C, level, scaling=HARDLY_PENALISED):
    """A LinearSVC, one classifier per class, on some features; without any the most frequent class."""
    classes, counts = np.unique(y, return_counts=True)
    n_classifiers = 1 if len(classes) == 2 else len(classes)
    coef = np.zeros((n_classifiers, X.shape[1]))
    if len(support):
        coef[:, support], intercept = coefficients(X[:, support], y, C, scaling=scaling)
    else:
        intercept = counts[1:] - counts[:1] if n_classifiers == 1 else counts
    return Fit(classes, coef, np.asarray(intercept, float), level, per_class=True)


def fit_pairs_on(X, y, support, C):
    """The same, one classifier per pair of classes."""
    if len(support) == 0:
        return fit_on(X, y, support, C, 0)
    (fit,) = LiblinearL2(HARDLY_PENALISED).path(np.ascontiguousarray(X[:, support]), y, [C])
    coef = np.zeros((len(fit.coef), X.shape[1]))
    coef[:, support] = fit.coef
    return replace(fit, coef=coef)


class Selector(Competitor):
    """A choice that does not depend on C. A subclass says what is chosen."""

    module = "sklearn"

    def select(self, X, y, budgets):
        raise NotImplementedError

    def shared(self, X, y, budgets, Cs):
        supports = self.select(X, y, budgets)
        return {
            C: [fit_on(X, y, support, C, budget) for budget, support in zip(budgets, supports, strict=True)]
            for C in Cs
        }


class FTest(Selector):
    """SelectKBest(f_classif)."""

    name = "f_test"

    def select(self, X, y, budgets):
        scores = np.nan_to_num(f_classif(X, y)[0], nan=-np.inf)
        order = np.argsort(-scores, kind="stable")
        return [np.sort(order[:budget]) for budget in budgets]


class UnionL1(Selector):
    """L1, one classifier per class, with the largest C that leaves them no more features in total."""

    name = "l1_union"

    def select(self, X, y, budgets):
        def support_at(C):
            return np.flatnonzero(coefficients(X, y, C, "l1")[0].any(axis=0))

        start = l1_min_c(X, y, loss="squared_hinge", intercept_scaling=HARDLY_PENALISED)
        return supports_within(budgets, support_at, start)


class RFE(Competitor):
    """Recursive elimination by the squared coefficients of a LinearSVC, one run for all budgets.

    Features go one by one, or, above 100, a tenth of those left. scikit-learn's RFE(step=0.1) removes
    a tenth of the original number each time, which selects worse, and needs a run for each k.
    """

    name = "rfe"
    module = "sklearn"

    def __init__(self, intercept_scaling=HARDLY_PENALISED):
        self.intercept_scaling = intercept_scaling

    def shared(self, X, y, budgets, Cs):
        return {C: self.eliminate(X, y, budgets, C) for C in Cs}

    def eliminate(self, X, y, budgets, C):
        share = 0.1 if X.shape[1] > FINE_BELOW else 0.0
        left = np.arange(X.shape[1])
        supports = {}
        for budget in sorted(budgets, reverse=True):
            while len(left) > budget:
                columns = np.ascontiguousarray(X[:, left])
                coef, _ = coefficients(columns, y, C, scaling=self.intercept_scaling)
                n_out = min(max(1, int(share * len(left))), len(left) - budget)
                left = np.delete(left, np.argsort((coef**2).sum(axis=0), kind="stable")[:n_out])
            supports[budget] = left
        return [fit_on(X, y, supports[k], C, k, self.intercept_scaling) for k in budgets]
