"""The exact fit of a binary problem on a given support."""

from dataclasses import replace

import numpy as np

from kmargin.core.arrays import Indices, Vector
from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.units import Units
from kmargin.solvers.search.path import SupportPath
from kmargin.solvers.search.swap_search import Candidate, Effort

# Search options that try no swaps and only refit the given support, as precisely as rounding allows.
REFIT = Effort(max_swaps=0, max_pair_swaps=0, max_sweeps=1, tol=1e-14)


def refit(
    problem: BinaryProblem,
    support: Indices,
    coef: Vector | None = None,
    intercept: float = 0.0,
    signs: Vector | None = None,
) -> tuple[Vector, float, float, int]:
    """Minimise loss plus ridge penalty over the coefficients of the columns `support` and the intercept.

    Newton's method starts from `coef` (0 if None) and `intercept`. `signs` has the required sign of each
    coefficient, 0 for either. Returns coefficients, intercept, objective and the number of Newton steps.
    """
    k, design = len(support), problem.design
    if k < design.n_features:
        problem = replace(problem, design=design.take(np.asarray(support)))
    units = replace(Units.of_columns(k), signs=np.zeros(k) if signs is None else signs)
    path = SupportPath(Problem((problem,), units), [k], REFIT)
    (rows,), columns = path.all_rows, np.arange(k)
    coef = np.zeros(k) if coef is None else np.asarray(coef, np.float64)
    start = rows.scaled(columns, coef, intercept if design.fit_intercept else 0.0)
    path.improve(np.array([problem.lam]), Candidate(columns, start[None]))
    found = path.found[k]
    u = np.empty(k + 1)
    u[found.support], u[k] = found.coefs[0, :-1], found.coefs[0, -1]
    coef, intercept, objective = rows.unscaled(columns, u, found.value, problem.lam)
    return coef, intercept, objective, path.n_newton
