"""The search over supports of one size, where only products with X fit in memory."""

import numpy as np

from kmargin.losses import squared_hinge
from kmargin.solvers.conjugate import newton_conjugate
from kmargin.solvers.linalg import smallest
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.regime import Regime
from kmargin.solvers.signed import BETTER, Found, SignedDesign
from kmargin.types import Indices, Vector

# How often exchanges are tried.
MAX_ROUNDS = 4

# On the way to a size a support shrinks or grows by no more than this factor between refits.
FACTOR = 2

# How exactly supports are fitted on the way to a size, and while features are exchanged; relative to
# the objective.
ROUGH, FINE = 1e-4, 1e-6


class ProductSet:
    """A support whose columns are stored by themselves, as sparse as they were.

    Scores take the other coefficients as they are. That overrates what a drop costs and underrates what
    a newcomer gains, so an exchange that seems to pay does.
    """

    def __init__(self, design: SignedDesign, lam: float, start: Found) -> None:
        self.design, self.lam = design, lam
        self.resid, self.value, self.n_newton = design.residual(start), np.inf, 0
        self.columns, self.w, self.b = start.support, start.u[:-1].copy(), float(start.u[-1])

    def found(self) -> Found:
        nothing_to_gain = len(self.columns) == self.design.n_features or self.value <= NO_LOSS
        u = np.append(self.w, self.b)
        return Found(self.columns, u, self.value, nothing_to_gain, Regime.PRODUCTS)

    def fit(self, tol: float, give_up: float = np.inf) -> None:
        """Minimise on the columns at hand, from the coefficients and residuals at hand."""
        d = self.design
        A = d.X if len(self.columns) == d.n_features else d.X.take(self.columns)
        self.value, self.b, n_iter = newton_conjugate(
            A, d.t, d.c, self.lam, self.w, self.b, self.resid, give_up, tol
        )
        self.n_newton += n_iter

    def resize(self, k: int) -> None:
        """Drop the cheapest features or add the most gainful, some at a time, until there are k."""
        while len(self.columns) != k:
            size = len(self.columns)
            drop, gain = self._scores()
            if size > k:
                count = min(size - k, size - size // FACTOR)
                self._replace(_best(drop, count), np.empty(0, np.int64))
            else:
                count = min(k - size, max(size * (FACTOR - 1), 1))
                self._replace(np.empty(0, np.int64), _best(-gain, count))
            self.fit(ROUGH)

    def settle(self, tol: float) -> None:
        """Exchange many features for many while that pays, halving their number on failure."""
        fine = max(tol, FINE)
        self.fit(fine)
        for _ in range(MAX_ROUNDS):
            if self.value <= NO_LOSS or not self._improve(fine):
                break
        self.fit(tol)

    def _scores(self) -> tuple[Vector, Vector]:
        """What each feature of the support costs to drop, and each column gains when taken."""
        d = self.design
        curvature = d.X.spread(d.c * np.sqrt(squared_hinge.curvatures(self.resid))) + self.lam
        gain = np.zeros(d.n_features)
        np.divide(d.gradient(self.resid) ** 2, 2.0 * curvature, out=gain, where=curvature > 0)
        gain[self.columns] = -np.inf
        return 0.5 * self.w**2 * curvature[self.columns], gain

    def _improve(self, tol: float) -> bool:
        """One exchange that lowers the objective, if one is found."""
        drop, gain = self._scores()
        most = min(len(drop), len(gain) - len(drop)) // 2
        lose, take = _best(drop, most), _best(-gain, most)
        pays = drop[lose] < gain[take]
        count = most if pays.all() else int(pays.argmin())
        before = self.columns, self.w, self.b, self.resid, self.value
        while count > 0:
            self._replace(lose[:count], take[:count])
            self.fit(tol, give_up=before[4])
            if self.value < BETTER * before[4]:
                return True
            self.columns, self.w, self.b, self.resid, self.value = before
            count //= 4
        return False

    def _replace(self, lose: Indices, take: Indices) -> None:
        """Take columns in, with coefficient 0, for those at some places."""
        d = self.design
        self.resid = self.resid + d.t * d.X.product(self.columns[lose], self.w[lose])
        self.columns = np.append(np.delete(self.columns, lose), take)
        self.w = np.append(np.delete(self.w, lose), np.zeros(len(take)))


def _best(cost: Vector, count: int) -> Indices:
    """The places of the smallest, in order."""
    places = np.empty(count, np.int64)
    smallest(cost, len(cost), count, places)
    return places


def exchange_products(
    design: SignedDesign, lam: float, k: int, start: Found, tol: float
) -> tuple[Found, int]:
    """The best support of size k found from another, and the Newton steps it took."""
    products = ProductSet(design, lam, start)
    products.resize(k)
    products.settle(tol)
    return products.found(), products.n_newton
