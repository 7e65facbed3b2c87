"""The exact minimum on a given support of a problem, with or without required signs."""

import numpy as np

from kmargin.core.arrays import Flags, Indices, Vector
from kmargin.core.problem import Problem
from kmargin.solvers.refit.cg import newton_conjugate
from kmargin.solvers.refit.dual import DualRows, n_dual_numbers, newton_dual
from kmargin.solvers.refit.folded import Candidate, Measured, Signed, SignedDesign
from kmargin.solvers.refit.newton import EXACT, newton_from_gram, place, take_gram
from kmargin.solvers.solution import Regime, choose_regime, depends_on_active_rows

TOL = 1e-14  # relative to the objective


def refit(
    problem: Problem,
    support: Indices,
    coef: Vector | None = None,
    intercept: float = 0.0,
    measured: Measured | None = None,
) -> tuple[Vector, float, float, int]:
    """Minimise loss plus ridge over the coefficients of `support` and the intercept.

    Starts from `coef` and `intercept` where given. Returns coefficients, intercept, objective and
    the number of Newton steps. Solves systems as large as the support, or as the active rows where
    these are many fewer; where neither fits, by products alone. `measured` is the problem as the search
    sees it, where that is known.
    """
    found, n_iter = refit_support(problem, support, coef, intercept, measured)
    return found.u[:-1], float(found.u[-1]), found.value, n_iter


def refit_support(
    problem: Problem,
    support: Indices,
    coef: Vector | None = None,
    intercept: float = 0.0,
    measured: Measured | None = None,
) -> tuple[Candidate, int]:
    """The same as a support that knows its regime."""
    support = np.asarray(support, dtype=np.int64)
    coef = np.zeros(len(support)) if coef is None else np.array(coef, dtype=np.float64)
    measured = Measured(problem) if measured is None else measured
    start = Candidate(support, np.append(coef, intercept if problem.design.fit_intercept else 0.0), np.inf)
    start, design = measured.enter(start), measured.design
    regime = _regime(design, start)
    u, value, n_iter, finished = _refit(design, problem.lam, start, regime)
    found = Candidate(support, u, float(value), regime=regime)
    if not finished or measured.measures is not None:
        found = measured.finish(problem.lam, found)
    return measured.leave(problem.lam, found), int(n_iter)


def _regime(design: Signed, start: Candidate) -> Regime:
    """A panel would have the columns of the support alone."""
    k, elsewhere = len(start.support), design.at_hand is None
    n_active = design.count_active(start) if depends_on_active_rows(k) and not elsewhere else None
    return choose_regime(
        k=k,
        n_columns=k,
        n_features=design.n_features,
        panel_fits=elsewhere or design.fits(design.n_samples * (k + 2)),
        elsewhere=elsewhere,
        n_active=n_active,
        dual_fits=n_active is not None and design.fits(n_dual_numbers(n_active, k)),
    )


def _refit(design: Signed, lam: float, start: Candidate, regime: Regime) -> tuple[Vector, float, int, bool]:
    """Coefficients, objective, Newton steps; and whether they are known to be at their minimum."""
    if regime.takes_panel:
        return _refit_primal(design, lam, start)
    assert design.at_hand is not None
    solve = _refit_dual if regime is Regime.DUAL else _refit_products
    return *solve(design.at_hand, lam, start), False


def _refit_primal(design: Signed, lam: float, start: Candidate) -> tuple[Vector, float, int, bool]:
    k = len(start.support)
    rows, ridge, gram = (
        design.make_rows(start.support, k),
        design.make_ridge(lam, k),
        np.empty((k + 2, k + 2)),
    )
    idx, u = np.arange(k + 1), start.u.copy()
    place(rows, idx, u)
    take_gram(rows, gram)
    value, n_iter = newton_from_gram(rows, ridge, gram, idx, u, np.inf, TOL / EXACT)
    (found,), (finished,) = design.finish_in_panel(rows, ridge, [Candidate(idx[:-1], u, float(value))])
    return found.u, found.value, n_iter, bool(finished)


def _refit_dual(design: SignedDesign, lam: float, start: Candidate) -> tuple[Vector, float, int]:
    support, u, resid = start.support, start.u, design.residual(start)
    store = DualRows.none(len(support))
    w = u[:-1].copy()
    value, b, _, n_iter = newton_dual(
        design.X, design.t, design.c, lam, support, w, float(u[-1]), resid, store, np.inf, TOL
    )
    return np.append(w, b), value, n_iter


def _refit_products(design: SignedDesign, lam: float, start: Candidate) -> tuple[Vector, float, int]:
    support, u, X, resid = start.support, start.u, design.X, design.residual(start)
    columns, w = X if len(support) == X.n_features else X.take(support), u[:-1].copy()
    value, b, n_iter = newton_conjugate(columns, design.t, design.c, lam, w, float(u[-1]), resid, np.inf, TOL)
    return np.append(w, b), value, n_iter


# A round that lowers the objective by no more than this share has only moved by rounding.
LITTLE = 1e-12


def refit_with_signs(
    problem: Problem,
    support: Indices,
    signs: Vector,
    coef: Vector,
    intercept: float,
    measured: Measured | None = None,
) -> tuple[Vector, float, float]:
    """Minimise loss plus ridge over coefficients of these signs (0 for either), and the intercept.

    Returns coefficients, intercept and objective. Starts from `coef`, of which those of the wrong sign are
    taken for 0. Coefficients that are 0 wait until the objective falls in the direction of their sign; then
    one at a time, the steepest first, is set free, and the minimum over all that are free is gone to. One
    that would change its sign on the way is stopped at 0 and waits again. The objective is convex, so it
    falls on each part of that way, no set of free coefficients comes back, and the last is the minimum.
    """
    wait = _Waiting(problem, support, signs, measured)
    free = (signs == 0) | (coef * signs > 0)
    coef = np.where(free, coef, 0.0)
    coef, intercept, objective, free = wait.settle(coef, intercept, free)
    while True:
        steepest = wait.steepest(coef, intercept, free)
        if steepest is None:
            return coef, intercept, objective
        more = free.copy()
        more[steepest] = True
        new_coef, new_intercept, new_objective, more = wait.settle(coef, intercept, more)
        if not new_objective < objective * (1.0 - LITTLE):
            return coef, intercept, objective
        coef, intercept, objective, free = new_coef, new_intercept, new_objective, more


class _Waiting:
    """A support some of whose coefficients wait at 0."""

    def __init__(self, problem: Problem, support: Indices, signs: Vector, measured: Measured | None) -> None:
        self.problem, self.support, self.signs = problem, support, signs
        self.measured = Measured(problem) if measured is None else measured

    def settle(self, coef: Vector, intercept: float, free: Flags) -> tuple[Vector, float, float, Flags]:
        """The minimum over what is free, or over the part of it that does not change its sign on the way."""
        coef, free = coef.copy(), free.copy()
        while True:
            goal, goal_intercept, objective, _ = refit(
                self.problem, self.support[free], coef[free], intercept, self.measured
            )
            here = coef[free]
            changes = goal * self.signs[free] < 0
            if not changes.any():
                coef[free] = goal
                return coef, goal_intercept, objective, free
            shares = here[changes] / (here[changes] - goal[changes])  # of the way, until each is 0
            share = shares.min()
            coef[free] = here + share * (goal - here)
            intercept += share * (goal_intercept - intercept)
            stopped = np.flatnonzero(free)[changes][shares == share]
            coef[stopped] = 0.0
            free[stopped] = False

    def steepest(self, coef: Vector, intercept: float, free: Flags) -> int | None:
        """Which of those that wait the objective falls fastest with; None if it falls with none."""
        design = self.problem.design
        beta = np.zeros(design.n_parameters)
        beta[self.support] = coef
        beta[design.n_features :] = intercept
        slopes = self.problem.loss_gradient(beta)[self.support] * self.signs
        slopes[free] = 0.0  # those that wait are 0, and so is the slope of their ridge
        best = int(np.argmin(slopes)) if len(slopes) else 0
        return best if len(slopes) and slopes[best] < 0 else None
