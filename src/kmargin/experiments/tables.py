"""The paper's tables from rows, each number with its noise, and beside it what the paper prints.

The objective that the paper prints is the penalised one at the end of an annealing: only MM and SD have one.
All solvers are compared by `loss`, the mean squared hinge loss of the final classifiers on their training
rows without a ridge, which is the objective of the paper's problem.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kmargin.datasets import TABLE_1
from kmargin.experiments import crossval, published
from kmargin.experiments.settings import DATASETS, PEERS, SOLVERS
from kmargin.experiments.store import KEYS

if TYPE_CHECKING:
    import pandas as pd

PERCENT = ("train", "validation", "test", "sparsity")
NAMES = {"mm": "MM", "sd": "SD", "exchange": "exchange", "l2r": "L2R", "l1r": "L1R", "svc": "SVC"}


@dataclass(frozen=True)
class Entry:
    """A number of ours, its noise, and the printed one if there is one."""

    value: float
    noise: float = 0.0  # differences up to this are to be expected
    printed: float | None = None

    @property
    def differs(self) -> bool:
        return self.printed is not None and abs(self.value - self.printed) > self.noise


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    dataset: str
    solver: str
    parameter: Entry  # s in percent, or C
    entries: dict[str, Entry]
    is_marked: bool = False

    def differing(self) -> dict[str, Entry]:
        """What differs from the print by more than noise."""
        everything = {"parameter": self.parameter, **self.entries}
        return {name: entry for name, entry in everything.items() if entry.differs}


def read_rows(folder: Path) -> "pd.DataFrame":
    """All rows with their seconds; accuracies and sparsities in percent."""
    import pandas as pd

    rows = pd.read_csv(folder / "rows.csv")
    rows = rows.merge(pd.read_csv(folder / "seconds.csv"), on=list(KEYS), how="left")
    rows[list(PERCENT)] *= 100
    return rows


def of_crossval(rows: "pd.DataFrame", protocol: str) -> "pd.DataFrame":
    return rows[(rows.experiment == crossval.NAME) & (rows.protocol == protocol)]


def table2(rows: "pd.DataFrame", protocol: str, solver: str) -> list[Line]:
    """`synthetic` along the path; the row of the true sparsity is marked."""
    mine = of_crossval(rows, protocol)
    mine = mine[(mine.dataset == "synthetic") & (mine.solver == solver)]
    is_printed = protocol == "paper" and solver == "mm"
    printed = {row.s: row._asdict() for row in published.TABLE_2} if is_printed else {}
    annealed = ("distance_sq", "objective") if solver != "exchange" else ()
    columns = (
        "iterations", "seconds", *annealed, "loss", "train", "validation", "test", "support_vectors",
    )  # fmt: skip
    lines = []
    for s, group in mine.groupby("parameter"):
        theirs = printed.get(round(100 * s, 4), {})
        entries = {name: _entry(group, name, theirs.get(name), "synthetic") for name in columns}
        lines.append(Line("synthetic", solver, Entry(100 * s), entries, is_marked=round(s, 4) == 0.997))
    return lines


def table3(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """What cross-validation selects for each data set and solver of ours."""
    lines = []
    for dataset, solver, group in _groups(of_crossval(rows, protocol), SOLVERS):
        theirs: Any = published.TABLE_3.get((dataset, solver)) if protocol == "paper" else None
        at = selected(group)
        chosen = group[group.parameter == at]
        entries = {name: _total(group, name, theirs) for name in ("iterations", "seconds")}
        for name in ("objective", "loss", "validation", "test"):
            if name != "objective" or solver != "exchange":
                entries[name] = _entry(chosen, name, getattr(theirs, name, None), dataset)
        noise = 100.0 * _tie_width(group)
        parameter = Entry(100 * at, noise, theirs.s if theirs else None)
        lines.append(Line(dataset, solver, parameter, entries))
    return lines


def table4(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Ours against LIBLINEAR and LIBSVM."""
    lines = []
    for dataset, solver, group in _groups(of_crossval(rows, protocol), (*SOLVERS, *PEERS)):
        theirs: Any = published.TABLE_4.get((dataset, solver)) if protocol == "paper" else None
        at = selected(group)
        chosen = group[group.parameter == at]
        entries = {"seconds": _total(group, "seconds", theirs)}
        for name in ("train", "validation", "test"):
            entries[name] = _entry(chosen, name, getattr(theirs, name, None), dataset)
        entries["sparsity"] = _sparsity(group, chosen, theirs)
        unit = 1 if solver in PEERS else 100
        noise = unit * _tie_width(group)
        parameter = Entry(unit * at, noise, theirs.parameter if theirs else None)
        lines.append(Line(dataset, solver, parameter, entries))
    return lines


def selected(group: "pd.DataFrame") -> float:
    """The parameter with the highest mean validation accuracy; among equals the sparsest machine."""
    means = group.groupby("parameter")["validation"].mean()
    ties = means.index[means >= means.max() - 1e-9]
    return float(ties.min() if group.solver.iloc[0] in PEERS else ties.max())


def to_frame(lines: list[Line]) -> "pd.DataFrame":
    """A table as it goes to disk: ours, and the paper's beside it where it prints one."""
    import pandas as pd

    records = []
    for line in lines:
        record: dict[str, Any] = {"dataset": line.dataset, "solver": line.solver}
        for name, entry in {"parameter": line.parameter, **line.entries}.items():
            record[name] = f"{entry.value:.6g}"
            record[f"{name}_paper"] = "" if entry.printed is None else f"{entry.printed:.6g}"
        records.append(record)
    return pd.DataFrame(records)


def _groups(rows: "pd.DataFrame", solvers: tuple[str, ...]) -> Any:
    for dataset in DATASETS:
        for solver in solvers:
            group = rows[(rows.dataset == dataset) & (rows.solver == solver)]
            if len(group):
                yield dataset, solver, group


def _entry(group: "pd.DataFrame", name: str, printed: float | None, dataset: str) -> Entry:
    """A mean over folds."""
    value = float(group[name].mean())
    if name in ("train", "validation", "test"):
        return Entry(value, _accuracy_noise(group, name, dataset), printed)
    if name in ("iterations", "support_vectors"):
        return Entry(value, 0.5 * max(value, printed or 0.0), printed)
    if name == "seconds":
        return Entry(value, np.inf, printed)
    return Entry(value, 1e-3 + 0.25 * max(value, printed or 0.0), printed)  # objectives and distances


def _total(group: "pd.DataFrame", name: str, theirs: Any) -> Entry:
    """A sum along the path, the mean over folds."""
    value = float(group.groupby("replicate")[name].sum().mean())
    noise = np.inf if name == "seconds" else 0.5 * max(value, getattr(theirs, name, 0.0))
    return Entry(value, noise, getattr(theirs, name, None))


def _accuracy_noise(group: "pd.DataFrame", name: str, dataset: str) -> float:
    """Two standard errors of a difference: between folds, and for simulated data between draws."""
    n_folds = group.replicate.nunique()
    variance = float(group[name].var(ddof=1)) / n_folds if n_folds > 1 else 0.0
    if not TABLE_1[dataset].files:
        share = min(float(group[name].mean()) / 100, 1 - 1 / TABLE_1[dataset].n_test)
        variance += 1e4 * share * (1 - share) / TABLE_1[dataset].n_test
    return 0.5 + 2 * float(np.sqrt(2 * variance))


def _sparsity(group: "pd.DataFrame", chosen: "pd.DataFrame", theirs: Any) -> Entry:
    """The observed sparsity; its noise is what the parameters that tie with the chosen one make of it."""
    means = group[group.parameter.isin(_ties(group))].groupby("parameter")["sparsity"].mean()
    noise = 2.0 + float(means.max() - means.min())
    return Entry(float(chosen["sparsity"].mean()), noise, theirs.sparsity if theirs else None)


def _tie_width(group: "pd.DataFrame") -> float:
    """How far apart the parameters lie that tie with the best."""
    ties = _ties(group)
    return float(max(ties) - min(ties)) + 1e-9


def _ties(group: "pd.DataFrame") -> list[float]:
    """The parameters whose validation accuracy is within a standard error (of a difference) of the best."""
    summary = group.groupby("parameter")["validation"].agg(["mean", "sem"])
    best = summary.loc[summary["mean"].idxmax()]
    return list(summary.index[summary["mean"] >= best["mean"] - np.sqrt(2) * best["sem"]])
