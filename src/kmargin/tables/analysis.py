"""The analysis of a table: choice, honest score, final model, drop costs, stability."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from kmargin import SparseSVC, StabilitySelection, stability_C
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.validation import InputError, blame_input
from kmargin.fitting.drop_costs import Worth
from kmargin.fitting.progress import progress_bar
from kmargin.model_selection.nested import HonestScore, evaluate, permutation_test, summarise
from kmargin.model_selection.scores import Fold, difference_error
from kmargin.tables.columns import CountedFeatures, count_features
from kmargin.tables.dataset import Dataset
from kmargin.tables.model import TableModel, assemble_machine, note_rows
from kmargin.tables.search import Choice, Preparation, Settings, TableSearch, choose, resolve_grid

DEFAULT_K = 10  # features selected on each half
MIN_FOR_NESTED = 3  # rows (or groups) of a class: one to score, two for the folds within
OUTER = 2**16  # number of the round of outer folds; rounds that choose k and C count from 0


class Difference(NamedTuple):
    """The difference of two scores on the same folds, with its standard error."""

    value: float
    error: float


# The honest score


@dataclass(frozen=True, repr=False, kw_only=True)
class Assessment(HonestScore):
    """The honest score, with the decision values and probabilities of all rows.

    Unless `is_nested`, k and C were chosen with the rows that are scored, and the score is too optimistic if
    there was something to choose.
    """

    is_nested: bool
    folds: list[Fold]
    fold: Indices  # the number of the fold in which each row is tested
    decisions: Matrix  # of each row, by the model that was fitted without it
    probabilities: Matrix  # of each row and class, likewise
    classes: np.ndarray
    weights: Vector  # of the rows
    all_features: HonestScore | None = None  # of models that use all features, on the same folds

    @property
    def cost_of_sparsity(self) -> Difference | None:
        """By how much models that use all features score higher; None if there are none to compare with."""
        if self.all_features is None:
            return None
        differences, test_ratio = self.all_features.scores - self.scores, 1 / (len(self.folds) - 1)
        error = difference_error(differences, test_ratio, len(self.fold))
        return Difference(self.all_features.score - self.score, error)


def assess(search: TableSearch, choice: Choice) -> Assessment:
    """Score the search as the settings say: nested or not, with a permutation test or without."""
    settings, dataset, n_available = search.settings, search.dataset, search.n_available
    is_nested = settings.nested and choice.had_alternatives
    if is_nested and search.class_counts.min() < MIN_FOR_NESTED:
        rare = search.samples.classes[search.class_counts.argmin()].item()
        unit = "rows" if dataset.groups is None else "groups"
        search.notes.append(
            f"Class {rare!r} has 2 {unit}, too few to choose k and C without one of them: the score reported "
            "is of the rows they were chosen on, and too optimistic."
        )
        is_nested = False
    found = evaluate_held_out(search, choice, is_nested)
    if settings.kernel is None and choice.k < n_available:
        every = replace(settings, k=n_available, ks=[n_available], Cs=list(choice.table.Cs), verbose=0)
        dense = TableSearch(dataset, every)
        chosen = replace(choice, n_rounds=1) if is_nested else choose(dense, 1)
        found = replace(found, all_features=evaluate_held_out(dense, chosen, is_nested))
    if not settings.permutations:
        return found

    def highest(scores: np.ndarray) -> float:
        """The highest mean score of the models that there were to choose from."""
        columns = slice(None) if choice.chose_k else [choice.column]
        return float(scores[:, :, columns].mean(axis=0).max())

    def score_permuted(labels: list[np.ndarray]) -> Iterator[float]:
        """The highest score of the whole grid, in one round of folds, for each of several labellings.

        The original labels are treated alike, so it does not matter that the highest of many is too
        optimistic.
        """
        with progress_bar("permutations", len(labels), settings.verbose) as bar:
            for y in labels:
                permuted = TableSearch(dataset._replace(y=y), replace(settings, verbose=0))
                yield highest(permuted.cross_validate(choice.first.Cs, choice.first.ks).scores)
                bar.advance()

    rng, own = np.random.default_rng(settings.seed), highest(choice.first.scores)
    p_value, permuted = permutation_test(own, score_permuted, search.rows, settings.permutations, rng)
    return replace(found, p_value=p_value, permuted=permuted)


def evaluate_held_out(search: TableSearch, choice: Choice, is_nested: bool) -> Assessment:
    """Evaluate each row by a model that was fitted without it."""
    folds, results, probabilities = [], [], []
    for fold, model, X in (repeat_search if is_nested else fold_models)(search, choice):
        folds.append(fold)
        results.append(evaluate(search.rows, fold, model, X))
        probabilities.append(model.predict_proba(X))
    order = np.argsort(np.concatenate([fold.test for fold in folds]))
    return Assessment(
        **vars(summarise(search.rows, folds, results)),
        is_nested=is_nested,
        folds=folds,
        fold=np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])[order],
        decisions=np.concatenate([np.asarray(result.decisions) for result in results])[order],
        probabilities=np.concatenate(probabilities)[order],
        classes=search.samples.classes,
        weights=search.rows.row_weights,
    )


def repeat_search(search: TableSearch, choice: Choice) -> Iterator[tuple[Fold, Any, Matrix]]:
    """Repeat the whole search in each of several outer folds, on its training rows alone.

    Yields each fold, its model, and the test rows as the model takes them.
    """
    folds = search.folds(OUTER)
    with progress_bar("honest score", len(folds), search.settings.verbose) as bar:
        for fold in folds:
            inner = search.on_rows(fold.train)
            chosen = choose(inner, choice.n_rounds)
            model, _ = inner.fit(chosen, n_best=int(chosen.k < inner.n_available))
            yield fold, model, search.dataset.X[fold.test]
            bar.advance()


def fold_models(search: TableSearch, choice: Choice) -> Iterator[tuple[Fold, Any, Matrix]]:
    """Like `repeat_search`, with the models of the first round of folds, by which k and C were chosen."""
    searched, row, column = choice.first, choice.row, choice.column
    folds: Any = searched.folds
    with blame_input():
        calibrations = searched.calibrate(row, column, range(len(folds)))
    for number, fold in enumerate(folds.folds):
        model = search.model_at(searched.fits[number], row, column)
        model.calibration_ = calibrations[number]
        yield fold, model, folds.inputs(number)


# Stability


@dataclass(frozen=True)
class Stability:
    """The stability selection of a table, with its k and C."""

    counted: CountedFeatures
    selection: StabilitySelection
    k: int
    C: float

    @property
    def n_halves(self) -> int:
        return int(2 * self.selection.n_pairs)

    @property
    def frequencies(self) -> Vector:
        """The selection frequency of each feature."""
        return np.asarray(self.selection.frequencies_)

    @property
    def stable(self) -> list[str]:
        """The labels of the stable features (or groups), without those that are always in."""
        free = ~self.counted.always_in[self.selection.support_]
        return self.counted.labels_of(self.selection.support_[free])


def measure_stability(
    dataset: Dataset,
    settings: Settings,
    *,
    k: int | None = None,
    C: float | None = None,
    n_pairs: int = 50,
    threshold: float | None = None,
    max_false: float = 1.0,
) -> Stability:
    """Fit models to random halves of the rows. The settings k, ks, Cs and those of folds are not used.

    By default k is 10, or half of what there is to choose from; C suits the numbers of rows and features;
    the threshold is the lowest that keeps the number of features expected by chance at `max_false`.
    """
    settings.check()
    counted = count_features(dataset.encoding, settings.columns)
    k = _resolve_k(k, counted)
    C = stability_C(len(dataset.y), counted.units.n_units) if C is None else C
    model: Any = SparseSVC(
        k,
        C=C,
        multi_class=settings.multi_class,
        shared=settings.shared,
        class_weight="balanced" if settings.balanced else None,
        **counted.request._asdict(),
    )
    has_gaps = bool(np.isnan(dataset.X).any())
    if has_gaps:
        model = Pipeline([("prepare", Preparation(True, settings.standardize)), ("model", model)])
    selection = StabilitySelection(
        model,
        n_pairs=n_pairs,
        threshold="auto" if threshold is None else threshold,
        max_false=max_false,
        standardize=settings.standardize and not has_gaps,
        n_jobs=settings.jobs,
        random_state=settings.seed,
        verbose=settings.verbose,
    )
    with blame_input():
        selection.fit(dataset.X, dataset.y, dataset.weights, dataset.groups)
    return Stability(counted, selection, k, C)


def _resolve_k(k: int | None, counted: CountedFeatures) -> int:
    """The number of features (or groups) selected on each half."""
    n_units, n_fixed, things = counted.units.n_units, counted.n_fixed, counted.things
    if n_units - n_fixed < 2:
        raise InputError(
            f"There are fewer than two {things} to choose from. Give more columns, or keep fewer."
        )
    if k is None:
        return n_fixed + min(DEFAULT_K, (n_units - n_fixed) // 2)
    if n_fixed < k < n_units:
        return k
    kept = f", of which --keep fixes {n_fixed}," if n_fixed else ""
    raise InputError(
        f"--k {k} of {n_units} {things}{kept} leaves nothing to choose. Use {n_fixed + 1} to {n_units - 1}."
    )


# The whole analysis


class Neighbour(NamedTuple):
    """The next smaller or larger k of those that were tried."""

    k: int
    score: float
    change: Difference  # of the score
    enters: list[str]  # features, or groups of them
    leaves: list[str]


class Highest(NamedTuple):
    """The k and C with the highest score of all that were tried."""

    k: int
    C: float
    score: float


class Curve(NamedTuple):
    """Mean scores over all folds of all rounds, for each k at one C."""

    ks: Indices  # descending
    mean: Vector
    error: Vector  # standard errors of the means

    def at(self, k: int) -> tuple[float, float]:
        """The mean score and its standard error."""
        place = self.ks.tolist().index(k)
        return float(self.mean[place]), float(self.error[place])


@dataclass(frozen=True)
class Analysis:
    """The final model, how it was chosen, and how well such models predict held-out rows."""

    dataset: Dataset
    settings: Settings
    counted: CountedFeatures
    model: TableModel
    choice: Choice
    assessment: Assessment
    supports: tuple[Indices, ...]  # features used in each fold of the first round, with the chosen k and C
    stability: Stability | None  # on random halves of the rows, with the chosen k and C; None if not asked
    worths: dict[str, Worth]  # of what k counts, by label; nothing where that is not known
    neighbours: tuple[Neighbour, ...]  # one smaller, one larger, where there are such
    notes: tuple[str, ...]

    @property
    def halves(self) -> Vector | None:
        """The share of random halves on which each feature is chosen; None if not asked."""
        return None if self.stability is None else self.stability.frequencies

    @property
    def k(self) -> int:
        return self.choice.k

    @property
    def C(self) -> float:
        return self.choice.C

    @property
    def curve(self) -> Curve:
        table, row = self.choice.table, self.choice.row
        return Curve(np.array(table.ks), table.mean[row], table.error[row])

    @property
    def highest(self) -> Highest | None:
        """The best k and C by mean score; None where there was nothing to choose."""
        if not self.choice.had_alternatives:
            return None
        table = self.choice.table if self.was_chosen else self.choice.table.at_k(self.choice.column)
        row, column = table.choose("best")
        return Highest(table.ks[column], table.Cs[row], float(table.mean[row, column]))

    @property
    def frequency(self) -> Vector | None:
        """The share of folds in which each feature is used; None with a kernel."""
        if self.model.is_kernel:
            return None
        n_features = self.dataset.X.shape[1]
        return np.bincount(np.concatenate(self.supports), minlength=n_features) / len(self.supports)

    @property
    def was_chosen(self) -> bool:
        """Whether k was left to the cross-validation."""
        return self.settings.k is None

    @property
    def things(self) -> str:
        """The name of what k counts."""
        return "training points" if self.model.is_kernel else self.counted.things

    @property
    def is_shared(self) -> bool:
        """Whether k bounds the whole model, not each of several binary classifiers."""
        return self.settings.shared or len(self.model.machine_names) == 1


def analyse(dataset: Dataset, settings: Settings) -> Analysis:
    """Choose k and C, fit to all rows, and estimate how well such models predict held-out rows.

    Everything reported about the choice of k and C comes from one table of scores.
    """
    search = TableSearch(dataset, settings)
    search.note_repeats()
    if search.is_large and settings.kernel is None:
        search.notes.append(f"With {len(dataset.y):,} rows, replacements and random halves are not computed.")
    choice = choose(search)
    is_listed = isinstance(settings.ks, list) and settings.k is None
    if is_listed and choice.table.rises_to_the_largest_k and choice.table.ks[0] < search.n_available:
        search.notes.append(
            f"The largest k of --ks, {max(settings.ks)} of {search.n_available:,} {search.things}, scores "
            "best. Add larger ones: they may do better."
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (preparation, fitted), worths = search.fit(choice, n_best=2)
    scheme = {"multi_class": settings.multi_class, "shared": settings.shared}
    parameters = {"k": choice.k, "C": choice.C} | scheme
    parameters |= search.counted.request._asdict() if settings.kernel is None else {}
    model = TableModel(
        dataset.target,
        dataset.encoding,
        preparation.scaling_,
        assemble_machine(parameters, fitted.classes, fitted.decisions),
        fitted.calibration_,
        ranges=dataset.ranges,
        id=dataset.id,
    )
    model = replace(model, seen=note_rows(dataset.X, model.used_features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final model has warned already
        assessment = assess(search, choice)
        neighbours = find_neighbours(search, choice, model)
        stability, counted = None, search.counted
        leaves_a_choice = settings.kernel is None and counted.n_fixed < choice.k < counted.units.n_units
        if settings.pairs and leaves_a_choice and not search.is_large:
            stability = measure_stability(dataset, settings, k=choice.k, C=choice.C, n_pairs=settings.pairs)
    decisions = choice.first.decisions(choice.row, choice.column)
    return Analysis(
        dataset=dataset,
        settings=settings,
        counted=search.counted,
        model=model,
        choice=choice,
        assessment=assessment,
        supports=tuple(np.flatnonzero(of_fold.coef.any(axis=0)) for of_fold in decisions),
        stability=stability,
        worths=worths,
        neighbours=neighbours,
        notes=(*dataset.notes, *search.notes, *(str(warning.message) for warning in caught)),
    )


def find_neighbours(search: TableSearch, choice: Choice, model: TableModel) -> tuple[Neighbour, ...]:
    """What the next smaller and the next larger k do to the score, and which features come and go.

    Features are those of the path over k, and at the chosen k those of the final model.
    """
    used: dict[int, set[str]] = {}
    if not model.is_kernel:
        path = search.path(list(choice.table.Cs[: choice.row + 1]), list(choice.table.ks))[1]
        coefs = dict(zip(path.ks.tolist(), path.coefs, strict=True)) | {choice.k: model.machine.coef_}
        used = {k: set(search.counted.labels_of(np.flatnonzero(c.any(axis=0)))) for k, c in coefs.items()}
    table, at, here = choice.table, choice.column, used.get(choice.k, set())
    scores, found = table.scores[:, choice.row], []
    for position in (at + 1, at - 1):  # k descends
        if 0 <= position < len(table.ks):
            k = table.ks[position]
            differences = scores[:, position] - scores[:, at]
            error = difference_error(differences, table.test_ratio, len(search.dataset.y))
            change = Difference(float(differences.mean()), error)
            there = used.get(k, set())
            score = float(scores[:, position].mean())
            found.append(Neighbour(k, score, change, sorted(there - here), sorted(here - there)))
    return tuple(found)


class Step(NamedTuple):
    """One k of a path."""

    k: int
    features: list[str]
    units: list[str]  # what k counts: features, or groups of them
    training_accuracy: float
    objective: float  # mean over the machines
    enters: list[str]  # units not used by the machines with fewer
    leaves: list[str]
    score: float | None = None  # over the folds
    error: float | None = None


def trace(dataset: Dataset, settings: Settings, cross_validate: bool = True) -> list[Step]:
    """Models from sparse to dense at one C: which features enter and leave as k grows."""
    search = TableSearch(dataset, settings)
    Cs, ks = resolve_grid(search)
    table = search.cross_validate(Cs[-1:], ks).table if cross_validate else None
    preparation, path = search.path(Cs[-1:], ks)
    X, names = preparation.transform(dataset.X), dataset.encoding.feature_names
    steps: list[Step] = []
    for at in reversed(range(len(ks))):
        columns = np.flatnonzero(path.coefs[at].any(axis=0))
        units, before = search.counted.labels_of(columns), steps[-1].units if steps else []
        is_right = path.predict(X, ks[at]) == dataset.y
        score, error = (None, None) if table is None else table.at(Cs[-1], ks[at])
        step = Step(
            k=ks[at],
            features=[names[j] for j in columns],
            units=units,
            training_accuracy=float(np.average(is_right, weights=dataset.weights)),
            objective=float(path.objectives[at].mean()),
            enters=[name for name in units if name not in before],
            leaves=sorted(set(before) - set(units)),
            score=score,
            error=error,
        )
        steps.append(step)
    return steps
