"""MM, Algorithm 1 of the paper: each step minimises the surrogate."""

from kmargin.solvers.proximal.anneal import KNOBS, ProximalDistance
from kmargin.solvers.proximal.compiled import mm_descent
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import Descend, MMStep


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

    takes_sparse = False  # it needs the singular vectors of X

    def _step(self, problem: PenalisedProblem) -> MMStep:
        if len(problem.in_memory) < len(problem.problems):
            raise ValueError(
                'solver="mm" works with the singular vectors of X and needs X as a NumPy array: use '
                'solver="exchange" or solver="sd" for X on a device, or convert X.'
            )
        return MMStep(problem)

    def _compiled(self, problem: PenalisedProblem) -> Descend:
        return mm_descent(problem, self.max_inner, self.delay)
