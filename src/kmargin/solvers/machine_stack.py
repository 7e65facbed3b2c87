"""Panels of several machines in one memory, so that to ask all of them is one call, compiled if that pays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.inline import inlined
from kmargin.jit import compiled_or_remote
from kmargin.solvers.joint_found import rearrange
from kmargin.solvers.newton import MAX_NEWTON_STEPS
from kmargin.solvers.panel import residual
from kmargin.solvers.rows import Rows, follow, place, resume, retake_gram
from kmargin.solvers.search import far_newton, far_score
from kmargin.solvers.unit_scores import schur_blocks, score_columns, score_units
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

    There is none if it is not a number. Returns the sum, and the Newton steps. The sum is infinite if steps
    ran out below a limit: what more of them gain is not to be taken for what an exchange gains.
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
        if n_iter == MAX_NEWTON_STEPS and limit == limit:
            total = np.inf
        if total >= limit or (total != total and limit == limit):
            break
    return total, n_newton


@compiled_or_remote
def follow_each(stack: Stack) -> None:
    """Bring the Gram matrices to where the points tried last have their active rows."""
    for number in range(stack.weights.size):
        follow(rows_of(stack, number), tried_rows_of(stack, number), stack.gram[number])


@compiled_or_remote
def exchange_each(
    stack: Stack,
    far: Indices,
    starts: Indices,
    columns: Indices,
    place_of: Indices,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
    give_up: float,
    limit: float,
    tol: float,
    values: Vector,
) -> tuple[int, Indices, Matrix, int]:
    """Try exchanges in turn, lose[turn] for take[turn], until one stays below the limit, and make that one.

    Any does if the limit is not a number. Returns which it was, -1 if none, -2 if that is not known of all;
    the support and the coefficients then, and the Newton steps. Unit j is columns[starts[j]:starts[j + 1]].
    """
    n_newton, none = 0, -1
    for turn in range(lose.shape[0]):
        chosen, idx, moved = rearrange(
            starts, columns, place_of, stack.ridge.shape[1] - 2, support, coefs, lose[turn], take[turn]
        )
        total, n_iter = refit_each(stack, far, idx, moved, give_up, limit, tol, values)
        n_newton += n_iter
        if total < limit or limit != limit:
            follow_each(stack)
            return turn, chosen, moved, n_newton
        if total == np.inf:
            none = -2
    return none, support, coefs, n_newton


@compiled_or_remote
def go_to_each(stack: Stack, idx: Indices, coefs: Matrix, is_placed: bool, filled: Indices) -> None:
    """Another support, from another if there was one; `filled` are the places that have columns."""
    for number in range(stack.weights.size):
        rows, gram = rows_of(stack, number), stack.gram[number]
        if is_placed:
            resume(rows, idx, coefs[number], gram)
        else:
            place(rows, idx, coefs[number])
            gram[:, :] = 0.0
            retake_gram(rows, filled, filled, gram)


@compiled_or_remote
def retake_each(stack: Stack, places: Indices, filled: Indices) -> None:
    """The Gram matrices after other columns were given to these places."""
    for number in range(stack.weights.size):
        retake_gram(rows_of(stack, number), places, filled, stack.gram[number])


@compiled_or_remote
def residual_each(stack: Stack, idx: Indices, coefs: Matrix) -> None:
    """Of all rows, beside columns at idx with these coefficients."""
    for number in range(stack.weights.size):
        rows = rows_of(stack, number)
        residual(rows.panel, idx, coefs[number], rows.resid)


class StackedScores(NamedTuple):
    """What `scores.score` says of the columns of each machine; see there."""

    spread: Matrix
    grad: Matrix
    schur: Matrix
    R: Matrix
    inverse: Matrix


@compiled_or_remote
def score_each(
    stack: Stack,
    far: Indices,
    idx: Indices,
    coefs: Matrix,
    outside: Indices,
    lose_starts: Indices,
    take_starts: Indices,
) -> tuple[Vector, Vector, Matrix, StackedScores]:
    """What exchanges of units do, summed over the machines: costs, gains, changes; of each machine what that
    is made of.

    The columns at idx and at `outside` are unit after unit, each beginning where the starts say.
    """
    n_machines, k, m = stack.weights.size, idx.size, outside.size
    drop, gain = np.zeros(lose_starts.size - 1), np.zeros(take_starts.size - 1)
    change = np.zeros((drop.size, gain.size))
    scores = StackedScores(
        np.empty((n_machines, k)),
        np.empty((n_machines, m)),
        np.empty((n_machines, m)),
        np.empty((n_machines, k, m)),
        np.empty((n_machines, k, k)),
    )
    dropped, gained = np.empty(k), np.empty(m)  # of one machine, by what is added up below
    inside, at = np.arange(k - 1), np.arange(m)
    singles = drop.size == inside.size and gain.size == at.size
    S = np.empty((0, 0) if singles else (m, m))
    for number in range(n_machines):
        weight = stack.weights[number]
        far_score(
            far[1], stack.ridge[number], idx, coefs[number], stack.gram[number], outside, dropped,
            scores.spread[number], gained, scores.grad[number], scores.schur[number], scores.R[number],
            scores.inverse[number],
        )  # fmt: skip
        if singles:
            score_columns(
                coefs[number], scores.spread[number], scores.grad[number], scores.schur[number],
                scores.R[number], weight, drop, gain, change,
            )  # fmt: skip
        else:
            schur_blocks(
                stack.gram[number], stack.ridge[number], idx, outside, scores.R[number], take_starts, S
            )
            score_units(
                coefs[number], scores.inverse[number], scores.grad[number], S, scores.R[number], inside,
                lose_starts, at, take_starts, weight, drop, gain, change,
            )  # fmt: skip
    return drop, gain, change, scores
