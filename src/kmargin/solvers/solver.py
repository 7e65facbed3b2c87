"""The base class of solvers, the check of their options, and starting values."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kmargin.core.arrays import Vector
from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.summary import Documented
from kmargin.solvers.solution import Ending, Regime, Solution, Status


class Solver(Documented, BaseEstimator):
    """Base class of solvers, which solve a problem for several ridges and several k.

    A custom solver derives from this class, has its options as parameters of ``__init__`` (so that
    `get_params`, `set_params` and `clone` work), and defines `check` and `solve_grid`. Pass it to an
    estimator as ``SparseSVC(solver=MySolver())``.

    Attributes
    ----------
    wants_blas_threads : bool
        Whether BLAS may use several threads in a fit that calls `solve_grid` once. Other fits use one thread.
    takes_sparse : bool
        Whether the solver needs only products with X, so that a sparse X stays sparse.
    is_monotone : bool
        Whether a larger k gives no higher objective. If rounding errors break this, a fit repairs it: it
        replaces the solution for the larger k by that for the smaller one.
    skips_repeats : bool
        Whether columns of X that equal an earlier column are left out of the units that k counts.

    See Also
    --------
    Exchange : The default solver.
    MM, SD : The paper's solvers.
    Solution : The result for one binary problem, one k and one ridge.

    Examples
    --------
    The default solver with an upper limit on k:

    >>> from kmargin import Exchange, Solver, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> class Frugal(Solver):
    ...     def __init__(self, at_most=2):
    ...         self.at_most = at_most
    ...     def check(self):
    ...         if self.at_most < 0:
    ...             raise ValueError(f"at_most={self.at_most} leaves nothing. Use an integer >= 0.")
    ...     def solve_grid(self, problem, lams, ks, rng):
    ...         return Exchange().solve_grid(problem, lams, [min(k, self.at_most) for k in ks], rng)
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> SparseSVC(k=5, solver=Frugal()).fit(X, y).support_
    array([0, 1])
    """

    wants_blas_threads: bool = True
    takes_sparse: bool = True
    is_monotone: bool = False
    skips_repeats: bool = False

    def check(self) -> None:
        """Raise ValueError if an option of this solver is invalid; called before anything is solved."""
        raise NotImplementedError(self._missing("check(self)"))

    def in_folds(self) -> "Solver":
        """Return the solver that takes the place of this one in the folds of a cross-validation.

        Returns
        -------
        Solver
            This solver itself, or a less thorough one.
        """
        return self

    def solve_grid(
        self, problem: Problem, lams: Sequence[Sequence[float]], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[Solution, ...]]:
        """Solve a problem for each k with the first ridges, then for each k with the second, and so on.

        Parameters
        ----------
        problem : Problem
            Its `binary` problems have labels -1 and 1, weights, and X through the methods of their `design`.
            They share its `units`, which say what k counts (columns or groups of columns), which units must
            be in every model, and which signs the coefficients may have.
        lams : list of list of float
            ``lams[c][m]`` is the ridge of binary problem m at the c-th C; ridges descend as c grows.
        ks : list of int
            The values of k, in descending order.
        rng : numpy.random.Generator
            The only source of randomness.

        Yields
        ------
        tuple of Solution
            For one C and one k, the solution of each binary problem. Together they use at most k units.
        """
        raise NotImplementedError(self._missing("solve_grid(self, problem, lams, ks, rng)"))

    def _missing(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method.split('(')[0]}. Define {method}; help(kmargin.Solver) says what it does."
        )


def check_options(solver: Any, **rules: tuple[bool, str]) -> None:
    """Raise ValueError for the first invalid option of a solver.

    `rules` has for each option name whether its value is valid, and a text that says which values are.
    """
    for name, (is_valid, expected) in rules.items():
        if not is_valid:
            value = getattr(solver, name)
            raise ValueError(f"{name}={value!r} is not valid for {type(solver).__name__}. Use {expected}.")


# If the ridge lam is larger, all coefficients are 0 up to rounding. Solvers then return the intercept alone.
STRONGEST_RIDGE = 1e100


def univariate_start(problem: BinaryProblem) -> Vector:
    """Return slopes of least-squares fits of the label on one feature each, and the mean label as intercept.

    MM and SD start from them (eq. 6 of the paper). Constant features get 0. A feature counts as constant if
    its standard deviation is within the rounding error of its mean, as for a column that is 0.1 everywhere.
    """
    design = problem.design
    mean, variance, covariance = problem.moments()
    varies = variance > (design.n_samples * np.finfo(np.float64).eps * mean) ** 2
    beta = np.zeros(design.n_parameters)
    np.divide(covariance, variance, out=beta[: design.n_features], where=varies)
    beta[design.n_features :] = problem.mean_label()
    return beta


def intercept_only(problem: BinaryProblem) -> Vector:
    """Return the parameters of the best model without features: coefficients 0, then the best intercept."""
    beta = np.zeros(problem.design.n_parameters)
    beta[problem.design.n_features :] = problem.best_constant()[0]
    return beta


def bare_solution(problem: BinaryProblem, status: Status, regime: Regime | None = None) -> Solution:
    """Return the solution for k = 0: the intercept of least mean loss alone, whatever the ridge is."""
    intercept, objective = problem.best_constant()
    return Solution(
        support=np.empty(0, np.intp),
        coef=np.empty(0),
        intercept=intercept,
        n_features=problem.design.n_features,
        objective=objective,
        projection_cost=0.0,
        status=status,
        n_iter=0,
        ending=Ending.INTERCEPT,
        regime=regime,
    )


def normal_start(problem: BinaryProblem, rng: np.random.Generator) -> Vector:
    """Return a random start of MM or SD: standard normal numbers, as in the paper's study of starts."""
    return rng.standard_normal(problem.design.n_parameters)
