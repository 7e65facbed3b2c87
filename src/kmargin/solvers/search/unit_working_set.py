"""Supports of units that several binary problems share, in working sets or by refits of each problem."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.linalg import smallest
from kmargin.core.problem import Problem
from kmargin.core.units import Units
from kmargin.solvers.refit.folded import Candidate, Measured
from kmargin.solvers.refit.support import refit_support, refit_with_signs
from kmargin.solvers.search.swap_search import find_far
from kmargin.solvers.search.unit_panels import JointFound, Member, Promise, by_turns, joint_cost_of_try
from kmargin.solvers.search.unit_search import (
    NOTHING_SCORED,
    JointPanels,
    Scored,
    keep_fixed,
    resize_each,
    search_each,
)
from kmargin.solvers.search.working_set import NONE, Effort, FittedSupport, Pairs, UnitScores
from kmargin.solvers.solution import Regime

# Multiplications that a machine has, each time, to look for units that may come where others are gone.
ROOM_TO_LOOK = 4e6

# A support is clear-cut if what is outside gains less than this share of what the cheapest unit costs.
CLEAR = 0.75


class JointSet(FittedSupport):
    """Panels with the columns of a support of units and of the most promising others, or of all units."""

    scores_all = True
    lam: float = np.nan  # of the first machine
    renewed_at: Indices | None = None  # the support that was looked from last
    values: Vector  # of each machine, as they count in the sum
    _scored: tuple[Indices, UnitScores] | None  # what was said last of units outside
    _known: Scored  # the same, as the compiled search has it
    growth = 1.0  # exchanges of many for many come next

    def __init__(
        self,
        members: Sequence[Member],
        units: Units,
        lam: float,
        size: int,
        start: JointFound,
        tol: float,
        promises: Sequence[Promise] | None = None,
        capacity: int = 0,
    ) -> None:
        """To look at `size` units, in panels with room for more if that is their capacity. `promises` are
        made anew if none are given.
        """
        self.members, self.units, self.tol = members, units, tol
        self.free = np.ones(units.n_units, np.bool_)  # which units may be taken at all
        self.is_whole = self.tries_pairs = size >= units.n_units
        if promises is None:
            promises = [Promise(member.design, units) for member in members]
        first = np.arange(units.n_units) if self.is_whole else start.support
        self.panels = JointPanels(members, promises, units, max(size, capacity), first)
        self.ranks_groups = promises[0].covariance is not None
        self.start_again(lam, start, size)

    def start_again(self, lam: float, start: JointFound, size: int = 0) -> None:
        """The same panels for another ridge, from another support, to look at so many units.

        Where they stand there already, nothing is to be done.
        """
        if not self.is_whole and self._stands_at(lam, start):
            self.n_columns = self.units.widest(size)
            self.n_newton, self.all_tried = 0, False
            return
        self.lam, self.support, self.coefs = lam, start.support.copy(), np.array(start.parts)
        self.n_columns = self.units.widest(size)
        self.looked_at = np.full(self.units.n_units, self.is_whole)
        self.looked_at[self.support] = True
        self.renewed_at = None
        self.n_newton, self.all_tried = 0, False
        self.panels.go_to(lam, self.support, self.coefs)
        self.move(NONE, NONE)

    def _stands_at(self, lam: float, start: JointFound) -> bool:
        return (
            self.lam == lam
            and np.array_equal(self.support, start.support)
            and np.array_equal(self.coefs, np.array(start.parts))
        )

    def has_room(self, size: int) -> bool:
        """Whether these panels serve to look at so many units as well: not if most of them would idle."""
        n_columns = self.units.widest(size)
        return self.panels.stack is not None and n_columns <= self.panels.places.size <= 2 * n_columns

    @property
    def all_may_come(self) -> bool:
        return bool(self.free.all())

    def resize(self, k: int) -> None:
        stack = self.panels.stack
        if stack is None:
            super().resize(k)
            return
        if len(self.support) < k and not self._is_renewed():
            self.renew()
        if len(self.support) == k:
            return
        values = self.values.copy()
        self.support, self.coefs, n_newton = resize_each(
            stack, find_far(), self.panels.layout, self.support, self.coefs, self.looked_at & self.free, k,
            self.growth, self.tol, values,
        )  # fmt: skip
        self.n_newton += n_newton
        self._stand_at(values)

    def settle(self, effort: Effort) -> None:
        """Supports that are only on the way to others are searched once."""
        if self.is_whole or effort != effort.least():
            super().settle(effort)
        elif not self._was_searched():
            self.renew()
            self.search(effort)

    def search(self, effort: Effort, many: bool = True) -> None:
        stack = self.panels.stack
        if stack is None:
            super().search(effort, many)
            return
        for _ in range(self.max_rounds):
            found = search_each(
                stack, find_far(), self.panels.layout, self.support, self.coefs, self.values,
                self.looked_at & self.free, many, effort.max_swaps, effort.room, self.tol,
                self._known,
            )  # fmt: skip
            self.support, self.coefs, self.values = found.support, found.coefs, found.values
            self.value, self.all_tried = sum(found.values.tolist()), found.all_tried
            self.n_newton += found.n_newton
            self.panels.last_scores = zip(*found.scored.by_machine, strict=True)
            scores = UnitScores(found.scored.drop, found.scored.gain, found.scored.change)
            self._scored, self._known = (found.scored.outside, scores), found.scored
            if found.nothing_left or not self._try_doubles(found.scored.outside, scores, effort):
                return
            many = False

    def outside(self) -> Indices:
        may_come = self.looked_at & self.free
        may_come[self.support] = False
        return np.flatnonzero(may_come)

    def cost_of_try(self) -> float:
        return joint_cost_of_try(self.members, int(self.units.sizes[self.support].sum()))

    def score(self, outside: Indices) -> UnitScores:
        """What was said last, if nothing has changed since."""
        if self._scored is None or not np.array_equal(self._scored[0], outside):
            scores = self.panels.score(self.support, self.coefs, outside)
            assert scores.change is not None
            keep_fixed(self.support, self.units.fixed, scores.drop, scores.change)
            self._scored = outside, scores
        return self._scored[1]

    def score_pairs(
        self, outside: Indices, lose: Indices, take: Indices, pairs_out: Pairs, pairs_in: Pairs
    ) -> Matrix:
        return self.panels.score_pairs(self.support, self.coefs, outside, lose, take, pairs_out, pairs_in)

    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        return self.tried_in_turn(lose[None], take[None], give_up)

    def tried_in_turn(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """One is given up as soon as the machines refitted so far have more than all together have now."""
        return self._exchanged(lose, take, give_up, self.value * (1.0 - self.tol))

    def move(self, lose: Indices, take: Indices) -> None:
        self._exchanged(lose[None], take[None], np.inf, np.nan)

    def _exchanged(self, lose: Indices, take: Indices, give_up: float, limit: float) -> bool:
        """Whether one of the exchanges was made: any that stays below the limit; any if that is no number."""
        support, coefs, values, n_newton = self.panels.exchange(
            self.support, self.coefs, lose, take, give_up, limit, self.tol
        )
        self.n_newton += n_newton
        if values is None:
            return False
        self.support, self.coefs = support, coefs
        self._stand_at(values)
        return True

    def _stand_at(self, values: Vector) -> None:
        """Another support, of which no exchange has been scored."""
        self.values, self.value = values, sum(values.tolist())
        self._scored, self._known = None, NOTHING_SCORED

    @property
    def is_clear_cut(self) -> bool:  # type: ignore[override]
        """By the scores of the last search."""
        if self._scored is None or len(self._scored[0]) == 0:
            return False
        drop, gain, _ = self._scored[1]
        return bool(gain.max() < CLEAR * drop.min(initial=np.inf))

    def renew(self) -> None:
        """One pass over X for each machine: bring the units with the largest gain into the panels."""
        if not self.is_whole:
            self._bring(self._most_promising(self.support, self.coefs))
            self.renewed_at = self.support

    def _is_renewed(self) -> bool:
        """Whether the units looked at are those that promise most beside this support."""
        return self.renewed_at is not None and np.array_equal(self.renewed_at, self.support)

    def _most_promising(self, support: Indices, coefs: Matrix) -> Indices:
        """Units with the largest gain beside a support and its coefficients, as many as there are places."""
        by_unit = self.panels.gains_alone(support, coefs)
        by_unit[self.support], by_unit[~self.free] = -np.inf, -np.inf
        order = np.empty(min(self.panels.places.size, len(by_unit)), np.int64)
        smallest(-by_unit, len(by_unit), len(order), order)
        return order[by_unit[order] > -np.inf]

    def look_elsewhere(self, effort: Effort) -> bool:
        """What promises most without one unit of the support, or without another, is brought into the panels,
        and single exchanges are tried with it. Those that are cheap to drop come first.

        Where groups are ranked with the covariances of their columns, that finds nothing more; nor does it,
        but rarely, from a support far above the best that is known.
        """
        if self.is_whole or effort.max_double_swaps == 0 or self.ranks_groups or self.value > self.worth:
            return False
        drop = self.score(self.outside()).drop
        cost = sum(member.design.n_samples * member.design.n_features for member in self.members)
        affordable = int(ROOM_TO_LOOK * len(self.members) / cost)
        n_without = min(self._fewer(effort.max_double_swaps), int(np.isfinite(drop).sum()), affordable)
        if n_without == 0:
            return False
        promising = [self._promising_without(place) for place in np.argsort(drop, kind="stable")[:n_without]]
        before = self.value
        self._bring(by_turns(promising))
        self.search(effort, many=False)
        return self.value < before

    def _promising_without(self, place: int) -> Indices:
        """What promises most if the unit at this place of the support is gone and the others are refitted."""
        support, coefs, n_newton = self.panels.without(self.support, self.coefs, place, self.tol)
        self.n_newton += n_newton
        return self._most_promising(support, coefs)

    def _bring(self, promising: Indices) -> None:
        self.looked_at[:], self.renewed_at = False, None
        self.looked_at[self.support] = True
        self.looked_at[self.panels.bring(self.support, promising, self.n_columns)] = True

    @contextmanager
    def without(self, unit: int) -> Iterator[None]:
        """Leaves one unit out of every support."""
        self.free[unit] = False
        try:
            yield
        finally:
            self.free[unit] = True

    def best_alone(self, lam: float, count: int) -> Indices:
        """The units that gain most where there is none yet but those that are fixed."""
        fixed = np.flatnonzero(self.units.fixed)
        self.start_again(lam, JointFound.start(fixed, self.units, len(self.members)))
        outside = self.outside()
        return outside[np.argsort(-self.score(outside).gain, kind="stable")[:count]]

    def try_everything(self) -> None:
        """All supports of this size."""
        fixed = np.flatnonzero(self.units.fixed)
        free, n_free = np.flatnonzero(~self.units.fixed), len(self.support) - len(fixed)
        for choice in combinations(free.tolist(), n_free):
            chosen, now = {*fixed.tolist(), *choice}, self.support.tolist()
            take = np.array(sorted(chosen.difference(now)), np.int64)
            if len(take):
                lose = np.array([a for a, unit in enumerate(now) if unit not in chosen], np.int64)
                self.tried(lose, take, np.inf)
        self.all_tried = True

    def finish(self) -> None:
        """Bring what was found to its minimum while there is a panel, if it would be dear to make again."""
        self.panels.finish(self.support, self.coefs, self.values)
        self.value = sum(self.values.tolist())

    def found(self) -> JointFound:
        weights = [member.weight for member in self.members]
        return JointFound(
            self.support.copy(),
            tuple(self.coefs.copy()),
            self.value,
            self.is_whole and self.all_tried,
            Regime.PANEL if self.is_whole else Regime.WORKING_SET,
            tuple(value / weight for value, weight in zip(self.values.tolist(), weights, strict=True)),
        )


# How many units outside are looked at, at least, and for each in the support.
FEWEST, PER_PLACE = 64, 0.5


class RefitSet(FittedSupport):
    """Units, with the coefficients of all machines at their minimum."""

    max_rounds, max_renewals = 4, 1
    all_may_come = True

    def __init__(
        self,
        problems: Sequence[Problem],
        measured: Sequence[Measured],
        members: Sequence[Member],
        units: Units,
        start: JointFound,
        tol: float,
    ) -> None:
        """The problems have the ridge that is searched for."""
        self.problems, self.measured, self.members = problems, measured, members
        self.units, self.tol = units, tol
        self.is_whole = False
        self.all_tried = False
        self.n_newton = 0
        self.support = start.support.copy()
        self.parts = [Candidate(units.columns_of(self.support), u.copy(), np.inf) for u in start.parts]
        self.value = np.inf
        self.move(NONE, NONE)

    def renew(self) -> None:
        """What is looked at is chosen when it is asked for."""

    def _slopes_and_bends(self) -> tuple[Vector, Vector]:
        """Of each column of X: the gain of a unit step, squared slope over curvature, summed over machines;
        and what its coefficients cost to drop.
        """
        gain, cost = np.zeros(self.units.n_features), np.zeros(self.units.n_features)
        for member, found in zip(self.members, self.parts, strict=True):
            design = member.design.at_hand
            assert design is not None
            resid = design.residual(found)
            bend = design.X.spread(np.where(squared_hinge.is_active(resid), design.c, 0.0)) + member.ridge(
                self.lam
            )
            slope = design.gradient(resid)
            slope = np.where(slope * self.units.signs < 0.0, 0.0, slope)  # would get the wrong sign
            alone = np.divide(slope**2, 2.0 * bend, out=np.zeros(len(gain)), where=bend > 0)
            gain += member.weight * alone
            cost[found.support] += member.weight * 0.5 * found.u[:-1] ** 2 * bend[found.support]
        return gain, cost

    @property
    def lam(self) -> float:
        return self.problems[0].lam

    def outside(self) -> Indices:
        gain, self._cost = self._slopes_and_bends()
        self._gain = self.units.total(gain)
        rest = np.setdiff1d(np.arange(self.units.n_units), self.support)
        count = max(FEWEST, int(PER_PLACE * len(self.support)))
        return rest[np.argsort(-self._gain[rest], kind="stable")[:count]]

    def score(self, outside: Indices) -> UnitScores:
        if len(outside) == 0:
            self.outside()
        drop, gain = self.units.total(self._cost)[self.support], self._gain[outside]
        drop = np.where(self.units.fixed[self.support], np.inf, drop)
        return UnitScores(drop, gain)

    def cost_of_try(self) -> float:
        return joint_cost_of_try(self.members, int(self.units.sizes[self.support].sum()))

    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        return self._refitted(lose, take, self.value * (1.0 - self.tol))

    def move(self, lose: Indices, take: Indices) -> None:
        self._refitted(lose, take, None)

    def _refitted(self, lose: Indices, take: Indices, limit: float | None) -> bool:
        """Whether the exchange was made: any that stays below the limit."""
        stays = np.ones(len(self.support), np.bool_)
        stays[lose] = False
        keeps = np.repeat(stays, self.units.sizes[self.support])
        support = np.append(self.support[stays], take)
        columns, fresh = self.units.columns_of(support), np.zeros(int(self.units.sizes[take].sum()))
        parts, total = [], 0.0
        for problem, measured, member, found in zip(
            self.problems, self.measured, self.members, self.parts, strict=True
        ):
            u = np.concatenate([found.u[:-1][keeps], fresh, found.u[-1:]])
            given = measured.leave(
                problem.lam, Candidate(columns, u, np.inf)
            ).u  # for the columns as they are
            refitted = self._refit(problem, measured, Candidate(columns, given, np.inf))
            parts.append(measured.enter(refitted))
            total += member.weight * refitted.value
            if limit is not None and not total < limit:
                return False
        self.support, self.parts, self.value = support, parts, total
        return True

    def _refit(self, problem: Problem, measured: Measured, start: Candidate) -> Candidate:
        """One machine, with the signs that its coefficients have to have."""
        signs, (support, u, *_) = self.units.signs[start.support], start
        if signs.any():
            coef, intercept, value = refit_with_signs(problem, support, signs, u[:-1], float(u[-1]), measured)
            return Candidate(support, np.append(coef, intercept), value, regime=start.regime)
        refitted, n_newton = refit_support(problem, support, u[:-1], float(u[-1]), measured)
        self.n_newton += n_newton
        return refitted

    def finish(self) -> None:
        """Every refit ends at its minimum."""

    def found(self) -> JointFound:
        return JointFound(
            self.support.copy(),
            tuple(part.u.copy() for part in self.parts),
            float(self.value),
            len(self.support) == self.units.n_units,
            self.parts[0].regime,
            tuple(part.value for part in self.parts),
        )
