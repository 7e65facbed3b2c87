"""The search over supports of one size, where that exceeds the number of active rows."""

import numpy as np

from kmargin.solvers.columns import design_product, design_rows
from kmargin.solvers.dual import dual_factor, leverage, newton_dual
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.working_set import BETTER, Found, SignedDesign
from kmargin.types import Indices, Matrix, Vector

# How many columns are scored on either side, and how often exchanges are tried.
SHORT, MAX_ROUNDS = 64, 2


class DualSet:
    """A support with the products of its active rows.

    `rows` are the samples that have been active at some time, B their features on the support and K =
    BB'. Scores come from the factor of I + K/lam: with h = x'(lam I + K)^-1 x, the intercept projected
    out, dropping a feature costs lam w^2 / (2 (1 - h/lam)) and taking one gains (x'r)^2 / (2 (lam + h)).
    """

    def __init__(self, design: SignedDesign, lam: float, k: int, start: Found, tol: float) -> None:
        self.design, self.lam, self.tol = design, lam, tol
        held = len(start.support)
        resid = np.empty(len(design.c))
        design_product(design.X, start.support, start.u[:held], resid)
        self.resid = design.c - design.t * (resid + start.u[held])
        self.columns, self.w, self.b = np.empty(k, np.int64), np.zeros(k), float(start.u[held])
        self.columns[:held], self.w[:held] = start.support, start.u[:held]
        if held < k:
            self.columns[held:] = self._promising(design.gradient(self.resid), start.support, k - held)
        self.n_newton = 0
        self.value = np.inf
        self._newton(np.empty(0, np.int64), np.empty((0, k)), np.empty((0, 0)))

    def settle(self) -> None:
        """Exchange many features for many while that pays, halving their number on failure."""
        n_short = min(SHORT, len(self.columns), self.design.X.shape[1] - len(self.columns))
        for _ in range(MAX_ROUNDS):
            if n_short == 0 or self.lam == 0 or self.value <= NO_LOSS or not self._improve(n_short):
                return

    def found(self) -> Found:
        return Found(self.columns, np.append(self.w, self.b), self.value)

    def _newton(self, rows: Indices, B: Matrix, K: Matrix, give_up: float = np.inf) -> None:
        """Minimise on the columns at hand, from the coefficients and residuals at hand."""
        d = self.design
        self.value, self.b, rows, n_rows, B, K, n_iter = newton_dual(
            d.X, d.t, d.c, self.lam, d.intercept, self.columns, self.w, self.b, self.resid, rows, len(rows),
            B, K, give_up, self.tol,
        )  # fmt: skip
        self.rows, self.B, self.K = rows[:n_rows], B[:n_rows], K[:n_rows, :n_rows]
        self.n_newton += n_iter

    def _promising(self, slope: Vector, support: Indices, count: int) -> Indices:
        """The columns outside the support with the steepest slopes."""
        loss = -np.abs(slope)
        loss[support] = np.inf
        promising = np.empty(count, np.int64)
        smallest(loss, len(loss), count, promising)
        return promising

    def _improve(self, n_short: int) -> bool:
        """One exchange that lowers the objective, if one is found."""
        d = self.design
        slope = d.gradient(self.resid)
        take = self._promising(slope, self.columns, n_short)
        lose = np.empty(n_short, np.int64)
        smallest(np.abs(self.w), len(self.w), n_short, lose)
        places, U, _ = dual_factor(
            np.ascontiguousarray(self.K), self.rows, len(self.rows), self.resid, self.lam
        )
        short = np.append(self.columns[lose], take)
        h = leverage(d.X, d.t, d.intercept, short, self.rows, places, U)
        drop = 0.5 * self.lam * self.w[lose] ** 2 / np.maximum(1.0 - h[:n_short] / self.lam, 1e-12)
        gain = 0.5 * slope[take] ** 2 / (self.lam + h[n_short:])
        by_drop, by_gain = np.argsort(drop, kind="stable"), np.argsort(-gain, kind="stable")
        pays = drop[by_drop] < gain[by_gain]
        count = n_short if pays.all() else int(pays.argmin())
        while count > 0:
            if self._exchanged(lose[by_drop[:count]], take[by_gain[:count]]):
                return True
            count //= 2
        return False

    def _exchanged(self, lose: Indices, take: Indices) -> bool:
        """Put the columns `take` in the places `lose`, refit, and go back unless that is better."""
        d, before = (
            self.design,
            (self.columns, self.w, self.b, self.resid, self.value, self.rows, self.B, self.K),
        )
        gone = self.columns[lose]
        out, came = (np.empty((len(self.rows), len(lose))) for _ in range(2))
        design_rows(d.X, d.t, gone, self.rows, 0, len(self.rows), out)
        design_rows(d.X, d.t, take, self.rows, 0, len(self.rows), came)
        shift = np.empty(len(d.t))
        design_product(d.X, gone, self.w[lose], shift)
        self.columns, self.w, self.resid = self.columns.copy(), self.w.copy(), self.resid + d.t * shift
        self.columns[lose], self.w[lose] = take, 0.0
        B = self.B.copy()
        B[:, lose] = came
        self._newton(self.rows, B, self.K + came @ came.T - out @ out.T, give_up=before[4])
        if self.value < BETTER * before[4]:
            return True
        self.columns, self.w, self.b, self.resid, self.value, self.rows, self.B, self.K = before
        return False


def exchange_dual(design: SignedDesign, lam: float, k: int, start: Found, tol: float) -> tuple[Found, int]:
    """The best support of size k found from a smaller one, and the Newton steps it took."""
    dual = DualSet(design, lam, k, start, tol)
    dual.settle()
    return dual.found(), dual.n_newton


def count_active(design: SignedDesign, found: Found) -> int:
    """Rows within the margin of a solution."""
    decision = np.empty(len(design.c))
    design_product(design.X, found.support, found.u[:-1], decision)
    return int(np.count_nonzero(design.c > design.t * (decision + found.u[-1])))
