"""The choice of k and C for a table by repeated cross-validation, and the fit to all its rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from kmargin import SparsityPath
from kmargin.core import validation
from kmargin.core.labels import class_pairs
from kmargin.core.validation import InputError, blame_input, count, listing, nearest
from kmargin.data.samples.array import ArrayFolds, read_samples
from kmargin.estimators.cv import CrossValidation, FoldModel, NotYetCalibrated
from kmargin.fitting.decisions import KERNELS
from kmargin.fitting.drop_costs import Worth, improve_by_exchanges
from kmargin.fitting.fit import GridFit, Procedure, fit_grid
from kmargin.fitting.spec import KernelBlueprint, LinearBlueprint
from kmargin.model_selection import scores
from kmargin.model_selection.nested import ScoredRows
from kmargin.tables.columns import CountedFeatures, Roles, Scaling, learn_scaling
from kmargin.tables.dataset import Dataset

DEFAULT_CS = (0.01, 0.1, 1.0, 10.0)
SMALLEST_C, LARGEST_C = 1e-5, 1e4  # the default grid of C is not extended beyond these
MAX_GROWTHS = 3  # how many times at most the grid is extended because the best C or k lies at its edge
N_EQUAL_CHOICES = 3  # stop when this many repeats of the cross-validation in a row choose the same C and k
MAX_REPEATS = 5  # default maximum number of repeats of the cross-validation
# From so many rows on, cross-validation is not repeated by default, and the drop costs of features and the
# selection frequencies on random halves of the rows are not computed, to save time.
MANY_ROWS = 20_000
MANY_CLASSIFIERS = 10  # with so many binary classifiers or more, cross-validation is not repeated by default
MAX_REPLACED_UNITS = 40  # models with more features (or groups) get no drop costs and replacements


@dataclass(frozen=True)
class Settings:
    """How models of a table are fitted and chosen. Most fields are options of the command `kmargin fit`."""

    k: int | None = None  # number of features (groups, points) to use; None: chosen by cross-validation
    ks: Any = None  # list of values of k to try, or at most how many; None: up to 20, log-spaced
    Cs: Sequence[float] | None = None  # values to try; None: DEFAULT_CS, extended if the best is at an end
    kernel: str | None = None
    gamma: float | str = "scale"
    cv: int = 5
    repeats: int | None = None  # maximum number of cross-validation repeats; None: 5, or 1 if fits are slow
    nested: bool = True
    permutations: int = 0
    pairs: int = 25  # number of pairs of random halves of the rows, for selection frequencies
    proba: bool = False  # whether the table of predictions has columns with probabilities
    seed: int = 0
    jobs: int | None = None
    scoring: str = "accuracy"
    select: str = "1se"
    tolerance: float = 0.01
    standardize: bool = True
    balanced: bool = False
    multi_class: str = "ovo"
    shared: bool = True
    verbose: int = 0

    def check(self, roles: Roles) -> None:
        """Raises InputError for options that are invalid for every table, or would have no effect."""
        kernels, scorers = [name for name in KERNELS if name != "precomputed"], get_scorer_names()
        has_gamma = self.gamma == Settings.gamma or self.kernel not in (None, "linear")
        tolerates = self.select == "tolerance" or self.tolerance == Settings.tolerance
        encodes = bool(roles.encode) or not roles.each_value
        valid = {  # for each option: is it valid, and the end of the error message "--option value is not"
            "select": (self.select in scores.SELECTIONS, "known. Use best, 1se or tolerance."),
            "repeats": (self.repeats is None or self.repeats >= 1, "a number of repeats. Use 1 or more."),
            "cv": (self.cv >= 2, "a number of folds. Use 2 or more."),
            "pairs": (self.pairs >= 0, "a number of pairs. Use 0 for none, or 25."),
            "permutations": (self.permutations >= 0, "a number of permutations. Use 0 for none, or 100."),
            "seed": (0 <= self.seed < 2**32, f"a seed. Use 0 to {2**32 - 1}."),
            "jobs": (self.jobs != 0, "a number of jobs. Use 1 or more, or -1 for all cores."),
            "kernel": (self.kernel in (None, *kernels), f"known. Use one of {', '.join(kernels)}."),
            "gamma": (has_gamma, "used without --kernel rbf, poly or sigmoid. Add that, or drop it."),
            "tolerance": (tolerates, "used without --select tolerance. Add that, or drop it."),
            "each-value": (encodes, "used without --encode onehot. Add that, or drop it."),
            "scoring": (self.scoring in scorers, f"known. {nearest(self.scoring, scorers)}"),
        }
        for option, (is_valid, words) in valid.items():
            if not is_valid:
                raise InputError(f"--{option} {vars(self).get(option, '')}".rstrip() + f" is not {words}")
        counting = (roles.keep, roles.avoid, roles.signs, roles.groups, roles.group_by, roles.each_value)
        if self.kernel is not None and any(counting):
            raise InputError(
                "--keep, --avoid, --sign, --groups, --group-by and --each-value apply to features, but with "
                "--kernel k counts training points. Leave them out, or --kernel."
            )

    def blueprint(self, counted: CountedFeatures) -> LinearBlueprint | KernelBlueprint:
        """Return the specification of the linear or kernel models to fit to features already scaled."""
        if self.kernel is None:
            return LinearBlueprint(self.multi_class, shared=self.shared, request=counted.request)
        return KernelBlueprint(
            self.multi_class, kernel=self.kernel, gamma=self.gamma, random_state=self.seed, shared=self.shared
        )


class TableSearch:
    """A data set and settings, with methods to fit and score models for any C and k on folds of its rows."""

    def __init__(self, dataset: Dataset, settings: Settings) -> None:
        settings.check(dataset.roles)
        self.dataset, self.settings = dataset, settings
        self.counted = dataset.counted
        self.blueprint = settings.blueprint(self.counted)
        self.procedure = Procedure(n_jobs=settings.jobs, random_state=settings.seed, verbose=settings.verbose)
        groups, roles = dataset.groups, dataset.roles
        self.learn = partial(learn_scaling, impute=roles.impute is not None, standardize=settings.standardize)
        self.rows = ScoredRows(dataset.X, dataset.y, dataset.weights, groups, self._score, settings.scoring)
        with blame_input():
            self.blueprint.check()
            weighting = "balanced" if settings.balanced else None
            self.samples = read_samples(dataset.X, dataset.y, dataset.weights, weighting)
            validation.check_tolerance(settings.tolerance)
            self.n_available = self.blueprint.units(self.samples).n_units
        codes = self.samples.codes
        if groups is not None:  # count groups, not rows: a group counts once for each of its classes
            codes = np.unique(np.column_stack([groups, codes]), axis=0)[:, 1]
        counts = np.bincount(codes)
        rarest, n_rarest = self.samples.classes[counts.argmin()].item(), int(counts.min())
        row = "group" if roles.grouped_by else "row" if groups is None else "different row"
        self.rare = f"Class {rarest!r} has {count(n_rarest, row)}"
        self.is_large = len(dataset.y) >= MANY_ROWS
        # what k counts: features, variables, groups or training points
        self.unit_label = self.counted.unit_label if settings.kernel is None else self.blueprint.unit_label
        self.notes: list[str] = []
        self.n_folds = min(settings.cv, n_rarest)
        if self.n_folds < settings.cv:
            self.notes.append(f"{self.rare}: {self.n_folds} folds instead of {settings.cv}.")

    def _score(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a model by the scikit-learn metric that the option --scoring names."""
        try:
            return scores.score_with(get_scorer(self.settings.scoring), model, X, y, sample_weight)
        except NotYetCalibrated:
            raise
        except (ValueError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            problem = f"--scoring {self.settings.scoring} is not applicable to this model ({reason})"
            raise InputError(f"{problem}. Try accuracy, balanced_accuracy or f1_macro.") from error

    def folds(self, repeat: int) -> list[scores.Fold]:
        """Return stratified folds that keep groups together; the number `repeat` determines the shuffling."""
        if self.n_folds == 1:
            advice = "Give more of that class, or remove it."
            raise InputError(f"{self.rare}, but cross-validation needs at least two. {advice}")
        y, groups, seed = self.dataset.y, self.dataset.groups, (self.settings.seed + repeat) % 2**32
        splitter = scores.make_splitters(self.n_folds, 2, seed, y, groups)[0]
        try:
            return scores.make_folds(splitter, self.samples, len(y), self.dataset.X, y, groups)
        except ValueError as error:
            raise InputError(
                f"Rows that stay together leave a fold without a class ({str(error).split('. ')[0]}). "
                f"Use fewer folds than {self.n_folds} with --cv, or another --seed."
            ) from error

    def cross_validate(self, Cs: list[float], ks: list[int], repeat: int = 0) -> CrossValidation:
        """Fit and score a model for every C and k in each fold; the number `repeat` determines the folds."""
        samples, rows, scorer = self.samples, self.rows, None if self.rows.is_accuracy else self._score
        more: Any = {"weighted": rows.weights is not None, "groups": rows.groups, "prepare": self.learn}
        split = self.folds(repeat)
        folds = ArrayFolds(self.blueprint, samples, samples, split, scorer, **more)
        label = f"choosing k and C, repeat {repeat + 1}"
        with blame_input():
            found = CrossValidation(
                folds, self.blueprint, len(self.samples.classes), Cs, ks, self.procedure, self.model_at, label
            )
        self.check_scores(found.scores, split)
        return found

    def check_scores(self, values: Any, folds: Sequence[scores.Fold]) -> None:
        """Raises InputError if a score is not finite, such as the ROC area of a fold with only one class."""
        for number, (value, fold) in enumerate(zip(values, folds, strict=True), 1):
            if not np.isfinite(value).all():
                held = listing(np.unique(self.dataset.y[fold.test]).tolist())
                problem = f"--scoring {self.settings.scoring} has no value in fold {number} with only {held}"
                raise InputError(f"{problem}. Use fewer folds with --cv, or --scoring accuracy.")

    def model_at(self, fit: GridFit, row: int, column: int) -> FoldModel:
        """Return the model of a fold for the C with index `row` and the k with index `column` in the grid."""
        return FoldModel(fit.decisions(row, column), self.samples.classes, self.settings.multi_class)

    def fit(self, choice: "Choice", n_best: int) -> tuple[Scaling, FoldModel, dict[str, Worth]]:
        """Fit with the chosen C and k to all rows; return the scaling, the model, and drop costs by name.

        The drop cost of a feature (or group) of the model is the relative rise of the objective without it.
        Unless `n_best` is 0, drop costs and the `n_best` best replacements are computed for linear models of
        at most `MAX_REPLACED_UNITS` features (or groups), shared by all binary classifiers, and fewer than
        `MANY_ROWS` rows. If a replacement lowers the objective, the returned model uses it.
        """
        scaling, samples = self._prepare()
        blueprint: Any = self.blueprint
        C, k = choice.C, choice.k
        decisions = fit_grid(blueprint, samples, [C], [k], self.procedure, label="refit").decisions(0, 0)
        used, worths = np.flatnonzero(decisions.coef.any(axis=0)), {}
        is_shared = blueprint.shared or len(decisions.coef) == 1
        has_costs = self.settings.kernel is None and n_best > 0 and is_shared and not self.is_large
        if has_costs and len(self.counted.labels_of(used)) <= MAX_REPLACED_UNITS:
            with warnings.catch_warnings(action="ignore"):  # the fit above has raised the same warnings
                better, found = improve_by_exchanges(blueprint, samples, C, used, self.procedure, n_best)
            decisions = decisions if better is None else better.decisions(0, 0)
            worths = {self.counted.labels[int(worth.columns[0])]: worth for worth in found}
        model = FoldModel(decisions, self.samples.classes, self.settings.multi_class)
        model.k_, model.C_ = k, C
        with blame_input():
            (model.calibration_,) = choice.first.calibrate(choice.row, choice.column)
        return scaling, model, worths

    def path(self, Cs: list[float], ks: list[int]) -> tuple[Scaling, SparsityPath]:
        """Fit to all rows; return the scaling and each k's model at Cs[-1] (earlier Cs are warm starts)."""
        scaling, samples = self._prepare()
        fit = fit_grid(self.blueprint, samples, Cs, ks, self.procedure, label="refit")
        return scaling, fit.paths[-1]

    def _prepare(self) -> tuple[Scaling, Any]:
        """Return the scaling learned from all rows, and the samples with their features scaled by it."""
        scaling = self.learn(self.samples.X, self.samples.repeats)
        return scaling, replace(self.samples, X=scaling(self.samples.X))


@dataclass(frozen=True)
class Choice:
    """The chosen C and k, and the cross-validation scores from which they were chosen."""

    row: int  # the index of the chosen C in `table.Cs`
    column: int  # the index of the chosen k in `table.ks`
    table: scores.ScoreTable
    first: CrossValidation  # the models and scores of the first repeat of the cross-validation
    n_repeats: int
    has_settled: bool  # True if the last repeats all chose the same C and k, or if only one was planned
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
    """Choose C and k by cross-validation, repeated `n_repeats` times or (None) until the choice is stable."""
    settings = search.settings
    Cs, ks = resolve_grid(search)
    is_open = len(Cs) * (len(ks) if settings.k is None else 1) > 1
    n_classifiers = len(class_pairs(len(search.samples.classes), settings.multi_class))
    is_slow = search.is_large or n_classifiers >= MANY_CLASSIFIERS
    max_repeats = settings.repeats or (1 if is_slow else MAX_REPEATS)
    most = n_repeats or (max_repeats if is_open else 1)
    for _ in range(MAX_GROWTHS + 1):
        first = search.cross_validate(Cs, ks)
        table = first.table
        at = row, column = choose_from(table, settings)
        # If the choice lies at an edge of the grid, extend the grid there, unless the user gave its values.
        # Then fit the whole grid again, because each fit starts from the support at a neighbouring C or k.
        if settings.Cs is None and row == 0 and Cs[0] / 10 >= 0.99 * SMALLEST_C:
            Cs = [Cs[0] / 10, *Cs]
        elif settings.Cs is None and row == len(Cs) - 1 and Cs[-1] * 10 <= 1.01 * LARGEST_C:
            Cs = [*Cs, Cs[-1] * 10]
        if settings.ks is None and settings.k is None and column == 0 and ks[0] < search.n_available:
            ks = [min(2 * ks[0], search.n_available), *ks]
        if (Cs, ks) == (first.Cs, first.ks):
            break
    n_done, n_equal = 1, 1
    while n_done < most and (n_repeats is not None or n_equal < N_EQUAL_CHOICES):
        repeated = search.cross_validate(first.Cs, first.ks, n_done)
        table = replace(table, scores=np.concatenate([table.scores, repeated.scores]))
        before, at = at, choose_from(table, settings)
        n_done, n_equal = n_done + 1, n_equal + 1 if at == before else 1
    has_settled = not is_open or max_repeats == 1 or n_equal >= N_EQUAL_CHOICES
    return Choice(*at, table, first, n_done, has_settled, is_open)


def choose_from(table: scores.ScoreTable, settings: Settings) -> tuple[int, int]:
    """Return the indices in the table of the chosen C and k; if the settings fix k, only C is chosen."""
    if settings.k is None:
        return table.choose(settings.select, settings.tolerance)
    column = table.ks.index(settings.k)
    return table.at_k(column).choose(settings.select, settings.tolerance)[0], column


def resolve_grid(search: TableSearch) -> tuple[list[float], list[int]]:
    """Return the values of C (ascending) and k (descending) to try; with a fixed k also k - 1 and k + 1."""
    settings, label, n_available = search.settings, search.unit_label, search.n_available
    n_fixed = search.counted.n_fixed if settings.kernel is None else 0
    given = [] if settings.k is None else [settings.k]
    for k in (*given, *(settings.ks if isinstance(settings.ks, list) else [])):
        if not n_fixed <= k <= n_available:
            kept = f", of which --keep puts {n_fixed} into every model" if n_fixed else ""
            problem = f"k = {k} is not possible with {n_available} {label}{kept}"
            raise InputError(f"{problem}. Use {n_fixed} to {n_available}.")
    with blame_input():
        Cs = validation.resolve_Cs(list(DEFAULT_CS if settings.Cs is None else settings.Cs))
        if settings.k is not None and settings.ks is None:
            ks = [k for k in (settings.k - 1, settings.k + 1) if 1 <= k <= n_available]
        else:
            largest = search.blueprint.largest_default(search.samples)
            ks = validation.resolve_ks(settings.ks, n_available, largest, label)
    return Cs, sorted({*given, *(k for k in ks if k >= n_fixed)} or {n_fixed}, reverse=True)
