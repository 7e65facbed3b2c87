"""Folds of rows that have numbers, and the scores of what was fitted to them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import _num_samples

from kmargin.blocks.space import to_host
from kmargin.calibration import Calibration, fit_calibration
from kmargin.calibration_sums import UnseenRows
from kmargin.intervals import effective_number
from kmargin.samples.protocol import Given, Labelled, ModelAt, NumberedSamples
from kmargin.selection import count_tested, make_folds, make_splitters, score_with
from kmargin.types import Matrix
from kmargin.weights import normalize


class FoldsAtHand:
    """Folds of arrays in memory or on a device. `known` is what is known of their rows in memory."""

    def __init__(
        self,
        model: Any,
        blueprint: Any,
        samples: NumberedSamples,
        known: Labelled,
        given: Given,
        weighted: bool,
    ) -> None:
        X, y, groups = given
        y, groups = to_host(y), to_host(groups)
        splitters = make_splitters(model.cv, model.repeats, model._fold_seed(), y, groups)
        self.folds = [f for each in splitters for f in make_folds(each, known, _num_samples(X), X, y, groups)]
        if not self.folds:
            raise ValueError(
                f"cv={model.cv!r} does not define folds. Use an integer >= 2, a splitter, or a list of "
                "splits."
            )
        self.n_tested, self.test_ratio = count_tested(self.folds)
        if weighted:
            tested = np.unique(np.concatenate([fold.test for fold in self.folds]))
            self.n_tested = effective_number(known.repeats[tested], len(tested))
        self.blueprint, self.samples, self.known = blueprint, samples, known
        self.weighted = weighted
        self.n_jobs = model.n_jobs
        # To check X anew for each of a hundred models takes longer than to ask them, so that is done once
        # where it is known what the scorer would do.
        self.scores_are_shares_right = model.scoring is None or model.scoring == "accuracy"
        self.scorer = check_scoring(model, scoring=model.scoring or "accuracy")

    def __len__(self) -> int:
        return len(self.folds)

    def parts(self) -> Iterator[Any]:
        return (self.blueprint.part(self.samples, fold.train) for fold in self.folds)

    def score(self, number: int, model_at: ModelAt, n_Cs: int, n_ks: int) -> Matrix:
        fold, known = self.folds[number], self.known
        X = self.blueprint.inputs(self.samples, fold.test, fold.train)
        y = known.classes[known.codes[fold.test]]
        weights = normalize(known.repeats[fold.test])[0] if self.weighted else None
        scores = np.empty((n_Cs, n_ks))
        if self.scores_are_shares_right:
            inputs = None
            for row, column in np.ndindex(n_Cs, n_ks):
                model = model_at(row, column)
                inputs = model._inputs(X, "predict") if inputs is None else inputs
                scores[row, column] = np.average(to_host(model._choose(inputs)) == y, weights=weights)
            return scores
        for row, column in np.ndindex(n_Cs, n_ks):
            model = self.samples.answering_here(model_at(row, column))
            scores[row, column] = score_with(self.scorer, model, X, y, weights)
        return scores

    def calibrate(self, machines: Sequence[Any], left_out: Sequence[int | None]) -> list[Calibration]:
        """A row that is tested several times counts as often, each time with its share of its weight."""
        folds, known = self.folds, self.known
        inputs = (self.blueprint.inputs(self.samples, fold.test, fold.train) for fold in folds)
        decisions = np.concatenate([to_host(of(X)) for of, X in zip(machines, inputs, strict=True)])
        tested = np.concatenate([fold.test for fold in folds])
        calibrations = []
        for number in left_out:
            may_teach = np.ones(len(known.codes), bool)
            if number is not None:
                may_teach[folds[number].test] = False
            at = np.flatnonzero(may_teach[tested])
            rows = tested[at]
            weights = known.repeats[rows] / np.bincount(rows, minlength=1)[rows]
            seen = UnseenRows(decisions[at], known.codes[rows], weights)
            calibrations.append(fit_calibration(seen, known.classes, self.blueprint.multi_class))
        return calibrations
