"""The search over supports of one size, through a working set of columns that is renewed from X."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from kmargin.solvers.every_support import try_every_support
from kmargin.solvers.linalg import smallest
from kmargin.solvers.regime import Regime
from kmargin.solvers.rows import place, resume, take_gram
from kmargin.solvers.search import Fit, find_far, search
from kmargin.solvers.signed import NOTHING, Candidate, Signed
from kmargin.solvers.sizes import grow, minimize, shrink
from kmargin.types import Indices, Vector

# A working set has so many columns beside the support: at least, and for the least effort; at most.
FEW, EXTRA = 16, 64

# Each renewal follows a lower objective, so there is an end; this one is for numbers that do not behave so.
MAX_RENEWALS = 1000


class Effort(NamedTuple):
    """How hard to search."""

    max_swaps: int  # -1 for all
    max_double_swaps: int
    max_sweeps: int
    ridge_path: bool
    tol: float
    max_starts: int = 0  # other features to start from, where tries are cheap
    room: float = 0.0  # more exchanges are tried while so many multiplications suffice
    all_swaps: bool = False  # every exchange of one for another is tried at the end
    restart_flops: float = 0.0  # multiplications for searches from perturbed supports, in a single fit

    def n_outside(self, k: int, n_features: int) -> int:
        """How many columns a working set has beside the support."""
        if self.max_swaps < 0:
            return n_features
        return min(max(k, FEW), EXTRA) if self.max_double_swaps else FEW

    def every_swap(self) -> "Effort":
        """All exchanges of one for another, if that is asked for."""
        return self._replace(max_swaps=-1) if self.all_swaps else self

    def least(self) -> "Effort":
        """Only what is obvious."""
        return self._replace(max_swaps=1, max_double_swaps=0, room=0.0)


class WorkingSet:
    """A panel with the columns of a support and the most promising others, or with all there are."""

    def __init__(self, design: Signed, lam: float, size: int, start: Candidate, tol: float) -> None:
        q = min(design.n_features, size)
        self.design, self.tol = design, tol
        self.is_whole = q == design.n_features
        self.members = np.full(q, -1)  # which column a place of the panel holds
        self.members[: len(start.support)] = start.support
        if self.is_whole:
            self.members = np.arange(q)
        columns = self.members if self.is_whole else start.support
        self.rows = design.make_rows(columns, q, to_stay=self.is_whole)
        self.counts = np.zeros(4, np.int64)
        self.gram = np.empty((q + 2, q + 2))
        self.free = np.ones(q, np.bool_)
        self._go_to(lam, start)
        place(self.rows, self.idx, self.u)
        take_gram(self.rows, self.gram)
        self.value = minimize(self._fit(), tol, self.counts)

    def start_again(self, lam: float, start: Candidate) -> None:
        """The same panel for another ridge, from another support."""
        assert self.is_whole
        self._go_to(lam, start)
        resume(self.rows, self.idx, self.u, self.gram)
        self.value = minimize(self._fit(), self.tol, self.counts)

    def _go_to(self, lam: float, start: Candidate) -> None:
        q, held = len(self.members), len(start.support)
        self.lam, self.ridge = lam, self.design.make_ridge(lam, q)
        places = start.support if self.is_whole else np.arange(held)
        self.idx, self.u = np.append(places, q), start.u.copy()  # the support, by places
        self.counts[:] = 0

    def _fit(self) -> Fit:
        return Fit(self.rows, self.ridge, self.gram, self.idx, self.u, self.free, find_far())

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
            if thorough and (not self.value < before or self.is_whole):
                return

    @contextmanager
    def without(self, feature: int) -> Iterator[None]:
        """A panel of all columns that leaves one out of every support."""
        self.free[feature] = False
        try:
            yield
        finally:
            self.free[feature] = True

    def best_alone(self, lam: float, count: int) -> Indices:
        """The features that gain most where there is none yet, with the intercept refitted."""
        self.start_again(lam, NOTHING)
        q, gram = len(self.members), self.gram
        slope = gram[:q, q + 1] - gram[:q, q] * self.u[-1]
        bend = gram.diagonal()[:q] + self.ridge[:q]
        if gram[q, q] > 0:  # there is an intercept
            bend = bend - gram[:q, q] ** 2 / gram[q, q]
        gain = np.divide(slope**2, bend, out=np.zeros(q), where=bend > 1e-12 * gram.diagonal()[:q])
        return np.argsort(-gain, kind="stable")[:count]

    def try_everything(self) -> None:
        """All supports of this size."""
        self.value = try_every_support(self._fit(), self.value, self.tol, self.counts)

    @property
    def n_newton(self) -> int:
        """Newton steps since it was made, or started again."""
        return int(self.counts[2])

    def _search(self, effort: Effort) -> None:
        swaps, doubles, room = effort.max_swaps, effort.max_double_swaps, effort.room
        self.value = search(self._fit(), self.value, swaps, doubles, room, self.tol, self.counts)

    def renew(self) -> None:
        """One pass over X: bring the columns with the largest gain into the panel."""
        if self.is_whole:
            return
        support = self.members[self.idx[:-1]]
        n_wanted = len(self.members) - len(support)
        loss = -self.gains_alone()
        loss[support] = np.inf
        promising = np.empty(n_wanted, np.int64)
        smallest(loss, len(loss), n_wanted, promising)
        is_wanted, is_here = np.zeros((2, len(loss) + 1), dtype=bool)  # the last one is for empty places
        is_wanted[support] = is_wanted[promising] = is_here[self.members] = True
        stays, coming = is_wanted[self.members], promising[~is_here[promising]]
        if len(coming):
            places = np.flatnonzero(~stays)[: len(coming)]
            self.members[places] = coming
            self.rows = self.design.fill(self.rows, self.members, places)
            take_gram(self.rows, self.gram)

    def gains_alone(self) -> Vector:
        """Twice what each column would gain beside the support, the other coefficients left as they are."""
        slopes = self.design.slopes_at(self.rows, self.idx, self.found())
        curvature = self.design.variance + self.lam
        gains = np.zeros(len(curvature))
        with np.errstate(over="ignore"):
            np.divide(slopes**2, curvature, out=gains, where=curvature > 0)
        return gains

    def finish(self) -> None:
        """Bring what was found to its minimum while there is a panel, if it would be dear to make again."""
        if self.design.panels_are_dear:
            found = Candidate(self.idx[:-1], self.u, float(self.value), bool(self.counts[3]))
            (found,), _ = self.design.finish_in_panel(self.rows, self.ridge, [found])
            self.u, self.value, self.counts[3] = found.u, found.value, found.all_tried

    def found(self) -> Candidate:
        all_tried = self.is_whole and bool(self.counts[3])
        regime = Regime.PANEL if self.is_whole else Regime.WORKING_SET
        return Candidate(self.members[self.idx[:-1]], self.u.copy(), float(self.value), all_tried, regime)


def exchange(design: Signed, lam: float, k: int, start: Candidate, effort: Effort) -> tuple[Candidate, int]:
    """The best support of size k found from `start`, and the Newton steps it took."""
    size = max(k + effort.n_outside(k, design.n_features), len(start.support))
    working = WorkingSet(design, lam, size, start, effort.tol)
    return search_from(working, k, effort)


def search_from(working: WorkingSet, k: int, effort: Effort) -> tuple[Candidate, int]:
    """The best support of size k found from where a working set is, and the Newton steps it took."""
    working.resize(k)
    working.settle(effort)
    working.finish()
    return working.found(), working.n_newton
