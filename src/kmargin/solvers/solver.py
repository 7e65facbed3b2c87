"""What every solver can do."""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from kmargin.addresses import Documented
from kmargin.problem import Problem
from kmargin.solvers.result import Solution
from kmargin.units import Units


class Solver(Documented, BaseEstimator):
    """Base class of solvers, which solve a problem for several ridges and several k.

    A custom solver derives from this class, has its options as parameters of ``__init__`` (so that
    `get_params`, `set_params` and `clone` work), and defines `check` and `iter_grid`. Pass it to an estimator
    as ``SparseSVC(solver=MySolver())``. `iter_joint_grid` is needed for binary classifiers that share their
    features, and for `groups`, `keep`, `avoid` and `signs`; without it an error tells the user what to write
    instead.

    Attributes
    ----------
    wants_blas_threads : bool
        Whether BLAS may use all cores while a single binary classifier is fitted.
    takes_sparse : bool
        Whether the solver needs only products with X, so that a sparse X stays sparse.
    is_monotone : bool
        Whether the objective never rises with k along its paths.

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
    ...     def iter_grid(self, problem, lams, ks, rng):
    ...         return Exchange().iter_grid(problem, lams, [min(k, self.at_most) for k in ks], rng)
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> SparseSVC(k=5, solver=Frugal()).fit(X, y).support_
    array([0, 1])
    """

    wants_blas_threads: bool = True

    takes_sparse: bool = True

    is_monotone: bool = False

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

    def iter_grid(
        self, problem: Problem, lams: Sequence[float], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Solution]:
        """The solutions for the first ridge and each k, then those for the second ridge, and so on.

        Parameters
        ----------
        problem : Problem
            A binary problem: labels -1 and 1, weights, and X through the methods of its `design`.
        lams : list of float
            Ridges, from strong to weak.
        ks : list of int
            From dense to sparse.
        rng : numpy.random.Generator
            The only source of randomness.

        Yields
        ------
        Solution
            With at most k nonzero coefficients, for one ridge and one k.
        """
        raise NotImplementedError(self._missing("iter_grid(self, problem, lams, ks, rng)"))

    def iter_joint_grid(
        self,
        problems: Sequence[Problem],
        lams: Sequence[Sequence[float]],
        ks: Sequence[int],
        units: Units,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Solution, ...]]:
        """The same for binary classifiers that share what k counts.

        Parameters
        ----------
        problems : list of Problem
            One for each binary classifier.
        lams : list of list of float
            ``lams[c][m]`` is the ridge of binary classifier m at the c-th C.
        ks : list of int
            From dense to sparse.
        units : Units
            What k counts: columns or groups of them, which are always in, which signs they have.
        rng : numpy.random.Generator
            The only source of randomness.

        Yields
        ------
        tuple of Solution
            One for each binary classifier, for one C and one k.
        """
        raise ValueError(
            f"{type(self).__name__} selects features for one binary classifier at a time. Use shared=False, "
            "and no groups, keep, avoid or signs; or solver='exchange', 'mm' or 'sd'."
        )

    def _missing(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method.split('(')[0]}. Define {method}; help(kmargin.Solver) says what it does."
        )
