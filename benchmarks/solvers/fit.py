"""What a competitor is, and what it hands back."""

import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

BISECTIONS = 8
MAX_WEAKENING = 2**20  # a penalty that is a millionth of the strongest is none
Machine = tuple[np.ndarray, float]  # coefficients and intercept of two classes


@dataclass(frozen=True)
class Fit:
    """Coefficients, nothing scored: one row per pair of classes, positive for the second of the pair.

    Or, if `per_class`, one row per class, the largest decision being the class; two classes have one row.
    """

    classes: np.ndarray
    coef: np.ndarray  # (n_machines, n_features)
    intercept: np.ndarray  # (n_machines,)
    level: float  # the k or the C it was fitted with
    per_class: bool = False

    @property
    def support(self) -> np.ndarray:
        return np.flatnonzero(self.coef.any(axis=0))


@dataclass(frozen=True)
class ProbableFit:
    """Probabilities, nothing scored: a column for each class."""

    probabilities: np.ndarray
    n_features: int
    C: float  # the chosen one


FitsByC = dict[float, list[Fit]]  # for each C one for each budget


class Competitor:
    """One way to fit. A competitor overrides those of the tasks that it can do.

    `path`      one fit for each level: numbers of features, or values of C (`levels` says which)
    `fixed`     one fit of two classes with at most k features
    `crossval`  one fit of two classes, its size chosen by cross-validation on given folds
    `shared`    fits of several classes, for each C and each budget one with at most so many features in all
    `grouped`   one fit of two classes with at most k groups of features
    `probable`  for each budget the probabilities of new rows, by a model with at most so many features in all
    """

    name: ClassVar[str]
    module: ClassVar[str]  # what has to be importable
    distribution: ClassVar[str]  # whose version is recorded
    levels: ClassVar[str] = "C"  # "k" or "C"
    takes_ridge: ClassVar[bool] = True  # whether `fixed` depends on lam

    def other_settings(self) -> Sequence["Competitor"]:
        """Settings that are fitted off the clock; where one of them scores better, its score counts."""
        return ()

    @classmethod
    def is_installed(cls) -> bool:
        return importlib.util.find_spec(cls.module) is not None

    @classmethod
    def version(cls) -> str:
        return importlib.metadata.version(cls.distribution) if cls.is_installed() else ""

    @classmethod
    def can(cls, task: str) -> bool:
        return getattr(cls, task) is not getattr(Competitor, task)

    def path(self, X: np.ndarray, y: np.ndarray, levels: Sequence[float]) -> list[Fit]:
        raise NotImplementedError

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        raise NotImplementedError

    def crossval(
        self, X: np.ndarray, y: np.ndarray, ks: Sequence[int], lams: Sequence[float], folds: np.ndarray
    ) -> Fit:
        raise NotImplementedError

    def shared(self, X: np.ndarray, y: np.ndarray, budgets: Sequence[int], Cs: Sequence[float]) -> FitsByC:
        raise NotImplementedError

    def grouped(self, X: np.ndarray, y: np.ndarray, groups: np.ndarray, k: int, C: float) -> Fit:
        raise NotImplementedError

    def probable(
        self,
        X: np.ndarray,
        y: np.ndarray,  # codes
        X_new: np.ndarray,
        budgets: Sequence[int],
        Cs: Sequence[float],
        seed: int,
    ) -> list[ProbableFit]:
        raise NotImplementedError


@contextmanager
def unfinished_allowed() -> Iterator[None]:
    """Whoever stops at a limit of iterations is scored by what it has then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def one_versus_one(
    X: np.ndarray,
    y: np.ndarray,
    levels: Sequence[float],
    fit_pair: Callable[[np.ndarray, np.ndarray], Iterable[Machine]],
) -> list[Fit]:
    """One Fit per level from a function that fits two classes, labelled -1 and 1, at every level."""
    classes = np.unique(y)
    machines = []
    for negative, positive in combinations(classes, 2):
        rows = slice(None) if len(classes) == 2 else (y == negative) | (y == positive)
        machines.append(list(fit_pair(X[rows], np.where(y[rows] == positive, 1, -1))))
    return [
        Fit(classes, np.array([m[0] for m in at_level]), np.array([m[1] for m in at_level]), level)
        for level, at_level in zip(levels, zip(*machines, strict=True), strict=True)
    ]


def two_class_fit(y: np.ndarray, coef: np.ndarray, intercept: float, level: float) -> Fit:
    return Fit(np.unique(y), np.reshape(coef, (1, -1)), np.reshape(intercept, 1).astype(float), level)


def supports_within(
    budgets: Sequence[int], support_at: Callable[[float], np.ndarray], start: float
) -> list[np.ndarray]:
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


def shrink_to(k: int, fit_at: Callable[[float], Machine], weakest: float = 10.0) -> Machine:
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
