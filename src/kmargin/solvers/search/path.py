"""Search supports of one or several sizes, for one ridge after another: warm starts, sweeps, restarts.

A unit is a feature, or a group of features that enters and leaves the support as a whole. A size k is a
number of units; a path is a fit of several sizes. A panel is a copy of some columns of X (see `panels`).
"""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.linalg import order_smallest
from kmargin.core.problem import Problem
from kmargin.solvers.refit.final import is_affordable
from kmargin.solvers.refit.large import n_dual_numbers
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import ArrayRows, make_rows
from kmargin.solvers.search.large_supports import LargeSupport
from kmargin.solvers.search.panels import UnitGains
from kmargin.solvers.search.swap_search import (
    BETTER,
    MAX_OUTSIDE,
    MAX_PREDICTED_RISE,
    Candidate,
    Effort,
    SwapSearch,
    refit_flops,
    unit_effects,
)
from kmargin.solvers.search.working_set import WorkingSet
from kmargin.solvers.solution import Regime

# A problem counts as small if the Gram matrix of all columns of X takes at most this many flops. Small
# problems are searched from more starts, and with all columns copied into one array (a panel).
SMALL_GRAM_FLOPS = 1e7

# If X has at most this many columns, one panel (a copy of all columns) serves all sizes of a path.
WHOLE_PANEL_COLUMNS = 256

# Supports with more columns than this are refitted by linear systems with one unknown per active row (row of
# positive loss), if there are fewer active rows than columns. This is the regime DUAL.
LARGE_SUPPORT = 128

# In small problems more swaps than `Effort.max_swaps` may fail in a row, if their refits take at most this
# many flops together: in a fit of one size, and for each size of a path.
SWAP_FLOPS, PATH_SWAP_FLOPS = 2e6, 5e4

# effort="thorough" tries all swaps of one unit for another if refits take at most this many flops (10 s).
ALL_SWAPS_FLOPS = 2e10

# All supports of size k are refitted if that takes at most this many flops: in a fit of one k, and on a path.
ENUMERATION_FLOPS, PATH_ENUMERATION_FLOPS = 6e6, 1.5e6

# Some searches start from a single unit (feature or group): at most one search per UNITS_PER_START units of
# the problem, and at most START_FLOPS flops together. A support found by such a search is the start of a
# search with full effort if its objective is below START_RTOL times the best one so far.
START_FLOPS, UNITS_PER_START, START_RTOL = 1e7, 8, 4.0

# A size of a path is searched from other starts if a refit takes at most PATH_START_FLOPS flops. If it takes
# more, but at most PATH_OMIT_FLOPS, the search is instead repeated without a unit of the support, for
# PATH_OMITTED units in turn. Searches from other starts end with OMITTED_ROUNDS * k such repetitions.
PATH_START_FLOPS, PATH_OMIT_FLOPS, PATH_OMITTED, OMITTED_ROUNDS = 2e3, 9e3, 4, 2

# A fit of one size begins with searches with decreasing ridges. In units of the median variance of a column,
# the first is STRONGEST, and each is RIDGE_STEP times the next, until the given ridge or WEAKEST is reached.
STRONGEST, RIDGE_STEP, WEAKEST = 0.1, 10.0, 0.9e-4

# A fit of one size k also searches sizes that differ from k by at most 1 + NEARBY * k (in small problems
# 1 + SMALL_NEARBY * k), and uses the supports found there as starts for size k.
NEARBY, SMALL_NEARBY = 0.2, 0.5

# Flop budgets are multiplied by the number of binary problems, or by this number if that is smaller.
MAX_BUDGETS = 4

# A restart replaces a random number c of units of the support by c units, drawn from the ADD_POOL * c units
# that are predicted to lower the objective most. It searches with decreasing ridges: the first is random, at
# most RESTART_STRONGEST times the median variance of the columns, and the next ones RESTART_STEP times
# smaller each, down to the given one. If the objective is then below RESTART_RTOL times the best, a search
# with full effort follows.
ADD_POOL, RESTART_STRONGEST, RESTART_STEP, RESTART_RTOL = 4, 0.5, 2.5, 1.1

# A restart ends after RESTART_SWAPS failed swaps of one unit for another in a row. Its time is estimated, so
# that the number of restarts depends on the data alone: RESTART_SECONDS, plus ENTRY_SECONDS per entry of X,
# plus STEP_SECONDS per Newton step, plus FLOP_SECONDS per flop of a Newton step.
RESTART_SWAPS, RESTART_SECONDS, ENTRY_SECONDS, STEP_SECONDS, FLOP_SECONDS = 16, 3e-4, 1e-9, 1e-5, 1e-10

# Restarts end after the fraction PATIENCE of their time limit, or SUCCESS_FACTOR * t later if the last better
# support was found after t seconds. They also end if the latest searches, nearby sizes included, all led back
# to the best support and together took the fraction MAX_RETURN_FRACTION of the limit.
PATIENCE, SUCCESS_FACTOR, MAX_RETURN_FRACTION = 0.4, 3.0, 0.1

# If X has at least as many rows as columns, and at least this many rows for each unit of the support, random
# restarts seldom find a better support and are made only for effort="thorough".
FEW_ROWS_PER_UNIT = 8

# Seed of the random numbers of restarts, the same in every fit, so that the same data give the same model.
RESTART_SEED = 0


class SupportPath:
    """Searches for the best support of each size, for given ridges, one for each binary problem."""

    def __init__(self, problem: Problem, sizes: Sequence[int], effort: Effort) -> None:
        self.units = units = problem.units
        self.all_rows = [make_rows(binary) for binary in problem.binary]
        self.array_rows = [rows for rows in self.all_rows if isinstance(rows, ArrayRows)]  # none if in blocks
        self.n_problems, self.n_units = len(self.all_rows), units.n_units
        self.fixed_units = Candidate.start(np.flatnonzero(units.fixed), units, self.n_problems)
        self.n_fixed = len(self.fixed_units.support)
        self.sizes = sorted({units.check_size(k) for k in sizes if k > 0})
        self.n_rows = sum(rows.n_samples for rows in self.all_rows)
        self.is_remote = any(rows.is_remote for rows in self.all_rows)
        n_columns, holds_all = len(units.columns), self._panel_fits(self.n_units)
        self.is_narrow = n_columns <= WHOLE_PANEL_COLUMNS and holds_all
        self.is_small = self.n_rows / self.n_problems * n_columns**2 <= SMALL_GRAM_FLOPS and self.is_narrow
        self.n_budgets = min(self.n_problems, MAX_BUDGETS)
        flops = (SWAP_FLOPS if len(self.sizes) == 1 else PATH_SWAP_FLOPS) * self.n_budgets
        flops = flops if self.is_small and effort.max_starts else 0.0
        self.effort = effort._replace(flops=flops, all_swaps=effort.all_swaps and holds_all)
        self.found: dict[int, Candidate] = {}  # for each size, the best support found
        self.finished: set[int] = set()  # sizes whose best support has had its final refit
        self.failed: dict[Effort, set[frozenset[int]]] = {}  # for each effort, supports where a search ended
        self.promising = np.inf  # searches with a higher objective skip `search_wider`
        self.n_newton = 0
        self.rng = np.random.default_rng(RESTART_SEED)
        self._whole: WorkingSet | None = None
        self._part: WorkingSet | None = None

    @cached_property
    def gains(self) -> list[UnitGains]:
        return [UnitGains(rows, self.units) for rows in self.all_rows]

    def best(self, k: int) -> Candidate:
        """The best support found with at most k units (features or groups)."""
        return min((found for size, found in self.found.items() if size <= k), key=attrgetter("value"))

    def walk(self, lams: Vector) -> None:
        """Search supports of all sizes with the ridges `lams`, from the supports for the previous ridges."""
        self.lams, self.n_newton = lams, 0
        self.finished, self.failed = set(), {}
        if not self.sizes:
            return
        # The ridges are `strength` times `unit_lams`, each of which is about the median variance of a column.
        scales = np.array([np.median(rows.variance[self.units.columns]) for rows in self.all_rows])
        ratios = np.divide(lams, scales, out=np.zeros(len(lams)), where=scales > 0)
        self.strength = float(np.median(ratios))
        self.unit_lams = lams / self.strength if self.strength > 0 else scales
        if len(self.sizes) == 1 and self._has_panel(self.sizes[0]):
            self._walk_single(self.sizes[0])
        elif self.is_narrow:
            self._walk_whole()
        else:
            self._walk_wide()
        if len(self.sizes) > 1 and self.effort.max_starts and self.is_small:
            for size in sorted(self.found):
                flops = self._trial_flops(size)
                if flops > PATH_OMIT_FLOPS:
                    break  # refits of larger supports take even more flops
                if flops <= PATH_START_FLOPS:
                    if not self._tried_every_support(size, self.found[size]):
                        self._start_elsewhere(size)
                elif size > 2:  # swaps of two units for two can reach any support of size 2
                    self._omit_units(size, PATH_OMITTED, self.effort)
        for size in self.found:
            if self.effort.all_swaps and not self.found[size].all_tried:
                self._try_every_swap(size)
            self._finish_size(size)

    def improve(self, lams: Vector, start: Candidate) -> None:
        """Search with the ridges `lams` for a better support than `start` of the same size, from it alone."""
        self.lams, self.n_newton = lams, 0
        size = len(start.support)
        self.found = {size: self._finish(self._search(lams, size, start, self.effort))}

    def _search(self, lams: Vector, k: int, start: Candidate, effort: Effort) -> Candidate:
        """Search by swaps from `start`, first resized to k units; return the support found."""
        search = self._make_search(lams, k, start, effort)
        at_these = lams is self.lams and not (self._whole is search and self._whole.barred is not None)
        search.failed = self.failed.setdefault(effort, set()) if at_these else None
        search.promising = self.promising
        search.resize(k)
        search.settle(effort)
        found = search.result()
        self.n_newton += search.n_newton
        return found

    def _make_search(self, lams: Vector, k: int, start: Candidate, effort: Effort) -> SwapSearch:
        if self._whole is not None and self.units.widest(k) <= LARGE_SUPPORT:
            return self._whole_panel(lams, start)
        size = max(k + effort.n_outside(k, self.n_units), len(start.support))
        regime = self._regime(k, size, start)
        if not regime.takes_panel:
            return LargeSupport(self.array_rows, self.units, lams, start, effort.tol, regime)
        if self.is_small or self._whole is not None:
            return self._whole_panel(lams, start)
        if self._part is not None and self._part.has_room(size):
            self._part.restart(lams, start, size)
        else:
            capacity = size
            if len(self.sizes) == 1:
                larger = self._nearby_range(k, NEARBY)[0]  # largest size searched beside k, with least effort
                needs = ((k, self.effort), (larger, effort.least()))
                sizes = [size + each.n_outside(size, self.n_units) for size, each in needs]
                capacity = min(max(sizes), self.n_units - 1)
            self._part = WorkingSet(
                self.all_rows, self.units, lams, size, start, effort.tol, self.gains, capacity
            )
        return self._part

    def _whole_panel(self, lams: Vector, start: Candidate) -> WorkingSet:
        """Return the search that has all columns in its panel, moved to `start`; the first call makes it."""
        if self._whole is None:
            self._whole = WorkingSet(
                self.all_rows, self.units, lams, self.n_units, start, self.effort.tol, self.gains
            )
        else:
            self._whole.restart(lams, start)
        return self._whole

    def _regime(self, k: int, size: int, start: Candidate) -> Regime:
        """Choose the linear algebra for refits of k units; a panel (copied columns) would hold `size` units.

        The choice depends on the number of active rows (of positive loss) at the coefficients of `start`.
        """
        n_columns = self.units.widest(k)
        primal = Regime.PANEL if size >= self.n_units else Regime.WORKING_SET
        if self.is_remote or self.units.signs.any():
            return primal
        if n_columns > LARGE_SUPPORT and len(start.support):
            columns = self.units.columns_of(start.support)
            n_active = max(
                rows.count_active(columns, u) for rows, u in zip(self.array_rows, start.coefs, strict=True)
            )
            if n_columns > n_active:
                fits = self.all_rows[0].fits(self.n_problems * n_dual_numbers(n_active, n_columns))
                return Regime.DUAL if fits else Regime.PRODUCTS
        return primal if self._panel_fits(size) else Regime.PRODUCTS

    def _panel_fits(self, size: int) -> bool:
        """Whether a panel, a dense copy of the columns of `size` units, is not too large compared with X."""
        return self.is_remote or self.all_rows[0].fits((self.units.widest(size) + 2) * self.n_rows)

    def _has_panel(self, k: int) -> bool:
        """Whether a fit of one size k copies columns into a panel, however many rows are active."""
        size = self._nearby_range(k, NEARBY)[0] + self.effort.n_outside(k, self.n_units)
        is_moderate = self.units.widest(k) <= LARGE_SUPPORT or self.units.signs.any() or self.is_remote
        return self.is_narrow or (is_moderate and self._panel_fits(size))

    def _trial_flops(self, k: int) -> float:
        """Flops of a refit of k units, divided by `n_budgets` for comparison with budgets of one problem."""
        n_columns = math.ceil(k * len(self.units.columns) / self.n_units) + 1
        return refit_flops(self.all_rows, n_columns) / self.n_budgets

    def _n_swaps(self, k: int) -> int:
        return (k - self.n_fixed) * (self.n_units - k)

    def _removable(self, found: Candidate) -> Indices:
        """Indices into the support of units that may be dropped, least effect on decision values first."""
        order = np.argsort(unit_effects(self.all_rows, self.units, found), kind="stable")
        return order[~self.units.fixed[found.support[order]]]

    def _trim(self, found: Candidate, size: int) -> Candidate:
        """A start for a search: the `size` units of `found` with the largest effects on decision values."""
        n_gone = max(0, len(found.support) - size)
        return found.without(self._removable(found)[:n_gone], self.units)

    def _try(self, k: int, start: Candidate, effort: Effort | None = None) -> bool:
        """Search for k units from `start`; put a better result into `found`; return whether it is better."""
        self.promising = (1.0 + MAX_PREDICTED_RISE) * self.found[k].value
        self.last = found = self._search(self.lams, k, start, effort or self.effort)
        self.promising = np.inf
        if not found.value < BETTER * self.found[k].value:
            return False
        self._finish_size(k)  # before its final refit, the objective of `found[k]` may be too high
        found = self._finish(found)
        is_better = found.value < BETTER * self.found[k].value
        if is_better:
            self.found[k] = found
        return is_better

    def _finish_size(self, k: int) -> None:
        if k not in self.finished:
            self.found[k] = self._finish(self.found[k])
            self.finished.add(k)

    def _finish(self, found: Candidate) -> Candidate:
        """Refit the support precisely, by SVD, unless that is expensive or the gradient is known to be 0."""
        if found.is_exact or self.is_remote or self.units.signs.any() or found.values is None:
            return found
        coefs, values = found.coefs.copy(), found.values.copy()
        columns = self.units.columns_of(found.support)
        is_panel = found.regime is not None and found.regime.takes_panel
        for p, rows in enumerate(self.array_rows):
            if is_affordable(rows.n_samples, len(columns)) and (
                is_panel or not rows.is_minimum(self.lams[p], columns, coefs[p], values[p])
            ):
                coefs[p], values[p] = rows.minimise_exactly(self.lams[p], columns, coefs[p], values[p])
        value = float(values.sum())
        # If the refit lowered the objective, objectives of rejected supports may have been too high as well.
        all_tried = found.all_tried and value >= BETTER * found.value
        return found._replace(coefs=coefs, values=values, value=value, all_tried=all_tried, is_exact=True)

    def _try_every_swap(self, k: int) -> None:
        """Try every swap of one unit of the best support, if the refits take at most ALL_SWAPS_FLOPS."""
        regime, flops = self.found[k].regime, self._n_swaps(k) * self._trial_flops(k)
        if regime is None or not regime.takes_panel or flops > ALL_SWAPS_FLOPS:
            return
        found = self._search(self.lams, k, self.found[k], self.effort._replace(max_swaps=-1))
        if found.value * BETTER <= self.found[k].value:
            self.found[k] = found
            self.finished.discard(k)

    def _walk_single(self, k: int) -> None:
        """Search size k from the previous ridges' support or via stronger ridges; then from other starts."""
        found = self.found.pop(k, None)
        if found is None:
            found = self.fixed_units
            if not self._can_try_every_support(k):
                found = self._descend(k, found, STRONGEST, RIDGE_STEP)
        if self._tried_every_support(k, found):
            return
        self.found[k] = self._search(self.lams, k, found, self.effort)
        self._search_nearby_sizes(k)
        if self.is_small:
            self._start_elsewhere(k)
        few_rows = self.n_problems * max(len(self.units.columns), FEW_ROWS_PER_UNIT * k)
        if (self.n_rows < few_rows or self.effort.all_swaps) and not self.is_remote:
            self._restart(k)

    def _descend(self, k: int, found: Candidate, strongest: float, step: float) -> Candidate:
        """Search with ridges strongest * unit_lams, divided by `step` repeatedly, down to nearly `lams`."""
        while strongest > max(math.sqrt(step) * self.strength, WEAKEST):
            found = self._search(strongest * self.unit_lams, k, found, self.effort.least())
            strongest /= step
        return found

    def _can_try_every_support(self, k: int) -> bool:
        n_supports = math.comb(self.n_units - self.n_fixed, k - self.n_fixed)
        flops = ENUMERATION_FLOPS if len(self.sizes) == 1 else PATH_ENUMERATION_FLOPS
        return self.effort.flops > 0 and n_supports * self._trial_flops(k) <= flops

    def _tried_every_support(self, k: int, start: Candidate) -> bool:
        """Refit all supports of size k if they are few; return whether the best is known to be optimal."""
        if not self._can_try_every_support(k):
            return False
        whole = self._whole_panel(self.lams, start)
        whole.resize(k)
        if len(whole.support) != k:  # no unit could be dropped or added any more
            return False
        whole.try_every_support()
        found = whole.result()
        self.n_newton += whole.n_newton
        best = self._finish(found)
        if not best.value * BETTER <= found.value + ZERO_OBJECTIVE:
            return False  # the refits were inexact, so that another support may be better
        if k not in self.found or best.value <= self.found[k].value:
            self.found[k] = best
            self.finished.add(k)
        return True

    def _search_nearby_sizes(self, k: int) -> None:
        """Search supports of sizes near k, and use each one found as a start of a search for size k."""
        sizes = self._nearby_sizes(k)
        n_stale, self.in_vain = 0, 0.0
        for number in range(len(sizes) * self.effort.max_sweeps // 2):
            best, n_newton = self.found[k], self.n_newton
            found = self._search(self.lams, sizes[number % len(sizes)], best, self.effort.least())
            n_stale = 0 if self._try(k, found) else n_stale + 1
            self._count_seconds(k, best, n_newton)
            if n_stale == len(sizes):
                break

    def _nearby_sizes(self, k: int) -> list[int]:
        """Sizes to search beside k, farthest first, larger and smaller in turn; only 2 if refits are slow."""
        is_inexpensive = self._n_swaps(k) * self._trial_flops(k) <= SWAP_FLOPS
        larger, smaller = self._nearby_range(k, NEARBY if self._whole is None else SMALL_NEARBY)
        if self._whole is None or not is_inexpensive:
            return [larger, smaller]
        steps = range(max(larger - k, k - smaller), 0, -1)
        sizes = [size for step in steps for size in (min(k + step, larger), max(k - step, smaller))]
        return [size for size in dict.fromkeys(sizes) if size != k]

    def _nearby_range(self, k: int, fraction: float) -> tuple[int, int]:
        """The largest and the smallest size to search beside k: k plus or minus 1 + fraction * k."""
        step = 1 + int(fraction * k)
        return min(k + step, self.n_units), max(k - step, 1, self.n_fixed)

    def _start_elsewhere(self, k: int) -> None:
        """If refits are inexpensive, search from single units, first those that lower the objective most."""
        flops, n_swaps = self._trial_flops(k), self._n_swaps(k)
        effort = self.effort._replace(flops=SWAP_FLOPS)
        work = min(n_swaps * flops, SWAP_FLOPS)
        n_starts = min(
            self.effort.max_starts, self.n_units // UNITS_PER_START, int(START_FLOPS / max(work, 1.0))
        )
        if n_swaps == 0 or n_starts == 0 or flops * self.n_budgets > 0.25 * SWAP_FLOPS:
            return
        if len(self.sizes) > 1:
            self._try(k, self._descend(k, self.fixed_units, STRONGEST, RIDGE_STEP), effort)
        whole = self._whole_panel(self.lams, self.fixed_units)
        outside = whole.outside()
        for unit in outside[order_smallest(-whole.score(outside).gain, n_starts)]:
            start = self.fixed_units.with_units(np.array([unit]), self.units)
            found = self._search(self.lams, k, start, self.effort.least())
            if found.value < START_RTOL * self.found[k].value:
                self._try(k, found, effort)
        self._omit_units(k, OMITTED_ROUNDS * k, effort)

    def _omit_units(self, k: int, n_rounds: int, effort: Effort) -> None:
        """Search without one unit of the best support, then from the result with all units; repeat.

        Units of least effect on decision values are left out first. A success starts over from the new
        support.
        """
        whole = self._whole_panel(self.lams, self.fixed_units)
        omitted: set[int] = set()
        if k == self.n_units:
            return
        for _ in range(n_rounds):
            best = self.found[k]
            places = [a for a in self._removable(best) if int(best.support[a]) not in omitted]
            if not places:
                return
            unit, rest = int(best.support[places[0]]), best.without(np.array(places[:1]), self.units)
            with whole.without(unit):
                found = self._search(self.lams, k, rest, effort)
            is_better = found.value < START_RTOL * best.value and self._try(k, found, effort)
            omitted = set() if is_better else omitted | {unit}

    def _restart(self, k: int) -> None:
        """Iterated local search: perturb the best support, search with decreasing ridges, keep the better."""
        budget, spent = self.effort.restart_seconds, 0.0
        end = PATIENCE * budget
        effort = self.effort._replace(max_swaps=max(self.effort.max_swaps, RESTART_SWAPS), flops=0.0)
        weakest = max(self.strength, WEAKEST)
        while spent < min(end, budget) and self.in_vain < MAX_RETURN_FRACTION * budget:
            best, n_newton = self.found[k], self.n_newton
            start = self._perturbed(k, best) if best.value > ZERO_OBJECTIVE else None
            if start is None:
                return
            strongest = weakest * (RESTART_STRONGEST / weakest) ** self.rng.random()
            found = self._descend(k, start, strongest, RESTART_STEP)
            self.last = found = self._search(self.lams, k, found, self.effort.least())
            is_better = found.value < RESTART_RTOL * best.value and self._try(k, found, effort)
            spent += self._count_seconds(k, best, n_newton)
            end = PATIENCE * budget + SUCCESS_FACTOR * spent if is_better else end

    def _count_seconds(self, k: int, best: Candidate, n_newton: int) -> float:
        """Estimate the seconds since `best` was the best support and `n_newton` Newton steps had been made.

        If the last search ended at `best` again, they are added to `in_vain`; otherwise `in_vain` becomes 0.
        """
        n_entries = sum(rows.n_samples * rows.n_features for rows in self.all_rows)
        step = STEP_SECONDS + FLOP_SECONDS * self._trial_flops(k) * self.n_budgets / self.n_problems
        seconds = RESTART_SECONDS + ENTRY_SECONDS * n_entries + (self.n_newton - n_newton) * step
        is_same = set(self.last.support.tolist()) == set(best.support.tolist())
        self.in_vain = self.in_vain + seconds if is_same else 0.0
        return seconds

    def _perturbed(self, k: int, best: Candidate) -> Candidate | None:
        """The best support with a random number of units replaced; None if no unit can be replaced."""
        order = self.rng.permutation(self._removable(best))
        if len(order) == 0 or self.n_units == k:
            return None
        n_dropped = 1 + int(self.rng.integers(len(order)))
        rest = best.without(np.sort(order[:n_dropped]), self.units)
        search = self._make_search(self.lams, len(rest.support), rest, self.effort.least())
        if not isinstance(search, WorkingSet):
            return None
        gains = search.panels.gains(search.support, search.coefs)
        gains[rest.support] = 0.0
        pool = order_smallest(-gains, ADD_POOL * n_dropped)
        added = self.rng.permutation(pool[gains[pool] > 0])[:n_dropped]
        return Candidate(search.support, search.coefs).with_units(added, self.units)

    def _walk_whole(self) -> None:
        """Search all sizes in one panel of all columns, each from the supports of its neighbours in size."""
        sizes = self.sizes[::-1]
        self._whole_panel(self.lams, self.found.get(sizes[0], self.fixed_units))
        for k in sizes if self.found else sizes[:1]:
            self.found[k] = self._search(self.lams, k, self.found.get(k, self.fixed_units), self.effort)
        self._sweep(sizes, first=0)

    def _walk_wide(self) -> None:
        """Search sizes with fewer columns than active rows in rising order, then others in falling order."""
        warm, self.found = self.found, {}
        below: list[int] = []
        found = self.fixed_units
        for k in self.sizes:
            if found.value <= ZERO_OBJECTIVE:
                break  # more units cannot lower an objective of zero
            found = warm.get(k, found)
            if self.units.widest(k) > LARGE_SUPPORT and len(found.support) == 0:
                # The number of active rows is estimated at the minimum on a small support.
                size = min(k, 50, self.n_rows // self.n_problems // 4 + 1)
                found = self._search(self.lams, max(size, self.n_fixed), found, self.effort.least())
                if found.value <= ZERO_OBJECTIVE:
                    self.found[len(found.support)] = found
                    break
            regime = self._regime(k, k + self.effort.n_outside(k, self.n_units), found)
            if regime is Regime.DUAL or (regime is Regime.PRODUCTS and self.units.widest(k) > LARGE_SUPPORT):
                break
            found = self.found[k] = self._search(self.lams, k, found, self.effort)
            below.append(k)
        above = [] if found.value <= ZERO_OBJECTIVE else [k for k in self.sizes if k not in below]
        if above:
            # The fit of all units starts from coefficients 0, where all rows are active. From the minimum on
            # a small support, where few are active, Newton's method would take ten times as many steps.
            zero = Candidate.start(np.arange(self.n_units), self.units, self.n_problems)
            larger = self._search(self.lams, self.n_units, zero, self.effort)
        for k in reversed(above):
            larger = self.found[k] = self._search(
                self.lams, k, warm.get(k, self._trim(larger, k)), self.effort
            )
        if above and below:
            self._try(below[-1], self._trim(larger, below[-1] + MAX_OUTSIDE))
        self._sweep(below, first=1)

    def _sweep(self, sizes: list[int], first: int) -> None:
        """Search each size from the support of its neighbour in `sizes`, until a sweep changes no support.

        Sweeps are numbered from `first` on; those with odd numbers go through `sizes` in reverse. A support
        that has not changed since it was last used as a start is skipped.
        """
        fresh = set(sizes)
        for number in range(first, self.effort.max_sweeps):
            order = sizes if number % 2 == 0 else sizes[::-1]
            changed: set[int] = set()
            for neighbour, k in pairwise(order):
                if k not in self.found:
                    self.found[k] = self._search(self.lams, k, self.found[neighbour], self.effort)
                    changed.add(k)
                elif neighbour in fresh | changed and self._try(k, self.found[neighbour]):
                    changed.add(k)
            if number > 0 and not changed:
                return
            fresh = changed if number > 0 else fresh
