"""SD for several machines at hand: the fixed-rho solve as one compiled loop."""

from typing import Any

import numpy as np

from kmargin.design.stacked import rows_of, stack_designs
from kmargin.design.stored import add_rows, times
from kmargin.jit import compiled
from kmargin.solvers.compiled import GUESS, REFRESH
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
from kmargin.types import Matrix, Vector


def joint_sd_inner(problem: JointProblem, max_inner: int, delay: int) -> Inner | None:
    """The minimisation of f_rho as a function of start, rho and tolerance; None where X is not held."""
    stack = problem.remember(
        "stacked designs", lambda: stack_designs([m.design for m in machines_at_hand(problem)])
    )
    if stack is None:
        return None
    machines, shared = gather_machines(problem, stack.which, stack.first), gather_shared(problem)
    n_features = problem.machines[0].design.n_features

    def inner(beta: Vector, rho: float, gtol: float) -> Descent:
        new, n_inner, objective, gradient_sq = descend_joint_sd(
            stack.stored, machines, shared, n_features, problem.k, problem.penalty_weight(rho),
            problem.parts(beta), gtol, max_inner, delay,
        )  # fmt: skip
        return Descent(new.ravel(), n_inner, objective, gradient_sq)

    return inner


@compiled
def descend_joint_sd(
    X: Any,
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

    X is what `stack_designs` has `stored`.
    """
    n_machines, n_parameters = start.shape
    has_intercept = n_parameters > n_features
    beta, previous, update = start.copy(), start.copy(), start.copy()
    gradient, product = np.zeros_like(start), np.empty(n_features)
    projected = np.empty((n_machines, n_features))
    n_units = shared.fixed.size - 1
    norms, work, candidates = np.empty(n_units + 1), np.empty(n_units), np.empty(n_units, np.intp)
    kept, threshold = np.arange(k), 0.0
    decision, previous_decision = np.empty(machines.y.size), np.empty(machines.y.size)
    residual, along, ones = np.empty_like(decision), np.empty_like(decision), np.ones(machines.y.size)
    last_objective, age, n_inner = np.inf, 1, 0

    while True:
        # 1. projection, objective and gradient
        distance_sq = 0.0
        if shared.is_all:
            projected[:] = beta[:, :n_features]
        else:
            threshold, distance_sq = split(
                beta, shared, k, GUESS * GUESS * threshold, projected, norms, work, candidates, kept
            )
        objective = b_sq / 2 * distance_sq
        for m in range(n_machines):
            low, high, omega = machines.ends[m], machines.ends[m + 1], machines.omega[m]
            n, ridge = high - low, omega * machines.lam[m]
            rows = rows_of(X, machines.which[m], machines.first[m], n)
            if n_inner % REFRESH == 0:
                times(rows, beta[m, :n_features], decision[low:high])
                times(rows, previous[m, :n_features], previous_decision[low:high])
                if has_intercept:
                    decision[low:high] += beta[m, n_features]
                    previous_decision[low:high] += previous[m, n_features]
            find_shortfalls(ones[low:high], machines.y[low:high], decision[low:high], residual[low:high])
            loss, residual_sum = 0.0, 0.0
            for i in range(low, high):
                loss += machines.weights[i] * residual[i] * residual[i]
                residual[i] *= -omega * machines.weights[i] / n
                residual_sum += residual[i]
            add_rows(rows, residual[low:high], product)
            norm_sq = 0.0
            for j in range(n_features):
                w = beta[m, j]
                norm_sq += w * w
                gradient[m, j] = product[j] + b_sq * (w - projected[m, j]) + ridge * w
            if has_intercept:
                gradient[m, n_features] = residual_sum
            objective += omega * loss / (2 * n) + ridge / 2 * norm_sq
        gradient_sq = np.sum(gradient * gradient)
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            age = 1
        last_objective = objective
        # 2. the exact line search, over all machines
        curvature = b_sq * gradient_sq
        for m in range(n_machines):
            low, high = machines.ends[m], machines.ends[m + 1]
            rows = rows_of(X, machines.which[m], machines.first[m], high - low)
            times(rows, gradient[m, :n_features], along[low:high])
            shift = gradient[m, n_features] if has_intercept else 0.0
            bend = 0.0
            for i in range(low, high):
                along[i] += shift
                bend += machines.weights[i] * along[i] * along[i]
            own_sq = np.dot(gradient[m], gradient[m])
            curvature += machines.omega[m] * (bend / (high - low) + machines.lam[m] * own_sq)
        length = gradient_sq / curvature if curvature > 0.0 else 0.0
        # 3. momentum, for the parameters and for the decision values alike
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (age - 1) / (age + FRICTION - 1)
            age += 1
        for m in range(n_machines):
            for j in range(n_parameters):
                update[m, j] = beta[m, j] - length * gradient[m, j]
            carry_on(update[m], carry, beta[m], previous[m])
        for i in range(along.size):
            along[i] = decision[i] - length * along[i]
        carry_on(along, carry, decision, previous_decision)
