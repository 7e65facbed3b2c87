"""The analysis of a table: choice, score, final model, drop costs, stability."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from kmargin import SparseSVC, StabilitySelection, stability_C
from kmargin.core.arrays import Indices, Matrix, Vector
from kmargin.core.validation import InputError, blame_input, count, listing
from kmargin.fitting.drop_costs import Worth
from kmargin.model_selection.scores import ScoreTable, difference_error
from kmargin.tables.assessment import Assessment, Choice, Difference, assess, choose, counts_of, resolve_grid
from kmargin.tables.columns import Scaling
from kmargin.tables.dataset import Dataset
from kmargin.tables.model import TableModel, note_rows
from kmargin.tables.request import CountedFeatures, Settings, count_features
from kmargin.tables.trial import Trial

DEFAULT_K = 10


class Plan(NamedTuple):
    """How halves are drawn and what is called stable."""

    k: int | None = None  # None: 10, or half of what there is to choose from
    C: float | None = None  # None: as strong as suits so many rows and features
    n_pairs: int = 50
    threshold: float | None = None  # None: the lowest that keeps the number expected by chance at `max_false`
    max_false: float = 1.0


@dataclass(frozen=True)
class Stability:
    """How often each feature was selected, and what that is worth."""

    dataset: Dataset
    counted: CountedFeatures
    selection: StabilitySelection
    k: int
    C: float

    @property
    def n_halves(self) -> int:
        return int(2 * self.selection.n_pairs)

    @property
    def frequencies(self) -> Vector:
        """Of each feature."""
        return np.asarray(self.selection.frequencies_)

    @property
    def stable(self) -> list[str]:
        """What k counts, as far as it is stable and was not always in."""
        free = ~self.counted.always_in[self.selection.support_]
        return self.counted.labels_of(self.selection.support_[free])


class Preparation(TransformerMixin, BaseEstimator):
    """Missing numbers filled in and features scaled, all of it learned from the rows of a half."""

    def __init__(self, standardize: bool) -> None:
        self.standardize = standardize

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> "Preparation":
        repeats = np.ones(len(X)) if sample_weight is None else sample_weight
        self.scaling_ = Scaling.learn(X, repeats, True, self.standardize)
        return self

    def transform(self, X: Matrix) -> Matrix:
        return self.scaling_(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def measure_stability(dataset: Dataset, settings: Settings, plan: Plan | None = None) -> Stability:
    """Fit machines to random halves of the rows. Of the settings, k, ks, Cs and folds have no part in it."""
    plan = Plan() if plan is None else plan
    check_plan(plan, settings)
    counted = count_features(dataset.encoding, settings.columns)
    k = resolve_k(plan.k, counted)
    C = stability_C(len(dataset.y), counted.units.n_units) if plan.C is None else plan.C
    machine = SparseSVC(
        k,
        C=C,
        multi_class=settings.multi_class,
        shared=settings.shared,
        class_weight="balanced" if settings.balanced else None,
        **counted.request._asdict(),
    )
    has_gaps = bool(np.isnan(dataset.X).any())
    selection = StabilitySelection(
        Pipeline([("prepare", Preparation(settings.standardize)), ("machine", machine)])
        if has_gaps
        else machine,
        n_pairs=plan.n_pairs,
        threshold="auto" if plan.threshold is None else plan.threshold,
        max_false=plan.max_false,
        standardize=settings.standardize and not has_gaps,
        n_jobs=settings.jobs,
        random_state=settings.seed,
        verbose=settings.verbose,
    )
    with blame_input():
        selection.fit(dataset.X, dataset.y, dataset.weights, dataset.groups)
    return Stability(dataset, counted, selection, k, C)


def check_plan(plan: Plan, settings: Settings) -> None:
    """Raises InputError for options that make no sense."""
    if plan.n_pairs < 1:
        raise InputError(f"--pairs {plan.n_pairs} is not a number of pairs. Use 1 or more.")
    if plan.threshold is not None and not 0.5 < plan.threshold <= 1:
        raise InputError(
            f"--threshold {plan.threshold:g} is not a proportion above one half. Use a number above 0.5, at "
            "most 1."
        )
    if not 0 < plan.max_false < np.inf:
        raise InputError(
            f"--max-false {plan.max_false:g} is not an expected number of features. Use a number > 0, such "
            "as 1."
        )
    if not 0 <= settings.seed < 2**32:
        raise InputError(f"--seed {settings.seed} is not a seed. Use 0 to {2**32 - 1}.")
    if settings.jobs == 0:
        raise InputError("--jobs 0 is not a number of jobs. Use 1 or more, or -1 for all cores.")


def resolve_k(k: int | None, counted: CountedFeatures) -> int:
    """How much is selected on each half, in the units that k counts."""
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


def stability_frame(stability: Stability) -> pd.DataFrame:
    """A row for each feature, the most frequent first."""
    selection, counted = stability.selection, stability.counted
    unit_of = selection.summary().set_index("feature")
    at = unit_of.index.astype(int)
    thing = counted.things.removesuffix("s")
    columns = {
        "feature": np.array(counted.names, dtype=object)[at],
        thing: np.array(counted.labels, dtype=object)[at],
        "frequency": unit_of["frequency"].to_numpy(),
    }
    if counted.is_grouped:
        columns[f"frequency of its {thing}"] = unit_of["group_frequency"].to_numpy()
    of_both = {name: unit_of[name].to_numpy() for name in ("always_in", "stable")}
    return pd.DataFrame(columns | of_both)


def stability_headline(stability: Stability) -> str:
    selection, things = stability.selection, stability.counted.things
    share = f"{100 * selection.threshold_:.4g} % of {stability.n_halves} random halves of the rows"
    found = stability.stable
    if not found:
        hint = (
            "A larger --max-false accepts more features by chance and lowers this proportion."
            if selection.threshold == "auto"
            else "Without --threshold it is the lowest proportion at which at most one is expected by chance."
        )
        return f"None of {selection.n_candidates_:,} {things} was selected on at least {share}. {hint}"
    were = "was" if len(found) == 1 else "were"
    return f"{len(found):,} of {selection.n_candidates_:,} {things} {were} selected on at least {share}."


def chance_text(stability: Stability) -> str:
    """The bounds in words."""
    selection = stability.selection
    blind = f"{selection.q_:.3g} of {selection.n_candidates_:,} {stability.counted.things}"
    worst, unimodal, r_concave = (f"{bound:.2g}" for bound in selection.bounds_)
    return (
        f"At most {unimodal} of these are expected to have been selected by chance, if the number of halves "
        f"that select a feature has a unimodal distribution ({worst} for any distribution, {r_concave} if it "
        "is r-concave). By chance means: selected on a half no more often than by a random choice of "
        f"{blind}. A feature that is correlated with a relevant one is selected more often than that, and "
        "may be stable without being relevant itself."
    )


def plan_text(stability: Stability) -> str:
    """What was fitted."""
    kept = stability.counted.labels_of(np.flatnonzero(stability.counted.always_in))
    said = f" Always in the model, as requested by --keep: {listing(kept)}." if kept else ""
    pairs = count(stability.selection.n_pairs, "pair")
    machine = f"a model with k = {stability.k}, C = {stability.C:.3g} on each half"
    return f"{pairs} of complementary halves, {machine}.{said}"


class Neighbour(NamedTuple):
    """The next smaller or larger k of those that were tried."""

    k: int
    score: float
    change: Difference  # of the score
    enters: list[str]  # features, or groups of them
    leaves: list[str]


class Highest(NamedTuple):
    """The best of all that was tried."""

    k: int
    C: float
    score: float


@dataclass(frozen=True)
class Curve:
    """Scores along k, over all folds of all rounds, at one C."""

    ks: Indices  # descending
    mean: Vector
    error: Vector  # standard errors of the means

    @classmethod
    def of(cls, table: ScoreTable, row: int) -> "Curve":
        return cls(np.array(table.ks), table.mean[row], table.error[row])

    def at(self, k: int) -> tuple[float, float]:
        position = int(np.flatnonzero(self.ks == k)[0])
        return float(self.mean[position]), float(self.error[position])


@dataclass(frozen=True)
class Analysis:
    """A model, how it was chosen, and how well its like predicted rows they had not seen."""

    dataset: Dataset
    settings: Settings
    counted: CountedFeatures
    model: TableModel
    choice: Choice
    assessment: Assessment
    supports: tuple[Indices, ...]  # of the machines of the first round's folds with the chosen k and C
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
        return Curve.of(self.choice.table, self.choice.row)

    @property
    def highest(self) -> Highest | None:
        """None where there was nothing to choose."""
        if not self.choice.had_alternatives:
            return None
        table = self.choice.table
        columns = range(len(table.ks)) if self.was_chosen else [self.choice.column]
        table = ScoreTable(
            table.scores[:, :, columns], table.Cs, [table.ks[c] for c in columns], table.n_rows
        )
        row, column = table.choose("best")
        return Highest(table.ks[column], table.Cs[row], float(table.mean[row, column]))

    @property
    def frequency(self) -> Vector | None:
        """Of each feature: the share of the folds that chose it; None with a kernel."""
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
        """What k counts."""
        return "training points" if self.model.is_kernel else self.counted.things

    @property
    def is_shared(self) -> bool:
        """Whether k bounds the whole model, not each of several machines."""
        return self.settings.shared or len(self.model.machine_names) == 1


def analyse(dataset: Dataset, settings: Settings) -> Analysis:
    """Choose k and C, fit to all rows, and see how well such choices do on rows that had no part in them.

    All that is said of the choice comes from its one table of scores.
    """
    trial = Trial(dataset, settings)
    trial.note_repeats()
    if trial.is_large and settings.kernel is None:
        trial.notes.append(f"With {len(dataset.y):,} rows, replacements and random halves are not computed.")
    choice = choose(trial)
    is_listed = isinstance(settings.ks, list) and settings.k is None
    if is_listed and choice.table.rises_to_the_largest_k and choice.ks[0] < trial.n_available:
        trial.notes.append(
            f"The largest k of --ks, {choice.ks[0]} of {trial.n_available:,} {trial.things}, scores best. "
            "Add larger ones: they may do better."
        )
    examined = trial.examine(choice.Cs, choice.ks, choice.k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, worths = trial.refit(choice.C, choice.k, n_stand_ins=2)
    model = replace(
        model,
        calibration=trial.calibrate(examined.of_machines, np.arange(len(dataset.y))),
        seen=note_rows(dataset.X, model.used_features),
        ranges=dataset.ranges,
        id=dataset.id,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say was said of the model itself
        supports = {} if model.is_kernel else supports_by_k(trial, choice, model)
        assessment = assess(trial, choice, examined)
        stability = None if trial.is_large else refit_to_halves(dataset, settings, choice, trial.counted)
    return Analysis(
        dataset=dataset,
        settings=settings,
        counted=trial.counted,
        model=model,
        choice=choice,
        assessment=assessment,
        supports=examined.supports,
        stability=stability,
        worths=worths,
        neighbours=find_neighbours(choice, supports, len(dataset.y)),
        notes=(*dataset.notes, *trial.notes, *(str(warning.message) for warning in caught)),
    )


def refit_to_halves(
    dataset: Dataset, settings: Settings, choice: Choice, counted: CountedFeatures
) -> Stability | None:
    """Count how often each feature is chosen, with the chosen k and C, on random halves of the rows."""
    leaves_a_choice = counted.n_fixed < choice.k < counted.units.n_units
    if settings.kernel is not None or not settings.pairs or not leaves_a_choice:
        return None
    plan = Plan(choice.k, choice.C, settings.pairs)
    return measure_stability(dataset, settings, plan)


def supports_by_k(trial: Trial, choice: Choice, model: TableModel) -> dict[int, set[str]]:
    """Return the features (or groups) in use for each k: from the path, and from the final model at its k."""
    path = trial.path(choice.Cs, choice.ks)[1]
    coefs_by_k = dict(zip(path.ks.tolist(), path.coefs, strict=True)) | {choice.k: model.machine.coef_}
    return {k: set(trial.counted.labels_of(np.flatnonzero(c.any(axis=0)))) for k, c in coefs_by_k.items()}


def find_neighbours(choice: Choice, supports: dict[int, set[str]], n_rows: int) -> tuple[Neighbour, ...]:
    """What the next smaller and the next larger k do to the score, and which features come and go."""
    table, at = choice.table, choice.column
    scores = table.scores[:, choice.row]
    here = supports.get(choice.k, set())
    found = []
    for position in (at + 1, at - 1):  # k descends
        if not 0 <= position < len(choice.ks):
            continue
        k = choice.ks[position]
        there = supports.get(k, set())
        differences = scores[:, position] - scores[:, at]
        error = difference_error(differences, table.test_ratio, n_rows)
        change = Difference(float(differences.mean()), error)
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
    """Machines from sparse to dense at one C: what enters and what leaves as k grows."""
    trial = Trial(dataset, settings)
    Cs, ks = resolve_grid(trial)
    curve = None
    if cross_validate:
        scores = trial.score(Cs[-1:], ks, 0)
        curve = Curve.of(ScoreTable(scores, Cs[-1:], ks, *counts_of(trial)), 0)
    scaling, path = trial.path(Cs[-1:], ks)
    names = dataset.encoding.feature_names
    X = scaling(dataset.X)
    steps: list[Step] = []
    before: set[str] = set()
    for at in reversed(range(len(ks))):
        columns = np.flatnonzero(path.coefs[at].any(axis=0))
        used = trial.counted.labels_of(columns)
        right = path.predict(X, ks[at]) == dataset.y
        score, error = (None, None) if curve is None else curve.at(ks[at])
        steps.append(
            Step(
                ks[at],
                [names[j] for j in columns],
                used,
                float(np.average(right, weights=dataset.weights)),
                float(path.objectives[at].mean()),
                [name for name in used if name not in before],
                sorted(before - set(used)),
                score,
                error,
            )
        )
        before = set(used)
    return steps
