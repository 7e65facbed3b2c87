"""Newton's method where the support is larger than the number of active rows.

The linear systems are as large as the active rows, not as the support: with A the active rows on the columns
of the support, w = A'r / lam, (I + A A' / lam) r + t b = c and t'r = 0. Columns are multiplied by their units
(`core.scaling`), so that all have the same ridge.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.solvers.refit.final import line_minimum
from kmargin.solvers.refit.newton import MAX_NEWTON_STEPS, ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import ArrayRows

# The least ridge that a dual system is solved with, relative to the curvature of its rows.
MIN_RIDGE = 1e-10


class RowProducts(NamedTuple):
    """The rows that have been active at some time, their entries on the support, and K = B B'."""

    rows: Indices
    B: Matrix  # (n_rows, k)
    K: Matrix  # (n_rows, n_rows)


def n_dual_numbers(n_active: int, k: int) -> int:
    """How many numbers a dual solve holds: B, K, and a factor of I + K / lam."""
    return n_active * (k + 3 * n_active)


def take_step(
    ridge: Vector,
    w: Vector,
    d: Vector,
    residual: Vector,
    delta: Vector,
    value: float,
    give_up: float,
    tol: float,
) -> tuple[float, float]:
    """The length of a step along d, which lowers the residuals by delta, and the objective after it.

    A full step if the objective falls enough, else to the exact minimum on the line; 0 if the predicted
    decrease is too small to be taken.
    """
    wd, dd, ww = float(ridge @ (w * d)), float(ridge @ (d * d)), float(ridge @ (w * w))
    slope = -float(delta @ squared_hinge.slopes(residual)) + wd
    if -0.5 * slope <= tol * value or value + slope > give_up:
        return 0.0, value

    def objective(t: float) -> float:
        return squared_hinge.total_value(residual - t * delta) + 0.5 * (ww + t * t * dd) + t * wd

    new_value = objective(1.0)
    if new_value <= value + 0.1 * slope:
        return 1.0, new_value
    t = float(line_minimum(residual, delta, wd, dd))
    return t, objective(t)


@dataclass(frozen=True)
class DualFit:
    """The minimum of one binary problem on some columns, with the products of its active rows."""

    data: ArrayRows
    lam: float
    columns: Indices
    v: Vector  # coefficients of the columns multiplied by their units
    b: float
    residual: Vector
    products: RowProducts | None = None
    value: float = np.inf
    n_newton: int = 0

    @classmethod
    def at(cls, data: ArrayRows, lam: float, columns: Indices, u: Vector) -> "DualFit":
        """A start: these columns with coefficients u, the intercept last."""
        return cls(
            data, lam, columns, u[:-1] / cls._units(data, columns), float(u[-1]), data.residual(columns, u)
        )

    @staticmethod
    def _units(data: ArrayRows, columns: Indices) -> Vector:
        return data.ridge_scale[columns] ** -0.5

    @property
    def u(self) -> Vector:
        """Coefficients, then the intercept."""
        return np.append(self.v * self._units(self.data, self.columns), self.b)

    def _entries(self, rows: Indices, columns: Indices) -> Matrix:
        block = self.data.X.block(rows, columns)
        return self.data.t[rows, None] * block * self._units(self.data, columns)

    def _decisions(self, columns: Indices, v: Vector) -> Vector:
        return self.data.t * self.data.X.product(columns, v * self._units(self.data, columns))

    def exchanged(self, lose: Indices, take: Indices) -> "DualFit":
        """The start without the columns at the places `lose` and with the columns `take` at 0."""
        gone = self.columns[lose]
        stays = np.ones(len(self.columns), np.bool_)
        stays[lose] = False
        products = self.products
        if products is not None:
            rows, B, K = products
            came, out = self._entries(rows, take), B[:, lose]
            products = RowProducts(rows, np.hstack([B[:, stays], came]), K + came @ came.T - out @ out.T)
        return replace(
            self,
            columns=np.append(self.columns[stays], take),
            v=np.append(self.v[stays], np.zeros(len(take))),
            residual=self.residual + self._decisions(gone, self.v[lose]),
            products=products,
        )

    def minimised(self, tol: float, give_up: float = np.inf) -> "DualFit":
        """The minimum on these columns, or where a step promised too little, or too little for `give_up`."""
        v, b, residual = self.v, self.b, self.residual
        ridge = np.full(len(v), self.lam)
        value = squared_hinge.total_value(residual) + 0.5 * self.lam * float(v @ v)
        products = self._with_active(self.products, residual)
        n_newton = 0
        while n_newton < MAX_NEWTON_STEPS and value > ZERO_OBJECTIVE:
            d, db = self._direction(products, v, b, residual)
            delta = self._decisions(self.columns, d) + self.data.t * db
            t, new_value = take_step(ridge, v, d, residual, delta, value, give_up, tol)
            if t == 0.0:
                break
            before = squared_hinge.is_active(residual)
            v, b, residual, n_newton = v + t * d, b + t * db, residual - t * delta, n_newton + 1
            is_lower, value = new_value < value, min(new_value, value)
            products = self._with_active(products, residual)
            if not is_lower or (t == 1.0 and np.array_equal(before, squared_hinge.is_active(residual))):
                break
        return replace(
            self,
            v=v,
            b=b,
            residual=residual,
            products=products,
            value=value,
            n_newton=self.n_newton + n_newton,
        )

    def _with_active(self, products: RowProducts | None, residual: Vector) -> RowProducts:
        """The products with all rows that are active now among them."""
        is_new = squared_hinge.is_active(residual)
        if products is None:
            products = RowProducts(np.empty(0, np.int64), np.empty((0, len(self.columns))), np.empty((0, 0)))
        is_new[products.rows] = False
        fresh = np.flatnonzero(is_new)
        if len(fresh) == 0:
            return products
        B = self._entries(fresh, self.columns)
        beside = products.B @ B.T
        return RowProducts(
            np.append(products.rows, fresh),
            np.vstack([products.B, B]),
            np.block([[products.K, beside], [beside.T, B @ B.T]]),
        )

    def _factor(self, products: RowProducts, residual: Vector) -> tuple[Indices, Matrix, float]:
        """Places of the active rows, the Cholesky factor U of I + K / mu = U'U on them, and mu.

        mu is the ridge, or a little more where that is next to nothing beside the columns.
        """
        places = np.flatnonzero(squared_hinge.is_active(residual[products.rows]))
        typical = MIN_RIDGE * float(np.trace(products.K)) / max(len(products.K), 1)
        mu = max(self.lam, typical) or 1.0
        system = products.K[np.ix_(places, places)] / mu
        system[np.diag_indices_from(system)] += 1.0
        return places, scipy.linalg.cholesky(system, check_finite=False), mu

    def _direction(
        self, products: RowProducts, v: Vector, b: float, residual: Vector
    ) -> tuple[Vector, float]:
        """The step to the minimum of the quadratic, for v and for b; a proximal one where mu exceeds lam."""
        places, U, mu = self._factor(products, residual)
        if len(places) == 0:  # no row is active: only the ridge is left to lower
            return -v, 0.0
        rows, eps = products.rows[places], mu - self.lam
        t, c = self.data.t[rows], self.data.target[rows]
        rhs = c - eps / mu * (c - residual[rows] - t * b)
        r = scipy.linalg.cho_solve((U, False), rhs, check_finite=False)
        new_b = b
        if self.data.fit_intercept:
            s = scipy.linalg.cho_solve((U, False), t, check_finite=False)
            new_b = float(t @ r) / float(t @ s)
            r = r - new_b * s
        return (products.B[places].T @ r + eps * v) / mu - v, new_b - b

    def scores(self, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """What the columns at the places `lose` cost to drop, and what the columns `take` would gain.

        With h = x'(mu I + K)^-1 x, the intercept projected out, dropping costs mu v^2 / (2 (1 - h/mu)) and
        adding gains (x'r)^2 / (2 (mu + h)).
        """
        assert self.products is not None
        places, U, mu = self._factor(self.products, self.residual)
        rows = self.products.rows[places]
        A = np.hstack([self.products.B[np.ix_(places, lose)], self._entries(rows, take)])
        Y = scipy.linalg.solve_triangular(U, A, trans="T", check_finite=False)
        h = np.einsum("ij,ij->j", Y, Y)
        if self.data.fit_intercept and len(rows):
            z = scipy.linalg.solve_triangular(U, self.data.t[rows], trans="T", check_finite=False)
            h = h - (z @ Y) ** 2 / max(float(z @ z), 1e-300)
        drop = 0.5 * mu * self.v[lose] ** 2 / np.maximum(1.0 - h[: len(lose)] / mu, 1e-12)
        slope = A[:, len(lose) :].T @ self.residual[rows]
        return drop, 0.5 * slope**2 / (mu + h[len(lose) :])
