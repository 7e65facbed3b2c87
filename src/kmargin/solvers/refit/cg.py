"""Newton steps where no Gram matrix fits, neither the columns' nor the active rows'.

Each system is solved by conjugate gradients, which ask for products with X alone.
"""

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Vector
from kmargin.core.design import Design
from kmargin.solvers.refit.dual import take_step
from kmargin.solvers.refit.newton import NO_LOSS, total_loss

# A system is solved until its residual has fallen to this share; at most so many products.
FORCING, MAX_PRODUCTS = 0.1, 250

MAX_STEPS = 100


def newton_conjugate(
    A: Design,
    t: Vector,
    c: Vector,
    lam: float,
    w: Vector,
    b: float,
    resid: Vector,
    give_up: float,
    tol: float,
) -> tuple[float, float, int]:
    """Minimise over all columns of A; w and resid are brought along.

    As `newton_dual` otherwise. Returns the objective, the intercept and the number of steps.
    """
    value = 0.5 * lam * float(w @ w) + total_loss(resid)
    n_iter = 0
    while n_iter < MAX_STEPS and value > NO_LOSS:
        d, db = conjugate_direction(A, t, lam, w, resid)
        delta = t * (A.product(np.arange(len(d)), d) + db)
        step, new_value, _ = take_step(lam, w, d, resid, delta, value, give_up, tol)
        if step == 0.0:
            break
        b += step * db
        n_iter += 1
        if not new_value < value:
            break
        value = new_value
    return value, b, n_iter


def conjugate_direction(A: Design, t: Vector, lam: float, w: Vector, resid: Vector) -> tuple[Vector, float]:
    """Most of the way to the minimum of the quadratic that holds on the active rows.

    The intercept is eliminated exactly: decision values and residuals are taken relative to their
    weighted means. The columns' own curvatures are the preconditioner.
    """
    rows = np.flatnonzero(squared_hinge.is_active(resid))
    if len(rows) == 0:  # no row falls short: all that is left to lower is the ridge
        return -w, 0.0
    P, t, r = A.take_rows(rows), t[rows], squared_hinge.slopes(resid[rows])
    everything, squares = np.arange(A.n_features), t * t
    total = float(squares.sum())

    def centered(v: Vector) -> Vector:
        return v - float(squares @ v) / total if A.fit_intercept else v

    curvature = P.spread(np.abs(t)) + lam
    scale = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    left = P.slopes(squares * centered(r / t)) - lam * w  # what of the system is not yet solved
    d = np.zeros_like(w)
    way = scale * left
    rho = first = float(left @ way)
    for _ in range(MAX_PRODUCTS):
        if not rho > FORCING**2 * first or rho == 0.0:
            break
        image = P.slopes(squares * centered(P.product(everything, way))) + lam * way
        bend = float(way @ image)
        if not bend > 0.0:
            break
        d += rho / bend * way
        left -= rho / bend * image
        scaled = scale * left
        rho, last = float(left @ scaled), rho
        way = scaled + rho / last * way
    if not A.fit_intercept:
        return d, 0.0
    return d, float(squares @ (r / t - P.product(everything, d))) / total
