"""The exact minimum on a given support, for a problem."""

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.conjugate import newton_conjugate
from kmargin.solvers.dual import DualRows, n_dual_numbers, newton_dual
from kmargin.solvers.newton import newton_from_gram
from kmargin.solvers.panel import build_gram, make_panel, residual
from kmargin.types import Indices, Vector

TOL = 1e-14  # relative to the objective


def refit(
    problem: Problem, support: Indices, coef: Vector | None = None, intercept: float = 0.0
) -> tuple[Vector, float, float, int]:
    """Minimise loss plus ridge over the coefficients of `support` and the intercept.

    Starts from `coef` and `intercept` where given. Returns coefficients, intercept, objective and
    the number of Newton steps. Solves systems as large as the support, or as the active rows where
    these are fewer; where neither fits, by products alone.
    """
    support = np.asarray(support, dtype=np.int64)
    coef = np.zeros(len(support)) if coef is None else np.array(coef, dtype=np.float64)
    design = problem.design
    decision = design.product(support, coef) + intercept
    n_active = int(np.count_nonzero(problem.y * decision < 1))
    size = design.n_samples * (len(support) + 2)
    solve = _refit_primal
    if len(support) > n_active:
        size, solve = n_dual_numbers(n_active, len(support)), _refit_dual
    if not design.fits(size):
        solve = _refit_products
    return solve(problem, support, coef, float(intercept))


def _refit_primal(
    problem: Problem, support: Indices, coef: Vector, intercept: float
) -> tuple[Vector, float, float, int]:
    design, k = problem.design, len(support)
    c = np.sqrt(problem.weights / design.n_samples)
    t = problem.y * c
    panel, ridge = make_panel(design, t, c, problem.lam, support, k)
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
    resid = c - t * (design.product(support, coef) + intercept)
    rows = DualRows.none(len(support))
    value, intercept, _, n_iter = newton_dual(
        design, t, c, problem.lam, support, coef, intercept, resid, rows, np.inf, TOL
    )
    return coef, float(intercept), float(value), int(n_iter)


def _refit_products(
    problem: Problem, support: Indices, coef: Vector, intercept: float
) -> tuple[Vector, float, float, int]:
    design = problem.design
    c = np.sqrt(problem.weights / design.n_samples)
    t = problem.y * c
    resid = c - t * (design.product(support, coef) + intercept)
    columns = design if len(support) == design.n_features else design.take(support)
    value, intercept, n_iter = newton_conjugate(
        columns, t, c, problem.lam, coef, intercept, resid, np.inf, TOL
    )
    return coef, float(intercept), float(value), int(n_iter)
