"""What every solver can do."""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from kmargin.addresses import Documented
from kmargin.problem import Problem
from kmargin.solvers.result import Solution
from kmargin.units import Units


class Solver(Documented, BaseEstimator):
    """What every solver can do: solve one problem for several ridges and several k.

    A solver of one's own derives from this, has its knobs as parameters of ``__init__`` (so that
    `get_params`, `set_params` and `clone` work on them), and defines `check` and `iter_grid`. It is given to
    an estimator as ``SparseSVC(solver=MySolver())``. `iter_joint_grid` is for machines that share their
    features, and for groups, features to keep or avoid, and signs; without it users are told what to write.

    Attributes
    ----------
    wants_blas_threads : bool
        Whether BLAS may take all cores while a single machine is fitted.
    takes_sparse : bool
        Whether products with X are all it needs, so that a sparse X stays sparse.
    is_monotone : bool
        Whether more features are never worse along its paths.

    See Also
    --------
    Exchange : The default.
    MM, SD : The paper's.
    Solution : What a solver yields.

    Examples
    --------
    The default solver under a limit of its own:

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
        """Raise ValueError for a knob that makes no sense; called before anything is solved."""
        raise NotImplementedError(self._missing("check(self)"))

    def in_folds(self) -> "Solver":
        """This solver as it is used within the folds of a cross-validation.

        Returns
        -------
        Solver
            Itself, or one that tries less hard.
        """
        return self

    def iter_grid(
        self, problem: Problem, lams: Sequence[float], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Solution]:
        """The solutions for the first ridge and each k, then those for the second ridge, and so on.

        Parameters
        ----------
        problem : Problem
            Two classes: labels of -1 and 1, weights, and X behind the questions that its `design` answers.
        lams : list of float
            Ridges, from strong to weak.
        ks : list of int
            From dense to sparse.
        rng : numpy.random.Generator
            The only source of chance.

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
        """The same for machines that share what k counts.

        Parameters
        ----------
        problems : list of Problem
            One for each machine.
        lams : list of list of float
            ``lams[c][m]`` is the ridge of machine m at the c-th C.
        ks : list of int
            From dense to sparse.
        units : Units
            What k counts: columns or groups of them, which are always in, which signs they have.
        rng : numpy.random.Generator
            The only source of chance.

        Yields
        ------
        tuple of Solution
            One for each machine, for one C and one k.
        """
        raise ValueError(
            f"{type(self).__name__} finds features for one machine at a time. Use shared=False, and no "
            "groups, keep, avoid or signs; or solver='exchange', 'mm' or 'sd'."
        )

    def _missing(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method.split('(')[0]}. Define {method}; help(kmargin.Solver) says what it does."
        )
