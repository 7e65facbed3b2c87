"""A binary problem in the form the search uses: rows of X multiplied by labels and square roots of weights.

For row i with weight s_i, label y_i and decision value f_i, let c_i = sqrt(s_i / n) and t_i = c_i y_i. The
residual of the row is c_i - t_i f_i. Columns may be rescaled (`core.scaling`), so each has a ridge of its
own: the ridge of the problem times the entry of the column in `ridge_scale`.
"""

from functools import cached_property

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.problem import ArrayProblem, BinaryProblem
from kmargin.core.scaling import CONSTANT_RTOL, Scaling, make_scaling
from kmargin.data.blocks.problem import BlockProblem
from kmargin.solvers.refit.final import LARGE_SUPPORT_RTOL, ArrayColumns, minimise_by_svd
from kmargin.solvers.refit.newton import ZERO_OBJECTIVE

# A refit by SVD is rejected if rounding errors of its intercept may change decision values by more than this.
MAX_ROUNDING_ERROR = 1e-3


class Rows:
    """The operations that the search needs on a binary problem, with rows in memory or in blocks."""

    is_remote = False
    mean_weight = 1.0  # mean weight of the rows; differs from 1 only if a loss is a sum of several hinges

    def __init__(self, problem: BinaryProblem) -> None:
        self.given = self.problem = problem
        with np.errstate(over="ignore", invalid="ignore"):  # squares may overflow; such columns are rescaled
            self._moments = problem.moments()
        self.scaling: Scaling | None = make_scaling(problem, self._moments)
        self.n_samples, self.n_features = problem.design.n_samples, problem.design.n_features
        self.fit_intercept = problem.design.fit_intercept
        # the ridge of each column after rescaling, relative to the ridge of the given problem
        self.ridge_scale: Vector = np.ones(self.n_features)
        if self.scaling is not None:
            self.problem = self.scaling.apply(problem)
            self._moments = self.problem.moments()
            self.ridge_scale = self.scaling.scales**-2.0
        # fits(n) says whether a work array of n numbers is small enough, compared with the size of X
        self.fits = self.problem.design.fits

    def ridges(self, lam: float, columns: Indices) -> Vector:
        """The ridge of each of `columns`, then that of the intercept: 0, or 1 if there is no intercept."""
        return np.append(lam * self.ridge_scale[columns], 0.0 if self.fit_intercept else 1.0)

    @cached_property
    def variance(self) -> Vector:
        """Weighted variance of each column (0 if constant); its mean square if there is no intercept."""
        mean, variance, _ = self._moments
        varies = variance > (CONSTANT_RTOL * mean) ** 2
        return self.mean_weight * (variance * varies if self.fit_intercept else variance + mean**2)

    def scaled(self, columns: Indices, coef: Vector, intercept: float) -> Vector:
        """Convert coefficients of the original columns to those of the rescaled columns, intercept last."""
        if self.scaling is not None:
            coef, intercept = self.scaling.scale_coefs(columns, coef, intercept)
        return np.append(coef, intercept)

    def unscaled(self, columns: Indices, u: Vector, value: float, lam: float) -> tuple[Vector, float, float]:
        """Convert coefficients u of rescaled columns to those of X; return them, intercept and objective."""
        constant = self.variance[columns] == 0.0
        if constant.any():  # a constant column only does what the intercept can do
            shift = u[:-1][constant] @ self._moments.mean[columns[constant]]
            u = np.append(np.where(constant, 0.0, u[:-1]), u[-1] + shift)
        coef, intercept = u[:-1], float(u[-1]) if self.fit_intercept else 0.0
        if self.scaling is None:
            return coef, intercept, value
        coef, intercept = self.scaling.unscale_coefs(columns, coef, intercept)
        beta = np.zeros(self.given.design.n_parameters)
        beta[columns] = coef
        beta[self.n_features :] = intercept
        return coef, intercept, self.given.with_ridge(lam).loss(beta)

    def rounding_error(self, columns: Indices, u: Vector) -> float:
        """Estimated rounding error of the intercept when u is converted from centred to original columns."""
        if self.scaling is None:
            return 0.0
        coef = u[:-1] / self.scaling.scales[columns]
        return float(np.finfo(float).eps * np.abs(coef * self.scaling.centers[columns]).sum())


class ArrayRows(Rows):
    """A binary problem with rows in memory."""

    problem: ArrayProblem

    def __init__(self, problem: ArrayProblem) -> None:
        super().__init__(problem)
        self.X = self.problem.design
        self.c = np.sqrt(self.problem.weights / self.n_samples)
        self.t = self.problem.y * self.c
        self.target = self.problem.targets * self.c
        self.mean_weight = float(self.problem.weights.mean())

    def residual(self, columns: Indices, u: Vector) -> Vector:
        return self.target - self.t * (self.X.product(columns, u[:-1]) + u[-1])

    def descent(self, residual: Vector) -> Vector:
        """The negative gradient of the loss with respect to the coefficient of each column."""
        return self.X.slopes(self.t * squared_hinge.slopes(residual))

    def count_active(self, columns: Indices, u: Vector) -> int:
        return int(np.count_nonzero(squared_hinge.is_active(self.residual(columns, u))))

    def columns(self, columns: Indices) -> Matrix:
        """Columns of X, row i times t_i = sqrt(weight_i / n) * label_i, and the column of the intercept."""
        A = np.empty((len(columns) + 1, self.n_samples))
        self.X.fill_panel(columns, self.t, np.arange(len(columns)), A)
        A[-1] = self.t if self.fit_intercept else 0.0
        return A.T

    def minimise_exactly(self, lam: float, columns: Indices, u: Vector, value: float) -> tuple[Vector, float]:
        """Minimise the objective over coefficients of `columns` by SVD; return the minimiser and its value.

        Returns u and `value` if rounding errors would dominate its objective in the original problem.
        """
        support = ArrayColumns(self.columns(columns), self.target)
        end, end_value = minimise_by_svd(support, self.ridges(lam, columns), u, value)
        return (u, value) if self.rounding_error(columns, end) > MAX_ROUNDING_ERROR else (end, end_value)

    def is_minimum(self, lam: float, columns: Indices, u: Vector, value: float) -> bool:
        """Whether the gradient at u predicts a decrease of at most LARGE_SUPPORT_RTOL times `value`."""
        ridge, residual = self.ridges(lam, columns), self.residual(columns, u)
        slope = ridge[:-1] * u[:-1] - self.descent(residual)[columns]
        curvature = ridge[:-1] if lam > 0 else self.variance[columns]
        decreases = np.divide(slope**2, curvature, out=np.zeros(len(slope)), where=curvature > 0)
        return bool(0.5 * np.sum(decreases) <= LARGE_SUPPORT_RTOL * value or value <= ZERO_OBJECTIVE)


class BlockRows(Rows):
    """Rows in blocks, in memory or on other machines; each result is a sum over the blocks."""

    is_remote = True
    problem: BlockProblem


def make_rows(problem: BinaryProblem) -> Rows:
    """The rows of a binary problem, in memory or in blocks."""
    return ArrayRows(problem) if isinstance(problem, ArrayProblem) else BlockRows(problem)
