"""Working sets of columns that are renewed from X, and the loop around every search by units."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.linalg import smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.folded import NOTHING, Candidate, Signed
from kmargin.solvers.refit.newton import NO_LOSS, place, resume, take_gram
from kmargin.solvers.search.swap_search import (
    HOPE,
    MAX_ROUNDS,
    TRIES,
    WIDTH,
    Fit,
    find_far,
    grow,
    minimize,
    search,
    shrink,
    try_every_support,
)
from kmargin.solvers.solution import Regime

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


NONE: Indices = np.empty(0, np.int64)

Pairs = list[tuple[int, int]]


class UnitScores(NamedTuple):
    """What exchanges do to the objective, to second order."""

    drop: Vector  # what each unit of the support costs; inf where it is fixed
    gain: Vector  # what each unit outside gains
    change: Matrix | None = None  # what an exchange of one for another does; None: drop minus gain


class FittedSupport(ABC):
    """A set of units whose coefficients are at their minimum, and the search from it for a better one."""

    units: Units
    tol: float
    support: Indices  # units, in the order of the search
    value: float
    is_whole: bool  # whether all units are looked at, so that there is nothing to renew
    scores_all: bool = False  # whether all that are looked at are scored
    tries_pairs: bool = True  # whether exchanges of two for two are tried

    # Each lowers the objective, so there is an end; where a try is dear, it comes sooner.
    max_rounds: int = MAX_ROUNDS
    max_renewals: int = MAX_RENEWALS
    growth: float = 0.5  # units that are taken at a time, on the way to a size, beside those that are in
    all_tried: bool  # whether the last search has tried every exchange of one unit for another, in vain
    is_clear_cut: bool = False  # whether the support stands far above all that it could be exchanged for
    worth: float = np.inf  # an objective above which it is not worth while to look elsewhere
    in_vain: set[frozenset[int]] | None = None  # supports searched from before, by the same effort

    @abstractmethod
    def outside(self) -> Indices:
        """The units that may come in, as far as they are looked at."""

    @abstractmethod
    def renew(self) -> None:
        """Look at those units that promise most."""

    @abstractmethod
    def score(self, outside: Indices) -> UnitScores: ...

    def score_pairs(
        self, outside: Indices, lose: Indices, take: Indices, pairs_out: Pairs, pairs_in: Pairs
    ) -> Matrix:
        """What an exchange of two units for two does: of those at the places `lose` of the support, and at
        the places `take` of `outside`. Asked only where `score` says what single exchanges do.
        """
        raise NotImplementedError

    @abstractmethod
    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """Refit without the units at the places `lose` and with the units `take`; stay there if that is
        better. A refit may end when it seems not to get below `give_up`.
        """

    def tried_in_turn(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """Exchanges one after another, lose[turn] for take[turn], until one is better."""
        return any(self.tried(out, come, give_up) for out, come in zip(lose, take, strict=True))

    @abstractmethod
    def move(self, lose: Indices, take: Indices) -> None:
        """The same, whatever it does to the objective."""

    @abstractmethod
    def cost_of_try(self) -> float:
        """About how many multiplications a refit takes."""

    def resize(self, k: int) -> None:
        """Drop the cheapest units, or add the most gainful, until there are k or all that may come or go."""
        while len(self.support) > k:
            size, scores = len(self.support), self.score(NONE)
            c = min(size - k, max(1, size // 8), int(np.isfinite(scores.drop).sum()))
            if c == 0:
                return
            cheapest = np.argsort(scores.drop, kind="stable")
            self.move(cheapest[:c], NONE)
        if len(self.support) < k:
            self.renew()
        while len(self.support) < k:
            size, outside = len(self.support), self.outside()
            c = min(k - size, max(1, int(self.growth * size)), len(outside))
            if c == 0:
                return
            gain = self.score(outside).gain
            self.move(NONE, outside[np.argsort(-gain, kind="stable")[:c]])

    def settle(self, effort: Effort) -> None:
        """Search among the units looked at, and look again, until nothing changes: first cheaply, then with
        all effort.
        """
        thorough = False
        for _ in range(self.max_renewals):
            if self._was_searched():
                return
            self.renew()
            before, again = self.value, True
            if not thorough:
                self.search(effort.least())
                thorough = not self.value < before
                again = False  # what failed then would fail now
            if thorough and (again or effort != effort.least()):
                self.search(effort, many=again)
            if thorough and (not self.value < before or self.is_whole):
                if not self.look_elsewhere(effort):
                    break
                thorough = False
        if self.in_vain is not None:
            self.in_vain.add(frozenset(self.support.tolist()))

    def _was_searched(self) -> bool:
        return self.in_vain is not None and frozenset(self.support.tolist()) in self.in_vain

    def look_elsewhere(self, effort: Effort) -> bool:
        """Whether a better support was found among units that do not promise most now, but may do so where
        others are gone.
        """
        return False

    def search(self, effort: Effort, many: bool = True) -> None:
        """Many for many while that pays, then one for one, then two for two; scores anew after a success."""
        self.all_tried = False
        for _ in range(self.max_rounds):
            outside = self.outside()
            if len(self.support) == 0 or len(outside) == 0 or self.value < NO_LOSS:
                self.all_tried = True
                return
            if np.isnan(self.value):  # every exchange would be as good as any other
                return
            scores = self.score(outside)
            many = many and self._try_many(outside, scores)
            if not (
                many
                or self._try_singles(outside, scores, effort)
                or self._try_doubles(outside, scores, effort)
            ):
                return
        self.all_tried = False

    def _try_many(self, outside: Indices, scores: UnitScores) -> bool:
        """The c cheapest for the c most gainful, as many as the scores say pays; c is halved on failure."""
        drop, gain = scores.drop, scores.gain
        lose, take = np.argsort(drop, kind="stable"), np.argsort(-gain, kind="stable")
        most = min(len(outside), len(self.support) // 2, int(np.isfinite(drop).sum()))
        pays = drop[lose[:most]] < gain[take[:most]]
        c = most if pays.all() else int(pays.argmin())
        while c > 1:  # one for one comes next
            if self.tried(lose[:c], outside[take[:c]], self.value):
                return True
            c //= 2
        return False

    def _try_singles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """One for one, in the order of what the scores promise; how many, see `search.try_swaps`."""
        m = len(outside)
        n_swaps = int(np.isfinite(scores.drop).sum()) * m
        affordable = effort.room / self.cost_of_try()
        everything = (effort.max_swaps < 0 or affordable >= n_swaps) and self.scores_all
        n_tries = self._fewer(effort.max_swaps)
        n_tries = n_swaps if everything else min(n_swaps, max(1, n_tries, int(affordable)))
        lose, take, change = self.single_changes(outside, scores, n_tries)
        hope = np.inf if everything else HOPE * self.value
        a, b = np.divmod(smallest_first(change.ravel(), n_tries, hope), len(take))
        give_up = np.inf if everything else self.value
        if self.tried_in_turn(lose[a, None], outside[take[b], None], give_up):
            return True
        self.all_tried = everything
        return False

    def single_changes(
        self, outside: Indices, scores: UnitScores, n_tries: int
    ) -> tuple[Indices, Indices, Matrix]:
        """Places of the support and of `outside` among which the best n exchanges are, and what these do.

        inf where a unit is fixed.
        """
        if scores.change is None:
            lose = np.argsort(scores.drop, kind="stable")[:n_tries]
            take = np.argsort(-scores.gain, kind="stable")[:n_tries]
            change = scores.drop[lose, None] - scores.gain[take]
        else:
            lose, take = np.arange(len(self.support)), np.arange(len(outside))
            change = np.where(np.isfinite(scores.drop)[:, None], scores.change, np.inf)
        return lose, take, change

    def _try_doubles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """Two for two, out of the cheapest and the most gainful; none where each would be drop minus gain."""
        if scores.change is None or not self.tries_pairs:
            return False
        n_lose = min(WIDTH, int(np.isfinite(scores.drop).sum()))
        n_take = min(WIDTH, len(outside))
        tries = effort.max_double_swaps
        affordable = int(effort.room / self.cost_of_try()) if tries > 0 else 0
        tries = max(self._fewer(tries), affordable)
        if tries == 0 or n_lose < 2 or n_take < 2:
            return False
        lose = np.argsort(scores.drop, kind="stable")[:n_lose]
        take = np.argsort(-scores.gain, kind="stable")[:n_take]
        pairs_out, pairs_in = list(combinations(range(n_lose), 2)), list(combinations(range(n_take), 2))
        change = self.score_pairs(outside, lose, take, pairs_out, pairs_in).ravel()
        a, b = np.divmod(smallest_first(change, tries, HOPE * self.value), len(pairs_in))
        out, come = np.array(pairs_out)[a], np.array(pairs_in)[b]
        return self.tried_in_turn(lose[out], outside[take[come]], self.value)

    def _fewer(self, tries: int) -> int:
        """Large supports: fewer and dearer tries."""
        n_columns = int(self.units.sizes[self.support].sum())
        return min(tries, TRIES * tries // (n_columns + 1))


def smallest_first(values: Vector, count: int, bound: float) -> Indices:
    """Places of the smallest values up to a bound, in order; what is not a number comes last, what is
    infinite not at all.
    """
    order = np.empty(min(count, len(values)), np.int64)
    smallest(np.where(np.isnan(values), np.inf, values), len(values), len(order), order)
    found = values[order]
    return order[~((found > bound) | (found == np.inf))]
