"""The exact minimum of squared hinge plus ridge on a given support.

    1/(2n) sum_i max(0, 1 - y_i (x_i'w + b))^2 + lam/2 ||w||^2

Every competitor's support is scored by this one number, whatever loss chose it.
"""

from typing import NamedTuple

import numpy as np


class Refit(NamedTuple):
    """The minimiser over the features of a support."""

    coef: np.ndarray  # of all features, zero off the support
    intercept: float
    objective: float


def objective(Z: np.ndarray, beta: np.ndarray, lam: float) -> float:
    """The objective at beta = (w, b), the rows of Z being y_i (x_i, 1)."""
    violation = np.maximum(0.0, 1.0 - Z @ beta)
    return 0.5 * float(np.mean(violation**2)) + 0.5 * lam * float(beta[:-1] @ beta[:-1])


def refit(X: np.ndarray, y: np.ndarray, support: np.ndarray, lam: float, max_iter: int = 200) -> Refit:
    """Newton's method with a line search; y is -1 or 1.

    The loss is piecewise quadratic, so the step to the minimum of the current piece is the last one
    as soon as it changes no row's side of the margin.
    """
    n = len(y)
    Z = np.column_stack([X[:, support], np.ones(n)]) * y[:, None]
    ridge = np.full(Z.shape[1], lam)
    ridge[-1] = 0.0
    beta = np.zeros(Z.shape[1])
    value = objective(Z, beta, lam)
    for _ in range(max_iter):
        active = Z @ beta < 1.0
        gradient = Z[active].T @ (Z[active] @ beta - 1.0) / n + ridge * beta
        if np.max(np.abs(gradient)) < 1e-12:
            break
        hessian = Z[active].T @ Z[active] / n + np.diag(ridge)
        step = newton_step(hessian, gradient)
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-10 and objective(Z, beta + size * step, lam) > value + 1e-4 * size * slope:
            size /= 2
        previous, value = value, objective(Z, beta + size * step, lam)
        if value >= previous:
            value = previous
            break
        beta = beta + size * step
    coef = np.zeros(X.shape[1])
    coef[support] = beta[:-1]
    return Refit(coef, float(beta[-1]), value)


def newton_step(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The solution of the Newton system; the shortest one where the system is singular."""
    try:
        step = np.linalg.solve(hessian, -gradient)
    except np.linalg.LinAlgError:
        step = np.full_like(gradient, np.nan)
    if not np.all(np.isfinite(step)) or step @ gradient > 0:
        step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
    return step
