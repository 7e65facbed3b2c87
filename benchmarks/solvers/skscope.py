"""skscope: splicing for any smooth objective; it is given ours."""

import numpy as np

from benchmarks import N_THREADS
from benchmarks.solvers.fit import Competitor, Fit, two_class_fit


class Skscope(Competitor):
    """Squared hinge plus ridge, the intercept always selected.

    Objective and gradient are NumPy functions: at these sizes they are four times faster than the
    same ones compiled by JAX, which would also compile anew for every shape.
    """

    name = "skscope"
    module = "skscope"
    distribution = "skscope"
    levels = "k"

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        from skscope import ScopeSolver

        n, p = X.shape

        def violations(beta: np.ndarray) -> np.ndarray:
            return np.maximum(0.0, 1.0 - y * (X @ beta[:-1] + beta[-1]))

        def objective(beta: np.ndarray, _: object) -> float:
            return 0.5 * np.mean(violations(beta) ** 2) + 0.5 * lam * beta[:-1] @ beta[:-1]

        def gradient(beta: np.ndarray, _: object) -> np.ndarray:
            slopes = -y * violations(beta) / n
            return np.append(slopes @ X + lam * beta[:-1], slopes.sum())

        solver = ScopeSolver(p + 1, k + 1, sample_size=n, preselect=[p], thread=N_THREADS)
        beta = np.asarray(solver.solve(objective, gradient=gradient))
        return two_class_fit(y, beta[:-1], beta[-1], k)
