"""The whole fixed-rho solve as one compiled loop each for MM and SD.

The readable twins are `descend.descend` with `steps.MMStep` and `steps.SDStep`; a test holds
the two together step by step. What the compiled loops do differently is only bookkeeping: decision
values and the coordinates of beta in the basis V are carried along by linearity instead of being
computed anew, so that X (or V) is passed over once each way per iteration.
"""

from typing import Any

import numpy as np

from kmargin.design.stored import add_rows, times
from kmargin.jit import compiled
from kmargin.losses import squared_hinge
from kmargin.solvers.momentum import FRICTION
from kmargin.sparsity import select_largest
from kmargin.types import Matrix, Vector

# SD carries the decision values along; after this many updates it computes them anew, so that
# rounding errors cannot pile up
REFRESH = 256

# an iteration expects the k-th largest magnitude not to fall below this share of its last value
GUESS = 0.5


@compiled
def descend_mm(
    U: Matrix,
    s: Vector,
    V: Matrix,
    y: Vector,
    root_weights: Vector,
    n_features: int,
    k: int,
    lam: float,
    b_sq: float,
    start: Vector,
    gtol: float,
    max_inner: int,
    delay: int,
) -> tuple[Vector, int, float, float]:
    """Return the final beta, the number of iterations, f_rho and its squared gradient norm.

    Let ``coords = V'beta``. Then the weighted decision values are ``U (s * coords)``, and with the
    weighted shortfalls v the gradient of the loss is ``-V (s * U'(y v)) / n``. All that is left to
    do in p dimensions is the product V c of the update and V'projected, for which only the kept
    rows of V are read.
    """
    n, n_parameters = len(y), len(start)
    rank = len(s)
    d_sq = b_sq + lam
    shrink = b_sq / d_sq if d_sq > 0 else 1.0
    has_intercept = n_parameters > n_features
    square = rank == n_parameters  # then V'V = VV' = I, and nothing lies outside its range

    beta, previous = start.copy(), start.copy()
    update = np.empty(n_parameters)
    work, candidates = np.empty(n_features), np.empty(n_features, np.intp)
    kept = np.arange(k)
    threshold = 0.0
    coords = np.dot(beta, V)
    previous_coords = coords.copy()
    projected_coords, pull, scaled = np.empty(rank), np.empty(rank), np.empty(rank)
    decision, shortfall = np.empty(n), np.empty(n)
    intercept_row = V[n_parameters - 1].copy() if has_intercept else np.zeros(rank)
    objective, gradient_sq, last_objective = 0.0, 0.0, np.inf
    age, n_inner = 1, 0

    while True:
        # 1. decision values and shortfalls. Where nothing is projected each beta builds on the last;
        #    its coordinates are taken anew, so that rounding errors cannot pile up
        if k >= n_features:
            np.dot(beta, V, coords)
        for j in range(rank):
            scaled[j] = s[j] * coords[j]
        np.dot(U, scaled, decision)
        loss = 0.0
        for i in range(n):
            r = root_weights[i] - y[i] * decision[i]
            shortfall[i] = y[i] * squared_hinge.slope(r)
            loss += squared_hinge.twice_value(r)
        # 2. projection, and its coordinates
        intercept = beta[n_features] if has_intercept else 0.0
        distance_sq = 0.0
        if k >= n_features:
            kept_sq = np.dot(beta[:n_features], beta[:n_features])
            for j in range(rank):  # not by slices, which take a second to compile
                projected_coords[j] = coords[j]
        else:
            threshold, kept_sq, distance_sq = select_largest(
                beta, k, n_features, GUESS * threshold, work, candidates, kept
            )
            for j in range(rank):
                projected_coords[j] = intercept * intercept_row[j]
            for place in kept:
                row = V[place]
                for j in range(rank):
                    projected_coords[j] += beta[place] * row[j]
        # 3. objective and gradient; `outside` is the part of the penalty's gradient that the
        #    range of V does not hold
        penalty_sq = lam * lam * kept_sq + d_sq * d_sq * distance_sq
        objective = loss / (2 * n) + lam / 2 * (kept_sq + distance_sq) + b_sq / 2 * distance_sq
        add_rows(U, shortfall, pull)
        gradient_sq, inside = 0.0, 0.0
        for j in range(rank):
            g = b_sq * (coords[j] - projected_coords[j]) + lam * (coords[j] - intercept * intercept_row[j])
            inside += g * g
            g -= s[j] * pull[j] / n
            gradient_sq += g * g
        outside = 0.0 if square else penalty_sq - inside
        if outside > 0.0:
            gradient_sq += outside
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            age = 1
        last_objective = objective
        # 4. the minimum of the surrogate: centre + V c, with coordinates V'centre + c
        for j in range(rank):
            fixed = intercept * intercept_row[j]
            at_center = shrink * (projected_coords[j] - fixed) + fixed
            scaled[j] = s[j] * (s[j] * (coords[j] - at_center) + pull[j]) / (s[j] * s[j] + n * d_sq)
            projected_coords[j] = at_center + scaled[j]
        np.dot(V, scaled, update)
        for place in kept:
            update[place] += shrink * beta[place]
        if has_intercept:
            update[n_features] += intercept
        # 5. momentum, for beta and for its coordinates alike
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (age - 1) / (age + FRICTION - 1)
            age += 1
        for m in range(n_parameters):
            new = update[m]
            beta[m] = new + carry * (new - previous[m])
            previous[m] = new
        for j in range(rank):
            new = projected_coords[j]
            coords[j] = new + carry * (new - previous_coords[j])
            previous_coords[j] = new


@compiled
def descend_sd(
    X: Any,
    fit_intercept: bool,
    y: Vector,
    weights: Vector,
    k: int,
    lam: float,
    b_sq: float,
    start: Vector,
    gtol: float,
    max_inner: int,
    delay: int,
) -> tuple[Vector, int, float, float]:
    """Return the final beta, the number of iterations, f_rho and its squared gradient norm.

    X is what a design has `stored`. Decision values are linear in beta, so those of the next point
    follow from X times the gradient, which the line search needs anyway.
    """
    n, n_parameters = len(y), len(start)
    n_features = n_parameters - 1 if fit_intercept else n_parameters
    d_sq = b_sq + lam
    beta, previous = start.copy(), start.copy()
    gradient, product = np.zeros(n_parameters), np.empty(n_features)
    work, candidates = np.empty(n_features), np.empty(n_features, np.intp)
    kept = np.arange(k)
    threshold = 0.0
    decision, previous_decision = np.empty(n), np.empty(n)
    residual, along = np.empty(n), np.empty(n)
    objective, gradient_sq, last_objective = 0.0, 0.0, np.inf
    age, n_inner = 1, 0

    while True:
        # 1. decision values, loss, and its derivative
        if n_inner % REFRESH == 0:
            times(X, beta[:n_features], decision)
            times(X, previous[:n_features], previous_decision)
            if fit_intercept:
                decision += beta[n_features]
                previous_decision += previous[n_features]
        loss = 0.0
        residual_sum = 0.0
        for i in range(n):
            f, label, weight = decision[i], y[i], weights[i]
            residual[i] = squared_hinge.derivative(f, label, weight) / n
            residual_sum += residual[i]
            loss += squared_hinge.twice_weighted_value(f, label, weight)
        # 2. objective and gradient
        distance_sq = 0.0
        if k >= n_features:
            kept_sq = np.dot(beta[:n_features], beta[:n_features])
        else:
            threshold, kept_sq, distance_sq = select_largest(
                beta, k, n_features, GUESS * threshold, work, candidates, kept
            )
        add_rows(X, residual, product)
        for m in range(n_features):
            gradient[m] = product[m] + d_sq * beta[m]
        for place in kept:  # not drawn towards zero
            gradient[place] = product[place] + lam * beta[place]
        if fit_intercept:
            gradient[n_features] = residual_sum
        gradient_sq = np.dot(gradient, gradient)
        objective = loss / (2 * n) + lam / 2 * (kept_sq + distance_sq) + b_sq / 2 * distance_sq
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            age = 1
        last_objective = objective
        # 3. the exact line search
        times(X, gradient[:n_features], along)
        shift = gradient[n_features] if fit_intercept else 0.0
        bend = 0.0
        for i in range(n):
            along[i] += shift
            bend += weights[i] * along[i] * along[i]
        curvature = bend / n + d_sq * gradient_sq
        length = gradient_sq / curvature if curvature > 0.0 else 0.0
        # 4. momentum, for beta and for the decision values alike
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (age - 1) / (age + FRICTION - 1)
            age += 1
        for m in range(n_parameters):
            new = beta[m] - length * gradient[m]
            beta[m] = new + carry * (new - previous[m])
            previous[m] = new
        for i in range(n):
            new = decision[i] - length * along[i]
            decision[i] = new + carry * (new - previous_decision[i])
            previous_decision[i] = new
