"""skglm: L1 and MCP penalties on a logistic loss, by working sets and compiled loops."""

import numpy as np

from benchmarks.solvers.fit import (
    Competitor,
    PairwiseCompetitor,
    shrink_to,
    supports_within,
    two_class_fit,
    unfinished_allowed,
)
from benchmarks.solvers.liblinear import Selector


class SkglmL1(PairwiseCompetitor):
    """L1 logistic regression; `C` as in scikit-learn, so alpha = 1/(nC)."""

    name = "skglm_l1"
    module = "skglm"
    takes_ridge = False

    def model(self, alpha):
        from skglm import SparseLogisticRegression

        return SparseLogisticRegression(alpha=alpha)

    def fit_two(self, X, y, C):
        with unfinished_allowed():
            X = np.asfortranarray(X)  # coordinate descent reads columns
            model = self.model(1 / (C * len(y))).fit(X, y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    def fixed(self, X, y, k, lam):
        X = np.asfortranarray(X)
        return two_class_fit(y, *shrink_to(k, lambda C: self.fit_two(X, y, C)), k)


class SkglmMCP(SkglmL1):
    """The minimax concave penalty, which shrinks large coefficients less."""

    name = "skglm_mcp"

    def model(self, alpha):
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import MCPenalty
        from skglm.solvers import ProxNewton

        # more iterations than these cost minutes on separable data, and change few supports
        solver = ProxNewton(max_iter=10, max_pn_iter=20)
        return GeneralizedLinearEstimator(Logistic(), MCPenalty(alpha, gamma=10.0), solver)


class SkglmMultitask(Selector):
    """Least squares for the indicators of the classes with one penalty for all coefficients of a feature.

    The way in which skglm has several classes share their features; its logistic loss knows two classes.
    """

    name = "skglm_multitask"
    module = "skglm"

    def select(self, X, y, budgets):
        from skglm import MultiTaskLasso

        indicators = (y[:, None] == np.unique(y)).astype(float)
        indicators -= indicators.mean(axis=0)
        X = np.asfortranarray(X)
        strongest = np.linalg.norm(X.T @ indicators, axis=1).max() / len(y)

        def support_at(weakness):
            with unfinished_allowed():
                model = MultiTaskLasso(alpha=strongest / weakness, fit_intercept=False)
                return np.flatnonzero(model.fit(X, indicators).coef_.any(axis=0))

        return supports_within(budgets, support_at, start=1.0)


class SkglmGroupLasso(Competitor):
    """A logistic loss with the norm of each group as its penalty, as weak as leaves k groups."""

    name = "skglm_group"
    module = "skglm"
    takes_ridge = False

    def grouped(self, X, y, groups, k, C):
        X = np.asfortranarray(X)
        members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
        scores = X.T @ (y - y.mean()) / (2 * len(y))
        strongest = max(np.linalg.norm(scores[group]) for group in members)
        fits = {}

        def support_at(weakness):
            fit = self.fit_groups(X, y, members, strongest / weakness)
            chosen = np.unique(groups[np.flatnonzero(fit[0])])
            fits.setdefault(tuple(chosen), fit)
            return chosen

        (chosen,) = supports_within([k], support_at, start=1.0)
        return two_class_fit(y, *fits[tuple(chosen)], k)

    def fit_groups(self, X, y, members, alpha):
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import LogisticGroup
        from skglm.penalties import WeightedGroupL2
        from skglm.solvers import GroupProxNewton
        from skglm.utils.data import grp_converter

        indices, pointers = grp_converter([group.tolist() for group in members], X.shape[1])
        penalty = WeightedGroupL2(alpha, np.ones(len(members)), pointers, indices)
        solver = GroupProxNewton(fit_intercept=True)
        with unfinished_allowed():
            model = GeneralizedLinearEstimator(LogisticGroup(pointers, indices), penalty, solver).fit(X, y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
