"""One size: how hard the search for it tries."""

import numpy as np

from kmargin.solvers.measures import is_as_good
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.regime import depends_on_active_rows
from kmargin.solvers.signed import Candidate
from kmargin.solvers.supports import ROOM, Supports
from kmargin.solvers.working_set import Effort

# Relative to the variance of a typical feature: the ridge from which a single fit comes down, the
# weakest one it passes, and the factor between them.
ROAD_START, ROAD_END, ROAD_STEP = 0.1, 1e-5, 10.0

# Multiplications that a small problem has to try all supports of one size: of a single fit and of a path.
ROOM_FOR_ALL, ROOM_FOR_ALL_OF_PATH = 6e6, 1.5e6

# The same for searches from other single features; how many features there are for each of these starts;
# and up to which multiple of the best objective what the first glance finds is worth a second.
ROOM_FOR_STARTS, FEATURES_PER_START, PROMISING = 1e7, 8, 4.0

# The search tries to do without so many times as many features as there are in a support.
ROUNDS_WITHOUT = 2

# A restart drops at least one unit and at most this share of the support, and adds as many, drawn among the
# ADD_POOL times as many units that gain most. It is searched first under one of these multiples of the ridge.
MAX_DROP_SHARE, ADD_POOL, RESTART_RIDGES = 1.0, 4, (1.0, 3.0, 10.0, 30.0)

# A restart above this multiple of the best objective after the inexpensive swaps is not searched further.
RESTART_RTOL = 1.1

# Single swaps that a restart tries before it ends. Its cost in multiplications is estimated by a constant, so
# many passes over X, and the Newton steps, each with a constant of its own.
RESTART_SWAPS, RESTART_OVERHEAD, RESTART_PASSES, STEP_OVERHEAD = 16, 1e6, 5, 5e3

# Restarts in a row that come back to the same support end the search after this share of the budget.
MAX_RETURN_SHARE = 0.3

# How far from its size a single fit goes aside, as a share of it; and where problems are small.
ASIDE, FAR_ASIDE = 0.2, 0.5


class OneSize(Supports):
    """Down from stronger ridges, aside to other sizes and back, from other features, without some: what a
    search for one size does beyond exchanges from where it is.
    """

    def _walk_ridge_path(self, lam: float, k: int) -> None:
        """One size: at first down the ridge, then from the last support."""
        found = self.found.get(k)
        if found is None:
            found = self._come_down(lam, k)
        if self._tried_everything(lam, k, found):
            return
        self.found[k] = self.exchange(lam, k, found, self.effort)
        self._go_aside(lam, k)
        self._start_elsewhere(lam, k)
        self._restart(lam, k)

    def _restart(self, lam: float, k: int) -> None:
        """Iterated local search: perturb the best support at random, search again, keep what is better.

        Part of the support is dropped and as many of the most promising units are added. The search under a
        stronger ridge first leads to other supports than the search under the given ridge alone. On small
        problems other starts have been searched exhaustively before.
        """
        if self.is_small:
            return
        budget, spent, in_vain = self.effort.restart_flops, 0.0, 0.0
        effort = self.effort._replace(max_swaps=max(self.effort.max_swaps, RESTART_SWAPS), room=0.0)
        while spent < budget and in_vain < MAX_RETURN_SHARE * budget:
            best, n_newton = self.found[k], self.n_newton
            start = self._perturbed(lam, k, best) if best.value > NO_LOSS else None
            if start is None:
                return
            factor = float(self.rng.choice(RESTART_RIDGES))
            found = self.exchange(factor * lam, k, start, self.effort.least())
            self.last = found = self.exchange(lam, k, found, self.effort.least())
            if found.value < RESTART_RTOL * best.value:
                self._try(lam, k, found, effort)
            is_same = frozenset(self.last.support.tolist()) == frozenset(best.support.tolist())
            flops = self._restart_flops(k, self.n_newton - n_newton)
            spent, in_vain = spent + flops, in_vain + flops if is_same else 0.0

    def _restart_flops(self, k: int, n_newton: int) -> float:
        """About how many multiplications a restart with so many Newton steps took."""
        passes = RESTART_PASSES * self.design.n_samples * self.design.n_features
        return RESTART_OVERHEAD + passes + n_newton * (STEP_OVERHEAD + self._cost_of_try(k))

    def _perturbed(self, lam: float, k: int, best: Candidate) -> Candidate | None:
        """Some units of a support, drawn at random, replaced by others; None where there are no others."""
        order = self.rng.permutation(self._may_leave(best))
        if len(order) == 0 or self.n_units == k:
            return None
        n_dropped = 1 + int(self.rng.integers(max(1, int(MAX_DROP_SHARE * len(order)))))
        rest = best
        for place in sorted(order[:n_dropped].tolist(), reverse=True):
            rest = self._rest(rest, place)
        gains = self._gains_beside(lam, rest)
        if gains is None:
            return None
        gains[rest.support] = -np.inf
        pool = np.argsort(-gains, kind="stable")[: ADD_POOL * n_dropped]
        pool = pool[gains[pool] > 0]
        return self._with(rest, self.rng.permutation(pool)[:n_dropped])

    def _has_room_aside(self, k: int) -> bool:
        """Whether there is a panel for larger sizes, too, and nothing else may pay."""
        widest = self._aside(k)[0] + self.effort.n_outside(k, self.n_units)
        return not depends_on_active_rows(k) and self._panel_fits(widest)

    def _come_down(self, lam: float, k: int) -> Candidate:
        """A first support of one size, by way of stronger ridges."""
        found = self._nothing()
        for stronger in self._ridge_path(lam) if self.effort.ridge_path else ():
            found = self.exchange(stronger, k, found, self.effort.least())
        return found

    def _ridge_path(self, lam: float) -> list[float]:
        """Ridges stronger than lam, descending."""
        scale = self._ridge_scale()
        n_ridges = round(np.log(ROAD_START / ROAD_END) / np.log(ROAD_STEP))
        ridges = [ROAD_START * scale / ROAD_STEP**number for number in range(n_ridges)]
        return [ridge for ridge in ridges if ridge > lam * ROAD_STEP**0.5]

    def _go_aside(self, lam: float, k: int) -> None:
        """What a path gets from the sizes beside it, a single size gets by going there and back."""
        sizes = self._beside(k)
        n_stale = 0  # sizes tried since something changed
        for number in range(len(sizes) * self.effort.max_sweeps // 2):
            beside = self.exchange(lam, sizes[number % len(sizes)], self.found[k], self.effort.least())
            n_stale = 0 if self._try(lam, k, beside) else n_stale + 1
            if n_stale == len(sizes):
                break

    def _beside(self, k: int) -> list[int]:
        """Larger and smaller sizes by turns: the farthest ones, and where tries are cheap all between."""
        larger, smaller = self._aside(k, ASIDE if self._whole is None else FAR_ASIDE)
        if self._whole is None or not self._swaps_are_cheap(k):
            return [larger, smaller]
        steps = range(max(larger - k, k - smaller), 0, -1)
        sizes = [size for step in steps for size in (min(k + step, larger), max(k - step, smaller))]
        return [size for size in dict.fromkeys(sizes) if size != k]

    def _aside(self, k: int, share: float = ASIDE) -> tuple[int, int]:
        """A larger and a smaller size."""
        step = 1 + int(share * k)
        return min(k + step, self.n_units), max(k - step, 1)

    def _tried_everything(self, lam: float, k: int, start: Candidate) -> bool:
        """All supports of one size, where they are few enough.

        Not so where the best of them is not as good as it seemed, by coefficients beyond reason: of others it
        is not known, either.
        """
        if not self._can_try_everything(k):
            return False
        whole = self._whole_panel(lam, start)
        if whole is None:
            return False
        whole.resize(k)
        whole.try_everything()
        whole.finish()
        self.n_newton += whole.n_newton
        found = whole.found()
        best = self._finish(lam, found)
        if not is_as_good(best.value, found.value):
            return False
        if k in self.found:
            self._finish_size(lam, k)
        if k not in self.found or best.value <= self.found[k].value:
            self.found[k] = best
            self.finished.add(k)
        return True

    def _can_try_everything(self, k: int) -> bool:
        room = ROOM_FOR_ALL if len(self.sizes) == 1 else ROOM_FOR_ALL_OF_PATH
        return self.effort.room > 0 and self._n_supports(k) * self._cost_of_try(k) <= room

    def _start_elsewhere(self, lam: float, k: int) -> None:
        """From single features, those first that gain most alone, where the search is cheap."""
        cost = self._cost_of_try(k)
        n_swaps, thorough = self._n_swaps(k), self.effort._replace(room=ROOM)
        n_starts = min(self.effort.max_starts, self.n_units // FEATURES_PER_START)
        work = n_swaps * cost if thorough.max_swaps < 0 else min(n_swaps * cost, ROOM)
        n_starts = min(n_starts, int(ROOM_FOR_STARTS / max(work, 1.0)))
        if n_swaps == 0 or n_starts == 0:
            return
        whole = self._whole_panel(lam, self._nothing())
        if whole is None:
            return
        if len(self.sizes) > 1:
            self._try(lam, k, self._come_down(lam, k), thorough)
        for feature in whole.best_alone(lam, n_starts):
            found = self.exchange(lam, k, self._alone(feature), self.effort.least())
            if found.value < PROMISING * self.found[k].value:
                self._try(lam, k, found, thorough)
        self._do_without(lam, k, ROUNDS_WITHOUT * k, thorough)

    def _do_without(self, lam: float, k: int, most: int, effort: Effort) -> None:
        """Search without each feature of the support by turns, and from there with all of them again.

        Those that move the decision least come first; after a success, those of the new support.
        """
        whole = self._whole_panel(lam, self._nothing())
        forgone: set[int] = set()
        if whole is None or k == self.n_units:
            return
        for _ in range(most):
            best = self.found[k]
            turn = [a for a in self._may_leave(best) if best.support[a] not in forgone]
            if not turn:
                return
            feature, rest = best.support[turn[0]], self._rest(best, turn[0])
            with whole.without(feature):
                found = self.exchange(lam, k, rest, effort)
            improved = found.value < PROMISING * best.value and self._try(lam, k, found, effort)
            forgone = set() if improved else forgone | {int(feature)}

    def _tries_are_quick(self, k: int, limit: float) -> bool:
        return self.is_small and self._cost_of_try(k) <= limit

    def _swaps_are_cheap(self, k: int) -> bool:
        """Whether there is room to try all of them."""
        return self._n_swaps(k) * self._cost_of_try(k) <= ROOM
