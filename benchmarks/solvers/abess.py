"""abess: best subsets of a logistic regression by splicing."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import N_THREADS
from benchmarks.solvers.fit import Competitor, Fit, Machine, one_versus_one, two_class_fit


class Abess(Competitor):
    """It has no squared hinge; its ridge `alpha` is given the same number as ours."""

    name = "abess"
    module = "abess"
    distribution = "abess"
    levels = "k"

    def fit_two(self, X: np.ndarray, y: np.ndarray, k: int, alpha: float = 0.0) -> Machine:
        from abess.linear import LogisticRegression

        model = LogisticRegression(support_size=int(k), alpha=alpha, thread=N_THREADS).fit(X, y)
        return model.coef_.ravel(), float(np.ravel(model.intercept_)[0])

    def path(self, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> list[Fit]:
        def fit_pair(X: np.ndarray, y: np.ndarray) -> Iterator[Machine]:
            return (self.fit_two(X, y, int(k)) for k in levels)

        return one_versus_one(X, y, levels, fit_pair)

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        return two_class_fit(y, *self.fit_two(X, y, k, alpha=lam), k)

    def crossval(
        self, X: np.ndarray, y: np.ndarray, ks: Sequence[int], lams: Sequence[float], folds: np.ndarray
    ) -> Fit:
        """Its own cross-validation over the same ks and folds, by the loss on the left-out fold."""
        from abess.linear import LogisticRegression

        n_folds = len(np.unique(folds))
        model = LogisticRegression(
            support_size=sorted(ks), cv=n_folds, cv_score="test_loss", thread=N_THREADS
        )
        model.fit(X, y, cv_fold_id=folds + 1)
        return two_class_fit(y, model.coef_, model.intercept_, np.count_nonzero(model.coef_))
