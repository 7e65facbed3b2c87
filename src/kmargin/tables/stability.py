"""Features of a table that come back on random halves of its rows."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from kmargin import SparseSVC, StabilitySelection, stability_C
from kmargin.errors import InputError, blame_input, count, listing
from kmargin.tables.column_request import CountedFeatures, count_features
from kmargin.tables.features import Scaling
from kmargin.tables.prepare import Dataset
from kmargin.tables.settings import Settings
from kmargin.types import Matrix, Vector

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
