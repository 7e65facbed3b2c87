"""The search for supports too large for systems of their size: by active rows, or by products with X."""

from typing import NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.linalg import smallest
from kmargin.core.units import Units
from kmargin.solvers.refit.cg import newton_conjugate
from kmargin.solvers.refit.dual import DualRows, dual_factor, leverage, newton_dual, proximal_weight
from kmargin.solvers.refit.folded import BETTER, Candidate, SignedDesign
from kmargin.solvers.refit.newton import NO_LOSS, cost_of_refit
from kmargin.solvers.search.working_set import NONE, Effort, FittedSupport, UnitScores
from kmargin.solvers.solution import Regime

# How many columns are scored on either side, and how often exchanges are tried.
SHORT, FEW_ROUNDS = 64, 2


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


class DualSet(FittedSupport):
    """A support with the products of its active rows.

    Scores come from the factor of I + K/lam: with h = x'(lam I + K)^-1 x, the intercept projected out,
    dropping a feature costs lam w^2 / (2 (1 - h/lam)) and taking one gains (x'r)^2 / (2 (lam + h)). Without
    a ridge to speak of, lam is here the weight that the systems of Newton steps are solved with.

    If all single exchanges are to be tried, those are not that cannot help, which the dual objective tells.
    """

    is_whole = True  # all columns are looked at

    def __init__(
        self, design: SignedDesign, lam: float, k: int, start: Candidate, tol: float, all_swaps: bool = False
    ) -> None:
        self.design, self.lam, self.tol, self.scores_all = design, lam, tol, all_swaps
        self.units = Units.of_columns(design.n_features)
        if not all_swaps:
            self.max_rounds, self.max_renewals = FEW_ROUNDS, 1
        held = len(start.support)
        self.resid = design.residual(start)
        self.support, self.w, self.b = np.empty(k, np.int64), np.zeros(k), float(start.u[held])
        self.support[:held], self.w[:held] = start.support, start.u[:held]
        if held < k:
            self.support[held:] = self._promising(design.gradient(self.resid), start.support, k - held)
        self.n_newton = 0
        self.value, self.all_tried = np.inf, False
        self._newton(DualRows.none(k))

    def outside(self) -> Indices:
        """Those with the steepest slopes; all of them, if all are to be tried."""
        self._slope = self.design.gradient(self.resid)
        n_outside = self.design.n_features - len(self.support)
        count = n_outside if self.scores_all else min(SHORT, len(self.support), n_outside)
        return self._promising(self._slope, self.support, count)

    def renew(self) -> None:
        """All columns are looked at each time."""

    def score(self, outside: Indices) -> UnitScores:
        """Of those features of the support that have the smallest coefficients; others are not to leave."""
        count = len(self.support) if self.scores_all else min(SHORT, len(self.support))
        lose = np.empty(count, np.int64)
        smallest(np.abs(self.w), len(self.w), count, lose)
        drop = np.full(len(self.support), np.inf)
        drop[lose], gain = self._scores(self._slope, lose, outside)
        return UnitScores(drop, gain)

    def single_changes(
        self, outside: Indices, scores: UnitScores, n_tries: int
    ) -> tuple[Indices, Indices, Matrix]:
        lose, take, change = super().single_changes(outside, scores, n_tries)
        if self.scores_all:
            bound = DualBound.at(self.design, self.lam, self.support, self.resid)
            for row, place in zip(change, lose, strict=True):
                row[bound.after_swap(self.support[place], outside[take]) >= BETTER * self.value] = np.inf
        return lose, take, change

    def cost_of_try(self) -> float:
        return cost_of_refit(self.store.n_rows, len(self.support))

    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        return self._exchanged(lose, take, give_up)

    def move(self, lose: Indices, take: Indices) -> None:
        """The products of the rows are made anew."""
        d = self.design
        self.resid = self.resid + d.t * d.X.product(self.support[lose], self.w[lose])
        self.support = np.append(np.delete(self.support, lose), take)
        self.w = np.append(np.delete(self.w, lose), np.zeros(len(take)))
        self._newton(DualRows.none(len(self.support)))

    def found(self) -> Candidate:
        return Candidate(self.support, np.append(self.w, self.b), self.value, self.all_tried, Regime.DUAL)

    def _newton(self, store: DualRows, give_up: float = np.inf) -> None:
        """Minimise on the columns at hand, from the coefficients and residuals at hand."""
        d = self.design
        self.value, self.b, store, n_iter = newton_dual(
            d.X, d.t, d.c, self.lam, self.support, self.w, self.b, self.resid, store, give_up, self.tol
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

    def _scores(self, slope: Vector, lose: Indices, take: Indices) -> tuple[Vector, Vector]:
        """What the features at the places `lose` cost to drop, and the columns `take` gain when taken."""
        d, (rows, n_rows, _, K) = self.design, self.store
        lam = self.lam + proximal_weight(K, n_rows, self.lam)
        places, U, _ = dual_factor(K, rows, n_rows, self.resid, lam)
        active = rows[places]
        t = d.t[active]
        A = t[:, None] * d.X.block(active, np.append(self.support[lose], take))
        h = leverage(A, t if d.X.fit_intercept else np.zeros(len(t)), U)
        drop = 0.5 * lam * self.w[lose] ** 2 / np.maximum(1.0 - h[: len(lose)] / lam, 1e-12)
        return drop, 0.5 * slope[take] ** 2 / (lam + h[len(lose) :])

    def _exchanged(self, lose: Indices, take: Indices, give_up: float) -> bool:
        """Put the columns `take` in the places `lose`, refit, and go back unless that is better."""
        d, (rows, n_rows, B, K) = self.design, self.store
        before = self.support, self.w, self.b, self.resid, self.value, self.store
        gone, t = self.support[lose], d.t[rows, None]
        out, came = t * d.X.block(rows, gone), t * d.X.block(rows, take)
        self.resid = self.resid + d.t * d.X.product(gone, self.w[lose])
        self.support, self.w = self.support.copy(), self.w.copy()
        self.support[lose], self.w[lose] = take, 0.0
        B = B.copy()
        B[:, lose] = came
        K = K + came @ came.T - out @ out.T
        self._newton(DualRows(rows, n_rows, B, K), give_up)
        if self.value < BETTER * before[4]:
            return True
        self.support, self.w, self.b, self.resid, self.value, self.store = before
        return False


def exchange_dual(
    design: SignedDesign, lam: float, k: int, start: Candidate, effort: Effort
) -> tuple[Candidate, int]:
    """The best support of size k found from a smaller one, and the Newton steps it took."""
    dual = DualSet(design, lam, k, start, effort.tol, all_swaps=effort.max_swaps < 0)
    dual.settle(effort)
    return dual.found(), dual.n_newton


# On the way to a size a support shrinks or grows by no more than this factor between refits.
FACTOR = 2

# How exactly supports are fitted on the way to a size, and while features are exchanged; relative to
# the objective.
ROUGH, FINE = 1e-4, 1e-6


class ProductSet(FittedSupport):
    """A support whose columns are stored by themselves, as sparse as they were.

    Scores take the other coefficients as they are. That overrates what a drop costs and underrates what
    a newcomer gains, so an exchange that seems to pay does.
    """

    is_whole = True  # all columns are looked at
    max_rounds, max_renewals = 4, 1

    def __init__(self, design: SignedDesign, lam: float, start: Candidate, tol: float = FINE) -> None:
        self.design, self.lam, self.tol = design, lam, max(tol, FINE)
        self.units = Units.of_columns(design.n_features)
        self.all_tried = False
        self.resid, self.value, self.n_newton = design.residual(start), np.inf, 0
        self.support, self.w, self.b = start.support, start.u[:-1].copy(), float(start.u[-1])

    def found(self) -> Candidate:
        nothing_to_gain = len(self.support) == self.design.n_features or self.value <= NO_LOSS
        u = np.append(self.w, self.b)
        return Candidate(self.support, u, self.value, nothing_to_gain, Regime.PRODUCTS)

    def fit(self, tol: float, give_up: float = np.inf) -> None:
        """Minimise on the columns at hand, from the coefficients and residuals at hand."""
        d = self.design
        A = d.X if len(self.support) == d.n_features else d.X.take(self.support)
        self.value, self.b, n_iter = newton_conjugate(
            A, d.t, d.c, self.lam, self.w, self.b, self.resid, give_up, tol
        )
        self.n_newton += n_iter

    def resize(self, k: int) -> None:
        """By larger steps than elsewhere: a refit takes many products with X."""
        while len(self.support) != k:
            size = len(self.support)
            drop, gain = self._by_column()
            if size > k:
                count = min(size - k, size - size // FACTOR)
                self.move(_best(drop, count), NONE)
            else:
                count = min(k - size, max(size * (FACTOR - 1), 1))
                self.move(NONE, _best(-gain, count))

    def outside(self) -> Indices:
        """As many as may be exchanged at once, those first that gain most."""
        self._drop, self._gain = self._by_column()
        return _best(-self._gain, min(len(self._drop), len(self._gain) - len(self._drop)))

    def renew(self) -> None:
        """All columns are looked at each time."""

    def score(self, outside: Indices) -> UnitScores:
        gain = self._gain[outside]
        return UnitScores(self._drop, gain)

    def _by_column(self) -> tuple[Vector, Vector]:
        """What each feature of the support costs to drop, and each column gains when taken."""
        d = self.design
        curvature = d.X.spread(d.c * np.sqrt(squared_hinge.curvatures(self.resid))) + self.lam
        gain = np.zeros(d.n_features)
        np.divide(d.gradient(self.resid) ** 2, 2.0 * curvature, out=gain, where=curvature > 0)
        gain[self.support] = -np.inf
        return 0.5 * self.w**2 * curvature[self.support], gain

    def tried(self, lose: Indices, take: Indices, give_up: float) -> bool:
        before = self.support, self.w, self.b, self.resid, self.value
        self._replace(lose, take)
        self.fit(self.tol, give_up)
        if self.value < BETTER * before[4]:
            return True
        self.support, self.w, self.b, self.resid, self.value = before
        return False

    def move(self, lose: Indices, take: Indices) -> None:
        self._replace(lose, take)
        self.fit(ROUGH)

    def cost_of_try(self) -> float:
        return cost_of_refit(self.design.n_samples, len(self.support))

    def _replace(self, lose: Indices, take: Indices) -> None:
        """Take columns in, with coefficient 0, for those at some places."""
        d = self.design
        self.resid = self.resid + d.t * d.X.product(self.support[lose], self.w[lose])
        self.support = np.append(np.delete(self.support, lose), take)
        self.w = np.append(np.delete(self.w, lose), np.zeros(len(take)))


def _best(cost: Vector, count: int) -> Indices:
    """The places of the smallest, in order."""
    places = np.empty(count, np.int64)
    smallest(cost, len(cost), count, places)
    return places


def exchange_products(
    design: SignedDesign, lam: float, k: int, start: Candidate, effort: Effort
) -> tuple[Candidate, int]:
    """The best support of size k found from another, and the Newton steps it took."""
    products = ProductSet(design, lam, start, effort.tol)
    products.resize(k)
    products.fit(products.tol)
    products.settle(effort)
    products.fit(effort.tol)
    return products.found(), products.n_newton
