"""An independent minimum of the squared hinge on given columns: slow, plain, and careful.

Nothing here is shared with the package. Columns are centred (where there is an intercept) and brought to
norm one in extended precision before anything is squared; Newton steps are least-squares problems, solved
by singular values; each step is followed by an exact search along it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize as scipy_minimize

LONG = np.longdouble
EPS = float(np.finfo(float).eps)
# a coefficient with a ridge as heavy as that, in units where columns have norm one, cannot matter
PROHIBITIVE = 1e30
# In those units a model with coefficients as large as that lives on differences between columns of a
# millionth of themselves: whether they mean anything is not for an oracle to say.
LARGE = 1e6


@dataclass
class Task:
    """One two-class machine: minimise over w and b
    1/2 sum_i weight_i max(0, 1 - y_i (x_i'w + b))^2 + 1/2 sum_j ridge_j w_j^2."""

    X: np.ndarray  # as given, every column
    y: np.ndarray  # -1 or 1
    weight: np.ndarray  # longdouble, sums to one
    ridge: np.ndarray  # longdouble, one for each column
    has_intercept: bool
    noise: np.ndarray | None = None  # by how much entries of X may be wrong, where X was computed

    def objective(self, w, b):
        """In extended precision."""
        used = np.flatnonzero(w)
        decision = self.X[:, used].astype(LONG) @ w[used].astype(LONG) + LONG(b)
        loss = np.maximum(0, 1 - self.y * decision)
        return (self.weight @ loss**2 + self.ridge[used] @ w[used].astype(LONG) ** 2) / 2

    def doubt(self, w, b, eps=EPS):
        """By how much rounding of decision values alone may change the objective."""
        used = np.flatnonzero(w)
        X, w = self.X[:, used].astype(LONG), w[used].astype(LONG)
        error = (len(used) + 4) * eps * (np.abs(X) @ np.abs(w) + abs(LONG(b)))
        if self.noise is not None:
            error = error + self.noise[:, used] @ np.abs(w)
        loss = np.maximum(0, 1 - self.y * (X @ w + LONG(b)))
        return self.weight @ (loss * error + error**2)

    def constant(self):
        """The objective of the best machine without features."""
        if not self.has_intercept:
            return LONG(0.5)
        return 2 * self.weight[self.y > 0].sum() * self.weight[self.y < 0].sum()


class Scaled:
    """The task on some columns, in units where these have norm one. Without the columns that are nothing."""

    def __init__(self, task, columns):
        self.task = task
        X = task.X[:, columns].astype(LONG)
        self.center = task.weight @ X if task.has_intercept else np.zeros(len(columns), LONG)
        X = X - self.center
        largest = np.abs(X).max(axis=0, initial=0)
        norm = largest * np.sqrt(task.weight @ (X / np.where(largest > 0, largest, 1)) ** 2)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            ridge = np.where(task.ridge[columns] > 0, task.ridge[columns] / norm**2, 0)
            counts = (norm > 0) & (ridge < PROHIBITIVE)
        self.columns, self.center, self.norm = columns[counts], self.center[counts], norm[counts]
        self.Z = (X[:, counts] / self.norm).astype(float)
        if task.has_intercept:
            self.Z = np.column_stack([self.Z, np.ones(len(task.y))])
        self.ridge = np.append(ridge[counts], np.zeros(int(task.has_intercept), LONG)).astype(float)
        self.weight, self.y = task.weight.astype(float), task.y

    def enter(self, w, b):
        """A model in these units."""
        u = (w[self.columns].astype(LONG) * self.norm).astype(float)
        if not self.task.has_intercept:
            return u
        return np.append(u, float(LONG(b) + w[self.columns].astype(LONG) @ self.center))

    def leave(self, u):
        """A model as a caller would be given it, in double precision."""
        w = np.zeros(self.task.X.shape[1])
        m = len(self.columns)
        w[self.columns] = (u[:m].astype(LONG) / self.norm).astype(float)
        b = 0.0
        if self.task.has_intercept:
            b = float(LONG(u[m]) - w[self.columns].astype(LONG) @ self.center)
        return w, b

    def value(self, u):
        loss = np.maximum(0.0, 1 - self.y * (self.Z @ u))
        return (self.weight @ loss**2 + self.ridge @ u**2) / 2

    def gradient(self, u):
        loss = np.maximum(0.0, 1 - self.y * (self.Z @ u))
        return -self.Z.T @ (self.weight * self.y * loss) + self.ridge * u

    def newton_step(self, u):
        """To the minimum of the quadratic that holds where the same rows stay active."""
        decision = self.Z @ u
        active = self.y * decision < 1
        root = np.sqrt(self.weight[active])
        A = np.vstack([root[:, None] * self.Z[active], np.diag(np.sqrt(self.ridge))])
        right = np.concatenate([root * (self.y[active] - decision[active]), -np.sqrt(self.ridge) * u])
        return np.linalg.lstsq(A, right, rcond=1e-14)[0]

    def length(self, u, step):
        """The exact minimum along a step: where a slope that rises piecewise linearly is zero."""
        margin, speed = 1 - self.y * (self.Z @ u), -self.y * (self.Z @ step)

        def slope(t):
            loss = np.maximum(0.0, margin + np.multiply.outer(t, speed))
            return loss @ (self.weight * speed) + (self.ridge * step) @ u + t * (self.ridge @ step**2)

        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = -margin / speed
        kinks = np.sort(kinks[np.isfinite(kinks) & (kinks > 0)])
        ends = np.concatenate([[0.0], kinks, [2 * max(1.0, kinks[-1] if len(kinks) else 1.0)]])
        slopes = slope(ends)
        if slopes[0] >= 0:
            return 0.0
        after = np.flatnonzero(slopes > 0)
        if len(after) == 0:
            return ends[-1]
        low, high = after[0] - 1, after[0]
        share = slopes[low] / (slopes[low] - slopes[high])
        return ends[low] + share * (ends[high] - ends[low])

    def descend(self, u, max_steps=60):
        """Newton steps until they gain nothing; and whether they ended by themselves."""
        value = self.value(u)
        for _ in range(max_steps):
            step = self.newton_step(u)
            t = 1.0
            if not self.value(u + step) <= value:
                t = self.length(u, step)
            new = self.value(u + t * step)
            if not new < value:
                return u, True
            u, gain, value = u + t * step, value - new, new
            if gain <= 1e-13 * value:
                return u, True
        return u, False


@dataclass
class Refit:
    """A model on some columns, better than what there was or the same."""

    w: np.ndarray
    b: float
    value: np.longdouble
    size: float  # its largest coefficient, in units where columns have norm one


def refit(task, columns, w, b):
    """The best model found on some columns: from the model given, and from nothing."""
    scaled = Scaled(task, columns)
    start = scaled.enter(w, b)
    usable = np.isfinite(start).all() and np.abs(start).max(initial=0) < LARGE
    best = Refit(w, b, task.objective(w, b), np.abs(start).max(initial=0))
    u, done = np.zeros_like(start), False
    for origin in ([start] if usable else []) + [np.zeros_like(start)]:
        if not done:
            u, done = scaled.descend(origin)
            best = _better(task, scaled, u, best)
            done = done and best.size < LARGE
    if not done:
        found = scipy_minimize(scaled.value, u, jac=scaled.gradient, method="L-BFGS-B")
        best = _better(task, scaled, found.x, best)
    return best


def _better(task, scaled, u, best):
    w, b = scaled.leave(u)
    if not (np.isfinite(w).all() and np.isfinite(b)):
        return best
    value, size = task.objective(w, b), np.abs(u).max(initial=0)
    # of two that are as good, the one that is not so large
    tame = size < LARGE <= best.size and value < best.value * (1 + 1e-7)
    return Refit(w, b, value, size) if value < best.value or tame else best
