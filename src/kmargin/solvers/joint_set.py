"""The search over sets of units for machines that share them.

What `working_set` and `search` do for single columns of one machine is done here for units: sets of columns,
in all machines at once. Scores are summed over machines, and an exchange is made if the summed objective
falls. Each machine has a panel of the same columns, and its own coefficients.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import numpy as np

from kmargin.solvers.fitted import NONE, FittedSupport, Pairs, UnitScores
from kmargin.solvers.joint_found import JointFound, Places, by_turns, widest
from kmargin.solvers.linalg import smallest
from kmargin.solvers.machine_panel import ColumnScores, MachinePanel, Member, joint_cost_of_try
from kmargin.solvers.machine_stack import (
    Stack,
    follow_each,
    make_stack,
    make_stacked_scores,
    refit_each,
    score_each,
)
from kmargin.solvers.promise import Promise
from kmargin.solvers.regime import Regime
from kmargin.solvers.search import find_far
from kmargin.solvers.unit_scores import schur_blocks, score_columns, score_units
from kmargin.solvers.working_set import Effort
from kmargin.types import Indices, Matrix, Vector
from kmargin.units import Units

# Multiplications that a machine has, each time, to look for units that may come where others are gone.
ROOM_TO_LOOK = 4e6


class JointSet(FittedSupport):
    """Panels with the columns of a support of units and of the most promising others, or of all units."""

    scores_all = True

    def __init__(
        self,
        members: Sequence[Member],
        units: Units,
        lam: float,
        size: int,
        start: JointFound,
        tol: float,
        promises: Sequence[Promise] | None = None,
    ) -> None:
        """`promises` are made anew if none are given."""
        self.members, self.units, self.tol = members, units, tol
        self.free = np.ones(units.n_units, np.bool_)  # which units may be taken at all
        self.signed = bool(units.signs.any())
        self.is_whole = self.tries_pairs = size >= units.n_units
        self.places = Places(units, widest(units, size))
        self.places.give(np.arange(units.n_units) if self.is_whole else start.support)
        columns = self.places.contents[self.places.contents >= 0]
        if promises is None:
            promises = [Promise(member.design, units) for member in members]
        self._scored: tuple[Indices, UnitScores] | None = None
        self.stack = self._make_stack()
        self.panels = [
            MachinePanel(member, promise, columns, self.places.size, self.stack, number)
            for number, (member, promise) in enumerate(zip(members, promises, strict=True))
        ]
        self.start_again(lam, start)

    def _make_stack(self) -> Stack | None:
        """One memory for several machines; not where rows are elsewhere, or coefficients have given signs."""
        designs = [member.design for member in self.members]
        if len(designs) == 1 or self.signed or any(design.at_hand is None for design in designs):
            return None
        weights = [member.weight for member in self.members]
        return make_stack([design.n_samples for design in designs], self.places.size, weights)

    def start_again(self, lam: float, start: JointFound) -> None:
        """The same panels for another ridge, from another support."""
        self.lam, self.support = lam, start.support.copy()
        self.n_newton, self.all_tried, self._scored = 0, False, None
        idx = self.places.of(self.support)
        for panel, u in zip(self.panels, start.parts, strict=True):
            panel.go_to(lam, idx, u)
        self.move(NONE, NONE)

    def _starts(self, units: Indices) -> Indices:
        """Where each of these units begins among their columns."""
        starts = np.zeros(len(units) + 1, np.int64)
        np.cumsum(self.units.sizes[units], out=starts[1:])
        return starts

    def _signs(self, support: Indices) -> Vector | None:
        """Of each coefficient, then of the intercept; None if none has to have one."""
        return np.append(self.units.signs[self.units.columns_of(support)], 0.0) if self.signed else None

    @property
    def all_may_come(self) -> bool:
        return bool(self.free.all())

    def outside(self) -> Indices:
        may_come = self.places.held & self.free
        may_come[self.support] = False
        return np.flatnonzero(may_come)

    def cost_of_try(self) -> float:
        return joint_cost_of_try(self.members, int(self.units.sizes[self.support].sum()))

    def score(self, outside: Indices) -> UnitScores:
        """What was said last, if nothing has changed since."""
        if self._scored is None or not np.array_equal(self._scored[0], outside):
            self._scored = outside, self._score(outside)
        return self._scored[1]

    def _score(self, outside: Indices) -> UnitScores:
        n_in, n_out = len(self.support), len(outside)
        drop, gain, change = np.zeros(n_in), np.zeros(n_out), np.zeros((n_in, n_out))
        idx, places = self.places.of(self.support), self.places.of(outside)[:-1]
        lose_starts, take_starts = self._starts(self.support), self._starts(outside)
        inside, at = np.arange(len(idx) - 1), np.arange(len(places))
        singles = len(inside) == n_in and len(at) == n_out
        self.column_scores = []
        if singles and self.stack is not None:
            stacked = make_stacked_scores(len(self.panels), len(idx), n_out)
            score_each(self.stack, find_far(), idx, self._coefs(), places, stacked, drop, gain, change)
            self.column_scores = [ColumnScores(*scores) for scores in zip(*stacked, strict=True)]
        for panel in self.panels if len(self.column_scores) == 0 else ():
            scores = self._column_scores(panel, idx, places)
            spread, grad, schur, R, inverse = scores
            self.column_scores.append(scores)
            if singles:
                score_columns(panel.u, spread, grad, schur, R, panel.weight, drop, gain, change)
                continue
            S = np.empty((len(places), len(places)))
            schur_blocks(panel.gram, panel.ridge, idx, places, R, take_starts, S)
            score_units(
                panel.u, inverse.T @ inverse, grad, S, R, inside, lose_starts, at, take_starts,
                panel.weight, drop, gain, change,
            )  # fmt: skip
        drop[self.units.fixed[self.support]] = np.inf
        return UnitScores(drop, gain, change)

    def _column_scores(self, panel: MachinePanel, idx: Indices, places: Indices) -> ColumnScores:
        """A coefficient that would get the wrong sign gains nothing."""
        scores = panel.score(idx, places)
        if self.signed:
            scores.grad[scores.grad * self.units.signs[self.places.contents[places]] > 0.0] = 0.0
        return scores

    def score_pairs(
        self, outside: Indices, lose: Indices, take: Indices, pairs_out: Pairs, pairs_in: Pairs
    ) -> Matrix:
        """The blocks are those of both units; the columns were scored by `score`, for the same `outside`."""
        idx, places = self.places.of(self.support), self.places.of(outside[take])[:-1]
        starts_out = self._starts(outside)
        chosen = np.concatenate([np.arange(starts_out[b], starts_out[b + 1]) for b in take])
        inside, lose_starts = _unions(self._starts(self.support), lose, pairs_out)
        at, take_starts = _unions(self._starts(outside[take]), np.arange(len(take)), pairs_in)
        change = np.zeros((len(pairs_out), len(pairs_in)))
        drop, gain = np.zeros(len(pairs_out)), np.zeros(len(pairs_in))
        everything = np.array([0, len(places)])
        for panel, (_, grad, _, R, inverse) in zip(self.panels, self.column_scores, strict=True):
            S, R_chosen = np.empty((len(places), len(places))), np.ascontiguousarray(R[:, chosen])
            schur_blocks(panel.gram, panel.ridge, idx, places, R_chosen, everything, S)
            with np.errstate(over="ignore", invalid="ignore"):  # beside next to no ridge; no exchange then
                H_inverse = inverse.T @ inverse
            score_units(
                panel.u, H_inverse, grad[chosen], S, R_chosen, inside, lose_starts, at, take_starts,
                panel.weight, drop, gain, change,
            )  # fmt: skip
        return change

    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """It is given up as soon as the machines refitted so far have more than all together have now."""
        return self._refitted(lose, take, give_up, self.value * (1.0 - self.tol))

    def move(self, lose: Indices, take: Indices) -> None:
        self._refitted(lose, take, np.inf, None)

    def _refitted(self, lose: Indices, take: Indices, give_up: float, limit: float | None) -> bool:
        """Whether the exchange was made: any that stays below the limit."""
        support, total = self._refit(lose, take, give_up, limit)
        if limit is not None and not total < limit:
            return False
        for panel in self.panels:
            panel.keep()
        if self.stack is not None:
            follow_each(self.stack)
        self.support, self.value, self._scored = support, total, None
        return True

    def _refit(
        self, lose: Indices, take: Indices, give_up: float, limit: float | None
    ) -> tuple[Indices, float]:
        """Refit all machines after an exchange, or until they exceed the limit; the units, and the sum."""
        stays = np.ones(len(self.support), np.bool_)
        stays[lose] = False
        keeps = np.flatnonzero(np.repeat(stays, self.units.sizes[self.support]))
        support, before = np.concatenate((self.support[stays], take)), self._coefs()
        idx, signs, total = self.places.of(support), self._signs(support), 0.0
        coefs = np.zeros((len(before), len(idx)))  # those that are taken begin at 0
        coefs[:, : len(keeps)], coefs[:, -1] = before[:, keeps], before[:, -1]
        if self.stack is not None:
            values, most = np.empty(len(coefs)), np.nan if limit is None else limit
            total, n_newton = refit_each(self.stack, find_far(), idx, coefs, give_up, most, self.tol, values)
            self.n_newton += n_newton
            for panel, u, value in zip(self.panels, coefs, values.tolist(), strict=True):
                panel.last_try = u, value
            return support, total
        for panel, u in zip(self.panels, coefs, strict=True):
            self.n_newton += panel.refit(idx, u, signs, give_up - total, self.tol)
            total += panel.last_try[1]
            if limit is not None and not total < limit:
                break
        return support, total

    def _coefs(self) -> Matrix:
        """A row for each machine."""
        return np.array([panel.u for panel in self.panels])

    def renew(self) -> None:
        """One pass over X for each machine: bring the units with the largest gain into the panels."""
        if not self.is_whole:
            self._bring(self._most_promising(self.support, [panel.u for panel in self.panels]))

    def _most_promising(self, support: Indices, coefs: Sequence[Vector]) -> Indices:
        """Units with the largest gain beside a support and its coefficients, as many as there are places."""
        by_unit = np.zeros(self.units.n_units)
        idx, columns = self.places.of(support), self.units.columns_of(support)
        with np.errstate(over="ignore", invalid="ignore"):
            for panel, u in zip(self.panels, coefs, strict=True):
                by_unit += panel.gains_alone(idx, columns, u, self.units.signs if self.signed else None)
        if self.units.by_size:
            by_unit /= self._scale(np.arange(self.units.n_units))
        by_unit[self.support], by_unit[~self.free] = -np.inf, -np.inf
        order = np.empty(min(self.places.size, len(by_unit)), np.int64)
        smallest(-by_unit, len(by_unit), len(order), order)
        return order[by_unit[order] > -np.inf]

    def look_elsewhere(self, effort: Effort) -> bool:
        """What promises most without one unit of the support, or without another, is brought into the panels,
        and single exchanges are tried with it. Those that are cheap to drop come first.

        Where groups are ranked with the covariances of their columns, that finds nothing more.
        """
        if self.is_whole or effort.max_double_swaps == 0 or self.panels[0].promise.covariance is not None:
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
        support, _ = self._refit(np.array([place]), NONE, np.inf, None)
        return self._most_promising(support, [panel.last_try[0] for panel in self.panels])

    def _bring(self, promising: Indices) -> None:
        """As many units in this order as there are places for beside the support."""
        room = self.places.size - int(self.units.sizes[self.support].sum())
        n_wanted = int(np.searchsorted(np.cumsum(self.units.sizes[promising]), room, side="right"))
        wanted = promising[:n_wanted]
        coming = wanted[~self.places.held[wanted]]
        if len(coming) == 0:
            return
        self._scored = None
        leaves = self.places.held.copy()
        leaves[self.support], leaves[wanted] = False, False
        self.places.empty(np.flatnonzero(leaves))
        given = self.places.give(coming)
        for panel in self.panels:
            panel.refill(self.places.contents, given)

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
        self.start_again(lam, JointFound.start(fixed, self.units, len(self.panels)))
        outside = self.outside()
        return outside[np.argsort(-self.score(outside).gain, kind="stable")[:count]]

    def try_everything(self) -> None:
        """All supports of this size."""
        fixed = np.flatnonzero(self.units.fixed)
        free, n_free = np.flatnonzero(~self.units.fixed), len(self.support) - len(fixed)
        for choice in combinations(free.tolist(), n_free):
            chosen = np.concatenate([fixed, np.array(choice, np.int64)])
            take = np.setdiff1d(chosen, self.support)
            if len(take):
                self.tried(np.flatnonzero(~np.isin(self.support, chosen)), take, np.inf)
        self.all_tried = True

    def finish(self) -> None:
        """Bring what was found to its minimum while there is a panel, if it would be dear to make again."""
        if any(panel.design.panels_are_dear for panel in self.panels):
            for panel in self.panels:
                panel.finish(self.places.of(self.support), only_nonzero=self.signed)
            self.value = sum(panel.value for panel in self.panels)

    def found(self) -> JointFound:
        return JointFound(
            self.support.copy(),
            tuple(panel.u.copy() for panel in self.panels),
            float(self.value),
            self.is_whole and self.all_tried,
            Regime.PANEL if self.is_whole else Regime.WORKING_SET,
            tuple(float(panel.value / panel.weight) for panel in self.panels),
        )


def _unions(starts: Indices, blocks: Indices, pairs: Pairs) -> tuple[Indices, Indices]:
    """The places of both blocks of each pair, one pair after another; where each begins."""
    places = [np.arange(starts[block], starts[block + 1]) for block in blocks]
    unions = [np.concatenate([places[a], places[b]]) for a, b in pairs]
    ends = np.cumsum([len(union) for union in unions])
    return np.concatenate(unions), np.concatenate([[0], ends]).astype(np.int64)
