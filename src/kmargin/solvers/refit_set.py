"""The search over sets of units that are too large for panels of all machines.

Scores come from the bare diagonal, and every try is a refit of each machine, by the way that suits it:
systems as large as its active rows, or products with X alone.
"""

from collections.abc import Sequence

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.problem import Problem
from kmargin.solvers.fitted import NONE, FittedSupport, UnitScores
from kmargin.solvers.joint_found import JointFound
from kmargin.solvers.machine_panel import Member, joint_cost_of_try
from kmargin.solvers.measures import Measured
from kmargin.solvers.refit import refit_support
from kmargin.solvers.refit_signs import refit_with_signs
from kmargin.solvers.signed import Candidate
from kmargin.types import Indices, Vector
from kmargin.units import Units

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
