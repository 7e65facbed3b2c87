"""The proximal distance iteration (Algorithm 3 of the paper), around either way to minimise f_rho."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kmargin.problem import ArrayProblem, Problem
from kmargin.solvers.annealed import best_end, projected_solution
from kmargin.solvers.annealing_units import in_common_units
from kmargin.solvers.descend import Descent, Step, descend
from kmargin.solvers.exchange import Exchange
from kmargin.solvers.joint_anneal import iter_joint_path
from kmargin.solvers.joint_problem import JointProblem, machines_of
from kmargin.solvers.knobs import check_knobs, is_count, is_flag, is_number, is_schedule
from kmargin.solvers.measures import Measured
from kmargin.solvers.result import OuterRecord, Solution, Status
from kmargin.solvers.solver import Solver
from kmargin.solvers.start import HOPELESS, bare_solution, intercept_only, normal_start, univariate_start
from kmargin.types import Vector
from kmargin.units import Units

# the parameters of both solvers, for their own docstrings
KNOBS = """
    Parameters
    ----------
    rho_start : float, default=1.0
        The initial rho.
    rho_growth : float, default=1.2
        The factor by which rho grows at each outer iteration (the paper's M).
    max_outer : int, default=100
        Maximum number of values of rho.
    max_inner : int, default=10000
        Maximum number of steps for each value of rho.
    gtol : float, default=1e-6
        A fixed-rho solve ends when the *squared* norm of the gradient falls below it.
    dtol : float, default=1e-6
        The annealing has converged when d = dist(beta, S_k)^2 / (p-k+1) falls to it.
    rtol : float, default=1e-6
        The annealing has stalled when d changes by less than ``rtol * (1 + d)``.
    delay : int, default=10
        Nesterov acceleration is off in the first `delay` steps of each fixed-rho solve.
    rhos : sequence of float or None, default=None
        The values of rho, in the order in which they are used, instead of those that `rho_start`,
        `rho_growth` and `max_outer` make.
    trace : "outer" or "steps", default="outer"
        What `Solution.trace` records: one `OuterRecord` for each rho, or in each of these also its
        `steps`, one `StepRecord` for each inner iteration. Recording steps takes the readable loop, which
        is many times slower.
    polish : bool, default=False
        Run the exchange solver from the support found (see :class:`Exchange`).
    start : "univariate" or "normal", default="univariate"
        The paper's heuristic (its eq. 6), or standard normal numbers drawn with the estimator's
        `random_state`.
    ending : "best" or "projection", default="best"
        Which coefficients are returned. "projection" returns the last iterate projected onto S_k, as in the
        paper. "best" refits the coefficients on the support of that projection, or returns the intercept
        alone where that has no higher objective. The iterates are the same. `Solution.ending` tells which was
        returned.
    jit : bool, default=True
        Run the compiled loop. ``False`` runs the equivalent Python loop, which is always used for data in
        blocks or on a device.
"""


class ProximalDistance(Solver):
    """Anneal rho from `rho_start` upwards; between increases, minimise f_rho. See `KNOBS`."""

    def __init__(
        self,
        *,
        rho_start: float = 1.0,
        rho_growth: float = 1.2,
        max_outer: int = 100,
        max_inner: int = 10_000,
        gtol: float = 1e-6,
        dtol: float = 1e-6,
        rtol: float = 1e-6,
        delay: int = 10,
        rhos: Sequence[float] | None = None,
        trace: str = "outer",
        polish: bool = False,
        start: str = "univariate",
        ending: str = "best",
        jit: bool = True,
    ) -> None:
        self.rho_start = rho_start
        self.rho_growth = rho_growth
        self.max_outer = max_outer
        self.max_inner = max_inner
        self.gtol = gtol
        self.dtol = dtol
        self.rtol = rtol
        self.delay = delay
        self.rhos = rhos
        self.trace = trace
        self.polish = polish
        self.start = start
        self.ending = ending
        self.jit = jit

    def check(self) -> None:
        tolerance = "a number >= 0 to compare squared quantities with, such as 1e-6"
        check_knobs(
            self,
            rho_start=(is_number(self.rho_start, above=0), "an initial penalty > 0, such as 1.0"),
            rho_growth=(
                is_number(self.rho_growth, above=1),
                "a growth factor > 1 for the penalty, such as 1.2",
            ),
            max_outer=(is_count(self.max_outer, 1), "a number of penalties, an integer >= 1"),
            max_inner=(is_count(self.max_inner, 1), "a number of steps, an integer >= 1"),
            gtol=(is_number(self.gtol, at_least=0), tolerance),
            dtol=(is_number(self.dtol, at_least=0), tolerance),
            rtol=(is_number(self.rtol, at_least=0), tolerance),
            delay=(is_count(self.delay, 0), "a number of steps, an integer >= 0"),
            rhos=(
                self.rhos is None or is_schedule(self.rhos),
                "a sequence of penalties > 0, such as [1, 10, 100], or None",
            ),
            trace=(isinstance(self.trace, str) and self.trace in ("outer", "steps"), "'outer' or 'steps'"),
            polish=(is_flag(self.polish), "True or False"),
            jit=(is_flag(self.jit), "True or False"),
            start=(
                isinstance(self.start, str) and self.start in ("univariate", "normal"),
                "'univariate' or 'normal'",
            ),
            ending=(
                isinstance(self.ending, str) and self.ending in ("best", "projection"),
                "'best' or 'projection'",
            ),
        )

    def iter_grid(
        self, problem: Problem, lams: Sequence[float], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Solution]:
        # one path for each ridge; MM's SVD, kept by the design, serves them all
        for lam in lams:
            yield from self.iter_path(replace(problem, lam=lam), ks, rng)

    def iter_joint_grid(
        self,
        problems: Sequence[Problem],
        lams: Sequence[Sequence[float]],
        ks: Sequence[int],
        units: Units,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Solution, ...]]:
        for ridges in lams:
            at_C = [p.with_ridge(lam) for p, lam in zip(problems, ridges, strict=True)]
            for solutions in iter_joint_path(self, at_C, ks, units, rng):
                yield Exchange().improve_together(at_C, solutions, units) if self.polish else solutions

    def iter_path(
        self,
        problem: Problem,
        ks: Sequence[int],
        rng: np.random.Generator,
        after: Solution | None = None,
    ) -> Iterator[Solution]:
        """Solve for each k in turn, starting each from the previous solution.

        Parameters
        ----------
        problem : Problem
            With its ridge.
        ks : list of int
            From dense to sparse.
        rng : numpy.random.Generator
            Draws the start, with ``start="normal"``.
        after : Solution or None, default=None
            Continue an interrupted path after this solution. The result is that of an uninterrupted path if
            the solutions are the last iterates (``ending="projection"``).

        Yields
        ------
        Solution
            One for each k.
        """
        bare = bare_solution(problem, Status.CONVERGED)
        if problem.lam > HOPELESS:
            yield from (bare for _ in ks)
            return
        measured = Measured(problem)
        unit, (scaled,) = in_common_units([problem], [measured])
        if after is not None:
            beta = np.append(after.dense_coef() * unit, after.intercept)[: problem.design.n_parameters]
        else:
            beta = univariate_start(scaled) if self.start == "univariate" else normal_start(scaled, rng)
        for k in ks:
            found, status, trace = self.anneal(scaled.with_k(k), beta)
            beta = scaled.with_k(k).project(found)
            solution = projected_solution(problem, scaled, unit, found, beta, status, trace)
            if self.ending == "best":
                solution = best_end(problem, solution, bare, measured)
            yield self._polished(problem.with_k(k), solution) if self.polish else solution

    def _polished(self, problem: Problem, solution: Solution) -> Solution:
        """What an exchange makes of a solution: never worse, with the annealing's trace."""
        better = Exchange().improve(problem, solution)
        n_iter = solution.n_iter + (better.n_iter if better is not solution else 0)
        return replace(better, n_iter=n_iter, trace=solution.trace)

    def anneal(
        self, problem: Problem | JointProblem, beta: Vector
    ) -> tuple[Vector, Status, tuple[OuterRecord, ...]]:
        """Algorithm 3 up to its last line, the projection onto S_k.

        Parameters
        ----------
        problem : Problem
            With its ridge and its k.
        beta : ndarray
            Where to start.

        Returns
        -------
        beta : ndarray
            The last iterate.
        status : Status
            Why the iteration stopped.
        trace : tuple of OuterRecord
            One for each value of rho.
        """
        if problem.k == 0:
            return np.concatenate([intercept_only(m) for m in machines_of(problem)]), Status.CONVERGED, ()
        count = problem.normalizer
        inner = self.inner(problem)
        gtol = self._gtol(problem)
        d = problem.squared_distance(beta) / count
        trace = []
        for rho in self._schedule():
            beta, n_inner, objective, gradient_sq, steps = inner(beta, rho, gtol)
            distance_sq = problem.squared_distance(beta)
            trace.append(OuterRecord(rho, n_inner, objective, gradient_sq, distance_sq, steps))
            previous, d = d, distance_sq / count
            if d <= self.dtol:
                status = Status.CONVERGED
                break
            if abs(d - previous) < self.rtol * (1 + previous):
                status = Status.STALLED
                break
        else:
            status = Status.EXHAUSTED
        return beta, status, tuple(trace)

    def _schedule(self) -> list[float]:
        """The values of rho, in the order in which they are used."""
        if self.rhos is not None:
            return [float(rho) for rho in self.rhos]
        return [self.rho_start * self.rho_growth**i for i in range(self.max_outer)]

    def inner(self, problem: Problem | JointProblem) -> Callable[[Vector, float, float], Descent]:
        """The minimisation of f_rho.

        Parameters
        ----------
        problem : Problem
            With its ridge and its k.

        Returns
        -------
        callable
            Maps a start, rho and a tolerance to the result of a descent.
        """
        at_hand = [machine.at_hand for machine in machines_of(problem)]
        if self.trace == "steps" and None in at_hand:
            raise ValueError(
                "trace='steps' evaluates the surrogate, which needs all rows in memory, and X is given in "
                "blocks or on a device. Use trace='outer', or give X as a NumPy array."
            )
        if not self.jit or self.trace == "steps" or at_hand[0] is None or None in at_hand:
            return self._readable_inner(problem)
        if isinstance(problem, JointProblem):
            return self._compiled_joint_inner(problem)
        return self._compiled_inner(at_hand[0])

    def _readable_inner(self, problem: Problem | JointProblem) -> Callable[[Vector, float, float], Descent]:
        step = self._step(problem)
        return lambda beta, rho, gtol: descend(
            problem,  # type: ignore[arg-type]  # only rows in memory have a surrogate
            step,
            beta,
            rho,
            gtol=gtol,
            max_inner=self.max_inner,
            delay=self.delay,
            record_steps=self.trace == "steps",
        )

    def _gtol(self, problem: Problem | JointProblem) -> float:
        """`gtol`, or less where the first fixed-rho solve is already the answer.

        With every feature allowed the problem is convex and nothing is annealed. If lam > 0, and but
        for the intercept, a squared gradient of 2 lam `gtol` certifies an objective within `gtol` of
        its minimum. A tenth of that leaves room for the intercept, which the ridge does not hold.
        """
        if not problem.keeps_all or problem.lam == 0:
            return self.gtol
        return self.gtol * float(np.clip(problem.lam / 5, 1e-8, 1.0))

    def _step(self, problem: Problem | JointProblem) -> Step:
        raise NotImplementedError

    def _compiled_inner(self, problem: ArrayProblem) -> Callable[[Vector, float, float], Descent]:
        raise NotImplementedError

    def _compiled_joint_inner(self, problem: JointProblem) -> Callable[[Vector, float, float], Descent]:
        raise NotImplementedError
