"""The search for k and C on the rows of a table: settings, rounds of folds, a grid that grows, final fits."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline
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
from kmargin.fitting.spec import Decisions, KernelBlueprint, LinearBlueprint, repeats_to_report
from kmargin.model_selection.nested import ScoredRows
from kmargin.model_selection.scores import (
    SELECTIONS,
    Fold,
    ScoreTable,
    make_folds,
    make_splitters,
    score_with,
)
from kmargin.tables.columns import NO_REQUEST, ColumnRequest, CountedFeatures, Scaling, count_features
from kmargin.tables.dataset import Dataset

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0)
SMALLEST_C, LARGEST_C = 1e-5, 1e4  # bounds on the growth of the default grid
MAX_GROWTHS = 3
N_EQUAL_ROUNDS = 3  # rounds in a row that lead to the same choice end the search
MAX_ROUNDS = 5
MANY_ROWS = 20_000  # from here on folds differ little, and extras would take long
MANY_CLASSIFIERS = 10
MAX_REPLACED_UNITS = 40  # replacements are computed for models of at most this many units


@dataclass(frozen=True)
class Settings:
    """How models are fitted and chosen."""

    k: int | None = None  # None: chosen by cross-validation
    ks: Any = None  # the values of k to try, see `SparseSVCCV`
    Cs: Sequence[float] | None = None  # None: `DEFAULT_CS`, and beyond if the best is at the edge
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # the maximum number of rounds of folds; None: see `TableSearch.max_rounds`
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
        valid = {  # for each option: whether its value is valid, what it is not, and what to use instead
            "select": (self.select in SELECTIONS, "known. Use best, 1se or tolerance"),
            "repeats": (self.repeats is None or self.repeats >= 1, "a number of rounds. Use 1 or more"),
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
        """Return the specification of the models to fit. Folds scale their rows, so the models do not."""
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
    """Missing numbers filled in and features scaled, all of it learned from the training rows."""

    def __init__(self, impute: bool, standardize: bool) -> None:
        self.impute = impute
        self.standardize = standardize

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> "Preparation":
        self.scaling_ = Scaling.learn(X, sample_weight, self.impute, self.standardize)
        return self

    def transform(self, X: Matrix) -> Matrix:
        return self.scaling_(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class FinalFit(NamedTuple):
    """A model fitted to all rows, and what each unit contributes, by label, where that is known."""

    preparation: Preparation
    decisions: Decisions
    worths: dict[str, Worth]


class TableSearch:
    """A data set with all that is needed to fit and score models for any C and k on folds of its rows."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        settings.check()
        self.dataset = dataset
        self.settings = settings
        self.counted = count_features(dataset.encoding, settings.columns)
        self.blueprint = settings.blueprint(self.counted)
        self.procedure = Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)
        self.preparation = Preparation(dataset.impute, settings.standardize)
        self.rows = ScoredRows(
            dataset.X, dataset.y, dataset.weights, dataset.groups, self._score, settings.scoring
        )
        with blame_input():
            self.blueprint.check()
            class_weight = "balanced" if settings.balanced else None
            self.samples = read_samples(dataset.X, dataset.y, dataset.weights, class_weight)
            validation.check_tolerance(settings.tolerance)
            self.n_available = self.blueprint.units(self.samples).n_units
        codes, groups = self.samples.codes, dataset.groups
        self.class_counts = np.bincount(codes)  # rows of each class, or groups that have rows of it
        if groups is not None:
            self.class_counts = np.array(
                [len(np.unique(groups[codes == code])) for code in range(codes.max() + 1)]
            )
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
        """As many folds as asked for, but at most as many as the smallest class has rows or groups."""
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

    def folds(self, round: int) -> list[Fold]:
        """Stratified folds that keep groups together, shuffled in another way each round.

        They are those of the estimators with ``cv=n_folds`` and several repeats.
        """
        y, groups, seed = self.dataset.y, self.dataset.groups, (self.settings.seed + round) % 2**32
        splitter = make_splitters(self.n_folds, 2, seed, y, groups)[0]
        try:
            return make_folds(splitter, self.samples, len(y), self.dataset.X, y, groups)
        except ValueError as error:
            raise InputError(
                f"Rows that stay together leave a fold without a class ({str(error).split('. ')[0]}). "
                f"Use fewer folds than {self.n_folds} with --cv, or another --seed."
            ) from error

    def cross_validate(self, Cs: list[float], ks: list[int], round: int = 0) -> CrossValidation:
        """The models of every fold of a round, C and k, with their scores."""
        folds = ArrayFolds(
            self.blueprint,
            self.samples,
            self.samples,
            self.folds(round),
            None if self.rows.is_accuracy else self._score,
            weighted=self.dataset.weights is not None,
            groups=self.dataset.groups,
            prepare=self.preparation,
            n_jobs=self.settings.jobs,
        )
        label = f"choosing k and C, round {round + 1}"
        with blame_input():
            return CrossValidation(
                folds, self.blueprint, len(self.samples.classes), Cs, ks, self.procedure, self.model_at, label
            )

    def model_at(self, fit: GridFit, row: int, column: int) -> FoldModel:
        """The model of a fold for one C and k."""
        return FoldModel(fit.decisions(row, column), self.samples.classes, self.settings.multi_class)

    def on_rows(self, rows: Indices) -> "TableSearch":
        """The same search on some of the rows."""
        return TableSearch(self.dataset.restricted_to(rows), replace(self.settings, verbose=0))

    @property
    def things(self) -> str:
        """The name of what k counts."""
        return self.counted.things if self.settings.kernel is None else self.blueprint.things

    @property
    def is_large(self) -> bool:
        return len(self.dataset.y) >= MANY_ROWS

    @property
    def max_rounds(self) -> int:
        """The largest number of rounds: as asked for, else one where rows or classes are many."""
        if self.settings.repeats is not None:
            return self.settings.repeats
        n_classifiers = len(class_pairs(len(self.samples.classes), self.settings.multi_class))
        return 1 if self.is_large or n_classifiers >= MANY_CLASSIFIERS else MAX_ROUNDS

    def fit_all(self, C: float, k: int, n_best: int = 1) -> FinalFit:
        """Fit to all rows: the same model whether its C and k were chosen or given.

        Single exchanges that lower the objective are made while there are any, in linear models of at most
        `MAX_REPLACED_UNITS` units that all binary classifiers share. The `n_best` best replacements of each
        unit are reported; with ``n_best=0`` none are looked for, and no exchange is made.
        """
        preparation, samples = self._prepare()
        decisions = fit_grid(self.blueprint, samples, [C], [k], self.procedure, label="refit").decisions(0, 0)
        used, worths = np.flatnonzero(decisions.coef.any(axis=0)), {}
        is_one_set = self.blueprint.shared or len(decisions.coef) == 1
        if (
            isinstance(self.blueprint, LinearBlueprint)
            and (n_best > 0 and is_one_set and not self.is_large)
            and len(self.counted.labels_of(used)) <= MAX_REPLACED_UNITS
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the first fit has warned already
                better, found = improve_by_exchanges(self.blueprint, samples, C, used, self.procedure, n_best)
            decisions = decisions if better is None else better.decisions(0, 0)
            worths = {self.counted.labels[int(worth.columns[0])]: worth for worth in found}
        return FinalFit(preparation, decisions, worths)

    def path(self, Cs: list[float], ks: list[int]) -> tuple[Preparation, SparsityPath]:
        """Return the preparation and the path over all ks at the last C, fitted to all rows."""
        preparation, samples = self._prepare()
        fit = fit_grid(self.blueprint, samples, Cs, ks, self.procedure, label="refit")
        return preparation, fit.paths[-1]

    def _prepare(self) -> tuple[Preparation, Any]:
        """Return the preparation fitted to all rows, and all samples transformed by it."""
        preparation = Preparation(self.dataset.impute, self.settings.standardize)
        preparation.fit(self.samples.X, sample_weight=self.samples.repeats)
        return preparation, replace(self.samples, X=preparation.transform(self.samples.X))

    def note_repeats(self) -> None:
        """Add a note that names the features which repeat another one, and so are never chosen."""
        is_plain = self.settings.kernel is None and self.counted.request.is_empty
        if not is_plain or np.isnan(self.samples.X).any():
            return
        repeats = repeats_to_report(self.samples, Exchange())
        if len(repeats):
            names = listing([self.dataset.encoding.feature_names[j] for j in repeats])
            self.notes.append(f"Features that repeat an earlier one are passed over: {names}.")


@dataclass(frozen=True)
class Choice:
    """The chosen C and k, and the one table of scores that they were chosen by."""

    row: int
    column: int
    table: ScoreTable
    first: CrossValidation  # the models of the first round
    n_rounds: int
    has_settled: bool
    had_alternatives: bool
    chose_k: bool  # whether k was not given

    @property
    def k(self) -> int:
        return self.table.ks[self.column]

    @property
    def C(self) -> float:
        return self.table.Cs[self.row]

    @property
    def score(self) -> float:
        return float(self.table.mean[self.row, self.column])


def choose(search: TableSearch, n_rounds: int | None = None) -> Choice:
    """Score all C and k in rounds of folds: `n_rounds`, or until the choice has settled."""
    settings = search.settings
    Cs, ks = resolve_grid(search)
    is_open = len(Cs) * (len(ks) if settings.k is None else 1) > 1
    most = n_rounds or (search.max_rounds if is_open else 1)
    if not is_open and (settings.repeats or 1) > 1:
        search.notes.append(
            f"--repeats {settings.repeats} has no effect: k and C are given, so nothing is left to "
            "choose, and one round of folds is enough."
        )
    for _ in range(MAX_GROWTHS + 1):
        first = search.cross_validate(Cs, ks)
        table = first.table
        at = choose_from(table, settings)
        # A grid that grows is scored anew: along a path each model depends on its neighbours.
        wider = grow_grid(search, Cs, ks, at)
        if wider == (Cs, ks):
            break
        Cs, ks = wider
    n_done, n_equal = 1, 1
    while n_done < most and (n_rounds is not None or n_equal < N_EQUAL_ROUNDS):
        scores = search.cross_validate(first.Cs, first.ks, n_done).scores
        table = replace(table, scores=np.concatenate([table.scores, scores]))
        before, at = at, choose_from(table, settings)
        n_done, n_equal = n_done + 1, n_equal + 1 if at == before else 1
    has_settled = not is_open or search.max_rounds == 1 or n_equal >= N_EQUAL_ROUNDS
    return Choice(*at, table, first, n_done, has_settled, is_open, chose_k=settings.k is None)


def choose_from(table: ScoreTable, settings: Settings) -> tuple[int, int]:
    """The positions of the chosen C and k; if k is given, only C is chosen."""
    if settings.k is None:
        return table.choose(settings.select, settings.tolerance)
    column = table.ks.index(settings.k)
    return table.at_k(column).choose(settings.select, settings.tolerance)[0], column


def grow_grid(
    search: TableSearch, Cs: list[float], ks: list[int], at: tuple[int, int]
) -> tuple[list[float], list[int]]:
    """The grid with values beyond the edge at which the choice lies, unless the user gave the grid."""
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
    """The values of C, ascending, and of k, descending; beside a given k, one more and one fewer."""
    settings, things, n_available = search.settings, search.things, search.n_available
    n_fixed = search.counted.n_fixed if settings.kernel is None else 0
    asked = [] if settings.k is None else [settings.k]
    for k in (*asked, *(settings.ks if isinstance(settings.ks, list) else [])):
        if not 0 <= k <= n_available:
            raise InputError(f"k = {k} is not possible with {n_available} {things}. Use 0 to {n_available}.")
        if k < n_fixed:
            kept = listing(search.counted.labels_of(np.flatnonzero(search.counted.always_in)))
            raise InputError(
                f"k = {k} is less than the {n_fixed} {things} of --keep ({kept}), which count in k. Use "
                f"{n_fixed} or more, or keep fewer."
            )
    with blame_input():
        largest = search.blueprint.largest_default(search.samples)
        ks = validation.resolve_ks(settings.ks, n_available, largest, things)
        if settings.k is not None and settings.ks is None:
            ks = [k for k in (settings.k - 1, settings.k + 1) if 1 <= k <= n_available]
        ks = [k for k in ks if k >= n_fixed] or [n_fixed]
        Cs = DEFAULT_CS if settings.Cs is None else settings.Cs
        return validation.resolve_Cs(list(Cs)), sorted({*ks, *asked}, reverse=True)


def fit_choice(search: TableSearch, choice: Choice) -> Pipeline:
    """The preparation and the model with the chosen C and k, fitted to all rows, with probabilities."""
    n_best = 1 if choice.k < search.n_available else 0
    fitted = search.fit_all(choice.C, choice.k, n_best)
    model = FoldModel(fitted.decisions, search.samples.classes, search.settings.multi_class)
    with blame_input():
        (model.calibration_,) = choice.first.calibrate(choice.row, choice.column)
    model.k_, model.C_ = choice.k, choice.C
    return Pipeline([("prepare", fitted.preparation), ("model", model)])
