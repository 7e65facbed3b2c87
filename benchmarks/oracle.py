"""The best support of each size, by exhaustive search: the oracle of the case `global_optimum`.

    python -m benchmarks.oracle          # fills the cache for all pairs of letters
    python -m benchmarks.oracle --check  # against the search without pruning, on a few pairs

Every support of k features is either fitted or ruled out by a proof: dropping features can only raise
the minimum, so a set of features whose minimum is no lower than the best one known holds no better
support. Results go to a CSV that later runs read.
"""

import csv
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import Dataset, load
from benchmarks.records import RESULTS
from benchmarks.search import best_support

LAM = 1e-4
KS = (2, 4, 8)
CACHE = RESULTS / "oracle.csv"
COLUMNS = ("data", "pair", "k", "lam", "objective", "support")


class Pair(NamedTuple):
    """Two classes, labelled -1 and 1."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.X.tobytes() + self.y.astype(np.int8).tobytes()).hexdigest()[:12]


def pairs_of(data: Dataset) -> list[Pair]:
    pairs = []
    for negative, positive in combinations(np.unique(data.y), 2):
        rows = (data.y == negative) | (data.y == positive)
        y = np.where(data.y[rows] == positive, 1, -1)
        pairs.append(Pair(f"{negative}-{positive}", data.X[rows], y))
    return pairs


def find_optima(pairs: Sequence[Pair], ks: Sequence[int] = KS) -> dict[tuple[str, int], float]:
    """The lowest objective of any support, for each pair and k; from the cache where it has them."""
    known = read_cache()
    for pair in pairs:
        missing = [k for k in ks if (pair.fingerprint, k) not in known]
        for k in missing:
            objective, support = best_support(pair.X, pair.y, k, LAM)
            known[pair.fingerprint, k] = objective
            append_to_cache(pair, k, objective, support)
    return {(pair.name, k): known[pair.fingerprint, k] for pair in pairs for k in ks}


def read_cache(path: Path = CACHE) -> dict[tuple[str, int], float]:
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(r["data"], int(r["k"])): float(r["objective"]) for r in rows if float(r["lam"]) == LAM}


def append_to_cache(pair: Pair, k: int, objective: float, support: np.ndarray) -> None:
    RESULTS.mkdir(exist_ok=True)
    is_new = not CACHE.is_file()
    with CACHE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        row = (pair.fingerprint, pair.name, k, LAM, f"{objective:.12g}", " ".join(map(str, support)))
        writer.writerow(row)


def check(pairs: Sequence[Pair]) -> Iterator[str]:
    """Pruned against unpruned, a line per pair and k."""
    for pair in pairs:
        for k in KS:
            pruned, support = best_support(pair.X, pair.y, k, LAM)
            every, other = best_support(pair.X, pair.y, k, LAM, prune=False)
            same = np.array_equal(support, other) and abs(pruned - every) <= 1e-9 * every
            yield f"{pair.name} k = {k}: {pruned:.8f} {every:.8f} {'agree' if same else 'DIFFER'}"


def main() -> None:
    pairs = pairs_of(load("letters"))
    if "--check" in sys.argv:
        for line in check(pairs[::110]):
            print(line, flush=True)
        return
    started = time.perf_counter()
    find_optima(pairs)
    print(f"{len(pairs)} pairs, k = {KS}: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
