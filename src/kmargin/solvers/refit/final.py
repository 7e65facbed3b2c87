"""The last word on a support: what its coefficients are worth, and whether they are at the minimum.

A search carries residuals and Gram matrices along, and solves with them. That is fast, and nearly always
exact. Where columns depend on each other, or nearly so, it may end beside the minimum. So each support
that is handed out is looked at once more, from its columns alone; where it is not at its minimum, Newton
steps by least squares bring it there.
"""

import math
import sys
from typing import Any, Protocol

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.solvers.refit.newton import NO_LOSS, Line, exact_step, residual, total_loss

# At the minimum the gradient is 0 but for rounding. By how much a fit could still fall, coefficient by
# coefficient and relative to the objective, before it is looked at as not being there.
SLACK = 1e-20

# Least squares by singular values cost so many multiplications at most; beyond that a fit is left as it is.
AFFORDABLE = 3e8

MAX_STEPS = 200

# A coefficient as large as that is looked at twice.
HUGE = 1e6

# What columns of norm one have in common but for this is taken for all of it: the rest may be rounding.
DEPENDENT = 1e-12


# Objectives that differ by less are the same, whatever they are made of.
NEXT_TO_NOTHING = 1e-12

# A step that promises more than this share of the objective, and gains nothing, was stopped by rows whose
# residuals are 0 but for rounding, which is the more the larger coefficients are.
WORTH_A_LOOK, NEAREST = 1e-9, (1e-13, 1e-12, 1e-11, 1e-10, 1e-9)


@compiled
def stand(panel: Matrix, idx: Indices, ridge: Vector, u: Vector, resid: Vector) -> tuple[float, float]:
    """The objective at u, and what single coefficients could lower it by; `resid` is filled in."""
    residual(panel, idx, u, resid)
    value, slack = total_loss(resid), 0.0
    for a in range(idx.size):
        column, slope, bend = panel[idx[a]], ridge[a] * u[a], ridge[a]
        for i in range(resid.size):
            if squared_hinge.is_active(resid[i]):
                slope -= column[i] * squared_hinge.slope(resid[i])
                bend += squared_hinge.curvature(resid[i]) * column[i] * column[i]
        value += 0.5 * ridge[a] * u[a] * u[a]
        if bend > 0.0:
            slack += 0.5 * slope * slope / bend
    return value, slack


@compiled
def stand_each(
    panel: Matrix,
    ridge: Vector,
    sizes: Indices,
    supports: Indices,
    coefs: Matrix,
    values: Vector,
    slacks: Vector,
) -> None:
    """`stand` for several supports of one panel: `values` and `slacks` are filled in.

    Each row of `supports` and `coefs` has a size, and the intercept behind its features.
    """
    resid, intercept = np.empty(panel.shape[1]), panel.shape[0] - 2
    for row in range(sizes.size):
        k = sizes[row]
        idx = supports[row, : k + 1].copy()
        idx[k] = intercept
        values[row], slacks[row] = stand(panel, idx, ridge[idx], coefs[row, : k + 1], resid)


class Columns(Protocol):
    """What Newton steps by least squares ask of the columns of a support, the intercept's among them."""

    def squares(self) -> Vector:
        """The sum of squares of each column."""

    def loss(self, u: Vector) -> float: ...

    def active_rows(self, u: Vector, nearly: float = 0.0) -> tuple[Matrix, Vector]:
        """The rows that are active at u, or miss it by less than `nearly`, and their residuals; or fewer
        numbers of the same products.
        """

    def exact_step(self, u: Vector, d: Vector, ud: float, dd: float) -> float:
        """How far along d the minimum is, with the ridge's slope and curvature there."""


class ColumnsAtHand:
    """Columns as an array."""

    def __init__(self, A: Matrix, target: Vector) -> None:
        self.A, self.target = A, target

    def squares(self) -> Vector:
        return np.sum(self.A * self.A, axis=0)

    def loss(self, u: Vector) -> float:
        return float(total_loss(self.target - self.A @ u))

    def active_rows(self, u: Vector, nearly: float = 0.0) -> tuple[Matrix, Vector]:
        resid = self.target - self.A @ u
        active = squared_hinge.is_active(resid + nearly)
        return self.A[active], resid[active]

    def exact_step(self, u: Vector, d: Vector, ud: float, dd: float) -> float:
        return exact_step(Line(self.target - self.A @ u, self.A @ d), ud, dd)


def newton_by_least_squares(
    columns: Columns, ridge: Vector, u: Vector, max_steps: int = MAX_STEPS
) -> tuple[Vector, float, int]:
    """Minimise loss plus ridge from u; return the coefficients, the objective and the number of steps.

    Every step goes along the shortest of all ways to the minimum of the quadratic that holds on the active
    rows, to the exact minimum on that line. Columns count in units of their own norm. No Gram matrix is
    formed, so nothing is lost by squaring, and what columns share is told from rounding.

    Where steps do not keep their promises, because huge coefficients have left no digits to others, zero may
    be the better start.
    """
    end, value, n_steps, kept = _descend(columns, ridge, u, max_steps)
    if not kept and u.any():
        other, other_value, more_steps, _ = _descend(columns, ridge, np.zeros_like(u), max_steps)
        n_steps += more_steps
        if other_value < value:
            end, value = other, other_value
    return end, value, n_steps


def _descend(columns: Columns, ridge: Vector, u: Vector, max_steps: int) -> tuple[Vector, float, int, bool]:
    """The same from one start; and whether there is nothing left that a step would promise."""
    scale = np.sqrt(columns.squares() + ridge)
    scale[scale == 0.0] = 1.0
    root = np.sqrt(ridge) / scale

    def objective(v: Vector) -> float:
        return columns.loss(v / scale) + 0.5 * float(np.sum((root * v) ** 2))

    v, n_steps, nearly = u * scale, 0, 0.0
    value, kept = objective(v), True
    while n_steps < max_steps and not value < NO_LOSS:
        rows, resid = columns.active_rows(v / scale, nearly)
        rows = rows / scale
        d = newton_step(rows, resid, root, v)
        promise = 0.5 * float(np.sum((rows @ d) ** 2) + np.sum((root * d) ** 2)) / value
        if not promise > 1e-17 and nearly == 0.0:
            break
        kept = promise <= WORTH_A_LOOK
        t = columns.exact_step(v / scale, d / scale, float(root**2 @ (v * d)), float(np.sum((root * d) ** 2)))
        new_value = objective(v + t * d)
        n_steps += 1
        if new_value < value:
            v, value, nearly, kept = v + t * d, new_value, 0.0, True
        elif nearly >= NEAREST[-1] or not (promise > WORTH_A_LOOK or nearly > 0.0):
            break
        else:  # rows at the margin itself are in the way: go along it
            nearly = NEAREST[np.searchsorted(NEAREST, nearly, side="right")]
    return v / scale, value, n_steps, kept and n_steps < max_steps


def newton_step(rows: Matrix, resid: Vector, root: Vector, v: Vector) -> Vector:
    """The way from v to the minimum of the squared residuals of some rows plus |root v|^2; of all such ways
    the shortest. Where there are fewer rows than columns, the work grows with the rows.
    """
    seen = np.any(rows != 0, axis=0)
    if not seen.all():  # where no row sees a column, its coefficient matters to its ridge alone
        step = np.where(root > 0, -v, 0.0)
        step[seen] = newton_step(rows[:, seen], resid, root[seen], v[seen]) if seen.any() else 0.0
        return step
    ridged = root > DEPENDENT
    if len(rows) < len(v) - 1 and np.all(ridged | (root == 0)) and np.count_nonzero(~ridged) <= 1:
        return _step_by_rows(rows, resid, root, v, ridged)
    return shortest(np.vstack([rows, np.diag(root)]), np.append(resid, -root * v))


def _step_by_rows(rows: Matrix, resid: Vector, root: Vector, v: Vector, ridged: Flags) -> Vector:
    """By singular values of the rows alone. At most one column has no ridge: that of the intercept."""
    U, s, Vt = np.linalg.svd(rows[:, ridged] / root[ridged], full_matrices=False)
    left = 1.0 / (1.0 + s * s)  # the share of a target that the ridge leaves to the residuals
    target, new = U.T @ (resid + rows @ v), v.copy()
    if not ridged.all():
        column = U.T @ rows[:, ~ridged][:, 0]
        bend = float(left @ column**2)
        if bend > 0:
            new[~ridged] = float(left @ (column * target)) / bend
        target = target - column * new[~ridged]
    new[ridged] = Vt.T @ (s * left * target) / root[ridged]
    return new - v


def shortest(J: Matrix, rhs: Vector) -> Vector:
    """The shortest of all d for which J d is nearest to rhs.

    Singular values count beside 1, the norm of a column: one that is next to nothing on the active rows is
    not to be made up for by a huge coefficient.
    """
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > DEPENDENT * max(1.0, s.max(initial=0.0))
    return Vt[kept].T @ ((U[:, kept].T @ rhs) / s[kept])


def doubt(A: Matrix, u: Vector, value: float) -> float:
    """By how much rounding may change an objective, where large terms cancel; inf if by anything."""
    with np.errstate(over="ignore", invalid="ignore"):
        return doubt_of(float(np.linalg.norm(np.abs(A) @ np.abs(u))), value)


def doubt_of(terms: float, value: float) -> float:
    """The same from the norm, over the rows, of the sums of their terms' magnitudes.

    Residuals are wrong by a digit of these: half the squared norm of r + e is at most (|r| + |e|)^2 / 2.
    """
    error = sys.float_info.epsilon * terms
    total = error * math.sqrt(2.0 * value) + 0.5 * error * error if error < 1e150 else math.inf
    return total if total == total else math.inf


def is_minimal(value: Any, slack: Any) -> Any:
    """Whether what `stand` found is a minimum, but for rounding; of one support or, by arrays, of several."""
    return (value <= NO_LOSS) | (slack <= SLACK * value)


def most_to_gain(slopes: Vector, ridge: Vector, variance: Vector) -> float:
    """By how much an objective with these slopes can still fall, at most; without a ridge, by single
    coefficients alone.

    A ridge bends the objective at least by itself in every direction, also in those that no row sees.
    """
    bend = ridge if np.all(ridge > 0) else variance + ridge
    return 0.5 * float(np.sum(np.divide(slopes**2, bend, out=np.zeros(len(slopes)), where=bend > 0)))


def is_affordable(n_active: int, k: int) -> bool:
    return n_active * k * min(n_active, k) <= AFFORDABLE
