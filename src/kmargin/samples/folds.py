"""Folds of rows that have numbers, and the scores of what was fitted to them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import _num_samples

from kmargin.blocks.space import to_host
from kmargin.samples.protocol import Given, Labelled, ModelAt, NumberedSamples
from kmargin.selection import make_folds, score_with
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
        self.folds = make_folds(model.cv, known, _num_samples(X), X, to_host(y), to_host(groups))
        self.blueprint, self.samples, self.known = blueprint, samples, known
        self.weighted = weighted
        self.n_jobs = model.n_jobs
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
        for row, column in np.ndindex(n_Cs, n_ks):
            model = self.samples.answering_here(model_at(row, column))
            scores[row, column] = score_with(self.scorer, model, X, y, weights)
        return scores
