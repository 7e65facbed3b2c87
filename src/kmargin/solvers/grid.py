"""Supports of several sizes, for one ridge after another: the path of the exchange."""

from collections.abc import Sequence

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.dual_exchange import count_active, exchange_dual
from kmargin.solvers.panel import make_panel
from kmargin.solvers.search import sweep
from kmargin.solvers.working_set import BETTER, NOTHING, Effort, Found, SignedDesign, exchange

# With so few columns one panel holds them all.
FULL_PANEL = 256

# Beyond this k the dual system may pay; up to it the primal one is always cheap.
LARGE = 128

# Relative to the variance of a typical feature: the ridge from which a single fit comes down, the
# weakest one it passes, and the factor between them.
ROAD_START, ROAD_END, ROAD_STEP = 0.1, 1e-5, 10.0


class SupportGrid:
    """The best support seen of each size.

    Few columns are searched in one panel that holds them all. Many are searched through working sets,
    upwards first: a small model leaves few active rows, which is what the dual system of a large one
    needs.
    """

    def __init__(self, problem: Problem, sizes: Sequence[int], effort: Effort) -> None:
        self.effort = effort
        self.sizes = sorted({min(k, problem.design.n_features) for k in sizes if k > 0})
        self.design = SignedDesign.from_problem(problem)
        self.found: dict[int, Found] = {}
        self.n_newton = 0

    def walk(self, lam: float) -> None:
        """Search all sizes for this ridge, from the supports of the last one."""
        self.n_newton = 0
        if len(self.sizes) == 1:
            self._walk_road(lam, self.sizes[0])
        elif len(self.sizes) > 1:
            self._walk_panel(lam) if self.design.X.shape[1] <= FULL_PANEL else self._walk_wide(lam)

    def best(self, k: int) -> Found:
        """The best support with at most k features."""
        return min((self.found[size] for size in self.sizes if size <= k), key=lambda found: found.value)

    def _walk_road(self, lam: float, k: int) -> None:
        """One size: at first down the ridge, then from the last support."""
        found = self.found.get(k)
        if found is None:
            found = NOTHING
            for stronger in self._road(lam) if self.effort.road else ():
                found = self.exchange(stronger, k, found, self.effort.least())
        self.found[k] = self.exchange(lam, k, found, self.effort)

    def _road(self, lam: float) -> list[float]:
        """Ridges stronger than lam, descending."""
        scale = float(np.median(self.design.variance))
        ridges = []
        ridge = ROAD_START * scale
        while ridge > lam * ROAD_STEP**0.5 and ridge > ROAD_END * scale:
            ridges.append(ridge)
            ridge /= ROAD_STEP
        return ridges

    def _walk_panel(self, lam: float) -> None:
        sizes = np.array(self.sizes[::-1])
        warm = bool(self.found)
        panel, ridge = make_panel(self.design.X, self.design.t, self.design.c, self.design.intercept, lam)
        supports = np.full((len(sizes), sizes[0] + 1), -1)
        coefs, values = np.zeros((len(sizes), sizes[0] + 1)), np.full(len(sizes), np.inf)
        for row, k in enumerate(sizes if warm else ()):
            found = self.found[k]
            supports[row, : len(found.support)] = found.support
            coefs[row, : len(found.u)] = found.u
        counts = np.zeros(4, np.int64)
        e = self.effort
        sweep(
            panel, ridge, sizes, supports, coefs, values, warm, e.max_sweeps, e.max_swaps,
            e.max_double_swaps, e.tol, counts,
        )  # fmt: skip
        self.n_newton += int(counts[2])
        for row, k in enumerate(sizes):
            support, u = supports[row, :k].copy(), coefs[row, : k + 1].copy()
            self.found[int(k)] = Found(support, u, float(values[row]))

    def _walk_wide(self, lam: float) -> None:
        """Up, down, up ... over the sizes; what has not changed is not started from again."""
        sizes = self.sizes
        warm = bool(self.found)
        by_dual = dict.fromkeys(sizes, False)
        values = dict.fromkeys(sizes, np.inf)
        fresh: set[int] = set()
        for number in range(self.effort.max_sweeps):
            up = number % 2 == 0
            changed: set[int] = set()
            order = sizes if up else sizes[::-1]
            for before, k in zip([None, *order], order, strict=False):
                if number == 0:
                    start = self.found[k] if warm else self.found.get(before, NOTHING)
                    by_dual[k] = self._prefers_dual(k, start)
                elif by_dual[k] or before is None or by_dual[before] or before not in fresh | changed:
                    continue
                else:
                    start = self.found[before]
                found = self._dual(lam, k, start) if by_dual[k] else self.exchange(lam, k, start, self.effort)
                if found.value < BETTER * values[k]:
                    self.found[k], values[k] = found, found.value
                    changed.add(k)
            fresh = changed
            if not changed:
                break

    def exchange(self, lam: float, k: int, start: Found, effort: Effort) -> Found:
        """Search for one size, through a working set of columns."""
        found, n_newton = exchange(self.design, lam, k, start, effort)
        self.n_newton += n_newton
        return found

    def _dual(self, lam: float, k: int, start: Found) -> Found:
        """The same by systems as large as the active rows."""
        if len(start.support) == 0:
            start = self.exchange(lam, min(50, len(self.design.c) // 4 + 1), start, self.effort.least())
        found, n_newton = exchange_dual(self.design, lam, k, start, self.effort.tol)
        self.n_newton += n_newton
        return found

    def _prefers_dual(self, k: int, start: Found) -> bool:
        if k <= LARGE:
            return False
        if len(start.support) == 0:
            return 2 * k > len(self.design.c)
        return k > count_active(self.design, start)
