"""The search by units for several binary problems: its compiled loops, and what they ask of panels."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled, compiled_or_remote
from kmargin.core.linalg import smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.newton import MAX_NEWTON_STEPS, NO_LOSS, cost_of_refit
from kmargin.solvers.search.swap_scores import schur_blocks, score_columns, score_units
from kmargin.solvers.search.swap_search import HOPE, MAX_ROUNDS, TRIES, find_far
from kmargin.solvers.search.unit_panels import (
    CALL,
    NONE,
    ColumnScores,
    MachinePanel,
    Member,
    Places,
    Promise,
    Stack,
    StackedScores,
    exchange_each,
    go_to_each,
    locate,
    make_stack,
    rearrange,
    refit_each,
    residual_each,
    retake_each,
    score_each,
)
from kmargin.solvers.search.working_set import Pairs, UnitScores


class Layout(NamedTuple):
    """Units, and where their columns are: unit j is columns[starts[j]:starts[j + 1]]."""

    starts: Indices
    columns: Indices
    place_of: Indices  # of each column; -1 if it has none
    fixed: Flags  # of each unit


class Scored(NamedTuple):
    """What exchanges do at a support; see `UnitScores`."""

    outside: Indices
    drop: Vector
    gain: Vector
    change: Matrix
    by_machine: StackedScores


class Searched(NamedTuple):
    """Where a search ends."""

    support: Indices
    coefs: Matrix
    values: Vector  # of each machine
    n_newton: int
    all_tried: bool
    nothing_left: bool  # to exchange, or to gain
    scored: Scored  # at this support, unless there is nothing left


NOTHING_SCORED = Scored(
    np.empty(0, np.int64),
    np.empty(0),
    np.empty(0),
    np.empty((0, 0)),
    StackedScores(
        np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)), np.empty((0, 0, 0))
    ),
)


@compiled_or_remote
def score_at(
    stack: Stack, far: Indices, layout: Layout, support: Indices, coefs: Matrix, outside: Indices
) -> Scored:
    """What exchanges with these units do."""
    end = stack.ridge.shape[1] - 2
    idx, lose_starts = locate(layout.starts, layout.columns, layout.place_of, end, support)
    places, take_starts = locate(layout.starts, layout.columns, layout.place_of, end, outside)
    drop, gain, change, by_machine = score_each(
        stack, far, idx, coefs, places[: places.size - 1], lose_starts, take_starts
    )
    keep_fixed(support, layout.fixed, drop, change)
    return Scored(outside, drop, gain, change, by_machine)


@compiled
def keep_fixed(support: Indices, fixed: Flags, drop: Vector, change: Matrix) -> None:
    """What has to stay costs more than anything gains."""
    for a in range(support.size):
        if fixed[support[a]]:
            drop[a] = np.inf
            for b in range(change.shape[1]):
                change[a, b] = np.inf


@compiled
def others(support: Indices, may_come: Flags) -> Indices:
    """The units that may come and are not in the support."""
    inside = np.zeros(may_come.size, np.bool_)
    for a in range(support.size):
        inside[support[a]] = True
    found, m = np.empty(may_come.size, np.int64), 0
    for unit in range(may_come.size):
        if may_come[unit] and not inside[unit]:
            found[m] = unit
            m += 1
    return found[:m].copy()


@compiled
def are_same(x: Indices, y: Indices) -> bool:
    if x.size != y.size:
        return False
    for i in range(x.size):
        if x[i] != y[i]:
            return False
    return True


@compiled
def lowest(values: Vector, count: int, bound: float) -> Indices:
    """`smallest_first`."""
    known, order = np.empty(values.size), np.empty(min(count, values.size), np.int64)
    for i in range(values.size):
        known[i] = values[i] if values[i] == values[i] else np.inf
    smallest(known, values.size, order.size, order)
    m = 0
    for r in range(order.size):
        if not (values[order[r]] > bound or values[order[r]] == np.inf):
            order[m] = order[r]
            m += 1
    return order[:m].copy()


@compiled
def n_that_pay(drop: Vector, gain: Vector, lose: Indices, take: Indices) -> int:
    """How many of the cheapest cost less than as many of the most gainful gain."""
    c = 0
    while c < lose.size and c < take.size and drop[lose[c]] < gain[take[c]]:
        c += 1
    return c


@compiled
def cost_of_tries(stack_starts: Indices, n_columns: int) -> float:
    """`joint_cost_of_try`."""
    cost = 0.0
    for number in range(stack_starts.size - 1):
        cost += CALL + cost_of_refit(stack_starts[number + 1] - stack_starts[number], n_columns + 1)
    return cost


@compiled
def total_of(values: Vector) -> float:
    total = 0.0
    for number in range(values.size):
        total += values[number]
    return total


@compiled
def how_many_tries(
    stack_starts: Indices, n_columns: int, n_swaps: int, max_swaps: int, room: float
) -> tuple[int, bool]:
    """Exchanges of one for one; and whether these are all."""
    affordable = room / cost_of_tries(stack_starts, n_columns)
    if max_swaps < 0 or affordable >= n_swaps:
        return n_swaps, True
    return min(n_swaps, max(1, min(max_swaps, TRIES * max_swaps // (n_columns + 1)), int(affordable))), False


@compiled_or_remote
def search_each(
    stack: Stack,
    far: Indices,
    layout: Layout,
    support: Indices,
    coefs: Matrix,
    values: Vector,
    may_come: Flags,
    many: bool,
    max_swaps: int,
    room: float,
    tol: float,
    scored: Scored,
) -> Searched:
    """Many for many while that pays, then one for one; scores anew after a success.

    `scored` is what is known of this support; nothing if the units outside are not those.
    """
    n_newton, tried = 0, values.copy()
    outside = others(support, may_come)
    if scored.drop.size != support.size or not are_same(outside, scored.outside):
        scored = score_at(stack, far, layout, support, coefs, outside)
    for _ in range(MAX_ROUNDS):
        value, limit = total_of(values), total_of(values) * (1.0 - tol)
        if support.size == 0 or outside.size == 0 or value < NO_LOSS:
            return Searched(support, coefs, values, n_newton, True, True, scored)
        if value != value:  # every exchange would be as good as any other
            break
        turn, all_tried = -1, False
        if many:
            lose, take = (
                lowest(scored.drop, support.size // 2, np.inf),
                lowest(-scored.gain, outside.size, np.inf),
            )
            c = n_that_pay(scored.drop, scored.gain, lose, take)
            while c > 1 and turn < 0:  # one for one comes next
                turn, support, coefs, n_iter = exchange_each(
                    stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
                    lose[:c].copy().reshape((1, c)), outside[take[:c]].reshape((1, c)), value, limit, tol,
                    tried,
                )  # fmt: skip
                n_newton += n_iter
                c //= 2
            many = turn >= 0
        if turn < 0:
            n_free = lowest(scored.drop, support.size, np.inf).size
            n_tries, all_tried = how_many_tries(
                stack.starts, coefs.shape[1] - 1, n_free * outside.size, max_swaps, room
            )
            hope = np.inf if all_tried else HOPE * value
            best = lowest(scored.change.ravel(), n_tries, hope)
            turn, support, coefs, n_iter = exchange_each(
                stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
                (best // outside.size).reshape((-1, 1)), outside[best % outside.size].reshape((-1, 1)),
                np.inf if all_tried else value, limit, tol, tried,
            )  # fmt: skip
            n_newton += n_iter
        if turn < 0:
            return Searched(support, coefs, values, n_newton, all_tried and turn == -1, False, scored)
        values = tried.copy()
        outside = others(support, may_come)
        scored = score_at(stack, far, layout, support, coefs, outside)
    return Searched(support, coefs, values, n_newton, False, False, scored)


@compiled_or_remote
def resize_each(
    stack: Stack,
    far: Indices,
    layout: Layout,
    support: Indices,
    coefs: Matrix,
    may_come: Flags,
    k: int,
    growth: float,
    tol: float,
    values: Vector,
) -> tuple[Indices, Matrix, int]:
    """Drop the cheapest units, or add the most gainful, until there are k or all that may come or go.

    `values` are those of the machines then, if there is any change.
    """
    none: Indices = np.empty(0, np.int64)
    n_newton = 0
    while support.size != k:
        size = support.size
        if size > k:
            scored = score_at(stack, far, layout, support, coefs, none)
            lose = lowest(scored.drop, min(size - k, max(1, size // 8)), np.inf)
            take = none
        else:
            scored = score_at(stack, far, layout, support, coefs, others(support, may_come))
            best = lowest(-scored.gain, min(k - size, max(1, int(growth * size))), np.inf)
            lose, take = none, scored.outside[best]
        if lose.size + take.size == 0:
            break
        _, support, coefs, n_iter = exchange_each(
            stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
            lose.reshape((1, -1)), take.reshape((1, -1)), np.inf, np.nan, tol, values,
        )  # fmt: skip
        n_newton += n_iter
    return support, coefs, n_newton


class JointPanels:
    """Scores and objectives are sums over the machines; coefficients have a row for each of them."""

    def __init__(
        self,
        members: Sequence[Member],
        promises: Sequence[Promise],
        units: Units,
        size: int,
        first: Indices,
    ) -> None:
        """With places for so many units, the first of them given to these."""
        self.members, self.units = members, units
        self.signed = bool(units.signs.any())
        self.places = Places(units, units.widest(size))
        self.places.give(first)
        columns = self.places.contents[self.places.contents >= 0]
        self.at_hand = [member.design.at_hand for member in members if member.design.at_hand is not None]
        self.stack = self._make_stack()
        self.panels = [
            MachinePanel(member, promise, columns, self.places.size, self.stack, number)
            for number, (member, promise) in enumerate(zip(members, promises, strict=True))
        ]
        self.layout = Layout(units.starts, units.columns, self.places.place_of, units.fixed)
        self.is_placed = False
        self.last_scores: Iterable[Any] = ()  # of the columns of each machine, as `score` left them

    def _make_stack(self) -> Stack | None:
        """One memory for all machines; not where rows are elsewhere, or coefficients have given signs."""
        if self.signed or len(self.at_hand) < len(self.members):
            return None
        self.labels = np.concatenate([design.t for design in self.at_hand])
        weights = [member.weight for member in self.members]
        return make_stack([design.n_samples for design in self.at_hand], self.places.size, weights)

    def go_to(self, lam: float, support: Indices, coefs: Matrix) -> None:
        """Another ridge, another support."""
        self._hold(support)
        idx, filled = self._locate(support)[0], self.places.filled()
        for panel in self.panels:
            panel.set_ridge(lam)
        if self.stack is not None:
            go_to_each(self.stack, idx, coefs, self.is_placed, filled)
        else:
            for panel, u in zip(self.panels, coefs, strict=True):
                panel.go_to(idx, u, self.is_placed, filled)
        self.is_placed = True

    def exchange(
        self,
        support: Indices,
        coefs: Matrix,
        lose: Indices,
        take: Indices,
        give_up: float,
        limit: float,
        tol: float,
    ) -> tuple[Indices, Matrix, Vector | None, int]:
        """The first of several exchanges, lose[turn] for take[turn], after which the sum of the machines is
        below a limit; any is if the limit is not a number.

        Returns the support, coefficients and objectives, which are None if there is no such exchange, and the
        Newton steps. Of a try that comes to nothing not all machines need be refitted.
        """
        values = np.zeros(len(coefs))
        if self.stack is not None:
            turn, support, coefs, n_newton = exchange_each(
                self.stack, find_far(), self.units.starts, self.units.columns, self.places.place_of, support,
                coefs, lose, take, give_up, limit, tol, values,
            )  # fmt: skip
            return support, coefs, values if turn >= 0 else None, n_newton
        n_newton = 0
        for out, come in zip(lose, take, strict=True):
            chosen, moved, total, n_iter = self._refit(support, coefs, out, come, give_up, limit, tol, values)
            n_newton += n_iter
            if total < limit or limit != limit:
                for panel in self.panels:
                    panel.keep()
                return chosen, moved, values, n_newton
        return support, coefs, None, n_newton

    def without(self, support: Indices, coefs: Matrix, place: int, tol: float) -> tuple[Indices, Matrix, int]:
        """All machines refitted without one unit of the support, to look from there: support, coefficients,
        Newton steps.
        """
        values = np.zeros(len(coefs))
        chosen, moved, _, n_newton = self._refit(
            support, coefs, np.array([place]), NONE, np.inf, np.nan, tol, values
        )
        return chosen, moved, n_newton

    def _refit(
        self,
        support: Indices,
        coefs: Matrix,
        lose: Indices,
        take: Indices,
        give_up: float,
        limit: float,
        tol: float,
        values: Vector,
    ) -> tuple[Indices, Matrix, float, int]:
        """After an exchange, machine after machine until their sum is no longer below the limit."""
        units, places = self.units, self.places
        support, idx, coefs = rearrange(
            units.starts, units.columns, places.place_of, places.size, support, coefs, lose, take
        )
        if self.stack is not None:
            return (
                support,
                coefs,
                *refit_each(self.stack, find_far(), idx, coefs, give_up, limit, tol, values),
            )
        signs = np.append(units.signs[units.columns_of(support)], 0.0) if self.signed else None
        n_newton, total = 0, 0.0
        for number, (panel, u) in enumerate(zip(self.panels, coefs, strict=True)):
            values[number], n_iter = panel.refit(idx, u, signs, give_up - total, tol)
            n_newton, total = n_newton + n_iter, total + float(values[number])
            if limit == limit and n_iter == MAX_NEWTON_STEPS:
                total = np.inf  # as in `refit_each`
            if limit == limit and not total < limit:
                break
        return support, coefs, total, n_newton

    def score(self, support: Indices, coefs: Matrix, outside: Indices) -> UnitScores:
        """What units cost, gain and change, to second order."""
        (idx, lose_starts), (places, take_starts) = self._locate(support), self._locate(outside)
        places = places[:-1]
        if self.stack is not None:
            drop, gain, change, stacked = score_each(
                self.stack, find_far(), idx, coefs, places, lose_starts, take_starts
            )
            self.last_scores = zip(*stacked, strict=True)
            return UnitScores(drop, gain, change)
        n_in, n_out = len(support), len(outside)
        drop, gain, change = np.zeros(n_in), np.zeros(n_out), np.zeros((n_in, n_out))
        self.last_scores = [
            self._column_scores(panel, idx, u, places) for panel, u in zip(self.panels, coefs, strict=True)
        ]
        inside, at = np.arange(len(idx) - 1), np.arange(len(places))
        for panel, u, scores in zip(self.panels, coefs, self.last_scores, strict=True):
            spread, grad, schur, R, inverse = scores
            if len(inside) == n_in and len(at) == n_out:
                score_columns(u, spread, grad, schur, R, panel.weight, drop, gain, change)
                continue
            S = np.empty((len(places), len(places)))
            schur_blocks(panel.gram, panel.ridge, idx, places, R, take_starts, S)
            score_units(
                u, inverse, grad, S, R, inside, lose_starts, at, take_starts, panel.weight, drop, gain, change
            )
        return UnitScores(drop, gain, change)

    def _locate(self, units: Indices) -> tuple[Indices, Indices]:
        """The places of their columns, then of the intercept; where each unit begins among its columns."""
        places = self.places
        return locate(self.units.starts, self.units.columns, places.place_of, places.size, units)

    def _column_scores(self, panel: MachinePanel, idx: Indices, u: Vector, places: Indices) -> ColumnScores:
        """A coefficient that would get the wrong sign gains nothing."""
        scores = panel.score(idx, u, places)
        if self.signed:
            scores.grad[scores.grad * self.units.signs[self.places.contents[places]] > 0.0] = 0.0
        return scores

    def score_pairs(
        self,
        support: Indices,
        coefs: Matrix,
        outside: Indices,
        lose: Indices,
        take: Indices,
        pairs_out: Pairs,
        pairs_in: Pairs,
    ) -> Matrix:
        """The blocks are those of both units; the columns were scored by `score`, for the same `outside`."""
        (idx, starts), (places, starts_taken) = self._locate(support), self._locate(outside[take])
        places, starts_out = places[:-1], self._locate(outside)[1]
        chosen = np.concatenate([np.arange(starts_out[b], starts_out[b + 1]) for b in take])
        inside, lose_starts = _unions(starts, lose, pairs_out)
        at, take_starts = _unions(starts_taken, np.arange(len(take)), pairs_in)
        change = np.zeros((len(pairs_out), len(pairs_in)))
        drop, gain = np.zeros(len(pairs_out)), np.zeros(len(pairs_in))
        everything = np.array([0, len(places)])
        self.last_scores = [ColumnScores(*scores) for scores in self.last_scores]
        for panel, u, scores in zip(self.panels, coefs, self.last_scores, strict=True):
            S, R = np.empty((len(places), len(places))), np.ascontiguousarray(scores.R[:, chosen])
            schur_blocks(panel.gram, panel.ridge, idx, places, R, everything, S)
            score_units(
                u, scores.inverse, scores.grad[chosen], S, R, inside, lose_starts, at, take_starts,
                panel.weight, drop, gain, change,
            )  # fmt: skip
        return change

    def gains_alone(self, support: Indices, coefs: Matrix) -> Vector:
        """What each unit promises beside a support, from its slopes alone."""
        by_unit = np.zeros(self.units.n_units)
        with np.errstate(over="ignore", invalid="ignore"):
            for panel, slopes in zip(self.panels, self._slopes(support, coefs), strict=True):
                panel.promise.add_gains(slopes, panel.weight, by_unit)
        return by_unit

    def _slopes(self, support: Indices, coefs: Matrix) -> Iterator[Vector]:
        """Of each machine's loss with respect to each column, up to its sign; 0 where that would be wrong."""
        idx = self._locate(support)[0]
        if self.stack is not None:
            residual_each(self.stack, idx, coefs)
            pulls = self.labels * squared_hinge.slopes(self.stack.resid)
            for design, (first, last) in zip(self.at_hand, pairwise(self.stack.starts.tolist()), strict=True):
                yield design.X.slopes(pulls[first:last])
            return
        columns = self.units.columns_of(support)
        for panel, u in zip(self.panels, coefs, strict=True):
            slopes = panel.slopes_alone(idx, columns, u)
            yield np.where(slopes * self.units.signs < 0.0, 0.0, slopes) if self.signed else slopes

    def bring(self, support: Indices, promising: Indices, n_columns: int) -> Indices:
        """As many units in this order as have so many columns together with the support; which these are."""
        room = n_columns - int(self.units.sizes[support].sum())
        n_wanted = int(np.searchsorted(np.cumsum(self.units.sizes[promising]), room, side="right"))
        self._hold(np.append(support, promising[:n_wanted]))
        return promising[:n_wanted]

    def _hold(self, needed: Indices) -> None:
        """Places for these units; if there are too few, others lose theirs."""
        coming = needed[~self.places.held[needed]]
        if len(coming) == 0:
            return
        given = self.places.give(coming, but_not_of=needed)
        for panel in self.panels:
            panel.fill(self.places.contents, given)
        if self.is_placed:
            filled = self.places.filled()
            if self.stack is not None:
                retake_each(self.stack, given, filled)
                return
            for panel in self.panels:
                panel.retake(given, filled)

    def finish(self, support: Indices, coefs: Matrix, values: Vector) -> None:
        """Bring coefficients and objectives to their minimum, in place, where panels are dear."""
        if any(panel.design.panels_are_dear for panel in self.panels):
            idx = self._locate(support)[0]
            for number, panel in enumerate(self.panels):
                values[number] = panel.finish(
                    idx, coefs[number], float(values[number]), only_nonzero=self.signed
                )


def _unions(starts: Indices, blocks: Indices, pairs: Pairs) -> tuple[Indices, Indices]:
    """The places of both blocks of each pair, one pair after another; where each begins."""
    places = [np.arange(starts[block], starts[block + 1]) for block in blocks]
    unions = [np.concatenate([places[a], places[b]]) for a, b in pairs]
    ends = np.cumsum([len(union) for union in unions])
    return np.concatenate(unions), np.concatenate([[0], ends]).astype(np.int64)
