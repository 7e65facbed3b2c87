"""What every solver can do."""

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from kmargin.addresses import Documented
from kmargin.problem import Problem
from kmargin.solvers.result import Solution
from kmargin.units import Units


class Solver(Documented, BaseEstimator):
    """Solves one problem for several ridges and several k.

    Knobs are constructor parameters, so that `get_params`, `set_params` and `clone` work on them.
    """

    #: whether BLAS may take all cores while a single machine is fitted
    wants_blas_threads: bool = True

    #: whether products with X are all it needs, so that a sparse X stays sparse
    takes_sparse: bool = True

    #: whether more features are never worse along its paths
    is_monotone: bool = False

    def check(self) -> None:
        """Raise ValueError for a knob that makes no sense."""
        raise NotImplementedError

    def in_folds(self) -> "Solver":
        """This solver as it is used within the folds of a cross-validation."""
        return self

    def iter_grid(
        self, problem: Problem, lams: Sequence[float], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Solution]:
        """Yield the solutions for the first ridge and each k, then those for the second ridge, ...

        `lams` and `ks` descend: from strong ridge to weak, from dense to sparse.
        """
        raise NotImplementedError

    def iter_joint_grid(
        self,
        problems: Sequence[Problem],
        lams: Sequence[Sequence[float]],
        ks: Sequence[int],
        units: Units,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Solution, ...]]:
        """The same for machines that share what k counts: a solution of each.

        ``lams[c][m]`` is the ridge of machine m at the c-th C. What k counts is `units`.
        """
        raise ValueError(
            f"{type(self).__name__} finds features for one machine at a time. Use shared=False, and no "
            "groups, keep, avoid or signs; or solver='exchange', 'mm' or 'sd'."
        )
