"""Labelled dask collections, ready to be solved for."""

from typing import Any

import numpy as np

from kmargin import validate
from kmargin.blocks.dask import read_blocks
from kmargin.blocks.design import BlockDesign, all_rows
from kmargin.blocks.labelled import BlockSamples
from kmargin.design.distinct import candidate_groups
from kmargin.solvers import Exchange
from kmargin.solvers.solver import Solver
from kmargin.weights import check_finite_weight


def read_dask(
    X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver, *, sparse: bool = True
) -> BlockSamples:
    """Check the collections; encode the classes. `sparse` if not all features may stay."""
    if not solver.takes_sparse:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are as long as X and would have to '
            'travel: with dask use solver="exchange" or solver="sd".'
        )
    blocks, summary = read_blocks(X, y, sample_weight)
    weights = validate.class_factors(class_weight, summary.classes, summary.counts)
    validate.check_totals(summary.classes, summary.totals * weights)
    check_finite_weight(float(np.sum(summary.totals * weights)))
    if sparse and isinstance(solver, Exchange) and candidate_groups(summary.fingerprint):
        distinct = BlockDesign(blocks, all_rows(len(summary.classes))).distinct_columns()
        validate.warn_of_repeats(np.setdiff1d(np.arange(blocks.shape[1]), distinct))
    return BlockSamples(blocks, summary.classes, weights)
