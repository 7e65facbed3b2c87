"""Panels (copies of columns) for data in blocks of rows: Newton steps and Gram matrices by sums over blocks.

The blocks of X are not moved. Each block holds its rows of the panel and returns a number, a small matrix or
a vector for each request. These results are added in block order, so sums do not depend on which block
returned first. Every request contains the coefficients at which it is evaluated: blocks store none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.core.units import Units
from kmargin.data.blocks import Held, sums
from kmargin.data.blocks.sums import add_up
from kmargin.solvers.refit.final import GRADIENT_RTOL, minimise_by_svd
from kmargin.solvers.refit.newton import (
    FINAL_STEP,
    MAX_LINE_STEPS,
    MAX_NEWTON_STEPS,
    NEGLIGIBLE_STEP,
    ROUNDING_RTOL,
    ZERO_OBJECTIVE,
    newton_direction,
)
from kmargin.solvers.refit.rows import BlockRows
from kmargin.solvers.refit.signs import constrained_direction
from kmargin.solvers.search.panels import Panels, UnitGains, exchange_units


@compiled
def find_direction(
    H: Matrix, ridge: Vector, u: Vector, signs: Vector | None, d: Vector
) -> tuple[float, bool]:
    """Write the Newton step from u to d; return the predicted decrease, and if u + d minimises the model."""
    U = np.empty((u.size, u.size))
    if signs is None:
        return newton_direction(H, ridge, u, U, np.empty(u.size), d), True
    return constrained_direction(H, ridge, u, signs, U, d)


class RemoteColumns:
    """The columns of a support, intercept last, with rows in blocks; results are sums over the blocks."""

    def __init__(self, held: Held, idx: Indices) -> None:
        self.held, self.idx = held, idx

    def evaluate(self, u: Vector) -> tuple[float, Matrix, Any]:
        """At coefficients u: the loss; the Gram matrix (target last) and a fingerprint of active rows."""
        parts = self.held.ask(sums.evaluate, self.idx, u)
        loss, H, z = (add_up([part[entry] for part in parts]) for entry in range(3))
        extended = np.zeros((len(u) + 1, len(u) + 1))
        extended[:-1, :-1], extended[:-1, -1] = H, z
        return loss, extended, tuple(part.tag for part in parts)

    def squares(self) -> Vector:
        gram = add_up([gram for gram, _ in self.held.ask(sums.full_gram, None, None)])
        return np.diag(gram)[self.idx]

    def loss(self, u: Vector) -> float:
        return self.evaluate(u)[0]

    def active_rows(self, u: Vector) -> tuple[Matrix, Vector]:
        triangles = np.vstack(self.held.ask(sums.triangle, self.idx, u))
        return triangles[:, :-1], triangles[:, -1]

    def line_minimum(self, u: Vector, d: Vector, slope: float, curvature: float) -> float:
        """The step length t that minimises loss(u + t d) + t * slope + t^2/2 * curvature."""
        lo, hi, t = 0.0, np.inf, 1.0
        for _ in range(MAX_LINE_STEPS):
            first, second = add_up(self.held.ask(sums.slope_along, self.idx, u, d, t))
            first, second = first + slope + t * curvature, second + curvature
            lo, hi = (lo, t) if first > 0.0 else (t, hi)
            if not second > 0.0:
                break
            new = t - first / second
            if not lo < new < hi:
                if hi == np.inf:
                    break
                new = 0.5 * (lo + hi)
            if abs(new - t) <= 1e-12 * t:
                return float(new)
            t = new
        return float(t)

    def gradient_slack(self, ridge: Vector, u: Vector, have_signs: bool) -> float:
        """Sum of the decreases predicted for single coefficients, without those at 0 if `have_signs`."""
        descents, curvatures = add_up(self.held.ask(sums.descents_and_curvatures, self.idx, u))
        slope, curvature = ridge * u - descents, ridge + curvatures
        counts = (curvature > 0) & ~(have_signs & (u == 0))
        return 0.5 * float(np.sum(slope[counts] ** 2 / curvature[counts]))


def newton_by_sums(
    columns: RemoteColumns,
    H: Matrix,
    tag: Any,
    ridge: Vector,
    u: Vector,
    signs: Vector | None,
    give_up: float,
    tol: float,
) -> tuple[float, int]:
    """Minimise the objective over the coefficients u by Newton's method; return it and the number of steps.

    H is the Gram matrix of the columns (target last) over the active rows, those of positive loss; `tag` is a
    fingerprint of the set of active rows. u is overwritten with the minimiser. The algorithm, `give_up` and
    `tol` are those of `refit.newton.newton`.
    """

    def objective(loss: float, at: Vector) -> float:
        return loss + 0.5 * float(ridge @ (at * at))

    value, d = np.inf, np.empty(len(u))
    if signs is not None:
        u[signs * u < 0] = 0.0
        loss, H, tag = columns.evaluate(u)
        value = objective(loss, u)
    for n_steps in range(MAX_NEWTON_STEPS):
        decrease, is_minimum = find_direction(H, ridge, u, signs, d)
        is_full, is_last, t = True, False, 1.0
        is_first = value == np.inf
        if not is_first and (
            decrease <= NEGLIGIBLE_STEP * value or value < ZERO_OBJECTIVE or value - 2.0 * decrease > give_up
        ):
            return value, n_steps
        loss, new_H, new_tag = columns.evaluate(u + d)
        new_value = objective(loss, u + d)
        if not is_first:
            is_last = decrease <= FINAL_STEP * tol * value and new_value <= value * (1.0 + ROUNDING_RTOL)
            if not is_last and not new_value <= value - 0.2 * decrease:
                t = columns.line_minimum(u, d, float(ridge @ (u * d)), float(ridge @ (d * d)))
                t, is_full = min(t, 1.0) if signs is not None else t, False
                loss, new_H, new_tag = columns.evaluate(u + t * d)
                new_value = objective(loss, u + t * d)
                if not new_value < value:
                    return value, n_steps
        u += t * d
        stays, value, H, tag = new_tag == tag, new_value, new_H, new_tag
        if is_last or (stays and is_full and is_minimum):
            return value, n_steps + 1
    return value, MAX_NEWTON_STEPS


class RemotePanels(Panels):
    """Panels, copies of columns of X, whose rows are in blocks and stay where the blocks are."""

    all_rows: Sequence[BlockRows]

    def __init__(
        self, all_rows: Sequence[BlockRows], units: Units, n_places: int, gains: Sequence[UnitGains]
    ) -> None:
        self._make_places(all_rows, units, n_places, gains)
        # for each binary problem, the panel's columns and coefficients at which blocks find the active rows
        # (those of positive loss) of its Gram matrix; None: all rows are active
        self.points: list[tuple[Indices, Vector] | None] = [None] * len(all_rows)
        self.tags: list[Any] = [None] * len(all_rows)
        self.panels: list[Held] = []

    def begin_at(self, support: Indices, coefs: Matrix) -> None:
        """Do nothing: all rows count as active at first, which saves a pass over the blocks."""

    def _fill(self, places: Indices) -> None:
        self.panels.clear()  # free the old panels first: old and new ones together may not fit in memory
        columns = np.where(self.contents >= 0, self.units.columns[self.contents], -1)
        for number, rows in enumerate(self.all_rows):
            self.panels.append(rows.problem.design.panel(columns, self.n_places))
            self._take_gram(number)

    def _take_gram(self, number: int) -> None:
        parts = self.panels[number].ask(sums.full_gram, *(self.points[number] or (None, None)))
        self.gram[number] = add_up([gram for gram, _ in parts])
        self.tags[number] = tuple(tag for _, tag in parts)

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
        if not self.panels:  # no column has been copied, because only the intercept is fitted
            self._fill(np.empty(0, np.int64))
        n_steps, outcome = 0, -1
        for turn in range(len(lose)):
            new_support, new_coefs = exchange_units(self.units.starts, support, coefs, lose[turn], take[turn])
            idx = self._places(new_support)
            signs = None if self.place_signs is None else self.place_signs[idx]
            extended, total = np.append(idx, self.n_places + 1), 0.0
            for number, (held, u) in enumerate(zip(self.panels, new_coefs, strict=True)):
                H = np.ascontiguousarray(self.gram[number][np.ix_(extended, extended)])
                values[number], n_newton = newton_by_sums(
                    RemoteColumns(held, idx), H, self.tags[number], self.ridge[number, idx], u, signs,
                    give_up - total, tol,
                )  # fmt: skip
                n_steps, total = n_steps + n_newton, total + float(values[number])
                if n_newton == MAX_NEWTON_STEPS and limit == limit:
                    outcome, total = -2, np.inf
                if not total < limit and limit > -np.inf:
                    break
            else:
                self.trial = new_support, new_coefs
                if limit == -np.inf:
                    continue
                for number, u in enumerate(new_coefs):
                    self.points[number] = idx, u.copy()
                    self._take_gram(number)
                return turn, new_support, new_coefs, n_steps
        return outcome, support, coefs, n_steps

    def gains(self, support: Indices, coefs: Matrix, of_trial: bool = False) -> Vector:
        support, coefs = self.trial if of_trial else (support, coefs)
        columns = self.units.columns_of(support)
        total = np.zeros(self.units.n_units)
        for rows, u, gains in zip(self.all_rows, coefs, self.unit_gains, strict=True):
            descent = rows.problem.design.slopes(columns, u)[0]
            if self.place_signs is not None:
                descent[descent * self.units.signs < 0.0] = 0.0
            total += gains.gains(descent)
        return total

    def finish(self, support: Indices, coefs: Matrix, values: Vector) -> float:
        """Recompute the objectives into `values`, after a refit by SVD where the gradient is not zero.

        With required signs there is no such refit, and the predicted decrease is returned; otherwise 0.
        """
        idx = self._places(support)
        total = 0.0
        for number, (held, u) in enumerate(zip(self.panels, coefs, strict=True)):
            columns, ridge = RemoteColumns(held, idx), self.ridge[number, idx]
            values[number] = columns.loss(u) + 0.5 * float(ridge @ u**2)
            has_signs = self.place_signs is not None
            slack = columns.gradient_slack(ridge, u, has_signs)
            if slack > GRADIENT_RTOL * values[number] and not has_signs:
                u[:], values[number] = minimise_by_svd(columns, ridge, u, float(values[number]))
            elif has_signs:
                total += slack
        return total
