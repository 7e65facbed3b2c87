"""The last word on a support: what its coefficients are worth, and whether they are at the minimum.

A search carries residuals and Gram matrices along, and solves with them. That is fast, and nearly always
exact. Where columns depend on each other, or nearly so, it may end beside the minimum. So each support
that is handed out is looked at once more, from its columns alone; where it is not at its minimum, Newton
steps by least squares bring it there.
"""

from typing import Any, Protocol

import numpy as np

from kmargin.jit import compiled
from kmargin.losses import squared_hinge
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.panel import residual, total_loss
from kmargin.solvers.rows import Line, exact_step
from kmargin.types import Indices, Matrix, Vector

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
    """
    scale = np.sqrt(columns.squares() + ridge)
    scale[scale == 0.0] = 1.0
    root = np.sqrt(ridge) / scale

    def objective(v: Vector) -> float:
        return columns.loss(v / scale) + 0.5 * float(np.sum((root * v) ** 2))

    v, n_steps, nearly = u * scale, 0, 0.0
    value = objective(v)
    while n_steps < max_steps and not value < NO_LOSS:
        rows, resid = columns.active_rows(v / scale, nearly)
        J, rhs = np.vstack([rows / scale, np.diag(root)]), np.append(resid, -root * v)
        d = shortest(J, rhs)
        promise = 0.5 * float(np.sum((J @ d) ** 2)) / value
        if not promise > 1e-17 and nearly == 0.0:
            break
        t = columns.exact_step(v / scale, d / scale, float(root**2 @ (v * d)), float(np.sum((root * d) ** 2)))
        new_value = objective(v + t * d)
        n_steps += 1
        if new_value < value:
            v, value, nearly = v + t * d, new_value, 0.0
        elif nearly >= NEAREST[-1] or not (promise > WORTH_A_LOOK or nearly > 0.0):
            break
        else:  # rows at the margin itself are in the way: go along it
            nearly = NEAREST[np.searchsorted(NEAREST, nearly, side="right")]
    return v / scale, value, n_steps


def shortest(J: Matrix, rhs: Vector) -> Vector:
    """The shortest of all d for which J d is nearest to rhs.

    Singular values count beside 1, the norm of a column: one that is next to nothing on the active rows is
    not to be made up for by a huge coefficient.
    """
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > DEPENDENT * max(1.0, s.max(initial=0.0))
    return Vt[kept].T @ ((U[:, kept].T @ rhs) / s[kept])


def doubt(A: Matrix, u: Vector) -> float:
    """By how much rounding may change the loss, where large terms cancel each other; inf if by anything."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.finfo(np.float64).eps * (np.abs(A) @ np.abs(u))
        total = 0.5 * float(error @ error)
    return total if total == total else np.inf


def is_minimal(value: Any, slack: Any) -> Any:
    """Whether what `stand` found is a minimum, but for rounding; of one support or, by arrays, of several."""
    return (value <= NO_LOSS) | (slack <= SLACK * value)


def is_affordable(n_active: int, k: int) -> bool:
    return n_active * k * min(n_active, k) <= AFFORDABLE
