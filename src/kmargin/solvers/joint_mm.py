"""MM for several machines at hand: the fixed-rho solve as one compiled loop."""

import numpy as np

from kmargin.design.stacked import index_distinct, stack_arrays
from kmargin.design.stored import add_rows
from kmargin.jit import compiled
from kmargin.solvers.compiled import GUESS
from kmargin.solvers.descend import Descent
from kmargin.solvers.joint_loop import (
    Inner,
    Machines,
    Shared,
    carry_on,
    find_shortfalls,
    gather_machines,
    gather_shared,
    split,
)
from kmargin.solvers.joint_problem import JointProblem, machines_at_hand
from kmargin.solvers.momentum import FRICTION
from kmargin.types import Indices, Matrix, Tensor, Vector


def joint_mm_inner(problem: JointProblem, max_inner: int, delay: int) -> Inner:
    """The minimisation of f_rho as a function of start, rho and tolerance."""
    U, s, V, ranks, machines = problem.remember("stacked factors", lambda: stack_factors(problem))
    shared, n_features = gather_shared(problem), problem.machines[0].design.n_features

    def inner(beta: Vector, rho: float, gtol: float) -> Descent:
        new, n_inner, objective, gradient_sq = descend_joint_mm(
            U, s, V, ranks, machines, shared, n_features, problem.k, problem.penalty_weight(rho),
            problem.parts(beta), gtol, max_inner, delay,
        )  # fmt: skip
        return Descent(new.ravel(), n_inner, objective, gradient_sq)

    return inner


def stack_factors(problem: JointProblem) -> tuple[Matrix, Matrix, Tensor, Indices, Machines]:
    """The factors of each design and its weights, once, with zeros behind its rank; ranks; machines."""
    factors = [machine.design.thin_svd(machine.weights) for machine in machines_at_hand(problem)]
    distinct, which = index_distinct(factors)
    ranks = np.array([len(svd.s) for svd in distinct])
    rows = np.cumsum([0] + [len(svd.U) for svd in distinct])

    def widen(A: Matrix) -> Matrix:
        return np.pad(A, ((0, 0), (0, ranks.max() - A.shape[1]))) if A.shape[1] < ranks.max() else A

    machines = gather_machines(problem, which, rows[which])
    return (
        stack_arrays([widen(svd.U) for svd in distinct]),
        np.concatenate([widen(svd.s[None]) for svd in distinct]),
        np.stack([widen(svd.V) for svd in distinct]),
        ranks,
        machines._replace(weights=np.sqrt(machines.weights)),
    )


@compiled
def descend_joint_mm(
    U: Matrix,
    s: Matrix,
    V: Tensor,
    ranks: Indices,
    machines: Machines,
    shared: Shared,
    n_features: int,
    k: int,
    b_sq: float,
    start: Matrix,
    gtol: float,
    max_inner: int,
    delay: int,
) -> tuple[Matrix, int, float, float]:
    """Return the final parameters, the number of iterations, f_rho and its squared gradient norm.

    The rows of U are those of all designs; s[d] and V[d] are those of one, with zeros behind its rank.
    What one machine does is what `descend_mm` does, with penalty b^2/omega.
    """
    n_machines, n_parameters = start.shape
    has_intercept = n_parameters > n_features
    beta, previous, update = start.copy(), start.copy(), start.copy()
    coords, pull = np.zeros((n_machines, s.shape[1])), np.zeros((n_machines, s.shape[1]))
    projected, projected_coords = np.empty((n_machines, n_features)), np.zeros_like(coords)
    scaled = np.zeros(s.shape[1])
    n_units = shared.fixed.size - 1
    norms, work, candidates = np.empty(n_units + 1), np.empty(n_units), np.empty(n_units, np.intp)
    kept, threshold = np.arange(k), 0.0
    for m in range(n_machines):
        np.dot(beta[m], V[machines.which[m]], coords[m])
    previous_coords = coords.copy()
    decision, shortfall = np.empty(machines.y.size), np.empty(machines.y.size)
    last_objective, age, n_inner = np.inf, 1, 0

    while True:
        # 1. decision values, shortfalls and what these pull at
        objective = 0.0
        for m in range(n_machines):
            d, rows = machines.which[m], slice(machines.ends[m], machines.ends[m + 1])
            n = machines.ends[m + 1] - machines.ends[m]
            at = U[machines.first[m] : machines.first[m] + n]
            if shared.is_all:  # each beta builds on the last: rounding errors must not pile up
                np.dot(beta[m], V[d], coords[m])
            for j in range(scaled.size):
                scaled[j] = s[d, j] * coords[m, j]
            np.dot(at, scaled, decision[rows])
            loss = find_shortfalls(machines.weights[rows], machines.y[rows], decision[rows], shortfall[rows])
            objective += machines.omega[m] * loss / (2 * n)
            add_rows(at, shortfall[rows], pull[m])
        # 2. projection, and its coordinates
        distance_sq = 0.0
        if shared.is_all:
            projected[:] = beta[:, :n_features]
            projected_coords[:] = coords
        else:
            threshold, distance_sq = split(
                beta, shared, k, GUESS * GUESS * threshold, projected, norms, work, candidates, kept
            )
            for m in range(n_machines):
                basis = V[machines.which[m]]
                intercept = beta[m, n_features] if has_intercept else 0.0
                for j in range(scaled.size):
                    projected_coords[m, j] = intercept * basis[n_parameters - 1, j]
                for place in range(n_features):
                    w = projected[m, place]
                    if w != 0.0:
                        for j in range(scaled.size):
                            projected_coords[m, j] += w * basis[place, j]
        objective += b_sq / 2 * distance_sq
        # 3. objective and gradient; of the penalty's gradient the range of V does not hold all
        gradient_sq = 0.0
        for m in range(n_machines):
            d, omega, ridge = machines.which[m], machines.omega[m], machines.omega[m] * machines.lam[m]
            n = machines.ends[m + 1] - machines.ends[m]
            intercept = beta[m, n_features] if has_intercept else 0.0
            norm_sq, penalty_sq, inside = 0.0, 0.0, 0.0
            for place in range(n_features):
                w = beta[m, place]
                g = b_sq * (w - projected[m, place]) + ridge * w
                norm_sq += w * w
                penalty_sq += g * g
            for j in range(ranks[d]):
                c = coords[m, j]
                g = b_sq * (c - projected_coords[m, j])
                g += ridge * (c - intercept * V[d, n_parameters - 1, j])
                inside += g * g
                g -= omega * s[d, j] * pull[m, j] / n
                gradient_sq += g * g
            if ranks[d] < n_parameters and penalty_sq > inside:
                gradient_sq += penalty_sq - inside
            objective += ridge / 2 * norm_sq
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            age = 1
        last_objective = objective
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (age - 1) / (age + FRICTION - 1)
            age += 1
        # 4. the minimum of each machine's surrogate: centre + V c, with coordinates V'centre + c; momentum
        for m in range(n_machines):
            d, lam, own_b_sq = machines.which[m], machines.lam[m], b_sq / machines.omega[m]
            n = machines.ends[m + 1] - machines.ends[m]
            d_sq = own_b_sq + lam
            shrink = own_b_sq / d_sq if d_sq > 0 else 1.0
            intercept = beta[m, n_features] if has_intercept else 0.0
            for j in range(ranks[d]):
                fixed = intercept * V[d, n_parameters - 1, j]
                center = shrink * (projected_coords[m, j] - fixed) + fixed
                step = s[d, j] * (coords[m, j] - center) + pull[m, j]
                scaled[j] = s[d, j] * step / (s[d, j] * s[d, j] + n * d_sq)
                projected_coords[m, j] = center + scaled[j]
            for j in range(ranks[d], scaled.size):
                scaled[j] = 0.0
            np.dot(V[d], scaled, update[m])
            for place in range(n_features):
                update[m, place] += shrink * projected[m, place]
            if has_intercept:
                update[m, n_features] += intercept
            carry_on(update[m], carry, beta[m], previous[m])
            carry_on(projected_coords[m], carry, coords[m], previous_coords[m])
