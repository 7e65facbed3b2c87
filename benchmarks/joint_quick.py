"""Whether other features have a lower objective than those found for all machines together: a table.

    python -m benchmarks.joint_quick                          # srbct, optdigits, splice; 2 folds of each
    python -m benchmarks.joint_quick --data srbct --folds 12  # more folds, of fewer data
    python -m benchmarks.joint_quick --peers peers.json       # where their features are kept

The objective is the sum over the machines of their exact minima on some features. Everybody's features are
refitted: those of recursive elimination, of F-tests, of an L1 penalty, of abess, and those that we find
for the other scheme of machines. The table says by how much ours is above the lowest of these, in per cent;
below 0 nobody has better features. Nothing else is written.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks import N_THREADS
from benchmarks.cases.shared import N_FOLDS, budgets_of, folds_of, smaller, standardised
from benchmarks.datasets import Dataset
from benchmarks.grids import lam_of
from benchmarks.objectives import refit
from benchmarks.solvers import choose_of
from benchmarks.solvers.abess import AbessMultinomial
from benchmarks.solvers.ours import Shared, SharedPerClass
from benchmarks.solvers.selectors import RFE, FTest, UnionL1

DATA = ("srbct", "optdigits", "splice")
CS = (0.01, 0.1, 1.0)
MOST_ROWS = 1000
OURS = {"pairs": Shared, "classes": SharedPerClass}
PEERS = (RFE, FTest, UnionL1, AbessMultinomial)
Supports = dict[str, list[list[int]]]  # of a competitor: for each budget


def machines(y: np.ndarray, scheme: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows of each machine, and their labels."""
    classes = np.unique(y)
    if scheme == "classes":
        for one in classes:
            yield np.arange(len(y)), np.where(y == one, 1, -1)
    else:
        for first, second in combinations(classes, 2):
            rows = np.flatnonzero((y == first) | (y == second))
            yield rows, np.where(y[rows] == second, 1, -1)


def objective(data: Dataset, scheme: str, support: list[int], C: float) -> float:
    X, columns = data.X[:, support], np.arange(len(support))
    return sum(
        refit(X[rows], labels, columns, lam_of(C, len(rows))).objective
        for rows, labels in machines(data.y, scheme)
    )


def supports_of_peers(data: Dataset, C: float) -> Supports:
    """Of those that are installed."""
    budgets, peers = budgets_of(data), choose_of(PEERS)
    return {
        name: [fit.support.tolist() for fit in peer.shared(data.X, data.y, budgets, [C])[C]]
        for name, peer in peers.items()
        if peer.is_installed()
    }


def rows_of(data: Dataset, fold: int, C: float, peers: Supports) -> Iterator[dict]:
    """Our objective beside those of everybody's features, for each scheme and each budget."""
    ours, seconds = {}, {}
    for scheme, kind in OURS.items():
        started = time.process_time()
        fits = kind().shared(data.X, data.y, budgets_of(data), [C])[C]
        seconds[scheme] = time.process_time() - started
        ours[scheme] = [fit.support.tolist() for fit in fits]
    for scheme in OURS:
        (other,) = set(OURS) - {scheme}
        rivals = peers | {"other scheme": ours[other]}
        for at, budget in enumerate(budgets_of(data)):
            value = objective(data, scheme, ours[scheme][at], C)
            best = {name: objective(data, scheme, of[at], C) for name, of in rivals.items() if len(of[at])}
            winner = min(best, key=lambda name: best[name])
            yield {
                "data": data.name,
                "machines": scheme,
                "C": C,
                "fold": fold,
                "k": budget,
                "rival": winner,
                "excess": 100 * (value / best[winner] - 1),
                "seconds": seconds[scheme] / len(budgets_of(data)),
            }


def measure(names: list[str], n_folds: int, kept: dict[str, Supports]) -> Iterator[dict]:
    """`kept` holds supports of peers by data, fold and C; what it lacks is added."""
    for name in names:
        for fold in range(n_folds):
            seed, part = divmod(fold, N_FOLDS)
            data = standardised(smaller(list(folds_of(name, seed))[part], seed, MOST_ROWS))
            for C in CS:
                key = f"{name} {fold} {C}"
                if key not in kept:
                    kept[key] = supports_of_peers(data, C)
                yield from rows_of(data, fold, C, kept[key])


def show(frame: pd.DataFrame) -> None:
    by = ["data", "machines", "C"]
    worst = frame.pivot_table(index=by, columns="k", values="excess", aggfunc="max", sort=False)
    above = frame["excess"] > 1e-4
    with pd.option_context("display.width", 200, "display.max_rows", 200):
        print("\nworst of the folds: ours above the lowest of the rivals', %")
        print(worst.round(2).to_string())
        print("\nseconds of a path, all folds and all C")
        print(frame.groupby(["data", "machines"], sort=False)["seconds"].sum().round(3).to_string())
        print(f"\n{above.sum()} of {len(frame)} above a rival's")
        print(frame[above].sort_values("excess", ascending=False).head(30).round(3).to_string(index=False))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joint_quick")
    parser.add_argument("--data", default=",".join(DATA), help=f"some of {', '.join(DATA)}")
    parser.add_argument("--folds", type=int, default=2, help=f"{N_FOLDS} for each seed")
    parser.add_argument("--peers", type=Path, help="a file for the features of the peers")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "[0-9]+ features? repeat", UserWarning)  # among the rows of a fold
    kept = json.loads(options.peers.read_text()) if options.peers and options.peers.is_file() else {}
    with threadpool_limits(N_THREADS):
        frame = pd.DataFrame(measure(options.data.split(","), options.folds, kept))
    if options.peers:
        options.peers.write_text(json.dumps(kept))
    show(frame)


if __name__ == "__main__":
    main()
