"""What a competitor is, and what it returns."""

import importlib.metadata
import importlib.util
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.model_selection import StratifiedKFold

BISECTIONS = 8
N_FOLDS = 5  # by which C is chosen for probabilities
MAX_WEAKENING = 2**20  # a penalty that is a millionth of the strongest is none


@dataclass(frozen=True)
class Fit:
    """Coefficients, nothing scored: one row per pair of classes, positive for the second of the pair.

    Or, if `per_class`, one row per class, the largest decision being the class; two classes have one row.
    """

    classes: np.ndarray
    coef: np.ndarray  # (n_classifiers, n_features)
    intercept: np.ndarray  # (n_classifiers,)
    level: float  # the k or the C it was fitted with
    per_class: bool = False

    @property
    def support(self):
        return np.flatnonzero(self.coef.any(axis=0))


@dataclass(frozen=True)
class ProbableFit:
    """Probabilities, nothing scored: a column for each class."""

    probabilities: np.ndarray
    n_features: int
    C: float  # the chosen one


class Competitor:
    """One way to fit. A competitor overrides those of the tasks that it can do. It never scores."""

    name: str
    module: str  # what has to be importable, and whose version is recorded
    levels = "C"  # what `path` takes: "k" or "C"
    takes_ridge = True  # whether `fixed` depends on lam

    def other_settings(self):
        """Settings that are fitted off the clock; where one of them scores better, its score counts."""
        return ()

    @classmethod
    def is_installed(cls):
        return importlib.util.find_spec(cls.module) is not None

    @classmethod
    def version(cls):
        distribution = {"sklearn": "scikit-learn"}.get(cls.module, cls.module)
        return importlib.metadata.version(distribution)

    @classmethod
    def can(cls, task):
        return getattr(cls, task) is not getattr(Competitor, task)

    def path(self, X, y, levels):
        """A `Fit` for each level: numbers of features, or values of C (`levels` of the class says which)."""
        raise NotImplementedError

    def fixed(self, X, y, k, lam):
        """A `Fit` of two classes, -1 and 1, with at most k features."""
        raise NotImplementedError

    def crossval(self, X, y, ks, lams, folds):
        """A `Fit` of two classes, its size chosen by cross-validation; `folds` numbers the rows' folds."""
        raise NotImplementedError

    def shared(self, X, y, budgets, Cs):
        """For each C a list of `Fit`s of several classes, one with at most so many features in total for each
        budget."""
        raise NotImplementedError

    def grouped(self, X, y, groups, k, C):
        """A `Fit` of two classes with at most k groups of features."""
        raise NotImplementedError

    def probable(self, X, y, X_new, budgets, Cs, seed):
        """For each budget a `ProbableFit` for `X_new`, of a model with at most so many features in total.

        y holds class codes; C is chosen by cross-validation within these rows.
        """
        raise NotImplementedError


def probability_folds(y, seed):
    """Folds to choose C by: as many as the smallest class has rows, if these are few."""
    n_folds = min(N_FOLDS, np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(n_folds, shuffle=True, random_state=seed)


@contextmanager
def unfinished_allowed():
    """Silence warnings of fits that stop at a limit of iterations, choose the edge of a grid, or see copies
    of a column: such fits are scored as they are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class PairwiseCompetitor(Competitor):
    """A competitor whose path fits each pair of classes at each level by `fit_two`."""

    def fit_two(self, X, y, level):
        """Coefficients and intercept for two classes, -1 and 1."""
        raise NotImplementedError

    def path(self, X, y, levels):
        classes, machines = np.unique(y), []
        for negative, positive in combinations(classes, 2):
            rows = slice(None) if len(classes) == 2 else (y == negative) | (y == positive)
            pair = X[rows], np.where(y[rows] == positive, 1, -1)
            machines.append([self.fit_two(*pair, level) for level in levels])
        return [
            Fit(classes, np.array([m[0] for m in at_level]), np.array([m[1] for m in at_level]), level)
            for level, at_level in zip(levels, zip(*machines, strict=True), strict=True)
        ]


def two_class_fit(y, coef, intercept, level):
    return Fit(np.unique(y), np.reshape(coef, (1, -1)), np.reshape(intercept, 1).astype(float), level)


def supports_within(budgets, support_at, start):
    """For each budget the largest support within it that a penalised method gives.

    `support_at` takes how weak the penalty is; at `start` it is so strong that no feature is left. It is
    halved until the largest budget is passed, then bisected for every budget.
    """
    tried = {start: np.empty(0, int)}
    while len(tried[max(tried)]) <= max(budgets) and max(tried) < MAX_WEAKENING * start:
        weaker = 2 * max(tried)
        tried[weaker] = support_at(weaker)
    supports = []
    for budget in budgets:
        for _ in range(BISECTIONS):
            low = max(at for at, support in tried.items() if len(support) <= budget)
            above = [at for at in tried if at > low]
            if len(tried[low]) == budget or not above:
                break
            middle = float(np.sqrt(low * min(above)))
            tried[middle] = support_at(middle)
        supports.append(max((s for s in tried.values() if len(s) <= budget), key=len))
    return supports


def shrink_to(k, fit_at, weakest=10.0):
    """k features out of a penalised method, which cannot be asked for them.

    Doubles C from 1e-3 until there are k features (or C passes `weakest`), bisects for k of them
    exactly, and of the sparsest model with as many keeps the k largest coefficients.
    """
    C = 1e-3
    machine = fit_at(C)
    while np.count_nonzero(machine[0]) < k and weakest > C:
        C *= 2
        machine = fit_at(C)
    low, high = C / 2, C
    for _ in range(8):
        if np.count_nonzero(machine[0]) <= k:
            break
        middle = float(np.sqrt(low * high))
        trial = fit_at(middle)
        if np.count_nonzero(trial[0]) >= k:
            high, machine = middle, trial
        else:
            low = middle
    coef, intercept = machine
    kept = np.zeros_like(coef)
    largest = np.argsort(-np.abs(coef), kind="stable")[:k]
    kept[largest] = coef[largest]
    return kept, intercept
