"""The compiled inner loops of MM and SD, each of which minimises f_rho for one rho.

f_rho is loss + ridge + b_sq/2 times the squared distance to the sparse set S_k, where b_sq = rho/(p-k+1). The
loops take the steps of `reference.descend` with `MMStep` or `sd_step`, but faster: decision values (SD) and
the coordinates V'beta with right singular vectors V of X (MM) are updated, not computed anew from beta.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.extending import overload

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Tensor, Vector
from kmargin.core.design import Design
from kmargin.core.jit import OPTIONS, compiled, inlined
from kmargin.core.sparsity import select_largest
from kmargin.data.design.dense import dense_slopes
from kmargin.data.design.sparse import csr_slopes, csr_times
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import FRICTION, Descend, Descent

# SD updates its decision values, and computes them anew after this many steps to remove rounding errors.
REFRESH_EVERY = 256

# The projection first seeks the k units (features or groups) of largest norm among those with a squared norm
# of at least this fraction of the k-th largest in the previous step. If fewer than k exist, it searches all.
THRESHOLD_FRACTION = 0.25


class StackedRows(NamedTuple):
    """Labels y, weights and margins of all binary problems, concatenated, and which rows of X they have."""

    design: Indices  # for each binary problem, the index of its matrix X among the distinct matrices
    first: Indices  # for each binary problem, its first row in the stack of all X (in MM, of all U)
    ends: Indices  # binary problem m has the entries ends[m]:ends[m + 1] of y, weights and targets
    y: Vector
    weights: Vector  # sample weights, whose mean is 1 in each binary problem
    targets: Vector  # the margin of each row; in MM it is multiplied by the square root of the row's weight
    lam: Vector  # the ridge of each binary problem


class SharedUnits(NamedTuple):
    """The units that k counts (features or groups), as arrays for compiled code."""

    unit_of: Indices  # the index of the unit of each column; the number of units for a column of no unit
    plain: bool  # whether each column is a unit, no unit must be kept, and all signs are allowed
    fixed: Flags  # whether each unit must be kept; the last entry, False, stands for columns of no unit
    signs: Vector  # the required sign of each column's coefficient, 1 or -1; 0 if both signs are allowed
    keeps_all: bool  # whether S_k contains every beta, so that projections change nothing


def mm_descent(problem: PenalisedProblem, max_inner: int, delay: int) -> Descend:
    """Return the compiled inner loop of MM; the SVDs computed here, one for each X, serve every rho and k."""
    svds = [one.design.thin_svd(one.weights) for one in problem.in_memory]
    distinct, which = index_distinct(svds)
    ranks = np.array([len(svd.s) for svd in distinct])
    first = np.cumsum([0] + [len(svd.U) for svd in distinct])[which]

    def widen(A: Matrix) -> Matrix:
        return np.pad(A, ((0, 0), (0, ranks.max() - A.shape[1]))) if A.shape[1] < ranks.max() else A

    U = stack_arrays([widen(svd.U) for svd in distinct])
    s = np.concatenate([widen(svd.s[None]) for svd in distinct])
    V = distinct[0].V[None] if len(distinct) == 1 else np.stack([widen(svd.V) for svd in distinct])
    rows = gather_rows(problem, which, first)
    rows = rows._replace(targets=np.sqrt(rows.weights) * rows.targets)

    def descend(problem: PenalisedProblem, beta: Matrix, rho: float, gtol: float) -> Descent:
        return Descent(
            *descend_mm(
                U, s, V, ranks, rows, gather_units(problem), make_work(problem), problem.n_features,
                problem.k, problem.penalty_weight(rho), beta, gtol, max_inner, delay,
            )
        )  # fmt: skip

    return descend


def sd_descent(problem: PenalisedProblem, max_inner: int, delay: int) -> Descend | None:
    """Return the compiled inner loop of SD, or None if there is none for the matrices X of the problem.

    There is none if X is not stored (a kernel matrix that is computed in tiles), or if binary problems have
    different sparse matrices.
    """
    distinct, which = index_distinct([one.design for one in problem.in_memory])
    X = stack_designs(distinct)
    if X is None:
        return None
    rows = gather_rows(problem, which, np.cumsum([0] + [design.n_samples for design in distinct])[which])

    def descend(problem: PenalisedProblem, beta: Matrix, rho: float, gtol: float) -> Descent:
        return Descent(
            *descend_sd(
                X, rows, gather_units(problem), make_work(problem), problem.n_features, problem.k,
                problem.penalty_weight(rho), beta, gtol, max_inner, delay,
            )
        )  # fmt: skip

    return descend


def gather_rows(problem: PenalisedProblem, design: Indices, first: Indices) -> StackedRows:
    problems = problem.in_memory
    return StackedRows(
        design,
        first,
        np.cumsum([0] + [one.design.n_samples for one in problems]),
        np.concatenate([one.y for one in problems]),
        np.concatenate([one.weights for one in problems]),
        np.concatenate([one.targets for one in problems]),
        np.array([one.lam for one in problems], dtype=np.float64),
    )


def gather_units(problem: PenalisedProblem) -> SharedUnits:
    units = problem.units
    return SharedUnits(
        problem.sparsity_set.unit_of,
        units.are_plain,
        np.append(units.fixed, False),
        units.signs,
        problem.keeps_all,
    )


class Work(NamedTuple):
    """Scratch arrays of `project_units`, which passes `values` and `candidates` on to `select_largest`."""

    norms: Vector  # the squared norm of each unit's coefficients; the last entry is for columns of no unit
    values: Vector
    candidates: Indices
    kept: Indices  # the indices of the k units that the projection keeps, those with the largest norms


def make_work(problem: PenalisedProblem) -> Work:
    n = problem.units.n_units
    return Work(np.empty(n + 1), np.empty(n), np.empty(n, np.intp), np.arange(problem.k))


@inlined
def copy_columns(source: Matrix, out: Matrix) -> None:
    """Copy columns of `source` into `out`, which may have fewer; loops compile faster than slices."""
    for m in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[m, j] = source[m, j]


@compiled
def project_units(
    beta: Matrix, shared: SharedUnits, k: int, guess: float, projected: Matrix, work: Work
) -> tuple[float, float]:
    """Write the projection of beta onto S_k (at most k nonzero units) into `projected`, without intercepts.

    Returns the k-th largest squared norm of a unit, and the squared distance of beta to S_k. A `guess` that
    is a little below that norm makes the search for it faster; any guess gives the same result.
    """
    norms, values, candidates, kept = work
    n_problems, n_features = projected.shape
    n_units = norms.size - 1
    if n_problems == 1 and shared.plain:  # the paper's case: S_k has vectors with at most k nonzero entries
        threshold, _, distance_sq = select_largest(
            beta[0], k, n_features, np.sqrt(guess), values, candidates, kept
        )
        projected[:] = 0.0
        for j in kept:
            projected[0, j] = beta[0, j]
        return threshold * threshold, distance_sq
    norms[:] = 0.0
    for m in range(n_problems):
        for j in range(n_features):
            w = beta[m, j]
            if not w * shared.signs[j] < 0.0:
                norms[shared.unit_of[j]] += w * w
    for u in range(n_units):
        if shared.fixed[u]:
            norms[u] = np.inf
    threshold, _, _ = select_largest(norms, k, n_units, guess, values, candidates, kept)
    norms[:] = 0.0
    for u in kept:
        norms[u] = 1.0
    distance_sq = 0.0
    for m in range(n_problems):
        for j in range(n_features):
            w = beta[m, j]
            if norms[shared.unit_of[j]] > 0.0 and not w * shared.signs[j] < 0.0:
                projected[m, j] = w
            else:
                projected[m, j] = 0.0
                distance_sq += w * w
    return threshold, distance_sq


@compiled
def descend_mm(
    U: Matrix,
    s: Matrix,
    V: Tensor,
    ranks: Indices,
    rows: StackedRows,
    shared: SharedUnits,
    work: Work,
    n_features: int,
    k: int,
    b_sq: float,
    start: Matrix,
    gtol: float,
    max_inner: int,
    delay: int,
) -> tuple[Matrix, int, float, float]:
    """Minimise f_rho by MM; return the last beta, the number of steps, f_rho and its squared gradient norm.

    f_rho is loss + ridge + b_sq/2 times the squared distance to S_k. The d-th distinct X, with row i times
    the square root of sample weight i, has the SVD U diag(s[d]) V[d]', padded with zeros beyond its rank; `U`
    stacks all U. For coords = V'beta_m, the decision values f of binary problem m, times the same roots, are
    U (s * coords). The gradient of its loss is -V (s * U'(y v)) / n with v_i = max(0, target_i - y_i f_i). A
    step has two products with U, and two with V: V c for a vector c, and V'projected, which skips zeros.
    """
    n_problems, n_parameters = start.shape
    has_intercept = n_parameters > n_features
    width = s.shape[1]
    beta, previous, update = start.copy(), start.copy(), np.empty(n_parameters)
    coords = np.zeros((n_problems, width))
    projected, projected_coords = np.empty((n_problems, n_features)), np.zeros((n_problems, width))
    pull, scaled = np.zeros((n_problems, width)), np.zeros(width)
    threshold = 0.0
    decision, shortfall = np.empty(rows.y.size), np.empty(rows.y.size)
    last_objective, j_momentum, n_inner = np.inf, 1, 0
    for m in range(n_problems):
        np.dot(beta[m], V[rows.design[m]], coords[m])
    previous_coords = coords.copy()

    while True:
        # 1. decision values f, loss, and `pull` = U'(y v) of the shortfalls v_i = max(0, target_i - y_i f_i)
        objective = 0.0
        for m in range(n_problems):
            d, low, high = rows.design[m], rows.ends[m], rows.ends[m + 1]
            if shared.keeps_all:  # compute V'beta anew: gtol may be tiny, and updates add up rounding errors
                np.dot(beta[m], V[d], coords[m])
            for j in range(width):
                scaled[j] = s[d, j] * coords[m, j]
            times(U, rows.first[m], scaled, decision[low:high])
            # slices let loops count from 0, which is faster: numba then need not allow for negative indices
            y_m, target, f = rows.y[low:high], rows.targets[low:high], decision[low:high]
            v_m, loss = shortfall[low:high], 0.0
            for i in range(high - low):
                v = squared_hinge.slope(target[i] - y_m[i] * f[i])
                v_m[i] = y_m[i] * v
                loss += v * v
            objective += loss / (2 * (high - low))
            add_rows(U, rows.first[m], v_m, pull[m])
        # 2. the projection of beta onto S_k (at most k nonzero units), and its coordinates V'projected
        distance_sq = 0.0
        if shared.keeps_all:
            copy_columns(beta, projected)
            copy_columns(coords, projected_coords)
        else:
            guess = THRESHOLD_FRACTION * threshold
            threshold, distance_sq = project_units(beta, shared, k, guess, projected, work)
            for m in range(n_problems):
                basis = V[rows.design[m]]
                intercept = beta[m, n_features] if has_intercept else 0.0
                for j in range(width):
                    projected_coords[m, j] = intercept * basis[n_parameters - 1, j]
                for i in range(n_features):
                    w = projected[m, i]
                    if w != 0.0:
                        for j in range(width):
                            projected_coords[m, j] += w * basis[i, j]
        objective += b_sq / 2 * distance_sq
        # 3. the ridge, and the squared gradient norm of f_rho from the gradient's coordinates V'gradient. If
        #    X lacks full column rank, the penalties also have a gradient orthogonal to V, which is added
        gradient_sq = 0.0
        for m in range(n_problems):
            d, lam, n = rows.design[m], rows.lam[m], rows.ends[m + 1] - rows.ends[m]
            intercept = beta[m, n_features] if has_intercept else 0.0
            norm_sq, penalty_sq, inside = 0.0, 0.0, 0.0
            for i in range(n_features):
                w = beta[m, i]
                g = b_sq * (w - projected[m, i]) + lam * w
                norm_sq += w * w
                penalty_sq += g * g
            for j in range(ranks[d]):
                c = coords[m, j]
                g = b_sq * (c - projected_coords[m, j]) + lam * (c - intercept * V[d, n_parameters - 1, j])
                inside += g * g
                g -= s[d, j] * pull[m, j] / n
                gradient_sq += g * g
            if ranks[d] < n_parameters and penalty_sq > inside:
                gradient_sq += penalty_sq - inside
            objective += lam / 2 * norm_sq
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            j_momentum = 1
        last_objective = objective
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (j_momentum - 1) / (j_momentum + FRICTION - 1)
            j_momentum += 1
        # 4. the minimum of the surrogate (the quadratic majoriser of f_rho): q + V c, where q minimises its
        #    penalties and c is `scaled`; its coordinates are V'q + c. Then momentum, for beta and for V'beta
        for m in range(n_problems):
            d, lam, n = rows.design[m], rows.lam[m], rows.ends[m + 1] - rows.ends[m]
            d_sq = b_sq + lam
            shrink = b_sq / d_sq if d_sq > 0 else 1.0
            intercept = beta[m, n_features] if has_intercept else 0.0
            for j in range(width):
                fixed = intercept * V[d, n_parameters - 1, j]
                center = shrink * (projected_coords[m, j] - fixed) + fixed
                scaled[j] = 0.0
                if j < ranks[d]:
                    step = s[d, j] * (coords[m, j] - center) + pull[m, j]
                    scaled[j] = s[d, j] * step / (s[d, j] * s[d, j] + n * d_sq)
                new = center + scaled[j]
                coords[m, j] = new + carry * (new - previous_coords[m, j])
                previous_coords[m, j] = new
            np.dot(V[d], scaled, update)
            for i in range(n_features):
                new = update[i] + shrink * projected[m, i]
                beta[m, i] = new + carry * (new - previous[m, i])
                previous[m, i] = new
            if has_intercept:
                new = update[n_features] + intercept
                beta[m, n_features] = new + carry * (new - previous[m, n_features])
                previous[m, n_features] = new


@compiled
def descend_sd(
    X: Any,
    rows: StackedRows,
    shared: SharedUnits,
    work: Work,
    n_features: int,
    k: int,
    b_sq: float,
    start: Matrix,
    gtol: float,
    max_inner: int,
    delay: int,
) -> tuple[Matrix, int, float, float]:
    """Minimise f_rho by SD; return the last beta, the number of steps, f_rho and its squared gradient norm.

    f_rho is loss + ridge + b_sq/2 times the squared distance to S_k. X is an array or a CSR matrix. The
    decision values of the next beta follow from X times the gradient, which the line search needs anyway.
    """
    n_problems, n_parameters = start.shape
    has_intercept = n_parameters > n_features
    beta, previous = start.copy(), start.copy()
    gradient, product = np.zeros_like(start), np.empty(n_features)
    projected = np.empty((n_problems, n_features))
    threshold = 0.0
    decision, previous_decision = np.empty(rows.y.size), np.empty(rows.y.size)
    derivative, along = np.empty(rows.y.size), np.empty(rows.y.size)
    last_objective, j_momentum, n_inner = np.inf, 1, 0

    while True:
        # 1. the projection of beta onto S_k, the penalised objective f_rho, and its gradient
        distance_sq = 0.0
        if shared.keeps_all:
            copy_columns(beta, projected)
        else:
            guess = THRESHOLD_FRACTION * threshold
            threshold, distance_sq = project_units(beta, shared, k, guess, projected, work)
        objective, gradient_sq = b_sq / 2 * distance_sq, 0.0
        for m in range(n_problems):
            low, high, lam = rows.ends[m], rows.ends[m + 1], rows.lam[m]
            n = high - low
            if n_inner % REFRESH_EVERY == 0:
                times(X, rows.first[m], beta[m, :n_features], decision[low:high])
                times(X, rows.first[m], previous[m, :n_features], previous_decision[low:high])
                if has_intercept:
                    decision[low:high] += beta[m, n_features]
                    previous_decision[low:high] += previous[m, n_features]
            y_m, weights, f = rows.y[low:high], rows.weights[low:high], decision[low:high]
            slope, target = derivative[low:high], rows.targets[low:high]
            loss, slope_sum = 0.0, 0.0
            for i in range(n):
                residual = squared_hinge.residual_of(f[i], y_m[i], target[i])
                slope[i] = -weights[i] * y_m[i] * squared_hinge.slope(residual) / n
                slope_sum += slope[i]
                loss += weights[i] * squared_hinge.twice_value(residual)
            add_rows(X, rows.first[m], slope, product)
            norm_sq = 0.0
            for j in range(n_features):
                w = beta[m, j]
                g = product[j] + b_sq * (w - projected[m, j]) + lam * w
                gradient[m, j] = g
                gradient_sq += g * g
                norm_sq += w * w
            if has_intercept:
                gradient[m, n_features] = slope_sum
                gradient_sq += slope_sum * slope_sum
            objective += loss / (2 * n) + lam / 2 * norm_sq
        if (n_inner > 0 and gradient_sq < gtol) or n_inner == max_inner:
            return beta, n_inner, objective, gradient_sq
        if objective > last_objective:
            j_momentum = 1
        last_objective = objective
        # 2. the step length that minimises the surrogate (a quadratic majoriser) along the negative gradient
        curvature = b_sq * gradient_sq
        for m in range(n_problems):
            low, high = rows.ends[m], rows.ends[m + 1]
            weights, change = rows.weights[low:high], along[low:high]
            times(X, rows.first[m], gradient[m, :n_features], change)
            shift = gradient[m, n_features] if has_intercept else 0.0
            along_sq, row_sq = 0.0, 0.0
            for i in range(high - low):
                change[i] += shift
                along_sq += weights[i] * change[i] * change[i]
            for j in range(n_parameters):
                row_sq += gradient[m, j] * gradient[m, j]
            curvature += along_sq / (high - low) + rows.lam[m] * row_sq
        length = gradient_sq / curvature if curvature > 0.0 else 0.0
        # 3. the step and Nesterov momentum, for beta and likewise for the decision values
        n_inner += 1
        carry = 0.0
        if n_inner > delay:
            carry = (j_momentum - 1) / (j_momentum + FRICTION - 1)
            j_momentum += 1
        for m in range(n_problems):
            for j in range(n_parameters):
                new = beta[m, j] - length * gradient[m, j]
                beta[m, j] = new + carry * (new - previous[m, j])
                previous[m, j] = new
        for i in range(along.size):
            new = decision[i] - length * along[i]
            decision[i] = new + carry * (new - previous_decision[i])
            previous_decision[i] = new


def stack_designs(designs: Sequence[Design]) -> Any:
    """Return dense matrices X stacked in one array, or a single CSR matrix; None for any other designs."""
    stored = [design.stored for design in designs]
    if all(isinstance(X, np.ndarray) for X in stored):
        return stack_arrays(stored)
    return stored[0] if len(stored) == 1 else None


def index_distinct(items: Sequence[Any]) -> tuple[list[Any], Indices]:
    """Return the distinct objects in `items` (compared by `is`), and the index among them of every item."""
    distinct = {id(item): item for item in items}
    places = {key: place for place, key in enumerate(distinct)}
    return list(distinct.values()), np.array([places[id(item)] for item in items])


def stack_arrays(arrays: Sequence[Matrix]) -> Matrix:
    """Stack arrays vertically as float64; a single C-contiguous float64 array is returned without a copy."""
    return np.ascontiguousarray(arrays[0] if len(arrays) == 1 else np.concatenate(arrays), dtype=np.float64)


def times(X: Any, first: int, w: Vector, out: Vector) -> None:
    """Write X w into `out`, for out.size rows of the array X from `first` on, or all rows of a CSR matrix."""
    _times(typeof(X), first, w, out)(X, first, w, out)  # the choice by type that numba makes in compiled code


def add_rows(X: Any, first: int, weights: Vector, out: Vector) -> None:
    """Write X'weights into `out`, for the rows of the array X from `first` on, or all rows of a CSR matrix.

    If X is an array and at least half of the weights are 0, as for samples beyond their margin, only rows
    with nonzero weights are read. Otherwise BLAS computes the product with all rows.
    """
    _add_rows(typeof(X), first, weights, out)(X, first, weights, out)


@overload(times, jit_options=OPTIONS)
def _times(X: Any, first: Any, w: Any, out: Any) -> Any:
    def of_array(X: Any, first: Any, w: Any, out: Any) -> Any:
        np.dot(X[first : first + out.size], w, out)

    def of_csr(X: Any, first: Any, w: Any, out: Any) -> Any:
        csr_times(X, w, out)

    return of_array if isinstance(X, types.Array) else of_csr


@overload(add_rows, jit_options=OPTIONS)
def _add_rows(X: Any, first: Any, weights: Any, out: Any) -> Any:
    def of_array(X: Any, first: Any, weights: Any, out: Any) -> Any:
        rows = X[first : first + weights.size]
        n_read = 0  # nonzero weights, counted by a loop: np.count_nonzero takes ten times as long to compile
        for weight in weights:
            n_read += weight != 0.0
        if 2 * n_read > len(weights):
            np.dot(weights, rows, out)
        else:
            dense_slopes(rows, weights, out)

    def of_csr(X: Any, first: Any, weights: Any, out: Any) -> Any:
        csr_slopes(X, weights, out)

    return of_array if isinstance(X, types.Array) else of_csr
