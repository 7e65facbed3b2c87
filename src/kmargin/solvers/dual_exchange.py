"""The search over supports of one size, where that exceeds the number of active rows."""

import numpy as np

from kmargin.solvers.dual import DualRows, dual_factor, leverage, n_dual_numbers, newton_dual
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.signed import BETTER, Found, SignedDesign
from kmargin.types import Indices, Vector

# How many columns are scored on either side, and how often exchanges are tried.
SHORT, MAX_ROUNDS = 64, 2


class DualSet:
    """A support with the products of its active rows.

    Scores come from the factor of I + K/lam: with h = x'(lam I + K)^-1 x, the intercept projected out,
    dropping a feature costs lam w^2 / (2 (1 - h/lam)) and taking one gains (x'r)^2 / (2 (lam + h)).
    """

    def __init__(self, design: SignedDesign, lam: float, k: int, start: Found, tol: float) -> None:
        self.design, self.lam, self.tol = design, lam, tol
        held = len(start.support)
        self.resid = design.residual(start)
        self.columns, self.w, self.b = np.empty(k, np.int64), np.zeros(k), float(start.u[held])
        self.columns[:held], self.w[:held] = start.support, start.u[:held]
        if held < k:
            self.columns[held:] = self._promising(design.gradient(self.resid), start.support, k - held)
        self.n_newton = 0
        self.value = np.inf
        self._newton(DualRows.none(k))

    def settle(self) -> None:
        """Exchange many features for many while that pays, halving their number on failure."""
        n_short = min(SHORT, len(self.columns), self.design.n_features - len(self.columns))
        for _ in range(MAX_ROUNDS):
            if n_short == 0 or self.lam == 0 or self.value <= NO_LOSS or not self._improve(n_short):
                return

    def found(self) -> Found:
        return Found(self.columns, np.append(self.w, self.b), self.value)

    def _newton(self, store: DualRows, give_up: float = np.inf) -> None:
        """Minimise on the columns at hand, from the coefficients and residuals at hand."""
        d = self.design
        self.value, self.b, store, n_iter = newton_dual(
            d.X, d.t, d.c, self.lam, self.columns, self.w, self.b, self.resid, store, give_up, self.tol
        )
        self.store = store.trimmed()
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
        rows, n_rows, _, K = self.store
        places, U, _ = dual_factor(K, rows, n_rows, self.resid, self.lam)
        active = rows[places]
        t = d.t[active]
        A = t[:, None] * d.X.block(active, np.append(self.columns[lose], take))
        h = leverage(A, t if d.X.fit_intercept else np.zeros(len(t)), U)
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
        d, (rows, n_rows, B, K) = self.design, self.store
        before = self.columns, self.w, self.b, self.resid, self.value, self.store
        gone, t = self.columns[lose], d.t[rows, None]
        out, came = t * d.X.block(rows, gone), t * d.X.block(rows, take)
        self.resid = self.resid + d.t * d.X.product(gone, self.w[lose])
        self.columns, self.w = self.columns.copy(), self.w.copy()
        self.columns[lose], self.w[lose] = take, 0.0
        B = B.copy()
        B[:, lose] = came
        K = K + came @ came.T - out @ out.T
        self._newton(DualRows(rows, n_rows, B, K), give_up=before[4])
        if self.value < BETTER * before[4]:
            return True
        self.columns, self.w, self.b, self.resid, self.value, self.store = before
        return False


def dual_fits(design: SignedDesign, k: int, start: Found) -> bool:
    """Whether there is room for the products of the active rows."""
    m = design.count_active(start)
    return design.fits(n_dual_numbers(m, k))


def exchange_dual(design: SignedDesign, lam: float, k: int, start: Found, tol: float) -> tuple[Found, int]:
    """The best support of size k found from a smaller one, and the Newton steps it took."""
    dual = DualSet(design, lam, k, start, tol)
    dual.settle()
    return dual.found(), dual.n_newton
