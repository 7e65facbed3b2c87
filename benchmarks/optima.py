"""The best supports of the small tables, kept in `results/optima.csv`.

    python -m benchmarks.optima          # finds what is missing there; all anew takes half an hour
    python -m benchmarks.optima --check  # every support against branch and bound, on some of the tables

How an optimum is known: "every support" was fitted; "bound": branch and bound ruled out a lower one, to a
relative 1e-7; "best known": time ran out before that, and no search found a lower one.
"""

import csv
import hashlib
import math
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.bounds import Optimum, branch_and_bound, every_support, exchange_all, fold
from benchmarks.datasets.small import Table, small_tables
from benchmarks.records import RESULTS

STORE = RESULTS / "optima.csv"
COLUMNS = ("data", "table", "k", "lam", "objective", "known_by", "support")
MOST_ROWS = 100_000_000  # of all supports together, where they are fitted one after the other
PATIENCE = 300.0  # seconds for a proof
RESTARTS = 20
SEEDS = 12  # of each simulated family

Key = tuple[str, int, float]  # of a table, k, lam


class Known(NamedTuple):
    """The lowest objective known, and how."""

    objective: float
    known_by: str


def fingerprint(table: Table) -> str:
    """Of the numbers to six digits, so that another machine's rounding does not change it."""
    rounded = np.round(table.X, 6) + 0.0  # no negative zeros
    content = rounded.tobytes() + table.y.astype(np.int8).tobytes() + bytes([table.fit_intercept])
    return hashlib.sha256(content).hexdigest()[:12]


def read_optima() -> dict[Key, Known]:
    if not STORE.is_file():
        return {}
    with STORE.open(newline="") as file:
        return {
            (row["data"], int(row["k"]), float(row["lam"])): Known(float(row["objective"]), row["known_by"])
            for row in csv.DictReader(file)
        }


def find_optima(tables: Iterable[Table], keep: bool = True) -> dict[Key, Known]:
    """Of these tables, from the store where it has them; what is found is kept there if wanted."""
    known = read_optima()
    for table in tables:
        data = fingerprint(table)
        for k in table.ks:
            for lam in table.lams:
                if (data, k, lam) not in known:
                    optimum, known_by = search(table, k, lam)
                    known[data, k, lam] = Known(optimum.objective, known_by)
                    if keep:
                        store(table, k, lam, optimum, known_by)
                        print(f"    {table.name}, k = {k}, lam = {lam:g}: {known_by}", flush=True)
    return known


def search(table: Table, k: int, lam: float) -> tuple[Optimum, str]:
    p = table.X.shape[1]
    Z = fold(table.X, table.y, table.fit_intercept)
    if math.comb(p, k) * len(table.y) <= MOST_ROWS:
        objective, support = every_support(Z, p, k, lam)
        return Optimum(objective, support, True, math.comb(p, k)), "every support"
    rng = np.random.default_rng(0)
    strongest = np.argsort(-np.abs(Z[:p].sum(axis=1)), kind="stable")[:k]
    starts = [strongest, *(rng.permutation(p)[:k] for _ in range(RESTARTS))]
    first = min((exchange_all(Z, p, k, lam, start) for start in starts), key=lambda found: found.objective)
    optimum = branch_and_bound(Z, p, k, lam, first, PATIENCE)
    return optimum, "bound" if optimum.proven else "best known"


def store(table: Table, k: int, lam: float, optimum: Optimum, known_by: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    is_new = not STORE.is_file()
    with STORE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        support = " ".join(map(str, optimum.support))
        objective = f"{optimum.objective:.12g}"
        writer.writerow((fingerprint(table), table.name, k, lam, objective, known_by, support))


def check(tables: Iterable[Table]) -> Iterator[str]:
    """The two ways against each other, a line per table, k and lam."""
    for table in tables:
        p = table.X.shape[1]
        Z = fold(table.X, table.y, table.fit_intercept)
        for k in table.ks:
            for lam in table.lams:
                every, _ = every_support(Z, p, k, lam)
                start = exchange_all(Z, p, k, lam, np.arange(k))
                bounded = branch_and_bound(Z, p, k, lam, start, 60.0)
                same = abs(every - bounded.objective) <= 1e-7 * every
                yield f"{table.name}, k = {k}, lam = {lam:g}: {every:.8f} {'agree' if same else 'DIFFER'}"


def main() -> None:
    if "--check" in sys.argv:
        for line in check([table for table in small_tables(1) if table.X.shape[1] < 15]):
            print(line, flush=True)
        return
    find_optima(small_tables(SEEDS))


if __name__ == "__main__":
    main()
