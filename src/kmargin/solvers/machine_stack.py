"""Panels of several machines in one memory, so that to ask all of them is one call, compiled if that pays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.inline import inlined
from kmargin.jit import compiled_or_remote
from kmargin.solvers.rows import Rows, follow
from kmargin.solvers.search import far_newton, far_score
from kmargin.solvers.unit_scores import score_columns
from kmargin.types import Flags, Indices, Matrix, Vector


class Stack(NamedTuple):
    """What `Rows` holds of one machine, of all of them, one after another; see there."""

    starts: Indices  # machine m has the rows starts[m] to starts[m + 1]
    panel: Vector
    active: Flags
    resid: Vector
    delta: Vector
    changed: Indices
    signs: Vector
    tried_active: Flags  # where a point is tried
    tried_resid: Vector
    gram: Matrix  # of each machine
    ridge: Matrix
    weights: Vector


def make_stack(n_samples: Sequence[int], n_places: int, weights: Sequence[float]) -> Stack:
    """Room for so many columns of machines with so many rows."""
    starts = np.concatenate([[0], np.cumsum(n_samples)]).astype(np.int64)
    n, height, n_machines = int(starts[-1]), n_places + 2, len(n_samples)
    numbers = np.empty((4, n))
    return Stack(
        starts,
        np.empty(height * n),
        np.ones(n, np.bool_),
        numbers[0],
        numbers[1],
        np.empty(n, np.int64),
        numbers[2],
        np.ones(n, np.bool_),
        numbers[3],
        np.empty((n_machines, height, height)),
        np.empty((n_machines, height)),
        np.array(weights, np.float64),
    )


@inlined
def rows_of(stack: Stack, number: int) -> Rows:
    """The rows of one machine."""
    first, last, height = stack.starts[number], stack.starts[number + 1], stack.ridge.shape[1]
    return Rows(
        stack.panel[height * first : height * last].reshape((height, last - first)),
        stack.active[first:last],
        stack.resid[first:last],
        stack.delta[first:last],
        stack.changed[first:last],
        stack.signs[first:last],
    )


@inlined
def tried_rows_of(stack: Stack, number: int) -> Rows:
    """The same rows, to try another point with."""
    first, last, height = stack.starts[number], stack.starts[number + 1], stack.ridge.shape[1]
    return Rows(
        stack.panel[height * first : height * last].reshape((height, last - first)),
        stack.tried_active[first:last],
        stack.tried_resid[first:last],
        stack.delta[first:last],
        stack.changed[first:last],
        stack.signs[first:last],
    )


@compiled_or_remote
def refit_each(
    stack: Stack,
    far: Indices,
    idx: Indices,
    coefs: Matrix,
    give_up: float,
    limit: float,
    tol: float,
    values: Vector,
) -> tuple[float, int]:
    """Refit machine after machine on the columns idx, from coefs, until their sum is no longer below a limit.

    There is none if it is not a number. Returns the sum, and the Newton steps.
    """
    total, n_newton = 0.0, 0
    for number in range(values.size):
        rows, weight = tried_rows_of(stack, number), stack.weights[number]
        rows.active[:] = stack.active[stack.starts[number] : stack.starts[number + 1]]
        value, n_iter = far_newton(
            far[0], rows, stack.ridge[number], stack.gram[number], idx, coefs[number],
            (give_up - total) / weight, tol,
        )  # fmt: skip
        values[number] = weight * value
        total += values[number]
        n_newton += n_iter
        if total >= limit or (total != total and limit == limit):
            break
    return total, n_newton


@compiled_or_remote
def follow_each(stack: Stack) -> None:
    """Bring the Gram matrices to where the points tried last have their active rows."""
    for number in range(stack.weights.size):
        follow(rows_of(stack, number), tried_rows_of(stack, number), stack.gram[number])


class StackedScores(NamedTuple):
    """What `scores.score` says of the columns of each machine; see there."""

    spread: Matrix
    grad: Matrix
    schur: Matrix
    R: Matrix
    inverse: Matrix


def make_stacked_scores(n_machines: int, k: int, m: int) -> StackedScores:
    """Room for a support of k - 1 features and the intercept, and m features outside."""
    grad, schur = np.empty((2, n_machines, m))
    R, inverse = np.empty((n_machines, k, m)), np.empty((n_machines, k, k))
    return StackedScores(np.empty((n_machines, k)), grad, schur, R, inverse)


@compiled_or_remote
def score_each(
    stack: Stack,
    far: Indices,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    scores: StackedScores,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> None:
    """What exchanges of columns do, summed over the machines; of each machine what that is made of."""
    dropped, gained = np.empty(idx.size), np.empty(outside.size)  # of one machine, by what is added up below
    for number in range(stack.weights.size):
        far_score(
            far[1], stack.ridge[number], idx, coefs[number], stack.gram[number], outside, dropped,
            scores.spread[number], gained, scores.grad[number], scores.schur[number], scores.R[number],
            scores.inverse[number],
        )  # fmt: skip
        score_columns(
            coefs[number], scores.spread[number], scores.grad[number], scores.schur[number],
            scores.R[number], stack.weights[number], drop, gain, change,
        )  # fmt: skip
