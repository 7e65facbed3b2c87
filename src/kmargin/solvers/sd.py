"""SD, Algorithm 2 of the paper: steepest descent on the surrogate."""

from kmargin.solvers.proximal.anneal import KNOBS, ProximalDistance
from kmargin.solvers.proximal.compiled import sd_descent
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import Descend, Step, sd_step


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

    def _step(self, problem: PenalisedProblem) -> Step:
        return sd_step

    def _compiled(self, problem: PenalisedProblem) -> Descend | None:
        return sd_descent(problem, self.max_inner, self.delay)
