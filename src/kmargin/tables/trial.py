"""Machines fitted to the folds of a data set and to all of it, each with a preparation of its own.

Whatever is learned (medians, scales, kernel width, machines) is learned from a fold's training rows
alone; the machines themselves are made and solved for as the cross-validated estimators do it.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kmargin import Exchange, SparsityPath, validate
from kmargin.calibration import Calibration, fit_calibration
from kmargin.calibration_sums import UnseenRows
from kmargin.errors import InputError, blame_input, listing
from kmargin.fitting.blueprint import Decisions
from kmargin.fitting.grid_fit import GridFit, fit_grid, fit_parts
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.fitting.repeats import repeats_to_report
from kmargin.fitting.stand_ins import Worth, improve_by_exchanges
from kmargin.multiclass import choose_classes, class_pairs, combine_decisions
from kmargin.progress import Bar, Silence
from kmargin.samples.array import ArraySamples, read_samples
from kmargin.selection import Fold, asks_for_probabilities, score_with
from kmargin.tables.column_request import count_features
from kmargin.tables.features import Scaling
from kmargin.tables.fold_machines import FoldMachines
from kmargin.tables.machine import Machine, assemble_machine
from kmargin.tables.model import TableModel
from kmargin.tables.prepare import Dataset
from kmargin.tables.row_folds import count_classes, count_folds, deal_rows
from kmargin.tables.settings import Settings, find_scorer, make_blueprint, make_procedure
from kmargin.tables.told import ToldProbabilities
from kmargin.types import Indices, Matrix, Vector

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
            validate.check_tolerance(settings.tolerance)
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
