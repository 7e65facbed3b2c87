"""The choice of k and C for a table, and its nested score."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.labels import choose_classes
from kmargin.core.validation import InputError, blame_input, listing
from kmargin.fitting.progress import Bar, progress_bar
from kmargin.model_selection.nested import (
    Evidence,
    guess,
    interval_of,
    is_better,
    judged_by,
    permute_labels,
    rank_among,
    weigh_evidence,
)
from kmargin.model_selection.scores import (
    Estimate,
    Fold,
    Interval,
    RankedRows,
    ScoreTable,
    area_under_roc,
    difference_error,
)
from kmargin.tables.dataset import Dataset
from kmargin.tables.trial import Examination, ToldProbabilities, Trial

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0)
SMALLEST_C, LARGEST_C = 1e-5, 1e4  # to which the default grid may grow
MOST_GROWTH = 3  # times
STEADY = 3  # rounds in a row that lead to the same choice settle it


@dataclass(frozen=True)
class Choice:
    """What was chosen, and the one table of scores that it was chosen by."""

    row: int
    column: int
    table: ScoreTable
    n_rounds: int
    has_settled: bool
    had_alternatives: bool

    @property
    def k(self) -> int:
        return self.table.ks[self.column]

    @property
    def C(self) -> float:
        return self.table.Cs[self.row]

    @property
    def Cs(self) -> list[float]:
        """Those walked on the way to the chosen one."""
        return list(self.table.Cs[: self.row + 1])

    @property
    def ks(self) -> list[int]:
        return list(self.table.ks)

    @property
    def score(self) -> float:
        return float(self.table.mean[self.row, self.column])


def choose(trial: Trial, n_rounds: int | None = None, bar: Bar | None = None) -> Choice:
    """Score all C and k in rounds of folds; in as many as asked for, or until the choice has settled."""
    Cs, ks = resolve_grid(trial)
    is_open = len(Cs) * (len(ks) if trial.settings.k is None else 1) > 1
    needs_rounds = is_open and trial.max_rounds > 1
    most = n_rounds or (trial.max_rounds if is_open else 1)
    if not is_open and (trial.settings.repeats or 1) > 1:
        trial.notes.append(
            f"--repeats {trial.settings.repeats} has no effect: k and C are given, so nothing is left to "
            "choose, and one round of folds is enough."
        )
    total = most * trial.n_solutions(Cs, ks)
    own_bar = progress_bar("choosing k and C", total, trial.settings.verbose)
    with own_bar if bar is None else nullcontext(bar) as bar:
        scores, Cs, ks, at = _first_round(trial, Cs, ks, most, bar)
        rounds, same = [scores], 1
        while len(rounds) < most and (n_rounds is not None or same < STEADY):
            rounds.append(trial.score(Cs, ks, len(rounds), bar))
            before, at = at, _choose(trial, rounds, Cs, ks)
            same = same + 1 if at == before else 1
        bar.extend((len(rounds) - most) * trial.n_solutions(Cs, ks))
    table = ScoreTable(np.concatenate(rounds), Cs, ks, *counts_of(trial))
    has_settled = not needs_rounds or same >= STEADY
    return Choice(*at, table, len(rounds), has_settled, had_alternatives=is_open)


def _first_round(
    trial: Trial, Cs: list[float], ks: list[int], most: int, bar: Bar
) -> tuple[np.ndarray, list[float], list[int], tuple[int, int]]:
    """Scores, the grid, and the choice. Where that lies at the edge of a grid that nobody asked for, the grid
    grows, and its scores are made anew: along a path each depends on its neighbours.
    """
    for n_grown in range(MOST_GROWTH + 1):
        scores = trial.score(Cs, ks, 0, bar)
        at = _choose(trial, [scores], Cs, ks)
        wider = _grow(trial, Cs, ks, at) if n_grown < MOST_GROWTH else (Cs, ks)
        if wider == (Cs, ks):
            break
        bar.extend(most * trial.n_solutions(*wider) - (most - 1) * trial.n_solutions(Cs, ks))
        Cs, ks = wider
    return scores, Cs, ks, at


def _choose(trial: Trial, rounds: list[np.ndarray], Cs: list[float], ks: list[int]) -> tuple[int, int]:
    """The positions of C and k; of a k that was asked for, only C is to be chosen."""
    settings, scores = trial.settings, np.concatenate(rounds)
    if settings.k is None:
        return ScoreTable(scores, Cs, ks, *counts_of(trial)).choose(settings.select, settings.tolerance)
    column = ks.index(settings.k)
    table = ScoreTable(scores[:, :, [column]], Cs, [settings.k], *counts_of(trial))
    return table.choose(settings.select, settings.tolerance)[0], column


def counts_of(trial: Trial) -> tuple[float, float]:
    """Rows that are scored, and test rows per training row."""
    return trial.dataset.n_independent, 1 / (trial.n_folds - 1)


def _grow(trial: Trial, Cs: list[float], ks: list[int], at: tuple[int, int]) -> tuple[list[float], list[int]]:
    """The grid with more beyond an edge that the choice lies at, unless the grid was asked for."""
    settings = trial.settings
    if settings.Cs is None:
        if at[0] == 0 and Cs[0] / 10 >= 0.99 * SMALLEST_C:
            Cs = [Cs[0] / 10, *Cs]
        elif at[0] == len(Cs) - 1 and Cs[-1] * 10 <= 1.01 * LARGEST_C:
            Cs = [*Cs, Cs[-1] * 10]
    if settings.ks is None and settings.k is None and at[1] == 0 and ks[0] < trial.n_available:
        ks = [min(2 * ks[0], trial.n_available), *ks]
    return Cs, ks


def resolve_grid(trial: Trial) -> tuple[list[float], list[int]]:
    """The values of C, ascending, and of k, descending; beside a k that is fixed, one more and one fewer."""
    settings, things = trial.settings, trial.things
    with blame_input():
        n_available = trial.n_available
    asked = [] if settings.k is None else [settings.k]
    given = settings.ks if isinstance(settings.ks, list) else []
    for k in (*asked, *given):
        if not 0 <= k <= n_available:
            raise InputError(f"k = {k} is not possible with {n_available} {things}. Use 0 to {n_available}.")
        if k < trial.least:
            kept = listing(trial.counted.labels_of(np.flatnonzero(trial.counted.always_in)))
            raise InputError(
                f"k = {k} is less than the {trial.least} {things} of --keep ({kept}), which count in k. Use "
                f"{trial.least} or more, or keep fewer."
            )
    with blame_input():
        largest = trial.blueprint.largest_default(trial.samples)
        ks = validation.resolve_ks(settings.ks, n_available, largest, things)
        if settings.k is not None and settings.ks is None:
            ks = [k for k in (settings.k - 1, settings.k + 1) if 1 <= k <= n_available]
        ks = [k for k in ks if k >= trial.least] or [trial.least]
        Cs = DEFAULT_CS if settings.Cs is None else settings.Cs
        return validation.resolve_Cs(list(Cs)), sorted({*ks, *asked}, reverse=True)


LEAST_FOR_NESTED = 3  # rows (or groups) of a class: one to score, two for the folds within
OUTER = 2**16  # the round whose folds are the outer ones, far from those that choose


class Difference(NamedTuple):
    """Of two scores on the same folds, with its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Assessment:
    """What models said of rows that they had not seen.

    Nested, that is all there is to it: k and C were chosen without these rows, too. Else they were chosen
    with them, and the score is too good.
    """

    dataset: Dataset
    is_nested: bool
    scoring: str
    folds: list[Fold]
    scores: Vector  # of each fold, as asked for
    guesses: Vector  # the same of what only knows how frequent the classes are
    decisions: Matrix  # of each row
    probabilities: Matrix  # of each row and class
    classes: np.ndarray
    chosen: tuple[tuple[int, float], ...]  # k and C of each fold
    all_features: Vector | None = None  # the scores of models that use all features, on the same folds
    p_value: float | None = None
    n_permutations: int = 0

    @property
    def is_rate(self) -> bool:
        """Whether the score is the accuracy."""
        return self.scoring == "accuracy"

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

    @cached_property
    def ranked(self) -> list[RankedRows] | None:
        """The test rows of each fold with their decision values; None for more than two classes."""
        if self.decisions.ndim > 1:
            return None
        return [RankedRows(fold.test, self.decisions[fold.test]) for fold in self.folds]

    @cached_property
    def interval(self) -> Interval:
        if self.scoring == "roc_auc" and self.ranked is not None:
            is_second = self.dataset.y == self.classes[1]
            return area_under_roc(self.ranked, is_second, self.weights, self.dataset.groups).interval
        return interval_of(self.scores, self.score, self.n_rows, self.test_ratio, self.is_rate)

    @property
    def test_ratio(self) -> float:
        """Test rows of a fold per training row."""
        return 1 / (len(self.folds) - 1)

    @property
    def guessing(self) -> float:
        return self.mean_over_folds(self.guesses)

    def mean_over_folds(self, scores: Vector) -> float:
        """As `score` is made of those of the folds: accuracies count by the weight of the test rows."""
        if not self.is_rate:
            return float(scores.mean())
        totals = np.bincount(self.fold, self.weights, minlength=len(self.folds))
        return float(scores @ totals / totals.sum())

    @property
    def cost_of_sparsity(self) -> Difference | None:
        """What all features reach more than the model does; None where that was not asked."""
        if self.all_features is None:
            return None
        error = difference_error(self.all_features - self.scores, self.test_ratio, len(self.dataset.y))
        return Difference(self.mean_over_folds(self.all_features) - self.score, error)

    @cached_property
    def evidence(self) -> Evidence:
        """By which measure the model is compared with guessing."""
        own = Evidence(self.scoring, Estimate(self.score, self.interval), self.guessing)
        groups, weights = self.dataset.groups, self.dataset.weights
        return weigh_evidence(own, self.dataset.y, self.predicted, self.ranked, weights, groups)

    @property
    def is_better_than_guessing(self) -> bool:
        return is_better(self.evidence, self.p_value, self.n_permutations)

    @property
    def judged_by(self) -> str:
        """The measure that `is_better_than_guessing` goes by."""
        return judged_by(self.evidence, self.n_permutations)


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
    scheme = len(trial.samples.classes), trial.settings.multi_class
    told = np.empty((len(trial.dataset.y), scheme[0]))
    for train, test in examined.folds:
        calibration = trial.calibrate(examined.of_machines[train], train)
        told[test] = calibration.probabilities(examined.of_machines[test], *scheme)
    everything = None
    if compares_all_features(trial, choice):
        table = score_all_features(trial, choice)
        everything = table.scores[:, table.choose("best")[0], 0]
    return Assessment(
        dataset=trial.dataset,
        is_nested=False,
        scoring=trial.settings.scoring,
        folds=examined.folds,
        scores=scores,
        guesses=_guesses(trial, examined.folds),
        decisions=examined.decisions,
        probabilities=told,
        classes=trial.samples.classes,
        chosen=((choice.k, choice.C),) * trial.n_folds,
        all_features=everything,
    )


def assess_nested(trial: Trial, choice: Choice) -> Assessment:
    """The whole choice anew in each of several outer folds, from its training rows alone."""
    folds = trial.folds(OUTER)
    n_classes, n_rows = len(trial.samples.classes), len(trial.dataset.y)
    decisions = np.empty(n_rows if n_classes == 2 else (n_rows, n_classes))
    told = np.empty((n_rows, n_classes))
    scores, chosen, everything = [], [], []
    total = len(folds) * choice.n_rounds * trial.n_solutions(choice.table.Cs, choice.table.ks)
    with progress_bar("honest accuracy", total, trial.settings.verbose) as bar:
        for fold in folds:
            inner = trial.restricted_to(fold.train)
            found = choose(inner, choice.n_rounds, bar)
            says = _ask_about(trial, fold, inner, found.Cs, found.ks, found.k)
            decisions[fold.test], told[fold.test] = says.decisions, says.probabilities
            scores.append(trial.score_rows(says, np.zeros((len(fold.test), 1)), fold.test))
            chosen.append((found.k, found.C))
            if compares_all_features(trial, choice):
                table = score_all_features(inner, found)
                Cs, ks = list(table.Cs[: table.choose("best")[0] + 1]), list(table.ks)
                says = _ask_about(trial, fold, inner, Cs, ks, ks[0])
                everything.append(trial.score_rows(says, np.zeros((len(fold.test), 1)), fold.test))
    return Assessment(
        dataset=trial.dataset,
        is_nested=True,
        scoring=trial.settings.scoring,
        folds=folds,
        scores=np.array(scores),
        guesses=_guesses(trial, folds),
        decisions=decisions,
        probabilities=told,
        classes=trial.samples.classes,
        chosen=tuple(chosen),
        all_features=np.array(everything) if everything else None,
    )


def compares_all_features(trial: Trial, choice: Choice) -> bool:
    """Whether a model of all features is something else than the model chosen."""
    return trial.settings.kernel is None and choice.k < trial.n_available


def score_all_features(trial: Trial, choice: Choice) -> ScoreTable:
    """The scores of models that use all features: a ridge alone holds them back."""
    Cs, k = list(choice.table.Cs), trial.n_available
    return ScoreTable(trial.score(Cs, [k], 0), Cs, [k], *counts_of(trial))


def _ask_about(
    trial: Trial, fold: Fold, inner: Trial, Cs: list[float], ks: list[int], k: int
) -> ToldProbabilities:
    """What the model with k units and the last of the Cs, fitted to a fold's training rows, says of the rest.

    `inner` is the trial of the training rows, whose scores for these Cs and ks were the last to be made.
    """
    n_stand_ins = 1 if k < trial.n_available else 0
    model = inner.refit(Cs[-1], k, n_stand_ins).model
    examined = inner.examine(Cs, ks, k)
    calibration = inner.calibrate(examined.of_machines, np.arange(len(inner.dataset.y)))
    X = model.scaling(trial.samples.X[fold.test])
    return trial.with_probabilities(calibration, model.machine.machine_decisions(X))


def _guesses(trial: Trial, folds: list[Fold]) -> Vector:
    """The scores of what only knows how frequent the classes are."""
    dataset = trial.dataset
    with blame_input():
        return np.array([guess(trial.scorer, dataset.y, dataset.weights, fold) for fold in folds])


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
