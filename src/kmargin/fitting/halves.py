"""A selector fitted to random halves of the rows: what it selects on each."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from kmargin import validate
from kmargin.blas import one_blas_thread
from kmargin.errors import warn_caller
from kmargin.fitting.blueprint import Blueprint
from kmargin.fitting.grid_fit import Procedure, fit_parts
from kmargin.fitting.pools import make_pool
from kmargin.progress import progress_bar
from kmargin.types import Flags, Indices, Vector

LABEL = "stability selection"
MOST_DRAWS = 100  # of halves, until both have every class


@dataclass(frozen=True)
class Rows:
    """Labelled rows in memory."""

    X: Any
    y: np.ndarray
    codes: Indices  # of the classes
    weights: Vector | None
    groups: Indices | None = None  # rows of one group are in one half

    def part(self, rows: Indices) -> "Rows":
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.X[rows], self.y[rows], self.codes[rows], weights)


def read_rows(X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Rows:
    """Rows that count. Raises ValueError unless each half can have a row of each class."""
    check_classification_targets(y)
    groups = None if groups is None else check_groups(groups, len(y))
    weights = None
    if sample_weight is not None:
        weights = validate.check_sample_weight(sample_weight, len(y))
        counts = weights > 0
        X, y, weights = X[counts], y[counts], weights[counts]
        groups = None if groups is None else groups[counts]
    classes, codes = np.unique(y, return_inverse=True)
    validate.check_classes(classes)
    thing, sizes = "row", np.bincount(codes)
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
        thing, sizes = "group", np.array([len(np.unique(groups[codes == c])) for c in range(len(classes))])
    if sizes.min() < 2:
        raise ValueError(
            f"Class {classes.tolist()[sizes.argmin()]!r} has only one {thing}, but each half needs one. "
            f"Give more {thing}s of that class, or leave it out of y."
        )
    return Rows(X, y, codes, weights, groups)


def check_groups(groups: Any, n_rows: int) -> np.ndarray:
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {groups.shape} for {n_rows} rows of X. Give one group for each row, "
            "or leave groups out."
        )
    return groups


def draw_halves(codes: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Two disjoint sets of floor(n / 2) rows, each with half of every class; ascending.

    Of a class with an odd number of rows one is left over. These go to the halves by turns, in random order;
    if their number is odd, the last goes to neither.
    """
    by_class = [rng.permutation(np.flatnonzero(codes == code)) for code in range(codes.max() + 1)]
    left_over = rng.permutation([rows[-1] for rows in by_class if len(rows) % 2]).astype(np.intp)
    n_each = len(left_over) // 2
    halves = [
        np.concatenate([*(rows[: len(rows) // 2] for rows in by_class), left_over[:n_each]]),
        np.concatenate(
            [*(rows[len(rows) // 2 : 2 * (len(rows) // 2)] for rows in by_class), left_over[n_each:][:n_each]]
        ),
    ]
    return np.sort(halves[0]), np.sort(halves[1])


def draw_group_halves(codes: Indices, groups: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """The same of whole groups, each counted with the class that most of its rows have; ascending.

    Drawn again where a half has lost a class. Raises ValueError where that goes on.
    """
    n_classes = codes.max() + 1
    table = np.zeros((groups.max() + 1, n_classes), dtype=int)
    np.add.at(table, (groups, codes), 1)
    for _ in range(MOST_DRAWS):
        halves = [np.flatnonzero(np.isin(groups, half)) for half in draw_halves(table.argmax(axis=1), rng)]
        if all(len(np.unique(codes[half])) == n_classes for half in halves):
            return halves[0], halves[1]
    raise ValueError(
        "The groups cannot be split into halves that both have every class. Give more groups of rare classes."
    )


@dataclass(frozen=True)
class Halves:
    """The first half of each pair and the second, drawn as they are asked for, and a seed for each.

    Both depend on the place of the pair, not on who fits it.
    """

    codes: Indices  # of the classes of all rows
    n_pairs: int
    seed: int
    groups: Indices | None = None  # whose rows stay together

    def __len__(self) -> int:
        return 2 * self.n_pairs

    def __iter__(self) -> Iterator[tuple[Indices, int]]:
        for pair in range(self.n_pairs):
            rng = np.random.default_rng([self.seed, pair])
            pair_of_halves = (
                draw_halves(self.codes, rng)
                if self.groups is None
                else draw_group_halves(self.codes, self.groups, rng)
            )
            for half in pair_of_halves:
                yield half, int(rng.integers(2**31 - 1))


def select_by_machines(
    blueprint: Blueprint, samples: Any, halves: Halves, C: float, k: int, procedure: Procedure
) -> Iterator[Flags]:
    """Which features linear machines use on each half; the samples are read once for all of them."""
    parts = (blueprint.part(samples, half) for half, _ in halves)
    n_classes = len(samples.classes)
    for fit in fit_parts(blueprint, parts, len(halves), n_classes, [C], [k], procedure, LABEL):
        yield (fit.decisions(0, 0).coef != 0).any(axis=0)


def select_by_estimator(
    model: Any, rows: Rows, halves: Halves, standardize: bool, n_jobs: int | None, verbose: int
) -> Iterator[Flags]:
    """Which features copies of any estimator select on each half."""
    jobs = (delayed(select_on_half)(model, rows, half, standardize, seed) for half, seed in halves)
    with progress_bar(LABEL, len(halves), verbose) as bar:
        for selected in make_pool(n_jobs)(jobs):
            bar.advance()
            yield selected


def select_on_half(model: Any, rows: Rows, half: Indices, standardize: bool, seed: int) -> Flags:
    """The features that a copy of the model selects on these rows."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    model.set_params(**dict.fromkeys(names, seed))
    part = rows.part(half)
    X = part.X
    with one_blas_thread:
        if standardize:
            X = StandardScaler(with_mean=False).fit_transform(X, sample_weight=part.weights)
        model.fit(X, part.y, **fit_arguments(model, "sample_weight", part.weights))
    return selected_by(model, rows.X.shape[1])


def fit_arguments(model: Any, argument: str, values: Any) -> dict[str, Any]:
    """What `fit` is to take beside X and y, under its names; each step of a pipeline that takes it has it."""
    if values is None:
        return {}
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    takers = [name for name, step in steps if takes(step, argument)]
    if steps[-1][0] not in takers:
        raise ValueError(
            f"{type(steps[-1][1]).__name__} does not accept {argument}. Leave {argument} out, or use an "
            "estimator whose fit accepts it, such as SparseSVC."
        )
    return {f"{name}__{argument}" if name else argument: values for name in takers}


def takes(model: Any, argument: str) -> bool:
    return bool(has_fit_parameter(model, argument))


def first_step(model: Any) -> Any:
    """The model itself, or what a pipeline starts with."""
    return model.steps[0][1] if isinstance(model, Pipeline) else model


def last_step(model: Any) -> Any:
    """The model itself, or the end of a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def selected_by(model: Any, n_features: int) -> Flags:
    """Which features a fitted model uses: by its `get_support`, or where its coefficients are not zero."""
    last = last_step(model)
    last = getattr(last, "best_estimator_", last)
    if getattr(last, "get_support", None) is not None:
        selected = np.asarray(last.get_support(), dtype=bool)
    elif getattr(last, "coef_", None) is not None:
        selected = np.asarray((np.atleast_2d(last.coef_) != 0).any(axis=0))
    else:
        raise ValueError(
            f"{type(last).__name__} does not select features: once fitted, it has neither get_support nor "
            "coef_. Use SparseSVC, or another estimator that has one of them."
        )
    if len(selected) != n_features:
        raise ValueError(
            f"{type(last).__name__} selects among {len(selected)} features, but X has {n_features}. In a "
            "pipeline, use steps that keep all features in order, such as StandardScaler."
        )
    return selected


@contextmanager
def warnings_told_once(n_halves: int) -> Iterator[None]:
    """Of the warnings of many fits the first of each kind, with how many there were."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    by_kind: dict[type[Warning], list[str]] = {}
    for warning in caught:
        by_kind.setdefault(warning.category, []).append(str(warning.message))
    for kind, texts in by_kind.items():
        more = f" ({len(texts)} such warnings from {n_halves} halves)" if len(texts) > 1 else ""
        warn_caller(texts[0] + more, kind)
