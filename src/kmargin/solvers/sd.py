"""SD, Algorithm 2 of the paper: steepest descent on the surrogate."""

from collections.abc import Callable

from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers import compiled
from kmargin.solvers.anneal import KNOBS, ProximalDistance
from kmargin.solvers.descend import Descent, Step
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.joint_sd import joint_sd_inner
from kmargin.solvers.steps import SDStep
from kmargin.types import Vector


class SD(ProximalDistance):
    __doc__ = f"""Algorithm 2 of the paper: steepest descent with an exact line search on the surrogate.

    Rho is annealed from `rho_start` upwards; between increases the penalised objective f_rho is minimised
    (Algorithm 3).
{KNOBS}
    See Also
    --------
    MM : The same by exact minimisation of the surrogate.
    Exchange : The default solver, which solves the same problem by swapping features.
    ConvergenceDisplay : Plots the convergence.

    Examples
    --------
    >>> from kmargin import SD, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> SparseSVC(k=2, solver=SD(rtol=0.0)).fit(X, y).support_
    array([0, 1])
    """

    def _step(self, problem: Problem | JointProblem) -> Step:
        return SDStep(problem)

    def _compiled_inner(self, problem: ArrayProblem) -> Callable[[Vector, float, float], Descent]:
        design = problem.design
        stored = design.stored
        if stored is None:  # a loop cannot be compiled over what is never held
            return self._readable_inner(problem)

        def inner(beta: Vector, rho: float, gtol: float) -> Descent:
            return Descent(
                *compiled.descend_sd(
                    stored, design.fit_intercept, problem.y, problem.weights, problem.k, problem.lam,
                    problem.penalty_weight(rho), beta, gtol, self.max_inner, self.delay,
                )
            )  # fmt: skip

        return inner

    def _compiled_joint_inner(self, problem: JointProblem) -> Callable[[Vector, float, float], Descent]:
        return joint_sd_inner(problem, self.max_inner, self.delay) or self._readable_inner(problem)
