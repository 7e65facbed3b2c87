"""Newton's method where no Gram matrix fits in memory, neither that of the columns nor that of the rows.

Each linear system is solved by conjugate gradients, which need products with X alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Vector
from kmargin.core.design import Design
from kmargin.solvers.refit.dual import take_step
from kmargin.solvers.refit.newton import MAX_NEWTON_STEPS, ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import ArrayRows

# A system is solved until its residual has fallen to this fraction; at most so many products.
FORCING, MAX_PRODUCTS = 0.1, 250


@dataclass(frozen=True)
class ProductFit:
    """The minimum of one binary problem on some columns."""

    data: ArrayRows
    lam: float
    columns: Indices
    v: Vector  # coefficients
    b: float
    residual: Vector
    value: float = np.inf
    n_newton: int = 0

    @classmethod
    def at(cls, data: ArrayRows, lam: float, columns: Indices, u: Vector) -> "ProductFit":
        """A start: these columns with coefficients u, the intercept last."""
        return cls(data, lam, columns, u[:-1], float(u[-1]), data.residual(columns, u))

    @property
    def u(self) -> Vector:
        """Coefficients, then the intercept."""
        return np.append(self.v, self.b)

    def exchanged(self, lose: Indices, take: Indices) -> "ProductFit":
        """The start without the columns at the places `lose` and with the columns `take` at 0."""
        stays = np.ones(len(self.columns), np.bool_)
        stays[lose] = False
        gone = self.data.X.product(self.columns[lose], self.v[lose])
        return replace(
            self,
            columns=np.append(self.columns[stays], take),
            v=np.append(self.v[stays], np.zeros(len(take))),
            residual=self.residual + self.data.t * gone,
        )

    def minimised(self, tol: float, give_up: float = np.inf) -> "ProductFit":
        """The minimum on these columns, or where a step promised too little, or too little for `give_up`."""
        data, v, b, residual = self.data, self.v, self.b, self.residual
        is_all = np.array_equal(self.columns, np.arange(data.n_features))
        A = data.X if is_all else data.X.take(self.columns)
        ridge, everything = self.lam * data.ridge_scale[self.columns], np.arange(len(v))
        value = squared_hinge.total_value(residual) + 0.5 * float(ridge @ v**2)
        n_newton = 0
        while n_newton < MAX_NEWTON_STEPS and value > ZERO_OBJECTIVE:
            d, db = conjugate_direction(A, data.t, ridge, v, residual)
            delta = data.t * (A.product(everything, d) + db)
            t, new_value = take_step(ridge, v, d, residual, delta, value, give_up, tol)
            if t == 0.0:
                break
            v, b, residual, n_newton = v + t * d, b + t * db, residual - t * delta, n_newton + 1
            is_lower, value = new_value < value, min(new_value, value)
            if not is_lower:
                break
        return replace(self, v=v, b=b, residual=residual, value=value, n_newton=self.n_newton + n_newton)

    def scores(self, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """What the columns at the places `lose` cost to drop, and what the columns `take` would gain.

        Other coefficients are left as they are. That overrates costs and underrates gains, so that an
        exchange which seems to pay does.
        """
        data = self.data
        active = np.sqrt(squared_hinge.curvatures(self.residual))
        curvature = data.X.spread(data.c * active) + self.lam * data.ridge_scale
        gain = np.zeros(data.n_features)
        np.divide(data.descent(self.residual) ** 2, 2.0 * curvature, out=gain, where=curvature > 0)
        return 0.5 * self.v[lose] ** 2 * curvature[self.columns[lose]], gain[take]


def conjugate_direction(
    A: Design, t: Vector, ridge: Vector, w: Vector, residual: Vector
) -> tuple[Vector, float]:
    """Most of the step to the minimum of the quadratic that holds on the active rows: for w, and for b.

    The intercept is eliminated exactly: decision values and residuals are taken relative to their weighted
    means. The curvatures of the columns are the preconditioner.
    """
    rows = np.flatnonzero(squared_hinge.is_active(residual))
    if len(rows) == 0:  # no row is active: only the ridge is left to lower
        return -w, 0.0
    P, t, r = A.take_rows(rows), t[rows], squared_hinge.slopes(residual[rows])
    everything, squares = np.arange(A.n_features), t * t
    total = float(squares.sum())

    def centered(v: Vector) -> Vector:
        return v - float(squares @ v) / total if A.fit_intercept else v

    curvature = P.spread(np.abs(t)) + ridge
    scale = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    unsolved = P.slopes(squares * centered(r / t)) - ridge * w
    d = np.zeros_like(w)
    direction = scale * unsolved
    rho = first = float(unsolved @ direction)
    for _ in range(MAX_PRODUCTS):
        if not rho > FORCING**2 * first or rho == 0.0:
            break
        image = P.slopes(squares * centered(P.product(everything, direction))) + ridge * direction
        bend = float(direction @ image)
        if not bend > 0.0:
            break
        d += rho / bend * direction
        unsolved -= rho / bend * image
        scaled = scale * unsolved
        rho, last = float(unsolved @ scaled), rho
        direction = scaled + rho / last * direction
    if not A.fit_intercept:
        return d, 0.0
    return d, float(squares @ (r / t - P.product(everything, d))) / total
