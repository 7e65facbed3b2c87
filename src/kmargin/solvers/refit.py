"""The exact minimum on a given support, for a problem."""

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.columns import design_columns, design_product
from kmargin.solvers.dual import newton_dual
from kmargin.solvers.newton import newton_from_gram
from kmargin.solvers.panel import build_gram, residual
from kmargin.types import Indices, Vector

TOL = 1e-14  # relative to the objective


def refit(
    problem: Problem, support: Indices, coef: Vector | None = None, intercept: float = 0.0
) -> tuple[Vector, float, float, int]:
    """Minimise loss plus ridge over the coefficients of `support` and the intercept.

    Starts from `coef` and `intercept` where given. Returns coefficients, intercept, objective and
    the number of Newton steps. Solves systems as large as the support, or as the active rows where
    these are fewer.
    """
    support = np.asarray(support, dtype=np.int64)
    coef = np.zeros(len(support)) if coef is None else np.array(coef, dtype=np.float64)
    decision = np.empty(problem.design.n_samples)
    design_product(problem.design.X, support, coef, decision)
    n_active = np.count_nonzero(problem.y * (decision + intercept) < 1)
    solve = _refit_dual if len(support) > n_active else _refit_primal
    return solve(problem, support, coef, float(intercept))


def _refit_primal(
    problem: Problem, support: Indices, coef: Vector, intercept: float
) -> tuple[Vector, float, float, int]:
    design, k = problem.design, len(support)
    c = np.sqrt(problem.weights / design.n_samples)
    t = problem.y * c
    panel, ridge = np.zeros((k + 2, design.n_samples)), np.full(k + 2, problem.lam)
    design_columns(design.X, t, support, np.arange(k), k, panel)
    panel[k] = t if design.fit_intercept else 0.0
    panel[k + 1] = c
    ridge[k] = 0.0 if design.fit_intercept else 1.0
    columns, u = np.arange(k + 1), np.append(coef, intercept if design.fit_intercept else 0.0)
    resid, gram = np.empty(design.n_samples), np.empty((k + 2, k + 2))
    residual(panel, columns, u, resid)
    active = resid > 0
    build_gram(panel, active, gram)
    value, n_iter = newton_from_gram(
        panel, ridge, gram, active, columns, u, active.copy(), resid, np.inf, TOL
    )
    return u[:k], float(u[k]), float(value), int(n_iter)


def _refit_dual(
    problem: Problem, support: Indices, coef: Vector, intercept: float
) -> tuple[Vector, float, float, int]:
    design = problem.design
    c = np.sqrt(problem.weights / design.n_samples)
    t = problem.y * c
    resid = np.empty(design.n_samples)
    design_product(design.X, support, coef, resid)
    resid = c - t * (resid + intercept)
    nothing = np.empty(0, np.int64), 0, np.empty((0, len(support))), np.empty((0, 0))
    value, intercept, *_, n_iter = newton_dual(
        design.X,
        t,
        c,
        problem.lam,
        design.fit_intercept,
        support,
        coef,
        intercept,
        resid,
        *nothing,
        np.inf,
        TOL,
    )
    return coef, float(intercept), float(value), int(n_iter)
