"""One machine among several that share their features, and its panel."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.solvers.bounded import newton_bounded
from kmargin.solvers.machine_stack import Stack, rows_of, tried_rows_of
from kmargin.solvers.newton import newton_from_gram
from kmargin.solvers.promise import Promise
from kmargin.solvers.rows import companion, cost_of_refit, follow, place, resume, retake_gram, start_over
from kmargin.solvers.scores import score
from kmargin.solvers.signed import Candidate, Signed
from kmargin.solvers.start import HOPELESS
from kmargin.types import Indices, Matrix, Vector

# What asking a machine costs beside its multiplications, in multiplications.
CALL = 2e4


class Ratio(NamedTuple):
    """One number beside another, which may be further apart than numbers reach: digits times 2^exponent."""

    digits: float = 1.0
    exponent: int = 0

    @classmethod
    def of(cls, one: float, other: float) -> "Ratio":
        """Nothing beside nothing is as large."""
        if other == 0 or one == np.inf:
            return cls(np.inf if one > 0 else 1.0)
        (digits, exponent), (other_digits, other_exponent) = np.frexp(one), np.frexp(other)
        return cls(float(digits / other_digits), int(exponent) - int(other_exponent))

    def times(self, number: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.ldexp(number * self.digits, self.exponent)) if self.digits < np.inf else np.inf

    def under(self, number: float) -> float:
        """The number divided by this; inf beside nothing."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(number / self.digits, -self.exponent)) if self.digits > 0 else np.inf


class Member(NamedTuple):
    """A machine among others: its rows, and by how much its objective counts."""

    design: Signed
    weight: float
    ridge_ratio: Ratio = Ratio()  # its ridge, beside that which the search goes by

    def ridge(self, lam: float) -> float:
        """No stronger than what leaves nothing but the intercept: powers of it are numbers."""
        return min(self.ridge_ratio.times(lam), HOPELESS)


def joint_cost_of_try(members: Sequence[Member], n_columns: int) -> float:
    """About how many multiplications a refit of all machines takes."""
    return sum(CALL + cost_of_refit(member.design.n_samples, n_columns + 1) for member in members)


class ColumnScores(NamedTuple):
    """What `scores.score` says of the columns of one machine; see there."""

    spread: Vector
    grad: Vector
    schur: Vector
    R: Matrix
    inverse: Matrix  # U^-T; H^-1 is inverse.T @ inverse


class MachinePanel:
    """A panel of columns, and its Gram matrix over the rows that are active at some coefficients."""

    def __init__(
        self,
        member: Member,
        promise: Promise,
        columns: Indices,
        size: int,
        stack: Stack | None = None,
        number: int = 0,
    ) -> None:
        """In the memory of a stack, if one is given: there it has a number."""
        self.member, self.design, self.weight = member, member.design, member.weight
        self.promise = promise
        self.is_stacked = stack is not None
        if stack is None:
            self.rows = member.design.make_rows(columns, size, to_stay=True)
            self.scratch = companion(self.rows)
            self.gram, self.ridge = np.empty((size + 2, size + 2)), np.empty(size + 2)
        else:
            assert member.design.at_hand is not None
            self.rows, self.scratch = rows_of(stack, number), tried_rows_of(stack, number)
            self.gram, self.ridge = stack.gram[number], stack.ridge[number]
            member.design.at_hand.make_panel(columns, size, self.rows.panel)

    def set_ridge(self, lam: float) -> None:
        """The first machine's."""
        ridge = self.member.ridge(lam)
        self.ridge[:] = self.design.make_ridge(ridge, len(self.gram) - 2)
        self.promise.go_to(ridge)

    def go_to(self, idx: Indices, u: Vector, is_placed: bool, filled: Indices) -> None:
        """Another support, with coefficients u; those in a stack go together."""
        if is_placed:
            resume(self.rows, idx, u, self.gram)
        else:
            place(self.rows, idx, u)
            self.gram[:] = 0.0
            retake_gram(self.rows, filled, filled, self.gram)

    def fill(self, contents: Indices, places: Indices) -> None:
        """Other columns in some places."""
        self.rows = self.design.fill(self.rows, contents, places)
        if not self.is_stacked:
            self.scratch = companion(self.rows)

    def retake(self, places: Indices, filled: Indices) -> None:
        """The Gram matrix there, after a fill; those in a stack are retaken together."""
        retake_gram(self.rows, places, filled, self.gram)

    def refit(
        self, idx: Indices, u: Vector, signs: Vector | None, give_up: float, tol: float
    ) -> tuple[float, int]:
        """Try other columns from u, which is changed in place; the objective as it counts in the sum, and the
        Newton steps.
        """
        start_over(self.scratch, self.rows)
        give_up /= self.weight
        if signs is None:
            value, n_iter = newton_from_gram(self.scratch, self.ridge, self.gram, idx, u, give_up, tol)
        else:
            value, n_iter = newton_bounded(self.scratch, self.ridge, self.gram, idx, u, signs, give_up, tol)
        return self.weight * value, n_iter

    def keep(self) -> None:
        """Go to what was tried last; those in a stack follow together."""
        follow(self.rows, self.scratch, self.gram)

    def score(self, idx: Indices, u: Vector, outside: Indices) -> ColumnScores:
        """Of the columns at these places of the panel."""
        k, m = len(idx), len(outside)
        drop, spread, gain, grad, schur = np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m)
        R, inverse = np.empty((k, m)), np.empty((k, k))
        score(self.ridge, idx, u, self.gram, outside, drop, spread, gain, grad, schur, R, inverse)
        return ColumnScores(spread, grad, schur, R, inverse)

    def slopes_alone(self, idx: Indices, columns: Indices, u: Vector) -> Vector:
        """Of the loss with respect to each column, up to its sign, beside columns at idx."""
        return self.design.slopes_at(self.rows, idx, Candidate(columns, u, np.inf))

    def finish(self, idx: Indices, u: Vector, value: float, only_nonzero: bool) -> float:
        """Bring u to the minimum by the panel, in place; of nonzero coefficients only, if asked, unless one
        changes sign. The objective, before and after as it counts in the sum.
        """
        used = np.append(np.flatnonzero(u[:-1]), len(u) - 1) if only_nonzero else np.arange(len(idx))
        before = Candidate(idx[used][:-1], u[used], value / self.weight)
        (after,), _ = self.design.finish_in_panel(self.rows, self.ridge, [before])
        if only_nonzero and not np.array_equal(np.sign(after.u[:-1]), np.sign(before.u[:-1])):
            return value
        u[used] = after.u
        return self.weight * after.value
