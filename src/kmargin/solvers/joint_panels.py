"""Panels of the same columns for several machines: what a search by units asks of all of them at once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.solvers.fitted import Pairs, UnitScores
from kmargin.solvers.joint_found import NONE, Places, locate, rearrange
from kmargin.solvers.joint_search import Layout
from kmargin.solvers.machine_panel import ColumnScores, MachinePanel, Member
from kmargin.solvers.machine_stack import (
    Stack,
    exchange_each,
    go_to_each,
    make_stack,
    refit_each,
    residual_each,
    retake_each,
    score_each,
)
from kmargin.solvers.newton import MAX_NEWTON_STEPS
from kmargin.solvers.promise import Promise
from kmargin.solvers.search import find_far
from kmargin.solvers.unit_scores import schur_blocks, score_columns, score_units
from kmargin.types import Indices, Matrix, Vector
from kmargin.units import Units


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
