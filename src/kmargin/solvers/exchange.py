"""The default solver: a local search that swaps features of the support, for every k and ridge of a grid."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from kmargin.core.problem import BinaryProblem, Problem
from kmargin.core.validation import is_number
from kmargin.solvers.refit.newton import ROUNDING_RTOL
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search.path import SupportPath
from kmargin.solvers.search.swap_search import Candidate, Effort
from kmargin.solvers.solution import Ending, Regime, Solution, Status
from kmargin.solvers.solver import STRONGEST_RIDGE, Solver, bare_solution, check_options

EFFORTS = {
    "fast": Effort(8, 8, max_sweeps=1),
    "normal": Effort(8, 8, max_sweeps=2, max_starts=12, restart_seconds=0.3, wider_flops=4e6),
    "thorough": Effort(32, 16, 4, max_starts=12, all_swaps=True, restart_seconds=3.0, wider_flops=4e6),
}


class Exchange(Solver):
    """Swap features of the support for others while that lowers the objective.

    Each support is fitted exactly, by Newton steps. How much the objective rises without a feature, or falls
    with another one, is predicted to second order, with all other coefficients refitted. The least useful
    features are swapped for the most promising ones, many at a time while the objective falls; then single
    features, in the order of the predicted decrease; then pairs. On a path, each k is searched from the
    supports of neighbouring k, going down and up the path, and the best support found is kept. On a grid of
    ridges, from strong to weak, the supports found for one ridge are the starts for the next.

    Parameters
    ----------
    effort : {"fast", "normal", "thorough"}, default="normal"
        How hard to search. ``"fast"`` swaps features until the most promising swaps fail, and sweeps a path
        once; the folds of a cross-validation always use it. ``"normal"`` sweeps a path twice and adds an
        iterated local search to a single fit if there are fewer rows than columns, or than eight times k:
        part of the support is replaced at random and searched again with decreasing ridges, for 0.1 to 0.3 s.
        ``"thorough"`` restarts about ten times as often, also if there are more rows, and tries every swap of
        one feature for another wherever all columns fit into memory: the result is then optimal under single
        swaps, with status `Status.SWAP_OPTIMAL`.
    tol : float, default=1e-9
        A fit on a support ends when the predicted decrease of a Newton step is below this fraction of the
        objective.
    **removed : object
        Options of earlier versions, which raise a TypeError that says what to use instead.

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

    # The matrices of a search are so small that threads of BLAS would spend most of their time waiting.
    wants_blas_threads = False
    is_monotone = True
    skips_repeats = True

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
        check_options(
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
            The faster solver. The scores of a cross-validation are averages over folds, and what more effort
            would gain is small compared with the differences between folds.
        """
        return clone(self).set_params(effort="fast")

    def solve_grid(
        self, problem: Problem, lams: Sequence[Sequence[float]], ks: Sequence[int], rng: np.random.Generator
    ) -> Iterator[tuple[Solution, ...]]:
        path = SupportPath(problem, ks, EFFORTS[self.effort]._replace(tol=self.tol))
        n_all = problem.units.n_units + len(problem.units.copies)
        alone = tuple(bare_solution(one, Status.SWAP_OPTIMAL, Regime.INTERCEPT) for one in problem.binary)
        for row in lams:
            if min(row) > STRONGEST_RIDGE:
                yield from (alone for _ in ks)
                continue
            path.walk(np.array(row, np.float64))
            for k in ks:
                if k == 0:
                    yield alone
                elif k >= n_all > problem.units.n_units:
                    yield self._with_copies(problem.with_ridges(row), path, alone)
                else:
                    yield self._solutions(problem, path, path.best(k), alone)

    def improve(self, problem: Problem, starts: Sequence[Solution]) -> tuple[Solution, ...]:
        """Search from the support of given solutions for a better support with the same number of units.

        Parameters
        ----------
        problem : Problem
            The problem, whose binary problems have their ridges.
        starts : list of Solution
            A solution of each binary problem.

        Returns
        -------
        tuple of Solution
            Solutions whose sum of objectives is not higher than that of `starts`, except by rounding.
        """
        units, lams = problem.units, np.array([one.lam for one in problem.binary])
        used = np.zeros(units.n_features)
        used[np.concatenate([start.support for start in starts])] = 1.0
        support = np.flatnonzero((units.total(used) > 0) | units.fixed)
        if len(support) == 0 or lams.min() > STRONGEST_RIDGE:
            return tuple(starts)
        columns = units.columns_of(support)
        path = SupportPath(problem, [len(support)], EFFORTS[self.effort]._replace(tol=self.tol))
        coefs = [
            rows.scaled(columns, start.dense_coef()[columns], start.intercept)
            for rows, start in zip(path.all_rows, starts, strict=True)
        ]
        path.improve(lams, Candidate(support, np.array(coefs)))
        alone = tuple(bare_solution(one, Status.SWAP_OPTIMAL, Regime.INTERCEPT) for one in problem.binary)
        better = self._solutions(problem, path, path.best(len(support)), alone)
        before, after = (sum(s.objective for s in solutions) for solutions in (starts, better))
        return better if after <= before * (1.0 + ROUNDING_RTOL) else tuple(starts)

    def _solutions(
        self, problem: Problem, path: SupportPath, found: Candidate, alone: tuple[Solution, ...]
    ) -> tuple[Solution, ...]:
        """For each binary problem, the solution that the search found, or the intercept alone if better."""
        assert found.values is not None
        # With a ridge, a column and its copy may be better than the column alone; that has not been tried.
        all_tried = found.all_tried and not (len(problem.units.copies) and path.lams.max() > 0)
        # Without a panel (a copy of columns of X) most single swaps are not tried: the status is LIMITED.
        in_panel = found.all_tried or found.regime is None or found.regime.takes_panel
        status = Status.SWAP_OPTIMAL if all_tried else Status.SETTLED if in_panel else Status.LIMITED
        columns = problem.units.columns_of(found.support)
        order = np.argsort(columns)
        solutions = []
        for p, rows in enumerate(path.all_rows):
            coef, intercept, objective = rows.unscaled(
                columns, found.coefs[p], float(found.values[p]), float(path.lams[p])
            )
            new: dict[str, Any] = {"status": status, "regime": found.regime}
            if objective <= alone[p].objective:
                used = order[coef[order] != 0]
                new |= {"support": columns[used], "coef": coef[used], "intercept": intercept}
                new |= {"objective": objective, "n_iter": path.n_newton, "ending": Ending.SEARCH}
            solutions.append(replace(alone[p], **new))
        return tuple(solutions)

    def _with_copies(
        self, problem: Problem, path: SupportPath, alone: tuple[Solution, ...]
    ) -> tuple[Solution, ...]:
        """Solutions refitted with all columns, also those that equal others and are left out of searches."""
        columns = np.sort(np.append(problem.units.columns, problem.units.copies))
        found = self._solutions(problem, path, path.best(problem.units.n_units), alone)
        starts = (replace(start, support=columns, coef=start.dense_coef()[columns]) for start in found)
        return tuple(map(refit_solution, problem.binary, starts, alone))


def refit_solution(problem: BinaryProblem, start: Solution, alone: Solution) -> Solution:
    """Refit the support of `start`; return `alone`, the intercept alone, if that has a lower objective."""
    coef, intercept, objective, n_newton = refit(problem, start.support, start.coef, start.intercept)
    if not objective <= alone.objective:
        return alone
    used = np.flatnonzero(coef)
    return replace(
        start,
        support=start.support[used],
        coef=coef[used],
        intercept=intercept,
        objective=objective,
        n_iter=n_newton,
        status=Status.SWAP_OPTIMAL,
    )
