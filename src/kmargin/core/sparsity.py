"""The set S_k of coefficients with at most k nonzero units: projection, distance and normaliser."""

import math

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.core.units import Units


def project(beta: Vector, k: int, n_features: int | None = None) -> Vector:
    """Return the point of S_k nearest to `beta`.

    The k entries largest in magnitude are kept, the others become 0. Entries tied at the
    threshold are kept in index order, so the same input always gives the same support. The cost
    is that of a selection, linear in the number of features.
    """
    n_features = len(beta) if n_features is None else n_features
    n_dropped = n_features - k
    if n_dropped <= 0:
        return beta.copy()
    magnitude = np.abs(beta[:n_features])
    threshold = np.partition(magnitude, n_dropped)[n_dropped] if k > 0 else np.inf
    keep = magnitude > threshold
    tied = np.flatnonzero(magnitude == threshold)
    keep[tied[: k - np.count_nonzero(keep)]] = True
    return np.where(np.append(keep, np.ones(len(beta) - n_features, np.bool_)), beta, 0.0)


def project_by_sorting(beta: Vector, k: int, n_features: int | None = None) -> Vector:
    """The naive twin of :func:`project`: a stable sort, largest magnitude first."""
    n_features = len(beta) if n_features is None else n_features
    projected = beta.copy()
    projected[np.argsort(-np.abs(beta[:n_features]), kind="stable")[k:]] = 0.0
    return projected


class UnitSparsity:
    """S_k of units: matrices of coefficients in which at most k units are nonzero, for every k.

    A matrix has one row for each binary problem and one column for each feature; a unit is a set of columns.
    Every coefficient has the sign that its column requires, or is 0. Intercepts are not part of the matrix.
    """

    def __init__(self, units: Units) -> None:
        self.units = units
        n_features = len(units.signs)
        self.signs = units.signs if units.signs.any() else None
        self.unit_of = np.full(n_features, units.n_units)  # n_units for a column of no unit, never kept
        self.unit_of[units.columns] = np.repeat(np.arange(units.n_units), np.diff(units.starts))
        each = np.array_equal(self.unit_of, np.arange(n_features))
        self.are_columns = each and units.n_units == n_features

    def holds_all(self, k: int) -> bool:
        """Whether every matrix is in S_k."""
        every_column = not np.any(self.unit_of == self.units.n_units)
        return k >= self.units.n_units and every_column and self.signs is None

    def project(self, W: Matrix, k: int) -> Matrix:
        """Return the point of S_k nearest to W.

        Coefficients of the wrong sign become 0. Of what is left, the k units of largest norm over all binary
        problems are kept, the others become 0: coefficients of the wrong sign add to the distance in any
        case, so dropping a unit adds its squared norm without them. Units that are always in come before any
        other. Units tied at the threshold are kept in index order.
        """
        right = W if self.signs is None else np.where(W * self.signs < 0, 0.0, W)
        return np.where(self.kept(right, k)[self.unit_of], right, 0.0)

    def kept(self, W: Matrix, k: int) -> Flags:
        """Return which units are kept of coefficients with the right signs; False for columns of no unit."""
        norms_sq = self.norms_sq(W)
        norms_sq[:-1][self.units.fixed] = np.inf
        kept = project(norms_sq, k, self.units.n_units) > 0
        kept[-1] = False
        return kept

    def norms_sq(self, W: Matrix) -> Vector:
        """Return the squared norm of each unit over all binary problems, then that of columns of no unit."""
        of_columns = np.einsum("mj,mj->j", W, W)
        if self.are_columns:
            return np.append(of_columns, 0.0)
        norms_sq: Vector = np.bincount(self.unit_of, of_columns, self.units.n_units + 1).astype(np.float64)
        return norms_sq


@compiled
def select_largest(
    beta: Vector, k: int, n_features: int, guess: float, work: Vector, candidates: Indices, kept: Indices
) -> tuple[float, float, float]:
    """The compiled twin of :func:`project`: put the indices of the entries it keeps into `kept`.

    Returns the k-th largest magnitude, the squared norm of what is kept and the squared distance to
    S_k. `work` and `candidates` have room for `n_features` entries, `kept` for k <= n_features.

    Only magnitudes from `guess` upwards are searched, unless fewer than k reach it. An iteration
    that changes beta little guesses a little below its last threshold, and pays one pass over beta.
    """
    n_candidates = 0
    distance_sq = 0.0
    for j in range(n_features):
        magnitude = abs(beta[j])
        work[n_candidates] = magnitude
        candidates[n_candidates] = j
        if magnitude >= guess:
            n_candidates += 1
        else:
            distance_sq += magnitude * magnitude
    if n_candidates < k:
        n_candidates, distance_sq = n_features, 0.0
        for j in range(n_features):
            work[j] = abs(beta[j])
            candidates[j] = j
    threshold = kth_largest(work, k, n_candidates) if k > 0 else np.inf
    n_tied = k  # how many of the entries at the threshold are kept
    for c in range(n_candidates):
        if abs(beta[candidates[c]]) > threshold:
            n_tied -= 1
    n_kept = 0
    kept_sq = 0.0
    for c in range(n_candidates):
        magnitude = abs(beta[candidates[c]])
        if magnitude > threshold or (magnitude == threshold and n_tied > 0):
            n_tied -= magnitude == threshold
            kept[n_kept] = candidates[c]
            n_kept += 1
            kept_sq += magnitude * magnitude
        else:
            distance_sq += magnitude * magnitude
    return threshold, kept_sq, distance_sq


@compiled
def kth_largest(work: Vector, k: int, n: int) -> float:
    """The k-th largest of the first n entries of `work`, which are reordered, by quickselect.

    Hoare's partition stops on equal keys from both sides, so the many equal zeros of a
    warm-started vector split evenly and the expected cost stays linear.
    """
    low, high, wanted = 0, n - 1, k - 1
    while low < high:
        middle = (low + high) // 2
        first, second, third = work[low], work[middle], work[high]
        pivot = max(min(first, second), min(max(first, second), third))
        left, right = low, high
        while left <= right:
            while work[left] > pivot:
                left += 1
            while work[right] < pivot:
                right -= 1
            if left <= right:
                work[left], work[right] = work[right], work[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return work[wanted]


def normalizer(n_features: int, k: int) -> int:
    """The number p - k + 1 by which the paper divides a squared distance to S_k.

    It counts the entries that may differ between beta and its projection, plus one, and makes
    distances comparable between values of k. The authors' program counts the intercept among the
    p parameters; the paper's text, followed here, does not.
    """
    return n_features - k + 1


def count_kept(sparsity: float, n_features: int) -> int:
    """The k of a sparsity s = 1 - k/p, rounded half up as in the paper's tables."""
    return math.floor((1.0 - sparsity) * n_features + 0.5 + 1e-9)
