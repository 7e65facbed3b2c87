"""Newton's method for supports too large for a Gram matrix of their columns.

If the support has more columns than there are active rows (rows of positive loss), `DualFit` solves linear
systems with one unknown per active row. Let the rows of A be t_i x_i', and r the residuals, for the active
rows i (t and c: see `refit.rows`). At the minimum, the coefficients w and the intercept b satisfy
w = A'r / lam, (I + A A' / lam) r + t b = c and t'r = 0. If no Gram matrix fits in memory, `ProductFit` uses
conjugate gradients, which need only products.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.design import Design
from kmargin.solvers.refit.final import line_minimum
from kmargin.solvers.refit.newton import MAX_NEWTON_STEPS, ZERO_OBJECTIVE
from kmargin.solvers.refit.rows import ArrayRows

# Systems I + K / ridge, where K = A A' for the active rows A, are solved with a ridge of at least this
# fraction of the mean diagonal entry of K, because they are ill-conditioned with smaller ridges.
MIN_RIDGE = 1e-10

# Conjugate gradients end when the preconditioned norm of the linear system's residual is below FORCING times
# the norm at the start, or after MAX_PRODUCTS iterations.
FORCING, MAX_PRODUCTS = 0.1, 250

# `DualFit` copies the columns of the support from X if they are at most this fraction of all columns. A
# product with all of X takes less time than a copy of more columns.
MAX_SELECTED = 0.25


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
    """Return the length of a step from the coefficients w in the direction d, and the objective at its end.

    A step of length 1 lowers the residuals by `delta`. The length is 1 if the objective then falls enough,
    else that of an exact line search. It is 0 if the predicted decrease is at most `tol` times the objective
    `value`, or too small to get below `give_up`.
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
class LargeFit(ABC):
    """Coefficients of one binary problem on some columns; subclasses solve the systems of Newton steps."""

    data: ArrayRows
    lam: float
    columns: Indices
    v: Vector  # coefficients of the scaled columns: columns of X times the factors `scales`
    b: float  # the intercept
    residual: Vector
    value: float = np.inf  # the objective
    n_newton: int = 0
    selected: Design | None = None  # a copy of the columns of the support; None if all of X is used instead

    @classmethod
    def at(cls, data: ArrayRows, lam: float, columns: Indices, u: Vector) -> Self:
        """A fit at the coefficients u of `columns`, intercept last, before any Newton step."""
        v = u[:-1] / cls.scales(data, columns)
        return cls(data, lam, columns, v, float(u[-1]), data.residual(columns, u))

    @staticmethod
    def scales(data: ArrayRows, columns: Indices) -> Vector:
        """The factor by which each of `columns` is multiplied before the fit."""
        return np.ones(len(columns))

    @property
    def u(self) -> Vector:
        """The coefficients of the columns of X, not multiplied by `scales`, followed by the intercept."""
        return np.append(self.v * self.scales(self.data, self.columns), self.b)

    def _decisions(self, columns: Indices, v: Vector) -> Vector:
        """Decision values from the coefficients v of `columns`, each multiplied by t (see `refit.rows`)."""
        d = v * self.scales(self.data, columns)
        if columns is self.columns and self.selected is not None:
            return self.data.t * self.selected.product(np.arange(len(d)), d)
        return self.data.t * self.data.X.product(columns, d)

    def exchanged(self, lose: Indices, take: Indices) -> Self:
        """The fit without columns[lose] and with columns `take`, whose coefficients are 0; not refitted."""
        stays = np.ones(len(self.columns), np.bool_)
        stays[lose] = False
        return replace(
            self,
            columns=np.append(self.columns[stays], take),
            v=np.append(self.v[stays], np.zeros(len(take))),
            residual=self.residual + self._decisions(self.columns[lose], self.v[lose]),
            selected=None,
        )

    def minimised(self, tol: float, give_up: float = np.inf) -> Self:
        """The fit after Newton steps to the minimum, or to where it cannot get below `give_up` any more."""
        squared = self.scales(self.data, self.columns) ** 2
        ridge = self.lam * self.data.ridge_scale[self.columns] * squared
        value = squared_hinge.total_value(self.residual) + 0.5 * float(ridge @ self.v**2)
        fit = replace(self, value=value)._prepared()
        for _ in range(MAX_NEWTON_STEPS):
            if not fit.value > ZERO_OBJECTIVE:
                break
            d, db = fit._direction(ridge)
            delta = fit._decisions(fit.columns, d) + fit.data.t * db
            t, value = take_step(ridge, fit.v, d, fit.residual, delta, fit.value, give_up, tol)
            if t == 0.0:
                break
            before = fit
            fit = replace(
                before,
                v=before.v + t * d,
                b=before.b + t * db,
                residual=before.residual - t * delta,
                value=min(value, before.value),
                n_newton=before.n_newton + 1,
            )._prepared()
            if not value < before.value or (t == 1.0 and fit._is_minimum_after(before)):
                break
        return fit

    def _prepared(self) -> Self:
        """The same fit with the columns of the support in `selected`, ready for the next Newton step."""
        if self.selected is not None:
            return self
        is_all = np.array_equal(self.columns, np.arange(self.data.n_features))
        return replace(self, selected=self.data.X if is_all else self.data.X.take(self.columns))

    def _is_minimum_after(self, before: Self) -> bool:
        """Whether a full Newton step from the fit `before` is known to have ended at the minimum."""
        return False

    @abstractmethod
    def _direction(self, ridge: Vector) -> tuple[Vector, float]:
        """The Newton step: changes of v and b that minimise the objective if active rows stay the same."""

    @abstractmethod
    def scores(self, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """Predict the objective's rise without each of columns[lose], and decrease with each of `take`."""


class RowProducts(NamedTuple):
    """All rows that have had a positive loss so far: B has their entries in the support, and K = B B'."""

    rows: Indices  # numbers of these rows in the data
    B: Matrix  # shape (n_rows, number of columns); entries of X times t and `scales`
    K: Matrix  # shape (n_rows, n_rows)


def n_dual_numbers(n_active: int, k: int) -> int:
    """Number of entries of arrays in a dual solve: B (n_active by k) and three n_active by n_active."""
    return n_active * (k + 3 * n_active)


@dataclass(frozen=True)
class DualFit(LargeFit):
    """A fit whose Newton systems have one unknown per active row; `scales` makes all ridges equal."""

    products: RowProducts | None = None

    @staticmethod
    def scales(data: ArrayRows, columns: Indices) -> Vector:
        return data.ridge_scale[columns] ** -0.5

    def _entries(self, rows: Indices, columns: Indices) -> Matrix:
        block = self.data.X.block(rows, columns)
        return self.data.t[rows, None] * block * self.scales(self.data, columns)

    def exchanged(self, lose: Indices, take: Indices) -> "DualFit":
        products = self.products
        if products is not None:
            rows, B, K = products
            came, gone = self._entries(rows, take), B[:, lose]
            B = np.hstack([np.delete(B, lose, axis=1), came])
            products = RowProducts(rows, B, K + came @ came.T - gone @ gone.T)
        return replace(super().exchanged(lose, take), products=products)

    def _prepared(self) -> "DualFit":
        """The same fit, with all rows that are active now included in `products`."""
        fit = super()._prepared() if len(self.columns) <= MAX_SELECTED * self.data.n_features else self
        is_new = squared_hinge.is_active(self.residual)
        products = self.products
        if products is None:
            products = RowProducts(np.empty(0, np.int64), np.empty((0, len(self.columns))), np.empty((0, 0)))
        is_new[products.rows] = False
        fresh = np.flatnonzero(is_new)
        if len(fresh):
            B = self._entries(fresh, self.columns)
            cross = products.B @ B.T
            K = np.block([[products.K, cross], [cross.T, B @ B.T]])
            products = RowProducts(np.append(products.rows, fresh), np.vstack([products.B, B]), K)
        return replace(fit, products=products)

    def _is_minimum_after(self, before: LargeFit) -> bool:
        """Whether the active rows are those of `before`, so that the step has minimised the objective."""
        return np.array_equal(
            squared_hinge.is_active(before.residual), squared_hinge.is_active(self.residual)
        )

    def _factor(self) -> tuple[RowProducts, Indices, Matrix, float]:
        """Return `products`, indices of active rows in it, the Cholesky factor of I + K/mu for them, and mu.

        mu is the ridge, or MIN_RIDGE times the mean diagonal entry of K if that is larger.
        """
        products = self.products
        assert products is not None
        places = np.flatnonzero(squared_hinge.is_active(self.residual[products.rows]))
        typical = MIN_RIDGE * float(np.trace(products.K)) / max(len(products.K), 1)
        mu = max(self.lam, typical) or 1.0
        system = products.K[np.ix_(places, places)] / mu
        system[np.diag_indices_from(system)] += 1.0
        return products, places, scipy.linalg.cholesky(system, check_finite=False), mu

    def _direction(self, ridge: Vector) -> tuple[Vector, float]:
        """The Newton step; if the ridge is too small, a proximal one with the larger ridge of `_factor`."""
        products, places, U, mu = self._factor()
        if len(places) == 0:  # no row is active, so only the ridge penalty can fall
            return -self.v, 0.0
        rows, eps = products.rows[places], mu - self.lam
        t, c = self.data.t[rows], self.data.target[rows]
        rhs = c - eps / mu * (c - self.residual[rows] - t * self.b)
        r = scipy.linalg.cho_solve((U, False), rhs, check_finite=False)
        b = self.b
        if self.data.fit_intercept:
            s = scipy.linalg.cho_solve((U, False), t, check_finite=False)
            b = float(t @ r) / float(t @ s)
            r = r - b * s
        return (products.B[places].T @ r + eps * self.v) / mu - self.v, b - self.b

    def scores(self, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """Predict the objective's rise without each of columns[lose], and decrease with each of `take`.

        For a column with coefficient v and entries x in the active rows, whose residuals are r, the rise is
        mu v^2 / (2 (1 - h/mu)) and the decrease is (x'r)^2 / (2 (mu + h)), both exact to second order. Here
        h = x'(I + K/mu)^-1 x (mu: see `_factor`), with the intercept projected out.
        """
        products, places, U, mu = self._factor()
        rows = products.rows[places]
        A = np.hstack([products.B[np.ix_(places, lose)], self._entries(rows, take)])
        Y = scipy.linalg.solve_triangular(U, A, trans="T", check_finite=False)
        h = np.einsum("ij,ij->j", Y, Y)
        if self.data.fit_intercept and len(rows):
            z = scipy.linalg.solve_triangular(U, self.data.t[rows], trans="T", check_finite=False)
            h = h - (z @ Y) ** 2 / max(float(z @ z), 1e-300)
        drop = 0.5 * mu * self.v[lose] ** 2 / np.maximum(1.0 - h[: len(lose)] / mu, 1e-12)
        slope = A[:, len(lose) :].T @ self.residual[rows]
        return drop, 0.5 * slope**2 / (mu + h[len(lose) :])


@dataclass(frozen=True)
class ProductFit(LargeFit):
    """A fit whose Newton systems are solved by conjugate gradients."""

    def _direction(self, ridge: Vector) -> tuple[Vector, float]:
        assert self.selected is not None
        return conjugate_direction(self.selected, self.data.t, ridge, self.v, self.residual)

    def scores(self, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """Predict rises without columns[lose], decreases with `take`, if only the intercept is refitted."""
        data = self.data
        active = np.sqrt(squared_hinge.curvatures(self.residual))
        curvature = data.X.spread(data.c * active) + self.lam * data.ridge_scale
        gain = np.zeros(data.n_features)
        np.divide(data.descent(self.residual) ** 2, 2.0 * curvature, out=gain, where=curvature > 0)
        return 0.5 * self.v[lose] ** 2 * curvature[self.columns[lose]], gain[take]


def conjugate_direction(
    A: Design, t: Vector, ridge: Vector, w: Vector, residual: Vector
) -> tuple[Vector, float]:
    """An inexact Newton step for the coefficients w and the intercept, by conjugate gradients.

    The intercept is eliminated by subtracting weighted means. The preconditioner is the Hessian's diagonal.
    """
    rows = np.flatnonzero(squared_hinge.is_active(residual))
    if len(rows) == 0:  # no row is active, so only the ridge penalty can fall
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
        curvature_along = float(direction @ image)
        if not curvature_along > 0.0:
            break
        d += rho / curvature_along * direction
        unsolved -= rho / curvature_along * image
        scaled = scale * unsolved
        rho, last = float(unsolved @ scaled), rho
        direction = scaled + rho / last * direction
    if not A.fit_intercept:
        return d, 0.0
    return d, float(squares @ (r / t - P.product(everything, d))) / total
