"""MM, Algorithm 1 of the paper: each step minimises the surrogate."""

from collections.abc import Callable

import numpy as np

from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers import compiled
from kmargin.solvers.anneal import KNOBS, ProximalDistance
from kmargin.solvers.descend import Descent, Step
from kmargin.solvers.joint_mm import joint_mm_inner
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.steps import MMStep
from kmargin.types import Vector


class MM(ProximalDistance):
    __doc__ = f"""Algorithm 1 of the paper: each step minimises the surrogate.

    One SVD of X serves all rho and all k. Rho is annealed from `rho_start` upwards; between increases the
    penalised objective f_rho is minimised (Algorithm 3).
{KNOBS}
    See Also
    --------
    SD : The same by steepest descent, without an SVD.
    Exchange : The default solver, which solves the same problem by swapping features.
    ConvergenceDisplay : Plots the convergence.

    Examples
    --------
    >>> from kmargin import MM, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> model = SparseSVC(k=2, C=float("inf"), solver=MM(rtol=0.0)).fit(X, y)
    >>> model.support_
    array([0, 1])
    >>> model.solutions_[0].status.name
    'CONVERGED'
    """

    takes_sparse = False  # of X it needs the singular vectors

    def _step(self, problem: Problem | JointProblem) -> Step:
        return problem.mm_step() if isinstance(problem, JointProblem) else MMStep(problem)

    def _compiled_inner(self, problem: ArrayProblem) -> Callable[[Vector, float, float], Descent]:
        U, s, V = problem.design.thin_svd(problem.weights)
        root_weights = np.sqrt(problem.weights)

        def inner(beta: Vector, rho: float, gtol: float) -> Descent:
            return Descent(
                *compiled.descend_mm(
                    U, s, V, problem.y, root_weights, problem.design.n_features, problem.k, problem.lam,
                    problem.penalty_weight(rho), beta, gtol, self.max_inner, self.delay,
                )
            )  # fmt: skip

        return inner

    def _compiled_joint_inner(self, problem: JointProblem) -> Callable[[Vector, float, float], Descent]:
        return joint_mm_inner(problem, self.max_inner, self.delay)
