"""Models of a table fitted to folds of its rows, and their scores."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from kmargin import Exchange, SparsityPath
from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.labels import choose_classes, class_pairs, combine_decisions
from kmargin.core.validation import InputError, blame_input, count, listing
from kmargin.data.samples.array import ArraySamples, read_samples
from kmargin.fitting.drop_costs import Worth, improve_by_exchanges
from kmargin.fitting.fit import GridFit, fit_grid, fit_parts
from kmargin.fitting.progress import Bar, Silence
from kmargin.fitting.spec import Decisions, LinearBlueprint, repeats_to_report
from kmargin.model_selection.calibration import Calibration, UnseenRows, fit_calibration
from kmargin.model_selection.scores import Fold, asks_for_probabilities, make_folds, score_with
from kmargin.tables.columns import Scaling
from kmargin.tables.dataset import Dataset
from kmargin.tables.model import Machine, TableModel, assemble_machine
from kmargin.tables.request import Settings, count_features, find_scorer, make_blueprint, make_procedure


def count_classes(dataset: Dataset, samples: ArraySamples) -> Indices:
    """The rows of each class, or where rows stay together the groups that have some of it."""
    codes, groups = samples.codes, dataset.groups
    if groups is None:
        return np.bincount(codes)
    return np.array([len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)])


def count_folds(
    dataset: Dataset, samples: ArraySamples, counts: Indices, asked: int
) -> tuple[int, list[str]]:
    """As many as asked for, or as the smallest class has rows or groups; and what is to be said of that."""
    if asked < 2:
        raise InputError(f"--cv {asked} does not define folds. Use 2 or more.")
    thing = "group" if dataset.grouped_by else "row" if dataset.groups is None else "different row"
    smallest = samples.classes[counts.argmin()].item()
    n_folds = min(asked, int(counts.min()))
    if n_folds == 1:
        raise InputError(
            f"Class {smallest!r} has only one {thing}, but cross-validation needs at least two. Give more "
            f"{thing}s of that class, or remove it."
        )
    if n_folds == asked:
        return n_folds, []
    return n_folds, [f"Class {smallest!r} has {count(n_folds, thing)}: {n_folds} folds instead of {asked}."]


def deal_rows(dataset: Dataset, samples: ArraySamples, n_folds: int, seed: int) -> list[Fold]:
    """As many rows of each class in each fold, those of a group together."""
    kind = StratifiedKFold if dataset.groups is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    try:
        return make_folds(splitter, samples, len(dataset.y), dataset.X, dataset.y, dataset.groups)
    except ValueError as error:
        raise InputError(
            f"Rows that stay together leave a fold without a class ({str(error).split('. ')[0]}). "
            f"Use fewer folds than {n_folds} with --cv, or another --seed."
        ) from error


class FoldMachines:
    """Weights of the used features alone, by fold, C and k."""

    def __init__(self, Cs: Sequence[float], ks: Sequence[int]) -> None:
        self.Cs, self.ks = list(Cs), list(ks)
        self._numbers: dict[tuple[int, int, int], tuple[Indices, Matrix, Vector]] = {}

    def keep(self, fold: int, row: int, column: int, decisions: Decisions) -> None:
        support = np.flatnonzero(decisions.coef.any(axis=0))
        self._numbers[fold, row, column] = support, decisions.coef[:, support], decisions.intercept

    def were_walked_to(self, Cs: Sequence[float], ks: Sequence[int]) -> bool:
        """Whether the last of these Cs was reached on the same way: a machine depends on those before it."""
        return self.ks == list(ks) and self.Cs[: len(Cs)] == list(Cs)

    def support(self, fold: int, row: int, column: int) -> Indices:
        return self._numbers[fold, row, column][0]

    def decisions(self, fold: int, row: int, column: int, X: Matrix) -> Matrix:
        """What each machine says of rows, a column for each."""
        support, coef, intercept = self._numbers[fold, row, column]
        return np.asarray(X[:, support] @ coef.T + intercept)


class ToldProbabilities(ClassifierMixin, BaseEstimator):
    """What was said of some rows, in the form of a model that is asked about them."""

    def __init__(self, classes: np.ndarray, probabilities: Matrix, decisions: Matrix) -> None:
        self.classes, self.probabilities, self.decisions = classes, probabilities, decisions
        self.classes_ = classes

    def predict_proba(self, X: Matrix) -> Matrix:
        return self.probabilities

    def decision_function(self, X: Matrix) -> Matrix:
        return self.decisions

    def predict(self, X: Matrix) -> np.ndarray:
        return np.asarray(choose_classes(self.decisions, self.classes))


SILENCE = Silence()
LARGE = 20_000  # rows
MANY_MACHINES = 10
MAX_ROUNDS = 5
MOST_UNITS = 40  # in a model; the stand-ins of more are not looked for


class Examination(NamedTuple):
    """What the machines of the folds, with one C and one k, say about rows that they did not see."""

    folds: list[Fold]
    decisions: Matrix  # of each row
    of_machines: Matrix  # the same, a column for each machine
    supports: tuple[Indices, ...]  # of each fold's machines


class Refit(NamedTuple):
    """A model fitted to all rows, and what each unit of it is worth, by label, where that is known."""

    model: TableModel
    worths: dict[str, Worth]


class Trial:
    """A data set, cut into folds."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        settings.check()
        self.dataset = dataset
        self.settings = settings
        self.scorer = find_scorer(settings.scoring)
        self.counted = count_features(dataset.encoding, settings.columns)
        self.blueprint = make_blueprint(settings, self.counted)
        self.procedure = make_procedure(settings)
        with blame_input():
            self.blueprint.check()
            class_weight = "balanced" if settings.balanced else None
            self.samples = read_samples(dataset.X, dataset.y, dataset.weights, class_weight)
            validation.check_tolerance(settings.tolerance)
        self.class_counts = count_classes(dataset, self.samples)
        self.n_folds, self.notes = count_folds(dataset, self.samples, self.class_counts, settings.cv)
        self._kept: FoldMachines | None = None  # of the first round

    def folds(self, round: int) -> list[Fold]:
        """The rows dealt into folds, in another way each round."""
        return deal_rows(self.dataset, self.samples, self.n_folds, (self.settings.seed + round) % 2**32)

    def relabelled(self, y: np.ndarray) -> "Trial":
        """The same rows with other labels."""
        return Trial(self.dataset._replace(y=y), replace(self.settings, verbose=0))

    def restricted_to(self, rows: Indices) -> "Trial":
        """The same with some of the rows; whoever asks for many shows one bar for all."""
        return Trial(self.dataset.restricted_to(rows), replace(self.settings, verbose=0))

    @property
    def things(self) -> str:
        """What k counts."""
        return self.counted.things if self.settings.kernel is None else self.blueprint.things

    @property
    def is_large(self) -> bool:
        """Whether there are so many rows that folds differ little, and extras would take long."""
        return len(self.dataset.y) >= LARGE

    @property
    def max_rounds(self) -> int:
        """How often rows may be dealt into folds: as asked for, else once where rows or classes are many."""
        if self.settings.repeats is not None:
            return self.settings.repeats
        n_machines = len(class_pairs(len(self.samples.classes), self.settings.multi_class))
        return 1 if self.is_large or n_machines >= MANY_MACHINES else MAX_ROUNDS

    @property
    def least(self) -> int:
        """What is always in, and counts in k."""
        return self.counted.n_fixed if self.settings.kernel is None else 0

    @property
    def n_available(self) -> int:
        """How many things there are for k to count."""
        return self.blueprint.n_available(self.samples)

    def n_solutions(self, Cs: Sequence[float], ks: Sequence[int]) -> int:
        """How many are found in a round."""
        n_machines = len(class_pairs(len(self.samples.classes), self.settings.multi_class))
        return self.n_folds * (1 if self.blueprint.shared else n_machines) * len(Cs) * len(ks)

    def score(self, Cs: list[float], ks: list[int], round: int, bar: Bar = SILENCE) -> np.ndarray:
        """The score of every fold of a round, C and k."""
        scores = np.empty((self.n_folds, len(Cs), len(ks)))
        walk = self._walk(Cs, ks, round, bar)
        if asks_for_probabilities(self.scorer):
            return self._score_by_probabilities(walk, ks, scores)
        kept = FoldMachines(Cs, ks) if round == 0 and self.settings.kernel is None else None
        for number, (fold, X, fit) in enumerate(walk):
            for row, column in np.ndindex(len(Cs), len(ks)):
                decisions = fit.decisions(row, column)
                scores[number, row, column] = self._score_fold(decisions, Cs[row], ks[column], X, fold.test)
                if kept is not None:
                    kept.keep(number, row, column, decisions)
        self._kept = kept or self._kept
        return scores

    def _score_fold(self, decisions: Decisions, C: float, k: int, X: Matrix, rows: Indices) -> float:
        """The score of one fold's machines on rows whose features, scaled, are X."""
        if self.settings.scoring != "accuracy":
            return self.score_rows(self._machine(decisions, C, k), X, rows)
        # as the scorer would, without a look at X for each model
        classes = self.samples.classes
        told = combine_decisions(decisions(X), len(classes), self.settings.multi_class)
        return float(
            np.average(choose_classes(told, classes) == self.dataset.y[rows], weights=self._weights(rows))
        )

    def _score_by_probabilities(
        self, walk: Iterator[tuple[Fold, Matrix, GridFit]], ks: list[int], scores: np.ndarray
    ) -> np.ndarray:
        """Those of each fold are learned from the test rows of the others."""
        walked = [(fold, X, fit.without_samples(ks)) for fold, X, fit in walk]
        n_machines = len(class_pairs(len(self.samples.classes), self.settings.multi_class))
        for row, column in np.ndindex(scores.shape[1:]):
            decisions = np.empty((len(self.dataset.y), n_machines))
            for fold, X, machines in walked:
                decisions[fold.test] = machines.decisions(row, column)(X)
            for number, ((train, test), _, _) in enumerate(walked):
                told = self.with_probabilities(self.calibrate(decisions[train], train), decisions[test])
                scores[number, row, column] = self.score_rows(told, np.zeros((len(test), 1)), test)
        return scores

    def calibrate(self, of_machines: Matrix, rows: Indices) -> Calibration:
        """How what machines say of rows that they had not seen becomes probabilities."""
        seen = UnseenRows(of_machines, self.samples.codes[rows], self.samples.repeats[rows])
        with blame_input():
            return fit_calibration(seen, self.samples.classes, self.settings.multi_class)

    def with_probabilities(self, calibration: Calibration, of_machines: Matrix) -> ToldProbabilities:
        """What a model with these decision values says, for a scorer."""
        scheme = len(self.samples.classes), self.settings.multi_class
        return ToldProbabilities(
            self.samples.classes,
            calibration.probabilities(of_machines, *scheme),
            combine_decisions(of_machines, *scheme),
        )

    def examine(self, Cs: list[float], ks: list[int], k: int) -> Examination:
        """The folds of the first round: the machines with the last of the Cs, and one of the ks.

        Those that `score` has fitted are asked; they are fitted again where it has kept none.
        """
        n_rows, n_classes = len(self.dataset.y), len(self.samples.classes)
        of_machines = np.empty((n_rows, len(class_pairs(n_classes, self.settings.multi_class))))
        supports, folds = [], []
        kept, at = self._kept, (len(Cs) - 1, ks.index(k))
        if kept is not None and kept.were_walked_to(Cs, ks):
            folds = self.folds(0)
            supports = [kept.support(number, *at) for number in range(len(folds))]
            for number, fold in enumerate(folds):
                of_machines[fold.test] = kept.decisions(number, *at, self._scaled_test(fold))
        else:
            for fold, X, fit in self._walk(Cs, ks, 0, SILENCE):
                of_machines[fold.test] = fit.decisions(*at)(X)
                supports.append(self._machine(fit.decisions(*at), Cs[-1], k).support_)
                folds.append(fold)
        decisions = combine_decisions(of_machines, n_classes, self.settings.multi_class)
        return Examination(folds, decisions, of_machines, tuple(supports))

    def refit(self, C: float, k: int, n_stand_ins: int = 1) -> Refit:
        """The model fitted to all rows: the same whether its C and k were chosen or given.

        Single exchanges that lower the objective are made while there are any, where stand-ins are looked
        for: in linear models of no more than `MOST_UNITS` units, which all binary problems share. None are
        looked for, or made, with ``n_stand_ins=0``.
        """
        scaling = self._scaling(self.samples)
        samples = self.samples._replace(X=scaling(self.samples.X))
        fit = fit_grid(self.blueprint, samples, [C], [k], self.procedure, label="refit")
        decisions, worths = fit.decisions(0, 0), {}
        blueprint, coef = self.blueprint, decisions.coef
        if n_stand_ins and isinstance(blueprint, LinearBlueprint) and self._has_stand_ins(coef):
            used = np.flatnonzero(decisions.coef.any(axis=0))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what there is to say was said of the first fit
                better, found = improve_by_exchanges(blueprint, samples, C, used, self.procedure, n_stand_ins)
            decisions = decisions if better is None else better.decisions(0, 0)
            worths = {self.counted.labels[int(worth.columns[0])]: worth for worth in found}
        machine = self._machine(decisions, C, k)
        return Refit(TableModel(self.dataset.target, self.dataset.encoding, scaling, machine), worths)

    def _has_stand_ins(self, coef: Matrix) -> bool:
        """Whether what a feature is worth is one number, and features are few enough to find it."""
        n_used = len({self.counted.labels[j] for j in np.flatnonzero(coef.any(axis=0))})
        return (self.blueprint.shared or len(coef) == 1) and not self.is_large and n_used <= MOST_UNITS

    def path(self, Cs: list[float], ks: list[int]) -> tuple[Scaling, SparsityPath]:
        """The models for all ks with the last of the Cs, fitted to all rows, and how these are scaled."""
        scaling = self._scaling(self.samples)
        samples = self.samples._replace(X=scaling(self.samples.X))
        fit = fit_grid(self.blueprint, samples, Cs, ks, self.procedure, label="refit")
        return scaling, fit.path(ks)

    def _walk(
        self, Cs: list[float], ks: list[int], round: int, bar: Bar
    ) -> Iterator[tuple[Fold, Matrix, GridFit]]:
        """For each fold, its test rows, scaled, and its machines."""
        folds = self.folds(round)

        def parts() -> Iterator[ArraySamples]:
            for fold in folds:
                part = self.samples.restricted_to(fold.train)
                yield part._replace(X=self._scaling(part)(part.X))

        n_classes = len(self.samples.classes)
        procedure = self.procedure._replace(bar=bar)
        fits = fit_parts(self.blueprint, parts(), len(folds), n_classes, Cs, ks, procedure)
        for fold, fit in zip(folds, fits, strict=True):
            yield fold, self._scaled_test(fold), fit

    def _scaled_test(self, fold: Fold) -> Matrix:
        """The test rows of a fold, as its training rows say."""
        return self._scaling(self.samples.restricted_to(fold.train))(self.samples.X[fold.test])

    def _machine(self, decisions: Decisions, C: float, k: int) -> Machine:
        """The machine that decides so, fitted with this C and k."""
        parameters = {
            "k": k,
            "C": C,
            "multi_class": self.settings.multi_class,
            "shared": self.settings.shared,
            **self.counted.request._asdict(),
        }
        return assemble_machine(parameters, self.samples.classes, decisions)

    def _scaling(self, part: ArraySamples) -> Scaling:
        return Scaling.learn(part.X, part.repeats, self.dataset.impute, self.settings.standardize)

    def _weights(self, rows: Indices) -> Vector | None:
        """How much each of some rows counts in a score; None for all the same."""
        return None if self.dataset.weights is None else self.samples.repeats[rows]

    def score_rows(self, model: Any, X: Matrix, rows: Indices) -> float:
        """The score of a model on rows whose features, scaled, are X."""
        try:
            return score_with(self.scorer, model, X, self.dataset.y[rows], self._weights(rows))
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"--scoring {self.settings.scoring} is not applicable to this model "
                f"({str(error).splitlines()[0]}). Try accuracy, balanced_accuracy or f1_macro."
            ) from error

    def note_repeats(self) -> None:
        """Say which features are passed over, beside what else there is to say."""
        is_plain = self.settings.kernel is None and self.counted.request.is_empty
        if not is_plain or np.isnan(self.samples.X).any():
            return
        repeats = repeats_to_report(self.samples, Exchange())
        if len(repeats):
            names = listing([self.dataset.encoding.feature_names[j] for j in repeats])
            self.notes.append(f"Features that repeat an earlier one are passed over: {names}.")
