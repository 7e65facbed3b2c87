"""The search over supports of one size, through a working set of columns that is renewed from X."""

from typing import NamedTuple

import numpy as np

from kmargin.solvers.linalg import smallest
from kmargin.solvers.rows import place, take_gram
from kmargin.solvers.search import Fit, search
from kmargin.solvers.signed import Found, Signed
from kmargin.solvers.sizes import grow, minimize, shrink

# A support has to be better by this share to replace another.
BETTER = 1.0 - 1e-9


# A working set has so many columns beside the support: at least, and for the least effort; at most.
FEW, EXTRA = 16, 64


# Each renewal follows a lower objective, so there is an end; this one is for numbers that do not behave so.
MAX_RENEWALS = 1000


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


class WorkingSet:
    """A panel with the columns of a support and the most promising others."""

    def __init__(self, design: Signed, lam: float, size: int, start: Found, tol: float) -> None:
        held = len(start.support)
        q = min(design.n_features, size)
        self.design, self.lam, self.tol = design, lam, tol
        self.rows, self.ridge = design.make_rows(start.support, q), design.make_ridge(lam, q)
        self.members = np.full(q, -1)  # which column a place of the panel holds
        self.members[:held] = start.support
        self.idx, self.u = np.append(np.arange(held), q), start.u.copy()  # the support, by places
        self.counts = np.zeros(4, np.int64)
        self.gram = np.empty((q + 2, q + 2))
        place(self.rows, self.idx, self.u)
        take_gram(self.rows, self.gram)
        self.value = minimize(self._fit(), tol, self.counts)

    def _fit(self) -> Fit:
        return Fit(self.rows, self.ridge, self.gram, self.idx, self.u)

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
        for _ in range(MAX_RENEWALS):
            self.renew()
            before = self.value
            if not thorough:
                self._search(effort.least())
                thorough = not self.value < before
            if thorough:
                self._search(effort)
            if thorough and (not self.value < before or len(self.members) == self.design.n_features):
                return

    def _search(self, effort: Effort) -> None:
        swaps, doubles = effort.max_swaps, effort.max_double_swaps
        self.value = search(self._fit(), self.value, swaps, doubles, self.tol, self.counts)

    def renew(self) -> None:
        """One pass over X: bring the columns with the largest gain into the panel."""
        support = self.members[self.idx[:-1]]
        n_wanted = len(self.members) - len(support)
        slopes = self.design.slopes_at(self.rows, self.idx, self.found())
        curvature = self.design.variance + self.lam
        loss = np.zeros(len(curvature))  # minus the gain of each column, the others as they are
        with np.errstate(over="ignore"):
            np.divide(-(slopes**2), curvature, out=loss, where=curvature > 0)
        loss[support] = np.inf
        promising = np.empty(n_wanted, np.int64)
        smallest(loss, len(loss), n_wanted, promising)
        stays = np.isin(self.members, np.append(support, promising))
        coming = promising[~np.isin(promising, self.members)]
        if len(coming):
            places = np.flatnonzero(~stays)[: len(coming)]
            self.members[places] = coming
            self.rows = self.design.fill(self.rows, self.members, places)
            take_gram(self.rows, self.gram)

    def found(self) -> Found:
        return Found(self.members[self.idx[:-1]], self.u, float(self.value))


def exchange(design: Signed, lam: float, k: int, start: Found, effort: Effort) -> tuple[Found, int]:
    """The best support of size k found from `start`, and the Newton steps it took."""
    size = max(k + effort.n_outside(k, design.n_features), len(start.support))
    working = WorkingSet(design, lam, size, start, effort.tol)
    working.resize(k)
    working.settle(effort)
    return working.found(), int(working.counts[2])
