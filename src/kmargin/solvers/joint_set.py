"""The search over sets of units of one size, for machines that share them.

What `working_set` and `search` do for single columns of one machine is done here for units: sets of columns,
in all machines at once. Scores are summed over machines, and an exchange is made if the summed objective
falls. Each machine has a panel of the same columns, and its own coefficients.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from kmargin.solvers.bounded import newton_bounded
from kmargin.solvers.newton import NO_LOSS, newton_from_gram
from kmargin.solvers.regime import Regime
from kmargin.solvers.rows import companion, cost_of_refit, follow, place, resume, start_over, take_gram
from kmargin.solvers.scores import score
from kmargin.solvers.search import HOPE, MAX_ROUNDS, TRIES, WIDTH
from kmargin.solvers.signed import Found, Signed
from kmargin.solvers.unit_scores import schur_blocks, score_columns, score_units
from kmargin.solvers.working_set import MAX_RENEWALS, Effort
from kmargin.types import Flags, Indices, Matrix, Vector
from kmargin.units import Units

# What asking a machine costs beside its multiplications, in multiplications.
CALL = 2e4


class JointFound(NamedTuple):
    """Units, and the coefficients of their columns in each machine."""

    support: Indices  # units, in the order of the search
    parts: tuple[Vector, ...]  # of each machine: coefficients unit by unit, then the intercept
    value: float  # the weighted sum of the machines' objectives
    all_tried: bool = False  # every exchange of one unit for another, in vain
    regime: Regime | None = None
    values: tuple[float, ...] = ()  # of each machine; none where it is only a start


class Member(NamedTuple):
    """A machine among others: its rows, and by how much its objective counts."""

    design: Signed
    weight: float
    ridge_ratio: float  # its ridge, beside that of the first

    def ridge(self, lam: float) -> float:
        return lam * self.ridge_ratio


def joint_cost_of_try(members: Sequence[Member], n_columns: int) -> float:
    """About how many multiplications a refit of all machines takes."""
    return sum(CALL + cost_of_refit(member.design.n_samples, n_columns + 1) for member in members)


class MachinePanel:
    """One machine: a panel of columns, a Gram matrix over its active rows, coefficients on a support."""

    def __init__(self, member: Member, columns: Indices, size: int, is_whole: bool) -> None:
        self.design, self.weight, self.member = member.design, member.weight, member
        self.rows = member.design.make_rows(columns, size, to_stay=True)
        self.scratch = companion(self.rows)
        self.gram = np.empty((size + 2, size + 2))
        self.u: Vector = np.zeros(1)
        self.is_placed = False
        self.value = np.inf
        self.tried: tuple[Vector, float] = self.u, np.inf  # coefficients and objective of the last try

    def go_to(self, lam: float, idx: Indices, u: Vector) -> None:
        """Another ridge, another support."""
        self.lam = self.member.ridge(lam)
        self.ridge = self.design.make_ridge(self.lam, len(self.gram) - 2)
        self.u = u.copy()
        if self.is_placed:
            resume(self.rows, idx, self.u, self.gram)
        else:
            place(self.rows, idx, self.u)
            take_gram(self.rows, self.gram)
            self.is_placed = True

    def refill(self, members: Indices, places: Indices) -> None:
        """Other columns in some places."""
        self.rows = self.design.fill(self.rows, members, places)
        self.scratch = companion(self.rows)
        take_gram(self.rows, self.gram)

    def refit(self, idx: Indices, u: Vector, signs: Vector | None, give_up: float, tol: float) -> int:
        """Try other columns from u; what comes out is in `tried` until it is kept. The Newton steps."""
        start_over(self.scratch, self.rows)
        if signs is None:
            value, n_iter = newton_from_gram(
                self.scratch, self.ridge, self.gram, idx, u, give_up / self.weight, tol
            )
        else:
            value, n_iter = newton_bounded(
                self.scratch, self.ridge, self.gram, idx, u, signs, give_up / self.weight, tol
            )
        self.tried = u, self.weight * value
        return n_iter

    def keep(self) -> None:
        """Go to what was tried last."""
        self.u, self.value = self.tried
        follow(self.rows, self.scratch, self.gram)


class UnitScores(NamedTuple):
    """Sums over machines."""

    drop: Vector  # what each unit of the support costs
    gain: Vector  # what each unit outside gains
    change: Matrix  # what an exchange of one for another does
    by_machine: list[tuple[Any, ...]]  # what doubles are scored with


class JointSet:
    """Panels with the columns of a support of units and of the most promising others, or of all units."""

    def __init__(
        self, members: Sequence[Member], units: Units, lam: float, size: int, start: JointFound, tol: float
    ) -> None:
        self.members, self.units, self.tol = members, units, tol
        self.free = np.ones(units.n_units, np.bool_)  # which units may be taken at all
        self.signed = bool(units.signs.any())
        self.is_whole = size >= units.n_units
        if self.is_whole:
            held = np.arange(units.n_units)
            self.n_places = len(units.columns)
        else:
            held = start.support
            self.n_places = int(np.sort(units.sizes)[-size:].sum()) if size else 0
        self.contents = np.full(self.n_places, -1)  # which column a place of the panels holds
        self.places: dict[int, Indices] = {}  # of each unit that the panels hold
        columns = self._give_places(held)
        self.panels = [
            MachinePanel(member, columns, self.n_places, self.is_whole) for member in members
        ]
        self.start_again(lam, start)

    def _give_places(self, units: Indices) -> Indices:
        """The first places, in order; the columns that they hold."""
        at = 0
        for unit in units:
            columns = self.units.columns_of(np.array([unit]))
            self.places[int(unit)] = np.arange(at, at + len(columns))
            self.contents[at : at + len(columns)] = columns
            at += len(columns)
        return self.contents[:at]

    def start_again(self, lam: float, start: JointFound) -> None:
        """The same panels for another ridge, from another support."""
        self.lam, self.support = lam, start.support.copy()
        self.n_newton, self.all_tried = 0, False
        idx = self._idx(self.support)
        for panel, u in zip(self.panels, start.parts, strict=True):
            panel.go_to(lam, idx, u)
        self._refit_here()

    def _refit_here(self) -> None:
        """Bring all coefficients to their minimum."""
        idx, signs = self._idx(self.support), self._signs(self.support)
        for panel in self.panels:
            self.n_newton += panel.refit(idx, panel.u.copy(), signs, np.inf, self.tol)
            panel.keep()
        self.value = sum(panel.value for panel in self.panels)

    def _idx(self, support: Indices) -> Indices:
        """Places of the columns of units, then of the intercept."""
        pieces = [self.places[int(unit)] for unit in support]
        return np.concatenate([*pieces, np.array([self.n_places])]).astype(np.int64)

    def _signs(self, support: Indices) -> Vector | None:
        if not self.signed:
            return None
        return np.append(self.units.signs[self.units.columns_of(support)], 0.0)

    def resize(self, k: int) -> None:
        """Drop the cheapest units or add the most gainful, until there are k."""
        while len(self.support) > k:
            size = len(self.support)
            scores = self._score(np.empty(0, np.int64))
            c = min(size - k, max(1, size // 8))
            lose = np.argsort(scores.drop / self._scale(self.support), kind="stable")[:c]
            if not np.isfinite(scores.drop[lose]).all():  # the others are fixed
                return
            self._move(lose, np.empty(0, np.int64))
        grows = len(self.support) < k
        if grows:
            self.renew()
        while len(self.support) < k:
            size, outside = len(self.support), self._outside()
            c = min(k - size, max(1, size // 2), len(outside))
            if c == 0:
                return
            scores = self._score(outside)
            order = np.argsort(-scores.gain / self._scale(outside), kind="stable")
            self._move(np.empty(0, np.int64), outside[order[:c]])

    def _scale(self, units: Indices) -> Vector | float:
        """What scores are divided by before units are ranked."""
        return self.units.sizes[units] if self.units.by_size else 1.0

    def _move(self, lose: Indices, take: Indices) -> None:
        """Units at some places of the support leave, others come, whatever that does to the objective."""
        support, parts = self._exchanged(lose, take)
        idx, signs = self._idx(support), self._signs(support)
        for panel, u in zip(self.panels, parts, strict=True):
            self.n_newton += panel.refit(idx, u, signs, np.inf, self.tol)
            panel.keep()
        self.support = support
        self.value = sum(panel.value for panel in self.panels)

    def _exchanged(self, lose: Indices, take: Indices) -> tuple[Indices, list[Vector]]:
        """The support without what is at the places `lose`, with the units `take`; where to start from."""
        stays = np.ones(len(self.support), np.bool_)
        stays[lose] = False
        support = np.append(self.support[stays], take)
        keeps = np.repeat(stays, self.units.sizes[self.support])
        fresh = np.zeros(int(self.units.sizes[take].sum()))
        return support, [
            np.concatenate([panel.u[:-1][keeps], fresh, panel.u[-1:]]) for panel in self.panels
        ]

    def _outside(self) -> Indices:
        """Units of the panels that are free and not in the support."""
        inside = set(self.support.tolist())
        return np.array([j for j in sorted(self.places) if j not in inside and self.free[j]], np.int64)

    def _score(self, outside: Indices) -> UnitScores:
        n_in, n_out = len(self.support), len(outside)
        drop, gain, change = np.zeros(n_in), np.zeros(n_out), np.zeros((n_in, n_out))
        idx = self._idx(self.support)
        places = self._idx(outside)[:-1]
        lose_starts, take_starts = self._starts(self.support), self._starts(outside)
        k, m = len(idx), len(places)
        singles = k - 1 == n_in and m == n_out
        inside, at = np.arange(k - 1), np.arange(m)
        by_machine = []
        for panel in self.panels:
            spare, spread, gains, grad, schur = np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m)
            R, inverse = np.empty((k, m)), np.empty((k, k))
            score(
                panel.ridge, idx, panel.u, panel.gram, places, spare, spread, gains, grad, schur, R, inverse
            )
            if self.signed:
                grad[grad * self.units.signs[self.contents[places]] > 0.0] = 0.0  # would get the wrong sign
            if singles:
                score_columns(panel.u, spread, grad, schur, R, panel.weight, drop, gain, change)
            else:
                S = np.empty((m, m))
                schur_blocks(panel.gram, panel.ridge, idx, places, R, take_starts, S)
                score_units(
                    panel.u, inverse.T @ inverse, grad, S, R, inside, lose_starts, at, take_starts,
                    panel.weight, drop, gain, change,
                )  # fmt: skip
            by_machine.append((grad, R, inverse))
        fixed = self.units.fixed[self.support]
        drop[fixed], change[fixed] = np.inf, np.inf
        return UnitScores(drop, gain, change, by_machine)

    def _starts(self, units: Indices) -> Indices:
        return np.concatenate([[0], np.cumsum(self.units.sizes[units])]).astype(np.int64)

    def settle(self, effort: Effort) -> None:
        """Search the panels and renew them until nothing changes: first cheaply, then with all effort."""
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

    def _search(self, effort: Effort) -> None:
        """Many for many while that pays, then one for one, then two for two; scores anew after a success."""
        self.all_tried = False
        many = len(self.support) > 1
        for _ in range(MAX_ROUNDS):
            outside = self._outside()
            if len(self.support) == 0 or len(outside) == 0 or self.value < NO_LOSS:
                self.all_tried = True
                return
            scores = self._score(outside)
            if many:
                many = self._try_many(outside, scores)
                if many:
                    continue
            if self._try_singles(outside, scores, effort):
                continue
            if not self._try_doubles(outside, scores, effort):
                return
        self.all_tried = False

    def _try_many(self, outside: Indices, scores: UnitScores) -> bool:
        drop, gain = scores.drop / self._scale(self.support), scores.gain / self._scale(outside)
        lose, take = np.argsort(drop, kind="stable"), np.argsort(-gain, kind="stable")
        most = min(len(outside), len(self.support) // 2)
        pays = drop[lose[:most]] < gain[take[:most]]
        c = most if pays.all() else int(pays.argmin())
        while c > 1:
            if self._tried(lose[:c], outside[take[:c]], self.value):
                return True
            c //= 2
        return False

    def _try_singles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """One for one, in the order of what the scores promise; see `search.try_swaps`."""
        k, m = scores.change.shape
        n_columns = int(self.units.sizes[self.support].sum())
        n_swaps = int(np.count_nonzero(np.isfinite(scores.drop))) * m
        affordable = effort.room / joint_cost_of_try(self.members, n_columns)
        everything = (effort.max_swaps < 0 or affordable >= n_swaps) and not self.units.by_size
        n_tries = max(1, min(effort.max_swaps, TRIES * effort.max_swaps // (n_columns + 1)))
        n_tries = n_swaps if everything else min(n_swaps, max(n_tries, int(affordable)))
        change = scores.change.ravel()
        for at in smallest_first(change, n_tries):
            if not everything and change[at] > HOPE * self.value:
                break
            lose, take = np.array([at // m]), outside[[at % m]]
            if self.units.by_size and not self._pays_by_size(scores, at // m, at % m, lose, take):
                continue
            if self._tried(lose, take, np.inf if everything else self.value):
                return True
        self.all_tried = everything
        return False

    def _pays_by_size(self, scores: UnitScores, a: int, b: int, lose: Indices, take: Indices) -> bool:
        """Whether each column gains more than each of those that leave."""
        sizes = self.units.sizes
        return bool(
            scores.gain[b] / sizes[take[0]] > scores.drop[a] / sizes[self.support[lose[0]]]
            or sizes[take[0]] <= sizes[self.support[lose[0]]]
        )

    def _try_doubles(self, outside: Indices, scores: UnitScores, effort: Effort) -> bool:
        """Two for two, out of the cheapest and the most gainful."""
        n_columns = int(self.units.sizes[self.support].sum())
        n_lose = min(WIDTH, int(np.count_nonzero(np.isfinite(scores.drop))))
        n_take = min(WIDTH, len(outside))
        tries = effort.max_double_swaps
        affordable = int(effort.room / joint_cost_of_try(self.members, n_columns)) if tries > 0 else 0
        tries = max(min(tries, TRIES * tries // (n_columns + 1)), affordable)
        if tries == 0 or n_lose < 2 or n_take < 2 or self.units.by_size:
            return False
        lose = np.argsort(scores.drop, kind="stable")[:n_lose]
        take = np.argsort(-scores.gain, kind="stable")[:n_take]
        pairs_out, pairs_in = list(combinations(range(n_lose), 2)), list(combinations(range(n_take), 2))
        change = self._double_changes(outside[take], lose, take, outside, scores, pairs_out, pairs_in)
        for at in smallest_first(change.ravel(), min(tries, change.size)):
            if change.flat[at] > HOPE * self.value:
                break
            out, come = pairs_out[at // len(pairs_in)], pairs_in[at % len(pairs_in)]
            if self._tried(lose[list(out)], outside[take[list(come)]], self.value):
                return True
        return False

    def _double_changes(
        self,
        coming: Indices,
        lose: Indices,
        take: Indices,
        outside: Indices,
        scores: UnitScores,
        pairs_out: list[tuple[int, int]],
        pairs_in: list[tuple[int, int]],
    ) -> Matrix:
        """What each exchange of a pair for a pair does, the blocks being those of both units."""
        idx, places = self._idx(self.support), self._idx(coming)[:-1]
        starts_in, starts_out = self._starts(self.support), self._starts(outside)
        at_in = [np.arange(starts_in[a], starts_in[a + 1]) for a in lose]
        columns = [np.arange(starts_out[b], starts_out[b + 1]) for b in take]
        chosen = np.concatenate(columns)  # among the columns outside
        first = self._starts(coming)
        at_out = [np.arange(first[b], first[b + 1]) for b in range(len(coming))]
        inside, lose_starts = _unions(at_in, pairs_out)
        at, take_starts = _unions(at_out, pairs_in)
        change = np.zeros((len(pairs_out), len(pairs_in)))
        drop, gain = np.zeros(len(pairs_out)), np.zeros(len(pairs_in))
        everything = np.array([0, len(places)])
        for panel, (grad, R, inverse) in zip(self.panels, scores.by_machine, strict=True):
            S, R_chosen = np.empty((len(places), len(places))), np.ascontiguousarray(R[:, chosen])
            schur_blocks(panel.gram, panel.ridge, idx, places, R_chosen, everything, S)
            score_units(
                panel.u, inverse.T @ inverse, grad[chosen], S, R_chosen, inside, lose_starts, at, take_starts,
                panel.weight, drop, gain, change,
            )  # fmt: skip
        return change

    def _tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """Refit all machines after an exchange; make it if the sum of their objectives falls.

        It is given up as soon as the machines refitted so far have more than all together have now.
        """
        support, parts = self._exchanged(lose, take)
        idx, signs = self._idx(support), self._signs(support)
        limit, total = self.value * (1.0 - self.tol), 0.0
        for panel, u in zip(self.panels, parts, strict=True):
            self.n_newton += panel.refit(idx, u, signs, give_up - total, self.tol)
            total += panel.tried[1]
            if not total < limit:
                return False
        for panel in self.panels:
            panel.keep()
        self.support, self.value = support, total
        return True

    def renew(self) -> None:
        """One pass over X for each machine: bring the units with the largest gain into the panels."""
        if self.is_whole:
            return
        gain = np.zeros(self.units.n_features)
        idx, columns = self._idx(self.support), self.units.columns_of(self.support)
        for panel in self.panels:
            slopes = panel.design.slopes_at(panel.rows, idx, Found(columns, panel.u, panel.value))
            curvature = panel.design.variance + panel.lam
            if self.signed:
                slopes = np.where(slopes * self.units.signs < 0.0, 0.0, slopes)
            with np.errstate(over="ignore"):
                gain += panel.weight * np.divide(
                    slopes**2, curvature, out=np.zeros(len(gain)), where=curvature > 0
                )
        by_unit = self.units.total(gain) / self._scale(np.arange(self.units.n_units))
        by_unit[self.support], by_unit[~self.free] = -np.inf, -np.inf
        self._bring(np.argsort(-by_unit, kind="stable"), by_unit)

    def _bring(self, order: Indices, by_unit: Vector) -> None:
        """As many units in this order as there are places for beside the support."""
        room = self.n_places - int(self.units.sizes[self.support].sum())
        wanted: list[int] = []
        for unit in order:
            room -= int(self.units.sizes[unit])
            if room < 0 or by_unit[unit] == -np.inf:
                break
            wanted.append(int(unit))
        stays = {*self.support.tolist(), *wanted}
        coming = [unit for unit in wanted if unit not in self.places]
        if not coming:
            return
        for unit in [unit for unit in self.places if unit not in stays]:
            self.contents[self.places.pop(unit)] = -1
        empty = np.flatnonzero(self.contents < 0)
        at = 0
        for unit in coming:
            columns = self.units.columns_of(np.array([unit]))
            self.places[unit] = empty[at : at + len(columns)]
            self.contents[self.places[unit]] = columns
            at += len(columns)
        for panel in self.panels:
            panel.refill(self.contents, empty[:at])

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
        self.start_again(lam, self.nothing())
        outside = self._outside()
        return outside[np.argsort(-self._score(outside).gain, kind="stable")[:count]]

    def nothing(self) -> JointFound:
        """Only what is fixed."""
        fixed = np.flatnonzero(self.units.fixed)
        n_columns = int(self.units.sizes[fixed].sum())
        return JointFound(fixed, tuple(np.zeros(n_columns + 1) for _ in self.panels), np.inf)

    def try_everything(self) -> None:
        """All supports of this size."""
        fixed = np.flatnonzero(self.units.fixed)
        free, n_free = np.flatnonzero(~self.units.fixed), len(self.support) - len(fixed)
        for choice in combinations(free.tolist(), n_free):
            chosen = {*choice, *fixed.tolist()}
            lose = np.array([a for a, unit in enumerate(self.support) if unit not in chosen], np.int64)
            take = np.array(sorted(chosen - set(self.support.tolist())), np.int64)
            if len(take):
                self._tried(lose, take, np.inf)
        self.all_tried = True

    def n_supports(self, k: int) -> int:
        n_fixed = int(self.units.fixed.sum())
        return comb(self.units.n_units - n_fixed, max(k - n_fixed, 0))

    def finish(self) -> None:
        """Bring what was found to its minimum while there is a panel, if it would be dear to make again."""
        if not any(panel.design.panels_are_dear for panel in self.panels):
            return
        idx = self._idx(self.support)
        for panel in self.panels:
            used = np.append(np.flatnonzero(panel.u[:-1]), len(panel.u) - 1) if self.signed else np.arange(len(idx))
            before = Found(idx[used][:-1], panel.u[used], panel.value / panel.weight)
            (after,), _ = panel.design.finish_in_panel(panel.rows, panel.ridge, [before])
            if not self.signed or np.all(np.sign(after.u[:-1]) == np.sign(before.u[:-1])):
                panel.u[used], panel.value = after.u, panel.weight * after.value
        self.value = sum(panel.value for panel in self.panels)

    def found(self) -> JointFound:
        regime = Regime.PANEL if self.is_whole else Regime.WORKING_SET
        return JointFound(
            self.support.copy(),
            tuple(panel.u.copy() for panel in self.panels),
            float(self.value),
            self.is_whole and self.all_tried,
            regime,
            tuple(float(panel.value / panel.weight) for panel in self.panels),
        )


def smallest_first(values: Vector, count: int) -> Iterator[int]:
    """Places of the smallest values, in order."""
    count = min(count, len(values))
    if count < len(values):
        chosen = np.argpartition(values, count)[:count] if count else np.empty(0, np.int64)
    else:
        chosen = np.arange(len(values))
    return iter(chosen[np.argsort(values[chosen], kind="stable")].tolist())


def _unions(blocks: list[Indices], pairs: list[tuple[int, int]]) -> tuple[Indices, Indices]:
    """The places of both blocks of each pair, one pair after another; where each begins."""
    unions = [np.concatenate([blocks[a], blocks[b]]) for a, b in pairs]
    starts = np.concatenate([[0], np.cumsum([len(union) for union in unions])])
    return np.concatenate(unions).astype(np.int64), starts.astype(np.int64)
