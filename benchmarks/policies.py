"""How close the search comes to the lowest objectives known, and what that takes, for one effort policy.

    python -m benchmarks.policies                                        # the default solver, all problems
    python -m benchmarks.policies --quick --only 62x2000                 # every fourth, of some tables
    python -m benchmarks.policies --solver-options '{"effort": "fast"}'   # another policy
    PYTHONPATH=../other/src python -m benchmarks.policies                # another checkout of the package

The lowest objectives known are kept in `results/policies_best.csv`, beside those of the default search at
the commit that the store was begun with (`--reference` writes these). A run that finds a lower one lowers it
there. `long_search.py` looks for lower ones. The case `policies` measures the same for the record.
"""

import argparse
import csv
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import kmargin
from benchmarks import N_THREADS
from benchmarks.datasets.policies import FAMILIES, policy_tables
from benchmarks.datasets.small import Table
from benchmarks.grids import C_of
from benchmarks.optima import Key, fingerprint
from benchmarks.optimality import objective_of
from benchmarks.records import RESULTS
from benchmarks.solvers.fit import unfinished_allowed

STORE = RESULTS / "policies_best.csv"
WAYS = ("single", "groups", "path", "path, groups")  # "groups" are groups=range(n_features), one feature each
SECONDS = tuple(f"{way}: seconds" for way in WAYS)
FOUND = (*WAYS, "long search", "best")
COLUMNS = ("data", "table", "k", "lam", *FOUND, *SECONDS, "restarts")
PATH_LAM = 1e-2
LOWER = 1e-9  # relative: a lower objective than the best known by less is rounding
APART = 1e-6  # relative: from here on two ways count as different
REPEATS, PATIENCE = 3, 0.3  # of a fit, until it has taken so many seconds


class Problem(NamedTuple):
    """A table, a ridge, and the size of a single fit or the sizes of a path."""

    data: str  # the table's fingerprint
    table: Table
    lam: float
    ks: tuple[int, ...]
    is_path: bool

    @property
    def keys(self) -> list[Key]:
        return [(self.data, k, self.lam) for k in self.ks]


class Outcome(NamedTuple):
    """One size of one problem, fitted in one way."""

    key: Key
    table: str
    family: str
    way: str
    objective: float
    seconds: float  # processor time of the fit; of a path the whole


def problems(every: int = 1, only: str = "") -> Iterator[Problem]:
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


def outcomes(
    chosen: Iterable[Problem], options: dict[str, Any], ways: Iterable[str] = WAYS
) -> Iterator[Outcome]:
    """Each problem in each of the ways that there are for it."""
    for problem in chosen:
        keys = problem.keys
        for way in ways:
            if way.startswith("path") == problem.is_path:
                fit = path_fit if problem.is_path else single_fit
                seconds, values = timed(partial(fit, problem, options, "groups" in way))
                for key, value in zip(keys, values, strict=True):
                    yield Outcome(key, problem.table.name, problem.table.family, way, value, seconds)


def settings(problem: Problem, options: dict[str, Any], groups: bool) -> dict[str, Any]:
    given: dict[str, Any] = {"C": C_of(problem.lam, len(problem.table.y)), "random_state": 0}
    if options:
        given["solver"] = kmargin.Exchange(**options)
    if groups:
        given["groups"] = list(range(problem.table.X.shape[1]))
    return given


def single_fit(problem: Problem, options: dict[str, Any], groups: bool) -> list[float]:
    table, (k,) = problem.table, problem.ks
    model = kmargin.SparseSVC(k, **settings(problem, options, groups)).fit(table.X, table.y)
    assert np.count_nonzero(model.coef_) <= k
    return [objective_of(table, model.coef_, model.intercept_, problem.lam)]


def path_fit(problem: Problem, options: dict[str, Any], groups: bool) -> list[float]:
    table = problem.table
    path = kmargin.sparse_svm_path(table.X, table.y, list(problem.ks), **settings(problem, options, groups))
    found = {
        int(k): objective_of(table, coef, intercept, problem.lam)
        for k, coef, intercept in zip(path.ks, path.coefs, path.intercepts, strict=True)
    }
    return [found[k] for k in problem.ks]


def timed(fit: Callable[[], list[float]]) -> tuple[float, list[float]]:
    """The least processor time of some repeats."""
    spent: list[float] = []
    values: list[float] = []
    with unfinished_allowed(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*repeat.* an earlier one")  # some genes are there twice
        while len(spent) < REPEATS and sum(spent) < PATIENCE:
            started = time.process_time()
            values = fit()
            spent.append(time.process_time() - started)
    return min(spent), values


class Store:
    """What is known of each problem, in a file that several processes may change by turns."""

    def __init__(self) -> None:
        self.rows = read_store()
        self.changes: dict[Key, dict[str, str]] = {}  # since the last time it was written

    def get(self, key: Key, column: str) -> float:
        """Not a number if it is not known."""
        return float(self.rows.get(key, {}).get(column) or "nan")

    def put(self, key: Key, table: str, **found: float) -> None:
        first = {"data": key[0], "table": table, "k": str(key[1]), "lam": f"{key[2]:g}"}
        new = {column: f"{value:.12g}" for column, value in found.items()}
        for rows in (self.rows, self.changes):
            rows.setdefault(key, dict(first)).update(new)

    def lower(self, key: Key, table: str, objective: float) -> bool:
        """Note an objective if it is lower than the best known; whether it is."""
        is_lower = not objective >= self.get(key, "best") * (1 - LOWER)
        if is_lower:
            self.put(key, table, best=objective)
        return is_lower

    def write(self) -> None:
        """Add the changes to what the file has now, and replace it in one go."""
        self.rows = read_store()
        for key, row in self.changes.items():
            known = self.rows.setdefault(key, {})
            lowest = min(float(one.get("best") or "inf") for one in (known, row))
            known.update(row | {"best": f"{lowest:.12g}"})
        self.changes = {}
        part = STORE.with_suffix(f".{os.getpid()}.part")
        with part.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows.values())
        os.replace(part, STORE)


def read_store() -> dict[Key, dict[str, str]]:
    if not STORE.is_file():
        return {}
    with STORE.open(newline="") as file:
        return {(row["data"], int(row["k"]), float(row["lam"])): row for row in csv.DictReader(file)}


def run(
    store: Store,
    chosen: Iterable[Problem],
    options: dict[str, Any],
    ways: Iterable[str],
    reference: bool = False,
) -> pd.DataFrame:
    """A row per outcome, with its excess over the best known and its time over the reference's."""
    rows, n_lower = [], 0
    for outcome in outcomes(chosen, options, ways):
        if reference:
            found = {outcome.way: outcome.objective, f"{outcome.way}: seconds": outcome.seconds}
            store.put(outcome.key, outcome.table, **found)
        n_lower += store.lower(outcome.key, outcome.table, outcome.objective)
        rows.append(outcome)
        if reference and len(rows) % 20 == 0:
            store.write()
    if n_lower or reference:
        store.write()
        print(f"{n_lower} objectives are lower than the lowest known before; they are in {STORE.name} now.")
    frame = pd.DataFrame(rows)
    frame["excess"] = [o.objective / store.get(o.key, "best") - 1 for o in rows]
    frame["time ratio"] = [o.seconds / store.get(o.key, f"{o.way}: seconds") for o in rows]
    return frame


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per way and kind of table: shares in %, excesses in %, times."""
    is_generated = frame["family"].isin(list(FAMILIES))
    shape = frame["table"].str.extract(r"(\d+x\d+)", expand=False)
    shape = shape.where(is_generated, "genes " + shape)
    parts = [
        ("generated", frame[is_generated]),
        *frame[is_generated].groupby("family", sort=False),
        *frame[is_generated].groupby(shape, sort=False),
        ("real", frame[~is_generated]),
        *frame[~is_generated].groupby("family", sort=False),
        *frame[frame["family"] == "genes"].groupby(shape, sort=False),
    ]
    rows = {
        (way, str(name)): row_of(group)
        for way in frame["way"].unique()
        for name, part in parts
        if len(group := part[part["way"] == way])
    }
    return pd.DataFrame(rows).T


def row_of(rows: pd.DataFrame) -> dict[str, float]:
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


def n_different(frame: pd.DataFrame, way: str, other: str) -> tuple[int, int, int]:
    """Of how many fits two ways differ, in how many the first has the higher objective, and of all."""
    wide = frame.pivot_table(index="key", columns="way", values="objective")
    ratio = (wide[way] / wide[other]).dropna()
    return int((abs(ratio - 1) > APART).sum()), int((ratio > 1 + APART).sum()), len(ratio)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies")
    parser.add_argument("--quick", action="store_true", help="every fourth problem")
    parser.add_argument("--only", default="", help="tables with this text in their name")
    parser.add_argument("--solver-options", type=json.loads, default={}, help="of Exchange, as JSON")
    parser.add_argument("--ways", default=";".join(WAYS), help="some of these, separated by semicolons")
    parser.add_argument("--reference", action="store_true", help="keep objectives and times as the reference")
    parser.add_argument("--worst", type=int, default=15, help="how many of the largest excesses are listed")
    options = parser.parse_args()
    started = time.perf_counter()
    store = Store()
    with threadpool_limits(N_THREADS):
        for _ in outcomes(problems(only="breast"), options.solver_options):  # compiled from here on
            pass
        chosen = problems(4 if options.quick else 1, options.only)
        frame = run(store, chosen, options.solver_options, options.ways.split(";"), options.reference)
    print(f"kmargin from {os.path.dirname(kmargin.__file__)}, options {options.solver_options}")
    with pd.option_context("display.width", 200, "display.max_columns", 20, "display.max_rows", 200):
        print(summary(frame).round(3).to_string())
        worst = frame.nlargest(options.worst, "excess").assign(
            k=lambda rows: [key[1] for key in rows["key"]], lam=lambda rows: [key[2] for key in rows["key"]]
        )
        worst["excess"] *= 100
        print(worst[["table", "k", "lam", "way", "excess", "seconds"]].round(4).to_string(index=False))
    for way, other in (("single", "groups"), ("path", "path, groups"), ("path", "single")):
        if {way, other} <= set(frame["way"]):
            differ, higher, fits = n_different(frame, way, other)
            print(f"{way} and {other} differ on {differ} of {fits} fits; {way} is higher on {higher}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
