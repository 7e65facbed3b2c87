"""S_k: the vectors with at most k nonzero entries among their first `n_features`.

An entry behind the first `n_features` is the intercept. It is never counted and never changed.
"""

import math

import numpy as np

from kmargin.jit import compiled
from kmargin.types import Indices, Vector


def project(beta: Vector, k: int, n_features: int | None = None, out: Vector | None = None) -> Vector:
    """Return the point of S_k nearest to `beta`.

    The k entries largest in magnitude are kept, the others become 0. Entries tied at the
    threshold are kept in index order, so the same input always gives the same support. The cost
    is that of a selection, linear in the number of features.
    """
    n_features = len(beta) if n_features is None else n_features
    out = np.empty_like(beta) if out is None else out
    out[:] = beta
    n_dropped = n_features - k
    if n_dropped <= 0:
        return out
    magnitude = np.abs(beta[:n_features])
    if k == 0:
        keep = np.zeros(n_features, dtype=bool)
    else:
        threshold = np.partition(magnitude, n_dropped)[n_dropped]
        keep = magnitude > threshold
        tied = np.flatnonzero(magnitude == threshold)
        keep[tied[: k - np.count_nonzero(keep)]] = True
    out[:n_features][~keep] = 0.0
    return out


def project_by_sorting(beta: Vector, k: int, n_features: int | None = None) -> Vector:
    """The naive twin of :func:`project`: a stable sort, largest magnitude first."""
    n_features = len(beta) if n_features is None else n_features
    projected = beta.copy()
    projected[np.argsort(-np.abs(beta[:n_features]), kind="stable")[k:]] = 0.0
    return projected


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
