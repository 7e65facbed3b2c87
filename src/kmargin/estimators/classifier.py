"""What the linear and the kernel machine have in common."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kmargin import validate
from kmargin.multiclass import SCHEMES, choose_classes, combine_decisions
from kmargin.path import DesignOf, solve_machines, warn_unless_converged
from kmargin.solvers import Solution
from kmargin.types import Matrix
from kmargin.validate import Samples


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """Solves for several machines and decides by their decision values.

    A subclass says what the machines are made of: `fit` calls :meth:`_solve` with their designs,
    `_machine_decisions` computes their decision values.
    """

    k: Any
    C: float
    solver: Any
    multi_class: str
    class_weight: Any
    n_jobs: int | None
    random_state: Any

    def decision_function(self, X: Any) -> Matrix:
        """How far each sample lies on which side.

        Shape (n_samples,) for two classes, positive for ``classes_[1]``. For more classes (n_samples,
        n_classes), the largest entry of a row being the predicted class: with one versus one, the
        votes for each class plus a tie-break below 1/2 from the summed decision values.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return combine_decisions(self._machine_decisions(X), len(self.classes_), self.multi_class)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample."""
        return choose_classes(self.decision_function(X), self.classes_)

    def set_params(self, **params: Any) -> "MarginClassifier":
        """Set parameters, those of a solver object as ``solver__name``."""
        nested = [name for name in params if name.startswith("solver__")]
        solver = params.get("solver", self.solver)
        if nested and isinstance(solver, str):
            raise ValueError(
                f"{nested[0]} cannot be set while solver={solver!r} is a name. "
                f"Give the solver as an object, such as solver={solver.upper()}(), and then set it."
            )
        super().set_params(**params)
        return self

    def _check_parameters(self) -> None:
        validate.check_k(self.k)
        validate.check_C(self.C)
        validate.check_choice("multi_class", self.multi_class, SCHEMES)
        validate.resolve_solver(self.solver)

    def _solve(self, design_of: DesignOf, samples: Samples, k: int) -> tuple[Solution, ...]:
        """Fit the machines; set what every classifier has."""
        solved = solve_machines(
            design_of,
            samples,
            [k],
            C=self.C,
            solver=validate.resolve_solver(self.solver),
            multi_class=self.multi_class,
            n_jobs=self.n_jobs,
            seed=validate.resolve_seed(self.random_state),
        )
        solutions = tuple(solution for (solution,) in solved)
        warn_unless_converged(solutions)
        dtype = samples.X.dtype
        self.classes_ = samples.classes
        self.solutions_ = solutions
        self.intercept_ = np.array([s.intercept for s in solutions], dtype=dtype)
        self.objective_ = np.array([s.objective for s in solutions])
        self.n_iter_ = np.array([s.n_iter for s in solutions])
        return solutions

    def _machine_decisions(self, X: Matrix) -> Matrix:
        """One column per machine, of the dtype of X."""
        raise NotImplementedError
