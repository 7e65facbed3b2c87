"""The choice of k and C for a table by repeated cross-validation, and the fit to all its rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags

from kmargin import Exchange, SparsityPath
from kmargin.core import validation
from kmargin.core.arrays import Indices, Matrix
from kmargin.core.labels import class_pairs
from kmargin.core.validation import InputError, blame_input, count, listing, nearest
from kmargin.data.samples.array import ArrayFolds, read_samples
from kmargin.estimators.cv import CrossValidation, FoldModel, NotYetCalibrated
from kmargin.fitting.decisions import KERNELS
from kmargin.fitting.drop_costs import Worth, improve_by_exchanges
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint, repeats_to_report
from kmargin.model_selection.nested import ScoredRows
from kmargin.model_selection.scores import (
    SELECTIONS,
    Fold,
    ScoreTable,
    make_folds,
    make_splitters,
    score_with,
)
from kmargin.tables.columns import (
    NO_REQUEST,
    ColumnRequest,
    CountedFeatures,
    Scaling,
    column_medians,
    count_features,
)
from kmargin.tables.dataset import Dataset

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0)
SMALLEST_C, LARGEST_C = 1e-5, 1e4  # limits of C if the default grid is extended
MAX_GROWTHS = 3  # how often the grid is extended because the choice lies at its edge
N_EQUAL_CHOICES = 3  # the folds are not repeated again if this many repeats in a row lead to the same choice
MAX_REPEATS = 5  # the default maximum number of repeats of the folds
MANY_ROWS = 20_000  # from so many rows on, fits take long: no repeats by default, no replacements, no halves
MANY_CLASSIFIERS = 10  # from so many binary classifiers on, folds are not repeated by default
MAX_REPLACED_UNITS = 40  # replacements are computed for models of at most so many features or groups


@dataclass(frozen=True)
class Settings:
    """How models are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] | None = None  # None: `DEFAULT_CS`, extended while the choice lies at the edge
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # the maximum number of repeats of the folds; None: `TableSearch.max_repeats`
    nested: bool = True
    permutations: int = 0
    pairs: int = 25  # pairs of random halves of the rows, for selection frequencies
    proba: bool = False  # whether predictions come with probabilities
    seed: int = 0
    jobs: int | None = None
    scoring: str = "accuracy"
    select: str = "1se"
    tolerance: float = 0.01
    standardize: bool = True
    balanced: bool = False
    multi_class: str = "ovo"
    shared: bool = True
    columns: ColumnRequest = NO_REQUEST
    verbose: int = 0

    def check(self) -> None:
        """Raises InputError for values that are invalid for every table."""
        kernels = [name for name in KERNELS if name != "precomputed"]
        valid = {  # for each option: whether its value is valid; else the end of "--option value is not ..."
            "select": (self.select in SELECTIONS, "known. Use best, 1se or tolerance"),
            "repeats": (self.repeats is None or self.repeats >= 1, "a number of repeats. Use 1 or more"),
            "cv": (self.cv >= 2, "a number of folds. Use 2 or more"),
            "pairs": (self.pairs >= 0, "a number of pairs. Use 0 for none, or 25"),
            "permutations": (self.permutations >= 0, "a number of permutations. Use 0 for none, or 100"),
            "seed": (0 <= self.seed < 2**32, f"a seed. Use 0 to {2**32 - 1}"),
            "jobs": (self.jobs != 0, "a number of jobs. Use 1 or more, or -1 for all cores"),
            "kernel": (self.kernel in (None, *kernels), f"known. Use one of {', '.join(kernels)}"),
        }
        for option, (is_valid, words) in valid.items():
            if not is_valid:
                raise InputError(f"--{option} {getattr(self, option)} is not {words}.")
        if self.scoring not in get_scorer_names():
            hint = nearest(self.scoring, get_scorer_names())
            raise InputError(f"--scoring {self.scoring} is not known. {hint}")

    def blueprint(self, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
        """Return the specification of the models to fit, which get features that are already scaled."""
        if self.kernel is None:
            return LinearBlueprint(self.multi_class, shared=self.shared, request=counted.request)
        options = ("--keep", "--avoid", "--sign", "--groups", "--group-by", "--each-value")
        given = [option for option, value in zip(options, self.columns, strict=True) if value]
        if given:
            raise InputError(
                f"{given[0]} applies to features, but with --kernel k counts training points. Leave out one "
                "of the two options."
            )
        return KernelBlueprint(
            self.multi_class,
            kernel=self.kernel,
            gamma=self.gamma,
            random_state=self.seed,
            shared=self.shared,
        )


class Preparation(TransformerMixin, BaseEstimator):
    """A transformer that learns from the training rows how missing numbers are filled in and features scaled.

    The median of a column without values is 0. The standard deviation of a constant column counts as 1.
    """

    def __init__(self, impute: bool, standardize: bool) -> None:
        self.impute = impute
        self.standardize = standardize

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> "Preparation":
        medians = column_medians(X) if self.impute else None
        self.scaling_ = Scaling(medians, np.zeros(X.shape[1]), np.ones(X.shape[1]))
        if self.standardize:
            shares = None if sample_weight is None else sample_weight / sample_weight.max()
            scaler = StandardScaler().fit(self.scaling_(X), sample_weight=shares)
            self.scaling_ = Scaling(medians, scaler.mean_, scaler.scale_)
        return self

    def transform(self, X: Matrix) -> Matrix:
        return self.scaling_(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TableSearch:
    """A data set and settings, with methods to fit and score models for any C and k on folds of its rows."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        settings.check()
        self.dataset, self.settings = dataset, settings
        self.counted = count_features(dataset.encoding, settings.columns)
        self.blueprint = settings.blueprint(self.counted)
        self.procedure = Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)
        self.preparation = Preparation(dataset.impute, settings.standardize)
        groups = dataset.groups
        self.rows = ScoredRows(dataset.X, dataset.y, dataset.weights, groups, self._score, settings.scoring)
        with blame_input():
            self.blueprint.check()
            class_weight = "balanced" if settings.balanced else None
            self.samples = read_samples(dataset.X, dataset.y, dataset.weights, class_weight)
            validation.check_tolerance(settings.tolerance)
            self.n_available = self.blueprint.units(self.samples).n_units
        codes = self.samples.codes
        if groups is not None:  # a group counts once for each class that it has rows of
            codes = np.unique(np.column_stack([groups, codes]), axis=0)[:, 1]
        self.class_counts = np.bincount(codes)
        self.notes: list[str] = []
        self.n_folds = self._count_folds()

    def _score(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a model as --scoring says."""
        try:
            return score_with(get_scorer(self.settings.scoring), model, X, y, sample_weight)
        except NotYetCalibrated:
            raise
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"--scoring {self.settings.scoring} is not applicable to this model "
                f"({str(error).splitlines()[0]}). Try accuracy, balanced_accuracy or f1_macro."
            ) from error

    def _count_folds(self) -> int:
        """The number of folds: as requested, but at most the number of rows or groups of each class."""
        asked, counts = self.settings.cv, self.class_counts
        unit = (
            "group" if self.dataset.grouped_by else "row" if self.dataset.groups is None else "different row"
        )
        smallest = self.samples.classes[counts.argmin()].item()
        n_folds = min(asked, int(counts.min()))
        if n_folds == 1:
            raise InputError(
                f"Class {smallest!r} has only one {unit}, but cross-validation needs at least two. Give more "
                f"{unit}s of that class, or remove it."
            )
        if n_folds < asked:
            self.notes.append(
                f"Class {smallest!r} has {count(n_folds, unit)}: {n_folds} folds instead of {asked}."
            )
        return n_folds

    def folds(self, repeat: int) -> list[Fold]:
        """Stratified folds that keep groups together; each `repeat` shuffles the rows differently.

        The folds are those of estimators with ``cv=n_folds`` and several repeats.
        """
        y, groups, seed = self.dataset.y, self.dataset.groups, (self.settings.seed + repeat) % 2**32
        splitter = make_splitters(self.n_folds, 2, seed, y, groups)[0]
        try:
            return make_folds(splitter, self.samples, len(y), self.dataset.X, y, groups)
        except ValueError as error:
            raise InputError(
                f"Rows that stay together leave a fold without a class ({str(error).split('. ')[0]}). "
                f"Use fewer folds than {self.n_folds} with --cv, or another --seed."
            ) from error

    def cross_validate(self, Cs: list[float], ks: list[int], repeat: int = 0) -> CrossValidation:
        """Fit and score a model for every C and k in each fold of one repeat of the cross-validation."""
        folds = ArrayFolds(
            self.blueprint,
            self.samples,
            self.samples,
            self.folds(repeat),
            None if self.rows.is_accuracy else self._score,
            weighted=self.dataset.weights is not None,
            groups=self.dataset.groups,
            prepare=self.preparation,
            n_jobs=self.settings.jobs,
        )
        label = f"choosing k and C, repeat {repeat + 1}"
        with blame_input():
            return CrossValidation(
                folds, self.blueprint, len(self.samples.classes), Cs, ks, self.procedure, self.model_at, label
            )

    def model_at(self, fit: GridFit, row: int, column: int) -> FoldModel:
        """The model for the C at `row` and the k at `column` of the grid that was fitted in a fold."""
        return FoldModel(fit.decisions(row, column), self.samples.classes, self.settings.multi_class)

    def on_rows(self, rows: Indices) -> "TableSearch":
        """The same search, restricted to some of the rows."""
        return TableSearch(self.dataset.restricted_to(rows), replace(self.settings, verbose=0))

    @property
    def things(self) -> str:
        """What k counts: features, variables, groups or training points."""
        return self.counted.things if self.settings.kernel is None else self.blueprint.things

    @property
    def is_large(self) -> bool:
        return len(self.dataset.y) >= MANY_ROWS

    @property
    def max_repeats(self) -> int:
        """The maximum number of repeats of the folds: --repeats, or by default 5; 1 if fits take long."""
        if self.settings.repeats is not None:
            return self.settings.repeats
        n_classifiers = len(class_pairs(len(self.samples.classes), self.settings.multi_class))
        return 1 if self.is_large or n_classifiers >= MANY_CLASSIFIERS else MAX_REPEATS

    def fit(self, choice: "Choice", n_best: int) -> tuple[Pipeline, dict[str, Worth]]:
        """Fit to all rows, with the chosen k and C.

        Returns a pipeline of the preparation and the model, and the drop cost of each unit (the feature or
        group that k counts) by its label, with its `n_best` best replacements. A replacement that lowers the
        objective is made. Costs and replacements are only computed for linear models of at most
        `MAX_REPLACED_UNITS` units that all binary classifiers share, and not if ``n_best=0``.
        """
        preparation, samples = self._prepare()
        blueprint, C, k = self.blueprint, choice.C, choice.k
        decisions = fit_grid(blueprint, samples, [C], [k], self.procedure, label="refit").decisions(0, 0)
        used, worths = np.flatnonzero(decisions.coef.any(axis=0)), {}
        is_shared = blueprint.shared or len(decisions.coef) == 1
        if (
            isinstance(blueprint, LinearBlueprint)
            and (n_best > 0 and is_shared and not self.is_large)
            and len(self.counted.labels_of(used)) <= MAX_REPLACED_UNITS
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first fit has raised the same warnings
                better, found = improve_by_exchanges(blueprint, samples, C, used, self.procedure, n_best)
            decisions = decisions if better is None else better.decisions(0, 0)
            worths = {self.counted.labels[int(worth.columns[0])]: worth for worth in found}
        model = FoldModel(decisions, self.samples.classes, self.settings.multi_class)
        model.k_, model.C_ = k, C
        with blame_input():
            (model.calibration_,) = choice.first.calibrate(choice.row, choice.column)
        return Pipeline([("prepare", preparation), ("model", model)]), worths

    def path(self, Cs: list[float], ks: list[int]) -> tuple[Preparation, SparsityPath]:
        """Return the preparation, and the models of all ks at the last C, both fitted to all rows."""
        preparation, samples = self._prepare()
        fit = fit_grid(self.blueprint, samples, Cs, ks, self.procedure, label="refit")
        return preparation, fit.paths[-1]

    def _prepare(self) -> tuple[Preparation, Any]:
        """Return the preparation fitted to all rows, and all samples transformed by it."""
        preparation = clone(self.preparation).fit(self.samples.X, sample_weight=self.samples.repeats)
        return preparation, replace(self.samples, X=preparation.transform(self.samples.X))

    def note_repeats(self) -> None:
        """Add a note that names the features which duplicate another one, and so are never chosen."""
        is_plain = self.settings.kernel is None and self.counted.request.is_empty
        if not is_plain or np.isnan(self.samples.X).any():
            return
        repeats = repeats_to_report(self.samples, Exchange())
        if len(repeats):
            names = listing([self.dataset.encoding.feature_names[j] for j in repeats])
            self.notes.append(f"Features that repeat an earlier one are passed over: {names}.")


@dataclass(frozen=True)
class Choice:
    """The chosen C and k, and the table of scores from which they were chosen."""

    row: int  # the position of the chosen C in the table
    column: int  # the position of the chosen k in the table
    table: ScoreTable
    first: CrossValidation  # the models of the first repeat of the folds
    n_repeats: int
    has_settled: bool  # whether the last repeats led to the same choice, or only one was asked for
    had_alternatives: bool  # whether there was more than one C or k to choose from

    @property
    def k(self) -> int:
        return self.table.ks[self.column]

    @property
    def C(self) -> float:
        return self.table.Cs[self.row]

    @property
    def score(self) -> float:
        return float(self.table.mean[self.row, self.column])


def choose(search: TableSearch, n_repeats: int | None = None) -> Choice:
    """Choose C and k by cross-validation, repeated `n_repeats` times; if None, until the choice is stable."""
    settings = search.settings
    Cs, ks = resolve_grid(search)
    is_open = len(Cs) * (len(ks) if settings.k is None else 1) > 1
    most = n_repeats or (search.max_repeats if is_open else 1)
    if not is_open and (settings.repeats or 1) > 1:
        search.notes.append(
            f"--repeats {settings.repeats} has no effect: k and C are given, so nothing is left to "
            "choose, and one division into folds is enough."
        )
    for _ in range(MAX_GROWTHS + 1):
        first = search.cross_validate(Cs, ks)
        table = first.table
        at = choose_from(table, settings)
        # An extended grid is fitted anew, because each fit starts from the support of its neighbour.
        wider = grow_grid(search, Cs, ks, at)
        if wider == (Cs, ks):
            break
        Cs, ks = wider
    n_done, n_equal = 1, 1
    while n_done < most and (n_repeats is not None or n_equal < N_EQUAL_CHOICES):
        scores = search.cross_validate(first.Cs, first.ks, n_done).scores
        table = replace(table, scores=np.concatenate([table.scores, scores]))
        before, at = at, choose_from(table, settings)
        n_done, n_equal = n_done + 1, n_equal + 1 if at == before else 1
    has_settled = not is_open or search.max_repeats == 1 or n_equal >= N_EQUAL_CHOICES
    return Choice(*at, table, first, n_done, has_settled, is_open)


def choose_from(table: ScoreTable, settings: Settings) -> tuple[int, int]:
    """The positions in the table of the chosen C and k; if k is given, only C is chosen."""
    if settings.k is None:
        return table.choose(settings.select, settings.tolerance)
    column = table.ks.index(settings.k)
    return table.at_k(column).choose(settings.select, settings.tolerance)[0], column


def grow_grid(
    search: TableSearch, Cs: list[float], ks: list[int], at: tuple[int, int]
) -> tuple[list[float], list[int]]:
    """Extend the grid beyond an edge at which the choice, `at`, lies; values that the user gave stay."""
    settings = search.settings
    if settings.Cs is None:
        if at[0] == 0 and Cs[0] / 10 >= 0.99 * SMALLEST_C:
            Cs = [Cs[0] / 10, *Cs]
        elif at[0] == len(Cs) - 1 and Cs[-1] * 10 <= 1.01 * LARGEST_C:
            Cs = [*Cs, Cs[-1] * 10]
    if settings.ks is None and settings.k is None and at[1] == 0 and ks[0] < search.n_available:
        ks = [min(2 * ks[0], search.n_available), *ks]
    return Cs, ks


def resolve_grid(search: TableSearch) -> tuple[list[float], list[int]]:
    """The values of C, ascending, and of k, descending, to try: for a given k, also k - 1 and k + 1."""
    settings, things, n_available = search.settings, search.things, search.n_available
    n_fixed = search.counted.n_fixed if settings.kernel is None else 0
    given = [] if settings.k is None else [settings.k]
    for k in (*given, *(settings.ks if isinstance(settings.ks, list) else [])):
        if not 0 <= k <= n_available:
            raise InputError(f"k = {k} is not possible with {n_available} {things}. Use 0 to {n_available}.")
        if k < n_fixed:
            kept = listing(search.counted.labels_of(np.flatnonzero(search.counted.always_in)))
            raise InputError(
                f"k = {k} is less than the {n_fixed} {things} of --keep ({kept}), which count in k. Use "
                f"{n_fixed} or more, or keep fewer."
            )
    with blame_input():
        Cs = validation.resolve_Cs(list(DEFAULT_CS if settings.Cs is None else settings.Cs))
        if settings.k is not None and settings.ks is None:
            ks = [k for k in (settings.k - 1, settings.k + 1) if 1 <= k <= n_available]
        else:
            largest = search.blueprint.largest_default(search.samples)
            ks = validation.resolve_ks(settings.ks, n_available, largest, things)
    return Cs, sorted({*given, *(k for k in ks if k >= n_fixed)} or {n_fixed}, reverse=True)
