"""Columns that repeat an earlier one."""

from collections.abc import Callable

import numpy as np

from kmargin.types import Flags, Indices, Vector

SEED = 0  # of the vector whose products tell columns apart


def fingerprint_vector(n_samples: int) -> Vector:
    return np.random.default_rng(SEED).standard_normal(n_samples)


def _sorted(fingerprint: Vector) -> tuple[Indices, Flags]:
    """The order of the fingerprints, and which of them are close to the one before.

    Equal columns have equal products with any vector, up to rounding. So one pass over X and a sort
    find the few candidates that are worth comparing entry by entry.
    """
    order = np.argsort(fingerprint, kind="stable")
    return order, np.diff(fingerprint[order]) <= 1e-9 * np.abs(fingerprint[order[1:]])


def candidate_groups(fingerprint: Vector) -> list[Indices]:
    """Groups of columns that may be equal, each ascending."""
    order, close = _sorted(fingerprint)
    edges = np.diff(close.astype(np.int8), prepend=0, append=0)  # of runs of columns close to the one before
    firsts, lasts = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    return [np.sort(order[first : last + 1]) for first, last in zip(firsts, lasts, strict=True)]


def candidate_columns(fingerprint: Vector) -> Indices:
    """All columns that may be equal to another, ascending."""
    order, close = _sorted(fingerprint)
    return np.sort(order[np.append(False, close) | np.append(close, False)])


def repeats_among(groups: list[Indices], equal: Callable[[int, int], bool], n_features: int) -> Flags:
    """Which columns repeat an earlier one of their group."""
    repeats = np.zeros(n_features, dtype=bool)
    for group in groups:
        originals: list[int] = []
        for j in group:
            if any(equal(i, j) for i in originals):
                repeats[j] = True
            else:
                originals.append(j)
    return repeats
