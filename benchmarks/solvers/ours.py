"""This package's solvers."""

from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import PredefinedSplit

import kmargin
from benchmarks.grids import C_of
from benchmarks.solvers.fit import Competitor, Fit, two_class_fit, unfinished_allowed

# The one place that knows what the installed kmargin can do: until it has the exchange solver, mm
# stands in for it under its own name; without SparseSVCCV there is no cross-validation to time.
HEADLINE = "exchange" if hasattr(kmargin, "Exchange") else "mm"
HAS_CROSSVAL = hasattr(kmargin, "SparseSVCCV")


class Ours(Competitor):
    """Two classes or more by `sparse_svm_path`; a single k by `SparseSVC`."""

    module = "kmargin"
    distribution = "kmargin"
    levels = "k"
    C: float = 1.0  # of a path; a user's default

    def path(self, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> list[Fit]:
        with unfinished_allowed():
            path = kmargin.sparse_svm_path(X, y, levels, C=self.C, solver=self.name, shared=False)
        return [
            Fit(np.unique(y), coef, intercept, int(k))
            for k, coef, intercept in zip(path.ks, path.coefs, path.intercepts, strict=True)
        ]

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        with unfinished_allowed():
            model = kmargin.SparseSVC(k, C=C_of(lam, len(y)), solver=self.name).fit(X, y)
        return two_class_fit(y, model.coef_, model.intercept_, k)


class Exchange(Ours):
    """The headline: the only one of ours that goes through cross-validation."""

    name = HEADLINE

    @classmethod
    def can(cls, task: str) -> bool:
        return HAS_CROSSVAL if task == "crossval" else super().can(task)

    def crossval(
        self, X: np.ndarray, y: np.ndarray, ks: Sequence[int], lams: Sequence[float], folds: np.ndarray
    ) -> Fit:
        Cs = sorted(C_of(lam, len(y)) for lam in lams)
        search = kmargin.SparseSVCCV(
            ks=list(ks), Cs=tuple(Cs), cv=PredefinedSplit(folds), solver=self.name, n_jobs=1
        ).fit(X, y)
        return two_class_fit(y, search.coef_, search.intercept_, search.k_)


class MM(Ours):
    """The paper's Algorithm 1."""

    name = "mm"


class SD(Ours):
    """The paper's Algorithm 2."""

    name = "sd"
