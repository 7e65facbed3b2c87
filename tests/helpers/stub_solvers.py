"""Solvers that say where they ran, and what else workers run. Other processes import it from here."""

import os
import time
from dataclasses import replace

import numpy as np

from kmargin.core.linalg import blas_libraries
from kmargin.solvers import Solution
from kmargin.solvers.solution import Status
from kmargin.solvers.solver import Solver


class Witness(Solver):
    """Finds nothing; its trace holds the process and the largest number of BLAS threads."""

    def check(self):
        pass

    def solve_grid(self, problem, lams, ks, rng):
        for _ in range(len(lams) * len(ks)):
            solution = Solution(
                support=np.empty(0, int), coef=np.empty(0), intercept=0.0,
                n_features=problem.units.n_features, objective=0.0, projection_cost=0.0,
                status=Status.CONVERGED, n_iter=0,
                trace=((os.getpid(), count_blas_threads()),),
            )  # fmt: skip
            yield (solution,) * len(problem.binary)


def count_blas_threads():
    return max(library.num_threads for library in blas_libraries())


def witness_blas_threads(pause):
    """The process and its number of BLAS threads."""
    time.sleep(pause)
    return os.getpid(), count_blas_threads()


def set_blas_threads(n_threads, pause=0.0):
    """Whoever is called takes his time, so that another worker gets the next call."""
    for library in blas_libraries():
        library.set_num_threads(n_threads)
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()
    time.sleep(pause)
    return os.getpid()


class Keeper(Witness):
    """The trace holds the X that a machine gets, or only the file it is mapped from."""

    def __init__(self, only_file=False):
        self.only_file = only_file

    def solve_grid(self, problem, lams, ks, rng):
        kept = [mapped_file(one.design.X) if self.only_file else one.design.X for one in problem.binary]
        for solutions in super().solve_grid(problem, lams, ks, rng):
            yield tuple(replace(one, trace=(X,)) for one, X in zip(solutions, kept, strict=True))


def mapped_file(X):
    """The file that an array is mapped from, if any."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return None if X is None else str(X.filename)
