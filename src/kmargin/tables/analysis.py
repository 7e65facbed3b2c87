"""The analysis of a table: choice of k and C, nested cross-validation, final model, stability selection."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kmargin import Exchange, SparseSVC, StabilitySelection, stability_C
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.validation import InputError, blame_input, listing
from kmargin.estimators.cv import CrossValidation
from kmargin.fitting.drop_costs import Worth
from kmargin.fitting.progress import progress_bar
from kmargin.fitting.spec import repeats_to_report
from kmargin.model_selection.nested import HonestScore, evaluate, permutation_test, summarise
from kmargin.model_selection.scores import Fold, difference_error
from kmargin.tables.columns import CountedFeatures, column_medians
from kmargin.tables.dataset import Dataset
from kmargin.tables.model import TableModel, note_rows
from kmargin.tables.search import Choice, Settings, TableSearch, choose, resolve_grid

DEFAULT_K = 10  # default number of features (or groups) that stability selection selects on each half of rows
OUTER = 2**16  # the outer folds add this to the seed; the repeats of the inner folds add 0, 1, 2 and so on


class Difference(NamedTuple):
    """The difference of the mean scores of two models on the same folds, with its standard error."""

    value: float
    error: float


@dataclass(frozen=True, repr=False, kw_only=True)
class Assessment(HonestScore):
    """The score of models on held-out rows, with the decision values and probabilities of all rows.

    If `is_nested` is False, k and C were chosen with the help of the rows that are scored. The score is then
    too optimistic if there was more than one k or C to choose from.
    """

    is_nested: bool
    folds: list[Fold]
    fold: Indices  # for each row, the number of the fold that has it as a test row
    decisions: Matrix  # decision values of each row, by the model that was fitted without it
    probabilities: Matrix  # class probabilities of each row, by the model that was fitted without it
    weights: Vector  # the sample weight of each row; 1 without weights
    all_features: HonestScore | None = None  # score of models that use all features, on the same folds

    @property
    def cost_of_sparsity(self) -> Difference | None:
        """The score of models that use all features minus `score`; None if no such models were fitted."""
        if self.all_features is None:
            return None
        differences, test_ratio = self.all_features.scores - self.scores, 1 / (len(self.folds) - 1)
        error = difference_error(differences, test_ratio, len(self.fold))
        return Difference(self.all_features.score - self.score, error)


def assess(search: TableSearch, choice: Choice) -> Assessment:
    """Score models, sparse and with all features, on held-out rows; add a permutation test if requested."""
    settings, dataset, n_available = search.settings, search.dataset, search.n_available
    found: Assessment | None = None
    if settings.nested and choice.had_alternatives:
        try:
            found = evaluate_held_out(search, choice, True)
        except InputError:  # without some outer fold, a class has too few rows for inner folds
            few = f"{search.rare}, too few to choose k and C without those of a fold"
            search.notes.append(f"{few}: the score is of the rows they were chosen on, and too optimistic.")
    found = found or evaluate_held_out(search, choice, False)
    if settings.kernel is None and choice.k < n_available:
        every = replace(settings, k=n_available, ks=[n_available], Cs=list(choice.table.Cs), verbose=0)
        dense = TableSearch(dataset, every)
        chosen = replace(choice, n_repeats=1) if found.is_nested else choose(dense, 1)
        found = replace(found, all_features=evaluate_held_out(dense, chosen, found.is_nested))
    if not settings.permutations:
        return found

    def highest(searched: CrossValidation) -> float:
        """The highest mean score over C and k: optimistic, but equally for original and permuted labels."""
        columns = slice(None) if settings.k is None else [choice.column]
        return float(searched.scores[:, :, columns].mean(axis=0).max())

    def score_permuted(labels: list[np.ndarray]) -> Iterator[float]:
        with progress_bar("permutations", len(labels), settings.verbose) as bar:
            for y in labels:
                permuted = TableSearch(dataset._replace(y=y), replace(settings, verbose=0))
                yield highest(permuted.cross_validate(choice.first.Cs, choice.first.ks))
                bar.advance()

    rng, own = np.random.default_rng(settings.seed), highest(choice.first)
    p_value, permuted = permutation_test(own, score_permuted, search.rows, settings.permutations, rng)
    return replace(found, p_value=p_value, permuted=permuted)


def evaluate_held_out(search: TableSearch, choice: Choice, is_nested: bool) -> Assessment:
    """Score models on rows held out of their fit, and if `is_nested` also out of the choice of k and C."""
    folds, results, probabilities = [], [], []
    for fold, model, X in (repeat_search if is_nested else fold_models)(search, choice):
        folds.append(fold)
        results.append(evaluate(search.rows, fold, model, X))
        probabilities.append(model.predict_proba(X))
    search.check_scores([result.score for result in results], folds)
    order = np.argsort(np.concatenate([fold.test for fold in folds]))
    return Assessment(
        **vars(summarise(search.rows, folds, results)),
        is_nested=is_nested,
        folds=folds,
        fold=np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])[order],
        decisions=np.concatenate([np.asarray(result.decisions) for result in results])[order],
        probabilities=np.concatenate(probabilities)[order],
        weights=search.rows.row_weights,
    )


def repeat_search(search: TableSearch, choice: Choice) -> Iterator[tuple[Fold, Any, Matrix]]:
    """Choose k and C from the training rows of each outer fold; yield fold, model and scaled test rows."""
    folds = search.folds(OUTER)
    with progress_bar("honest score", len(folds), search.settings.verbose) as bar:
        for fold in folds:
            inner = TableSearch(search.dataset.restricted_to(fold.train), replace(search.settings, verbose=0))
            chosen = choose(inner, choice.n_repeats)
            scaling, model, _ = inner.fit(chosen, n_best=int(chosen.k < inner.n_available))
            yield fold, model, scaling(search.dataset.X[fold.test])
            bar.advance()


def fold_models(search: TableSearch, choice: Choice) -> Iterator[tuple[Fold, Any, Matrix]]:
    """Yield each fold of the cross-validation that chose k and C, its model, and the scaled test rows."""
    folds: Any = choice.first.folds
    with blame_input():
        calibrations = choice.first.calibrate(choice.row, choice.column, range(len(folds)))
    for number, fold in enumerate(folds.folds):
        model = search.model_at(choice.first.fits[number], choice.row, choice.column)
        model.calibration_ = calibrations[number]
        yield fold, model, folds.inputs(number)


@dataclass(frozen=True)
class Stability:
    """The result of stability selection on a table, with the k and C that it used."""

    counted: CountedFeatures
    selection: StabilitySelection
    k: int
    C: float

    @property
    def stable(self) -> list[str]:
        """The names of the stable features (or groups), without those that --keep puts into every model."""
        free = ~self.counted.always_in[self.selection.support_]
        return self.counted.labels_of(self.selection.support_[free])


def measure_stability(
    dataset: Dataset, settings: Settings, k: int | None = None, C: float | None = None, **options: Any
) -> Stability:
    """Select the features that models fitted to random halves of the rows use consistently.

    By default, k is 10 (or half the free features or groups, if less) plus the number of those that --keep
    puts into every model, and C is `stability_C`. The k, ks, Cs and cv of `settings` are not used, and
    `options` are parameters of StabilitySelection.
    """
    settings.check(dataset.roles)
    counted = dataset.counted
    n_units, n_fixed = counted.units.n_units, counted.n_fixed
    k = n_fixed + min(DEFAULT_K, (n_units - n_fixed) // 2) if k is None else k
    if not n_fixed < k < n_units:
        kept = f", of which --keep fixes {n_fixed}," if n_fixed else ""
        problem = f"--k {k} of {n_units} {counted.unit_label}{kept} leaves nothing to choose"
        raise InputError(f"{problem}. Use a k above {n_fixed} and below {n_units}, or give more columns.")
    C = stability_C(len(dataset.y), n_units) if C is None else C
    model: Any = SparseSVC(k, C=C, multi_class=settings.multi_class, shared=settings.shared)
    model.set_params(class_weight="balanced" if settings.balanced else None, **counted.request._asdict())
    options |= {"n_jobs": settings.jobs, "random_state": settings.seed, "verbose": settings.verbose}
    selection = StabilitySelection(model, standardize=settings.standardize, **options)
    X = np.where(np.isnan(dataset.X), column_medians(dataset.X), dataset.X)
    with blame_input():
        selection.fit(X, dataset.y, dataset.weights, dataset.groups)
    return Stability(counted, selection, k, C)


class Neighbour(NamedTuple):
    """The next smaller or the next larger k that was tried, compared with the chosen k."""

    k: int
    score: float
    change: Difference  # the score of this k minus that of the chosen k
    enters: list[str]  # features (or groups) that are used with this k, but not with the chosen one
    leaves: list[str]  # features (or groups) that are used with the chosen k, but not with this one


@dataclass(frozen=True)
class Analysis:
    """The final model of a table, how k and C were chosen, and how well such models predict held-out rows."""

    dataset: Dataset
    settings: Settings
    model: TableModel
    choice: Choice
    assessment: Assessment
    frequency: Vector | None  # the share of folds in which each feature is used; None with a kernel
    stability: Stability | None  # stability selection at the chosen k and C; None if not computed
    worths: dict[str, Worth]  # by name of feature (or group): rise of the objective without it; may be empty
    neighbours: tuple[Neighbour, ...]  # the next smaller and the next larger k, as far as they were tried
    unit_label: str  # what k counts: training points, features, variables or groups
    is_shared: bool  # whether k limits the whole model; if not, it limits each of several binary classifiers
    notes: tuple[str, ...]

    @property
    def halves(self) -> Vector | None:
        """The share of random halves on which each feature is selected; None without stability selection."""
        return None if self.stability is None else np.asarray(self.stability.selection.frequencies_)


def analyse(dataset: Dataset, settings: Settings) -> Analysis:
    """Choose k and C, fit the model to all rows, and estimate how well such models predict held-out rows."""
    search = TableSearch(dataset, settings)
    with warnings.catch_warnings(record=True, action="always") as caught:
        choice = choose(search)
        scaling, fitted, worths = search.fit(choice, n_best=2)
    if settings.kernel is None and search.counted.request.is_empty and not np.isnan(dataset.X).any():
        repeated = [dataset.encoding.feature_names[j] for j in repeats_to_report(search.samples, Exchange())]
        if repeated:
            search.notes.append(f"Features that repeat an earlier one are passed over: {listing(repeated)}.")
    if search.is_large and settings.kernel is None:
        search.notes.append(f"With {len(dataset.y):,} rows, replacements and random halves are not computed.")
    is_listed = isinstance(settings.ks, list) and settings.k is None
    if is_listed and choice.table.rises_to_the_largest_k and choice.table.ks[0] < search.n_available:
        largest = f"{max(settings.ks)} of {search.n_available:,} {search.unit_label}, scores best"
        search.notes.append(f"The largest k of --ks, {largest}. Add larger ones: they may do better.")
    if len(choice.table.Cs) > 1 and choice.C in (choice.table.Cs[0], choice.table.Cs[-1]):
        search.notes.append(
            f"C = {choice.C:g} is at the edge of what was tried. Values beyond may do better."
        )
    parameters = {"k": choice.k, "C": choice.C, "shared": settings.shared}
    parameters |= search.counted.request._asdict() if settings.kernel is None else {}
    model = TableModel(dataset.target, dataset.encoding, scaling, fitted, parameters, fitted.calibration_)
    ends = np.array([np.nanmin(dataset.X, axis=0), np.nanmax(dataset.X, axis=0)])
    model = replace(model, seen=note_rows(dataset.X, model.used_features), ranges=ends, id=dataset.roles.id)
    with warnings.catch_warnings(action="ignore"):  # the fit of the final model has raised the same warnings
        assessment = assess(search, choice)
        neighbours = find_neighbours(search, choice, model)
        stability, counted = None, search.counted
        leaves_a_choice = settings.kernel is None and counted.n_fixed < choice.k < counted.units.n_units
        if settings.pairs and leaves_a_choice and not search.is_large:
            try:
                stability = measure_stability(dataset, settings, choice.k, choice.C, n_pairs=settings.pairs)
            except InputError as error:  # for example, no random half of the groups has all classes
                search.notes.append(f"Random halves are left out. {error}")
    in_use = [of_fold.coef.any(axis=0) for of_fold in choice.first.decisions(choice.row, choice.column)]
    return Analysis(
        dataset=dataset,
        settings=settings,
        model=model,
        choice=choice,
        assessment=assessment,
        frequency=None if model.is_kernel else np.mean(in_use, axis=0),
        stability=stability,
        worths=worths,
        neighbours=neighbours,
        unit_label=search.unit_label,
        is_shared=settings.shared or len(model.machine_names) == 1,
        notes=(*dataset.notes, *search.notes, *dict.fromkeys(str(warning.message) for warning in caught)),
    )


def find_neighbours(search: TableSearch, choice: Choice, model: TableModel) -> tuple[Neighbour, ...]:
    """Compare the next smaller and the next larger k with the chosen k, by score and by features.

    Features of the neighbours come from a path over k fitted to all rows, those of the chosen k from `model`.
    """
    table, column, used = choice.table, choice.column, dict[int, set[str]]()
    if not model.is_kernel:
        path = search.path(list(table.Cs[: choice.row + 1]), list(table.ks))[1]
        coefs = dict(zip(path.ks.tolist(), path.coefs, strict=True)) | {choice.k: model.machine.coef_}
        used = {k: set(search.counted.labels_of(np.flatnonzero(c.any(axis=0)))) for k, c in coefs.items()}
    here, scores, found = used.get(choice.k, set()), table.scores[:, choice.row], []
    for at in (column + 1, column - 1):  # ks are descending, so the next smaller k is at column + 1
        if 0 <= at < len(table.ks):
            there, differences = used.get(table.ks[at], set()), scores[:, at] - scores[:, column]
            error = difference_error(differences, table.test_ratio, len(search.dataset.y))
            change = Difference(float(differences.mean()), error)
            names = sorted(there - here), sorted(here - there)
            found.append(Neighbour(table.ks[at], float(scores[:, at].mean()), change, *names))
    return tuple(found)


class Step(NamedTuple):
    """The model for one k of a path over several k, compared with that for the next smaller k."""

    k: int
    features: list[str]
    units: list[str]  # names of the features, table columns or groups used, depending on what k counts
    training_accuracy: float
    objective: float  # mean of the objectives of the binary classifiers
    enters: list[str]  # units of this model that the model with the next smaller k does not use
    leaves: list[str]  # units that the model with the next smaller k uses, but not this model
    score: float | None  # mean score over the folds; None without cross-validation
    error: float | None  # standard error of `score`; None without cross-validation


def trace(dataset: Dataset, settings: Settings, cross_validate: bool = True) -> tuple[list[Step], list[str]]:
    """Fit a model for each k at the largest C; return a `Step` per k, by increasing k, and notes."""
    search = TableSearch(dataset, settings)
    Cs, ks = resolve_grid(search)
    table = search.cross_validate(Cs[-1:], ks).table if cross_validate else None
    scaling, path = search.path(Cs[-1:], ks)
    X, names = scaling(dataset.X), dataset.encoding.feature_names
    steps: list[Step] = []
    for at in reversed(range(len(ks))):
        columns = np.flatnonzero(path.coefs[at].any(axis=0))
        features, units = [names[j] for j in columns], search.counted.labels_of(columns)
        is_right, objective = path.predict(X, ks[at]) == dataset.y, float(path.objectives[at].mean())
        accuracy = float(np.average(is_right, weights=dataset.weights))
        before = steps[-1].units if steps else []
        enters, leaves = [name for name in units if name not in before], sorted(set(before) - set(units))
        scored = (None, None) if table is None else table.at(Cs[-1], ks[at])
        steps.append(Step(ks[at], features, units, accuracy, objective, enters, leaves, *scored))
    return steps, search.notes if cross_validate else []
