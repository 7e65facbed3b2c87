"""How often the search ends at the best of all supports, and what that takes, by family of tables."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import kmargin
from benchmarks.datasets.small import Table
from benchmarks.grids import C_of
from benchmarks.optima import Key, Known, fingerprint
from benchmarks.solvers.fit import unfinished_allowed

TOLERANCE = 1e-6  # relative: what counts as the optimum
APART = 1e-3  # relative: from here on a path and a single fit count as different
LONGEST_PATH = 30  # k from here down to 1, where a table has more features
WAYS = ("one k", "path", "all swaps")


class Outcome(NamedTuple):
    """One way to fit one table for one k and ridge."""

    table: str
    family: str
    k: int
    lam: float
    way: str
    excess: float  # of the objective above the lowest known, relative to it
    seconds: float  # of one fit; of a path the whole
    proven: bool


def outcomes(tables: Iterable[Table], optima: Mapping[Key, Known]) -> Iterator[Outcome]:
    """All three ways on all tables."""
    for table in tables:
        data = fingerprint(table)
        for lam in table.lams:
            for way, fits in fits_of(table, lam):
                for k, (objective, seconds) in fits.items():
                    known = optima[data, k, lam]
                    excess = objective / known.objective - 1
                    proven = known.known_by != "best known"
                    yield Outcome(table.name, table.family, k, lam, way, excess, seconds, proven)


def fits_of(table: Table, lam: float) -> Iterator[tuple[str, dict[int, tuple[float, float]]]]:
    """For each way and k the objective of the coefficients that came out, and the time they took."""
    given: dict[str, Any] = {"C": C_of(lam, len(table.y)), "fit_intercept": table.fit_intercept}
    solvers = {"one k": "exchange", "all swaps": kmargin.Exchange(effort="thorough")}
    with unfinished_allowed(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*repeat.* an earlier one")  # some genes are there twice
        for way, solver in solvers.items():
            fits = {}
            for k in table.ks:
                model = kmargin.SparseSVC(k, solver=solver, **given)
                seconds, _ = timed(lambda model=model: model.fit(table.X, table.y))
                fits[k] = (objective_of(table, model.coef_, model.intercept_, lam), seconds)
            yield way, fits
        ks = list(range(min(table.X.shape[1], LONGEST_PATH), 0, -1))
        seconds, path = timed(lambda: kmargin.sparse_svm_path(table.X, table.y, ks, **given))
        yield (
            "path",
            {
                int(k): (objective_of(table, coef, intercept, lam), seconds)
                for k, coef, intercept in zip(path.ks, path.coefs, path.intercepts, strict=True)
                if k in table.ks
            },
        )


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, which other programs disturb less."""
    started = time.process_time()
    result = fit()
    return time.process_time() - started, result


def objective_of(table: Table, coef: np.ndarray, intercept: Any, lam: float) -> float:
    """Of the coefficients as they are."""
    w, b = np.ravel(coef), float(np.ravel(intercept)[0])
    violation = np.maximum(0.0, 1.0 - table.y * (table.X @ w + b))
    return 0.5 * float(np.mean(violation**2)) + 0.5 * lam * float(w @ w)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per family, and one for all: shares at the optimum, worst excesses in %, milliseconds.

    `path worse` and `one k worse`: the share of fits where one is above the other by more than 0.1 %.
    `proven`: the share of optima that are known to be so.
    """
    groups = [*frame.groupby("family", sort=False), ("all", frame)]
    return pd.DataFrame({name: row_of(rows) for name, rows in groups}).T


def row_of(rows: pd.DataFrame) -> dict[str, float]:
    wide = rows.pivot_table(index=["table", "lam", "k"], columns="way", values="excess")
    seconds = rows.pivot_table(index=["table", "lam", "k"], columns="way", values="seconds")
    ratio = (1 + wide["path"]) / (1 + wide["one k"])
    row: dict[str, float] = {"fits": len(wide)}
    row |= {f"{way}, %": 100 * float((wide[way] <= TOLERANCE).mean()) for way in WAYS}
    row |= {f"{way}, worst": 100 * max(0.0, float(wide[way].max())) for way in WAYS}
    row["path worse"] = float((ratio > 1 + APART).mean())
    row["one k worse"] = float((ratio < 1 / (1 + APART)).mean())
    row |= {f"{way}, ms": 1000 * float(seconds[way].median()) for way in WAYS}
    row["proven"] = float(rows["proven"].mean())
    row["lowest, %"] = 100 * float(wide.to_numpy().min())  # below zero: the optimum was none
    return row


def missed(frame: pd.DataFrame) -> pd.DataFrame:
    """The fits above the optimum, the worst first: a column per way, in %."""
    wide = 100 * frame.pivot_table(index=["table", "lam", "k"], columns="way", values="excess")[list(WAYS)]
    wide["worst"] = wide.max(axis=1)
    rows = wide[wide["worst"] > 100 * TOLERANCE].sort_values("worst", ascending=False)
    return rows.drop(columns="worst")
