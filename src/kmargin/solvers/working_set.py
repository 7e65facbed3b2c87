"""The search over supports of one size, through a working set of columns that is renewed from X."""

from typing import NamedTuple

import numpy as np

from kmargin.design import Design
from kmargin.problem import Problem
from kmargin.solvers.linalg import smallest
from kmargin.solvers.panel import build_gram, make_panel, residual
from kmargin.solvers.search import Fit, search
from kmargin.solvers.sizes import grow, minimize, shrink
from kmargin.types import Indices, Vector

# A support has to be better by this share to replace another.
BETTER = 1.0 - 1e-9


# A working set has so many columns beside the support: at least, and for the least effort; at most.
FEW, EXTRA = 16, 64


class Effort(NamedTuple):
    """How hard to search."""

    max_swaps: int  # -1 for all
    max_double_swaps: int
    max_sweeps: int
    road: bool
    tol: float

    def n_outside(self, k: int, n_features: int) -> int:
        """How many columns a working set has beside the support."""
        if self.max_swaps < 0:
            return n_features
        return min(max(k, FEW), EXTRA) if self.max_double_swaps else FEW

    def least(self) -> "Effort":
        """Only what is obvious."""
        return self._replace(max_swaps=1, max_double_swaps=0)


class Found(NamedTuple):
    """A support of the search."""

    support: Indices  # in the order of the search
    u: Vector  # its coefficients, then the intercept
    value: float


NOTHING = Found(np.empty(0, np.int64), np.zeros(1), np.inf)


class SignedDesign(NamedTuple):
    """A problem with labels, weights and intercept folded into its rows; see `panel`."""

    X: Design
    t: Vector  # y_i sqrt(s_i / n)
    c: Vector  # sqrt(s_i / n)
    variance: Vector  # of each column, weighted; without an intercept its second moment

    @classmethod
    def from_problem(cls, problem: Problem) -> "SignedDesign":
        design = problem.design
        c = np.sqrt(problem.weights / design.n_samples)
        return cls(design, problem.y * c, c, design.spread(c))

    @property
    def n_samples(self) -> int:
        return self.X.n_samples

    @property
    def n_features(self) -> int:
        return self.X.n_features

    def gradient(self, resid: Vector) -> Vector:
        """Of the loss with respect to each coefficient, up to its sign."""
        return self.X.slopes(self.t * np.maximum(resid, 0.0))

    def residual(self, found: Found) -> Vector:
        """How far each row is from its margin, positive where it falls short."""
        return self.c - self.t * (self.X.product(found.support, found.u[:-1]) + found.u[-1])

    def count_active(self, found: Found) -> int:
        """Rows within the margin of a solution."""
        return int(np.count_nonzero(self.residual(found) > 0))


class WorkingSet:
    """A panel with the columns of a support and the most promising others."""

    def __init__(self, design: SignedDesign, lam: float, size: int, start: Found, tol: float) -> None:
        held = len(start.support)
        q = min(design.n_features, size)
        self.design, self.lam, self.tol = design, lam, tol
        self.panel, self.ridge = make_panel(design.X, design.t, design.c, lam, start.support, q)
        self.members = np.full(q, -1)  # which column a place of the panel holds
        self.members[:held] = start.support
        self.idx, self.u = np.append(np.arange(held), q), start.u.copy()  # the support, by places
        self.counts = np.zeros(4, np.int64)
        self.resid, self.gram = np.empty(design.n_samples), np.empty((q + 2, q + 2))
        residual(self.panel, self.idx, self.u, self.resid)
        self.active = self.resid > 0
        build_gram(self.panel, self.active, self.gram)
        self.value = minimize(self._fit(), tol, self.counts)

    def _fit(self) -> Fit:
        return Fit(self.panel, self.ridge, self.gram, self.active, self.idx, self.u)

    def resize(self, k: int) -> None:
        """Drop the cheapest features or add the most gainful, until there are k."""
        if len(self.idx) - 1 == k:
            return
        larger = len(self.idx) - 1 < k
        if larger:
            self.renew()
        fit, self.value = (grow if larger else shrink)(self._fit(), k, self.tol, self.counts)
        self.idx, self.u = fit.idx, fit.u

    def settle(self, effort: Effort) -> None:
        """Search the panel and renew it until nothing changes: first cheaply, then with all effort."""
        thorough = False
        while True:
            self.renew()
            before = self.value
            while self.value == before:
                tries = effort if thorough else effort.least()
                self.value = search(
                    self._fit(), self.value, tries.max_swaps, tries.max_double_swaps, self.tol, self.counts
                )
                if thorough:
                    break
                thorough = self.value == before
            if self.value == before or (thorough and len(self.members) == self.design.n_features):
                return

    def renew(self) -> None:
        """One pass over X: bring the columns with the largest gain into the panel."""
        support = self.members[self.idx[:-1]]
        n_wanted = len(self.members) - len(support)
        residual(self.panel, self.idx, self.u, self.resid)
        curvature = self.design.variance + self.lam
        loss = np.zeros(len(curvature))  # minus the gain of each column, the others as they are
        np.divide(-(self.design.gradient(self.resid) ** 2), curvature, out=loss, where=curvature > 0)
        loss[support] = np.inf
        promising = np.empty(n_wanted, np.int64)
        smallest(loss, len(loss), n_wanted, promising)
        stays = np.isin(self.members, np.append(support, promising))
        coming = promising[~np.isin(promising, self.members)]
        if len(coming):
            places = np.flatnonzero(~stays)[: len(coming)]
            self.members[places] = coming
            self.design.X.fill_panel(coming, self.design.t, places, self.panel)
            build_gram(self.panel, self.active, self.gram)

    def found(self) -> Found:
        return Found(self.members[self.idx[:-1]], self.u, float(self.value))


def exchange(design: SignedDesign, lam: float, k: int, start: Found, effort: Effort) -> tuple[Found, int]:
    """The best support of size k found from `start`, and the Newton steps it took."""
    size = max(k + effort.n_outside(k, design.n_features), len(start.support))
    working = WorkingSet(design, lam, size, start, effort.tol)
    working.resize(k)
    working.settle(effort)
    return working.found(), int(working.counts[2])
