"""The best supports of small tables and of pairs of letters, kept in `results/optima.csv`.

    python -m benchmarks.optima   # finds what is missing there; all anew takes hours

How an optimum is known: "every support" was fitted, or ruled out because a set that contains it has no lower
minimum. "bound": for 18 optima of breast cancer, a branch and bound ruled out objectives lower by more than a
relative 1e-7; "best known": for one table of genes it ran out of time. That program is in the history of the
repository up to commit d988682. To fit every support of these 19 would take some four hours.
"""

import csv
import hashlib

import numpy as np
import pandas as pd
from numba import njit

from benchmarks.datasets.tables import letter_pairs, small_tables
from benchmarks.objectives import fold, minimise
from benchmarks.records import RESULTS

STORE = RESULTS / "optima.csv"
COLUMNS = ("data", "table", "k", "lam", "objective", "known_by", "support")
SEEDS = 12  # of each simulated family


def fingerprint(table):
    """A hash of the numbers to six digits, so that another machine's rounding does not change it."""
    rounded = np.round(table.X, 6) + 0.0  # no negative zeros
    content = rounded.tobytes() + table.y.astype(np.int8).tobytes() + bytes([table.fit_intercept])
    return hashlib.sha256(content).hexdigest()[:12]


def read_optima():
    """The lowest objective known for each (fingerprint of a table, k, lam)."""
    if not STORE.is_file():
        return {}
    return pd.read_csv(
        STORE, dtype={"data": str}, float_precision="round_trip", index_col=["data", "k", "lam"]
    )["objective"].to_dict()


def find_optima(tables):
    """What is known of these tables, from the store where it has them; what is found is added to it."""
    known = read_optima()
    for table in tables:
        data = fingerprint(table)
        for k, lam in ((k, lam) for k in table.ks for lam in table.lams):
            if (data, k, lam) not in known:
                Z = fold(table.X, table.y, table.fit_intercept)
                known[data, k, lam], support = every_support(Z, table.X.shape[1], k, lam)
                store(table, k, lam, known[data, k, lam], support)
                print(f"    {table.name}, k = {k}, lam = {lam:g}: found", flush=True)
    return known


@njit(cache=True)
def every_support(Z, p, k, lam):
    """The lowest objective over all supports of k of the p features, and its support.

    Z has p rows, and one more if there is an intercept.
    """
    n, extra = Z.shape[1], Z.shape[0] - p
    rows, ridge = np.empty((k + extra, n)), np.full(k + extra, lam)
    betas, margins = np.zeros((k + 1, k + extra)), np.zeros((k + 1, n))
    if extra:
        rows[0] = Z[p]
        ridge[0] = 0.0
        minimise(rows[:1], ridge[:1], betas[0, :1], margins[0])
    chosen = np.full(k, -1)
    best, support = np.inf, np.zeros(k, dtype=np.int64)
    depth = 0
    while depth >= 0:
        chosen[depth] = chosen[depth - 1] + 1 if chosen[depth] < 0 and depth > 0 else chosen[depth] + 1
        if chosen[depth] > p - (k - depth):  # no features left for the places behind
            chosen[depth] = -1
            depth -= 1
            continue
        m = depth + 1 + extra
        rows[m - 1] = Z[chosen[depth]]
        betas[depth + 1, : m - 1] = betas[depth, : m - 1]
        betas[depth + 1, m - 1] = 0.0
        margins[depth + 1] = margins[depth]
        value = minimise(rows[:m], ridge[:m], betas[depth + 1, :m], margins[depth + 1])
        if depth < k - 1:
            depth += 1
        elif value < best:
            best = value
            support[:] = chosen
    return best, support


def store(table, k, lam, objective, support):
    is_new = not STORE.is_file()
    with STORE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        found = f"{objective:.12g}", "every support", " ".join(map(str, support))
        writer.writerow((fingerprint(table), table.name, k, lam, *found))


if __name__ == "__main__":
    find_optima([*small_tables(SEEDS), *letter_pairs()])
