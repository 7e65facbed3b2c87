"""What the compiled loops of several machines have in common: machines as arrays, S_k of units, momentum.

As in `compiled`, decision values and coordinates are carried along by linearity, so that each machine's X
(or V) is passed over once each way per iteration. The readable twins are `descend.descend` on a
`JointProblem` with its steps; a test holds the two together step by step.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kmargin.jit import compiled
from kmargin.losses import squared_hinge
from kmargin.solvers.descend import Descent
from kmargin.solvers.joint_problem import JointProblem, machines_at_hand
from kmargin.sparsity import select_largest
from kmargin.types import Flags, Indices, Matrix, Vector

Inner = Callable[[Vector, float, float], Descent]  # of start, rho and tolerance


class Machines(NamedTuple):
    """What the loops know of all machines but their X."""

    which: Indices  # the design of each machine
    first: Indices  # its first row among the rows of all designs
    ends: Indices  # its labels and weights are from ends[m] to ends[m + 1]
    y: Vector
    weights: Vector  # of the rows; for MM their roots
    lam: Vector
    omega: Vector


class Shared(NamedTuple):
    """What k counts."""

    unit_of: Indices  # per column; beyond the last unit for one that is never in
    fixed: Flags  # per unit, and False behind the last
    signs: Vector  # per column
    is_all: bool  # whether S_k holds everything


def gather_machines(problem: JointProblem, which: Indices, first: Indices) -> Machines:
    machines, at_hand = problem.machines, machines_at_hand(problem)
    return Machines(
        which,
        first,
        np.cumsum([0] + [machine.design.n_samples for machine in machines]),
        np.concatenate([machine.y for machine in at_hand]),
        np.concatenate([machine.weights for machine in at_hand]),
        np.array([machine.lam for machine in machines], dtype=np.float64),
        problem.weights,
    )


def gather_shared(problem: JointProblem) -> Shared:
    sparse = problem.sparse
    return Shared(
        sparse.unit_of, np.append(problem.units.fixed, False), problem.units.signs, problem.keeps_all
    )


@compiled
def split(
    W: Matrix,
    shared: Shared,
    k: int,
    guess: float,
    projected: Matrix,
    norms: Vector,
    work: Vector,
    candidates: Indices,
    kept: Indices,
) -> tuple[float, float]:
    """The compiled twin of `UnitSparsity.project`, into `projected`.

    Returns the k-th largest squared norm and the squared distance. `norms` has a place behind the last unit.
    """
    n_machines, n_features = projected.shape
    n_units = norms.size - 1
    norms[:] = 0.0
    for m in range(n_machines):
        for j in range(n_features):
            w = W[m, j]
            if not w * shared.signs[j] < 0.0:
                norms[shared.unit_of[j]] += w * w
    for u in range(n_units):
        if shared.fixed[u]:
            norms[u] = np.inf
    threshold, _, _ = select_largest(norms, k, n_units, guess, work, candidates, kept)
    norms[:] = 0.0
    for u in kept:
        norms[u] = 1.0
    distance_sq = 0.0
    for m in range(n_machines):
        for j in range(n_features):
            w = W[m, j]
            if norms[shared.unit_of[j]] > 0.0 and not w * shared.signs[j] < 0.0:
                projected[m, j] = w
            else:
                projected[m, j] = 0.0
                distance_sq += w * w
    return threshold, distance_sq


@compiled
def find_shortfalls(target: Vector, y: Vector, decision: Vector, shortfall: Vector) -> float:
    """shortfall <- y max(0, target - y decision); returns the sum of their squares."""
    total = 0.0
    for i in range(y.size):
        v = squared_hinge.slope(target[i] - y[i] * decision[i])
        shortfall[i] = y[i] * v
        total += v * v
    return total


@compiled
def carry_on(update: Vector, carry: float, point: Vector, previous: Vector) -> None:
    """point <- update, carried further along the last change; previous <- update."""
    for i in range(update.size):
        new = update[i]
        point[i] = new + carry * (new - previous[i])
        previous[i] = new
