"""The swap search: exchange units of the support for others while that lowers the objective.

A unit is a feature or a group of features. The loop is the same for all kinds of linear algebra: panels
(copied columns) in memory or in blocks of rows, systems with one unknown per active row, or conjugate
gradients. A subclass for each kind refits supports and predicts how swaps change the objective.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.linalg import order_smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import Rows
from kmargin.solvers.search.panels import NONE, UnitScores
from kmargin.solvers.solution import Regime

# A swap is tried only if it is predicted to raise the objective by at most this fraction.
MAX_PREDICTED_RISE = 0.02

# For supports with more columns than this, the maximum number of swaps tried falls as 1 / number of columns.
FULL_TRIALS_SIZE = 16

# A number of swaps that means no limit: it is larger than the number of swaps of any problem.
ALL_SWAPS = 2**62

# Swaps of two units for two are considered among this many units of the support and as many outside it.
PAIR_WIDTH = 12

# Safety caps on the iterations of `search` and `settle`, which end when the objective no longer falls.
MAX_ROUNDS, MAX_RENEWALS = 10_000, 1000

# The smallest and largest number of units outside the support that are considered for swaps at a time.
MIN_OUTSIDE, MAX_OUTSIDE = 16, 64

# A support replaces another only if its objective is below this multiple of the objective of the other.
BETTER = 1.0 - 1e-9

# Overhead of a refit of one binary problem, in flops; counted only if there are several binary problems.
CALL_FLOPS = 2e4


class Effort(NamedTuple):
    """How hard to search: limits on the number of trials. A unit is a feature or a group of features."""

    max_swaps: int  # how many swaps of one unit for one may fail in a row before the search ends; -1: all
    max_pair_swaps: int  # how many swaps of two units for two may fail in a row; 0: none are tried
    max_sweeps: int  # how often to go through the sizes k of a path, up or down
    tol: float = 1e-9  # relative tolerance of the objective in refits
    max_starts: int = 0  # maximum number of searches that start from one unit; only if refits are inexpensive
    flops: float = 0.0  # more swaps may fail in a row if their refits take at most this many flops together
    all_swaps: bool = False  # whether every swap of one unit for another is tried at the end
    restart_seconds: float = 0.0  # limit on the estimated time of random restarts, in a fit of one size k
    wider_flops: float = 0.0  # at most this many flops per binary problem for each `search_wider`

    def n_outside(self, k: int, n_units: int) -> int:
        """How many units outside a support of k units the search considers at a time, in a panel."""
        if self.max_swaps < 0:
            return n_units
        n_outside = min(max(k, MIN_OUTSIDE), MAX_OUTSIDE) if self.max_pair_swaps else MIN_OUTSIDE
        return min(n_outside, n_units)

    def least(self) -> "Effort":
        """The same effort reduced to the least: one failed swap of one unit for another ends a search."""
        return self._replace(max_swaps=1, max_pair_swaps=0, flops=0.0, wider_flops=0.0)


class Candidate(NamedTuple):
    """A support with its coefficients in each binary problem: the start of a search, or its result."""

    support: Indices  # indices of the units (features or groups), in the order in which they entered
    coefs: Matrix  # a row for each binary problem: coefficients unit by unit, then the intercept
    value: float = np.inf  # the sum of the objectives of the binary problems
    all_tried: bool = False  # whether every swap of one unit for another was tried without success
    regime: Regime | None = None  # the linear algebra used by the search; None if this is only a start
    values: Vector | None = None  # the objective of each binary problem
    is_exact: bool = False  # whether the gradient is known to be zero up to rounding

    @classmethod
    def start(cls, support: Indices, units: Units, n_problems: int) -> "Candidate":
        """A start for a search, with the units `support` and coefficients 0."""
        return cls(support, np.zeros((n_problems, int(units.sizes[support].sum()) + 1)))

    def without(self, places: Indices, units: Units) -> "Candidate":
        """A start for a search: this candidate without the units support[places]."""
        stays = np.ones(len(self.support), np.bool_)
        stays[places] = False
        columns = np.append(np.repeat(stays, units.sizes[self.support]), True)
        # np.compress gives C order; coefs[:, columns] has Fortran order, for which numba would compile again
        return Candidate(self.support[stays], np.compress(columns, self.coefs, axis=1))

    def with_units(self, more: Indices, units: Units) -> "Candidate":
        """A start for a search: this candidate with the units `more` added, whose coefficients are 0."""
        zeros = np.zeros((len(self.coefs), int(units.sizes[more].sum())))
        coefs = np.hstack([self.coefs[:, :-1], zeros, self.coefs[:, -1:]])
        return Candidate(np.append(self.support, more), coefs)


def unit_effects(all_rows: Sequence[Rows], units: Units, found: Candidate) -> Vector:
    """For each unit of the support of `found`, the variance of its contribution to the decision values."""
    columns, effects = units.columns_of(found.support), np.zeros(units.n_features)
    for rows, u in zip(all_rows, found.coefs, strict=True):
        effects[columns] += u[:-1] ** 2 * rows.variance[columns]
    return units.total(effects)[found.support]


@cache
def list_pairs(n: int) -> Indices:
    """All pairs of integers 0 <= a < b < n, in lexicographic order."""
    return np.array(list(combinations(range(n), 2)))


def refit_flops(all_rows: Sequence[Rows], n_columns: int) -> float:
    """Approximate flops of a refit with this many columns: one or two Newton steps per binary problem."""
    overhead = CALL_FLOPS if len(all_rows) > 1 else 0.0
    return sum(overhead + 2.0 * (n_columns * rows.n_samples + n_columns**3) for rows in all_rows)


class SwapSearch(ABC):
    """A support that is refitted after each change, and the search for a better one by swaps of units."""

    is_whole: bool = True  # whether `renew`, which selects the units to consider, does nothing
    scores_all: bool = False  # whether `score` has scores for all units, not only for a selection
    max_rounds: int = MAX_ROUNDS

    def __init__(
        self, all_rows: Sequence[Rows], units: Units, lams: Vector, start: Candidate, tol: float
    ) -> None:
        self.all_rows, self.units, self.lams, self.tol = all_rows, units, lams, tol
        self.support, self.coefs = start.support, start.coefs
        self.values: Vector = np.full(len(all_rows), np.inf)
        self.value = np.inf  # the objective: the sum of `values` over the binary problems
        self.n_newton = 0
        self.all_tried = False
        self.failed: set[frozenset[int]] | None = None  # supports from which the same search failed before
        self.promising = np.inf  # `search_wider` is skipped if the objective is higher than this

    @abstractmethod
    def outside(self) -> Indices:
        """The units (features or groups) outside the support that the search considers for swaps."""

    def renew(self) -> None:
        """Let the search consider the units outside the support that should lower the objective most."""
        return

    @abstractmethod
    def score(self, outside: Indices) -> UnitScores:
        """Predict the changes of the objective by swaps of units of the support for units `outside`."""

    def score_pairs(self, outside: Indices, lose: Indices, take: Indices) -> Matrix:
        """Predict the change of the objective by each swap of two of support[lose] for two of outside[take].

        Rows of the matrix are the pairs of `lose`, columns the pairs of `take`, in lexicographic order.
        """
        raise NotImplementedError

    @abstractmethod
    def exchange(self, lose: Indices, take: Indices, give_up: float, limit: float) -> bool:
        """Try to replace the units support[lose[turn]] by take[turn] for turn = 0, 1, ... until one succeeds.

        An exchange succeeds if the objective of its refit is below `limit`, or if `limit` is NaN. A refit may
        end early if its objective cannot get below `give_up`. Returns whether an exchange was made.
        """

    def move(self, lose: Indices, take: Indices) -> None:
        """Exchange the units support[lose] for the units `take`, even if that raises the objective."""
        self.exchange(lose[None], take[None], np.inf, np.nan)

    def resize(self, k: int) -> None:
        """Drop or add units, those with the best predicted scores first, until the support has k units.

        Dropped units raise the objective least, added units lower it most. One step drops at most an eighth
        of the support, or adds at most half as many units as it has, and refits. The support ends with
        another size only if no more units can be dropped or added.
        """
        while len(self.support) > k:
            size = len(self.support)
            lose = order_smallest(self.score(NONE).drop, min(size - k, max(1, size // 8)))
            if len(lose) == 0:
                return
            self.move(lose, NONE)
        if len(self.support) < k:
            self.renew()
        while len(self.support) < k:
            size, outside = len(self.support), self.outside()
            take = order_smallest(-self.score(outside).gain, min(k - size, max(1, size // 2)))
            if len(take) == 0:
                return
            self.move(NONE, outside[take])

    def settle(self, effort: Effort) -> None:
        """Alternate `renew` (select good units) and `search` (swap them in) while the objective falls."""
        is_thorough = self.is_whole  # searches have the least effort until that no longer helps
        for _ in range(MAX_RENEWALS):
            if self.failed is not None and frozenset(self.support.tolist()) in self.failed:
                return
            self.renew()
            before, is_first = self.value, True
            if not is_thorough:
                self.search(effort.least())
                is_thorough = not self.value < before
                is_first = False  # swaps of many units at a time have just failed, and are not tried again
            if is_thorough and (is_first or effort != effort.least()):
                self.search(effort, many=is_first)
            if is_thorough and (not self.value < before or self.is_whole):
                if not self.search_wider(effort):
                    break
                is_thorough = False
        if self.failed is not None:
            self.failed.add(frozenset(self.support.tolist()))

    def search_wider(self, effort: Effort) -> bool:
        """Search also among units that `renew` did not select; return whether the objective fell."""
        return False

    def search(self, effort: Effort, many: bool = True) -> None:
        """Swap many units at once (if `many`) while that helps, then one for one, then two for two."""
        n_singles, n_pairs = self._n_trials(effort)
        for _ in range(self.max_rounds):
            self.all_tried = False
            outside = self.outside()
            if len(self.support) == 0 or len(outside) == 0 or self.value < ZERO_OBJECTIVE:
                self.all_tried = True
                return
            scores = self.score(outside)
            many = many and self._try_many(outside, scores)
            if not (
                many
                or self._try_singles(outside, scores, n_singles)
                or self._try_pairs(outside, scores, n_pairs)
            ):
                return
        self.all_tried = False

    def _n_trials(self, effort: Effort) -> tuple[int, int]:
        """Return how many swaps of one unit, and of two, may fail in a row, by the limits of `effort`."""
        flops = effort.flops / refit_flops(self.all_rows, self.coefs.shape[1]) if effort.flops else 0.0
        tries_all = effort.max_swaps < 0 and self.scores_all
        n_singles = ALL_SWAPS if tries_all else max(1, self._fewer(effort.max_swaps), int(flops))
        return n_singles, max(self._fewer(effort.max_pair_swaps), int(flops)) if effort.max_pair_swaps else 0

    def _try(self, lose: Indices, take: Indices, give_up: float) -> bool:
        return self.exchange(lose, take, give_up, self.value * (1.0 - self.tol))

    def _try_many(self, outside: Indices, scores: UnitScores) -> bool:
        """Swap the c units that raise the objective least for the c that lower it most; halve c on failure.

        The first c is the largest such that, for all i <= c, the i-th largest decrease exceeds the i-th
        smallest rise.
        """
        lose = order_smallest(scores.drop, min(len(self.support) // 2, len(outside)))
        take = order_smallest(-scores.gain, len(lose))
        lose = lose[: len(take)]
        pays = scores.drop[lose] < scores.gain[take]
        c = len(lose) if pays.all() else int(pays.argmin())
        while c > 1:  # a swap of one unit for one (c = 1) is left to `_try_singles`
            if self._try(lose[None, :c], outside[take[None, :c]], self.value):
                return True
            c //= 2
        return False

    def _try_singles(self, outside: Indices, scores: UnitScores, n_trials: int) -> bool:
        """Try to swap one unit for one, in increasing order of the predicted change of the objective.

        At most `n_trials` swaps are tried, and none that is predicted to raise the objective by more than the
        fraction MAX_PREDICTED_RISE. If `n_trials` allows all swaps, however, all are tried whatever is
        predicted, and no refit ends early, because the status SWAP_OPTIMAL needs exact objectives.
        """
        n_swaps = int(np.count_nonzero(scores.drop < np.inf)) * len(outside)
        everything = self.scores_all and n_trials >= n_swaps
        n_trials = min(n_trials, n_swaps)
        if scores.change is None:  # a swap changes the objective by drop - gain: the best are among these
            lose, best = order_smallest(scores.drop, n_trials), order_smallest(-scores.gain, n_trials)
            take, changes = outside[best], np.subtract.outer(scores.drop[lose], scores.gain[best])
        else:
            lose, take, changes = np.arange(len(self.support)), outside, scores.change
        order = order_smallest(
            changes.ravel(), n_trials, np.inf if everything else MAX_PREDICTED_RISE * self.value
        )
        a, b = order // len(take), order % len(take)
        self._is_certain = True
        if self._try(lose[a, None], take[b, None], np.inf if everything else self.value):
            return True
        self.all_tried = everything and len(order) == n_swaps and self._is_certain and scores.are_independent
        return False

    def _try_pairs(self, outside: Indices, scores: UnitScores, n_trials: int) -> bool:
        """Swap two units for two, of the PAIR_WIDTH that raise the objective least and that lower it most."""
        if n_trials == 0 or scores.change is None:
            return False
        lose, take = order_smallest(scores.drop, PAIR_WIDTH), order_smallest(-scores.gain, PAIR_WIDTH)
        if len(lose) < 2 or len(take) < 2:
            return False
        changes = self.score_pairs(outside, lose, take).ravel()
        pairs_out, pairs_in = list_pairs(len(lose)), list_pairs(len(take))
        order = order_smallest(changes, n_trials, MAX_PREDICTED_RISE * self.value)
        a, b = order // len(pairs_in), order % len(pairs_in)
        return self._try(lose[pairs_out[a]], outside[take[pairs_in[b]]], self.value)

    def _fewer(self, tries: int) -> int:
        """Return `tries`, a number of swaps, or less for a large support, whose refits are expensive."""
        return min(tries, FULL_TRIALS_SIZE * tries // self.coefs.shape[1])

    @abstractmethod
    def result(self) -> Candidate:
        """The support with its coefficients and objectives, as the result of the search."""
