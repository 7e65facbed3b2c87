"""Panels of several machines in one memory, so that to ask all of them is one call, compiled if that pays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kmargin.inline import inlined
from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.rows import Rows, follow
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
    lose_starts: Indices,
    take_starts: Indices,
    scores: StackedScores,
    drop: Vector,
    gain: Vector,
    change: Matrix,
) -> None:
    """What exchanges of units do, summed over the machines; of each machine what that is made of.

    The columns at idx and at `outside` are unit after unit, each beginning where the starts say.
    """
    dropped, gained = np.empty(idx.size), np.empty(outside.size)  # of one machine, by what is added up below
    inside, at = np.arange(idx.size - 1), np.arange(outside.size)
    singles = drop.size == inside.size and gain.size == at.size
    S = np.empty((0, 0) if singles else (at.size, at.size))
    for number in range(stack.weights.size):
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


@compiled
def locate(
    starts: Indices, columns: Indices, place_of: Indices, end: int, units: Indices
) -> tuple[Indices, Indices]:
    """The places of the columns of units, then the intercept's, `end`; where each unit begins among them.

    Unit j is columns[starts[j]:starts[j + 1]].
    """
    begins = np.zeros(units.size + 1, np.int64)
    for a in range(units.size):
        begins[a + 1] = begins[a] + starts[units[a] + 1] - starts[units[a]]
    idx = np.empty(begins[units.size] + 1, np.int64)
    for a in range(units.size):
        for i in range(begins[a + 1] - begins[a]):
            idx[begins[a] + i] = place_of[columns[starts[units[a]] + i]]
    idx[begins[units.size]] = end
    return idx, begins


@compiled
def rearrange(
    starts: Indices,
    columns: Indices,
    place_of: Indices,
    end: int,
    support: Indices,
    coefs: Matrix,
    lose: Indices,
    take: Indices,
) -> tuple[Indices, Indices, Matrix]:
    """After an exchange of units: the support, where its columns are, then the intercept's place, `end`;
    and their coefficients in each machine, 0 for those that are new.

    Unit j is columns[starts[j]:starts[j + 1]]; it leaves if its place in the support is in `lose`.
    """
    stays = np.ones(support.size, np.bool_)
    for a in range(lose.size):
        stays[lose[a]] = False
    n_units = support.size - lose.size + take.size
    chosen, size, m = np.empty(n_units, np.int64), 0, 0
    for a in range(support.size):
        if stays[a]:
            chosen[m] = support[a]
            m += 1
    for b in range(take.size):
        chosen[m + b] = take[b]
    for a in range(n_units):
        size += starts[chosen[a] + 1] - starts[chosen[a]]
    moved = np.zeros((coefs.shape[0], size + 1))
    at, before = 0, 0
    for a in range(support.size):
        width = starts[support[a] + 1] - starts[support[a]]
        if stays[a]:
            for number in range(coefs.shape[0]):
                for i in range(width):
                    moved[number, at + i] = coefs[number, before + i]
            at += width
        before += width
    for number in range(coefs.shape[0]):
        moved[number, size] = coefs[number, before]
    return chosen, locate(starts, columns, place_of, end, chosen)[0], moved
