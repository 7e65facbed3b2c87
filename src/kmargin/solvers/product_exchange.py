"""The search over supports of one size, where only products with X fit in memory."""

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.solvers.conjugate import newton_conjugate
from kmargin.solvers.fitted import NONE, FittedSupport, UnitScores
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.regime import Regime
from kmargin.solvers.rows import cost_of_refit
from kmargin.solvers.signed import BETTER, Candidate, SignedDesign
from kmargin.solvers.working_set import Effort
from kmargin.types import Indices, Vector
from kmargin.units import Units

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
