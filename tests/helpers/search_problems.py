"""Problems for tests of the search, and their minima by numpy and scipy alone."""

from itertools import pairwise

import numpy as np
from penalised_problems import make_problems, make_units
from scipy.optimize import minimize

from kmargin.core.problem import Problem
from kmargin.data.blocks import Block
from kmargin.data.blocks.problem import LocalBlocks, block_problem
from kmargin.data.blocks.sums import View
from kmargin.solvers.refit.rows import make_rows
from kmargin.solvers.search.panels import UnitGains
from kmargin.solvers.search.swap_search import Candidate
from kmargin.solvers.search.working_set import WorkingSet

GROUPS = [2, 1, 3, 1, 2, 3]

CASES = {
    "one problem": {"n_problems": 1},
    "one problem without intercept": {"n_problems": 1, "fit_intercept": False},
    "one problem without ridge": {"n_problems": 1, "lam": 0.0},
    "groups of one problem": {"n_problems": 1, "sizes": GROUPS},
    "three problems": {},
    "three problems without intercept": {"fit_intercept": False},
    "three problems without ridge": {"lam": 0.0},
    "groups of three problems": {"sizes": GROUPS},
    "groups without intercept": {"sizes": GROUPS, "fit_intercept": False},
    "groups without ridge": {"sizes": GROUPS, "lam": 0.0},
}


def make_case(sizes=(1,) * 12, *, fixed=(), signs=None, n_samples=60, **options) -> Problem:
    """Binary problems that share units of so many columns, each with its own rows, weights and ridge."""
    binary = make_problems(n_features=sum(sizes), n_samples=n_samples, **options)
    return Problem(tuple(binary), make_units(sizes, fixed=fixed, signs=signs))


def in_blocks(problem, ends=(0, 17, 18, 60)):
    """A binary problem with its rows in blocks."""
    X, codes, ends = problem.design.X, (problem.y > 0).astype(int), [*ends[:-1], len(problem.y)]
    parts = enumerate(pairwise(ends))
    blocks = LocalBlocks([Block(i, X[a:b], codes[a:b], problem.weights[a:b]) for i, (a, b) in parts])
    view = View(positive=1, negative=0, class_weight=np.ones(2))
    return block_problem(blocks, view, problem.lam, problem.design.fit_intercept)


def make_search(problem: Problem, support, *, size=None, tol=1e-12, remote=False) -> WorkingSet:
    """A search at these units, through panels of all units or of `size`."""
    binary = [in_blocks(one) for one in problem.binary] if remote else problem.binary
    units, rows = problem.units, [make_rows(one) for one in binary]
    start = Candidate.start(np.array(support, np.int64), units, len(rows))
    lams = np.array([one.lam for one in binary])
    gains = [UnitGains(each, units) for each in rows]
    return WorkingSet(rows, units, lams, size or units.n_units, start, tol, gains)


def fold(problem, columns):
    """Columns times labels and roots of weights, the intercept last; the target; the ridges."""
    c = np.sqrt(problem.weights / len(problem.y))
    ones = np.ones((len(c), int(problem.design.fit_intercept)))
    A = np.hstack([problem.design.X[:, columns], ones]) * (problem.y * c)[:, None]
    return A, c, np.append(np.full(len(columns), problem.lam), np.zeros(ones.shape[1]))


def residuals(problem, columns, u):
    """At the coefficients u, whose last entry is the intercept."""
    A, c, _ = fold(problem, columns)
    return c - A @ u[: A.shape[1]]


def quadratic_minimum(problem, columns, active):
    """The minimum of the quadratic that holds on the active rows, by least squares with the ridge as rows."""
    A, c, ridge = fold(problem, columns)
    J, b = np.vstack([A[active], np.diag(np.sqrt(ridge))]), np.append(c[active], np.zeros(len(ridge)))
    u = np.linalg.lstsq(J, b, rcond=None)[0]
    return 0.5 * np.sum((b - J @ u) ** 2)


def quadratic_minimum_of_all(problem, search, units):
    """The same summed over the binary problems, on the rows that are active in a search."""
    columns, now = (
        problem.units.columns_of(np.array(of, np.int64)) for of in (sorted(units), search.support)
    )
    return sum(
        quadratic_minimum(one, columns, residuals(one, now, u) > 0)
        for one, u in zip(problem.binary, search.coefs, strict=True)
    )


def lowest_by_lbfgs(problem, columns, signs=None):
    """The minimum of the objective on some columns, under required signs."""
    A, c, ridge = fold(problem, columns)

    def function(u):
        short = np.maximum(c - A @ u, 0)
        return 0.5 * short @ short + 0.5 * ridge @ u**2, ridge * u - A.T @ short

    signs = np.zeros(A.shape[1]) if signs is None else np.append(signs, np.zeros(A.shape[1] - len(columns)))
    bounds = [(0 if s > 0 else None, 0 if s < 0 else None) for s in signs]
    options = {"maxiter": 10**5, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-12}
    start = np.zeros(A.shape[1])
    return float(minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)


def lowest_of_all(problem: Problem, units):
    """The sum over the binary problems of their minima on some units, by L-BFGS."""
    columns = problem.units.columns_of(np.array(sorted(units), np.int64))
    signs = problem.units.signs[columns]
    return sum(lowest_by_lbfgs(one, columns, signs) for one in problem.binary)
