"""Folds of data in blocks, and the scores of what was fitted to them."""

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from kmargin.blocks import confusion_counts
from kmargin.blocks.unseen import decide_unseen
from kmargin.blocks.view import Part
from kmargin.calibration import Calibration, fit_by_sums
from kmargin.multiclass import class_pairs
from kmargin.samples.blocks import BlockSamples
from kmargin.samples.protocol import ModelAt
from kmargin.selection import BlockKFold, check_fold, score_with, takes_weights
from kmargin.types import Matrix, Vector

N_FOLDS = 5  # scikit-learn's default, too


class FoldsInBlocks:
    """Folds of data in blocks: of rows dealt within each block, or of whole blocks.

    Blocks count how often each class was taken for each other; a scorer is given every such pair once,
    with its number as a weight. So it may be any that looks at predictions and takes weights.
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
        n_classes = len(samples.classes)
        n_machines = len(class_pairs(n_classes, model.multi_class))
        self.samples, self.n_jobs = samples.shared(model.n_jobs, len(self.tests) * n_machines)
        self._score(np.ones((n_classes, n_classes)))  # to know before the work whether it can be done
        counts = []  # of training rows and of test rows
        for fold, part in enumerate(self.tests):
            totals = np.sum(samples.X.ask(confusion_counts.class_totals, part, len(samples.classes)), axis=0)
            check_fold(fold, samples.classes, has_class=totals[0] > 0, n_test=int(totals[1].sum()))
            counts.append(totals.sum(axis=1))
        first = self.tests[:n_folds]  # each row once
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
        if cv < 2:
            raise ValueError(f"cv={cv} does not define folds. Use an integer >= 2.")
        return int(cv)

    def __len__(self) -> int:
        return len(self.tests)

    def parts(self) -> Iterator[BlockSamples]:
        return (replace(self.samples, part=part._replace(inside=False)) for part in self.tests)

    def score(self, number: int, model_at: ModelAt, n_Cs: int, n_ks: int) -> Matrix:
        coefs, intercepts = [], []
        for row, column in np.ndindex(n_Cs, n_ks):
            model = model_at(row, column)
            coefs.append(model.coef_.copy())
            intercepts.append(model.intercept_.copy())
        used = np.flatnonzero(np.any(coefs, axis=(0, 1)))
        machines = used, np.array(coefs)[:, :, used], np.array(intercepts)
        scheme = len(self.samples.classes), self.model.multi_class
        part = self.tests[number]
        by_block = self.samples.X.ask(confusion_counts.confusions, part, *machines, *scheme, self.weighted)
        counts = np.sum(by_block, axis=0)
        return np.array([self._score(confusion) for confusion in counts]).reshape(n_Cs, n_ks)

    def calibrate(self, machines: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """Decision values stay with their blocks; what travels are the sums of each Newton step. Of several
        repeats the first is asked.
        """
        used = np.unique(np.concatenate([of.used for of in machines]))
        calibrations = []
        for number in left_out:
            folds = [fold for fold in range(self.n_folds_once) if fold != number]
            parts = [self.tests[fold] for fold in folds]
            coefs = np.array([machines[fold].coef[:, used] for fold in folds])
            intercepts = np.array([machines[fold].intercept for fold in folds])
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
        except AttributeError as error:  # it asks for decision values
            raise ValueError(self._not_offered("needs more than predictions")) from error

    def _not_offered(self, why: str) -> str:
        return (
            f"scoring={self.model.scoring!r} {why}, but scores of data in blocks are computed from counts of "
            "predictions. "
            'Use a scorer such as "accuracy", "balanced_accuracy" or "f1_macro".'
        )


class CountedPredictions(ClassifierMixin, BaseEstimator):
    """Predictions that were made elsewhere: X is one column, the codes of the classes."""

    def __init__(self, classes: np.ndarray | None = None) -> None:
        self.classes = classes

    @property
    def classes_(self) -> Any:
        return self.classes

    def predict(self, X: Any) -> Any:
        assert self.classes is not None
        return self.classes[X[:, 0]]
