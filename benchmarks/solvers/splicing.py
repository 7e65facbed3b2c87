"""Splicing: abess, best subsets of a logistic regression, and skscope, for any smooth objective."""

import numpy as np

from benchmarks import N_THREADS
from benchmarks.solvers.fit import Competitor, Fit, PairwiseCompetitor, two_class_fit
from benchmarks.solvers.liblinear import fit_on

OWN = 0.0  # in the place of a C: coefficients as they are, not fitted again


class Abess(PairwiseCompetitor):
    """It has no squared hinge; its ridge `alpha` is given the same number as ours."""

    name = "abess"
    module = "abess"
    levels = "k"

    def model(self, **options):
        from abess.linear import LogisticRegression

        return LogisticRegression(thread=N_THREADS, **options)

    def fit_two(self, X, y, k, alpha=0.0):
        model = self.model(support_size=int(k), alpha=alpha).fit(X, y)
        return model.coef_.ravel(), float(np.ravel(model.intercept_)[0])

    def fixed(self, X, y, k, lam):
        return two_class_fit(y, *self.fit_two(X, y, k, alpha=lam), k)

    def crossval(self, X, y, ks, lams, folds):
        """Its own cross-validation over the same ks and folds, by the loss on the left-out fold."""
        model = self.model(support_size=sorted(ks), cv=len(np.unique(folds)), cv_score="test_loss")
        model.fit(X, y, cv_fold_id=folds + 1)
        return two_class_fit(y, model.coef_, model.intercept_, np.count_nonzero(model.coef_))

    def grouped(self, X, y, groups, k, C):
        """`alpha` beside a sum over the rows; `groups` from 0 on, in the order of the columns."""
        model = self.model(support_size=k, group=groups, alpha=1 / (2 * C)).fit(X, y)
        return two_class_fit(y, model.coef_, np.ravel(model.intercept_)[0], k)


class AbessMultinomial(Competitor):
    """Several classes that share their features.

    Its ridge hardly changes a multinomial fit, makes it up to a hundred times slower, and fails with 26
    classes. So features are chosen without it, and a C stands for a LinearSVC on these features.
    `OWN`, beside the values of C, stands for its own coefficients.
    """

    name = "abess"
    module = "abess"

    def shared(self, X, y, budgets, Cs):
        from abess.linear import MultinomialRegression

        (classes, codes), own = np.unique(y, return_inverse=True), []
        for k in budgets:
            model = MultinomialRegression(support_size=k, thread=N_THREADS).fit(X, codes)
            own.append(Fit(classes, model.coef_.T, np.ravel(model.intercept_), k, per_class=True))
        refits = {C: [fit_on(X, y, fit.support, C, int(fit.level)) for fit in own] for C in Cs}
        return refits | {OWN: own}


class Skscope(Competitor):
    """Squared hinge plus ridge, the intercept always selected.

    Objective and gradient are NumPy functions: at these sizes they are four times faster than the
    same ones compiled by JAX, which would also compile anew for every shape.
    """

    name = "skscope"
    module = "skscope"

    def fixed(self, X, y, k, lam):
        from skscope import ScopeSolver

        n, p = X.shape

        def violations(beta):
            return np.maximum(0.0, 1.0 - y * (X @ beta[:-1] + beta[-1]))

        def objective(beta, _):
            return 0.5 * np.mean(violations(beta) ** 2) + 0.5 * lam * beta[:-1] @ beta[:-1]

        def gradient(beta, _):
            slopes = -y * violations(beta) / n
            return np.append(slopes @ X + lam * beta[:-1], slopes.sum())

        solver = ScopeSolver(p + 1, k + 1, sample_size=n, preselect=[p], thread=N_THREADS)
        beta = np.asarray(solver.solve(objective, gradient=gradient))
        return two_class_fit(y, beta[:-1], beta[-1], k)
