"""Rows that a model was fitted to, recognised when they come again: what it says of them is too good.

A model keeps no rows but digests of 64 bits: of all features of a row, and of those that it uses. Of many
rows it keeps the smallest digests. Digests are as good as random, so that is a fair sample: a new row whose
digest is below the largest kept was seen if, and only if, its digest is there.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from kmargin.types import Flags, Matrix

MOST = 10_000  # digests of each kind
LEAST_DISTINCT = 0.95  # share of rows that differ in the used features, if these are to tell rows apart


@dataclass(frozen=True)
class SeenRows:
    """Digests of rows, ascending."""

    by_all: np.ndarray  # int64; of all features
    by_used: np.ndarray  # of the used ones; empty where these do not tell rows apart

    def find(self, X: Matrix, by_all: bool) -> tuple[Flags, Flags]:
        """Which rows are known to be seen, and of which it can be told."""
        kept = self.by_all if by_all else self.by_used
        digests = digest_rows(X)
        if len(kept) == 0:
            return np.zeros(len(X), np.bool_), np.zeros(len(X), np.bool_)
        can_be_told = np.ones(len(X), np.bool_) if len(kept) < MOST else digests <= kept[-1]
        return np.isin(digests, kept), can_be_told

    def share(self, X: Matrix, by_all: bool) -> float:
        """Of the rows of a new table: how many were seen, by those of which it can be told."""
        is_seen, can_be_told = self.find(X, by_all)
        return float(is_seen[can_be_told].mean()) if can_be_told.any() else 0.0


def note_rows(X: Matrix, used: np.ndarray) -> SeenRows:
    """What to keep of the rows of a table, of which some features are used."""
    by_used = digest_rows(X[:, used])
    is_telling = len(used) > 0 and len(np.unique(by_used)) >= LEAST_DISTINCT * len(X)
    return SeenRows(_smallest(digest_rows(X)), _smallest(by_used) if is_telling else np.empty(0, np.int64))


def _smallest(digests: np.ndarray) -> np.ndarray:
    return np.unique(digests)[:MOST]


def digest_rows(X: Matrix) -> np.ndarray:
    """A number for each row; the same for numbers that agree in single precision, as files may write them."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # no minus zero
    rounded[np.isnan(rounded)] = np.nan  # of one kind
    raw = [blake2b(row.tobytes(), digest_size=8).digest() for row in rounded]
    return np.frombuffer(b"".join(raw), dtype="<i8").astype(np.int64)
