"""skglm: L1 and MCP penalties on a logistic loss, by working sets and compiled loops."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.solvers.fit import (
    Competitor,
    Fit,
    Machine,
    one_versus_one,
    shrink_to,
    two_class_fit,
    unfinished_allowed,
)


class SkglmL1(Competitor):
    """L1 logistic regression; `C` as in scikit-learn, so alpha = 1/(nC)."""

    name = "skglm_l1"
    module = "skglm"
    distribution = "skglm"
    takes_ridge = False

    def model(self, alpha: float) -> object:
        from skglm import SparseLogisticRegression

        return SparseLogisticRegression(alpha=alpha)

    def fit_two(self, X: np.ndarray, y: np.ndarray, C: float) -> Machine:
        with unfinished_allowed():
            model = self.model(1 / (C * len(y))).fit(X, y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    def path(self, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> list[Fit]:
        def fit_pair(X: np.ndarray, y: np.ndarray) -> Iterator[Machine]:
            X = np.asfortranarray(X)  # coordinate descent reads columns
            return (self.fit_two(X, y, C) for C in levels)

        return one_versus_one(X, y, levels, fit_pair)

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        X = np.asfortranarray(X)
        return two_class_fit(y, *shrink_to(k, lambda C: self.fit_two(X, y, C)), k)


class SkglmMCP(SkglmL1):
    """The minimax concave penalty, which shrinks large coefficients less."""

    name = "skglm_mcp"

    def model(self, alpha: float) -> object:
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import MCPenalty
        from skglm.solvers import ProxNewton

        # more iterations than these cost minutes on separable data, and change few supports
        solver = ProxNewton(max_iter=10, max_pn_iter=20)
        return GeneralizedLinearEstimator(Logistic(), MCPenalty(alpha, gamma=10.0), solver)
