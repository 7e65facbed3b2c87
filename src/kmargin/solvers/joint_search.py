"""The loops of `fitted.FittedSupport`, for machines whose panels are in one memory: compiled if that pays.

The same steps in the same order, so that both find the same.
"""

from typing import NamedTuple

import numpy as np

from kmargin.jit import compiled, compiled_or_remote
from kmargin.solvers.joint_found import locate
from kmargin.solvers.linalg import smallest
from kmargin.solvers.machine_panel import CALL
from kmargin.solvers.machine_stack import Stack, StackedScores, exchange_each, score_each
from kmargin.solvers.newton import NO_LOSS
from kmargin.solvers.rows import cost_of_refit
from kmargin.solvers.search import HOPE, MAX_ROUNDS, TRIES
from kmargin.types import Flags, Indices, Matrix, Vector


class Layout(NamedTuple):
    """Units, and where their columns are: unit j is columns[starts[j]:starts[j + 1]]."""

    starts: Indices
    columns: Indices
    place_of: Indices  # of each column; -1 if it has none
    fixed: Flags  # of each unit


class Scored(NamedTuple):
    """What exchanges do at a support; see `fitted.UnitScores`."""

    outside: Indices
    drop: Vector
    gain: Vector
    change: Matrix
    by_machine: StackedScores


class Searched(NamedTuple):
    """Where a search ends."""

    support: Indices
    coefs: Matrix
    values: Vector  # of each machine
    n_newton: int
    all_tried: bool
    nothing_left: bool  # to exchange, or to gain
    scored: Scored  # at this support, unless there is nothing left


NOTHING_SCORED = Scored(
    np.empty(0, np.int64),
    np.empty(0),
    np.empty(0),
    np.empty((0, 0)),
    StackedScores(
        np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)), np.empty((0, 0, 0))
    ),
)


@compiled_or_remote
def score_at(
    stack: Stack, far: Indices, layout: Layout, support: Indices, coefs: Matrix, outside: Indices
) -> Scored:
    """What exchanges with these units do."""
    end = stack.ridge.shape[1] - 2
    idx, lose_starts = locate(layout.starts, layout.columns, layout.place_of, end, support)
    places, take_starts = locate(layout.starts, layout.columns, layout.place_of, end, outside)
    drop, gain, change, by_machine = score_each(
        stack, far, idx, coefs, places[: places.size - 1], lose_starts, take_starts
    )
    keep_fixed(support, layout.fixed, drop, change)
    return Scored(outside, drop, gain, change, by_machine)


@compiled
def keep_fixed(support: Indices, fixed: Flags, drop: Vector, change: Matrix) -> None:
    """What has to stay costs more than anything gains."""
    for a in range(support.size):
        if fixed[support[a]]:
            drop[a] = np.inf
            for b in range(change.shape[1]):
                change[a, b] = np.inf


@compiled
def others(support: Indices, may_come: Flags) -> Indices:
    """The units that may come and are not in the support."""
    inside = np.zeros(may_come.size, np.bool_)
    for a in range(support.size):
        inside[support[a]] = True
    found, m = np.empty(may_come.size, np.int64), 0
    for unit in range(may_come.size):
        if may_come[unit] and not inside[unit]:
            found[m] = unit
            m += 1
    return found[:m].copy()


@compiled
def are_same(x: Indices, y: Indices) -> bool:
    if x.size != y.size:
        return False
    for i in range(x.size):
        if x[i] != y[i]:
            return False
    return True


@compiled
def lowest(values: Vector, count: int, bound: float) -> Indices:
    """`fitted.smallest_first`."""
    known, order = np.empty(values.size), np.empty(min(count, values.size), np.int64)
    for i in range(values.size):
        known[i] = values[i] if values[i] == values[i] else np.inf
    smallest(known, values.size, order.size, order)
    m = 0
    for r in range(order.size):
        if not (values[order[r]] > bound or values[order[r]] == np.inf):
            order[m] = order[r]
            m += 1
    return order[:m].copy()


@compiled
def n_that_pay(drop: Vector, gain: Vector, lose: Indices, take: Indices) -> int:
    """How many of the cheapest cost less than as many of the most gainful gain."""
    c = 0
    while c < lose.size and c < take.size and drop[lose[c]] < gain[take[c]]:
        c += 1
    return c


@compiled
def cost_of_tries(stack_starts: Indices, n_columns: int) -> float:
    """`machine_panel.joint_cost_of_try`."""
    cost = 0.0
    for number in range(stack_starts.size - 1):
        cost += CALL + cost_of_refit(stack_starts[number + 1] - stack_starts[number], n_columns + 1)
    return cost


@compiled
def total_of(values: Vector) -> float:
    total = 0.0
    for number in range(values.size):
        total += values[number]
    return total


@compiled
def how_many_tries(
    stack_starts: Indices, n_columns: int, n_swaps: int, max_swaps: int, room: float
) -> tuple[int, bool]:
    """Exchanges of one for one; and whether these are all."""
    affordable = room / cost_of_tries(stack_starts, n_columns)
    if max_swaps < 0 or affordable >= n_swaps:
        return n_swaps, True
    return min(n_swaps, max(1, min(max_swaps, TRIES * max_swaps // (n_columns + 1)), int(affordable))), False


@compiled_or_remote
def search_each(
    stack: Stack,
    far: Indices,
    layout: Layout,
    support: Indices,
    coefs: Matrix,
    values: Vector,
    may_come: Flags,
    many: bool,
    max_swaps: int,
    room: float,
    tol: float,
    scored: Scored,
) -> Searched:
    """Many for many while that pays, then one for one; scores anew after a success.

    `scored` is what is known of this support; nothing if the units outside are not those.
    """
    n_newton, tried = 0, values.copy()
    outside = others(support, may_come)
    if scored.drop.size != support.size or not are_same(outside, scored.outside):
        scored = score_at(stack, far, layout, support, coefs, outside)
    for _ in range(MAX_ROUNDS):
        value, limit = total_of(values), total_of(values) * (1.0 - tol)
        if support.size == 0 or outside.size == 0 or value < NO_LOSS:
            return Searched(support, coefs, values, n_newton, True, True, scored)
        if value != value:  # every exchange would be as good as any other
            break
        turn, all_tried = -1, False
        if many:
            lose, take = (
                lowest(scored.drop, support.size // 2, np.inf),
                lowest(-scored.gain, outside.size, np.inf),
            )
            c = n_that_pay(scored.drop, scored.gain, lose, take)
            while c > 1 and turn < 0:  # one for one comes next
                turn, support, coefs, n_iter = exchange_each(
                    stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
                    lose[:c].copy().reshape((1, c)), outside[take[:c]].reshape((1, c)), value, limit, tol,
                    tried,
                )  # fmt: skip
                n_newton += n_iter
                c //= 2
            many = turn >= 0
        if turn < 0:
            n_free = lowest(scored.drop, support.size, np.inf).size
            n_tries, all_tried = how_many_tries(
                stack.starts, coefs.shape[1] - 1, n_free * outside.size, max_swaps, room
            )
            hope = np.inf if all_tried else HOPE * value
            best = lowest(scored.change.ravel(), n_tries, hope)
            turn, support, coefs, n_iter = exchange_each(
                stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
                (best // outside.size).reshape((-1, 1)), outside[best % outside.size].reshape((-1, 1)),
                np.inf if all_tried else value, limit, tol, tried,
            )  # fmt: skip
            n_newton += n_iter
        if turn < 0:
            return Searched(support, coefs, values, n_newton, all_tried and turn == -1, False, scored)
        values = tried.copy()
        outside = others(support, may_come)
        scored = score_at(stack, far, layout, support, coefs, outside)
    return Searched(support, coefs, values, n_newton, False, False, scored)


@compiled_or_remote
def resize_each(
    stack: Stack,
    far: Indices,
    layout: Layout,
    support: Indices,
    coefs: Matrix,
    may_come: Flags,
    k: int,
    growth: float,
    tol: float,
    values: Vector,
) -> tuple[Indices, Matrix, int]:
    """Drop the cheapest units, or add the most gainful, until there are k or all that may come or go.

    `values` are those of the machines then, if there is any change.
    """
    none: Indices = np.empty(0, np.int64)
    n_newton = 0
    while support.size != k:
        size = support.size
        if size > k:
            scored = score_at(stack, far, layout, support, coefs, none)
            lose = lowest(scored.drop, min(size - k, max(1, size // 8)), np.inf)
            take = none
        else:
            scored = score_at(stack, far, layout, support, coefs, others(support, may_come))
            best = lowest(-scored.gain, min(k - size, max(1, int(growth * size))), np.inf)
            lose, take = none, scored.outside[best]
        if lose.size + take.size == 0:
            break
        _, support, coefs, n_iter = exchange_each(
            stack, far, layout.starts, layout.columns, layout.place_of, support, coefs,
            lose.reshape((1, -1)), take.reshape((1, -1)), np.inf, np.nan, tol, values,
        )  # fmt: skip
        n_newton += n_iter
    return support, coefs, n_newton
