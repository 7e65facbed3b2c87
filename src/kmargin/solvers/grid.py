"""Supports of several sizes, for one ridge after another: the path of the exchange."""

from itertools import pairwise

import numpy as np

from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.one_size import OneSize
from kmargin.solvers.regime import Regime, depends_on_active_rows, takes_all_columns
from kmargin.solvers.search import find_far
from kmargin.solvers.signed import Candidate
from kmargin.solvers.sizes import sweep
from kmargin.solvers.working_set import EXTRA

# What a try may cost for a size of a path to be started elsewhere; and, up to more, for the search to try to
# do without so many features.
QUICK_TRY, QUICK_TRY_WITHOUT, MOST_WITHOUT = 2e3, 9e3, 4


class SupportGrid(OneSize):
    """One size or many, for one ridge after another: each from its neighbours and from the last ridge."""

    def walk(self, lam: float) -> None:
        """Search all sizes for this ridge, from the supports of the last one."""
        self.lam, self.n_newton = lam, 0
        self.finished = set()
        if not self.sizes:
            return
        narrow = self._is_narrow()
        if len(self.sizes) == 1 and (narrow or self._has_room_aside(self.sizes[0])):
            self._walk_ridge_path(lam, self.sizes[0])
        elif narrow:
            self._walk_panel(lam)
        else:
            self._walk_wide(lam)
        if len(self.sizes) > 1 and self.effort.max_starts:
            for size in sorted(self.found):
                if not self._tries_are_quick(size, QUICK_TRY_WITHOUT):
                    break  # nor those of larger sizes
                self._look_elsewhere(lam, size)
        for size in self.found:
            if self.effort.all_swaps and not self.found[size].all_tried:
                self._try_every_swap(lam, size)
            self._finish_size(lam, size)

    def _is_narrow(self) -> bool:
        """Whether all sizes share one panel."""
        n_features = self.design.n_features
        return takes_all_columns(n_features, self._panel_fits(n_features))

    def _look_elsewhere(self, lam: float, size: int) -> None:
        """For one size of a path."""
        if not self._tries_are_quick(size, QUICK_TRY):
            if size > 2:  # else exchanges of two for two reach every support
                self._do_without(lam, size, MOST_WITHOUT, self.effort)
        elif not self._tried_everything(lam, size, self.found[size]):
            self._start_elsewhere(lam, size)

    def _walk_panel(self, lam: float) -> None:
        sizes = np.array(self.sizes[::-1])
        warm = bool(self.found)
        n_features = self.design.n_features
        rows = self.design.make_rows(np.arange(n_features), n_features)
        ridge = self.design.make_ridge(lam, n_features)
        supports = np.full((len(sizes), sizes[0] + 1), -1)
        coefs, values = np.zeros((len(sizes), sizes[0] + 1)), np.full(len(sizes), np.inf)
        for row, k in enumerate(sizes if warm else ()):
            found = self.found[k]
            supports[row, : len(found.support)] = found.support
            coefs[row, : len(found.u)] = found.u
        counts, tried = np.zeros(4, np.int64), np.zeros(len(sizes), np.bool_)
        e, free = self.effort, np.ones(n_features, np.bool_)
        sweep(
            rows, ridge, sizes, supports, coefs, values, free, find_far(), warm, e.max_sweeps, e.max_swaps,
            e.max_double_swaps, e.room, e.tol, counts, tried,
        )  # fmt: skip
        self.n_newton += int(counts[2])
        ends = [
            Candidate(
                supports[row, :k].copy(),
                coefs[row, : k + 1].copy(),
                float(values[row]),
                bool(tried[row]),
                Regime.PANEL,
            )
            for row, k in enumerate(sizes)
        ]
        has_own_ridge = self.measured.measures is not None
        if not has_own_ridge or self.design.panels_are_dear:
            ends, finished = self.design.finish_in_panel(rows, ridge, ends)
            self.finished.update(sizes[finished].tolist() if not has_own_ridge else ())
        self.found.update(zip(sizes.tolist(), ends, strict=True))

    def _walk_wide(self, lam: float) -> None:
        """Up through the sizes below the number of active rows; down through those above; then to and fro."""
        warm = dict(self.found)
        self.found.clear()
        below: list[int] = []
        beyond: list[int] = []  # by products
        found = self._nothing()
        for k in self.sizes:
            if found.value <= NO_LOSS:
                break  # more features cannot do better
            found = warm.get(k, found)
            regime = self._regime(k, found, self.effort)
            if regime.takes_panel and depends_on_active_rows(k) and not self.elsewhere:
                if len(found.support) == 0:  # a small model tells how many rows stay active
                    found = self._small(lam)
                    if found.value <= NO_LOSS:
                        self.found[len(found.support)] = found
                        break
                self.n_active = self.design.count_active(found)
                if not self._regime(k, found, self.effort, self.n_active, self.n_active).takes_panel:
                    break
            found = self.found[k] = self.exchange(lam, k, found, self.effort)
            (below if regime.takes_panel else beyond).append(k)
        above = [] if found.value <= NO_LOSS else [k for k in self.sizes if k not in below + beyond]
        if above:
            larger = self.solve_dense(lam)
            for k in reversed(above):
                larger = self.found[k] = self._dual(lam, k, warm.get(k, self._trim(larger, k)))
            if below:
                self._try(lam, below[-1], self._trim(larger, below[-1] + EXTRA))
        self._to_and_fro(lam, below)

    def _to_and_fro(self, lam: float, sizes: list[int]) -> None:
        """Down, up, down ...: each size from its neighbour, if that has changed since it was last tried."""
        fresh = set(sizes)
        for number in range(1, self.effort.max_sweeps):
            order = sizes if number % 2 == 0 else sizes[::-1]
            changed: set[int] = set()
            for neighbour, k in pairwise(order):
                if neighbour in fresh | changed and self._try(lam, k, self.found[neighbour]):
                    changed.add(k)
            fresh = changed
            if not changed:
                return
