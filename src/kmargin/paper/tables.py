"""Tables 2 to 4 with our numbers and those of the paper, and reasons for the differences."""

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kmargin.datasets import TABLE_1
from kmargin.paper.protocol import DATASETS, PEERS, SOLVERS
from kmargin.paper.store import KEYS

if TYPE_CHECKING:
    import pandas as pd


def read_published() -> dict[tuple[str, str, str], list[dict[str, float]]]:
    """The numbers that the paper prints: a list of rows for each table, data set and solver."""
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row.pop("table"), row.pop("dataset"), row.pop("solver"))
            found.setdefault(key, []).append({name: float(text) for name, text in row.items() if text})
    return found


PUBLISHED = read_published()
with Path(__file__).with_name("reasons.toml").open("rb") as file:
    REASONS: list[dict[str, Any]] = tomllib.load(file)["reason"]
UNKNOWN = "No reason is known. The results of each fit are in rows.csv."
PERCENT = ("train", "validation", "test", "sparsity")  # columns that are shown in percent
TOTALS = ("iterations", "seconds")  # columns that are summed along the path in Tables 3 and 4
NAMES = {"mm": "MM", "sd": "SD", "exchange": "exchange", "l2r": "L2R", "l1r": "L1R", "svc": "SVC"}


@dataclass(frozen=True)
class Entry:
    """One of our numbers, and the number that the paper prints in the same cell, if it prints one."""

    value: float
    noise: float = 0.0  # differences from the paper up to this may come from randomness or rounding
    printed: float | None = None

    @property
    def differs(self) -> bool:
        """Whether our number differs from the printed one by more than noise."""
        return self.printed is not None and abs(self.value - self.printed) > self.noise


@dataclass(frozen=True)
class Line:
    """One row of a table: the results of a solver on a data set."""

    dataset: str
    solver: str
    parameter: Entry  # the sparsity s in percent, or C
    entries: dict[str, Entry]  # by column
    is_marked: bool = False  # whether this is the row of the true sparsity of the simulated data

    def differing(self) -> dict[str, Entry]:
        """The entries that differ from the printed ones by more than noise."""
        everything = {"parameter": self.parameter, **self.entries}
        return {name: entry for name, entry in everything.items() if entry.differs}


def read_rows(folder: Path) -> "pd.DataFrame":
    """The results of all fits with their times; accuracies and sparsities are in percent."""
    import pandas as pd

    rows = pd.read_csv(folder / "rows.csv")
    rows = rows.merge(pd.read_csv(folder / "seconds.csv"), on=list(KEYS), how="left")
    rows[list(PERCENT)] *= 100
    return rows


def of_crossval(rows: "pd.DataFrame", protocol: str) -> "pd.DataFrame":
    """The rows of the cross-validation experiment with one protocol."""
    return rows[(rows.experiment == "crossval") & (rows.protocol == protocol)]


def printed_rows(table: str, protocol: str, dataset: str, solver: str) -> list[dict[str, float]]:
    """The rows that the paper prints for a data set and solver; none unless the protocol is "paper"."""
    return PUBLISHED.get((table, dataset, solver), []) if protocol == "paper" else []


def table2(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Table 2: the path of each of our solvers on `synthetic`, with the row of the true sparsity marked."""
    mine, lines = of_crossval(rows, protocol), []
    for solver in SOLVERS:
        printed = {row["parameter"]: row for row in printed_rows("table2", protocol, "synthetic", solver)}
        penalised = ("distance_sq", "objective") if solver != "exchange" else ()
        columns = (
            "iterations", "seconds", *penalised, "loss", "train", "validation", "test", "support_vectors",
        )  # fmt: skip
        path = mine[(mine.dataset == "synthetic") & (mine.solver == solver)]
        for s, group in path.groupby("parameter"):
            theirs = printed.get(round(100 * s, 4), {})
            entries = {name: _entry(group, path, name, theirs) for name in columns}
            lines.append(Line("synthetic", solver, Entry(100 * s), entries, is_marked=round(s, 4) == 0.997))
    return lines


def table3(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Table 3: the sparsity that cross-validation selects for each data set and each of our solvers."""
    columns = ("iterations", "seconds", "objective", "loss", "validation", "test")
    return _selection_table("table3", rows, protocol, SOLVERS, columns)


def table4(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Table 4: our solvers compared with LIBLINEAR and LIBSVM."""
    columns = ("seconds", "train", "validation", "test", "sparsity")
    return _selection_table("table4", rows, protocol, (*SOLVERS, *PEERS), columns)


def _selection_table(
    name: str, rows: "pd.DataFrame", protocol: str, solvers: Sequence[str], columns: Sequence[str]
) -> list[Line]:
    """A line for each data set and solver, with the results for the parameter that has been selected."""
    lines, mine = [], of_crossval(rows, protocol)
    for dataset in DATASETS:
        for solver in solvers:
            path = mine[(mine.dataset == dataset) & (mine.solver == solver)]
            if not len(path):
                continue
            theirs = next(iter(printed_rows(name, protocol, dataset, solver)), {})
            chosen = path[path.parameter == selected(path)]
            entries = {
                column: _entry(path if column in TOTALS else chosen, path, column, theirs)
                for column in columns
                if column != "objective" or solver != "exchange"  # objectives of Exchange include a ridge
            }
            unit, ties = 1 if solver in PEERS else 100, _ties(path)
            noise = unit * (max(ties) - min(ties) + 1e-9)
            parameter = Entry(unit * selected(path), noise, theirs.get("parameter"))
            lines.append(Line(dataset, solver, parameter, entries))
    return lines


TABLES = {"table2": table2, "table3": table3, "table4": table4}


def selected(group: "pd.DataFrame") -> float:
    """The parameter with the highest mean validation accuracy; among ties, that of the sparsest model."""
    means = group.groupby("parameter")["validation"].mean()
    ties = means.index[means >= means.max() - 1e-9]
    return float(ties.min() if group.solver.iloc[0] in PEERS else ties.max())


def to_frame(lines: list[Line]) -> "pd.DataFrame":
    """A data frame with our numbers, and a column beside each for the number that the paper prints."""
    import pandas as pd

    records = []
    for line in lines:
        record: dict[str, Any] = {"dataset": line.dataset, "solver": line.solver}
        for name, entry in {"parameter": line.parameter, **line.entries}.items():
            record[name] = f"{entry.value:.6g}"
            record[f"{name}_paper"] = "" if entry.printed is None else f"{entry.printed:.6g}"
        records.append(record)
    return pd.DataFrame(records)


def _entry(group: "pd.DataFrame", path: "pd.DataFrame", name: str, printed: Mapping[str, float]) -> Entry:
    """The entry of a column: sums over the rows of `group` in each fold, averaged over folds.

    `path` has the rows of all parameters, from which the noise of the sparsity is estimated.
    """
    value = float(group.groupby("replicate")[name].sum().mean())
    theirs = printed.get(name)
    larger = max(value, theirs or 0.0)
    noise = 1e-3 + 0.25 * larger  # for objectives, losses and distances
    if name == "seconds":
        noise = np.inf
    elif name in ("iterations", "support_vectors"):
        noise = 0.5 * larger
    elif name == "sparsity":  # also the range over parameters that tie with the best
        tied = path[path.parameter.isin(_ties(path))].groupby("parameter")["sparsity"].mean()
        noise = 2.0 + float(np.ptp(tied))
    elif name in PERCENT:
        noise = accuracy_noise(group, name)
    return Entry(value, noise, theirs)


def accuracy_noise(group: "pd.DataFrame", name: str) -> float:
    """Two standard errors of the difference between our mean accuracy and the paper's, in percent, plus 0.5.

    Our accuracies (column `name`) and the paper's are assumed to have the same variance over folds. Simulated
    data have no files, so the paper's test rows differ from ours, which adds the variance of an accuracy on
    `n_test` rows.
    """
    n_folds, entry = group.replicate.nunique(), TABLE_1[group.dataset.iloc[0]]
    variance = float(group[name].var(ddof=1)) / n_folds if n_folds > 1 else 0.0
    if not entry.files:
        share = min(float(group[name].mean()) / 100, 1 - 1 / entry.n_test)
        variance += 1e4 * share * (1 - share) / entry.n_test
    return 0.5 + 2 * float(np.sqrt(2 * variance))


def _ties(group: "pd.DataFrame") -> list[float]:
    """Parameters whose validation accuracy is within a standard error of the difference to the best."""
    summary = group.groupby("parameter")["validation"].agg(["mean", "sem"])
    best = summary.loc[summary["mean"].idxmax()]
    return list(summary.index[summary["mean"] >= best["mean"] - np.sqrt(2) * best["sem"]])


def find_reason(line: Line, column: str) -> str:
    """The first reason in `reasons.toml` that covers this line and column of a table, or `UNKNOWN`."""
    number = {"datasets": line.dataset, "solvers": line.solver, "columns": column}
    covering = (
        reason["text"]
        for reason in REASONS
        if all(name in reason.get(kind, [name]) for kind, name in number.items())
    )
    return next(covering, UNKNOWN)


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[list[str], str]]:
    """Collect the numbers that differ from the paper by more than noise, with the reasons why.

    Returns a list of pairs: texts that name the numbers, and their reason.
    """
    by_reason: dict[str, list[str]] = {}
    for part, lines in by_part.items():
        for line in lines:
            by_text: dict[str, list[str]] = {}
            for column, entry in line.differing().items():
                name = "C" if line.solver in PEERS else "s"
                if column != "parameter":
                    name = column.removesuffix("_sq").replace("_", " ")
                number = f"{name} {entry.value:.4g} against {entry.printed:.4g}"
                by_text.setdefault(find_reason(line, column), []).append(number)
            for text, numbers in by_text.items():
                where = f"{part.replace('table', 'Table ')}, {line.dataset}, {NAMES[line.solver]}"
                by_reason.setdefault(text, []).append(f"{where}: {', '.join(numbers)}")
    return [(numbers, text) for text, numbers in by_reason.items()]
