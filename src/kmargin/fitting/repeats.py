"""Features that say what an earlier one says."""

import numpy as np

from kmargin.samples.protocol import Samples
from kmargin.solvers import Exchange
from kmargin.solvers.solver import Solver
from kmargin.types import Indices


def find_repeats(samples: Samples, solver: Solver) -> Indices:
    """The features that a search passes over because an earlier one is the same."""
    return samples.repeated_columns() if isinstance(solver, Exchange) else np.arange(0)
