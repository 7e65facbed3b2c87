"""Machines fitted to the folds of a data set and to all of it, each with a preparation of its own.

Whatever is learned (medians, scales, kernel width, machines) is learned from a fold's training rows
alone; the machines themselves are made and solved for as the cross-validated estimators do it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import StratifiedKFold

from kmargin import Exchange, SparsityPath
from kmargin.errors import InputError, blame_input, count, listing, nearest
from kmargin.fitting.grid_fit import GridFit, Procedure, fit_grid, fit_parts
from kmargin.fitting.kernel_blueprint import KernelBlueprint
from kmargin.fitting.linear_blueprint import LinearBlueprint
from kmargin.fitting.repeats import find_repeats
from kmargin.kernels import KERNELS
from kmargin.multiclass import choose_classes
from kmargin.samples.array import ArraySamples, read_samples
from kmargin.selection import SELECTIONS, make_folds, score_with
from kmargin.tables.column_request import NOTHING_SAID, ColumnRequest, CountedFeatures, count_features
from kmargin.tables.features import Scaling
from kmargin.tables.model import Machine, TableModel, assemble_machine
from kmargin.tables.prepare import Dataset
from kmargin.types import Indices, Matrix, Vector


@dataclass(frozen=True)
class Settings:
    """How machines are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] = (0.01, 0.1, 1.0, 10.0)
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    seed: int = 0
    jobs: int | None = None
    scoring: str = "accuracy"
    select: str = "1se"
    standardize: bool = True
    balanced: bool = False
    multi_class: str = "ovo"
    shared: bool = True
    columns: ColumnRequest = NOTHING_SAID
    verbose: int = 0


class Examination(NamedTuple):
    """What the folds say about machines with one C and several k, and about one of these k."""

    scores: Matrix  # (n_folds, n_ks)
    fold: Indices  # of each row: the one that scored it
    decisions: Matrix  # of each row, by machines with the one k that did not see it
    predicted: np.ndarray
    supports: tuple[Indices, ...]  # of each fold's machines with the one k


class Trial:
    """A data set, cut into folds."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        if settings.select not in SELECTIONS:
            raise InputError(f"--select {settings.select} is not known. Use best or 1se.")
        if not 0 <= settings.seed < 2**32:
            raise InputError(f"--seed {settings.seed} shuffles nothing. Use 0 to {2**32 - 1}.")
        if settings.jobs == 0:
            raise InputError("--jobs 0 leaves nobody to do the work. Use 1 or more, or -1 for all cores.")
        self.dataset = dataset
        self.settings = settings
        self.notes: list[str] = []
        self.scorer = find_scorer(settings.scoring)
        self.counted = count_features(dataset.encoding, settings.columns)
        self.blueprint = make_blueprint(settings, self.counted)
        self.procedure = make_procedure(settings)
        with blame_input():
            self.blueprint.check()
            class_weight = "balanced" if settings.balanced else None
            self.samples = read_samples(dataset.X, dataset.y, dataset.weights, class_weight)
        splitter = StratifiedKFold(self._n_folds(), shuffle=True, random_state=settings.seed)
        self.folds = make_folds(splitter, self.samples, len(dataset.y), dataset.X, dataset.y, None)
        self._note_repeats()

    @property
    def things(self) -> str:
        """What k counts."""
        return self.counted.things if self.settings.kernel is None else self.blueprint.things

    @property
    def least(self) -> int:
        """What is always in, and counts in k."""
        return self.counted.n_fixed if self.settings.kernel is None else 0

    @property
    def n_available(self) -> int:
        """How many things there are for k to count."""
        return self.blueprint.n_available(self.samples)

    def score(self, Cs: list[float], ks: list[int]) -> np.ndarray:
        """The score of every fold, C and k."""
        scores = np.empty((len(self.folds), len(Cs), len(ks)))
        for number, (model_at, X) in enumerate(self._walk(Cs, ks)):
            for row in range(len(Cs)):
                for column in range(len(ks)):
                    scores[number, row, column] = self._score(model_at(row, column), X, number)
        return scores

    def examine(self, Cs: list[float], ks: list[int], k: int) -> Examination:
        """The folds again at the last of the Cs, with the predictions of machines with one of the ks."""
        n_rows, n_classes = len(self.dataset.y), len(self.samples.classes)
        scores = np.empty((len(self.folds), len(ks)))
        decisions = np.empty(n_rows if n_classes == 2 else (n_rows, n_classes))
        fold_of = np.empty(n_rows, dtype=np.intp)
        supports = []
        for number, (model_at, X) in enumerate(self._walk(Cs, ks)):
            for column in range(len(ks)):
                scores[number, column] = self._score(model_at(-1, column), X, number)
            model = model_at(-1, ks.index(k))
            test = self.folds[number].test
            decisions[test] = model.decision_function(X)
            fold_of[test] = number
            supports.append(model.support_)
        predicted = choose_classes(decisions, self.samples.classes)
        return Examination(scores, fold_of, decisions, predicted, tuple(supports))

    def refit(self, Cs: list[float], ks: list[int], k: int) -> tuple[TableModel, SparsityPath]:
        """The model fitted to all rows, with the last of the Cs; and the path over the ks that it is on."""
        scaling = self._scaling(self.samples)
        samples = self.samples._replace(X=scaling(self.samples.X))
        column = ks.index(k)
        fit = fit_grid(self.blueprint, samples, Cs, ks, self.procedure, chosen=column, label="refit")
        machine = self._machine(fit, Cs, ks, -1, column)
        return TableModel(self.dataset.target, self.dataset.encoding, scaling, machine), fit.path(ks)

    def _walk(self, Cs: list[float], ks: list[int]) -> Iterator[tuple[Any, Matrix]]:
        """For each fold, its machines as a function of the positions of C and k, and its test rows."""

        def parts() -> Iterator[ArraySamples]:
            for fold in self.folds:
                part = self.samples.restricted_to(fold.train)
                yield part._replace(X=self._scaling(part)(part.X))

        n_folds, n_classes = len(self.folds), len(self.samples.classes)
        fits = fit_parts(self.blueprint, parts(), n_folds, n_classes, Cs, ks, self.procedure)
        for fold, fit in zip(self.folds, fits, strict=True):
            scaling = self._scaling(self.samples.restricted_to(fold.train))
            yield partial(self._machine, fit, Cs, ks), scaling(self.samples.X[fold.test])

    def _machine(self, fit: GridFit, Cs: list[float], ks: list[int], row: int, column: int) -> Machine:
        """The machine for the positions of C and k."""
        parameters = {
            "k": ks[column],
            "C": Cs[row],
            "multi_class": self.settings.multi_class,
            "shared": self.settings.shared,
            **self.counted.request._asdict(),
        }
        return assemble_machine(parameters, self.samples.classes, fit.decisions(row, column))

    def _scaling(self, part: ArraySamples) -> Scaling:
        return Scaling.learn(part.X, part.repeats, self.dataset.impute, self.settings.standardize)

    def _score(self, model: Any, X: Matrix, number: int) -> float:
        test = self.folds[number].test
        weights: Vector | None = None if self.dataset.weights is None else self.samples.repeats[test]
        try:
            return score_with(self.scorer, model, X, self.dataset.y[test], weights)
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"--scoring {self.settings.scoring} does not suit these classes or machines "
                f"({str(error).splitlines()[0]}). Try accuracy, balanced_accuracy or f1_macro."
            ) from error

    def _n_folds(self) -> int:
        """As many as asked for, or as the smallest class has rows."""
        if self.settings.cv < 2:
            raise InputError(f"--cv {self.settings.cv} makes no folds. Use 2 or more.")
        counts = np.bincount(self.samples.codes)
        smallest = self.samples.classes[counts.argmin()].item()
        if counts.min() == 1:
            raise InputError(
                f"Class {smallest!r} has one row only, and cross-validation needs two at least. "
                "Give more rows of that class, or remove it."
            )
        if counts.min() < self.settings.cv:
            rows = count(int(counts.min()), "row")
            self.notes.append(
                f"Class {smallest!r} has {rows}: {counts.min()} folds instead of {self.settings.cv}."
            )
        return min(self.settings.cv, int(counts.min()))

    def _note_repeats(self) -> None:
        is_plain = self.settings.kernel is None and self.counted.request.is_empty
        if not is_plain or np.isnan(self.samples.X).any():
            return
        repeats = find_repeats(self.samples, Exchange())
        if len(repeats):
            names = listing([self.dataset.encoding.feature_names[j] for j in repeats])
            self.notes.append(f"Features that repeat an earlier one are passed over: {names}.")


def make_blueprint(settings: Settings, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
    """What machines are fitted. The trial itself scales, so these do not."""
    if settings.kernel is None:
        return LinearBlueprint(settings.multi_class, shared=settings.shared, request=counted.request)
    settings.columns.check_no_kernel()
    kernels = [name for name in KERNELS if name != "precomputed"]
    if settings.kernel not in kernels:
        raise InputError(f"--kernel {settings.kernel} is not known. Use one of {', '.join(kernels)}.")
    return KernelBlueprint(
        settings.multi_class,
        kernel=settings.kernel,
        gamma=settings.gamma,
        random_state=settings.seed,
        shared=settings.shared,
    )


def make_procedure(settings: Settings) -> Procedure:
    return Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)


def find_scorer(name: str) -> Any:
    if name not in get_scorer_names():
        raise InputError(f"--scoring {name} is not known. {nearest(name, get_scorer_names())}")
    return get_scorer(name)
