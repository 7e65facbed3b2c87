"""The best support seen of each size, and the ways to search for one."""

import math
from collections.abc import Sequence

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.dual import n_dual_numbers
from kmargin.solvers.dual_exchange import exchange_dual
from kmargin.solvers.measures import Measured
from kmargin.solvers.product_exchange import exchange_products
from kmargin.solvers.regime import Regime, choose_regime
from kmargin.solvers.rows import cost_of_refit
from kmargin.solvers.signed import BETTER, NOTHING, Candidate
from kmargin.solvers.working_set import Effort, WorkingSet, exchange, search_from
from kmargin.types import Indices, Vector

# A problem is small if the Gram matrix of all columns takes no more multiplications. Then a single fit takes
# all columns into one panel.
SMALL_GRAM = 1e7

# Multiplications that a small problem has to try more exchanges with: for a single fit; for each size of a
# path.
ROOM, ROOM_OF_PATH = 2e6, 5e4

# Multiplications up to which a thorough search tries every swap of one unit for another; some ten seconds.
MAX_FLOPS_OF_ALL_SWAPS = 2e10

# Restarts draw the same random numbers in every fit, so that the same data give the same model.
RESTART_SEED = 0


class Supports:
    """The best support seen of each size.

    Few columns are searched in one panel that holds them all. Many are searched through working sets; sizes
    beyond the number of active rows by systems as large as these; and sizes for which neither is in
    proportion to the data, by products with X alone. Which of them is asked of `choose_regime`.
    """

    last: Candidate  # what the last search from another start ended with

    def __init__(self, problem: Problem, sizes: Sequence[int], effort: Effort) -> None:
        self.rng = np.random.default_rng(RESTART_SEED)
        self.sizes = sorted({min(k, problem.design.n_features) for k in sizes if k > 0})
        self.measured = Measured(problem)
        self.design = self.measured.design
        self.n_units = self.design.n_features  # how many there are for k to count
        n, p = self.design.n_samples, self.design.n_features
        self.is_small = n * p * p <= SMALL_GRAM and self._panel_fits(p)
        room = ROOM if len(self.sizes) == 1 else ROOM_OF_PATH
        self.effort = effort._replace(room=room if self.is_small and effort.max_starts else 0.0)
        self.found: dict[int, Candidate] = {}
        self.finished: set[int] = set()  # sizes whose support is known to be at its minimum
        self.lam = np.inf  # the last ridge
        self._whole: WorkingSet | None = None
        self.dense: tuple[float, Candidate] | None = None  # the last ridge and its solution with all features
        self.n_newton = 0
        self.elsewhere = self.design.at_hand is None
        self.n_active: int | None = None  # rows, where they decide; of the last model below these sizes
        if not self._panel_fits(self.design.n_features):
            self.effort = self.effort._replace(all_swaps=False)  # they take a panel of all columns

    def best(self, k: int) -> Candidate:
        """The best support with at most k features, in the problem's units."""
        found = min((f for size, f in self.found.items() if size <= k), key=lambda found: found.value)
        return self.measured.leave(self.lam, found)

    def largest(self) -> Candidate:
        """The solution with the most features at hand, in the problem's units."""
        return self.measured.leave(self.lam, self.dense[1] if self.dense else self.found[max(self.found)])

    def improve(self, lam: float, start: Candidate) -> Candidate:
        """The best support of the same size found from one in the problem's units, in these."""
        start = self.measured.enter(start)
        found = self._finish(lam, self.exchange(lam, len(start.support), start, self.effort))
        return self.measured.leave(lam, found)

    def _finish_size(self, lam: float, k: int) -> None:
        if k not in self.finished:
            self.found[k] = self._finish(lam, self.found[k])
            self.finished.add(k)

    def _finish(self, lam: float, found: Candidate) -> Candidate:
        return self.measured.finish(lam, found)

    def _try(self, lam: float, k: int, start: Candidate, effort: Effort | None = None) -> bool:
        """Search from another start; keep what is better."""
        found = self.last = self.exchange(lam, k, start, self.effort if effort is None else effort)
        if not found.value < BETTER * self.found[k].value:
            return False
        self._finish_size(lam, k)  # what is only said to be better may not be
        found = self._finish(lam, found)
        better = found.value < BETTER * self.found[k].value
        if better:
            self.found[k] = found
        return better

    def _try_every_swap(self, lam: float, k: int) -> None:
        """Search on from the best support and try every swap of one unit for another, if affordable."""
        regime = self.found[k].regime
        if regime is None or not regime.takes_panel:
            return
        if self._n_swaps(k) * self._cost_of_try(k) > MAX_FLOPS_OF_ALL_SWAPS:
            return
        found = self.exchange(lam, k, self.found[k], self.effort.every_swap())
        if found.value * BETTER <= self.found[k].value:
            self.found[k] = found
            self.finished.discard(k)

    def exchange(self, lam: float, k: int, start: Candidate, effort: Effort) -> Candidate:
        """Search for one size: through a working set of columns, or by products if that does not fit."""
        whole = self._whole_panel(lam, start) if self._takes_whole() else None
        if whole is not None:
            found, n_newton = search_from(whole, k, effort)
            self.n_newton += n_newton
            return found
        if self._regime(k, start, effort).takes_panel:
            found, n_newton = exchange(self.design, lam, k, start, effort)
        else:
            assert self.design.at_hand is not None
            found, n_newton = exchange_products(self.design.at_hand, lam, k, start, effort)
        self.n_newton += n_newton
        return found

    def _whole_panel(self, lam: float, start: Candidate) -> WorkingSet | None:
        """A panel with all columns, at a support; None where it would be large. Made once."""
        if self._whole is not None:
            self._whole.start_again(lam, start)
        elif self.is_small:
            self._whole = WorkingSet(self.design, lam, self.design.n_features, start, self.effort.tol)
        return self._whole

    def _takes_whole(self) -> bool:
        """Whether one size is searched in a panel of all columns: a single one; or what was found along a
        path, from another start.
        """
        return len(self.sizes) == 1 or self._whole is not None

    def _panel_fits(self, size: int) -> bool:
        return self.design.fits((min(size, self.design.n_features) + 2) * self.design.n_samples)

    def _regime(
        self, k: int, start: Candidate, effort: Effort, n_active: int | None = None, n_dual: int = 0
    ) -> Regime:
        """The way to one size, from a start; by the dual with `n_dual` rows at first."""
        n_columns = max(k + effort.n_outside(k, self.design.n_features), len(start.support))
        return choose_regime(
            k=k,
            n_columns=n_columns,
            n_features=self.design.n_features,
            panel_fits=self.elsewhere or self._panel_fits(n_columns),
            elsewhere=self.elsewhere,
            n_active=n_active,
            dual_fits=n_active is not None and self.design.fits(n_dual_numbers(n_dual, k)),
        )

    def _small(self, lam: float) -> Candidate:
        """A quick model with a few features."""
        k = min(50, self.design.n_samples // 4 + 1, self.design.n_features)
        return self.exchange(lam, k, NOTHING, self.effort.least())

    def _dual(self, lam: float, k: int, start: Candidate) -> Candidate:
        """The same by systems as large as the active rows, if these fit."""
        design = self.design.at_hand
        assert design is not None
        start = start if len(start.support) else self._small(lam)
        n_dual = design.count_active(start)
        if self._regime(k, start, self.effort, self.n_active, n_dual) is Regime.DUAL:
            found, n_newton = exchange_dual(design, lam, k, start, self.effort.every_swap())
        else:
            found, n_newton = exchange_products(design, lam, k, start, self.effort)
        self.n_newton += n_newton
        return found

    def solve_dense(self, lam: float) -> Candidate:
        """All features, from the largest support at hand."""
        if self.dense is None or self.dense[0] != lam:
            start = self.found[max(self.found)] if self.found else NOTHING
            self.dense = lam, self._dual(lam, self.design.n_features, start)
        return self.dense[1]

    def _trim(self, found: Candidate, size: int) -> Candidate:
        """The features that move the decision most."""
        keep = np.sort(np.argsort(-self._effects(found), kind="stable")[:size])
        return Candidate(found.support[keep], np.append(found.u[keep], found.u[-1]), np.inf)

    def _effects(self, found: Candidate) -> Vector:
        """How much each feature of a support moves the decision."""
        return np.abs(found.u[:-1]) * np.sqrt(self.design.variance[found.support])

    def _cost_of_try(self, k: int) -> float:
        """About how many multiplications it takes to refit a support of this size."""
        return cost_of_refit(self.design.n_samples, k + 1)

    def _n_supports(self, k: int) -> int:
        return math.comb(self.n_units, k)

    def _n_swaps(self, k: int) -> int:
        """Exchanges of one for another."""
        return k * (self.n_units - k)

    def _ridge_scale(self) -> float:
        """The variance of a typical feature."""
        return float(np.median(self.design.variance))

    def _nothing(self) -> Candidate:
        """No features."""
        return NOTHING

    def _alone(self, feature: int) -> Candidate:
        """One feature, to start from."""
        return Candidate(np.array([feature]), np.zeros(2), np.inf)

    def _rest(self, found: Candidate, place: int) -> Candidate:
        """What is left without one feature, to start from."""
        return found.without(place)

    def _with(self, found: Candidate, features: Indices) -> Candidate:
        """A support with more features, to start from."""
        u = np.concatenate([found.u[:-1], np.zeros(len(features)), found.u[-1:]])
        return Candidate(np.append(found.support, features), u, np.inf)

    def _gains_beside(self, lam: float, found: Candidate) -> Vector | None:
        """What each feature would gain beside a support that is refitted; None where rows are elsewhere."""
        if self.elsewhere:
            return None
        return WorkingSet(self.design, lam, len(found.support), found, self.effort.tol).gains_alone()

    def _may_leave(self, found: Candidate) -> Indices:
        """Places of the support, those first that move the decision least."""
        return np.argsort(self._effects(found))
