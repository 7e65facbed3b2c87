"""Supports of one or several sizes, for one ridge after another: warm starts, restarts, sweeps."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.problem import Problem
from kmargin.solvers.refit.dual import n_dual_numbers
from kmargin.solvers.refit.folded import BETTER, NOTHING, Candidate, Measured, is_as_good
from kmargin.solvers.refit.newton import NO_LOSS, cost_of_refit
from kmargin.solvers.search.large_supports import exchange_dual, exchange_products
from kmargin.solvers.search.swap_search import find_far, sweep
from kmargin.solvers.search.working_set import EXTRA, Effort, WorkingSet, exchange, search_from
from kmargin.solvers.solution import Regime, choose_regime, depends_on_active_rows, takes_all_columns

# A problem is small if the Gram matrix of all columns takes no more multiplications. Then a single fit takes
# all columns into one panel.
SMALL_GRAM = 1e7

# Multiplications that a small problem has to try more exchanges with: for a single fit; for each size of a
# path.
ROOM, ROOM_OF_PATH = 2e6, 5e4

# Multiplications up to which a thorough search tries every swap of one unit for another; some ten seconds.
MAX_FLOPS_OF_ALL_SWAPS = 2e10

# Restarts draw the same random numbers in every fit, so that the same data give the same model.
RESTART_SEED = 0


class Supports:
    """The best support seen of each size.

    Few columns are searched in one panel that holds them all. Many are searched through working sets; sizes
    beyond the number of active rows by systems as large as these; and sizes for which neither is in
    proportion to the data, by products with X alone. Which of them is asked of `choose_regime`.
    """

    last: Candidate  # what the last search from another start ended with

    def __init__(self, problem: Problem, sizes: Sequence[int], effort: Effort) -> None:
        self.rng = np.random.default_rng(RESTART_SEED)
        self.sizes = sorted({min(k, problem.design.n_features) for k in sizes if k > 0})
        self.measured = Measured(problem)
        self.design = self.measured.design
        self.n_units = self.design.n_features  # how many there are for k to count
        n, p = self.design.n_samples, self.design.n_features
        self.is_small = n * p * p <= SMALL_GRAM and self._panel_fits(p)
        room = ROOM if len(self.sizes) == 1 else ROOM_OF_PATH
        self.effort = effort._replace(room=room if self.is_small and effort.max_starts else 0.0)
        self.found: dict[int, Candidate] = {}
        self.finished: set[int] = set()  # sizes whose support is known to be at its minimum
        self.lam = np.inf  # the last ridge
        self._whole: WorkingSet | None = None
        self.dense: tuple[float, Candidate] | None = None  # the last ridge and its solution with all features
        self.n_newton = 0
        self.elsewhere = self.design.at_hand is None
        self.n_active: int | None = None  # rows, where they decide; of the last model below these sizes
        if not self._panel_fits(self.design.n_features):
            self.effort = self.effort._replace(all_swaps=False)  # they take a panel of all columns

    def best(self, k: int) -> Candidate:
        """The best support with at most k features, in the problem's units."""
        found = min((f for size, f in self.found.items() if size <= k), key=lambda found: found.value)
        return self.measured.leave(self.lam, found)

    def largest(self) -> Candidate:
        """The solution with the most features at hand, in the problem's units."""
        return self.measured.leave(self.lam, self.dense[1] if self.dense else self.found[max(self.found)])

    def improve(self, lam: float, start: Candidate) -> Candidate:
        """The best support of the same size found from one in the problem's units, in these."""
        start = self.measured.enter(start)
        found = self._finish(lam, self.exchange(lam, len(start.support), start, self.effort))
        return self.measured.leave(lam, found)

    def _finish_size(self, lam: float, k: int) -> None:
        if k not in self.finished:
            self.found[k] = self._finish(lam, self.found[k])
            self.finished.add(k)

    def _finish(self, lam: float, found: Candidate) -> Candidate:
        return self.measured.finish(lam, found)

    def _try(self, lam: float, k: int, start: Candidate, effort: Effort | None = None) -> bool:
        """Search from another start; keep what is better."""
        found = self.last = self.exchange(lam, k, start, self.effort if effort is None else effort)
        if not found.value < BETTER * self.found[k].value:
            return False
        self._finish_size(lam, k)  # what is only said to be better may not be
        found = self._finish(lam, found)
        better = found.value < BETTER * self.found[k].value
        if better:
            self.found[k] = found
        return better

    def _try_every_swap(self, lam: float, k: int) -> None:
        """Search on from the best support and try every swap of one unit for another, if affordable."""
        regime = self.found[k].regime
        if regime is None or not regime.takes_panel:
            return
        if self._n_swaps(k) * self._cost_of_try(k) > MAX_FLOPS_OF_ALL_SWAPS:
            return
        found = self.exchange(lam, k, self.found[k], self.effort.every_swap())
        if found.value * BETTER <= self.found[k].value:
            self.found[k] = found
            self.finished.discard(k)

    def exchange(self, lam: float, k: int, start: Candidate, effort: Effort) -> Candidate:
        """Search for one size: through a working set of columns, or by products if that does not fit."""
        whole = self._whole_panel(lam, start) if self._takes_whole() else None
        if whole is not None:
            found, n_newton = search_from(whole, k, effort)
            self.n_newton += n_newton
            return found
        if self._regime(k, start, effort).takes_panel:
            found, n_newton = exchange(self.design, lam, k, start, effort)
        else:
            assert self.design.at_hand is not None
            found, n_newton = exchange_products(self.design.at_hand, lam, k, start, effort)
        self.n_newton += n_newton
        return found

    def _whole_panel(self, lam: float, start: Candidate) -> WorkingSet | None:
        """A panel with all columns, at a support; None where it would be large. Made once."""
        if self._whole is not None:
            self._whole.start_again(lam, start)
        elif self.is_small:
            self._whole = WorkingSet(self.design, lam, self.design.n_features, start, self.effort.tol)
        return self._whole

    def _takes_whole(self) -> bool:
        """Whether one size is searched in a panel of all columns: a single one; or what was found along a
        path, from another start.
        """
        return len(self.sizes) == 1 or self._whole is not None

    def _panel_fits(self, size: int) -> bool:
        return self.design.fits((min(size, self.design.n_features) + 2) * self.design.n_samples)

    def _regime(
        self, k: int, start: Candidate, effort: Effort, n_active: int | None = None, n_dual: int = 0
    ) -> Regime:
        """The way to one size, from a start; by the dual with `n_dual` rows at first."""
        n_columns = max(k + effort.n_outside(k, self.design.n_features), len(start.support))
        return choose_regime(
            k=k,
            n_columns=n_columns,
            n_features=self.design.n_features,
            panel_fits=self.elsewhere or self._panel_fits(n_columns),
            elsewhere=self.elsewhere,
            n_active=n_active,
            dual_fits=n_active is not None and self.design.fits(n_dual_numbers(n_dual, k)),
        )

    def _small(self, lam: float) -> Candidate:
        """A quick model with a few features."""
        k = min(50, self.design.n_samples // 4 + 1, self.design.n_features)
        return self.exchange(lam, k, NOTHING, self.effort.least())

    def _dual(self, lam: float, k: int, start: Candidate) -> Candidate:
        """The same by systems as large as the active rows, if these fit."""
        design = self.design.at_hand
        assert design is not None
        start = start if len(start.support) else self._small(lam)
        n_dual = design.count_active(start)
        if self._regime(k, start, self.effort, self.n_active, n_dual) is Regime.DUAL:
            found, n_newton = exchange_dual(design, lam, k, start, self.effort.every_swap())
        else:
            found, n_newton = exchange_products(design, lam, k, start, self.effort)
        self.n_newton += n_newton
        return found

    def solve_dense(self, lam: float) -> Candidate:
        """All features, from the largest support at hand."""
        if self.dense is None or self.dense[0] != lam:
            start = self.found[max(self.found)] if self.found else NOTHING
            self.dense = lam, self._dual(lam, self.design.n_features, start)
        return self.dense[1]

    def _trim(self, found: Candidate, size: int) -> Candidate:
        """The features that move the decision most."""
        keep = np.sort(np.argsort(-self._effects(found), kind="stable")[:size])
        return Candidate(found.support[keep], np.append(found.u[keep], found.u[-1]), np.inf)

    def _effects(self, found: Candidate) -> Vector:
        """How much each feature of a support moves the decision."""
        return np.abs(found.u[:-1]) * np.sqrt(self.design.variance[found.support])

    def _cost_of_try(self, k: int) -> float:
        """About how many multiplications it takes to refit a support of this size."""
        return cost_of_refit(self.design.n_samples, k + 1)

    def _n_supports(self, k: int) -> int:
        return math.comb(self.n_units, k)

    def _n_swaps(self, k: int) -> int:
        """Exchanges of one for another."""
        return k * (self.n_units - k)

    def _ridge_scale(self) -> float:
        """The variance of a typical feature."""
        return float(np.median(self.design.variance))

    def _nothing(self) -> Candidate:
        """No features."""
        return NOTHING

    def _alone(self, feature: int) -> Candidate:
        """One feature, to start from."""
        return Candidate(np.array([feature]), np.zeros(2), np.inf)

    def _rest(self, found: Candidate, place: int) -> Candidate:
        """What is left without one feature, to start from."""
        return found.without(place)

    def _with(self, found: Candidate, features: Indices) -> Candidate:
        """A support with more features, to start from."""
        u = np.concatenate([found.u[:-1], np.zeros(len(features)), found.u[-1:]])
        return Candidate(np.append(found.support, features), u, np.inf)

    def _gains_beside(self, lam: float, found: Candidate) -> Vector | None:
        """What each feature would gain beside a support that is refitted; None where rows are elsewhere."""
        if self.elsewhere:
            return None
        return WorkingSet(self.design, lam, len(found.support), found, self.effort.tol).gains_alone()

    def _may_leave(self, found: Candidate) -> Indices:
        """Places of the support, those first that move the decision least."""
        return np.argsort(self._effects(found))


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
MAX_RETURN_SHARE = 0.2

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
        if self.is_small or self.effort.restart_flops == 0:
            self._go_aside(lam, k)
            self._start_elsewhere(lam, k)
        else:
            self._restart(lam, k)

    def _restart(self, lam: float, k: int) -> None:
        """Iterated local search: perturb the best support at random, search again, keep what is better.

        Part of the support is dropped and as many of the most promising units are added. The search under a
        stronger ridge first leads to other supports than the search under the given ridge alone.
        """
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
