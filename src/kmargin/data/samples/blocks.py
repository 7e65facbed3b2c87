"""Labelled samples in dask collections or on a device, and their folds."""

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.utils.multiclass import check_classification_targets

from kmargin.core import validation
from kmargin.core.arrays import HOST, Indices, Matrix, Space, Vector, is_foreign, space_of, to_host
from kmargin.core.labels import Pair, check_finite_weight
from kmargin.core.scaling import Scaling, unit_variance_scaling
from kmargin.data.blocks import Block, Blocks
from kmargin.data.blocks import sums as confusion_counts
from kmargin.data.blocks.dask_input import check_collections, check_features, decide_unseen, summarize
from kmargin.data.blocks.problem import BlockDesign, BlockProblem, LocalBlocks
from kmargin.data.blocks.sums import Part, View, examine
from kmargin.data.samples import Designs, Given, ModelAt, Samples
from kmargin.data.samples.array import ArrayFolds, ArraySamples, split_rows
from kmargin.model_selection.calibration import Calibration, fit_by_sums
from kmargin.model_selection.scores import BlockKFold, check_fold, score_with, takes_weights
from kmargin.solvers.solver import Solver


@dataclass(frozen=True)
class BlockSamples(Samples):
    """Labelled samples in blocks of rows; each block stores X, class codes and sample weights of its rows."""

    X: Blocks
    classes: np.ndarray
    class_weight: Vector  # for each class, the factor by which sample weights are multiplied
    part: Part | None = None  # the training rows of a fold; None means all rows

    def designs(self, fit_intercept: bool, standardize: bool = False) -> "BlockDesigns":
        return BlockDesigns(self, fit_intercept, standardize)

    @cached_property
    def every_row(self) -> BlockDesign:
        """The design of the rows of all classes, with sample weights but without class weights."""
        return BlockDesign(self.X, View(0, None, np.ones(len(self.classes)), self.part))

    @property
    def repeated_columns(self) -> Indices:
        return self.every_row.repeated_columns

    def unit_variance_scaling(self, fit_intercept: bool) -> Scaling:
        return unit_variance_scaling(self.every_row, lambda design: design.moments, fit_intercept)

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> Any:
        return FoldsInBlocks(model, self, weighted)


class BlockDesigns(Designs):
    """Makes binary problems of samples in blocks; X is not copied."""

    stays_here = True

    def __init__(self, samples: BlockSamples, fit_intercept: bool, standardize: bool = False) -> None:
        self.samples, self.default_n_jobs = samples, samples.X.n_askers
        self.dtype, self.fit_intercept = samples.X.dtype, fit_intercept
        self.scaling = samples.unit_variance_scaling(fit_intercept) if standardize else None

    def problem(self, pair: Pair, Cs: Sequence[float]) -> tuple[BlockProblem, list[float]]:
        samples = self.samples
        view = View(pair.positive, pair.negative, samples.class_weight, samples.part)
        design = BlockDesign(samples.X, view, self.fit_intercept)
        if self.scaling is not None:
            design = design.standardized(self.scaling.centers, self.scaling.scales)
        lams = [validation.ridge(C, design.total) for C in Cs]
        return BlockProblem(design, lams[0]), lams

    def stop(self) -> None:
        self.samples.X.stop()


N_FOLDS = 5  # the number of folds for cv=None, as in scikit-learn


class FoldsInBlocks:
    """Folds of data in blocks, with the methods of `ArrayFolds`, the folds of arrays in memory.

    A fold has some rows of each block, or whole blocks. Models are scored by confusion matrices, which are
    sums over the blocks: the scorer gets one sample for each pair of true and predicted class, with the entry
    of the matrix as its weight. It must therefore accept sample weights, and use only predicted classes.
    """

    def __init__(self, model: Any, samples: BlockSamples, weighted: bool) -> None:
        self.model, self.weighted = model, weighted
        whole_blocks = isinstance(model.cv, BlockKFold)
        n_folds = self._n_folds(model.cv, samples.X.n_blocks)
        if whole_blocks and model.repeats > 1:
            raise ValueError(
                f"repeats={model.repeats} of {model.cv!r} would repeat the same folds. "
                "Use repeats=1, or a number of folds, whose rows are reshuffled."
            )
        seeds = [model._fold_seed() + number for number in range(model.repeats)]
        self.tests = [
            Part(n_folds, fold, True, seed, whole_blocks) for seed in seeds for fold in range(n_folds)
        ]
        self.scorer = check_scoring(model, scoring=model.scoring or "accuracy")
        if not takes_weights(self.scorer):
            raise ValueError(self._not_offered("does not accept sample weights"))
        self.samples, n_classes = samples, len(samples.classes)
        self._score(np.ones((n_classes, n_classes)))  # raises before any fit if the scorer cannot be used
        counts = []  # numbers of training rows and of test rows of each fold
        for fold, part in enumerate(self.tests):
            totals = np.sum(samples.X.ask(confusion_counts.class_totals, part, len(samples.classes)), axis=0)
            check_fold(fold, samples.classes, has_class=totals[0] > 0, n_test=int(totals[1].sum()))
            counts.append(totals.sum(axis=1))
        first = self.tests[:n_folds]  # the folds of the first repeat, which test each row once
        sums = [samples.X.ask(confusion_counts.weight_sums, part, weighted) for part in first]
        largest, totals, squares = np.concatenate(sums).T
        share = largest / largest.max()
        self.n_tested = float((share @ totals) ** 2 / (share**2 @ squares))
        self.n_folds_once = n_folds
        self.test_ratio = float(np.mean([test / train for train, test in counts]))

    @staticmethod
    def _n_folds(cv: Any, n_blocks: int) -> int:
        cv = N_FOLDS if cv is None else cv
        if isinstance(cv, BlockKFold):
            if cv.n_splits > n_blocks:
                raise ValueError(
                    f"{cv!r} needs a block for each fold, but X has {n_blocks}. "
                    "Use fewer folds, or divide X into more blocks."
                )
            return cv.n_splits
        if not isinstance(cv, numbers.Integral) or isinstance(cv, bool):
            raise ValueError(
                f"cv={cv!r} splits rows by their indices, which rows in blocks do not have. Use a number of "
                "folds, such as cv=5, or kmargin.BlockKFold(5) for folds of whole blocks."
            )
        return int(cv)

    def __len__(self) -> int:
        return len(self.tests)

    def parts(self) -> Iterator[BlockSamples]:
        return (replace(self.samples, part=part._replace(inside=False)) for part in self.tests)

    def score(self, number: int, fit: Any, shape: tuple[int, int], model_at: ModelAt) -> Matrix:
        decisions = [fit.decisions(row, column) for row, column in np.ndindex(shape)]
        coefs, intercepts = np.array([d.coef for d in decisions]), np.array([d.intercept for d in decisions])
        used = np.flatnonzero(coefs.any(axis=(0, 1)))
        machines = used, coefs[:, :, used], intercepts
        scheme = len(self.samples.classes), self.model.multi_class
        part = self.tests[number]
        by_block = self.samples.X.ask(confusion_counts.confusions, part, *machines, *scheme, self.weighted)
        counts = np.sum(by_block, axis=0)
        return np.array([self._score(confusion) for confusion in counts]).reshape(shape)

    def calibrate(self, decisions: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """Return a map from decision values to probabilities for each entry of `left_out`.

        Map i is fitted to the test rows of all folds of the first repeat except the fold left_out[i], if any.
        """
        used = np.unique(np.concatenate([of.used for of in decisions]))
        calibrations = []
        for number in left_out:
            folds = [fold for fold in range(self.n_folds_once) if fold != number]
            parts = [self.tests[fold] for fold in folds]
            coefs = np.array([decisions[fold].coef[:, used] for fold in folds])
            intercepts = np.array([decisions[fold].intercept for fold in folds])
            scheme = len(self.samples.classes), self.model.multi_class
            held = self.samples.X.hold(decide_unseen, parts, used, coefs, intercepts, *scheme)

            def ask(function: Any, *args: Any, held: Any = held) -> Any:
                return np.sum(held.ask(function, *args), axis=0)

            calibrations.append(fit_by_sums(ask, self.samples.classes, self.model.multi_class))
        return calibrations

    def _score(self, confusion: Matrix) -> float:
        classes = self.samples.classes
        true, predicted = np.nonzero(confusion)
        weights: Vector = confusion[true, predicted]
        try:
            return score_with(
                self.scorer, CountedPredictions(classes), predicted[:, None], classes[true], weights
            )
        except AttributeError as error:
            # the scorer called decision_function or predict_proba, which `CountedPredictions` does not have
            raise ValueError(self._not_offered("needs more than predictions")) from error

    def _not_offered(self, why: str) -> str:
        """Return the error message for a scorer that cannot be used with data in blocks."""
        return (
            f"scoring={self.model.scoring!r} {why}, but scores of data in blocks are computed from counts of "
            'predictions. Use a scorer such as "accuracy", "balanced_accuracy" or "f1_macro".'
        )


class CountedPredictions(ClassifierMixin, BaseEstimator):
    """A classifier that gives scorers known predictions: X has class codes, `predict` returns the classes."""

    def __init__(self, classes: np.ndarray | None = None) -> None:
        self.classes = classes

    @property
    def classes_(self) -> Any:
        return self.classes

    def predict(self, X: Any) -> Any:
        assert self.classes is not None
        return self.classes[X[:, 0]]


@dataclass(frozen=True)
class DeviceSamples(BlockSamples):
    """Labelled samples on a device, such as a GPU, in one block."""

    X: LocalBlocks
    given_classes: Any = None
    kept: Any = None  # the indices of the user's rows that have positive weight; None means all
    space: Space = HOST

    @property
    def block(self) -> Block:
        (block,) = self.X.objects
        return block

    def to_fit(self, rows: Indices) -> "DeviceSamples":
        """Return the samples with the indices `rows`, copied within the device."""
        number, *arrays = self.block
        block = Block(number, *_take(self.space, self.space.put(rows), *arrays))
        return replace(self, X=LocalBlocks([block]), kept=None)

    def to_decide(self, rows: Indices) -> Any:
        """Return the rows of X with the indices `rows`, copied within the device."""
        return self.space.xp.take(self.block.X, self.space.put(rows), axis=0)

    def at_hand(self) -> ArraySamples:
        """Return the class codes and the weights in main memory, as samples without X, to make folds."""
        codes, repeats = self.space.bring(self.block.codes), self.space.bring(self.block.repeats)
        kept = np.arange(len(codes)) if self.kept is None else self.space.bring(self.kept)
        weights = repeats * self.class_weight[codes]
        return ArraySamples(None, codes, self.classes, repeats, weights, kept)

    def folds(self, model: Any, blueprint: Any, given: Given, weighted: bool) -> ArrayFolds:
        return split_rows(model, blueprint, self, self.at_hand(), given, weighted)


def detach(array: Any) -> Any:
    """Return a torch tensor without gradient tracking; return other arrays unchanged."""
    return array.detach() if hasattr(array, "detach") else array


def follow(X: Any, *others: Any) -> list[Any]:
    """Return `others` (labels, weights or None) on the device of X; text labels stay in main memory."""
    space = space_of(X)
    arrays = [array if array is None or is_foreign(array) else np.asarray(array) for array in others]
    stays = [a is None or (isinstance(a, np.ndarray) and a.dtype.kind not in "biuf") for a in arrays]
    return [array if stay else space.move(array) for array, stay in zip(arrays, stays, strict=True)]


def read_device(X: Any, y: Any, sample_weight: Any, class_weight: Any) -> DeviceSamples:
    """Check y and the weights; return labelled samples on the device of X, without rows of weight 0."""
    space = space_of(X)
    check_classification_targets(y)
    labels, codes = space_of(y).xp.unique_inverse(y) if is_foreign(y) else np.unique(y, return_inverse=True)
    codes, classes = space.move(codes), to_host(labels)
    repeats = validation.check_sample_weight(sample_weight, X.shape[0], space)
    counts, totals = _per_class(space, codes, repeats, len(classes))
    factors = check_class_factors(class_weight, classes, counts, totals)
    kept = None
    if sample_weight is not None and not bool(space.xp.all(repeats > 0)):
        kept = space.xp.nonzero(repeats > 0)[0]
        X, codes, repeats = _take(space, kept, X, codes, repeats)
    blocks = LocalBlocks([Block(0, X, codes, repeats)])
    return DeviceSamples(blocks, classes, factors, given_classes=labels, kept=kept, space=space)


def check_class_factors(class_weight: Any, classes: np.ndarray, counts: Indices, totals: Vector) -> Vector:
    """Return the factor by which `class_weight` multiplies the sample weights of each class.

    `counts` has the number of rows of each class, `totals` the sum of their sample weights. Raises ValueError
    if the product of total and factor is 0 for a class, or if the sum of these products overflows.
    """
    factors = validation.class_factors(class_weight, classes, counts)
    validation.check_classes(classes, totals * factors)
    check_finite_weight(float(np.sum(totals * factors)))
    return factors


def _per_class(space: Space, codes: Any, repeats: Any, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of each class, and the sum of their sample weights."""
    sums = []
    for code in range(n_classes):
        inside = codes == code
        weight = space.xp.where(inside, repeats, space.xp.zeros_like(repeats))
        sums.append((float(space.xp.sum(space.floats(inside))), float(space.xp.sum(weight))))
    counts, totals = np.transpose(sums)
    return counts, totals


def _take(space: Space, rows: Any, *arrays: Any) -> tuple[Any, ...]:
    return tuple(space.xp.take(array, rows, axis=0) for array in arrays)


def read_dask(X: Any, y: Any, sample_weight: Any, class_weight: Any, solver: Solver) -> BlockSamples:
    """Return labelled samples of dask collections; their types, and in one pass their data, are checked."""
    if not solver.takes_sparse:
        raise ValueError(
            'solver="mm" works with the singular vectors of X, which are as large as X and cannot be '
            'computed block by block: with dask use solver="exchange" or solver="sd".'
        )
    from kmargin.data.blocks.dask_blocks import load_blocks  # here because this needs dask, an optional extra

    X, y, sample_weight = check_collections(X, y, sample_weight, "fit")
    blocks = load_blocks([X, y] if sample_weight is None else [X, y, sample_weight], check_features(X))
    classes, counts, totals = summarize(blocks.ask(examine), X.shape[1], getattr(X, "columns", None))
    blocks.encode(classes)
    return BlockSamples(blocks, classes, check_class_factors(class_weight, classes, counts, totals))
