"""A model for a table, and everything that a report says about it."""

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kmargin.fitting.stand_ins import Worth
from kmargin.intervals import difference_error
from kmargin.selection import ScoreTable
from kmargin.tables.assess import Assessment, Difference, assess
from kmargin.tables.choice import Choice, choose, counts_of, resolve_grid
from kmargin.tables.column_request import CountedFeatures
from kmargin.tables.model import TableModel
from kmargin.tables.prepare import Dataset
from kmargin.tables.seen import note_rows
from kmargin.tables.settings import Settings
from kmargin.tables.stability import Plan, Stability, measure_stability
from kmargin.tables.trial import Trial
from kmargin.types import Indices, Vector


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
    """What k counts and models use, for each k: those of a path, and at the chosen k the model itself."""
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
