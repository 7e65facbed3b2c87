"""The final refit of supports at which the search missed the minimum: Newton steps by SVD.

The search updates residuals and Gram matrices instead of recomputing them. This is fast and nearly always
exact. If columns are linearly dependent, or nearly so, the search may miss the minimum on the support. The
gradient, recomputed from the columns, is then not zero, and the support is fitted again here.
"""

from typing import Protocol

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE, exact_step, take_residuals, total_loss

# The gradient counts as zero if the decreases of the objective that it predicts for changes of single
# coefficients sum to at most this fraction of the objective. LARGE_SUPPORT_RTOL is for large supports, which
# are refitted less exactly: without a Gram matrix of their columns.
GRADIENT_RTOL, LARGE_SUPPORT_RTOL = 1e-24, 1e-9

# Supports are refitted by SVD only if the decomposition of their columns takes at most this many flops.
MAX_SVD_FLOPS = 3e8

# Maximum number of Newton steps of a refit by SVD, each of which takes one decomposition.
MAX_SVD_STEPS = 200

# Singular values of a matrix with columns of norm 1 are treated as zero if they are at most this, or at most
# this multiple of the largest one: they are then rounding errors.
SINGULAR_VALUE_RTOL = 1e-12

# A refit by SVD has converged if the predicted decrease is at most CONVERGED_RTOL times the objective. It has
# stalled if a step does not lower the objective although more than STALLED_RTOL times it was predicted.
CONVERGED_RTOL, STALLED_RTOL = 1e-17, 1e-9

# Coefficients are huge if their absolute products with the norms of their columns sum to more than this. Huge
# coefficients cancel each other or belong to columns that are nearly zero in all active rows, and rounding
# errors decide where a refit ends.
HUGE_COEFS = 1e6


@compiled
def measure_gradient(
    panel: Matrix,
    row_starts: Indices,
    ridge: Matrix,
    idx: Indices,
    coefs: Matrix,
    have_signs: bool,
    residual: Vector,
    out: Vector,
) -> float:
    """Write the objective of each binary problem to `out`; return the decrease that the gradients predict.

    It is the sum, over all coefficients, of the decrease predicted if that coefficient alone changes: 0 at
    the minimum, infinite if a coefficient is huge (HUGE_COEFS). If `have_signs`, coefficients at 0 do not
    count, since a required sign may hold them there. Residuals are recomputed into `residual`.
    """
    decrease = 0.0
    for p in range(coefs.shape[0]):
        first, last = row_starts[p], row_starts[p + 1]
        r = residual[first:last]
        take_residuals(panel, first, idx, coefs[p], r)
        out[p] = total_loss(r)
        for a in range(idx.size):
            column, lam, u = panel[idx[a], first:last], ridge[p, idx[a]], coefs[p, a]
            slope, curvature = lam * u, lam
            for i in range(r.size):
                if squared_hinge.is_active(r[i]):
                    slope -= column[i] * squared_hinge.slope(r[i])
                    curvature += squared_hinge.curvature(r[i]) * column[i] * column[i]
            out[p] += 0.5 * lam * u * u
            if curvature > 0.0 and not (have_signs and u == 0.0):
                decrease += 0.5 * slope * slope / curvature
            if u * u * curvature > HUGE_COEFS * HUGE_COEFS:
                decrease = np.inf
    return decrease


@compiled
def line_minimum(residual: Vector, delta: Vector, slope: float, curvature: float) -> float:
    """The step length t > 0 that minimises loss(residual - t delta) + t * slope + t^2/2 * curvature."""
    return exact_step(residual, delta, slope, curvature)


class SupportColumns(Protocol):
    """The operations that the refit needs on the columns of a support, the intercept included."""

    def squares(self) -> Vector:
        """The sum of squares of each column."""

    def loss(self, u: Vector) -> float: ...

    def active_rows(self, u: Vector) -> tuple[Matrix, Vector]:
        """The rows of positive loss at u and their residuals, or fewer rows with the same Gram matrix."""

    def line_minimum(self, u: Vector, d: Vector, slope: float, curvature: float) -> float:
        """The step length t that minimises loss(u + t d) + t * slope + t^2/2 * curvature."""


class ArrayColumns:
    """The columns A of a support, in memory; the residuals at coefficients u are `target` - A u."""

    def __init__(self, A: Matrix, target: Vector) -> None:
        self.A, self.target = A, target

    def squares(self) -> Vector:
        return np.einsum("ij,ij->j", self.A, self.A)

    def loss(self, u: Vector) -> float:
        return squared_hinge.total_value(self.target - self.A @ u)

    def active_rows(self, u: Vector) -> tuple[Matrix, Vector]:
        residual = self.target - self.A @ u
        active = squared_hinge.is_active(residual)
        return self.A[active], residual[active]

    def line_minimum(self, u: Vector, d: Vector, slope: float, curvature: float) -> float:
        return float(line_minimum(self.target - self.A @ u, self.A @ d, slope, curvature))


def minimise_by_svd(columns: SupportColumns, ridge: Vector, u: Vector, value: float) -> tuple[Vector, float]:
    """Minimise loss plus ridge penalty, starting at u; return the minimiser and its objective.

    If no step lowers the objective `value`, it is returned with u. While the active rows (of positive loss)
    stay the same, the objective is quadratic: each step goes towards the minimiser of that quadratic nearest
    to u, with an exact line search. No Gram matrix is formed, so linear dependence can be distinguished from
    rounding errors. If steps stall or lead to huge coefficients, they start again from zero.
    """
    norms = np.sqrt(columns.squares() + ridge)  # the norm of each column, extended by the root of its ridge
    end, end_value, has_stalled = _descend(columns, ridge, norms, u)
    size = float(np.abs(end) @ norms)
    if (has_stalled or size > HUGE_COEFS) and u.any():
        other, other_value, _ = _descend(columns, ridge, norms, np.zeros_like(u))
        error = np.finfo(float).eps * size  # estimated rounding error of the residuals at `end`
        if other_value < end_value + error * (np.sqrt(2 * end_value) + error):
            return other, other_value
    return (end, end_value) if end_value < value else (u, value)


def _descend(columns: SupportColumns, ridge: Vector, norms: Vector, u: Vector) -> tuple[Vector, float, bool]:
    """Take Newton steps from u; return the last coefficients, their objective, and if the steps stalled."""
    scale = np.where(norms == 0.0, 1.0, norms)
    root = np.sqrt(ridge) / scale

    def objective(v: Vector) -> float:
        return columns.loss(v / scale) + 0.5 * float(np.sum((root * v) ** 2))

    v = u * scale
    value = objective(v)
    for _ in range(MAX_SVD_STEPS):
        if value < ZERO_OBJECTIVE:
            return v / scale, value, False
        rows, residual = columns.active_rows(v / scale)
        d = shortest_solution(np.vstack([rows / scale, np.diag(root)]), np.append(residual, -root * v))
        curvature = float(np.sum((root * d) ** 2))
        decrease = 0.5 * (float(np.sum((rows / scale @ d) ** 2)) + curvature) / value
        if not decrease > CONVERGED_RTOL:
            return v / scale, value, False
        t = columns.line_minimum(v / scale, d / scale, float(root**2 @ (v * d)), curvature)
        new_value = objective(v + t * d)
        if not new_value < value:
            return v / scale, value, decrease > STALLED_RTOL
        v, value = v + t * d, new_value
    return v / scale, value, True


def shortest_solution(J: Matrix, rhs: Vector) -> Vector:
    """The least-squares solution d of J d = rhs that has the smallest norm.

    J has the active rows of columns that were scaled to norm 1 over all rows. Singular values that are tiny
    compared with 1 count as zero, even if all of them are tiny, because a column that is nearly zero in the
    active rows must not get a huge coefficient.
    """
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > SINGULAR_VALUE_RTOL * max(1.0, s.max(initial=0.0))
    return Vt[kept].T @ ((U[:, kept].T @ rhs) / s[kept])


def is_affordable(n_rows: int, k: int) -> bool:
    """Whether the singular value decomposition of an `n_rows` by k matrix is within MAX_SVD_FLOPS."""
    return (n_rows + k) * k * k <= MAX_SVD_FLOPS
