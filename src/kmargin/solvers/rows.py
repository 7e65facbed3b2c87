"""The rows of a panel at a point u: what Newton steps and the search ask of them.

The answers are as small as the support or the panel: a loss, a Gram matrix. So the same search runs on
rows that are elsewhere, which answer by methods of the same names.
"""

from typing import NamedTuple

import numpy as np

from kmargin.jit import asked_of_rows, compiled, compiled_or_remote
from kmargin.losses import squared_hinge
from kmargin.solvers.panel import build_gram, combine, renew_gram, residual, shift_gram, sync_gram, total_loss
from kmargin.types import Flags, Indices, Matrix, Vector


class Rows(NamedTuple):
    """A panel at hand. The arrays are changed in place."""

    panel: Matrix
    active: Flags  # the rows that a Gram matrix was taken over
    resid: Vector  # of each row at the point
    delta: Vector  # by how much a step lowers it
    changed: Indices  # scratch: rows that change sides
    signs: Vector  # scratch: on which side they come out


class Line(NamedTuple):
    """Residuals and how a step changes them, without a panel."""

    resid: Vector
    delta: Vector


def make_rows(panel: Matrix) -> Rows:
    """All active, at no point yet."""
    n = panel.shape[1]
    return Rows(panel, np.ones(n, np.bool_), np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n))


@asked_of_rows
def n_columns(rows: Rows) -> int:
    """How many features the panel has room for."""
    return rows.panel.shape[0] - 2


@compiled
def cost_of_refit(n_samples: int, k: int) -> float:
    """About how many multiplications a step or two towards the minimum over k coefficients take."""
    return 2.0 * (k * n_samples + k * k * k)


@asked_of_rows
def cost_of_try(rows: Rows, k: int) -> float:
    """The same for the rows of a panel."""
    return cost_of_refit(rows.resid.size, k)


@asked_of_rows
def companion(rows: Rows) -> Rows:
    """The same rows, to try another point with: active where these are."""
    n = rows.active.size
    return Rows(rows.panel, rows.active.copy(), np.empty(n), rows.delta, rows.changed, rows.signs)


@asked_of_rows
def start_over(rows: Rows, others: Rows) -> None:
    """Active where the others are."""
    rows.active[:] = others.active


@asked_of_rows
@compiled
def place(rows: Rows, idx: Indices, u: Vector) -> None:
    """Go to a point, and let the rows be active that are so there."""
    residual(rows.panel, idx, u, rows.resid)
    for i in range(rows.resid.size):
        rows.active[i] = squared_hinge.is_active(rows.resid[i])


@asked_of_rows
def take_gram(rows: Rows, gram: Matrix) -> None:
    """The panel's Gram matrix over the active rows."""
    build_gram(rows.panel, rows.active, gram)


@asked_of_rows
def retake_gram(rows: Rows, places: Indices, others: Indices, gram: Matrix) -> None:
    """The same where only what these places of the panel have to do with others is to be made anew."""
    if 2 * places.size > rows.panel.shape[0]:
        build_gram(rows.panel, rows.active, gram)
    else:
        renew_gram(rows.panel, rows.active, places, others, gram)


@asked_of_rows
def follow(rows: Rows, others: Rows, gram: Matrix) -> None:
    """Bring the panel's Gram matrix to where the others are active."""
    sync_gram(rows.panel, rows.active, others.active, gram)


@compiled_or_remote
def resume(rows: Rows, idx: Indices, u: Vector, gram: Matrix) -> None:
    """Go to a point, and bring the Gram matrix there from where it was."""
    others = companion(rows)
    place(others, idx, u)
    follow(rows, others, gram)


@asked_of_rows
def move_to(rows: Rows, idx: Indices, u: Vector) -> float:
    """Go to u; the loss there."""
    residual(rows.panel, idx, u, rows.resid)
    return total_loss(rows.resid)


@asked_of_rows
@compiled
def look_along(rows: Rows, idx: Indices, d: Vector) -> float:
    """The loss a full step d away, doubled."""
    combine(rows.panel, idx, d, rows.delta)
    loss = 0.0
    for i in range(rows.resid.size):
        loss += squared_hinge.twice_value(rows.resid[i] - rows.delta[i])
    return loss


@asked_of_rows
@compiled
def slope_along(rows: Rows | Line, t: float, slope: float, curve: float) -> tuple[float, float]:
    """To slope and curvature, those of the loss at t times the step are added."""
    for i in range(rows.resid.size):
        r = rows.resid[i] - t * rows.delta[i]
        if squared_hinge.is_active(r):
            slope -= rows.delta[i] * squared_hinge.slope(r)
            curve += squared_hinge.curvature(r) * rows.delta[i] * rows.delta[i]
    return slope, curve


@asked_of_rows
@compiled
def advance(rows: Rows, t: float) -> None:
    """Take t times the step looked along."""
    for i in range(rows.resid.size):
        rows.resid[i] -= t * rows.delta[i]


@asked_of_rows
def loss_here(rows: Rows) -> float:
    return total_loss(rows.resid)


@asked_of_rows
@compiled
def renew_system(rows: Rows, idx: Indices, H: Matrix, z: Vector) -> bool:
    """Bring the Gram matrix of the columns idx, and their products with the target, to the rows that
    are active now; False if none has changed sides.
    """
    flips, n_active = 0, 0
    for i in range(rows.resid.size):
        now = squared_hinge.is_active(rows.resid[i])
        n_active += now
        if now != rows.active[i]:
            rows.active[i] = now
            rows.changed[flips] = i
            rows.signs[flips] = 1.0 if now else -1.0
            flips += 1
    if flips > n_active:  # to begin anew costs less, and leaves no rounding errors of the rows that are gone
        renewed = 0
        for i in range(rows.resid.size):
            if rows.active[i]:
                rows.changed[renewed] = i
                rows.signs[renewed] = 1.0
                renewed += 1
        H[:, :], z[:] = 0.0, 0.0
        shift_gram(rows.panel, idx, rows.changed, rows.signs, renewed, H, z, np.empty((4, idx.size)))
    elif flips > 0:
        shift_gram(rows.panel, idx, rows.changed, rows.signs, flips, H, z, np.empty((4, idx.size)))
    return flips > 0


@compiled_or_remote
def exact_step(rows: Rows | Line, ud: float, dd: float) -> float:
    """The minimiser t > 0 of the loss at the residuals resid - t delta, plus t ud + t^2/2 dd.

    Its derivative is increasing and piecewise linear: Newton on it, kept inside a bracket, halving
    when it leaves.
    """
    lo, hi, t = 0.0, np.inf, 1.0
    for _ in range(60):
        slope, curve = slope_along(rows, t, ud + t * dd, dd)
        if slope > 0.0:
            hi = t
        else:
            lo = t
        if not curve > 0.0:
            break
        new = t - slope / curve
        if not (lo < new < hi):
            if hi == np.inf:
                break
            new = 0.5 * (lo + hi)
        if abs(new - t) <= 1e-12 * t:
            t = new
            break
        t = new
    return t
