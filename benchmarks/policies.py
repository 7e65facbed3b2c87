"""How close the search comes to the lowest objectives known, and what that takes, for one effort policy.

    python -m benchmarks.policies                                        # the default solver, all problems
    python -m benchmarks.policies --quick --only 62x2000                 # every fourth, of some tables
    python -m benchmarks.policies --solver-options '{"effort": "fast"}'   # another policy
    PYTHONPATH=../other/src python -m benchmarks.policies                # another checkout of the package

The lowest objectives known are kept in `results/policies_best.csv`, beside objectives and times of the
default search at commit fb738a6 and those of a long iterated local search. A run that finds a lower one
lowers it there. The case `policies` measures the same for the record.
"""

import argparse
import csv
import json
import os
import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import kmargin
from benchmarks import N_THREADS
from benchmarks.datasets.tables import POLICY_FAMILIES, Table, policy_tables
from benchmarks.objectives import C_of, objective_of, path_objectives
from benchmarks.optima import fingerprint
from benchmarks.records import RESULTS
from benchmarks.solvers.fit import unfinished_allowed

STORE = RESULTS / "policies_best.csv"
WAYS = ("single", "groups", "path", "path, groups")  # "groups" are groups=range(n_features), one feature each
PATH_LAM = 1e-2
LOWER = 1e-9  # relative: a lower objective than the best known by less is rounding
APART = 1e-6  # relative: from here on two ways count as different
REPEATS, MAX_SECONDS = 3, 0.3  # of a fit, until it has taken so many seconds


class Problem(NamedTuple):
    """A table, a ridge, and the size of a single fit or the sizes of a path."""

    data: str  # the table's fingerprint
    table: Table
    lam: float
    ks: tuple[int, ...]
    is_path: bool


class Outcome(NamedTuple):
    """One size of one problem, fitted in one way."""

    key: tuple[str, int, float]  # fingerprint, k, lam
    table: str
    family: str
    way: str
    objective: float
    seconds: float  # processor time of the fit; of a path the whole


def problems(every=1, only=""):
    """One in so many of those whose table has this text in its name."""
    number = 0
    for table in policy_tables(only):
        data = fingerprint(table)
        singles = [Problem(data, table, lam, (k,), False) for k in table.ks for lam in table.lams]
        paths = [Problem(data, table, PATH_LAM, table.path_ks, True)] if table.path_ks else []
        for problem in singles + paths:
            if number % every == 0:
                yield problem
            number += 1


def outcomes(chosen, options, ways=WAYS):
    """Each problem in each of the ways that there are for it."""
    for problem in chosen:
        table = problem.table
        for way in ways:
            if way.startswith("path") == problem.is_path:
                seconds, found = fit_timed(problem, options, "groups" in way)
                for k in problem.ks:
                    key = problem.data, k, problem.lam
                    yield Outcome(key, table.name, table.family, way, found[k], seconds)


def fit_timed(problem, options, groups):
    """The least processor time of some repeats, and the objective of each size."""
    table, seconds = problem.table, []
    settings = {"C": C_of(problem.lam, len(table.y)), "random_state": 0}
    if options:
        settings["solver"] = kmargin.Exchange(**options)
    if groups:
        settings["groups"] = list(range(table.X.shape[1]))
    with unfinished_allowed():
        while len(seconds) < REPEATS and sum(seconds) < MAX_SECONDS:
            started = time.process_time()
            if problem.is_path:
                fitted = kmargin.sparse_svm_path(table.X, table.y, list(problem.ks), **settings)
            else:
                fitted = kmargin.SparseSVC(problem.ks[0], **settings).fit(table.X, table.y)
            seconds.append(time.process_time() - started)
    if problem.is_path:
        return min(seconds), path_objectives(table, fitted, problem.lam)
    assert np.count_nonzero(fitted.coef_) <= problem.ks[0]
    return min(seconds), {problem.ks[0]: objective_of(table, fitted.coef_, fitted.intercept_, problem.lam)}


class Store:
    """What is known of each problem, by fingerprint, k and lam."""

    def __init__(self):
        with STORE.open(newline="") as file:
            reader = csv.DictReader(file)
            self.columns = reader.fieldnames
            self.rows = {(row["data"], int(row["k"]), float(row["lam"])): row for row in reader}

    def get(self, key, column):
        """A number, or not a number if it is not known."""
        return float(self.rows.get(key, {}).get(column) or "nan")

    def lower(self, outcome):
        """Store an objective if it is lower than the best known; return whether it is."""
        is_lower = not outcome.objective >= self.get(outcome.key, "best") * (1 - LOWER)
        if is_lower:
            data, k, lam = outcome.key
            new = {"data": data, "table": outcome.table, "k": str(k), "lam": f"{lam:g}"}
            self.rows.setdefault(outcome.key, new)["best"] = f"{outcome.objective:.12g}"
        return is_lower

    def write(self):
        part = STORE.with_suffix(f".{os.getpid()}.part")
        with part.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows.values())
        os.replace(part, STORE)


def run(chosen, options, ways=WAYS):
    """A row per outcome, with its excess over the best known and its time over that of commit fb738a6."""
    store, rows = Store(), list(outcomes(chosen, options, ways))
    if n_lower := sum([store.lower(outcome) for outcome in rows]):
        store.write()
        print(f"{n_lower} objectives are lower than the lowest known before; they are in {STORE.name} now.")
    frame = pd.DataFrame(rows)
    frame["excess"] = [o.objective / store.get(o.key, "best") - 1 for o in rows]
    frame["time ratio"] = [o.seconds / store.get(o.key, f"{o.way}: seconds") for o in rows]
    return frame


def summary(frame):
    """A row per way and kind of table: shares in %, excesses in %, times."""
    is_generated = frame["family"].isin(list(POLICY_FAMILIES))
    parts = [
        ("generated", frame[is_generated]),
        *frame[is_generated].groupby("family", sort=False),
        ("real", frame[~is_generated]),
        *frame[~is_generated].groupby("family", sort=False),
    ]
    rows = {
        (way, str(name)): row_of(group)
        for way in frame["way"].unique()
        for name, part in parts
        if len(group := part[part["way"] == way])
    }
    return pd.DataFrame(rows).T


def row_of(rows):
    excess = rows["excess"].clip(lower=0)
    return {
        "fits": len(rows),
        "within .1 %": 100 * (excess <= 1e-3).mean(),
        "within 1 %": 100 * (excess <= 1e-2).mean(),
        "mean excess": 100 * excess.mean(),
        "worst excess": 100 * excess.max(),
        "median ms": 1000 * rows["seconds"].median(),
        "median ratio": rows["time ratio"].median(),
        "sum ratio": rows["seconds"].sum() / (rows["seconds"] / rows["time ratio"]).sum(),
    }


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies")
    parser.add_argument("--quick", action="store_true", help="every fourth problem")
    parser.add_argument("--only", default="", help="tables with this text in their name")
    parser.add_argument("--solver-options", type=json.loads, default={}, help="of Exchange, as JSON")
    parser.add_argument("--ways", default=";".join(WAYS), help="some of these, separated by semicolons")
    parser.add_argument("--worst", type=int, default=15, help="how many of the largest excesses are listed")
    options = parser.parse_args()
    started = time.perf_counter()
    with threadpool_limits(N_THREADS):
        list(outcomes(problems(only="breast"), options.solver_options))  # compiled from here on
        chosen = problems(4 if options.quick else 1, options.only)
        frame = run(chosen, options.solver_options, options.ways.split(";"))
    print(f"kmargin from {os.path.dirname(kmargin.__file__)}, options {options.solver_options}")
    with pd.option_context("display.width", 200, "display.max_columns", 20, "display.max_rows", 200):
        print(summary(frame).round(3).to_string())
        worst = frame.nlargest(options.worst, "excess")
        worst["k"], worst["lam"] = [key[1] for key in worst["key"]], [key[2] for key in worst["key"]]
        worst["excess"] *= 100
        print(worst[["table", "k", "lam", "way", "excess", "seconds"]].round(4).to_string(index=False))
    wide = frame.pivot_table(index="key", columns="way", values="objective")
    for way, other in (("single", "groups"), ("path", "path, groups"), ("path", "single")):
        if {way, other} <= set(wide):
            ratio = (wide[way] / wide[other]).dropna()
            differ, higher = (abs(ratio - 1) > APART).sum(), (ratio > 1 + APART).sum()
            print(f"{way} and {other} differ on {differ} of {len(ratio)} fits; {way} is higher on {higher}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
