"""Sets of units that several machines share: of several sizes, for one ridge after another."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import comb

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.problem import Problem
from kmargin.core.units import Units
from kmargin.solvers.refit.folded import Candidate, Measured
from kmargin.solvers.search.path import (
    RESTART_OVERHEAD,
    RESTART_PASSES,
    RESTART_SEED,
    ROOM,
    ROOM_OF_PATH,
    SMALL_GRAM,
    STEP_OVERHEAD,
    SupportGrid,
)
from kmargin.solvers.search.swap_search import HOPE
from kmargin.solvers.search.unit_panels import JointFound, Member, Promise, Ratio, joint_cost_of_try
from kmargin.solvers.search.unit_working_set import JointSet, RefitSet
from kmargin.solvers.search.working_set import EXTRA, FEW, Effort
from kmargin.solvers.solution import Regime, depends_on_active_rows, takes_all_columns
from kmargin.solvers.solver import HOPELESS

# Machines have as much room for tries together as each has alone, but no more than so many of these.
MOST_ROOMS = 4

# Multiplications that a try may take for a search to be begun anew from other units.
DEAREST_TRY = 0.25 * ROOM


class JointGrid(SupportGrid):
    """The search of `SupportGrid`, for units instead of columns and for all machines at once.

    `lam` is the ridge of one machine; those of the others are in proportion to it.
    """

    found: dict[int, JointFound]  # type: ignore[assignment]

    def __init__(
        self,
        problems: Sequence[Problem],
        ridges: Sequence[float],  # of the machines, up to a factor that all have in common
        weights: Sequence[float],
        units: Units,
        sizes: Sequence[int],
        effort: Effort,
    ) -> None:
        self.rng = np.random.default_rng(RESTART_SEED)
        self.units, self.n_units = units, units.n_units
        self.n_fixed = int(units.fixed.sum())
        self.sizes = sorted({min(k, units.n_units) for k in sizes if k >= self.n_fixed and k > 0})
        self.problems = list(problems)
        self.all_measured = [Measured(problem) for problem in problems]
        # the first machine whose ridge is a number to compare others with, or one without a ridge
        self.leader = next((m for m, lam in enumerate(ridges) if 0 < lam < np.inf), int(np.argmin(ridges)))
        ratios = [Ratio.of(lam, ridges[self.leader]) for lam in ridges]
        self.members = [
            Member(measured.design, weight, ratio)
            for measured, weight, ratio in zip(self.all_measured, weights, ratios, strict=True)
        ]
        self.n_samples = sum(member.design.n_samples for member in self.members)
        q = len(units.columns)
        self.is_small = self.n_samples / len(self.members) * q * q <= SMALL_GRAM and self._panel_fits(
            self.n_units
        )
        self.share = min(len(self.members), MOST_ROOMS)
        room = (ROOM if len(self.sizes) == 1 else ROOM_OF_PATH) * self.share
        self.effort = effort._replace(room=room if self.is_small and effort.max_starts else 0.0)
        self.found, self.finished, self.lam = {}, set(), np.inf
        self._whole: JointSet | None = None  # type: ignore[assignment]
        self._part: JointSet | None = None  # the last panels that hold some of the units
        self._largest = max(
            (self._aside(k)[0] + self._n_outside(k, self.effort) for k in self.sizes), default=0
        )
        self.is_clear_cut = False  # what was found last
        self.worth = np.inf  # an objective above which a support is not searched as hard
        self.dense = None
        self.n_newton = 0
        self.elsewhere, self.n_active = True, None  # systems are as large as the support, whatever its size
        self.in_vain: dict[Effort, set[frozenset[int]]] = {}  # supports searched from, for the last ridge
        if not self._panel_fits(self.n_units):
            self.effort = self.effort._replace(all_swaps=False)  # they take panels of all columns

    def walk(self, lam: float) -> None:
        """Where there are many columns, a path comes down from stronger ridges, too."""
        is_first = len(self.sizes) > 1 and not self.found
        if is_first and self.effort.ridge_path and not self._is_narrow():
            full, self.effort = self.effort, self.effort.least()
            for stronger in self._ridge_path(lam):
                self.in_vain = {}
                self._walk_wide(stronger)
            self.effort = full
        self.in_vain = {}
        super().walk(lam)

    def _to_and_fro(self, lam: float, sizes: list[int]) -> None:
        """Small sizes are swept once more: it is cheap, and they are where sweeps have most left to find."""
        super()._to_and_fro(lam, sizes)
        if self.effort.max_sweeps > 1 and not self._is_narrow():
            for neighbour, k in pairwise([k for k in sizes if k <= FEW]):
                self._try(lam, k, self.found[neighbour])  # type: ignore[arg-type]

    def _come_down(self, lam: float, k: int) -> JointFound:  # type: ignore[override]
        """From nowhere, if all supports will be tried."""
        return self._nothing() if self._can_try_everything(k) else super()._come_down(lam, k)  # type: ignore

    def _go_aside(self, lam: float, k: int) -> None:
        """Not from a support that stands far above all others, unless tries cost next to nothing."""
        if self._whole is not None or not self.is_clear_cut:
            super()._go_aside(lam, k)

    def best(self, k: int) -> list[Candidate]:  # type: ignore[override]
        """Of the best support with at most k units: each machine's part, in the problem's units."""
        found = min((f for size, f in self.found.items() if size <= k), key=lambda found: found.value)
        return [
            measured.leave(member.ridge(self.lam), part, keep_signs=bool(self.units.signs.any()))
            for measured, member, part in zip(
                self.all_measured, self.members, self._parts(found), strict=True
            )
        ]

    def start_from(self, lam: float, support: Indices, parts: Sequence[Vector]) -> None:
        """The best with as many units found from these, whose coefficients are in the problem's units."""
        columns = self.units.columns_of(support)
        entered = [
            measured.enter(Candidate(columns, u, np.inf)).u
            for measured, u in zip(self.all_measured, parts, strict=True)
        ]
        self.lam, start = lam, JointFound(support, tuple(entered), np.inf)
        self.found[len(support)] = self._finish(lam, self.exchange(lam, len(support), start, self.effort))

    def _try(self, lam: float, k: int, start: Candidate, effort: Effort | None = None) -> bool:
        """What is not nearly as good as the best so far is not searched as hard."""
        self.worth = (1.0 + HOPE) * self.found[k].value
        is_better = super()._try(lam, k, start, effort)
        self.worth = np.inf
        return is_better

    def _parts(self, found: JointFound) -> list[Candidate]:
        """As each machine has it."""
        columns = self.units.columns_of(found.support)
        return [
            Candidate(columns, u, value, found.all_tried, found.regime)
            for u, value in zip(found.parts, found.values, strict=True)
        ]

    def _finish(self, lam: float, found: JointFound) -> JointFound:  # type: ignore[override]
        """Each machine at its minimum, of coefficients that are not held at 0 by their sign."""
        parts, values, all_tried = [], [], found.all_tried
        for measured, member, part in zip(self.all_measured, self.members, self._parts(found), strict=True):
            used = np.flatnonzero(part.u[:-1]) if self.units.signs.any() else np.arange(len(part.support))
            at = np.append(used, len(part.u) - 1)
            before = part._replace(support=part.support[used], u=part.u[at])
            after = measured.finish(member.ridge(lam), before)
            signs = self.units.signs[before.support]
            if np.any(signs * after.u[:-1] < 0):
                ridge = measured.ridge(member.ridge(lam), before.support)
                value = member.design.objective(before, 0.0) + 0.5 * float(ridge @ before.u[:-1] ** 2)
                after = before._replace(value=value)
            u = np.zeros(len(part.u))
            u[at] = after.u
            parts.append(u)
            values.append(after.value)
            all_tried = all_tried and after.all_tried
        total = sum(member.weight * value for member, value in zip(self.members, values, strict=True))
        return found._replace(
            parts=tuple(parts), value=float(total), all_tried=all_tried, values=tuple(values)
        )

    def exchange(self, lam: float, k: int, start: JointFound, effort: Effort) -> JointFound:  # type: ignore[override]
        """Search for one size through panels of the support and the most promising other units."""
        fitted = self._fitted(lam, k, start, effort)
        fitted.in_vain = self.in_vain.setdefault(effort, set()) if fitted.all_may_come else None
        fitted.worth = self.worth
        fitted.resize(k)
        fitted.settle(effort)
        self.is_clear_cut = fitted.is_clear_cut
        fitted.finish()
        self.n_newton += fitted.n_newton
        return fitted.found()

    def _fitted(self, lam: float, k: int, start: JointFound, effort: Effort) -> JointSet | RefitSet:
        """The algebra for one size, at a start."""
        size = max(k + self._n_outside(k, effort), len(start.support))
        if self._needs_refits(self.units.widest(k), size):
            problems = [
                problem.with_ridge(member.ridge(lam))
                for problem, member in zip(self.problems, self.members, strict=True)
            ]
            return RefitSet(problems, self.all_measured, self.members, self.units, start, effort.tol)
        whole = self._whole_panel(lam, start)
        if whole is not None:
            return whole
        if self._part is not None and self._part.has_room(size):
            self._part.start_again(lam, start, size)
        else:
            capacity = min(self._largest, self.n_units - 1) if len(self.sizes) == 1 else size
            self._part = JointSet(
                self.members, self.units, lam, size, start, effort.tol, self._promises, capacity
            )
        return self._part

    def _n_outside(self, k: int, effort: Effort) -> int:
        """How many units panels have beside the support: as many columns as one machine has at
        most, because what suits one may not suit the others.
        """
        n_outside = effort.n_outside(k, self.n_units)
        most = EXTRA * self.n_units // len(self.units.columns) if effort.max_double_swaps else 0
        return min(max(n_outside, most), self.n_units)

    def _needs_refits(self, n_columns: int, size: int) -> bool:
        """Whether panels do not fit, or systems as large as the support would exceed those by rows."""
        if any(member.design.at_hand is None for member in self.members):
            return False  # rows that are elsewhere are asked for sums as large as the support
        most_rows = max(member.design.n_samples for member in self.members)
        many = depends_on_active_rows(n_columns) and n_columns > most_rows
        return many or not self._panel_fits(size)

    def _whole_panel(self, lam: float, start: JointFound) -> JointSet | None:  # type: ignore[override]
        if self._whole is not None:
            self._whole.start_again(lam, start)
        elif self.is_small or self._is_narrow():
            self._whole = JointSet(
                self.members, self.units, lam, self.n_units, start, self.effort.tol, self._promises
            )
        return self._whole

    @cached_property
    def _promises(self) -> list[Promise]:
        return [Promise(member.design, self.units) for member in self.members]

    def _is_narrow(self) -> bool:
        return takes_all_columns(len(self.units.columns), self._panel_fits(self.n_units))

    def _walk_panel(self, lam: float) -> None:
        self._walk_wide(lam)

    def _panel_fits(self, size: int) -> bool:
        """Whether panels of the largest units do, for all machines together."""
        n_columns = self.units.widest(size)
        numbers = [(n_columns + 2) * measured.design.n_samples for measured in self.all_measured]
        return self.all_measured[0].design.fits(sum(numbers))

    def _regime(self, k: int, start: JointFound, effort: Effort, n_active=None, n_dual: int = 0) -> Regime:  # type: ignore
        size = max(k + self._n_outside(k, effort), len(start.support))
        return Regime.PANEL if size >= self.n_units else Regime.WORKING_SET

    def _nothing(self) -> JointFound:  # type: ignore[override]
        """Only what is fixed."""
        return JointFound.start(np.flatnonzero(self.units.fixed), self.units, len(self.members))

    def _alone(self, unit: int) -> JointFound:  # type: ignore[override]
        support = np.append(np.flatnonzero(self.units.fixed), unit)
        return JointFound.start(support, self.units, len(self.members))

    def _rest(self, found: JointFound, place: int) -> JointFound:  # type: ignore[override]
        stays = np.arange(len(found.support)) != place
        keeps = np.append(np.repeat(stays, self.units.sizes[found.support]), True)
        return JointFound(found.support[stays], tuple(u[keeps] for u in found.parts), np.inf)

    def _with(self, found: JointFound, units: Indices) -> JointFound:  # type: ignore[override]
        more = np.zeros(int(self.units.sizes[units].sum()))
        parts = tuple(np.concatenate([u[:-1], more, u[-1:]]) for u in found.parts)
        return JointFound(np.append(found.support, units), parts, np.inf)

    def _gains_beside(self, lam: float, found: JointFound) -> Vector | None:  # type: ignore[override]
        """Not where rows are elsewhere, coefficients have given signs, or panels do not fit."""
        fitted = self._fitted(lam, len(found.support), found, self.effort.least())
        if not isinstance(fitted, JointSet) or fitted.panels.stack is None:
            return None
        return fitted.panels.gains_alone(fitted.support, fitted.coefs)

    def _restart_flops(self, k: int, n_newton: int) -> float:
        passes = RESTART_PASSES * sum(m.design.n_samples * m.design.n_features for m in self.members)
        return RESTART_OVERHEAD + passes + n_newton * (STEP_OVERHEAD + self._cost_of_try(k))

    def _may_leave(self, found: JointFound) -> Indices:  # type: ignore[override]
        order = np.argsort(self._effects(found))
        return order[~self.units.fixed[found.support[order]]]

    def _effects(self, found: JointFound) -> Vector:  # type: ignore[override]
        """How much each unit moves the decisions of all machines, squared."""
        columns = self.units.columns_of(found.support)
        moved = np.zeros(self.units.n_features)
        with np.errstate(over="ignore"):  # a product may be a number where a square is none
            for member, u in zip(self.members, found.parts, strict=True):
                moved[columns] += member.weight * (u[:-1] * np.sqrt(member.design.variance[columns])) ** 2
            return self.units.total(moved)[found.support]

    def _start_elsewhere(self, lam: float, k: int) -> None:
        """Where a try takes no more than a small share of the room for all of them."""
        if self._cost_of_try(k) * self.share <= DEAREST_TRY:
            super()._start_elsewhere(lam, k)

    def _cost_of_try(self, k: int) -> float:
        """For each of so many machines: together they have as much room as each of these would have alone."""
        n_columns = int(np.ceil(k * len(self.units.columns) / self.n_units))
        return joint_cost_of_try(self.members, n_columns) / self.share

    def _n_supports(self, k: int) -> int:
        return comb(self.n_units - self.n_fixed, k - min(k, self.n_fixed))

    def _n_swaps(self, k: int) -> int:
        return (k - min(k, self.n_fixed)) * (self.n_units - k)

    def _ridge_scale(self) -> float:
        """Of the ridge that the search goes by; machines beside which it is nothing have no say."""
        variances = np.median([m.design.variance[self.units.columns] for m in self.members], axis=1)
        scales = [m.ridge_ratio.under(v) for v, m in zip(variances.tolist(), self.members, strict=True)]
        scales = [scale for scale in scales if scale < HOPELESS]
        return float(np.median(scales)) if scales else 0.0
