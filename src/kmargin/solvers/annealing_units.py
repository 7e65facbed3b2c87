"""The units that an annealing takes the entries of X in."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kmargin.problem import Problem
from kmargin.solvers.measures import Measured, take_measures
from kmargin.solvers.remote import sign
from kmargin.types import Vector

# The tolerances of an annealing are absolute and meant for data of order one. Data whose typical entry lies
# outside this range are annealed in units of their own.
ORDER_ONE = (1e-6, 1e6)


def in_common_units(
    problems: Sequence[Problem], measured: Sequence[Measured]
) -> tuple[float | Vector, list[Problem]]:
    """By what the entries of X are divided, the same for all machines, and their problems in these units.

    Data of order one are left as they are. Others are divided by the power of two nearest to their typical
    entry; and columns far beyond all numbers that can be squared, each by one of its own. What k counts is
    measured by norms over all machines, so a column has one unit in all of them: the largest asked for.
    """
    unit = float(np.median([problem.design.unit() for problem in problems]))
    unit = 1.0 if ORDER_ONE[0] <= unit <= ORDER_ONE[1] else float(2.0 ** np.round(np.log2(unit)))
    if unit == 1.0 and all(m.measures is None for m in measured):
        return 1.0, list(problems)
    ridges = [min(problem.lam / unit / unit, 1e30) for problem in problems]
    scaled = change_designs(problems, lambda design: design.in_units_of(unit))
    scaled = [replace(problem, lam=lam) for problem, lam in zip(scaled, ridges, strict=True)]
    measures = [take_measures(problem, sign(problem)) for problem in scaled]
    ones = np.ones(scaled[0].design.n_features)
    columns: Vector = np.max([ones if m is None else m.units for m in measures], axis=0)
    if (columns == 1.0).all():
        return unit, scaled
    return unit * columns, change_designs(scaled, lambda design: design.in_units_of(columns))


def change_designs(problems: Sequence[Problem], change: Callable[[Any], Any]) -> list[Problem]:
    """The problems with changed designs; machines that share one share what becomes of it."""
    changed = {id(design): change(design) for design in {id(p.design): p.design for p in problems}.values()}
    return [replace(problem, design=changed[id(problem.design)]) for problem in problems]
