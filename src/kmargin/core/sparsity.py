"""The set S_k of coefficients of which at most k units are nonzero: projection onto it and distance to it."""

import math

import numpy as np

from kmargin.core.arrays import Flags, Indices, Matrix, Vector
from kmargin.core.jit import compiled
from kmargin.core.units import Units


def project(beta: Vector, k: int, n_features: int | None = None) -> Vector:
    """Return the vector nearest to `beta` that has at most k nonzero coefficients: the projection onto S_k.

    Of the first `n_features` entries (all if None), the k largest in magnitude are kept and the others become
    0. An intercept after them is kept. Of entries tied at the threshold, those with the lowest indices are
    kept, so the same input always gives the same support. The time is linear in the number of features.
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


class UnitSparsity:
    """The sets S_k, for every k, of coefficient matrices in which at most k units are nonzero.

    A matrix has one row for each binary problem and one column for each feature; a unit is a set of columns.
    In S_k every coefficient has the sign required for its column, or is 0. Intercepts are not in the matrix.
    """

    def __init__(self, units: Units) -> None:
        self.units = units
        self.signs = units.signs if units.signs.any() else None
        unit_of = units.unit_of_each_column
        # columns in no unit get the index n_units; the projection sets their coefficients to 0
        self.unit_of = np.where(unit_of < 0, units.n_units, unit_of)

    def holds_all(self, k: int) -> bool:
        """Whether every matrix is in S_k, so that the projection changes nothing."""
        every_column = not np.any(self.unit_of == self.units.n_units)
        return k >= self.units.n_units and every_column and self.signs is None

    def project(self, W: Matrix, k: int) -> Matrix:
        """Return the matrix of S_k that is nearest to W.

        First, coefficients of the wrong sign become 0. Then the k units of largest norm over all binary
        problems are kept and the others become 0. Units that must be in every model are kept first; of units
        with equal norms, those with the lowest indices are kept. This is the nearest matrix because
        coefficients of the wrong sign add the same to the distance whichever units are kept.
        """
        right = W if self.signs is None else np.where(W * self.signs < 0, 0.0, W)
        return np.where(self.kept(right, k)[self.unit_of], right, 0.0)

    def kept(self, W: Matrix, k: int) -> Flags:
        """Mark the units that `project` keeps; W must have no coefficients of the wrong sign.

        The mask has an entry for each unit and a last one, False, for the columns that are in no unit.
        """
        squares = np.einsum("mj,mj->j", W, W)
        norms_sq: Vector = np.bincount(self.unit_of, squares, self.units.n_units + 1).astype(np.float64)
        norms_sq[:-1][self.units.fixed] = np.inf
        kept = project(norms_sq, k, self.units.n_units) > 0
        kept[-1] = False
        return kept


@compiled
def select_largest(
    beta: Vector, k: int, n_features: int, guess: float, work: Vector, candidates: Indices, kept: Indices
) -> tuple[float, float, float]:
    """Write into `kept` the indices of the k largest magnitudes in beta[:n_features], ties as in `project`.

    Returns the k-th largest magnitude, the squared norm of the kept entries, and the sum of squares of the
    others, which is the squared distance to S_k. `work` and `candidates` are work arrays of length
    `n_features`; `kept` has length k <= n_features. `guess` is an estimate of the k-th largest magnitude. Any
    value gives the correct result; the selection is fastest if it is slightly too low. Callers use a little
    less than the threshold of the previous iteration.
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
    n_tied = k  # will be the number of kept entries that equal the threshold
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
    """Return the k-th largest of the first n entries of `work`, and reorder these entries (quickselect).

    Hoare's partition divides equal entries evenly between both sides, so the expected time is linear even if
    many entries are equal, such as the zeros of a warm start.
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
    """Return the number p - k + 1 by which the paper divides a squared distance to S_k.

    A vector and its projection differ in at most p - k entries, so the division makes distances for different
    k comparable. As in the paper's text, p is `n_features`; the authors' program also counts the intercept.
    """
    return n_features - k + 1


def count_kept(sparsity: float, n_features: int) -> int:
    """Return k = (1 - sparsity) * n_features, rounded to an integer, half up, as in the paper's tables."""
    return math.floor((1.0 - sparsity) * n_features + 0.5 + 1e-9)
