"""This package's solvers."""

from functools import partial

import numpy as np
from sklearn.model_selection import PredefinedSplit

import kmargin
from benchmarks.objectives import C_of, objective
from benchmarks.runner import timed
from benchmarks.solvers.fit import (
    Competitor,
    Fit,
    ProbableFit,
    probability_folds,
    two_class_fit,
    unfinished_allowed,
)

HEADLINE = "exchange"
AT_A_TIME = 5  # sizes of a path that is ended when it has too many features


def path_fits(X, y, ks, **options):
    """A `Fit` for each size of a path."""
    with unfinished_allowed():
        path = kmargin.sparse_svm_path(X, y, list(ks), **options)
    per_class = options.get("multi_class") == "ovr"
    return [
        Fit(np.unique(y), coef, intercept, int(k), per_class)
        for k, coef, intercept in zip(path.ks, path.coefs, path.intercepts, strict=True)
    ]


def fit_table(table, ks, lam, is_path, **options):
    """The objective for each k of a path, or of a single fit; and the processor time of all."""
    options |= {"C": C_of(lam, len(table.y)), "fit_intercept": table.fit_intercept}
    with unfinished_allowed():
        if is_path:
            path, seconds = timed(partial(kmargin.sparse_svm_path, ks=list(ks), **options), table.X, table.y)
            models = list(zip(path.ks, path.coefs, path.intercepts, strict=True))
        else:
            model, seconds = timed(kmargin.SparseSVC(*ks, **options).fit, table.X, table.y)
            models = [(ks[0], model.coef_, model.intercept_)]
    assert all(np.count_nonzero(coef) <= k for k, coef, _ in models)
    found = {int(k): objective(table.X, table.y, coef, b, lam) for k, coef, b in models}
    return found, seconds


class Exchange(Competitor):
    """The headline. Two classes or more by `sparse_svm_path`; a single k by `SparseSVC`."""

    name = HEADLINE
    module = "kmargin"
    levels = "k"
    C: float = 1.0  # of a path; a user's default

    def path(self, X, y, levels):
        return path_fits(X, y, levels, C=self.C, solver=self.name, shared=False)

    def fixed(self, X, y, k, lam):
        with unfinished_allowed():
            model = kmargin.SparseSVC(k, C=C_of(lam, len(y)), solver=self.name).fit(X, y)
        return two_class_fit(y, model.coef_, model.intercept_, k)

    def crossval(self, X, y, ks, lams, folds):
        Cs = sorted(C_of(lam, len(y)) for lam in lams)
        search = kmargin.SparseSVCCV(
            ks=list(ks), Cs=tuple(Cs), cv=PredefinedSplit(folds), solver=self.name, n_jobs=1
        ).fit(X, y)
        return two_class_fit(y, search.coef_, search.intercept_, search.k_)


class MM(Exchange):
    """The paper's Algorithm 1."""

    name = "mm"


class SD(Exchange):
    """The paper's Algorithm 2."""

    name = "sd"


class Shared(Competitor):
    """One set of features, or of groups, shared by a classifier per pair of classes."""

    name = "kmargin"
    module = "kmargin"
    multi_class = "ovo"

    def shared(self, X, y, budgets, Cs):
        return {
            C: self.at_budgets(path_fits(X, y, budgets, C=C, multi_class=self.multi_class), budgets)
            for C in Cs
        }

    def at_budgets(self, fits, budgets):
        """For each budget the fit of the largest size with no more features in total."""
        return [
            max((fit for fit in fits if len(fit.support) <= budget), key=lambda fit: fit.level)
            for budget in budgets
        ]

    def grouped(self, X, y, groups, k, C):
        with unfinished_allowed():
            model = kmargin.SparseSVC(k, C=C, groups=groups, multi_class=self.multi_class).fit(X, y)
        return Fit(np.unique(y), model.coef_, model.intercept_, k, per_class=self.multi_class == "ovr")

    def probable(self, X, y, X_new, budgets, Cs, seed):
        fits = []
        for k in budgets:
            options = {"cv": probability_folds(y, seed), "scoring": "neg_log_loss"}
            model = kmargin.SparseSVCCV([k], Cs=Cs, multi_class=self.multi_class, **options)
            with unfinished_allowed():
                model.fit(X, y)
            fits.append(ProbableFit(model.predict_proba(X_new), len(model.support_), model.C_))
        return fits


class SharedPerClass(Shared):
    """The same with a classifier per class."""

    name = "kmargin_ovr"
    multi_class = "ovr"


class OwnFeatures(Shared):
    """Separate features for each pair of classes: as many as the budget allows."""

    name = "kmargin_own"

    def shared(self, X, y, budgets, Cs):
        ks = range(max(budgets) + 1)
        return {C: self.at_budgets(self.growing(X, y, ks, C, max(budgets)), budgets) for C in Cs}

    def growing(self, X, y, ks, C, most):
        """Fits of increasing size, a few at a time, until there are too many features in total."""
        fits = []
        for start in range(0, len(ks), AT_A_TIME):
            fits += path_fits(X, y, ks[start : start + AT_A_TIME], C=C, shared=False)
            if max(len(fit.support) for fit in fits) > most:
                break
        return fits
