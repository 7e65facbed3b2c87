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
    """Read the numbers that the paper prints: a list of rows for each (table, data set, solver)."""
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
TOTALS = ("iterations", "seconds")  # columns summed over all sparsities (or all C) in Tables 3 and 4
NAMES = {"mm": "MM", "sd": "SD", "exchange": "exchange", "l2r": "L2R", "l1r": "L1R", "svc": "SVC"}


@dataclass(frozen=True)
class Entry:
    """A cell of a table: our number, and the number that the paper prints there, if it prints one."""

    value: float
    noise: float = 0.0  # the largest difference from `printed` that chance or rounding can explain
    printed: float | None = None

    @property
    def differs(self) -> bool:
        """Whether our number differs from the printed one by more than noise."""
        return self.printed is not None and abs(self.value - self.printed) > self.noise


@dataclass(frozen=True)
class Line:
    """One row of Table 2, 3 or 4: the results of a solver on a data set, for one sparsity or one C."""

    dataset: str
    solver: str
    parameter: Entry  # the sparsity 1 - k/p in percent; for LIBLINEAR and LIBSVM it is C
    entries: dict[str, Entry]  # the other cells of the row, by name of the column
    is_marked: bool = False  # whether the sparsity is the true one of the data set `synthetic`

    def differing(self) -> dict[str, Entry]:
        """The cells, by column, in which our number differs from the paper's by more than noise."""
        everything = {"parameter": self.parameter, **self.entries}
        return {name: entry for name, entry in everything.items() if entry.differs}


def read_rows(folder: Path) -> "pd.DataFrame":
    """Read the results and times of all fits from a folder; accuracies and sparsities are in percent."""
    import pandas as pd

    rows = pd.read_csv(folder / "rows.csv")
    rows = rows.merge(pd.read_csv(folder / "seconds.csv"), on=list(KEYS), how="left")
    rows[list(PERCENT)] *= 100
    return rows


def of_crossval(rows: "pd.DataFrame", protocol: str) -> "pd.DataFrame":
    """Select the results of the cross-validation experiment under a protocol, "paper" or "shuffled"."""
    return rows[(rows.experiment == "crossval") & (rows.protocol == protocol)]


def printed_rows(table: str, protocol: str, dataset: str, solver: str) -> list[dict[str, float]]:
    """The rows of a table of the paper for a data set and a solver; none for the protocol "shuffled"."""
    return PUBLISHED.get((table, dataset, solver), []) if protocol == "paper" else []


def table2(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Table 2: a row for each of our solvers and each sparsity on `synthetic`, the true one marked."""
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
    """Table 3: our solvers on each data set, at the sparsity that cross-validation selects for them."""
    columns = ("iterations", "seconds", "objective", "loss", "validation", "test")
    return _selection_table("table3", rows, protocol, SOLVERS, columns)


def table4(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Table 4: our solvers, LIBLINEAR and LIBSVM, at the sparsity or C that cross-validation selects."""
    columns = ("seconds", "train", "validation", "test", "sparsity")
    return _selection_table("table4", rows, protocol, (*SOLVERS, *PEERS), columns)


def _selection_table(
    name: str, rows: "pd.DataFrame", protocol: str, solvers: Sequence[str], columns: Sequence[str]
) -> list[Line]:
    """Make Table 3 or 4 (`name`): a row for each data set and solver, at the selected sparsity or C."""
    lines, mine = [], of_crossval(rows, protocol)
    for dataset in DATASETS:
        for solver in solvers:
            path = mine[(mine.dataset == dataset) & (mine.solver == solver)]
            if not len(path):
                continue
            theirs = next(iter(printed_rows(name, protocol, dataset, solver)), {})
            chosen = path[path.parameter == selected(path)]
            # The objective of Exchange is left out: it includes a ridge penalty, and is not comparable.
            entries = {
                column: _entry(path if column in TOTALS else chosen, path, column, theirs)
                for column in columns
                if column != "objective" or solver != "exchange"
            }
            unit, ties = 1 if solver in PEERS else 100, _ties(path)
            noise = unit * (max(ties) - min(ties) + 1e-9)
            parameter = Entry(unit * selected(path), noise, theirs.get("parameter"))
            lines.append(Line(dataset, solver, parameter, entries))
    return lines


TABLES = {"table2": table2, "table3": table3, "table4": table4}


def selected(group: "pd.DataFrame") -> float:
    """The sparsity or C with the highest mean validation accuracy; among ties, that of the sparsest model."""
    means = group.groupby("parameter")["validation"].mean()
    ties = means.index[means >= means.max() - 1e-9]
    return float(ties.min() if group.solver.iloc[0] in PEERS else ties.max())


def to_frame(lines: list[Line]) -> "pd.DataFrame":
    """Convert a table to a data frame: a column of our numbers, then one of the paper's, and so on."""
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
    """Make the cell of column `name`: our number from the fits in `group`, and the paper's in `printed`.

    Our number is summed over the fits of a fold and averaged over folds. `path` has fits for all parameters.
    """
    value = float(group.groupby("replicate")[name].sum().mean())
    theirs = printed.get(name)
    larger = max(value, theirs or 0.0)
    noise = 1e-3 + 0.25 * larger  # for objectives, losses and distances: about 25 %
    if name == "seconds":
        noise = np.inf
    elif name in ("iterations", "support_vectors"):
        noise = 0.5 * larger
    elif name == "sparsity":  # 2 points, plus the range of the sparsities that tie in validation accuracy
        tied = path[path.parameter.isin(_ties(path))].groupby("parameter")["sparsity"].mean()
        noise = 2.0 + float(np.ptp(tied))
    elif name in PERCENT:
        noise = accuracy_noise(group, name)
    return Entry(value, noise, theirs)


def accuracy_noise(group: "pd.DataFrame", name: str) -> float:
    """How much two mean accuracies may differ by chance: 2 standard errors plus 0.5, in percentage points.

    The standard error is that of ours (column `name` of `group`) minus the paper's, assumed to have the same
    variance over folds. For simulated data, the test rows differ, too, which adds the variance due to them.
    """
    n_folds, entry = group.replicate.nunique(), TABLE_1[group.dataset.iloc[0]]
    variance = float(group[name].var(ddof=1)) / n_folds if n_folds > 1 else 0.0
    if not entry.files:
        share = min(float(group[name].mean()) / 100, 1 - 1 / entry.n_test)
        variance += 1e4 * share * (1 - share) / entry.n_test
    return 0.5 + 2 * float(np.sqrt(2 * variance))


def _ties(group: "pd.DataFrame") -> list[float]:
    """The parameters whose mean validation accuracy is at most sqrt(2) standard errors below the highest."""
    summary = group.groupby("parameter")["validation"].agg(["mean", "sem"])
    best = summary.loc[summary["mean"].idxmax()]
    return list(summary.index[summary["mean"] >= best["mean"] - np.sqrt(2) * best["sem"]])


def find_reason(line: Line, column: str) -> str:
    """The first text in `reasons.toml` on why this cell of a table differs from the paper, or `UNKNOWN`."""
    number = {"datasets": line.dataset, "solvers": line.solver, "columns": column}
    covering = (
        reason["text"]
        for reason in REASONS
        if all(name in reason.get(kind, [name]) for kind, name in number.items())
    )
    return next(covering, UNKNOWN)


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[list[str], str]]:
    """Collect our numbers that differ from the paper's by more than noise, grouped by the reason why.

    `by_part` has the tables by name. Returns pairs of a list of texts, such as "Table 3, iris, MM: loss
    0.2 against 0.1", and the reason for all of them.
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
