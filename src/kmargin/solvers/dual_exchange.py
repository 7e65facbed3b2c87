"""The search over supports of one size, where that exceeds the number of active rows."""

from typing import NamedTuple

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.solvers.dual import DualRows, dual_factor, leverage, newton_dual, proximal_weight
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.regime import Regime
from kmargin.solvers.signed import BETTER, Found, SignedDesign
from kmargin.types import Indices, Vector

# How many columns are scored on either side, and how often exchanges are tried.
SHORT, MAX_ROUNDS = 64, 2


class DualBound(NamedTuple):
    """What the objective is at least, with other features than those of a support.

    By weak duality: for every r >= 0 with t'r = 0, and every s >= 0, the objective on a support is at least
    s c'r - s^2 q / 2, where q is twice the loss's conjugate at r, that is r'r, plus the sum of (x'r)^2 / lam
    over the support. The best s makes that (c'r)^2 / (2 q). With the residuals at the minimum for r, this is
    the objective itself; so a column whose slope is no steeper than that of a feature cannot be of more use
    in its place.
    """

    pull: float  # c'r
    q: float
    share: Vector  # (x'r)^2 / lam of each column

    @classmethod
    def at(cls, design: SignedDesign, lam: float, support: Indices, resid: Vector) -> "DualBound":
        r = squared_hinge.slopes(resid)
        if design.X.fit_intercept:
            r = balance(r, design.t)
        if lam == 0 or not r.any():  # nothing is known
            return cls(0.0, 1.0, np.zeros(design.n_features))
        share = design.X.slopes(design.t * r) ** 2 / lam
        q = 2.0 * squared_hinge.total_conjugate(r) + float(share[support].sum())
        return cls(float(design.c @ r), q, share)

    def after_swap(self, feature: int, others: Indices) -> Vector:
        """With each of the others in the place of a feature."""
        return 0.5 * self.pull**2 / (self.q - self.share[feature] + self.share[others])


def balance(r: Vector, t: Vector) -> Vector:
    """Residuals with t'r = 0, not only nearly so; 0 if that takes it."""
    above, below = float(r @ np.maximum(t, 0.0)), float(r @ np.maximum(-t, 0.0))
    return np.where(t < 0, r * (above / below), r) if above > 0 and below > 0 else np.zeros_like(r)


class DualSet:
    """A support with the products of its active rows.

    Scores come from the factor of I + K/lam: with h = x'(lam I + K)^-1 x, the intercept projected out,
    dropping a feature costs lam w^2 / (2 (1 - h/lam)) and taking one gains (x'r)^2 / (2 (lam + h)). Without
    a ridge to speak of, lam is here the weight that the systems of Newton steps are solved with.
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
        self.value, self.all_tried = np.inf, False
        self._newton(DualRows.none(k))

    def settle(self, all_swaps: bool = False) -> None:
        """Exchange many features for many while that pays, halving their number on failure.

        Then, if all single exchanges are to be tried, one for one until none of them helps.
        """
        n_short = min(SHORT, len(self.columns), self.design.n_features - len(self.columns))
        for _ in range(MAX_ROUNDS):
            if n_short == 0 or self.value <= NO_LOSS or not self._improve(n_short):
                break
        while all_swaps and n_short > 0 and self.value > NO_LOSS and self._swapped():
            pass
        self.all_tried = all_swaps or n_short == 0 or self.value <= NO_LOSS

    def found(self) -> Found:
        return Found(self.columns, np.append(self.w, self.b), self.value, self.all_tried, Regime.DUAL)

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
        slope = self.design.gradient(self.resid)
        take = self._promising(slope, self.columns, n_short)
        lose = np.empty(n_short, np.int64)
        smallest(np.abs(self.w), len(self.w), n_short, lose)
        drop, gain = self._scores(slope, lose, take)
        by_drop, by_gain = np.argsort(drop, kind="stable"), np.argsort(-gain, kind="stable")
        pays = drop[by_drop] < gain[by_gain]
        count = n_short if pays.all() else int(pays.argmin())
        while count > 0:
            if self._exchanged(lose[by_drop[:count]], take[by_gain[:count]]):
                return True
            count //= 2
        return False

    def _scores(self, slope: Vector, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """What the features at the places `lose` cost to drop, and the columns `take` gain when taken."""
        d, (rows, n_rows, _, K) = self.design, self.store
        lam = self.lam + proximal_weight(K, n_rows, self.lam)
        places, U, _ = dual_factor(K, rows, n_rows, self.resid, lam)
        active = rows[places]
        t = d.t[active]
        A = t[:, None] * d.X.block(active, np.append(self.columns[lose], take))
        h = leverage(A, t if d.X.fit_intercept else np.zeros(len(t)), U)
        drop = 0.5 * lam * self.w[lose] ** 2 / np.maximum(1.0 - h[: len(lose)] / lam, 1e-12)
        return drop, 0.5 * slope[take] ** 2 / (lam + h[len(lose) :])

    def _swapped(self) -> bool:
        """One exchange of a feature for another that lowers the objective, if there is one.

        All are tried but those that cannot help, which the dual objective tells.
        """
        d, places = self.design, np.arange(len(self.columns))
        others = np.delete(np.arange(d.n_features), self.columns)
        drop, gain = self._scores(d.gradient(self.resid), places, others)
        others = others[np.argsort(-gain, kind="stable")]
        bound = DualBound.at(d, self.lam, self.columns, self.resid)
        for place in np.argsort(drop, kind="stable"):
            least = bound.after_swap(self.columns[place], others)
            for other in others[least < BETTER * self.value]:
                # what is claimed of a try is not to rest on what it seems
                if self._exchanged(np.array([place]), np.array([other]), to_the_end=True):
                    return True
        return False

    def _exchanged(self, lose: Indices, take: Indices, to_the_end: bool = False) -> bool:
        """Put the columns `take` in the places `lose`, refit, and go back unless that is better.

        A refit is given up where it seems to end above, unless it is to go to the end.
        """
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
        give_up = np.inf if to_the_end else before[4]
        self._newton(DualRows(rows, n_rows, B, K), give_up)
        if self.value < BETTER * before[4]:
            return True
        self.columns, self.w, self.b, self.resid, self.value, self.store = before
        return False


def exchange_dual(
    design: SignedDesign, lam: float, k: int, start: Found, tol: float, all_swaps: bool = False
) -> tuple[Found, int]:
    """The best support of size k found from a smaller one, and the Newton steps it took."""
    dual = DualSet(design, lam, k, start, tol)
    dual.settle(all_swaps)
    return dual.found(), dual.n_newton
