"""The loop around every search by units: exchange them while that lowers the objective.

What a unit costs to drop and gains when taken is asked of the algebra, which differs: panels of several
machines (`joint_set`), systems as large as the active rows (`dual_exchange`), products with X alone
(`product_exchange`), or refits by whatever suits each of several machines (`refit_set`). For single columns
of one machine in a panel the same loop is compiled (`search`, `working_set`).
"""

from abc import ABC, abstractmethod
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.search import HOPE, MAX_ROUNDS, TRIES, WIDTH
from kmargin.solvers.working_set import MAX_RENEWALS, Effort
from kmargin.types import Indices, Matrix, Vector
from kmargin.units import Units

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
