"""The choice of k and C for a data set, and everything that a report says about it."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kmargin import validate
from kmargin.errors import InputError, blame_input, listing
from kmargin.selection import choose
from kmargin.tables.column_request import CountedFeatures
from kmargin.tables.model import TableModel
from kmargin.tables.prepare import Dataset
from kmargin.tables.trial import Examination, Settings, Trial
from kmargin.types import Indices, Vector


class Neighbour(NamedTuple):
    """One of what k counts more or fewer than chosen."""

    k: int
    score: float
    change: float  # of the score
    enters: list[str]  # features, or groups of them
    leaves: list[str]


class Highest(NamedTuple):
    """The best of all that was tried."""

    k: int
    C: float
    score: float


@dataclass(frozen=True)
class Curve:
    """Scores along k, over the folds."""

    ks: Indices  # descending
    mean: Vector
    error: Vector  # standard errors of the means

    @classmethod
    def of(cls, ks: list[int], scores: np.ndarray) -> "Curve":
        return cls(np.array(ks), scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores)))

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
    k: int
    C: float
    highest: Highest | None  # None where there was nothing to choose
    curve: Curve  # at C
    accuracy: float  # mean over the folds
    accuracy_error: float  # its standard error
    folds: Examination
    frequency: Vector | None  # of each feature: share of the folds that chose it; None with a kernel
    neighbours: tuple[Neighbour, ...]  # one fewer, one more, where there are such
    notes: tuple[str, ...]

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
    """Cross-validate k and C, fit to all rows, and see what the folds say about the choice.

    The folds are walked twice: over all C and k to choose, then at the chosen C with the chosen k and
    its neighbours among the ks. All that is reported comes from the second walk.
    """
    trial = Trial(dataset, settings)
    Cs, ks = resolve_grid(trial)
    candidates = ks if settings.k is None else [settings.k]
    row, column, highest = 0, 0, None
    if len(Cs) * len(candidates) > 1:
        scores = trial.score(Cs, ks)[:, :, [ks.index(k) for k in candidates]]
        row, column = choose(scores, candidates, Cs, settings.select)
        at = choose(scores, candidates, Cs, "best")
        highest = Highest(candidates[at[1]], Cs[at[0]], float(scores.mean(axis=0)[at]))
    k = candidates[column]
    near = {j for j in (k - 1, k, k + 1) if trial.least <= j <= trial.n_available}
    walked = sorted({*ks, *near}, reverse=True)
    folds = trial.examine(Cs[: row + 1], walked, k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, path = trial.refit(Cs[: row + 1], walked, k)
    curve = Curve.of(walked, folds.scores)
    supports: dict[int, set[str]] = {}
    frequency = None
    if not model.is_kernel:
        supports = {
            int(j): set(trial.counted.labels_of(np.flatnonzero(coefs.any(axis=0))))
            for j, coefs in zip(path.ks, path.coefs, strict=True)
        }
        frequency = np.bincount(np.concatenate(folds.supports), minlength=dataset.X.shape[1]) / len(
            folds.supports
        )
    accuracies = fold_accuracies(dataset, folds)
    return Analysis(
        dataset=dataset,
        settings=settings,
        counted=trial.counted,
        model=model,
        k=k,
        C=Cs[row],
        highest=highest,
        curve=curve,
        accuracy=float(accuracies.mean()),
        accuracy_error=float(accuracies.std(ddof=1) / np.sqrt(len(accuracies))),
        folds=folds,
        frequency=frequency,
        neighbours=tuple(describe_neighbour(j, k, curve, supports) for j in sorted(near - {k})),
        notes=(*dataset.notes, *trial.notes, *(str(warning.message) for warning in caught)),
    )


def resolve_grid(trial: Trial) -> tuple[list[float], list[int]]:
    """The values of C, ascending, and of k, descending, the one asked for among them."""
    settings, things = trial.settings, trial.things
    with blame_input():
        n_available = trial.n_available
    asked = [] if settings.k is None else [settings.k]
    given = settings.ks if isinstance(settings.ks, list) else []
    for k in (*asked, *given):
        if not 0 <= k <= n_available:
            raise InputError(f"k = {k} of {n_available} {things} cannot be. Use 0 to {n_available}.")
        if k < trial.least:
            kept = listing(trial.counted.labels_of(np.flatnonzero(trial.counted.always_in)))
            raise InputError(
                f"k = {k} leaves no room for the {trial.least} {things} that --keep names ({kept}): they "
                f"count in k. Use {trial.least} or more, or keep fewer."
            )
    with blame_input():
        largest = trial.blueprint.largest_default(trial.samples)
        ks = validate.resolve_ks(settings.ks, n_available, largest, things)
        ks = [k for k in ks if k >= trial.least] or [trial.least]
        return validate.resolve_Cs(list(settings.Cs)), sorted({*ks, *asked}, reverse=True)


def fold_accuracies(dataset: Dataset, folds: Examination) -> Vector:
    """The share of rows that each fold predicted right, by weight if there are weights."""
    weights = np.ones(len(dataset.y)) if dataset.weights is None else dataset.weights
    right = folds.predicted == dataset.y
    return np.bincount(folds.fold, weights * right) / np.bincount(folds.fold, weights)


def describe_neighbour(j: int, k: int, curve: Curve, supports: dict[int, set[str]]) -> Neighbour:
    score, chosen = curve.at(j)[0], curve.at(k)[0]
    there, here = supports.get(j, set()), supports.get(k, set())
    return Neighbour(j, score, score - chosen, sorted(there - here), sorted(here - there))


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
    curve = Curve.of(ks, trial.examine(Cs[-1:], ks, ks[0]).scores) if cross_validate else None
    model, path = trial.refit(Cs[-1:], ks, ks[0])
    names = dataset.encoding.feature_names
    X = model.scaling(dataset.X)
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
