"""The best supports of small tables and of pairs of letters, kept in `results/optima.csv`.

    python -m benchmarks.optima          # finds what is missing there; all anew takes hours
    python -m benchmarks.optima --check  # every support against branch and bound, on some of the tables

How an optimum is known: "every support" was fitted, or ruled out because a set that contains it has no lower
minimum; "bound": branch and bound ruled out a lower one, to a relative 1e-7; "best known": time ran out
before that, and no search found a lower one.
"""

import csv
import hashlib
import math
import sys

import numpy as np
import pandas as pd

from benchmarks.bounds import Optimum, branch_and_bound, every_support, exchange_all, fold
from benchmarks.datasets.tables import letter_pairs, small_tables
from benchmarks.records import RESULTS

STORE = RESULTS / "optima.csv"
COLUMNS = ("data", "table", "k", "lam", "objective", "known_by", "support")
MAX_ROWS = 100_000_000  # of all supports together, where they are fitted one after the other
MAX_PROOF_SECONDS = 300.0
RESTARTS = 20
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


def find_optima(tables, keep=True):
    """What is known of these tables, from the store where it has them; what is found is added if wanted."""
    known = read_optima()
    for table in tables:
        data = fingerprint(table)
        for k, lam in ((k, lam) for k in table.ks for lam in table.lams):
            if (data, k, lam) not in known:
                optimum, known_by = search(table, k, lam)
                known[data, k, lam] = optimum.objective
                if keep:
                    store(table, k, lam, optimum, known_by)
                    print(f"    {table.name}, k = {k}, lam = {lam:g}: {known_by}", flush=True)
    return known


def search(table, k, lam):
    p = table.X.shape[1]
    Z = fold(table.X, table.y, table.fit_intercept)
    if math.comb(p, k) * len(table.y) <= MAX_ROWS:
        objective, support = every_support(Z, p, k, lam)
        return Optimum(objective, support, True, math.comb(p, k)), "every support"
    rng = np.random.default_rng(0)
    strongest = np.argsort(-np.abs(Z[:p].sum(axis=1)), kind="stable")[:k]
    starts = [strongest, *(rng.permutation(p)[:k] for _ in range(RESTARTS))]
    first = min((exchange_all(Z, p, k, lam, start) for start in starts), key=lambda found: found.objective)
    optimum = branch_and_bound(Z, p, k, lam, first, MAX_PROOF_SECONDS)
    return optimum, "bound" if optimum.proven else "best known"


def store(table, k, lam, optimum, known_by):
    is_new = not STORE.is_file()
    with STORE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        support = " ".join(map(str, optimum.support))
        objective = f"{optimum.objective:.12g}"
        writer.writerow((fingerprint(table), table.name, k, lam, objective, known_by, support))


def check(tables):
    """Compare the two ways, a line per table, k and lam."""
    for table in tables:
        p = table.X.shape[1]
        Z = fold(table.X, table.y, table.fit_intercept)
        for k, lam in ((k, lam) for k in table.ks for lam in table.lams):
            every, _ = every_support(Z, p, k, lam)
            start = exchange_all(Z, p, k, lam, np.arange(k))
            bounded = branch_and_bound(Z, p, k, lam, start, 60.0)
            same = abs(every - bounded.objective) <= 1e-7 * every
            yield f"{table.name}, k = {k}, lam = {lam:g}: {every:.8f} {'agree' if same else 'DIFFER'}"


if __name__ == "__main__":
    if "--check" in sys.argv:
        for line in check(table for table in small_tables(1) if table.X.shape[1] < 15):
            print(line, flush=True)
    else:
        find_optima([*small_tables(SEEDS), *letter_pairs()])
