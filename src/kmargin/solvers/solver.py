"""What every solver can do, how its options are checked, and where solvers start."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kmargin.core.arrays import Vector
from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.summary import Documented
from kmargin.solvers.solution import Ending, Solution, Status


class Solver(Documented, BaseEstimator):
    """Base class of solvers, which solve a problem for several ridges and several k.

    A custom solver derives from this class, has its options as parameters of ``__init__`` (so that
    `get_params`, `set_params` and `clone` work), and defines `check` and `solve_grid`. Pass it to an
    estimator as ``SparseSVC(solver=MySolver())``.

    Attributes
    ----------
    wants_blas_threads : bool
        Whether BLAS may use all cores while a single binary classifier is fitted.
    takes_sparse : bool
        Whether the solver needs only products with X, so that a sparse X stays sparse.
    is_monotone : bool
        Whether the objective never rises with k along its paths.
    skips_repeats : bool
        Whether columns that repeat an earlier one are left out of the units.

    See Also
    --------
    Exchange : The default.
    MM, SD : The paper's.
    Solution : What a solver yields.

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
        """Raise ValueError for an invalid option; called before anything is solved."""
        raise NotImplementedError(self._missing("check(self)"))

    def in_folds(self) -> "Solver":
        """This solver as it is used within the folds of a cross-validation.

        Returns
        -------
        Solver
            Itself, or a less thorough one.
        """
        return self

    def solve_grid(
        self,
        problem: Problem,
        lams: Sequence[Sequence[float]],
        ks: Sequence[int],
        rng: np.random.Generator,
    ) -> Iterator[tuple[Solution, ...]]:
        """Solve for the first ridges and each k, then for the second ridges, and so on.

        Parameters
        ----------
        problem : Problem
            Its `binary` problems have labels -1 and 1, weights, and X through the methods of their `design`.
            They share its `units`: columns or groups of them, which are always in, which signs they have.
        lams : list of list of float
            ``lams[c][m]`` is the ridge of binary problem m at the c-th C, from strong to weak.
        ks : list of int
            From dense to sparse.
        rng : numpy.random.Generator
            The only source of randomness.

        Yields
        ------
        tuple of Solution
            One for each binary problem, for one C and one k. At most k units have nonzero coefficients.
        """
        raise NotImplementedError(self._missing("solve_grid(self, problem, lams, ks, rng)"))

    def _missing(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method.split('(')[0]}. Define {method}; help(kmargin.Solver) says what it does."
        )


def check_knobs(solver: Any, **rules: tuple[bool, str]) -> None:
    """Raise ValueError for the first knob that is not fine; each comes with what is expected of it."""
    for name, (fine, expected) in rules.items():
        if not fine:
            value = getattr(solver, name)
            raise ValueError(f"{name}={value!r} is not valid for {type(solver).__name__}. Use {expected}.")


# Under a ridge this strong no coefficient moves the objective by a digit: the intercept alone is the
# solution.
STRONGEST_RIDGE = 1e100


def univariate_start(problem: BinaryProblem) -> Vector:
    """Each feature's own least-squares slope, and the mean label as intercept (eq. 6 of the paper).

    A constant feature explains nothing and gets 0. What counts as constant is a spread within the
    rounding error of the feature's mean, so that an offset like 0.1 cannot pass for variation.
    """
    design = problem.design
    mean, variance, covariance = problem.moments()
    varies = variance > (design.n_samples * np.finfo(np.float64).eps * mean) ** 2
    beta = np.zeros(design.n_parameters)
    np.divide(covariance, variance, out=beta[: design.n_features], where=varies)
    beta[design.n_features :] = problem.mean_label()
    return beta


def intercept_only(problem: BinaryProblem) -> Vector:
    """The minimum over S_0: no coefficients, the best constant as intercept."""
    beta = np.zeros(problem.design.n_parameters)
    beta[problem.design.n_features :] = problem.best_constant()
    return beta


def bare_solution(problem: BinaryProblem, status: Status) -> Solution:
    """The intercept alone."""
    beta = intercept_only(problem)
    return Solution.from_beta(
        beta,
        problem.design.n_features,
        objective=problem.loss_without_features(),
        projection_cost=0.0,
        status=status,
        n_iter=0,
        ending=Ending.INTERCEPT,
    )


def normal_start(problem: BinaryProblem, rng: np.random.Generator) -> Vector:
    """Independent standard normal parameters, as in the paper's study of initial conditions."""
    return rng.standard_normal(problem.design.n_parameters)
