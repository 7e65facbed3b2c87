"""Stability selection: select features on random halves of the rows, and bound the false selections."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from kmargin.core import validation
from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.linalg import one_blas_thread
from kmargin.core.validation import check_choice, check_count, invalid, is_number, warn_caller
from kmargin.fitting.fit import make_pool
from kmargin.fitting.progress import progress_bar

LABEL = "stability selection"
MAX_DRAWS = 100  # an error is raised if after this many random splits of groups some half still lacks a class


@dataclass(frozen=True)
class Rows:
    """The labelled training rows of a stability selection, in memory."""

    X: Any
    y: np.ndarray
    codes: Indices  # the class of each row, as an index into the sorted classes
    weights: Vector | None
    groups: Indices | None = None  # the group of each row; all rows of a group are in the same half


def read_rows(X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Rows:
    """Check the arguments of `StabilitySelection.fit` and return the rows of positive weight.

    Raises ValueError if a class has a single row (or group), because each half needs one.
    """
    check_classification_targets(y)
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and groups.shape != (len(y),):
        raise ValueError(
            f"groups has shape {groups.shape} for {len(y)} rows of X. Give one group for each row, "
            "or leave groups out."
        )
    weights = None
    if sample_weight is not None:
        weights = validation.check_sample_weight(sample_weight, len(y))
        counts = weights > 0
        X, y, weights = X[counts], y[counts], weights[counts]
        groups = None if groups is None else groups[counts]
    classes, codes = np.unique(y, return_inverse=True)
    validation.check_classes(classes)
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


def draw_halves(codes: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw two disjoint sets of floor(n / 2) of the n rows, stratified by class; return their sorted indices.

    Each set gets half of the rows of every class. A class with an odd number of rows leaves one row over;
    half of these left-over rows go to each set, and if their number is odd, one of them goes to neither set.
    """
    by_class = [rng.permutation(np.flatnonzero(codes == code)) for code in range(codes.max() + 1)]
    left_over = rng.permutation([rows[-1] for rows in by_class if len(rows) % 2]).astype(np.intp)
    halves = [
        [rows[which * (len(rows) // 2) :][: len(rows) // 2] for rows in (*by_class, left_over)]
        for which in (0, 1)
    ]
    return np.sort(np.concatenate(halves[0])), np.sort(np.concatenate(halves[1]))


def draw_group_halves(codes: Indices, groups: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw two disjoint random halves of the groups; return the rows of each half, as ascending indices.

    The draw is stratified by the most frequent class of each group. It is repeated while a half has no row of
    some class; after `MAX_DRAWS` draws ValueError is raised.
    """
    n_classes = codes.max() + 1
    table = np.zeros((groups.max() + 1, n_classes), dtype=int)
    np.add.at(table, (groups, codes), 1)
    for _ in range(MAX_DRAWS):
        halves = [np.flatnonzero(np.isin(groups, half)) for half in draw_halves(table.argmax(axis=1), rng)]
        if all(len(np.unique(codes[half])) == n_classes for half in halves):
            return halves[0], halves[1]
    raise ValueError(
        "The groups cannot be split into halves that both have every class. Give more groups of rare classes."
    )


@dataclass(frozen=True)
class Halves:
    """Yields both halves of `n_pairs` random splits of the rows: for each half its rows and a random seed.

    Halves are drawn when they are needed. They depend only on `seed` and the index of their split, so that
    results are the same for any number of workers.
    """

    codes: Indices  # the class of each row
    n_pairs: int
    seed: int
    groups: Indices | None = None  # the group of each row; all rows of a group are in the same half

    def __len__(self) -> int:
        return 2 * self.n_pairs

    def __iter__(self) -> Iterator[tuple[Indices, int]]:
        for pair in range(self.n_pairs):
            rng = np.random.default_rng([self.seed, pair])
            if self.groups is None:
                halves = draw_halves(self.codes, rng)
            else:
                halves = draw_group_halves(self.codes, self.groups, rng)
            for half in halves:
                yield half, int(rng.integers(2**31 - 1))


def select_by_estimator(
    model: Any, rows: Rows, halves: Halves, standardize: bool, n_jobs: int | None, verbose: int
) -> Iterator[Flags]:
    """Fit a clone of the estimator `model` to each half; yield for each a mask of the selected features."""
    jobs = (delayed(select_on_half)(model, rows, half, standardize, seed) for half, seed in halves)
    with progress_bar(LABEL, len(halves), verbose) as bar:
        for selected in make_pool(n_jobs)(jobs):
            bar.advance()
            yield selected


def select_on_half(model: Any, rows: Rows, half: Indices, standardize: bool, seed: int) -> Flags:
    """Fit a clone of the model to the rows `half` and return a mask of the features that it selects."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    model.set_params(**dict.fromkeys(names, seed))
    X, weights = rows.X[half], None if rows.weights is None else rows.weights[half]
    with one_blas_thread:
        if standardize:
            X = StandardScaler(with_mean=False).fit_transform(X, sample_weight=weights)
        model.fit(X, rows.y[half], **fit_arguments(model, "sample_weight", weights))
    return selected_by(model, rows.X.shape[1])


def fit_arguments(model: Any, argument: str, values: Any) -> dict[str, Any]:
    """Return keyword arguments for the model's `fit` that pass `values` as `argument`, say "sample_weight".

    In a pipeline, every step whose `fit` accepts the argument gets the values; if scikit-learn's metadata
    routing is on, the steps that request them. Raises ValueError if the last step does not accept it.
    """
    if values is None:
        return {}
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    takers = [name for name, step in steps if has_fit_parameter(step, argument)]
    if steps[-1][0] not in takers:
        raise ValueError(
            f"{type(steps[-1][1]).__name__} does not accept {argument}. Leave {argument} out, or use an "
            "estimator whose fit accepts it, such as SparseSVC."
        )
    if get_config()["enable_metadata_routing"]:
        return {argument: values}
    return {f"{name}__{argument}" if name else argument: values for name in takers}


def last_step(model: Any) -> Any:
    """The last step of a pipeline; any other model is returned as it is."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def selected_by(model: Any, n_features: int) -> Flags:
    """Return a mask of the features that a fitted model selects: `get_support()`, or its nonzero `coef_`."""
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
    """Replace all warnings of a category in the `with` block by one, with the first text and their number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    by_kind: dict[type[Warning], list[str]] = {}
    for warning in caught:
        by_kind.setdefault(warning.category, []).append(str(warning.message))
    for kind, texts in by_kind.items():
        more = f" ({len(texts)} such warnings from {n_halves} halves)" if len(texts) > 1 else ""
        warn_caller(texts[0] + more, kind)


# Shah and Samworth (2013) assume r-concave distributions: for r < 0, the r-th powers of the probabilities are
# convex. R_OF_PAIRS is their r for the number of pairs whose two halves both select a feature, R_OF_HALVES
# their r for the number of halves that select it.
R_OF_PAIRS, R_OF_HALVES = -1 / 2, -1 / 4
MAX_SLOPE = 60.0  # bound on |slope|, where powers p^r of probabilities p go linearly from e^slope to e^-slope
MAX_STEPS = 100  # most Newton or bisection steps to find a slope; 100 bisections alone reach rounding error
NEWTON_TOL = 1e-8  # a slope is accepted after a Newton step of at most this length: convergence is quadratic
BISECTION_RTOL = 1e-15  # a slope is also accepted if known to be in an interval of this times MAX_SLOPE
THRESHOLD_TOL = 1e-9  # subtracted inside ceil(2 * n_pairs * threshold), so that no rounding error raises it


class SelectionBounds(NamedTuple):
    """Bounds on the expected number of features that a stability selection selects by chance.

    Attributes
    ----------
    worst_case : float
        The bound that holds without assumptions.
    unimodal : float
        The bound if the number of pairs whose two halves both select a feature has a unimodal distribution.
    r_concave : float
        The bound if this number and the number of halves that select the feature have r-concave
        distributions, which is more than unimodal and less than log-concave.

    See Also
    --------
    stability_bounds : Computes these bounds and explains the assumptions.
    """

    worst_case: float
    unimodal: float
    r_concave: float


def stability_bounds(n_features: int, q: float, threshold: float, n_pairs: int = 50) -> SelectionBounds:
    """Bound the expected number of features that are stable by chance in a stability selection.

    Parameters
    ----------
    n_features : int
        The number of features, or of groups if groups are selected.
    q : float
        The mean number of features selected on each half, such as the k of a model.
    threshold : float
        The least selection frequency of a stable feature; above 0.5, at most 1.
    n_pairs : int, default=50
        Number of pairs of complementary halves.

    Returns
    -------
    SelectionBounds
        Bounds on the expected number of stable features among those that are selected on a random half with a
        probability of at most q / n_features. `worst_case` always holds. `unimodal` assumes that the number
        of pairs whose two halves both select such a feature has a unimodal distribution, `r_concave` that
        this number and the number of halves that select the feature have r-concave distributions.

    Examples
    --------
    >>> from kmargin import stability_bounds
    >>> bounds = stability_bounds(n_features=1000, q=20, threshold=0.9)
    >>> [round(bound, 3) for bound in bounds]
    [0.5, 0.173, 0.026]
    """
    check_count("n_features", n_features, "features", least=0)
    check_count("n_pairs", n_pairs, "pairs of halves")
    if not is_number(q, at_least=0):
        raise invalid("q", q, "a mean number of features", "Use a number >= 0, such as 10.")
    check_threshold(threshold)
    n_halves = needed_halves(threshold, n_pairs)
    theta = min(1.0, q / n_features) if n_features else 0.0
    n_both = n_halves - n_pairs  # a stable feature is selected on both halves of at least this many pairs
    worst = min(1.0, theta**2 * n_pairs / n_both)
    unimodal = min(worst, unimodal_tail(theta, n_both, n_pairs))
    by_pairs = r_concave_tails(theta**2, n_pairs, R_OF_PAIRS)[n_both]
    by_halves = r_concave_tails(theta, 2 * n_pairs, R_OF_HALVES)[n_halves]
    r_concave = min(unimodal, by_pairs, by_halves)
    return SelectionBounds(*(float(n_features * tail) for tail in (worst, unimodal, r_concave)))


def needed_halves(threshold: float, n_pairs: int) -> int:
    """The least number of the ``2 * n_pairs`` halves that must select a feature to make it stable."""
    return max(n_pairs + 1, int(np.ceil(2 * n_pairs * threshold - THRESHOLD_TOL)))


def stability_k(
    n_features: int,
    max_false: float = 1.0,
    threshold: float = 0.9,
    n_pairs: int = 50,
    bound: str = "unimodal",
) -> int:
    """Return the largest k for which at most `max_false` features are expected to be stable by chance.

    Parameters
    ----------
    n_features : int
        The number of features, or of groups if groups are selected.
    max_false : float, default=1.0
        Acceptable expected number of features stable by chance.
    threshold : float, default=0.9
        The least selection frequency of a stable feature; above 0.5, at most 1.
    n_pairs : int, default=50
        Number of pairs of complementary halves.
    bound : "worst_case", "unimodal" or "r_concave", default="unimodal"
        Which of the :func:`~kmargin.stability_bounds` to use.

    Returns
    -------
    int
        The largest such k; 0 if there is none.

    Examples
    --------
    >>> from kmargin import stability_k
    >>> stability_k(n_features=1000, bound="worst_case")
    28
    """
    check_count("n_features", n_features, "features", least=0)
    check_max_false(max_false)
    check_choice("bound", bound, SelectionBounds._fields)

    def bound_at(k: int) -> float:
        return float(getattr(stability_bounds(n_features, k, threshold, n_pairs), bound))

    return bisect_right(range(1, n_features + 1), max_false, key=bound_at)


def unimodal_tail(theta: float, n_both: int, n_pairs: int) -> float:
    """An upper bound on P(X >= n_both) for a unimodal X in {0, ..., B} with mean theta^2 B; B is `n_pairs`.

    X is the number of pairs whose two halves both select a feature, and theta bounds the probability that one
    half does. The result is 1 where no better bound is known. Otherwise the bound is attained by mixtures of
    X = 0 and uniform X on 0, ..., b. Then P(X >= n_both) = theta^2 B * 2 (b - n_both + 1) / (b (b + 1)) is
    largest at b = min(2 n_both - 1, B).
    """
    tau = 0.5 + n_both / (2 * n_pairs)
    lowest = min(0.5 + theta**2, 0.5 + 1 / (2 * n_pairs) + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or tau <= lowest:
        return 1.0
    b = min(2 * n_both - 1, n_pairs)
    return float(theta**2 * n_pairs * 2 * (b - n_both + 1) / (b * (b + 1)))


@lru_cache(maxsize=512)
def r_concave_tails(mean: float, n: int, r: float) -> Vector:
    """For t = 0, ..., n, the largest P(X >= t / n) of an r-concave X in {0, 1/n, ..., 1} with this mean.

    P(X >= t / n) is linear in the probabilities f of X, so it is largest at an f that is no mixture of other
    such distributions (r < 0, convex f^r). For such an f, the sequence f^r is affine on the support, because
    any other f has enough freedom to be written as a mixture with the same mean. It is therefore enough to
    compare all supports {low, ..., high}. On each, exactly one f with affine f^r has the given mean.
    """
    best = np.zeros(n + 1)
    at = min(mean, 1.0) * n
    slopes = np.zeros(n + 1)  # warm starts: for each `high`, the slope found with the previous `low`
    for low in range(int(at) + 1 if 0 < at < n else 0):
        first = max(int(np.ceil(at)), low + 1)
        found = affine_powers(at - low, np.arange(first, n + 1) - low, n - low, r, slopes[first:])
        tails = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
        best[low:] = np.maximum(best[low:], tails.max(axis=0))
    best[: int(at) + 1] = 1.0  # if t / n is at most the mean, P(X >= t / n) can be 1
    best = np.minimum(best, 1.0)
    best.flags.writeable = False  # the cached array is shared, so no caller may change it
    return best


def affine_powers(mean: float, lasts: Indices, n: int, r: float, slopes: Vector) -> Matrix:
    """For each `last` in `lasts`, find probabilities p of 0, ..., last that have this mean and affine p^r.

    The result has a row p for each of them, padded with zeros up to n. Up to a common factor, p^r goes from
    e^slope at 0 linearly to e^-slope at `last`. The mean rises with the slope, and its logarithm is nearly
    linear in the slope, so Newton's method converges in a few steps. A step out of the interval known to
    contain the slope is replaced by a bisection. `slopes` holds starting values and receives the result.
    """
    places = np.arange(n + 1)
    way = np.minimum(places / lasts[:, None], 1.0)
    steepest = MAX_SLOPE * max(1.0, -r)
    low, high = np.full(len(lasts), -steepest), np.full(len(lasts), steepest)
    todo = np.arange(len(lasts))
    for _ in range(MAX_STEPS):
        here = slopes[todo]
        found, lean = _affine_powers(here, lasts[todo], way[todo], r)
        means = found @ places
        below, lean = means < mean, lean * found
        low[todo], high[todo] = np.where(below, here, low[todo]), np.where(below, high[todo], here)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise = (lean @ places - means * lean.sum(axis=1)) / (r * means)  # d log(means) / d slope
            steps = here - np.log(means / mean) / rise
        inside = (low[todo] < steps) & (steps < high[todo])
        slopes[todo] = np.where(inside, steps, (low[todo] + high[todo]) / 2)
        there = inside & (np.abs(slopes[todo] - here) <= NEWTON_TOL)
        todo = todo[~there & (high[todo] - low[todo] > BISECTION_RTOL * steepest)]
        if len(todo) == 0:
            break
    return _affine_powers(slopes, lasts, way, r)[0]


def _affine_powers(slopes: Vector, lasts: Indices, way: Matrix, r: float) -> tuple[Matrix, Matrix]:
    """For each slope, return probabilities p with affine p^r, and r times the derivatives of log p by slope.

    Up to a factor, p^r goes from e^slope at the first entry, where `way` is 0, to e^-slope at the last, where
    it is 1. The derivatives are those before the probabilities of a row are divided by their sum.
    """
    # logarithms of the first and the last p^r, divided by a factor so that the larger one is 1
    first, end = np.minimum(2 * slopes, 0.0), np.minimum(-2 * slopes, 0.0)
    falls, rises = (1.0 - way) * np.exp(first)[:, None], way * np.exp(end)[:, None]
    powers, rows = falls + rises, np.arange(len(lasts))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, lean = np.log(powers), (falls - rises) / powers
    logs[:, 0], logs[rows, lasts] = first, end  # exact logarithms even if the power itself underflows
    lean[:, 0], lean[rows, lasts] = 1.0, -1.0
    logs /= r
    beyond = np.arange(way.shape[1]) > lasts[:, None]
    logs[beyond], lean[beyond] = -np.inf, 0.0
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True), lean


def check_threshold(threshold: Any, others: str = "") -> None:
    """Raise ValueError unless the threshold is above 0.5, at most 1; its text also suggests `others`."""
    if not (is_number(threshold, above=0.5) and threshold <= 1):
        meaning = "a proportion above one half; below that, no error bound holds"
        raise invalid("threshold", threshold, meaning, f"Use a number above 0.5, at most 1{others}.")


def check_max_false(max_false: object) -> None:
    """Raise ValueError unless `max_false` is a finite number > 0."""
    if not is_number(max_false, above=0):
        meaning, advice = "an expected number of features", "Use a number > 0, such as 1."
        raise invalid("max_false", max_false, meaning, advice)
