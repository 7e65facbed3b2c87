"""What kernel machines choose among: which points are candidates, and whether their kernel is held."""

from collections.abc import Sequence

import numpy as np

from kmargin.design import DenseDesign, Design, KernelDesign, distinct_rows, n_bytes
from kmargin.design.tiles import MEGABYTE, scaled
from kmargin.kernels import Kernel
from kmargin.multiclass import Machine
from kmargin.problem import ArrayProblem
from kmargin.samples.array import array_problem
from kmargin.solvers import Solution
from kmargin.types import Indices, Matrix, Vector

# Where the kernel with all points would not fit, so many are candidates; or so many for each to be kept.
# Of 16,000 letters 140 are chosen as well among 2,000 as among 4,000 (the objective differs more between
# samples than between their sizes), and 430 of 16,000 in clusters as well among 2,000 as among 4,300, in
# half the time.
CANDIDATES, PER_PLACE = 2000, 4


class KernelDesigns:
    """The design of each machine is K diag(y): its rows' kernel with its candidate points.

    Candidates are the machine's distinct training points, or a sample of them where `n_candidates` or
    the budget asks for that. A repeated point would only be the same column again; as it is, a point
    given twice and a point of weight 2 are the same thing. Rows are never sampled.
    Without a kernel function X is the kernel matrix itself, and every point is a candidate.
    Machines that share their points have the same candidates, those of all classes: a machine for two of
    them may decide by points of a third.

    Up to `cache_size` MB the matrix is held; beyond that it is computed as it is asked for.
    """

    stays_here = False

    def __init__(
        self,
        X: Matrix,
        kernel: Kernel | None,
        fit_intercept: bool,
        *,
        weights: Vector,  # of all rows
        cache_size: float,
        n_candidates: int | None = None,  # None: by the budget
        k: int = 0,  # the most points that a machine will keep
        seed: int = 0,
        codes: Indices,  # the class of each row
        shared: bool = False,
    ) -> None:
        self.X, self.weights = X, weights
        self.codes = codes
        self.shared = shared
        self.dtype = X.dtype
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.cache_size = cache_size
        self.n_candidates = n_candidates
        self.k = k
        self.seed = seed
        self._candidates: dict[tuple[int | None, int], Indices] = {}

    def __call__(self, machine: Machine) -> Design:
        rows, candidates = self._rows(machine), self.candidates(machine)
        signs = self.signs(machine, candidates)
        if self.kernel is None:
            return DenseDesign(scaled(self.X[np.ix_(rows, candidates)], signs), self.fit_intercept)
        X, points = self.X[rows], self.X[candidates]
        if len(candidates) <= self._n_held(len(rows)):
            return DenseDesign(scaled(self.kernel(X, points), signs), self.fit_intercept)
        kernel = self.kernel.quickly
        return KernelDesign(kernel, X, points, signs, self.fit_intercept, cache_size=self.cache_size)

    def problem(self, machine: Machine, Cs: Sequence[float]) -> tuple[ArrayProblem, list[float]]:
        return array_problem(self(machine), machine, self.weights, Cs)

    def __sizeof__(self) -> int:
        """With X: dask sends what is large to its workers once, and not with each batch."""
        return n_bytes(self.X)

    def restore(self, solution: Solution) -> Solution:
        return solution

    def unrestore(self, solution: Solution) -> Solution:
        return solution

    def size_of_terms(self, solution: Solution) -> float:
        return 0.0

    def stop(self) -> None:
        """Each worker has rows of its own."""

    def signs(self, machine: Machine, points: Indices) -> Vector:
        """The label of each point, as a machine sees it."""
        return np.where(self.codes[points] == machine.positive, 1.0, -1.0)

    def candidates(self, machine: Machine) -> Indices:
        """Rows of X, ascending; chosen once for each machine, or for all."""
        key = (None, 0) if self.shared else (machine.negative, machine.positive)
        if key not in self._candidates:
            rows = np.arange(self.X.shape[0]) if self.shared else self._rows(machine)
            self._candidates[key] = rows if self.kernel is None else self._choose(key, rows)
        return self._candidates[key]

    def _choose(self, key: tuple[int | None, int], rows: Indices) -> Indices:
        negative, positive = key
        distinct = rows[distinct_rows(self.X[rows])]
        count = self.n_candidates
        if count is None:
            count = max(self._n_held(len(rows)), CANDIDATES, PER_PLACE * self.k)
        if len(distinct) <= count:
            return distinct
        rng = np.random.default_rng([self.seed, positive, 0 if negative is None else negative + 1])
        return np.sort(rng.choice(distinct, count, replace=False))

    def _n_held(self, n_rows: int) -> int:
        """How many columns the budget has room for."""
        return int(self.cache_size * MEGABYTE / (8 * n_rows))

    def _rows(self, machine: Machine) -> Indices:
        return np.arange(self.X.shape[0]) if machine.rows is None else machine.rows
