"""Features chosen first, then a LinearSVC on these alone: recursive elimination, F-tests, an L1 penalty."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.svm import LinearSVC, l1_min_c

from benchmarks.solvers.fit import (
    Competitor,
    Fit,
    FitsByC,
    Machine,
    one_versus_one,
    supports_within,
    unfinished_allowed,
)

INTERCEPT_SCALING = 100.0  # LIBLINEAR penalises the intercept; so hardly
FINE_BELOW = 100  # up to so many features they are eliminated one by one


def linear_svc(C: float, penalty: str = "l2", scaling: float = INTERCEPT_SCALING) -> LinearSVC:
    return LinearSVC(penalty=penalty, dual=False, C=C, intercept_scaling=scaling, random_state=0)


def coefficients(
    X: np.ndarray, y: np.ndarray, C: float, penalty: str = "l2", scaling: float = INTERCEPT_SCALING
) -> tuple[np.ndarray, ...]:
    with unfinished_allowed():
        model = linear_svc(C, penalty, scaling).fit(X, y)
    return model.coef_, model.intercept_


def fit_on(
    X: np.ndarray,
    y: np.ndarray,
    support: np.ndarray,
    C: float,
    level: int,
    scaling: float = INTERCEPT_SCALING,
) -> Fit:
    """A LinearSVC, one machine per class, on some features; without any the most frequent class."""
    classes, counts = np.unique(y, return_counts=True)
    n_machines = 1 if len(classes) == 2 else len(classes)
    coef = np.zeros((n_machines, X.shape[1]))
    if len(support):
        coef[:, support], intercept = coefficients(X[:, support], y, C, scaling=scaling)
    else:
        intercept = counts[1:] - counts[:1] if n_machines == 1 else counts
    return Fit(classes, coef, np.asarray(intercept, float), level, per_class=True)


def fit_pairs_on(X: np.ndarray, y: np.ndarray, support: np.ndarray, C: float, level: int) -> Fit:
    """The same, one machine per pair of classes."""
    if len(support) == 0:
        return fit_on(X, y, support, C, level)
    columns = np.ascontiguousarray(X[:, support])

    def fit_pair(X: np.ndarray, y: np.ndarray) -> list[Machine]:
        weights, intercept = coefficients(X, y, C)
        return [(weights[0], float(intercept[0]))]

    (fit,) = one_versus_one(columns, y, [level], fit_pair)
    coef = np.zeros((len(fit.coef), X.shape[1]))
    coef[:, support] = fit.coef
    return replace(fit, coef=coef)


class Selector(Competitor):
    """A choice that does not depend on C. A subclass says what is chosen."""

    module = "sklearn"
    distribution = "scikit-learn"
    levels = "k"

    def select(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int]) -> list[np.ndarray]:
        raise NotImplementedError

    def shared(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int], Cs: Sequence[float]) -> FitsByC:
        supports = self.select(X, y, budgets)
        return {
            C: [fit_on(X, y, support, C, budget) for budget, support in zip(budgets, supports, strict=True)]
            for C in Cs
        }


class FTest(Selector):
    """SelectKBest(f_classif)."""

    name = "f_test"

    def select(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int]) -> list[np.ndarray]:
        scores = np.nan_to_num(f_classif(X, y)[0], nan=-np.inf)
        order = np.argsort(-scores, kind="stable")
        return [np.sort(order[:budget]) for budget in budgets]


class UnionL1(Selector):
    """L1, one machine per class, with the largest C that leaves them no more features together."""

    name = "l1_union"

    def select(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int]) -> list[np.ndarray]:
        def support_at(C: float) -> np.ndarray:
            return np.flatnonzero(coefficients(X, y, C, "l1")[0].any(axis=0))

        start = l1_min_c(X, y, loss="squared_hinge", intercept_scaling=INTERCEPT_SCALING)
        return supports_within(budgets, support_at, start)


class RFE(Competitor):
    """Recursive elimination by the squared coefficients of a LinearSVC, one run for all budgets.

    Features go one by one, or, above 100, a tenth of those that are left. This is kinder to it than
    scikit-learn's RFE(step=0.1), which takes a tenth of those there were at the beginning, so that its last
    step goes from a tenth to k at once, and which needs a run for each k. The default `intercept_scaling` of
    LIBLINEAR is a quarter faster: it is what is timed.
    """

    name = "rfe"
    module = "sklearn"
    distribution = "scikit-learn"
    levels = "k"

    def __init__(self, intercept_scaling: float = INTERCEPT_SCALING) -> None:
        self.intercept_scaling = intercept_scaling

    def shared(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int], Cs: Sequence[float]) -> FitsByC:
        return {C: self.eliminate(X, y, budgets, C) for C in Cs}

    def eliminate(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int], C: float) -> list[Fit]:
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
