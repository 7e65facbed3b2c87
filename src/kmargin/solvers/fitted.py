"""The loop around every search by units: exchange them while that lowers the objective.

What a unit costs to drop and gains when taken is asked of the algebra, which differs: panels of several
machines (`joint_set`), or what else can score units and refit without some and with others.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

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
    change: Matrix  # what an exchange of one for another does


class FittedSupport(ABC):
    """A set of units whose coefficients are at their minimum, and the search from it for a better one."""

    units: Units
    tol: float
    support: Indices  # units, in the order of the search
    value: float
    is_whole: bool  # whether all units are looked at
    all_tried: bool  # whether the last search has tried every exchange of one unit for another, in vain

    @abstractmethod
    def outside(self) -> Indices:
        """The units that may come in, as far as they are looked at."""

    @abstractmethod
    def renew(self) -> None:
        """Look at those units that promise most."""

    @abstractmethod
    def score(self, outside: Indices) -> UnitScores: ...

    @abstractmethod
    def score_pairs(
        self, outside: Indices, lose: Indices, take: Indices, pairs_out: Pairs, pairs_in: Pairs
    ) -> Matrix:
        """What an exchange of two units for two does: of those at the places `lose` of the support, and at
        the places `take` of `outside`.
        """

    @abstractmethod
    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """Refit without the units at the places `lose` and with the units `take`; stay there if that is
        better. A refit may end when it seems not to get below `give_up`.
        """

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
            cheapest = np.argsort(scores.drop / self._scale(self.support), kind="stable")
            self.move(cheapest[:c], NONE)
        if len(self.support) < k:
            self.renew()
        while len(self.support) < k:
            size, outside = len(self.support), self.outside()
            c = min(k - size, max(1, size // 2), len(outside))
            if c == 0:
                return
            gain = self.score(outside).gain / self._scale(outside)
            self.move(NONE, outside[np.argsort(-gain, kind="stable")[:c]])

    def settle(self, effort: Effort) -> None:
        """Search among the units looked at, and look again, until nothing changes: first cheaply, then with
        all effort.
        """
        thorough = False
        for _ in range(MAX_RENEWALS):
            self.renew()
            before = self.value
            if not thorough:
                self.search(effort.least())
                thorough = not self.value < before
            if thorough:
                self.search(effort)
            if thorough and (not self.value < before or self.is_whole):
                return

    def search(self, effort: Effort) -> None:
        """Many for many while that pays, then one for one, then two for two; scores anew after a success."""
        self.all_tried = False
        many = len(self.support) > 1
        for _ in range(MAX_ROUNDS):
            outside = self.outside()
            if len(self.support) == 0 or len(outside) == 0 or self.value < NO_LOSS:
                self.all_tried = True
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

    def _scale(self, units: Indices) -> Vector | float:
        """What scores are divided by before units are ranked."""
        return self.units.sizes[units] if self.units.by_size else 1.0

    def _try_many(self, outside: Indices, scores: UnitScores) -> bool:
        """The c cheapest for the c most gainful, as many as the scores say pays; c is halved on failure."""
        drop, gain = scores.drop / self._scale(self.support), scores.gain / self._scale(outside)
        lose, take = np.argsort(drop, kind="stable"), np.argsort(-gain, kind="stable")
        most = min(len(outside), len(self.support) // 2)
        pays = drop[lose[:most]] < gain[take[:most]]
        c = most if pays.all() else int(pays.argmin())
        while c > 1:
            if self.tried(lose[:c], outside[take[:c]], self.value):
                return True
            c //= 2
        return False

    def _try_singles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """One for one, in the order of what the scores promise; how many, see `search.try_swaps`."""
        m = len(outside)
        n_swaps = int(np.isfinite(scores.drop).sum()) * m
        affordable = effort.room / self.cost_of_try()
        everything = (effort.max_swaps < 0 or affordable >= n_swaps) and not self.units.by_size
        n_tries = self._fewer(effort.max_swaps)
        n_tries = n_swaps if everything else min(n_swaps, max(1, n_tries, int(affordable)))
        change = self._changes(outside, scores).ravel()
        for at in smallest_first(change, n_tries):
            if change[at] == np.inf or (not everything and change[at] > HOPE * self.value):
                break
            if self.tried(np.array([at // m]), outside[[at % m]], np.inf if everything else self.value):
                return True
        self.all_tried = everything
        return False

    def _changes(self, outside: Indices, scores: UnitScores) -> Matrix:
        """What single exchanges do; inf where units are ranked by size, and a column that comes gains less
        than one that leaves.
        """
        if not self.units.by_size:
            return np.where(np.isfinite(scores.drop)[:, None], scores.change, np.inf)
        drop, gain = scores.drop / self._scale(self.support), scores.gain / self._scale(outside)
        return np.where(gain > drop[:, None], scores.change, np.inf)

    def _try_doubles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """Two for two, out of the cheapest and the most gainful."""
        n_lose = min(WIDTH, int(np.isfinite(scores.drop).sum()))
        n_take = min(WIDTH, len(outside))
        tries = effort.max_double_swaps
        affordable = int(effort.room / self.cost_of_try()) if tries > 0 else 0
        tries = max(self._fewer(tries), affordable)
        if tries == 0 or n_lose < 2 or n_take < 2 or self.units.by_size:
            return False
        lose = np.argsort(scores.drop, kind="stable")[:n_lose]
        take = np.argsort(-scores.gain, kind="stable")[:n_take]
        pairs_out, pairs_in = list(combinations(range(n_lose), 2)), list(combinations(range(n_take), 2))
        change = self.score_pairs(outside, lose, take, pairs_out, pairs_in).ravel()
        for at in smallest_first(change, tries):
            if change[at] > HOPE * self.value:
                break
            out, come = pairs_out[at // len(pairs_in)], pairs_in[at % len(pairs_in)]
            if self.tried(lose[list(out)], outside[take[list(come)]], self.value):
                return True
        return False

    def _fewer(self, tries: int) -> int:
        """Large supports: fewer and dearer tries."""
        n_columns = int(self.units.sizes[self.support].sum())
        return min(tries, TRIES * tries // (n_columns + 1))


def smallest_first(values: Vector, count: int) -> Iterator[int]:
    """Places of the smallest values, in order."""
    chosen = np.arange(len(values))
    if 0 < count < len(values):
        chosen = np.sort(np.argpartition(values, count)[:count])
    return iter(chosen[np.argsort(values[chosen], kind="stable")][:count].tolist())
