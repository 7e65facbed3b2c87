"""Labelled data in blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from kmargin import validate
from kmargin.blocks.design import BlockDesign, BlockProblem, all_rows
from kmargin.blocks.protocol import Blocks
from kmargin.blocks.space import HOST, Space
from kmargin.blocks.view import Part, View
from kmargin.design.affine import Affine
from kmargin.multiclass import Pair, class_pairs
from kmargin.samples.designs import LinearDesigns
from kmargin.types import Indices, Vector


@dataclass(frozen=True)
class BlockSamples:
    """Labelled data in blocks. Classes are encoded, and rows weighted, beside each block."""

    X: Blocks
    classes: np.ndarray
    class_weight: Vector
    part: Part | None = None  # the rows of some folds

    @property
    def space(self) -> Space:
        return HOST

    @property
    def labels(self) -> Any:
        return self.classes

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def machines(self, multi_class: str) -> Iterator[Pair]:
        return iter(class_pairs(len(self.classes), multi_class))

    def designs(self, fit_intercept: bool, standardize: bool = False) -> "BlockDesigns":
        return BlockDesigns(self, fit_intercept, standardize)

    def repeated_columns(self) -> Indices:
        return np.setdiff1d(np.arange(self.n_features), self.every_row().distinct_columns())

    def every_row(self) -> BlockDesign:
        """The design of all rows, each by its sample weight alone."""
        return BlockDesign(self.X, all_rows(len(self.classes))._replace(part=self.part))

    def shared(self, n_jobs: int | None, n_tasks: int) -> tuple[Any, int | None]:
        """While one machine thinks, the workers of a cluster can answer another."""
        n_jobs = self.X.n_askers if n_jobs is None else effective_n_jobs(n_jobs)
        n_jobs = min(n_jobs, n_tasks)
        return replace(self, X=self.X.shared_by(n_jobs)), n_jobs


class BlockDesigns(LinearDesigns):
    """Each machine has its own view of the blocks."""

    stays_here = True

    def __init__(self, samples: BlockSamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.samples = samples
        scaling = None
        if standardize:
            scaling = Affine.to_one_scale(samples.every_row(), lambda design: design.moments(), fit_intercept)
        super().__init__(samples.dtype, fit_intercept, scaling)

    def problem(self, machine: Pair, Cs: Sequence[float]) -> tuple[BlockProblem, list[float]]:
        samples = self.samples
        view = View(machine.positive, machine.negative, samples.class_weight, samples.part)
        design = self.scaled(BlockDesign(samples.X, view, self.fit_intercept))
        lams = [validate.ridge(C, design.total) for C in Cs]
        return BlockProblem(design, lams[0], design.n_features), lams

    def stop(self) -> None:
        self.samples.X.stop()
