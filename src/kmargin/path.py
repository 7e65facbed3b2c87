"""A warm-started sweep over k, for every machine of a classification task."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_X_y
from threadpoolctl import threadpool_limits

from kmargin import validate
from kmargin.design import DenseDesign
from kmargin.multiclass import (
    SCHEMES,
    Machine,
    choose_classes,
    class_pairs,
    combine_decisions,
    machine_names,
    make_machines,
)
from kmargin.problem import Problem
from kmargin.progress import progress_bar
from kmargin.solvers import DEFAULT, Solution
from kmargin.solvers.anneal import ProximalDistance
from kmargin.types import Indices, Matrix, Vector
from kmargin.validate import Samples

if TYPE_CHECKING:
    import pandas as pd

DesignOf = Callable[[Machine], DenseDesign]


class LinearDesigns:
    """The design of each machine is its rows of X; machines on all rows share one (and its SVD)."""

    def __init__(self, X: Matrix, fit_intercept: bool) -> None:
        self.X = X
        self.fit_intercept = fit_intercept
        self.whole: DenseDesign | None = None

    def __call__(self, machine: Machine) -> DenseDesign:
        if machine.rows is not None:
            return DenseDesign(self.X[machine.rows], self.fit_intercept)
        if self.whole is None:
            self.whole = DenseDesign(self.X, self.fit_intercept)
        return self.whole


def solve_machines(
    design_of: DesignOf,
    samples: Samples,
    ks: Sequence[int],
    *,
    C: float,
    solver: ProximalDistance,
    multi_class: str,
    n_jobs: int | None,
    seed: int,
    verbose: int = 0,
) -> list[list[Solution]]:
    """For each machine its solutions, one per k in the order given.

    The compiled loops release the GIL, so threads are the hint to joblib; any other backend that
    the caller has configured is taken as well. While machines run side by side, BLAS keeps to one
    thread each.
    """
    n_classes = len(samples.classes)
    n_machines = len(class_pairs(n_classes, multi_class))
    machines = make_machines(samples.codes, n_classes, multi_class)
    side_by_side = n_machines > 1 and effective_n_jobs(n_jobs) > 1
    with progress_bar("path over k", n_machines * len(ks), verbose) as bar:
        arguments = (
            (design_of, machine, samples.weights, ks, C, solver, np.random.default_rng([seed, index]))
            for index, machine in enumerate(machines)
        )
        if not side_by_side:
            return [solve_machine(*a, on_solution=bar.advance) for a in arguments]
        solved = []
        with threadpool_limits(1, user_api="blas"):
            pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
            for solutions in pool(delayed(solve_machine)(*a) for a in arguments):
                solved.append(solutions)
                bar.advance(len(ks))
        return solved


def solve_machine(
    design_of: DesignOf,
    machine: Machine,
    weights: Vector,
    ks: Sequence[int],
    C: float,
    solver: ProximalDistance,
    rng: np.random.Generator,
    on_solution: Callable[[], None] | None = None,
) -> list[Solution]:
    """One machine's path."""
    design = design_of(machine)
    weights = weights if machine.rows is None else weights[machine.rows]
    total_weight = float(weights.sum())
    problem = Problem(
        design,
        machine.y,
        weights * (design.n_samples / total_weight),
        validate.ridge(C, total_weight),
        design.n_features,
    )
    solutions = []
    for solution in solver.iter_path(problem, ks, rng):
        solutions.append(solution)
        if on_solution is not None:
            on_solution()
    return solutions


def warn_unless_converged(solutions: Sequence[Solution]) -> None:
    """One ConvergenceWarning for all machines that the solver left before it was done."""
    unfinished = Counter(s.status for s in solutions if not s.is_sound)
    for status, count in unfinished.items():
        which = "" if len(solutions) == 1 else f"{count} of {len(solutions)} solutions: "
        warnings.warn(which + status.value, ConvergenceWarning, stacklevel=3)


@dataclass(frozen=True)
class SparsityPath:
    """Solutions from dense to sparse."""

    ks: Indices  # descending
    coefs: Matrix  # (n_ks, n_machines, n_features); one machine when there are two classes
    intercepts: Matrix  # (n_ks, n_machines)
    objectives: Matrix  # (n_ks, n_machines): loss plus ridge
    solutions: tuple[tuple[Solution, ...], ...]  # [k][machine]
    classes: np.ndarray
    multi_class: str

    def decision_function(self, X: Any, k: int) -> Matrix:
        """As `SparseSVC.decision_function`, for the fit with this k."""
        position = self._position(k)
        X = check_array(X, dtype=[np.float64, np.float32])
        n_features = self.coefs.shape[-1]
        if X.shape[1] != n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but the path was fitted to {n_features}. Use those."
            )
        decisions = X @ self.coefs[position].T + self.intercepts[position]
        return combine_decisions(decisions, len(self.classes), self.multi_class)

    def predict(self, X: Any, k: int) -> np.ndarray:
        """The class of each row of X by the fit with this k."""
        return choose_classes(self.decision_function(X, k), self.classes)

    def to_frame(self) -> "pd.DataFrame":
        """One row per k and machine, as a pandas frame."""
        import pandas as pd

        names = machine_names(self.classes, self.multi_class)
        return pd.DataFrame(
            [
                {
                    "k": k,
                    "machine": name,
                    "n_nonzero": len(solution.support),
                    "objective": solution.objective,
                    "n_iter": solution.n_iter,
                    "status": solution.status.name.lower(),
                }
                for k, row in zip(self.ks, self.solutions, strict=True)
                for name, solution in zip(names, row, strict=True)
            ]
        )

    def _position(self, k: int) -> int:
        found = np.flatnonzero(self.ks == k)
        if len(found) == 0:
            raise ValueError(f"k={k!r} is not on this path. Use one of {', '.join(map(str, self.ks))}.")
        return int(found[0])


def sparse_svm_path(
    X: Any,
    y: Any,
    ks: int | Sequence[int | str] | None = None,
    *,
    C: float = 1.0,
    solver: str | ProximalDistance = DEFAULT,
    multi_class: str = "ovo",
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> SparsityPath:
    """Fit one machine per k, from dense to sparse, each started from the last.

    Parameters
    ----------
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
    ks : list of int, int, or None
        The values of k; or how many, log-spaced from all features down to one; None is 20 of them.
    verbose : int
        1 shows a progress bar.

    The other parameters are those of :class:`~kmargin.SparseSVC`.

    Returns
    -------
    SparsityPath

    Examples
    --------
    >>> from kmargin import sparse_svm_path
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=200, n_features=20, random_state=0)
    >>> path = sparse_svm_path(X, y, ks=[20, 5, 2])
    >>> path.coefs.shape
    (3, 1, 20)
    >>> path.solutions[2][0].support
    array([0, 1])
    """
    validate.check_C(C)
    validate.check_choice("multi_class", multi_class, SCHEMES)
    solver = validate.resolve_solver(solver)
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32], estimator="sparse_svm_path")
    samples = validate.read_samples(X, y, sample_weight, class_weight)
    ks = validate.resolve_ks(ks, X.shape[1])
    by_machine = solve_machines(
        LinearDesigns(samples.X, fit_intercept),
        samples,
        ks,
        C=C,
        solver=solver,
        multi_class=multi_class,
        n_jobs=n_jobs,
        seed=validate.resolve_seed(random_state),
        verbose=verbose,
    )
    solutions = tuple(zip(*by_machine, strict=True))
    warn_unless_converged([s for row in solutions for s in row])
    return SparsityPath(
        ks=np.array(ks),
        coefs=np.array([[s.dense_coef() for s in row] for row in solutions], dtype=X.dtype),
        intercepts=np.array([[s.intercept for s in row] for row in solutions], dtype=X.dtype),
        objectives=np.array([[s.objective for s in row] for row in solutions]),
        solutions=solutions,
        classes=samples.classes,
        multi_class=multi_class,
    )
