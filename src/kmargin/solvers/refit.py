"""The exact minimum on a given support, for a problem."""

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.conjugate import newton_conjugate
from kmargin.solvers.dual import DualRows, n_dual_numbers, newton_dual
from kmargin.solvers.measures import Measured
from kmargin.solvers.newton import EXACT, newton_from_gram
from kmargin.solvers.regime import Regime, choose_regime, depends_on_active_rows
from kmargin.solvers.rows import place, take_gram
from kmargin.solvers.signed import Candidate, Signed, SignedDesign
from kmargin.types import Indices, Vector

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
