"""The solver classes MM and SD: options, starting points, paths over k, and the coefficients returned."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.scaling import make_scaling, power_of_two, typical_entry
from kmargin.core.units import Units
from kmargin.core.validation import BOOLEANS, is_integer, is_number
from kmargin.solvers.exchange import Exchange
from kmargin.solvers.proximal import reference
from kmargin.solvers.proximal.compiled import mm_descent, sd_descent
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import Descend, MMStep, Step, sd_step
from kmargin.solvers.refit.support import refit
from kmargin.solvers.solution import Ending, OuterRecord, Solution, Status
from kmargin.solvers.solver import (
    STRONGEST_RIDGE,
    Solver,
    bare_solution,
    check_options,
    intercept_only,
    normal_start,
    univariate_start,
)

# The tolerances of MM and SD are absolute numbers, which suit entries of X of order one. X is rescaled if its
# typical entry (the median of the root mean squares of its columns) is outside this range.
ORDER_ONE = (1e-6, 1e6)

# The section "Parameters", which the docstrings of MM and SD share.
PARAMETERS = """
    Parameters
    ----------
    rho_start : float, default=1.0
        The initial value of rho, the factor of the distance penalty.
    rho_growth : float, default=1.2
        The factor by which rho grows at each outer iteration (the paper's M).
    max_outer : int, default=100
        Maximum number of values of rho.
    max_inner : int, default=10000
        Maximum number of steps for each value of rho.
    gtol : float, default=1e-6
        The steps for one rho end when the *squared* norm of the gradient falls below `gtol`.
    dtol : float, default=1e-6
        The annealing has converged when d = dist(beta, S_k)^2 / (p-k+1) is at most `dtol`.
    rtol : float, default=1e-6
        The annealing has stalled when d changes by less than ``rtol * (1 + d)``.
    delay : int, default=10
        Nesterov acceleration is off in the first `delay` steps for each value of rho.
    rhos : sequence of float or None, default=None
        The values of rho, in the order in which they are used. By default they follow from `rho_start`,
        `rho_growth` and `max_outer`.
    trace : "outer" or "steps", default="outer"
        What `Solution.trace` records. "outer": one `OuterRecord` for each rho. "steps": every
        `OuterRecord` also holds one `StepRecord` for each inner iteration; the solver is then many times
        slower, because the loop that records steps is not compiled.
    polish : bool, default=False
        Whether to improve the support found by the exchange solver (see :class:`Exchange`).
    start : "univariate" or "normal", default="univariate"
        The first iterate: the paper's heuristic (its eq. 6), or standard normal numbers drawn with the
        estimator's `random_state`.
    ending : "best" or "projection", default="best"
        Which coefficients are returned. "projection" returns the last iterate projected onto S_k, as in the
        paper. "best" refits the coefficients on the support of that projection, or returns the intercept
        alone if that has a lower objective. The iterates are the same. `Solution.ending` says which
        coefficients were returned.
"""

# The options of MM and SD that are strings, and the values that each of them may have.
CHOICES = {"trace": ("outer", "steps"), "start": ("univariate", "normal"), "ending": ("best", "projection")}


def is_one_of(value: object, choices: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether `value` is one of `choices`, and the choices as text for an error message."""
    return isinstance(value, str) and value in choices, " or ".join(map(repr, choices))


def is_schedule(values: Any) -> bool:
    """Whether `values` is one-dimensional and not empty, and all its entries are positive finite numbers."""
    if not isinstance(values, Collection) or getattr(values, "ndim", 1) != 1:
        return False
    return len(values) > 0 and all(is_number(value, above=0) for value in values)


class ProximalDistance(Solver):
    """Base class of MM and SD, which minimise loss + ridge + rho * (distance penalty) for growing rho."""

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

    __init__.__qualname__ = "MM or SD"  # the name in Python's error message about an unknown argument

    def check(self) -> None:
        tolerance = "a number >= 0 to compare squared quantities with, such as 1e-6"
        check_options(
            self,
            rho_start=(is_number(self.rho_start, above=0), "an initial penalty > 0, such as 1.0"),
            rho_growth=(is_number(self.rho_growth, above=1), "a growth factor > 1, such as 1.2"),
            max_outer=(is_integer(self.max_outer, 1), "a number of penalties, an integer >= 1"),
            max_inner=(is_integer(self.max_inner, 1), "a number of steps, an integer >= 1"),
            gtol=(is_number(self.gtol, at_least=0), tolerance),
            dtol=(is_number(self.dtol, at_least=0), tolerance),
            rtol=(is_number(self.rtol, at_least=0), tolerance),
            delay=(is_integer(self.delay, 0), "a number of steps, an integer >= 0"),
            rhos=(
                self.rhos is None or is_schedule(self.rhos),
                "a sequence of penalties > 0, such as [1, 10, 100], or None",
            ),
            polish=(isinstance(self.polish, BOOLEANS), "True or False"),
            **{name: is_one_of(getattr(self, name), choices) for name, choices in CHOICES.items()},
        )

    def solve_grid(
        self, problem: Problem, lams: Sequence[Sequence[float]], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[Solution, ...]]:
        units, columns = problem.units, np.sort(problem.units.columns)
        own = problem
        if len(columns) < units.n_features:  # leave out columns that are in no unit; their coefficients are 0
            places = np.searchsorted(columns, units.columns)
            own_units = replace(units, columns=places, signs=units.signs[columns])
            own = Problem(tuple(change_designs(own.binary, lambda design: design.take(columns))), own_units)
        for row in lams:  # X caches its SVD, so MM computes one for all ridges, unless X has to be rescaled
            for solutions in self._anneal_path(own.with_ridges(row).binary, own.units, ks, rng):
                found = tuple(
                    replace(one, support=columns[one.support], n_features=units.n_features)
                    for one in solutions
                )
                yield self._polish(problem.with_ridges(row), found) if self.polish else found

    def _anneal_path(
        self, problems: Sequence[BinaryProblem], units: Units, ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[Solution, ...]]:
        """For each k, yield solutions, started from those for the k before; each column must be in a unit."""
        alone = tuple(bare_solution(problem, Status.CONVERGED) for problem in problems)
        if any(problem.lam > STRONGEST_RIDGE for problem in problems):
            yield from (alone for _ in ks)
            return
        scale, scaled = rescale(problems)
        penalised = PenalisedProblem.of(scaled, units, units.n_units)
        descend = self._descent(penalised)
        if self.start == "univariate":
            beta = np.array([univariate_start(problem) for problem in scaled])
        else:
            beta = np.array([normal_start(problem, rng) for problem in scaled])
        for k in ks:
            at_k = penalised.with_k(k)
            found, status, trace = self._anneal(at_k, descend, beta)
            beta = at_k.project(found)
            solutions = [
                projected_solution(problem, own, scale, last, row, status, trace)
                for problem, own, last, row in zip(problems, scaled, found, beta, strict=True)
            ]
            if self.ending == "best":
                support, signs = at_k.kept_columns(beta), units.signs if units.signs.any() else None
                solutions = [
                    best_ending(*each, support, signs)
                    for each in zip(problems, solutions, alone, strict=True)
                ]
            yield tuple(solutions)

    def _anneal(
        self, problem: PenalisedProblem, descend: Descend, beta: Matrix
    ) -> tuple[Matrix, Status, tuple[OuterRecord, ...]]:
        """Run Algorithm 3, the loop over rho; return the last beta, why it stopped, a record for each rho."""
        if problem.k == 0:
            return np.array([intercept_only(one) for one in problem.problems]), Status.CONVERGED, ()
        gtol = self._gtol(problem)
        return reference.anneal(
            problem, descend, beta, self._schedule(), gtol=gtol, dtol=self.dtol, rtol=self.rtol
        )

    def _schedule(self) -> list[float]:
        """Return the values of rho (the factor of the distance penalty) in the order of their use."""
        if self.rhos is not None:
            return [float(rho) for rho in self.rhos]
        return [self.rho_start * self.rho_growth**i for i in range(self.max_outer)]

    def _gtol(self, problem: PenalisedProblem) -> float:
        """Return the tolerance of the squared gradient norm: `gtol`, or less without a distance penalty.

        If S_k contains every beta, there is one inner loop, which must be precise. With a ridge lam > 0 and
        no intercept, a squared gradient norm of 2 lam `gtol` proves that the objective is within `gtol` of
        its minimum. A tenth of that is used, because an intercept has no ridge.
        """
        lam = min(one.lam for one in problem.problems)
        if not problem.keeps_all or lam == 0:
            return self.gtol
        return self.gtol * float(np.clip(lam / 5, 1e-8, 1.0))

    def _descent(self, problem: PenalisedProblem) -> Descend:
        """Return the loop that minimises the penalised objective for one rho, compiled if possible."""
        in_memory = len(problem.in_memory) == len(problem.problems)
        if self.trace == "steps" and not in_memory:
            raise ValueError(
                "trace='steps' evaluates the surrogate, which needs all rows in memory, and X is given in "
                "blocks or on a device. Use trace='outer', or give X as a NumPy array."
            )
        compiled = self._compiled(problem) if in_memory and self.trace != "steps" else None
        return compiled or self._readable_descent(problem)

    def _readable_descent(self, problem: PenalisedProblem) -> Descend:
        """Return the inner loop that is not compiled (`reference.descend`), with this solver's options."""
        step, record_steps = self._step(problem), self.trace == "steps"
        return lambda problem, beta, rho, gtol: reference.descend(
            problem, step, beta, rho, gtol=gtol, max_inner=self.max_inner, delay=self.delay,
            record_steps=record_steps,
        )  # fmt: skip

    def _step(self, problem: PenalisedProblem) -> Step:
        """Return the function that computes the next iterate: Algorithm 1 (MM) or 2 (SD) of the paper."""
        raise NotImplementedError

    def _compiled(self, problem: PenalisedProblem) -> Descend | None:
        """Return the compiled inner loop, or None if there is none for the kind of X of this problem."""
        raise NotImplementedError

    def _polish(self, problem: Problem, solutions: tuple[Solution, ...]) -> tuple[Solution, ...]:
        """Improve the solutions by swapping features (solver `Exchange`), but keep the trace of MM or SD."""
        return tuple(
            new if new is old else replace(new, n_iter=old.n_iter + new.n_iter, trace=old.trace)
            for new, old in zip(Exchange().improve(problem, solutions), solutions, strict=True)
        )


class MM(ProximalDistance):
    __doc__ = f"""Algorithm 1 of the paper: each step minimises the surrogate.

    One SVD of X serves all rho and all k. Rho is raised from `rho_start` upwards, and at each value the
    penalised objective f_rho is minimised (Algorithm 3).
{PARAMETERS}
    See Also
    --------
    SD : The same algorithm with steepest descent in place of the SVD.
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

    takes_sparse = False  # MM needs the singular vectors of X, which are dense

    def _step(self, problem: PenalisedProblem) -> MMStep:
        if len(problem.in_memory) < len(problem.problems):
            raise ValueError(
                'solver="mm" works with the singular vectors of X and needs X as a NumPy array: use '
                'solver="exchange" or solver="sd" for X on a device, or convert X.'
            )
        return MMStep(problem)

    def _compiled(self, problem: PenalisedProblem) -> Descend:
        return mm_descent(problem, self.max_inner, self.delay)


class SD(ProximalDistance):
    __doc__ = f"""Algorithm 2 of the paper: steepest descent with an exact line search on the surrogate.

    Rho is raised from `rho_start` upwards, and at each value the penalised objective f_rho is minimised
    (Algorithm 3).
{PARAMETERS}
    See Also
    --------
    MM : The same algorithm with exact minimisation of the surrogate.
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


def rescale(problems: Sequence[BinaryProblem]) -> tuple[float | Vector, list[BinaryProblem]]:
    """Return the divisor of all columns of X (or one of each column), and the problems with X so divided.

    If the typical entry of X is outside ORDER_ONE, X is divided by the nearest power of two, and the ridges
    by its square. Columns that are still extremely large are then divided by powers of two of their own. All
    binary problems use the same divisors, since units are compared by their norms over all problems.
    """
    typical = float(np.median([typical_entry(problem) for problem in problems]))
    scale = 1.0 if ORDER_ONE[0] <= typical <= ORDER_ONE[1] else float(power_of_two(typical))
    if scale != 1.0:
        problems = [
            problem.with_ridge(min(problem.lam / scale / scale, 1e30))
            for problem in divide_columns(problems, np.full(problems[0].design.n_features, scale))
        ]
    scalings = [
        scaling for problem in problems if (scaling := make_scaling(problem, check=False)) is not None
    ]
    scales: Vector = np.max([np.ones(problems[0].design.n_features), *(s.scales for s in scalings)], axis=0)
    if (scales == 1.0).all():
        return scale, list(problems)
    return scale * scales, divide_columns(problems, scales)


def divide_columns(problems: Sequence[BinaryProblem], scales: Vector) -> list[BinaryProblem]:
    """Return the problems with each column of X divided by its entry of `scales`, and unchanged ridges."""
    return change_designs(problems, lambda design: design.standardized(np.zeros_like(scales), scales))


def change_designs(problems: Sequence[BinaryProblem], change: Callable[[Any], Any]) -> list[BinaryProblem]:
    """Return the problems with change(X) in place of X; an X that several problems share is changed once."""
    changed = {id(design): change(design) for design in {id(p.design): p.design for p in problems}.values()}
    return [replace(problem, design=changed[id(problem.design)]) for problem in problems]


def projected_solution(
    problem: BinaryProblem,
    scaled: BinaryProblem,
    scale: float | Vector,
    found: Vector,
    beta: Vector,
    status: Status,
    trace: tuple[OuterRecord, ...],
) -> Solution:
    """Turn `beta`, the projection of the last iterate `found` onto S_k, into a solution of `problem`.

    `beta` and `found` are parameters of `scaled`: the same problem with the columns of X divided by `scale`.
    """
    original = beta.copy()
    problem.coefficients(original)[:] /= scale
    return Solution.from_beta(
        original,
        problem.design.n_features,
        objective=problem.loss(original),
        projection_cost=scaled.loss(beta) - scaled.loss(found),
        status=status,
        n_iter=sum(record.n_inner for record in trace),
        trace=trace,
        ending=Ending.PROJECTION,
    )


def best_ending(
    problem: BinaryProblem,
    projected: Solution,
    alone: Solution,
    support: Indices,
    signs: Vector | None,
) -> Solution:
    """Return the solution with the lowest objective: `projected`, its refit, or `alone`, the intercept alone.

    `projected` is the last iterate projected onto S_k. The refit minimises the objective over coefficients of
    the columns `support`. `signs` has the required sign of each column of X, 0 if both are allowed.
    """
    coef, intercept = projected.dense_coef()[support], projected.intercept
    if not np.isfinite(projected.objective):
        coef, intercept = np.zeros(len(support)), 0.0
    own_signs = None if signs is None else signs[support]
    coef, intercept, objective, _ = refit(problem, support, coef, intercept, own_signs)
    if objective <= alone.objective and not objective >= projected.objective:
        used = np.flatnonzero(coef)
        best, ending = (support[used], coef[used], intercept, objective), Ending.REFIT
    elif not projected.objective <= alone.objective:
        best, ending = (alone.support, alone.coef, alone.intercept, alone.objective), Ending.INTERCEPT
    else:
        return projected
    support, coef, intercept, objective = best
    return replace(
        projected, support=support, coef=coef, intercept=intercept, objective=objective, ending=ending
    )
