"""What the cross-validated estimators have in common: k and C chosen by folds, then a fit to all samples."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from kmargin import arguments, validate
from kmargin.errors import GridEdgeWarning, warn_caller
from kmargin.estimators.probabilities import FoldMachines, NotYetCalibrated, Probabilities
from kmargin.fitting.blueprint import Blueprint
from kmargin.fitting.grid_fit import GridFit, MachinesAlone, Procedure, fit_parts, refit
from kmargin.samples.read import read_for_folds
from kmargin.selection import SELECTIONS, ScoreTable


class CrossValidated(Probabilities):
    """Chooses k and C by cross-validation, then refits on all samples.

    Each fold and each machine walks its own path: over C from strong ridge to weak, over k from
    dense to sparse. Whatever is estimated (scale, kernel width, support) is estimated from the
    fold's training rows alone.
    """

    ks: Any
    Cs: Any
    cv: Any
    scoring: Any
    repeats: int
    selection: str
    tolerance: float
    verbose: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "CrossValidated":
        """Choose k and C, then fit to all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As for the estimator with a single k.
        y : array-like of shape (n_samples,)
            The classes, two or more.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Used in fitting and, if the scorer accepts weights, in scoring.
        groups : array-like of shape (n_samples,) or None, default=None
            Groups of samples that stay together in folds, if `cv` is a number or None, or a splitter that
            uses groups.

        Returns
        -------
        estimator
            Itself.
        """
        self._check_parameters()
        validate.check_choice("selection", self.selection, SELECTIONS)
        validate.check_tolerance(self.tolerance)
        validate.check_count("repeats", self.repeats, "times to deal the rows into folds")
        arguments.check_cv(self.cv)
        arguments.check_scoring(self.scoring)
        arguments.check_verbose(self.verbose)
        Cs = validate.resolve_Cs(self.Cs)
        given = read_for_folds(X, y, sample_weight, groups)
        samples = self._read(given.X, given.y, sample_weight)
        blueprint = self._blueprint()
        ks = blueprint.resolve_ks(self.ks, samples, blueprint.largest_default(samples))
        folds = samples.folds(self, blueprint, given, weighted=sample_weight is not None)
        tested = FoldMachines(folds, Cs, ks)
        scores = self._score_folds(blueprint, tested, len(samples.classes), Cs, ks)
        table = ScoreTable(scores, Cs, ks, folds.n_tested, folds.test_ratio)
        row, column = table.choose(self.selection, self.tolerance)
        fit = refit(blueprint, samples, Cs[: row + 1], ks, column, self._procedure())
        self._adopt(fit, -1, column)
        self._calibrate(tested, row, column)
        self.path_ = replace(fit.path(ks), n_features_in=self.n_features_in_)
        self.k_ = ks[column]
        self.C_ = Cs[row]
        self.best_score_ = float(table.mean[row, column])
        self.cv_results_ = table.tabulate()
        self.n_splits_ = len(folds)
        available, always = blueprint.n_available(samples), blueprint.n_always(samples)
        warn_of_edges(table, row, column, available, always, listed=self.ks is not None)
        return self

    def _fold_seed(self) -> int:
        """That of `honest_score` with the same `random_state`; without one the same each time."""
        return validate.resolve_seed(0 if self.random_state is None else self.random_state)

    def _procedure(self) -> Procedure:
        return Procedure(self.solver, self.n_jobs, self.random_state, self.verbose)

    def _score_folds(
        self, blueprint: Blueprint, tested: FoldMachines, n_classes: int, Cs: list[float], ks: list[int]
    ) -> np.ndarray:
        """The validation score of every fold, C and k."""
        folds = tested.folds
        procedure = self._procedure()._replace(n_jobs=folds.n_jobs)
        fits = tested.keep(fit_parts(blueprint, folds.parts(), len(folds), n_classes, Cs, ks, procedure))
        try:
            scores = [
                folds.score(at, partial(self._model_at, clone(self), fit), len(Cs), len(ks))
                for at, fit in enumerate(fits)
            ]
        except NotYetCalibrated:  # the scorer looks at probabilities
            scores = tested.score(fits, partial(self._model_at, clone(self)))
        return np.array(scores)

    def _model_at(
        self, model: "CrossValidated", fit: GridFit | MachinesAlone, row: int, column: int
    ) -> "CrossValidated":
        """The model of a fold, filled anew by each call."""
        model.n_features_in_ = fit.samples.n_features
        model._adopt(fit, row, column)
        return model


def warn_of_edges(
    table: ScoreTable, row: int, column: int, n_available: int, n_always: int, listed: bool
) -> None:
    """Warn where what was chosen is the last of its grid, and there is more beyond.

    A rule that prefers few features may choose a smaller k although the scores still rise at the largest one;
    that is worth a warning where a user has `listed` the ks.
    """
    advice, Cs, ks = [], table.Cs, table.ks
    if len(Cs) > 1 and row in (0, len(Cs) - 1):
        which, beyond = ("smallest", Cs[row] / 10) if row == 0 else ("largest", Cs[row] * 10)
        advice.append(f"C_={Cs[row]:g} is the {which} of Cs: try {beyond:g}, too")
    if len(ks) > 1 and column == 0 and ks[0] < n_available:
        advice.append(f"k_={ks[0]} is the largest of ks, and there are {n_available}: try more")
    elif listed and table.rises_to_the_largest_k and ks[0] < n_available:
        advice.append(f"k={ks[0]}, the largest of ks, scores best, and there are {n_available}: try more")
    if len(ks) > 1 and column == len(ks) - 1 and ks[-1] > max(n_always, 1):
        advice.append(f"k_={ks[-1]} is the smallest of ks: try fewer")
    if advice:
        text = f"The choice lies at the edge of what was tried. {'; '.join(advice)}."
        warn_caller(text, GridEdgeWarning)
