"""Labelled dask collections, ready to be solved for."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kmargin import validate
from kmargin.design.distinct import candidate_groups
from kmargin.samples.block_folds import FoldsInBlocks
from kmargin.samples.blocks import BlockSamples
from kmargin.samples.protocol import Given
from kmargin.solvers.solver import Solver
from kmargin.types import Indices
from kmargin.weights import check_finite_weight


@dataclass(frozen=True)
class DaskSamples(BlockSamples):
    """Blocks of rows that have no numbers."""

    may_repeat: bool = True  # whether some columns have equal fingerprints

    def repeated_columns(self) -> Indices:
        return super().repeated_columns() if self.may_repeat else np.arange(0)

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> FoldsInBlocks:
        return FoldsInBlocks(model, self, weighted)


def read_dask(X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver) -> DaskSamples:
    """Check the collections; encode the classes."""
    if not solver.takes_sparse:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are as large as X and cannot be '
            'computed block by block: with dask use solver="exchange" or solver="sd".'
        )
    from kmargin.blocks.dask import read_blocks  # imports dask

    blocks, summary = read_blocks(X, y, sample_weight)
    weights = validate.class_factors(class_weight, summary.classes, summary.counts)
    validate.check_totals(summary.classes, summary.totals * weights)
    check_finite_weight(float(np.sum(summary.totals * weights)))
    may_repeat = bool(candidate_groups(summary.fingerprint))
    return DaskSamples(blocks, summary.classes, weights, may_repeat=may_repeat)
