"""Sensitivity to initial conditions: Figure 1.

A unit is one fit to the training set with half of the features, from random parameters (mm, sd) or from a
random support (exchange).
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from kmargin import MM, SD
from kmargin.core.arrays import Vector
from kmargin.paper import protocol
from kmargin.paper.crossval import Classifiers
from kmargin.paper.protocol import SOLVERS, Chain, Finished, Settings, Unit

NAME = "sensitivity"
SPARSITY = 0.5  # a little more where the number of features is odd
BLOCK = 25  # starts for which the problems are built once
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
    """Run the units of a chain that are not done yet."""
    data = protocol.read(chain.dataset, chain.protocol, settings.seed)
    rows = protocol.whole(data)
    C = settings.exchange_C if chain.solver == "exchange" else np.inf
    classifiers = Classifiers(chain.dataset, rows.X[rows.train], rows.y[rows.train], C, settings)
    ks = [problem.design.n_features // 2 for problem in classifiers.problems]
    for unit in chain.units:
        if unit in done:
            continue
        rngs = [
            np.random.default_rng([settings.seed, unit.replicate, number])
            for number in range(len(classifiers.problems))
        ]
        started = time.thread_time()
        if chain.solver == "exchange":
            solutions = classifiers.improve(ks, rngs)
        else:
            solutions = classifiers.anneal(RANDOM[chain.solver], ks, rngs=rngs)
        seconds = time.thread_time() - started
        values = classifiers.describe(solutions)
        values["test"] = classifiers.accuracy(rows.X[rows.test], rows.y[rows.test])
        yield Finished(unit, values, seconds)
