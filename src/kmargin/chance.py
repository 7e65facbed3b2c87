"""How many features a stability selection is expected to find by chance, at most.

Shah and Samworth (2013). A procedure that selects q of p features on average is run on the two halves of
each of B random pairs; a feature is stable if it was selected on a share of at least tau of the 2B halves.
Bounded is the expected number of stable features among those of *low selection probability*, which the
procedure selects on a random half with a probability of at most theta = q/p: no more often than if it chose
blindly. With disjoint halves such a feature is selected on both halves of a pair with a probability of at
most theta^2, and a feature stable at tau is selected on both halves of a share of at least 2 tau - 1 of the
pairs. What remains is to bound a tail P(X >= t) by the mean of X, a count out of B, divided by B:

- worst case: by Markov's inequality, whatever X is;
- unimodal: if the probabilities of the counts rise to one peak and fall from there;
- r-concave: if the r-th powers of the probabilities are a convex sequence, r = -1/2 for counts of pairs,
  r = -1/4 for counts of halves, whose mean is theta; the better of the two. Between the other assumptions,
  r-concave becoming unimodal as r falls, and log-concave as it rises to 0.
"""

import numbers
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kmargin.types import Indices, Matrix, Vector
from kmargin.validate import check_count

R_OF_PAIRS, R_OF_HALVES = -1 / 2, -1 / 4
STEEPEST = 60.0  # logarithm of a power, beyond which all of a distribution is at one end
MOST_STEPS = 100  # as many halvings reach rounding
NEWTON_IS_THERE = 1e-8  # a step of Newton's method after which what is left is rounding: it is squared
AT_ROUNDING = 1e-15  # an interval that is not worth halving, as a share of the first
ROUNDING = 1e-9  # thresholds such as 0.9 are multiples of 1 / (2 B) up to this


class SelectionBounds(NamedTuple):
    """Bounds on the expected number of stable features of low selection probability.

    Attributes
    ----------
    worst_case : float
        Holds without assumptions.
    unimodal : float
        Holds if the number of halves that select such a feature has a unimodal distribution.
    r_concave : float
        Holds under an assumption between that and a log-concave distribution.

    See Also
    --------
    stability_bounds : Computes them and explains the assumptions.
    """

    worst_case: float
    unimodal: float
    r_concave: float


def stability_bounds(n_features: int, q: float, threshold: float, n_pairs: int = 50) -> SelectionBounds:
    """Bound the expected number of features that a stability selection finds by chance.

    Parameters
    ----------
    n_features : int
        The number of features, or of groups if groups are selected.
    q : float
        The mean number selected on each half, such as the k of a model.
    threshold : float
        The selection frequency from which on a feature is stable; above 0.5, at most 1.
    n_pairs : int, default=50
        Number of pairs of complementary halves.

    Returns
    -------
    SelectionBounds
        Bounds on the expected number of stable features among those that are selected on a random half with a
        probability of at most q / n_features: `worst_case` always holds; `unimodal` and `r_concave` hold if
        the number of halves (or pairs) that select such a feature has a distribution of that kind.

    Examples
    --------
    >>> from kmargin import stability_bounds
    >>> bounds = stability_bounds(n_features=1000, q=20, threshold=0.9)
    >>> [round(bound, 3) for bound in bounds]
    [0.5, 0.173, 0.026]
    """
    check_count("n_features", n_features, "features", least=0)
    check_count("n_pairs", n_pairs, "pairs of halves")
    if not isinstance(q, numbers.Real) or not 0 <= q < np.inf:
        raise ValueError(f"q={q!r} is not a mean number of features. Use a number >= 0, such as 10.")
    check_threshold(threshold)
    n_halves = needed_halves(threshold, n_pairs)
    theta = min(1.0, q / n_features) if n_features else 0.0
    n_both = n_halves - n_pairs  # pairs on both halves of which a stable feature was selected, at least
    worst = min(1.0, theta**2 * n_pairs / n_both)
    unimodal = min(worst, unimodal_tail(theta, n_both, n_pairs))
    by_pairs = r_concave_tails(theta**2, n_pairs, R_OF_PAIRS)[n_both]
    by_halves = r_concave_tails(theta, 2 * n_pairs, R_OF_HALVES)[n_halves]
    r_concave = min(unimodal, by_pairs, by_halves)
    return SelectionBounds(*(float(n_features * tail) for tail in (worst, unimodal, r_concave)))


def needed_halves(threshold: float, n_pairs: int) -> int:
    """On how many of the halves a stable feature is selected, at least."""
    return max(n_pairs + 1, int(np.ceil(2 * n_pairs * threshold - ROUNDING)))


def lowest_threshold(n_features: int, q: float, max_false: float, n_pairs: int, bound: str) -> float | None:
    """The lowest at which a bound (a field of `SelectionBounds`) is at most `max_false`; None if none is."""
    for n_halves in range(n_pairs + 1, 2 * n_pairs + 1):  # the bounds fall as it rises
        threshold = n_halves / (2 * n_pairs)
        if getattr(stability_bounds(n_features, q, threshold, n_pairs), bound) <= max_false:
            return threshold
    return None


def stability_k(
    n_features: int,
    max_false: float = 1.0,
    threshold: float = 0.9,
    n_pairs: int = 50,
    bound: str = "unimodal",
) -> int:
    """Return the largest k for which at most `max_false` features are expected to be selected by chance.

    Parameters
    ----------
    n_features : int
        The number of features, or of groups if groups are selected.
    max_false : float, default=1.0
        Acceptable expected number of features selected by chance.
    threshold : float, default=0.9
        The selection frequency from which on a feature is stable; above 0.5, at most 1.
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
    check_bound(bound)
    low, high = 0, n_features
    while low < high:
        k = (low + high + 1) // 2
        if getattr(stability_bounds(n_features, k, threshold, n_pairs), bound) <= max_false:
            low = k
        else:
            high = k - 1
    return low


def unimodal_tail(theta: float, n_both: int, n_pairs: int) -> float:
    """P(X >= n_both / n_pairs) at most, for unimodal X with mean theta^2; 1 where no formula is known.

    The extreme distribution is a mixture of zero and of equal probabilities for 0, ..., b: its tail is
    theta^2 B * 2 (b - n_both + 1) / (b (b + 1)), largest at b = 2 n_both - 1 or, if that exceeds B, at B.
    """
    tau = 0.5 + n_both / (2 * n_pairs)
    lowest = min(0.5 + theta**2, 0.5 + 1 / (2 * n_pairs) + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or tau <= lowest:
        return 1.0
    b = min(2 * n_both - 1, n_pairs)
    return float(theta**2 * n_pairs * 2 * (b - n_both + 1) / (b * (b + 1)))


@lru_cache(maxsize=512)
def r_concave_tails(mean: float, n: int, r: float) -> Vector:
    """The largest P(X >= t / n), for t = 0, ..., n, of r-concave X on {0, 1/n, ..., 1} with this mean; r < 0.

    A linear function of the distribution is largest at one that is no mixture of others in the set. If the
    r-th power of f is convex and not affine on the support of f, f can be moved to and fro in three
    directions (two that change the power by an affine sequence, one at the kink), one of which keeps both
    sum and mean: f is a mixture. So it is enough to look at supports {low, ..., high}, on each of which one
    affine power has the right mean.
    """
    best = np.zeros(n + 1)
    at = min(mean, 1.0) * n
    slopes = np.zeros(n + 1)  # for each high, as the last low left them
    for low in range(int(at) + 1 if 0 < at < n else 0):
        first = max(int(np.ceil(at)), low + 1)
        found = affine_powers(at - low, np.arange(first, n + 1) - low, n - low, r, slopes[first:])
        tails = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
        best[low:] = np.maximum(best[low:], tails.max(axis=0))
    best[: int(at) + 1] = 1.0  # what never varies
    best = np.minimum(best, 1.0)
    best.flags.writeable = False  # it is handed out again
    return best


def affine_powers(mean: float, lasts: Indices, n: int, r: float, slopes: Vector) -> Matrix:
    """For each last, probabilities of 0, ..., last with this mean, whose r-th powers are an affine sequence.

    A row for each, zero from there to n. The powers go from e^slope to e^-slope, and the mean rises with the
    slope. Its logarithm is nearly linear in it, so Newton's method is at its end after a few steps; where it
    would leave what is known to hold the slope, that is halved. `slopes` are where it begins, and ends.
    """
    places = np.arange(n + 1)
    way = np.minimum(places / lasts[:, None], 1.0)
    steepest = STEEPEST * max(1.0, -r)
    low, high = np.full(len(lasts), -steepest), np.full(len(lasts), steepest)
    todo = np.arange(len(lasts))
    for _ in range(MOST_STEPS):
        here = slopes[todo]
        found, lean = _affine_powers(here, lasts[todo], way[todo], r)
        means = found @ places
        below, lean = means < mean, lean * found
        low[todo], high[todo] = np.where(below, here, low[todo]), np.where(below, high[todo], here)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise = (lean @ places - means * lean.sum(axis=1)) / (r * means)  # of the logarithm
            steps = here - np.log(means / mean) / rise
        inside = (low[todo] < steps) & (steps < high[todo])
        slopes[todo] = np.where(inside, steps, (low[todo] + high[todo]) / 2)
        there = inside & (np.abs(slopes[todo] - here) <= NEWTON_IS_THERE)
        todo = todo[~there & (high[todo] - low[todo] > AT_ROUNDING * steepest)]
        if len(todo) == 0:
            break
    return _affine_powers(slopes, lasts, way, r)[0]


def _affine_powers(slopes: Vector, lasts: Indices, way: Matrix, r: float) -> tuple[Matrix, Matrix]:
    """Those of given slopes; and r times how fast the logarithms of the probabilities rise with these, each
    before all are divided by their sum. `way` is how far each place is from the first to the last.
    """
    first, end = np.minimum(2 * slopes, 0.0), np.minimum(-2 * slopes, 0.0)  # logarithms: the larger is 1
    falls, rises = (1.0 - way) * np.exp(first)[:, None], way * np.exp(end)[:, None]
    powers, rows = falls + rises, np.arange(len(lasts))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, lean = np.log(powers), (falls - rises) / powers
    logs[:, 0], logs[rows, lasts] = first, end  # what may be too small for a power
    lean[:, 0], lean[rows, lasts] = 1.0, -1.0
    logs /= r
    beyond = np.arange(way.shape[1]) > lasts[:, None]
    logs[beyond], lean[beyond] = -np.inf, 0.0
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True), lean


def check_threshold(threshold: object, others: str = "") -> None:
    """A share of halves that most of them make up."""
    is_number = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool | np.bool_)
    if not is_number or not 0.5 < float(threshold) <= 1:  # type: ignore[arg-type]
        raise ValueError(
            f"threshold={threshold!r} is not a proportion above one half; below that, no error bound "
            f"holds. Use a number above 0.5, at most 1{others}."
        )


def check_max_false(value: object) -> None:
    """A finite number > 0."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not 0 < float(value) < np.inf:  # type: ignore[arg-type]
        raise ValueError(
            f"max_false={value!r} is not an expected number of features. Use a number > 0, such as 1."
        )


def check_bound(value: object) -> None:
    """The name of a bound."""
    if not (isinstance(value, str) and value in SelectionBounds._fields):
        names = ", ".join(map(repr, SelectionBounds._fields))
        raise ValueError(f"bound={value!r} is not known. Use one of {names}.")
