"""Newton's method on the columns of a panel, compiled.

The binary problem with labels y_i and sample weights s_i ::

    minimise 1/(2n) sum_i s_i max(0, 1 - y_i (x_i'w + b))^2 + 1/2 sum_j lam_j w_j^2

is rewritten. With c_i = sqrt(s_i/n), t_i = c_i y_i, a_ij = t_i x_ij and an intercept column t it reads ::

    minimise 1/2 sum_i max(0, c_i - a_i'u)^2 + 1/2 sum_j ridge_j u_j^2

with ridge 0 for the intercept. A *panel* holds q such columns as contiguous rows: panel[j] is a feature for
j < q, panel[q] the intercept (zeros with ridge 1 when there is none), panel[q + 1] the target c. Several
binary problems that share their columns lie side by side: problem m has the entries starts[m]:starts[m + 1]
of each row of the panel. A row i of the data is active if its residual c_i - a_i'u is positive; only active
rows have a loss. `gram` is the Gram matrix of the panel over the active rows, which is updated, not
recomputed, if few rows change.
"""

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import inlined
from kmargin.core.linalg import U64, add_scaled, add_scaled4, cholesky, solve
from kmargin.solvers.refit.signs import constrained_direction, descent_at

# An objective below this is treated as zero: searches and refits stop.
ZERO_OBJECTIVE = 1e-20

# A Newton step whose predicted decrease is below FINAL_STEP * tol * objective is the last one; if it is below
# NEGLIGIBLE_STEP * objective, the step is not taken. FINAL_STEP is small because coefficients have to be
# accurate, and the objective depends on their errors only to second order.
FINAL_STEP, NEGLIGIBLE_STEP = 1e-4, 1e-20

# A rise of the objective by at most this fraction is treated as a rounding error.
ROUNDING_RTOL = 1e-12

# If the first step leads to a higher objective than this, the Gram matrix has lost all digits to rounding.
# Newton's method then starts from zero coefficients, whose objective is 1/2, with a new Gram matrix.
MAX_FIRST_VALUE = 1e12

# Safety caps on the Newton steps of a refit and the iterations of a line search, which usually take a few.
MAX_NEWTON_STEPS, MAX_LINE_STEPS = 100, 60


@inlined
def move_rows(
    panel: Matrix, first: int, idx: Indices, rows: Indices, signs: Vector, n_rows: int, H: Matrix
) -> None:
    """Add rows of the data (sign 1) to the Gram matrix H of panel[idx], or remove them (sign -1).

    The rows are the first `n_rows` entries of `rows`; row r is the column first + r of the panel. Only the
    upper triangle of H is updated, by four rows at a time, so that H is read and written less often.
    """
    k = idx.size
    x = np.empty((4, k))
    stop = U64(k)
    for r in range(0, n_rows, 4):
        m = min(4, n_rows - r)
        for s in range(4):
            if s < m:
                i = first + rows[r + s]
                for a in range(k):
                    x[s, a] = panel[idx[a], i]
            else:
                for a in range(k):
                    x[s, a] = 0.0
        s0 = signs[r]
        s1 = signs[r + 1] if m > 1 else 0.0
        s2 = signs[r + 2] if m > 2 else 0.0
        s3 = signs[r + 3] if m > 3 else 0.0
        a = 0
        while a < k:  # each pass updates the rows a and a + 1 of H
            ua = U64(a)
            f0, f1, f2, f3 = s0 * x[0, ua], s1 * x[1, ua], s2 * x[2, ua], s3 * x[3, ua]
            if a + 1 == k:
                H[ua, ua] += (f0 * x[0, ua] + f1 * x[1, ua]) + (f2 * x[2, ua] + f3 * x[3, ua])
                break
            va = U64(a + 1)
            g0, g1, g2, g3 = s0 * x[0, va], s1 * x[1, va], s2 * x[2, va], s3 * x[3, va]
            for b in range(ua, stop):
                x0, x1, x2, x3 = x[0, b], x[1, b], x[2, b], x[3, b]
                H[ua, b] += (f0 * x0 + f1 * x1) + (f2 * x2 + f3 * x3)
                H[va, b] += (g0 * x0 + g1 * x1) + (g2 * x2 + g3 * x3)
            a += 2


@inlined
def update_gram(
    panel: Matrix,
    first: int,
    idx: Indices,
    active: Flags,
    now: Flags,
    rows: Indices,
    signs: Vector,
    H: Matrix,
) -> int:
    """Change H, the Gram matrix of panel[idx] over the rows marked in `active`, to that over `now`.

    H is an upper triangle. `now` is copied to `active`. Returns the number of rows that became active or
    inactive. `rows` and `signs` are work arrays.
    """
    n_changed, n_now = 0, 0
    for i in range(active.size):
        n_now += now[i]
        if now[i] != active[i]:
            rows[n_changed] = i
            signs[n_changed] = 1.0 if now[i] else -1.0
            n_changed += 1
            active[i] = now[i]
    n_moved = n_changed
    if n_changed > n_now:  # recomputing takes less time than updating, and removes rounding errors
        n_moved = 0
        for i in range(active.size):
            if active[i]:
                rows[n_moved] = i
                signs[n_moved] = 1.0
                n_moved += 1
        for a in range(idx.size):
            for b in range(a, idx.size):
                H[a, b] = 0.0
    if n_moved > 0:
        move_rows(panel, first, idx, rows, signs, n_moved, H)
    return n_changed


@inlined
def combine(panel: Matrix, first: int, idx: Indices, d: Vector, out: Vector) -> None:
    """out <- sum_a d[a] * panel[idx[a]] for the rows of one binary problem, which begin at `first`."""
    last = first + out.size
    for i in range(out.size):
        out[i] = 0.0
    n4 = idx.size - idx.size % 4
    for a in range(0, n4, 4):
        add_scaled4(
            d[a], panel[idx[a], first:last], d[a + 1], panel[idx[a + 1], first:last],
            d[a + 2], panel[idx[a + 2], first:last], d[a + 3], panel[idx[a + 3], first:last], out,
        )  # fmt: skip
    for a in range(n4, idx.size):
        add_scaled(d[a], panel[idx[a], first:last], out)


@inlined
def total_loss(residual: Vector) -> float:
    """The sum of the losses of all rows, from their residuals; four partial sums make the loop faster."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    n4 = residual.size - residual.size % 4
    for i in range(0, n4, 4):
        s0 += squared_hinge.twice_value(residual[i])
        s1 += squared_hinge.twice_value(residual[i + 1])
        s2 += squared_hinge.twice_value(residual[i + 2])
        s3 += squared_hinge.twice_value(residual[i + 3])
    for i in range(n4, residual.size):
        s0 += squared_hinge.twice_value(residual[i])
    return 0.5 * ((s0 + s1) + (s2 + s3))


@inlined
def take_residuals(panel: Matrix, first: int, idx: Indices, u: Vector, residual: Vector) -> None:
    """residual <- target - sum_a u[a] * panel[idx[a]] for one binary problem's rows, from `first` on."""
    combine(panel, first, idx, u, residual)
    target = panel[panel.shape[0] - 1, first : first + residual.size]
    for i in range(residual.size):
        residual[i] = target[i] - residual[i]


@inlined
def exact_step(residual: Vector, delta: Vector, slope: float, curvature: float) -> float:
    """The step length t > 0 that minimises loss(residual - t delta) + t * slope + t^2/2 * curvature.

    The derivative is piecewise linear. Its zero is found by Newton's method, safeguarded by bisection.
    """
    lo, hi, t = 0.0, np.inf, 1.0
    for _ in range(MAX_LINE_STEPS):
        first, second = slope + t * curvature, curvature
        for i in range(residual.size):
            r = residual[i] - t * delta[i]
            if squared_hinge.is_active(r):
                first -= delta[i] * squared_hinge.slope(r)
                second += squared_hinge.curvature(r) * delta[i] * delta[i]
        if first > 0.0:
            hi = t
        else:
            lo = t
        if not second > 0.0:
            break
        new = t - first / second
        if not (lo < new < hi):
            if hi == np.inf:
                break
            new = 0.5 * (lo + hi)
        if abs(new - t) <= 1e-12 * t:
            return new
        t = new
    return t


@inlined
def newton_direction(H: Matrix, ridge: Vector, u: Vector, U: Matrix, descent: Vector, d: Vector) -> float:
    """d <- (H + R)^-1 z - u, the step from u to the minimum of x'(H + R)x / 2 - z'x; return its decrease.

    H is an upper triangle whose last column is z, and R = diag(ridge); U and descent are work arrays.
    """
    k = u.size
    for a in range(k):
        for b in range(a, k):
            U[a, b] = H[a, b]
        U[a, a] += ridge[a]
    descent_at(H, ridge, u, descent)
    for a in range(k):
        d[a] = descent[a]
    cholesky(U, k)
    solve(U, k, d)
    decrease = 0.0
    for a in range(k):
        decrease += 0.5 * d[a] * descent[a]
    return decrease


@inlined
def newton(
    panel: Matrix,
    first: int,
    gram: Matrix,
    all_ridges: Vector,
    idx: Indices,
    u: Vector,
    signs: Vector | None,
    active: Flags,
    residual: Vector,
    delta: Vector,
    rows: Indices,
    row_signs: Vector,
    now: Flags,
    give_up: float,
    tol: float,
) -> tuple[float, int]:
    """Minimise the objective over the coefficients u of the columns panel[idx], the intercept last.

    Returns the objective and the number of Newton steps. `gram` is the panel's Gram matrix over the rows
    `active` (of positive loss); u, `active` and `residual` are overwritten with their values at the minimum.
    While the active rows stay the same, the objective is quadratic: a step goes to the minimum of this
    quadratic, under the required `signs` if there are any, or, if the objective would not fall enough, to the
    exact minimum along its direction. The first step needs only the Gram matrix and is taken in full, unless
    there are signs. Steps end when the active rows stay the same, after a step whose predicted decrease is at
    most FINAL_STEP * tol * objective, or if a decrease twice as large as predicted would not reach `give_up`.
    """
    k = idx.size
    columns = np.empty(k + 1, np.int64)
    ridge = np.empty(k)
    for a in range(k):
        columns[a] = idx[a]
        ridge[a] = all_ridges[idx[a]]
    columns[k] = panel.shape[0] - 1
    H = np.empty((k + 1, k + 1))
    for a in range(k + 1):
        for b in range(a, k + 1):
            H[a, b] = gram[columns[a], columns[b]]
    U, d, descent = np.empty((k, k)), np.empty(k), np.empty(k)
    value = np.inf
    if signs is not None:
        for a in range(k):
            if signs[a] * u[a] < 0.0:
                u[a] = 0.0
        take_residuals(panel, first, idx, u, residual)
        value = total_loss(residual)
        for a in range(k):
            value += 0.5 * ridge[a] * u[a] * u[a]
        for i in range(residual.size):
            now[i] = squared_hinge.is_active(residual[i])
        update_gram(panel, first, columns, active, now, rows, row_signs, H)
    for n_steps in range(MAX_NEWTON_STEPS):
        is_minimum, is_full, is_last = True, True, False
        if signs is not None:
            decrease, is_minimum = constrained_direction(H, ridge, u, signs, U, d)
        else:
            decrease = newton_direction(H, ridge, u, U, descent, d)
        if value == np.inf:
            value = 0.0
            for a in range(k):
                u[a] += d[a]
                value += 0.5 * ridge[a] * u[a] * u[a]
            take_residuals(panel, first, idx, u, residual)
            value += total_loss(residual)
            if not value <= MAX_FIRST_VALUE:
                for a in range(k):
                    u[a] = 0.0
                    for b in range(a, k + 1):
                        H[a, b] = 0.0
                for i in range(residual.size):
                    residual[i] = panel[columns[k], first + i]
                    active[i] = False
                value = total_loss(residual)
        else:
            if (
                decrease <= NEGLIGIBLE_STEP * value
                or value < ZERO_OBJECTIVE
                or value - 2.0 * decrease > give_up
            ):
                return value, n_steps
            combine(panel, first, idx, d, delta)
            uu, ud, dd, loss = 0.0, 0.0, 0.0, 0.0
            for a in range(k):
                uu += ridge[a] * u[a] * u[a]
                ud += ridge[a] * u[a] * d[a]
                dd += ridge[a] * d[a] * d[a]
            for i in range(residual.size):
                loss += squared_hinge.twice_value(residual[i] - delta[i])
            new_value = 0.5 * (loss + uu + dd) + ud
            # A last step must not raise the objective, as a long step along a nearly flat direction may.
            is_last = decrease <= FINAL_STEP * tol * value and new_value <= value * (1.0 + ROUNDING_RTOL)
            t = 1.0
            if not is_last and not new_value <= value - 0.2 * decrease:
                t = exact_step(residual, delta, ud, dd)
                if signs is not None:
                    t = min(t, 1.0)
                is_full = False
            for i in range(residual.size):
                residual[i] -= t * delta[i]
            if not is_full:
                new_value = total_loss(residual) + 0.5 * (uu + t * t * dd) + t * ud
                if not new_value < value:  # undo the step: only rounding errors are left
                    for i in range(residual.size):
                        residual[i] += t * delta[i]
                    return value, n_steps
            for a in range(k):
                u[a] += t * d[a]
            value = new_value
        for i in range(residual.size):
            now[i] = squared_hinge.is_active(residual[i])
        n_changed = update_gram(panel, first, columns, active, now, rows, row_signs, H)
        if is_last or (n_changed == 0 and is_full and is_minimum):
            return value, n_steps + 1
    return value, MAX_NEWTON_STEPS
