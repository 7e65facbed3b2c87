"""Features that say what an earlier one says."""

import numpy as np
from scipy.sparse import issparse

from kmargin.blocks.design import BlockDesign, all_rows
from kmargin.blocks.labelled import BlockSamples
from kmargin.design import distinct_columns
from kmargin.solvers import Exchange
from kmargin.solvers.solver import Solver
from kmargin.types import Indices
from kmargin.validate import Samples


def find_repeats(samples: Samples | BlockSamples, solver: Solver) -> Indices:
    """The features that a search passes over because an earlier one is the same."""
    if not isinstance(solver, Exchange):
        return np.arange(0)
    if isinstance(samples, BlockSamples):
        every = all_rows(len(samples.classes))._replace(part=samples.part)
        design = BlockDesign(samples.X, every)
        return np.setdiff1d(np.arange(design.n_features), design.distinct_columns())
    X = samples.X
    repeats = np.setdiff1d(np.arange(X.shape[1]), distinct_columns(X))
    if issparse(X):  # that some columns are empty goes without saying
        repeats = repeats[np.bincount(X.indices, minlength=X.shape[1])[repeats] > 0]
    return repeats
