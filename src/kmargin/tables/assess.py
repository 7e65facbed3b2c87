"""How well models like the one chosen do on rows that had no part in choosing them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kmargin.errors import blame_input
from kmargin.honest import guess, interval_of, rank_among
from kmargin.intervals import Interval
from kmargin.multiclass import choose_classes
from kmargin.outer_folds import permute_labels
from kmargin.progress import progress_bar
from kmargin.selection import Fold
from kmargin.tables.choice import Choice, choose
from kmargin.tables.prepare import Dataset
from kmargin.tables.trial import Examination, Trial
from kmargin.types import Indices, Matrix, Vector

LEAST_FOR_NESTED = 3  # rows (or groups) of a class: one to score, two for the folds within
OUTER = 2**16  # the round whose folds are the outer ones, far from those that choose


@dataclass(frozen=True)
class Assessment:
    """What models said of rows that they had not seen.

    Nested, that is all there is to it: k and C were chosen without these rows, too. Else they were chosen
    with them, and the score is too good.
    """

    dataset: Dataset
    is_nested: bool
    is_rate: bool  # whether the score is the accuracy
    folds: list[Fold]
    scores: Vector  # of each fold, as asked for
    guesses: Vector  # the same of what only knows how frequent the classes are
    decisions: Matrix  # of each row
    probabilities: Matrix  # of each row and class
    classes: np.ndarray
    chosen: tuple[tuple[int, float], ...]  # k and C of each fold
    p_value: float | None = None
    n_permutations: int = 0

    @cached_property
    def fold(self) -> Indices:
        """Of each row: the one that it was a test row of."""
        numbers = np.empty(len(self.dataset.y), dtype=np.intp)
        for number, fold in enumerate(self.folds):
            numbers[fold.test] = number
        return numbers

    @cached_property
    def predicted(self) -> np.ndarray:
        return np.asarray(choose_classes(self.decisions, self.classes))

    @cached_property
    def weights(self) -> Vector:
        return np.ones(len(self.dataset.y)) if self.dataset.weights is None else self.dataset.weights

    @cached_property
    def n_rows(self) -> float:
        """As many rows of one weight, each by itself, tell as much."""
        return self.dataset.n_independent

    @property
    def accuracy(self) -> float:
        return float(np.average(self.predicted == self.dataset.y, weights=self.weights))

    @property
    def score(self) -> float:
        return self.accuracy if self.is_rate else float(self.scores.mean())

    @property
    def interval(self) -> Interval:
        n_folds = len(self.folds)
        return interval_of(self.scores, self.score, self.n_rows, 1 / (n_folds - 1), self.is_rate)

    @property
    def guessing(self) -> float:
        if not self.is_rate:
            return float(self.guesses.mean())
        totals = np.bincount(self.fold, self.weights, minlength=len(self.folds))
        return float(self.guesses @ totals / totals.sum())

    @property
    def is_better_than_guessing(self) -> bool:
        return self.guessing < self.interval.low


def assess(trial: Trial, choice: Choice, examined: Examination) -> Assessment:
    """As the settings say: nested or not, with a permutation test or without."""
    is_nested = trial.settings.nested and choice.had_alternatives
    if is_nested and trial.class_counts.min() < LEAST_FOR_NESTED:
        rare = trial.samples.classes[trial.class_counts.argmin()].item()
        thing = "rows" if trial.dataset.groups is None else "groups"
        trial.notes.append(
            f"Class {rare!r} has 2 {thing}, too few to choose k and C without one of them: the score told is "
            "of the rows they were chosen on, and too good."
        )
        is_nested = False
    found = assess_nested(trial, choice) if is_nested else assess_chosen(trial, choice, examined)
    if not trial.settings.permutations:
        return found
    permuted = permuted_scores(trial, choice)
    own = float(_candidates(trial, choice, choice.table.scores[: trial.n_folds]).mean(axis=0).max())
    return replace(found, p_value=rank_among(own, permuted), n_permutations=len(permuted))


def assess_chosen(trial: Trial, choice: Choice, examined: Examination) -> Assessment:
    """By the folds that k and C were chosen on; a fair test where there was nothing to choose."""
    scores = choice.table.scores[: trial.n_folds, choice.row, choice.column]
    chosen = ((choice.k, choice.C),) * trial.n_folds
    scheme = len(trial.samples.classes), trial.settings.multi_class
    told = np.empty((len(trial.dataset.y), scheme[0]))
    for train, test in examined.folds:
        calibration = trial.calibrate(examined.of_machines[train], train)
        told[test] = calibration.probabilities(examined.of_machines[test], *scheme)
    return _assessment(trial, examined.folds, scores, examined.decisions, told, chosen, is_nested=False)


def assess_nested(trial: Trial, choice: Choice) -> Assessment:
    """The whole choice anew in each of several outer folds, from its training rows alone."""
    folds = trial.folds(OUTER)
    n_classes, n_rows = len(trial.samples.classes), len(trial.dataset.y)
    decisions = np.empty(n_rows if n_classes == 2 else (n_rows, n_classes))
    told = np.empty((n_rows, n_classes))
    scores, chosen = [], []
    total = len(folds) * choice.n_rounds * trial.n_solutions(choice.table.Cs, choice.table.ks)
    with progress_bar("honest accuracy", total, trial.settings.verbose) as bar:
        for fold in folds:
            inner = trial.restricted_to(fold.train)
            found = choose(inner, choice.n_rounds, bar)
            model = inner.refit(found.Cs, found.ks, found.k)[0]
            X = model.scaling(trial.samples.X[fold.test])
            examined = inner.examine(found.Cs, found.ks, found.k)
            calibration = inner.calibrate(examined.of_machines, np.arange(len(inner.dataset.y)))
            says = trial.with_probabilities(calibration, model.machine.machine_decisions(X))
            decisions[fold.test], told[fold.test] = says.decisions, says.probabilities
            scores.append(trial.score_rows(says, X, fold.test))
            chosen.append((found.k, found.C))
    return _assessment(trial, folds, np.array(scores), decisions, told, tuple(chosen), is_nested=True)


def _assessment(
    trial: Trial,
    folds: list[Fold],
    scores: Vector,
    decisions: Matrix,
    probabilities: Matrix,
    chosen: tuple[tuple[int, float], ...],
    is_nested: bool,
) -> Assessment:
    dataset = trial.dataset
    with blame_input():
        guesses = np.array([guess(trial.scorer, dataset.y, dataset.weights, fold) for fold in folds])
    return Assessment(
        dataset,
        is_nested,
        trial.settings.scoring == "accuracy",
        folds,
        scores,
        guesses,
        decisions,
        probabilities,
        trial.samples.classes,
        chosen,
    )


def permuted_scores(trial: Trial, choice: Choice) -> Vector:
    """The highest score of the whole grid, in one round of folds, for labels that say nothing.

    The same is asked of the labels as they are, so it does not matter that the highest of many is too good.
    """
    rng = np.random.default_rng(trial.settings.seed)
    Cs, ks = choice.table.Cs, choice.table.ks
    n_times = trial.settings.permutations
    highest = np.empty(n_times)
    with progress_bar("permutations", n_times * trial.n_solutions(Cs, ks), trial.settings.verbose) as bar:
        for number in range(n_times):
            shuffled = trial.relabelled(permute_labels(trial.dataset.y, trial.dataset.groups, rng))
            scores = shuffled.score(list(Cs), list(ks), 0, bar)
            highest[number] = _candidates(trial, choice, scores).mean(axis=0).max()
    return highest


def _candidates(trial: Trial, choice: Choice, scores: np.ndarray) -> np.ndarray:
    """The scores of what there was to choose from."""
    return scores if trial.settings.k is None else scores[:, :, [choice.column]]
