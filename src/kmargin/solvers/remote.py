"""Rows that are elsewhere: the same questions, answered by sums over blocks."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kmargin.blocks import panel_sums
from kmargin.blocks.design import BlockDesign, BlockProblem
from kmargin.blocks.protocol import Held
from kmargin.blocks.sums import add_up
from kmargin.jit import Remote
from kmargin.solvers.ending import is_minimal, newton_by_least_squares
from kmargin.solvers.panel import make_ridge
from kmargin.solvers.rows import cost_of_refit, exact_step
from kmargin.solvers.signed import BETTER, Candidate, Signed, sign
from kmargin.types import Flags, Indices, Matrix, Vector

__all__ = ["RemoteColumns", "RemoteRows", "SignedBlocks", "sign"]


class SignedBlocks:
    """A problem in blocks, with a panel of columns held beside each of them."""

    panels_are_dear = True

    def __init__(self, X: BlockDesign) -> None:
        self.X = X
        self.n_samples, self.n_features = X.n_samples, X.n_features

    @property
    def at_hand(self) -> None:
        return None

    @cached_property
    def variance(self) -> Vector:
        return self.X.variance()

    @cached_property
    def mean(self) -> Vector:
        return self.X.moments().mean if self.X.fit_intercept else np.zeros(self.n_features)

    def make_rows(self, columns: Indices, size: int, to_stay: bool = False) -> "RemoteRows":
        members = np.full(size, -1)
        members[: len(columns)] = columns
        return RemoteRows(self.X.panel(members, size), size, self.n_samples)

    def make_ridge(self, lam: float, size: int) -> Vector:
        return make_ridge(lam, size, self.X.fit_intercept)

    def fill(self, rows: "RemoteRows", members: Indices, places: Indices) -> "RemoteRows":
        del rows.panel  # at first: there may not be room for both
        rows.panel = self.X.panel(members, len(members))
        return rows

    def slopes_at(self, rows: "RemoteRows", idx: Indices, found: Candidate) -> Vector:
        return self.X.slopes(found.support, found.u)[0]

    def count_active(self, found: Candidate) -> int:
        return self.X.slopes(found.support, found.u)[1]

    def fits(self, n_numbers: int) -> bool:
        return self.X.fits(n_numbers)

    def finish_in_panel(
        self, rows: "RemoteRows", ridge: Vector, found: Sequence[Candidate]
    ) -> tuple[list[Candidate], Flags]:
        return [self._finished(rows, ridge, f) for f in found], np.ones(len(found), np.bool_)

    def _finished(self, rows: "RemoteRows", ridge: Vector, found: Candidate) -> Candidate:
        idx = np.append(found.support, rows.size)
        if is_minimal(found.value, rows.slack(idx, ridge[idx], found.u)):
            return found
        columns = RemoteColumns(rows.companion(), idx)
        u, value, _ = newton_by_least_squares(columns, ridge[idx], found.u)
        if not value < found.value:
            return found
        return found._replace(u=u, value=value, all_tried=found.all_tried and value > found.value * BETTER)

    def finish(self, found: Candidate, ridge: Vector) -> Candidate:
        """As it is, since it was finished in its panel; unless columns have ridges of their own."""
        if len(ridge) == 0 or np.all(ridge == ridge[0]):
            return found
        return self._finished_alone(found, ridge, found.u)

    def finish_from_zero(self, found: Candidate, ridge: Vector) -> Candidate:
        return self._finished_alone(found, ridge, np.zeros_like(found.u))

    def _finished_alone(self, found: Candidate, ridge: Vector, u: Vector) -> Candidate:
        """By a panel that has only the columns of this support."""
        k = len(found.support)
        columns = RemoteColumns(self.make_rows(found.support, k), np.arange(k + 1))
        u, value, _ = newton_by_least_squares(columns, np.append(ridge, self.make_ridge(0.0, 0)[0]), u)
        return found._replace(u=u, value=value)

    def objective(self, found: Candidate, lam: float) -> float:
        w = np.zeros(self.n_features)
        w[found.support] = found.u[:-1]
        beta = np.append(w, found.u[-1]) if self.X.fit_intercept else w
        return self.X.loss_and_gradient(beta)[0] + 0.5 * float(np.sum((np.sqrt(lam) * w) ** 2))


@sign.register
def _(problem: BlockProblem) -> Signed:
    return SignedBlocks(problem.design)


class RemoteRows(Remote):
    """Knows where the rows are (a point u), and what they last said there.

    Nothing is remembered beside the blocks but the panel: every question carries the point with it.
    """

    def __init__(self, panel: Held, size: int, n_samples: int) -> None:
        self.panel, self.size, self.n_samples = panel, size, n_samples
        self.idx: Indices | None = None  # the point; None while all rows are active
        self.u: Vector | None = None
        self.tag: Any = None  # of the rows that are active
        self.d: Vector = np.empty(0)  # the step looked along
        self.here: panel_sums.Answer | None = None  # at the point
        self.ahead: panel_sums.Answer | None = None  # a full step away

    def n_columns(self) -> int:
        return self.size

    def cost_of_try(self, k: int) -> float:
        """As for rows at hand, so that the search is the same, wherever it asks."""
        return cost_of_refit(self.n_samples, k)

    def companion(self) -> "RemoteRows":
        other = RemoteRows(self.panel, self.size, self.n_samples)
        other.start_over(self)
        return other

    def start_over(self, others: "RemoteRows") -> None:
        self.panel, self.idx, self.u, self.tag = others.panel, others.idx, others.u, others.tag

    def place(self, idx: Indices, u: Vector) -> None:
        self._go(idx, u)
        self.tag = None  # not known yet

    def take_gram(self, gram: Matrix) -> None:
        answers = self.panel.ask(panel_sums.full_gram, self.idx, self.u)
        gram[:] = add_up([matrix for matrix, _ in answers])
        self.tag = tuple(tag for _, tag in answers)

    def retake_gram(self, places: Indices, others: Indices, gram: Matrix) -> None:
        self.take_gram(gram)

    def follow(self, others: "RemoteRows", gram: Matrix) -> None:
        stays = others.tag is not None and others.tag == self.tag
        self.start_over(others)
        if not stays:
            self.take_gram(gram)

    def move_to(self, idx: Indices, u: Vector) -> float:
        self._go(idx, u)
        self.here = self._ask(idx, u)
        return self.here.loss

    def look_along(self, idx: Indices, d: Vector) -> float:
        assert self.u is not None
        self.d = d.copy()
        self.ahead = self._ask(idx, self.u + d)
        return 2.0 * self.ahead.loss

    def slope_along(self, t: float, slope: float, curve: float) -> tuple[float, float]:
        more_slope, more_curve = add_up(self.panel.ask(panel_sums.slope_along, self.idx, self.u, self.d, t))
        return slope + more_slope, curve + more_curve

    def advance(self, t: float) -> None:
        assert self.idx is not None
        assert self.u is not None
        self.u = self.u + t * self.d
        self.here = self.ahead if t == 1.0 else self._ask(self.idx, self.u)

    def loss_here(self) -> float:
        assert self.here is not None
        return self.here.loss

    def renew_system(self, idx: Indices, H: Matrix, z: Vector) -> bool:
        assert self.here is not None
        changed = self.here.tag != self.tag
        H[:], z[:], self.tag = self.here.H, self.here.z, self.here.tag
        return changed

    def _go(self, idx: Indices, u: Vector) -> None:
        self.idx, self.u = idx.copy(), u.copy()

    def slack(self, idx: Indices, ridge: Vector, u: Vector) -> float:
        """What single coefficients could lower the objective at a point by."""
        pulls, bends = add_up(self.panel.ask(panel_sums.pulls_and_bends, idx, u))
        slope, bend = ridge * u - pulls, ridge + bends
        return 0.5 * float(np.sum(np.divide(slope**2, bend, out=np.zeros(len(u)), where=bend > 0)))

    def _ask(self, idx: Indices, u: Vector) -> panel_sums.Answer:
        answers = self.panel.ask(panel_sums.evaluate, idx, u)
        loss, H, z = (add_up([answer[entry] for answer in answers]) for entry in range(3))
        return panel_sums.Answer(loss, H, z, tuple(answer.tag for answer in answers))


class RemoteColumns:
    """Some columns of a panel that is elsewhere, as least squares ask for them."""

    def __init__(self, rows: RemoteRows, idx: Indices) -> None:
        self.rows, self.idx = rows, idx

    def squares(self) -> Vector:
        return add_up(self.rows.panel.ask(panel_sums.column_squares, self.idx))

    def loss(self, u: Vector) -> float:
        return self.rows.move_to(self.idx, u)

    def active_rows(self, u: Vector, nearly: float = 0.0) -> tuple[Matrix, Vector]:
        triangles = np.vstack(self.rows.panel.ask(panel_sums.triangle, self.idx, u, nearly))
        return triangles[:, :-1], triangles[:, -1]

    def exact_step(self, u: Vector, d: Vector, ud: float, dd: float) -> float:
        self.rows.move_to(self.idx, u)
        self.rows.d = d
        return exact_step(self.rows, ud, dd)  # type: ignore[arg-type]
