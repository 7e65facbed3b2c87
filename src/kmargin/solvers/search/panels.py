"""Panels: copies of the columns of some units (features or groups), laid out for Newton steps.

The swap search uses a panel for four operations, each for all binary problems at once: refit the support
after an exchange of units, predict how exchanges change the objective, rank the units outside the support by
their gradients, and copy other columns into the panel. Each row of a panel holds a column of X, or the
intercept; the index of such a row is called a place.
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Tensor, Vector
from kmargin.core.jit import compiled, inlined
from kmargin.core.units import Units
from kmargin.solvers.refit.final import measure_gradient
from kmargin.solvers.refit.newton import MAX_NEWTON_STEPS, newton, update_gram
from kmargin.solvers.refit.rows import ArrayRows, Rows
from kmargin.solvers.search.group_scores import factor_covariances, group_gains, score_groups
from kmargin.solvers.search.swap_scores import score_pairs, score_singles

NONE: Indices = np.empty(0, np.int64)

# Covariance matrices of groups' columns, padded to the largest group, are stored only if they have together
# at most this many entries per column of X. Otherwise variances alone rank the groups.
MAX_COVARIANCES_PER_COLUMN = 64

# Gram matrices are summed over slices of this many rows, which limits the memory for copies of active rows.
ROWS_AT_A_TIME = 2048


@inlined
def locate(starts: Indices, place_of: Indices, end: int, units: Indices) -> Indices:
    """The places (rows in the panel) of the columns of `units`, followed by `end`, that of the intercept.

    The columns of unit j have the places place_of[starts[j]:starts[j + 1]].
    """
    size = 0
    for a in range(units.size):
        size += starts[units[a] + 1] - starts[units[a]]
    idx = np.empty(size + 1, np.int64)
    at = 0
    for a in range(units.size):
        for i in range(starts[units[a]], starts[units[a] + 1]):
            idx[at] = place_of[i]
            at += 1
    idx[at] = end
    return idx


@inlined
def exchange_units(
    starts: Indices, support: Indices, coefs: Matrix, lose: Indices, take: Indices
) -> tuple[Indices, Matrix]:
    """Replace the units support[lose] by `take`, with coefficients 0; return support and coefficients."""
    # Loops fill these arrays because np.ones and np.zeros take numba several times as long to compile
    stays = np.empty(support.size, np.bool_)
    for a in range(support.size):
        stays[a] = True
    for a in range(lose.size):
        stays[lose[a]] = False
    new = np.empty(support.size - lose.size + take.size, np.int64)
    size, m = 0, 0
    for a in range(support.size):
        if stays[a]:
            new[m] = support[a]
            m += 1
    for b in range(take.size):
        new[m + b] = take[b]
    for a in range(new.size):
        size += starts[new[a] + 1] - starts[new[a]]
    moved = np.empty((coefs.shape[0], size + 1))
    at, before = 0, 0
    for a in range(support.size):
        width = starts[support[a] + 1] - starts[support[a]]
        if stays[a]:
            for p in range(coefs.shape[0]):
                for i in range(width):
                    moved[p, at + i] = coefs[p, before + i]
            at += width
        before += width
    for p in range(coefs.shape[0]):
        for i in range(at, size):
            moved[p, i] = 0.0
        moved[p, size] = coefs[p, before]
    return new, moved


@compiled
def try_exchanges(
    panel: Matrix,
    row_starts: Indices,
    gram: Tensor,
    ridge: Matrix,
    active: Flags,
    residual: Vector,
    flags: Flags,
    numbers: Matrix,
    rows: Indices,
    unit_starts: Indices,
    place_of: Indices,
    place_signs: Vector | None,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
    give_up: float,
    limit: float,
    tol: float,
    values: Vector,
) -> tuple[int, Indices, Matrix, int]:
    """Try exchanges of units (features or groups) one after another, and make the first that succeeds.

    Exchange number `turn` replaces the units support[lose[turn]] by take[turn] and refits. It succeeds if the
    sum of the objectives of the binary problems is below `limit`; if `limit` is NaN, it always does. If
    `limit` is -inf, none succeeds, and the residuals of the last trial are left in numbers[2]. A trial fails
    early if its objective cannot get below `give_up`, or if the binary problems refitted so far exceed the
    limit. It also fails if it reaches the largest number of Newton steps. Returns the turn (-1 if all trials
    failed, -2 if one of them might have succeeded with more steps), the support, its coefficients and the
    number of Newton steps. `values` (the objectives), `gram`, `active` and `residual` are updated; `flags`,
    `numbers` and `rows` are work arrays.
    """
    n_problems, end = coefs.shape[0], panel.shape[0] - 2
    trial_active, now = flags[0], flags[1]
    delta, row_signs, trial_residual = numbers[0], numbers[1], numbers[2]
    is_forced = limit != limit
    n_steps, outcome = 0, -1
    for turn in range(lose.shape[0]):
        new_support, new_coefs = exchange_units(unit_starts, support, coefs, lose[turn], take[turn])
        idx = locate(unit_starts, place_of, end, new_support)
        total, is_done = 0.0, True
        for p in range(n_problems):
            first, last = row_starts[p], row_starts[p + 1]
            for i in range(first, last):
                trial_active[i] = active[i]
            if place_signs is None:
                value, n_newton = newton(
                    panel, first, gram[p], ridge[p], idx, new_coefs[p], None, trial_active[first:last],
                    trial_residual[first:last], delta[first:last], rows[first:last], row_signs[first:last],
                    now[first:last], give_up - total, tol,
                )  # fmt: skip
            else:
                signs = np.empty(idx.size)
                for a in range(idx.size):
                    signs[a] = place_signs[idx[a]]
                value, n_newton = newton(
                    panel, first, gram[p], ridge[p], idx, new_coefs[p], signs, trial_active[first:last],
                    trial_residual[first:last], delta[first:last], rows[first:last], row_signs[first:last],
                    now[first:last], give_up - total, tol,
                )  # fmt: skip
            n_steps += n_newton
            values[p] = value
            total += value
            if not is_forced:
                if n_newton == MAX_NEWTON_STEPS:
                    outcome = -2
                    is_done = False
                if not total < limit:
                    is_done = False
                if not is_done and limit > -np.inf:
                    break
        if is_done:
            columns = np.empty(panel.shape[0], np.int64)
            for a in range(columns.size):
                columns[a] = a
            for p in range(n_problems):
                first, last = row_starts[p], row_starts[p + 1]
                n_changed = update_gram(
                    panel, first, columns, active[first:last], trial_active[first:last], rows[first:last],
                    row_signs[first:last], gram[p],
                )  # fmt: skip
                if n_changed > 0:
                    for a in range(columns.size):
                        for b in range(a + 1, columns.size):
                            gram[p, b, a] = gram[p, a, b]
            for i in range(active.size):
                residual[i] = trial_residual[i]
            return turn, new_support, new_coefs, n_steps
    return outcome, support, coefs, n_steps


class UnitScores(NamedTuple):
    """Predicted changes of the objective, to second order, if units (features or groups) enter or leave."""

    drop: Vector  # the rise if a unit of the support is dropped; infinite if it must stay
    gain: Vector  # the decrease if a unit outside the support is added
    change: Matrix | None = None  # change[a, b] by replacing support unit a by b; None: drop[a] - gain[b]
    are_independent: bool = True  # whether no unit outside depends linearly on the support (refits are exact)


class UnitGains:
    """Approximate decrease of the objective of one binary problem by adding each unit (feature or group).

    The decreases are computed from the gradient and the variances of columns; for groups, from the gradient
    and the covariances of their columns, unless the covariances take too much memory.
    """

    def __init__(self, rows: Rows, units: Units) -> None:
        self.rows, self.units = rows, units
        self.covariances = self._covariances(int(units.sizes.max(initial=1)))
        self.lam = np.nan

    def _covariances(self, widest: int) -> Tensor | None:
        """Covariance matrix of each group's columns; None if groups are single columns, or to save memory."""
        rows, q = self.rows, len(self.units.columns)
        if widest == 1 or not isinstance(rows, ArrayRows) or not rows.fits(q * rows.n_samples):
            return None
        if self.units.n_units * widest**2 > MAX_COVARIANCES_PER_COLUMN * q:
            return None
        A = np.empty((q, rows.n_samples))
        rows.X.fill_panel(self.units.columns, rows.c, np.arange(q), A)
        if rows.fit_intercept:
            A -= np.outer(A @ rows.c, rows.c) / (rows.c @ rows.c)
        covariances = np.zeros((self.units.n_units, widest, widest))
        for unit in range(self.units.n_units):
            first, last = self.units.starts[unit], self.units.starts[unit + 1]
            covariances[unit, : last - first, : last - first] = A[first:last] @ A[first:last].T
        return covariances

    def set_ridge(self, lam: float) -> None:
        if lam == self.lam:
            return
        self.lam = lam
        curvature = self.rows.variance + lam * self.rows.ridge_scale
        varies = curvature > np.finfo(np.float64).tiny  # 1 / curvature would overflow for smaller numbers
        self.weights = np.divide(1.0, curvature, out=np.zeros(len(curvature)), where=varies)
        if self.covariances is not None:
            self.factors = self.covariances.copy()
            ridges = lam * self.rows.ridge_scale[self.units.columns]
            factor_covariances(self.factors, self.units.starts, ridges)

    def gains(self, descent: Vector) -> Vector:
        """Twice the predicted decrease by adding each unit; `descent` is minus the gradient of the loss."""
        if self.covariances is None:
            return self.units.total(descent**2 * self.weights)
        out = np.empty(self.units.n_units)
        group_gains(descent, self.units.starts, self.units.columns, self.factors, out)
        return out


class Panels:
    """Copies of the columns of some units (features or groups), rows of all binary problems side by side."""

    def __init__(
        self, all_rows: Sequence[ArrayRows], units: Units, n_places: int, gains: Sequence[UnitGains]
    ) -> None:
        """Make a panel with room for `n_places` columns of X, but without any of them yet."""
        self._make_places(all_rows, units, n_places, gains)
        self.array_rows = all_rows
        row_starts = np.cumsum([0, *(rows.n_samples for rows in all_rows)])
        n_rows, height = int(row_starts[-1]), n_places + 2
        self.row_starts = row_starts
        self.slices = [slice(first, last) for first, last in pairwise(row_starts.tolist())]
        self.panel = np.zeros((height, n_rows))
        for rows, part in zip(all_rows, self.slices, strict=True):
            self.panel[-2, part] = rows.t if rows.fit_intercept else 0.0
            self.panel[-1, part] = rows.target
        self.active, self.residual = np.ones(n_rows, np.bool_), self.panel[-1].copy()
        self.flags, self.numbers = np.empty((2, n_rows), np.bool_), np.empty((3, n_rows))
        self.work_rows = np.empty(n_rows, np.int64)
        self._update_gram(np.arange(n_places, height))

    def _make_places(
        self, all_rows: Sequence[Rows], units: Units, n_places: int, gains: Sequence[UnitGains]
    ) -> None:
        """Allocate ridges, Gram matrices, and tables of which column of X is in which row of the panel."""
        self.all_rows, self.units, self.n_places, self.unit_gains = all_rows, units, n_places, gains
        # Row `place` of the panel holds the column units.columns[contents[place]], or none if that index is
        # -1. units.columns[index] is in the row place_of[index] of the panel, or in none if that is -1.
        self.contents = np.full(n_places, -1)
        self.place_of = np.full(len(units.columns), -1)
        self.held = np.zeros(units.n_units, np.bool_)
        self.is_single, self.has_fixed = units.n_units == len(units.columns), bool(units.fixed.any())
        self.place_signs = np.zeros(n_places + 2) if units.signs.any() else None
        self.gram = np.zeros((len(all_rows), n_places + 2, n_places + 2))
        self.ridge = np.zeros((len(all_rows), n_places + 2))
        self.lams = np.full(len(all_rows), np.nan)

    def set_ridges(self, lams: Vector) -> None:
        """Set the ridges, one for each binary problem, for the columns in the panel and `unit_gains`."""
        if lams is self.lams or np.array_equal(lams, self.lams):
            return
        self.lams = lams
        held = np.flatnonzero(self.contents >= 0)
        self._set_place_ridges(held)
        for rows, ridge, gains, lam in zip(self.all_rows, self.ridge, self.unit_gains, lams, strict=True):
            ridge[-2] = 0.0 if rows.fit_intercept else 1.0
            gains.set_ridge(lam)

    def _set_place_ridges(self, places: Indices) -> None:
        columns = self.units.columns[self.contents[places]]
        for rows, ridge, lam in zip(self.all_rows, self.ridge, self.lams, strict=True):
            ridge[places] = lam * rows.ridge_scale[columns]

    def hold(self, needed: Indices) -> None:
        """Copy the columns of these units into the panel; if space is short, first remove all others."""
        coming = needed[~self.held[needed]]
        if len(coming) == 0:
            return
        positions = self.units.positions_of(coming)
        empty = np.flatnonzero(self.contents < 0)
        if len(empty) < len(positions):
            leaving = self.held.copy()
            leaving[needed] = False
            gone = self.units.positions_of(np.flatnonzero(leaving))
            self.contents[self.place_of[gone]], self.place_of[gone], self.held[leaving] = -1, -1, False
            empty = np.flatnonzero(self.contents < 0)
        places = empty[: len(positions)]
        self.contents[places], self.place_of[positions], self.held[coming] = positions, places, True
        if self.place_signs is not None:
            self.place_signs[places] = self.units.signs[self.units.columns[positions]]
        self._set_place_ridges(places)
        self._fill(places)

    def begin_at(self, support: Indices, coefs: Matrix) -> None:
        """Find the active rows at these coefficients, for the first Gram matrices of an empty panel."""
        if not coefs.any():
            return
        columns = self.units.columns_of(support)
        for rows, part, u in zip(self.array_rows, self.slices, coefs, strict=True):
            self.active[part] = squared_hinge.is_active(rows.residual(columns, u))
        self._update_gram(np.arange(self.n_places, self.n_places + 2))

    def _fill(self, places: Indices) -> None:
        """Copy the columns of X that belong into these rows of the panel; update the Gram matrices."""
        columns = self.units.columns[self.contents[places]]
        for rows, part in zip(self.array_rows, self.slices, strict=True):
            if len(self.all_rows) == 1:
                rows.X.fill_panel(columns, rows.t, places, self.panel)
            else:  # `fill_panel` writes only to contiguous arrays, unlike this part of the panel
                block = np.empty((len(places), rows.n_samples))
                rows.X.fill_panel(columns, rows.t, np.arange(len(places)), block)
                self.panel[places, part] = block
        self._update_gram(places)

    def _update_gram(self, places: Indices) -> None:
        for gram, part in zip(self.gram, self.slices, strict=True):
            products = np.zeros((len(places), len(gram)))
            for first in range(part.start, part.stop, ROWS_AT_A_TIME):
                tile = slice(first, min(first + ROWS_AT_A_TIME, part.stop))
                panel, rows = self.panel[:, tile], np.flatnonzero(self.active[tile])
                if 2 * len(rows) < panel.shape[1]:  # to copy the active rows is faster than to multiply all
                    panel = panel.take(rows, axis=1)
                    products += panel[places] @ panel.T
                else:
                    products += (panel[places] * self.active[tile]) @ panel.T
            gram[places], gram[:, places] = products, products.T

    def _unit_starts(self, units: Indices) -> Indices:
        """Index of each unit's first column when the columns of `units` are joined, then their number."""
        return np.concatenate([[0], np.cumsum(self.units.sizes[units])])

    def _places(self, units: Indices) -> Indices:
        """The rows of the panel with the columns of these units, followed by that of the intercept."""
        positions = self.units.positions_of(units)
        idx = np.empty(len(positions) + 1, np.int64)
        idx[:-1], idx[-1] = self.place_of[positions], self.n_places
        return idx

    def exchange(
        self,
        support: Indices,
        coefs: Matrix,
        lose: Indices,
        take: Indices,
        give_up: float,
        limit: float,
        tol: float,
        values: Vector,
    ) -> tuple[int, Indices, Matrix, int]:
        """Try to replace the units support[lose[turn]] by take[turn] for turn = 0, 1, ... until one succeeds.

        An exchange succeeds if its refit has an objective below `limit`; a refit may end early if it cannot
        get below `give_up`. Returns the turn (negative if all failed), the support, its coefficients, and the
        number of Newton steps. The new objectives are written to `values`. See `try_exchanges` for details.
        """
        return try_exchanges(
            self.panel, self.row_starts, self.gram, self.ridge, self.active, self.residual, self.flags,
            self.numbers, self.work_rows, self.units.starts, self.place_of, self.place_signs, support, coefs,
            lose, take, give_up, limit, tol, values,
        )  # fmt: skip

    def score(self, support: Indices, coefs: Matrix, outside: Indices) -> UnitScores:
        """Predict the changes of the objective if support units are swapped for units `outside`."""
        idx, places = self._places(support), self.place_of[self.units.positions_of(outside)]
        signs = None if self.place_signs is None else self.place_signs[places]
        drop, gain = np.empty(len(support)), np.empty(len(outside))
        change = np.empty((len(support), len(outside)))
        if self.is_single:
            M, k, m = len(coefs), len(idx), len(places)
            grad, schur = np.empty((M, m)), np.empty((M, m))
            R, inverse = np.empty((M, k, m)), np.empty((M, k, k))
            are_independent = score_singles(
                self.gram, self.ridge, idx, coefs, places, signs, drop, gain, change, np.empty((M, k)), grad,
                schur, R, inverse,
            )  # fmt: skip
            self._scored = idx, places, grad, schur, R, inverse
        else:
            starts, starts_in = self._unit_starts(support), self._unit_starts(outside)
            are_independent = score_groups(
                self.gram, self.ridge, idx, coefs, places, signs, np.arange(len(idx) - 1), starts,
                np.arange(len(places)), starts_in, starts_in, drop, gain, change,
            )  # fmt: skip
        np.fmax(drop, 0.0, out=drop)  # NaN becomes 0: dropping a linearly dependent column raises nothing
        if self.has_fixed:
            fixed = self.units.fixed[support]
            drop[fixed], change[fixed] = np.inf, np.inf
        return UnitScores(drop, gain, change, are_independent)

    def score_pairs(
        self, support: Indices, coefs: Matrix, outside: Indices, lose: Indices, take: Indices
    ) -> Matrix:
        """Predict the change of the objective by each swap of two units for two.

        Rows of the result are the pairs of units support[lose], columns the pairs of outside[take]. Results
        that the last call of `score` stored, which must have been for the same units, are used.
        """
        change = np.zeros((math.comb(len(lose), 2), math.comb(len(take), 2)))
        if self.is_single:
            idx, places, grad, schur, R, inverse = self._scored
            score_pairs(
                self.gram, self.ridge, idx, coefs, places, grad, schur, R, inverse, lose, take, change
            )  # fmt: skip
            return change
        idx, places = self._places(support), self.place_of[self.units.positions_of(outside[take])]
        signs = None if self.place_signs is None else self.place_signs[places]
        starts = self._unit_starts(support), self._unit_starts(outside[take])
        unions = _unions(starts[0], lose), _unions(starts[1], np.arange(len(take)))
        score_groups(
            self.gram, self.ridge, idx, coefs, places, signs, *unions[0], *unions[1],
            np.array([0, len(places)]), np.empty(len(change)), np.empty(change.shape[1]), change,
        )  # fmt: skip
        return change

    def gains(self, support: Indices, coefs: Matrix, of_trial: bool = False) -> Vector:
        """For each unit, twice the approximate decrease of the objective if it is added to the support.

        The decreases are predicted at the present coefficients or, if `of_trial`, at those of the last trial.
        """
        pulls = squared_hinge.slopes(self.numbers[2] if of_trial else self.residual)
        total = np.zeros(self.units.n_units)
        for rows, part, gains in zip(self.array_rows, self.slices, self.unit_gains, strict=True):
            descent = rows.X.slopes(rows.t * pulls[part])
            if self.place_signs is not None:
                descent[descent * self.units.signs < 0.0] = 0.0
            total += gains.gains(descent)
        return total

    def finish(self, support: Indices, coefs: Matrix, values: Vector) -> float:
        """Recompute the objectives `values`; return the decrease that gradients predict (0 at a minimum)."""
        idx = self._places(support)
        has_signs = self.place_signs is not None
        return float(
            measure_gradient(
                self.panel, self.row_starts, self.ridge, idx, coefs, has_signs, self.numbers[2], values
            )
        )  # fmt: skip


def _unions(starts: Indices, blocks: Indices) -> tuple[Indices, Indices]:
    """For each pair of `blocks`, join their column indices; return all joined, and where each pair begins."""
    unions = [
        np.concatenate([np.arange(starts[a], starts[a + 1]), np.arange(starts[b], starts[b + 1])])
        for a, b in combinations(blocks.tolist(), 2)
    ]
    return np.concatenate(unions), np.concatenate([[0], np.cumsum([len(union) for union in unions])])
