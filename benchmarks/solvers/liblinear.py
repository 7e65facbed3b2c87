"""LIBLINEAR through scikit-learn.

It penalises the intercept. A large `intercept_scaling` makes that harmless, but slows its L1 by a quarter. So
the default is timed, and what it scores is the better of the default and of `HARDLY_PENALISED`.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import LinearSVC

from benchmarks.solvers.fit import (
    Competitor,
    Fit,
    Machine,
    one_versus_one,
    shrink_to,
    two_class_fit,
    unfinished_allowed,
)

HARDLY_PENALISED = 100.0  # an intercept_scaling
CROSSVAL_CS = tuple(np.geomspace(1e-3, 1.0, 10))


class Liblinear(Competitor):
    """Squared hinge with an L1 or L2 penalty, solved in the primal."""

    module = "sklearn"
    distribution = "scikit-learn"
    penalty: str

    def __init__(self, intercept_scaling: float = 1.0) -> None:
        self.intercept_scaling = intercept_scaling

    def other_settings(self) -> list["Liblinear"]:
        return [type(self)(HARDLY_PENALISED)] if self.intercept_scaling != HARDLY_PENALISED else []

    def model(self, C: float = 1.0) -> LinearSVC:
        scaling = self.intercept_scaling
        return LinearSVC(penalty=self.penalty, dual=False, C=C, intercept_scaling=scaling, random_state=0)

    def fit_two(self, X: np.ndarray, y: np.ndarray, C: float) -> Machine:
        with unfinished_allowed():
            model = self.model(C).fit(X, y)
        return model.coef_[0], float(model.intercept_[0])

    def path(self, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> list[Fit]:
        def fit_pair(X: np.ndarray, y: np.ndarray) -> Iterator[Machine]:
            return (self.fit_two(X, y, C) for C in levels)

        return one_versus_one(X, y, levels, fit_pair)


class LiblinearL1(Liblinear):
    """For k features, C is bisected until it leaves k. Cross-validation is GridSearchCV over ten C."""

    name = "liblinear_l1"
    penalty = "l1"
    takes_ridge = False

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        return two_class_fit(y, *shrink_to(k, lambda C: self.fit_two(X, y, C)), k)

    def crossval(
        self, X: np.ndarray, y: np.ndarray, ks: Sequence[int], lams: Sequence[float], folds: np.ndarray
    ) -> Fit:
        with unfinished_allowed():
            search = GridSearchCV(self.model(), {"C": CROSSVAL_CS}, cv=PredefinedSplit(folds)).fit(X, y)
        best = search.best_estimator_
        return two_class_fit(y, best.coef_, best.intercept_, search.best_params_["C"])


class LiblinearL2(Liblinear):
    """Dense: every feature stays."""

    name = "liblinear_l2"
    penalty = "l2"
