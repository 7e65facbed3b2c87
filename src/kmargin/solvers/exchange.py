"""The search over supports as a solver: many sizes, many ridges."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from kmargin.core.arrays import Indices, Vector
from kmargin.core.problem import Problem
from kmargin.core.units import Units
from kmargin.solvers.refit.final import NEXT_TO_NOTHING
from kmargin.solvers.refit.folded import BETTER, TELLS, Candidate
from kmargin.solvers.refit.support import refit_support
from kmargin.solvers.search.path import SupportGrid
from kmargin.solvers.search.unit_path import JointGrid
from kmargin.solvers.search.working_set import Effort
from kmargin.solvers.solution import Regime, Solution, Status
from kmargin.solvers.solver import HOPELESS, Solver, bare_solution, check_knobs, is_number

EFFORTS = {
    "fast": Effort(8, 8, max_sweeps=1, ridge_path=True, tol=1e-9),
    "normal": Effort(8, 8, max_sweeps=2, ridge_path=True, tol=1e-9, max_starts=12, restart_flops=3e8),
    "thorough": Effort(
        32, 16, max_sweeps=4, ridge_path=True, tol=1e-9, max_starts=12, all_swaps=True, restart_flops=3e9
    ),
}


class Exchange(Solver):
    """Swap features of the support for others while that lowers the objective.

    Each support is fitted exactly, by Newton steps. The cost of dropping a feature and the gain from adding
    one are computed to second order, with all other coefficients refitted. The least useful features are
    swapped for the most promising ones, many at a time while the objective falls; then single features, in
    the order of the predicted decrease; then pairs. Along a path each k starts from its neighbours, downwards
    and upwards, and keeps the best support found. Along a grid of ridges, supports are passed on from strong
    ridges to weak ones.

    Parameters
    ----------
    effort : {"fast", "normal", "thorough"}, default="normal"
        How hard to search. ``"fast"`` swaps features until the most promising swaps fail, and sweeps a path
        once; the folds of a cross-validation always use it. ``"normal"`` sweeps a path twice and adds an
        iterated local search to a single fit on rows in memory: part of the support is replaced at random
        and searched again, some hundred times where rows are few, seldom where a fit is expensive.
        ``"thorough"`` restarts about ten times as often and tries every swap of one feature for another
        wherever all columns fit into memory: the result is then optimal under single swaps, with status
        `Status.SWAP_OPTIMAL`.
    tol : float, default=1e-9
        A fit on a support ends when the predicted decrease of a Newton step is below this fraction of the
        objective.
    **removed : object
        Options of earlier versions; each is refused with what to use instead.

    See Also
    --------
    MM, SD : The paper's solvers.

    Examples
    --------
    >>> from kmargin import Exchange, SparseSVC
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=8, random_state=0)
    >>> model = SparseSVC(k=2, solver=Exchange(effort="thorough")).fit(X, y)
    >>> model.solutions_[0].status.name
    'SWAP_OPTIMAL'
    """

    # its matrices are small; on a busy machine the threads of BLAS would wait for each other
    wants_blas_threads = False

    is_monotone = True

    def __init__(self, *, effort: str = "normal", tol: float = 1e-9, **removed: object) -> None:
        if removed:
            names = ", ".join(sorted(removed))
            raise TypeError(
                f"Exchange does not take {names}. Use effort='fast', 'normal' or 'thorough' to set how hard "
                "it searches, and tol for its precision."
            )
        self.effort = effort
        self.tol = tol

    def check(self) -> None:
        check_knobs(
            self,
            effort=(
                isinstance(self.effort, str) and self.effort in EFFORTS,
                f"one of {', '.join(map(repr, EFFORTS))}",
            ),
            tol=(is_number(self.tol, above=0), "a small number > 0, such as 1e-9"),
        )

    def in_folds(self) -> "Exchange":
        """This solver with effort="fast".

        Returns
        -------
        Exchange
            In a cross-validation many paths are averaged, and what one of them gains by more effort is lost
            among the differences between folds.
        """
        return clone(self).set_params(effort="fast")

    def iter_grid(
        self, problem: Problem, lams: Sequence[float], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Solution]:
        n_features = problem.design.n_features
        columns = problem.design.distinct_columns()
        reduced = problem
        if len(columns) < n_features:  # a repeated column is of no use to a sparse machine
            reduced = replace(problem, design=problem.design.subset(columns))
        grid = SupportGrid(reduced, [k for k in ks if k < n_features], self._effort())
        for lam in lams:
            at_lam = problem.with_ridge(lam)
            bare = intercept_alone(at_lam)
            if lam > HOPELESS:
                yield from (bare for _ in ks)
                continue
            grid.walk(lam)
            for k in ks:
                yield bare if k == 0 else self._best(at_lam, k, columns, grid, bare)

    def iter_joint_grid(
        self,
        problems: Sequence[Problem],
        lams: Sequence[Sequence[float]],
        ks: Sequence[int],
        units: Units,
        rng: np.random.Generator,
    ) -> Iterator[tuple[Solution, ...]]:
        if len(problems) == 1 and are_single_columns(units):
            solutions = self.iter_grid(problems[0], [lam for (lam,) in lams], ks, rng)
            yield from ((solution,) for solution in solutions)
            return
        ridges = next((row for row in lams if max(row) > 0), lams[0])
        grid = self._joint_grid(problems, ridges, ks, units)
        for row in lams:
            at_lams = [problem.with_ridge(lam) for problem, lam in zip(problems, row, strict=True)]
            bare = tuple(intercept_alone(problem) for problem in at_lams)
            if min(row) > HOPELESS:
                yield from (bare for _ in ks)
                continue
            grid.walk(row[grid.leader])
            for k in ks:
                if k >= units.n_units + len(units.copies) > units.n_units and max(row) <= HOPELESS:
                    yield self._all_parts(at_lams, units, grid, bare)
                else:
                    yield bare if k == 0 else self._best_parts(at_lams, k, grid, bare)

    def _joint_grid(
        self, problems: Sequence[Problem], ridges: Sequence[float], ks: Sequence[int], units: Units
    ) -> JointGrid:
        weights = [1.0] * len(problems) if units.machine_weights is None else units.machine_weights.tolist()
        return JointGrid(problems, ridges, weights, units, ks, self._effort())

    def _all_parts(
        self, problems: Sequence[Problem], units: Units, grid: JointGrid, bare: tuple[Solution, ...]
    ) -> tuple[Solution, ...]:
        """Every unit, and the copies of columns that share their ridge."""
        columns = np.sort(np.append(units.columns, units.copies))
        solutions = []
        for problem, part, alone in zip(problems, grid.best(units.n_units), bare, strict=True):
            coef: Vector = np.zeros(problem.design.n_features)
            coef[part.support] = part.u[:-1]
            found, n_iter = refit_support(problem, columns, coef[columns], float(part.u[-1]))
            found = found._replace(all_tried=True)
            solutions.append(self._solution(problem, found, np.arange(len(coef)), n_iter, alone))
        return tuple(solutions)

    def _best_parts(
        self, problems: Sequence[Problem], k: int, grid: JointGrid, bare: tuple[Solution, ...]
    ) -> tuple[Solution, ...]:
        """What was found with at most k units, in each machine; its intercept alone where that is better."""
        # a second copy of a column shares its ridge, which was not tried
        leaves_out = len(grid.units.copies) > 0 and max(problem.lam for problem in problems) > 0
        parts = [part._replace(all_tried=part.all_tried and not leaves_out) for part in grid.best(k)]
        return tuple(
            self._solution(problem, part, np.arange(problem.design.n_features), grid.n_newton, alone)
            for problem, part, alone in zip(problems, parts, bare, strict=True)
        )

    def improve(self, problem: Problem, start: Solution) -> Solution:
        """Search from a given solution, with the same number of features.

        Parameters
        ----------
        problem : Problem
            With its ridge.
        start : Solution
            A solution of this problem.

        Returns
        -------
        Solution
            Its objective is never higher.
        """
        bare = intercept_alone(problem)
        if len(start.support) == 0 or problem.lam > HOPELESS:
            return bare
        first = Candidate(start.support, np.append(start.coef, start.intercept), np.inf)
        grid = SupportGrid(problem, [len(start.support)], self._effort())
        found = grid.improve(problem.lam, first)
        better = self._solution(problem, found, np.arange(problem.design.n_features), grid.n_newton, bare)
        return min(better, start, key=lambda solution: solution.objective)

    def improve_together(
        self, problems: Sequence[Problem], starts: Sequence[Solution], units: Units
    ) -> tuple[Solution, ...]:
        """The same for binary classifiers that share what k counts.

        Parameters
        ----------
        problems : list of Problem
            One for each binary classifier.
        starts : list of Solution
            One for each binary classifier.
        units : Units
            What k counts.

        Returns
        -------
        tuple of Solution
            The sum of their objectives is never higher.
        """
        used = np.zeros(units.n_features)
        used[np.concatenate([start.support for start in starts])] = 1.0
        support = np.flatnonzero((units.total(used) > 0) | units.fixed)
        if len(support) == 0 or min(problem.lam for problem in problems) > HOPELESS:
            return tuple(starts)
        columns = units.columns_of(support)
        grid = self._joint_grid(problems, [problem.lam for problem in problems], [len(support)], units)
        parts = [np.append(start.dense_coef()[columns], start.intercept) for start in starts]
        grid.start_from(problems[grid.leader].lam, support, parts)
        bare = tuple(intercept_alone(problem) for problem in problems)
        better = self._best_parts(problems, len(support), grid, bare)
        return min(better, tuple(starts), key=lambda solutions: sum(s.objective for s in solutions))

    def _effort(self) -> Effort:
        return EFFORTS[self.effort]._replace(tol=self.tol)

    def _best(
        self, problem: Problem, k: int, columns: Indices, grid: SupportGrid, bare: Solution
    ) -> Solution:
        """What was found with at most k features, or the intercept where nothing found is better."""
        found = self._solution(problem, grid.best(k), columns, grid.n_newton, bare) if grid.found else None
        if found is not None and len(columns) < problem.design.n_features and problem.lam > 0:
            # a second copy of a column shares its ridge, which was not tried
            found = replace(found, status=Status.LIMITED)
        if k >= problem.design.n_features:
            dense = self._dense(problem, columns, grid, bare)
            if found is None or not found.objective < dense.objective * BETTER:
                found = dense
        assert found is not None
        return found

    def _dense(self, problem: Problem, columns: Indices, grid: SupportGrid, bare: Solution) -> Solution:
        """Every feature: nothing to search, only to fit, from the largest support at hand."""
        everything = np.arange(problem.design.n_features)
        coef: Vector = np.zeros(len(everything))
        intercept = 0.0
        if grid.found:
            start = grid.largest()
            coef[columns[start.support]], intercept = start.u[:-1], float(start.u[-1])
        same = grid.measured if len(columns) == len(everything) else None
        found, n_iter = refit_support(problem, everything, coef, intercept, same)
        return self._solution(problem, found._replace(all_tried=True), everything, n_iter, bare)

    def _solution(
        self, problem: Problem, found: Candidate, columns: Indices, n_newton: int, bare: Solution
    ) -> Solution:
        """What was found, or the intercept: unless that is worse by more than rounding may take back."""
        worth = found.value + found.doubt
        if not worth <= bare.objective or problem.lam > HOPELESS:
            # where only rounding is to blame, other supports may suffer less from it
            status = Status.LIMITED if found.value <= bare.objective < worth else claim(found)
            return replace(bare, status=status, regime=found.regime)
        order = found.support.argsort()
        order = order[found.u[order] != 0]
        return Solution(
            support=columns[found.support[order]],
            coef=found.u[order],
            intercept=float(found.u[-1]) if problem.design.fit_intercept else 0.0,
            n_features=problem.design.n_features,
            objective=found.value,
            projection_cost=0.0,
            status=claim(found),
            n_iter=n_newton,
            regime=found.regime,
        )


def are_single_columns(units: Units) -> bool:
    """Whether every column is a unit of its own, or a copy of one, and may enter and leave with any sign."""
    n_columns = len(np.union1d(units.columns, units.copies))
    return (
        n_columns == units.n_features
        and units.n_units == len(units.columns)
        and not units.fixed.any()
        and not units.signs.any()
    )


def intercept_alone(problem: Problem) -> Solution:
    """There is nothing to exchange."""
    return replace(bare_solution(problem, Status.SWAP_OPTIMAL), regime=Regime.INTERCEPT)


def claim(found: Candidate) -> Status:
    """What was tried, in the regime it was found in; nothing is claimed where objectives are rounding."""
    if found.doubt > TELLS * found.value + NEXT_TO_NOTHING:
        return Status.LIMITED
    if found.all_tried:
        return Status.SWAP_OPTIMAL
    # elsewhere than in a panel exchanges of many features are tried a few times, and not one by one
    in_panel = found.regime is None or found.regime.takes_panel
    return Status.SETTLED if in_panel else Status.LIMITED
