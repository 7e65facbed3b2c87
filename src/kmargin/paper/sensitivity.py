"""Sensitivity to initial conditions: Figure 1.

A unit is one fit to the training set at half the features, from parameters (mm, sd) or from a
support (exchange) drawn at random.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from kmargin import MM, SD
from kmargin.core.arrays import Vector
from kmargin.paper import protocol
from kmargin.paper.crossval import Machines
from kmargin.paper.protocol import SOLVERS, Chain, Finished, Settings, Unit

NAME = "sensitivity"
SPARSITY = 0.5  # at least: where the number of features is odd, a little more
BLOCK = 25  # starts that share one set-up
RANDOM = {
    "mm": MM(start="normal", ending="projection"),
    "sd": SD(start="normal", ending="projection"),
}


def chains(
    settings: Settings, protocols: Sequence[str], datasets: Sequence[str], solvers: Sequence[str]
) -> Iterator[Chain]:
    for dataset in datasets:
        for solver in solvers:
            if solver not in SOLVERS:
                continue
            for first in range(0, settings.n_starts, BLOCK):
                starts = range(first, min(first + BLOCK, settings.n_starts))
                units = tuple(Unit(number, SPARSITY) for number in starts)
                yield Chain(NAME, protocols[0], dataset, solver, units)


def walk(
    chain: Chain, settings: Settings, done: Sequence[Unit], state: Sequence[Vector]
) -> Iterator[Finished]:
    """The units of a chain that are not done yet."""
    data = protocol.read(chain.dataset, chain.protocol, settings.seed)
    rows = protocol.whole(data)
    C = settings.exchange_C if chain.solver == "exchange" else np.inf
    machines = Machines(chain.dataset, rows.X[rows.train], rows.y[rows.train], C, settings)
    ks = [problem.design.n_features // 2 for problem in machines.problems]
    for unit in chain.units:
        if unit in done:
            continue
        rngs = [
            np.random.default_rng([settings.seed, unit.replicate, number])
            for number in range(len(machines.problems))
        ]
        started = time.thread_time()
        if chain.solver == "exchange":
            solutions = machines.improve(ks, rngs)
        else:
            solutions = machines.anneal(RANDOM[chain.solver], ks, rngs=rngs)
        seconds = time.thread_time() - started
        values = machines.describe(solutions)
        values["test"] = machines.accuracy(rows.X[rows.test], rows.y[rows.test])
        yield Finished(unit, values, seconds)
