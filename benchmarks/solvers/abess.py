"""abess: best subsets of a logistic regression by splicing."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import N_THREADS
from benchmarks.solvers.fit import Competitor, Fit, FitsByC, Machine, one_versus_one, two_class_fit
from benchmarks.solvers.selectors import fit_on

OWN = 0.0  # in the place of a C: coefficients as they are, not fitted again


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

    def grouped(self, X: np.ndarray, y: np.ndarray, groups: np.ndarray, k: int, C: float) -> Fit:
        """`alpha` beside a sum over the rows; `groups` from 0 on, in the order of the columns."""
        from abess.linear import LogisticRegression

        model = LogisticRegression(support_size=k, group=groups, alpha=1 / (2 * C), thread=N_THREADS)
        model.fit(X, y)
        return two_class_fit(y, model.coef_, np.ravel(model.intercept_)[0], k)


class AbessMultinomial(Competitor):
    """Several classes that share their features.

    Its ridge hardly changes a multinomial fit, makes it up to a hundred times slower, and fails with 26
    classes. So features are chosen without it, and a C stands for a LinearSVC on these features.
    `OWN`, beside the values of C, stands for its own coefficients.
    """

    name = "abess"
    module = "abess"
    distribution = "abess"
    levels = "k"

    def shared(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int], Cs: Sequence[float]) -> FitsByC:
        own = [self.fit_classes(X, y, budget) for budget in budgets]
        refits = {C: [fit_on(X, y, fit.support, C, int(fit.level)) for fit in own] for C in Cs}
        return refits | {OWN: own}

    def fit_classes(self, X: np.ndarray, y: np.ndarray, k: int) -> Fit:
        from abess.linear import MultinomialRegression

        classes, codes = np.unique(y, return_inverse=True)
        model = MultinomialRegression(support_size=k, thread=N_THREADS).fit(X, codes)
        return Fit(classes, model.coef_.T, np.ravel(model.intercept_), k, per_class=True)
