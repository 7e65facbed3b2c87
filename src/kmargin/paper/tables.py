"""The paper's tables: ours, the published ones, and the differences explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kmargin.datasets import TABLE_1
from kmargin.paper import crossval
from kmargin.paper.protocol import DATASETS, PEERS, SOLVERS
from kmargin.paper.store import KEYS

if TYPE_CHECKING:
    import pandas as pd


class PathRow(NamedTuple):
    """A row of Table 2: `synthetic` with mm, means over ten folds."""

    s: float  # percent, as all accuracies
    iterations: float
    seconds: float
    objective: float
    distance_sq: float
    train: float
    validation: float
    test: float
    support_vectors: float


class SummaryRow(NamedTuple):
    """A row of Table 3: the sparsity that cross-validation selects."""

    s: float
    iterations: float  # along the whole path
    seconds: float
    objective: float
    validation: float
    test: float


class ComparisonRow(NamedTuple):
    """A row of Table 4."""

    parameter: float  # s in percent, or C
    seconds: float
    train: float
    validation: float
    test: float
    sparsity: float


TABLE_2 = (
    PathRow(0, 15.9, 0.04178, 4.559e-7, 0, 100, 73, 76.5, 26.7),
    PathRow(22.5, 49.4, 0.06582, 1.122e-5, 1.207e-6, 100, 74, 76.9, 106.5),
    PathRow(45, 163.5, 0.2091, 2.873e-5, 1.178e-6, 100, 74.5, 78.4, 125.2),
    PathRow(67.5, 358.6, 0.4365, 8.43e-5, 1.304e-6, 100, 80.12, 82.5, 112.7),
    PathRow(90, 839.4, 1.024, 0.000684, 1.52e-6, 100, 92.5, 93.4, 65.4),
    PathRow(91, 46.9, 0.06743, 9.166e-5, 1.411e-5, 100, 93.12, 93.25, 66.2),
    PathRow(93, 483.4, 0.6224, 0.001303, 1.501e-6, 100, 94.88, 94.55, 62.3),
    PathRow(95, 545.2, 0.6822, 0.002178, 1.448e-6, 100, 96.38, 95.75, 58.7),
    PathRow(97, 670.7, 0.8424, 0.003874, 1.368e-6, 99.96, 98.12, 96.4, 57.3),
    PathRow(99, 788.8, 0.9689, 0.007745, 1.323e-6, 99.73, 99.25, 98.35, 59.5),
    PathRow(99.1, 219, 0.2715, 0.00758, 1.421e-6, 99.73, 99.25, 98.35, 59.2),
    PathRow(99.3, 275.8, 0.3419, 0.008007, 1.423e-6, 99.72, 99.12, 98.35, 58.8),
    PathRow(99.5, 361.6, 0.4409, 0.009339, 1.364e-6, 99.65, 99, 99, 60.4),
    PathRow(99.7, 471.3, 0.5772, 0.01005, 1.293e-6, 99.87, 99.88, 99.5, 61.7),
    PathRow(99.9, 1072, 1.334, 0.2693, 1.048e-6, 79.61, 79.5, 82.75, 566.7),
)

TABLE_3 = {
    ("TCGA-PANCAN-HiSeq", "mm"): SummaryRow(99.9, 9.181e4, 1759, 3.467e-5, 95.64, 95.56),
    ("TCGA-PANCAN-HiSeq", "sd"): SummaryRow(0, 8.114e5, 691.4, 0, 98.29, 96.44),
    ("breast-cancer-wisconsin", "mm"): SummaryRow(30, 4461, 0.01484, 0.05329, 96.53, 99.49),
    ("breast-cancer-wisconsin", "sd"): SummaryRow(30, 8124, 0.02265, 0.05329, 96.53, 99.42),
    ("iris", "mm"): SummaryRow(25, 858.1, 0.0008536, 0.0015, 96.67, 81.66),
    ("iris", "sd"): SummaryRow(25, 1205, 0.0009029, 0.001623, 96.67, 81.33),
    ("letter-recognition", "mm"): SummaryRow(0, 5.152e5, 6.419, 0.02848, 82.07, 81.06),
    ("letter-recognition", "sd"): SummaryRow(12.5, 8.788e5, 9.552, 0.02869, 81.96, 80.97),
    ("optdigits", "mm"): SummaryRow(0, 1.026e6, 37.23, 5.149e-8, 95.71, 93.6),
    ("optdigits", "sd"): SummaryRow(22.5, 3.989e6, 83.54, 3.309e-6, 97.15, 95.47),
    ("spiral", "mm"): SummaryRow(93, 4.68e4, 54.7, 1.955e-5, 99.62, 100),
    ("spiral", "sd"): SummaryRow(45, 4.598e4, 2.553, 1.655e-5, 99.75, 100),
    ("splice", "mm"): SummaryRow(93, 1.979e4, 3.896, 0.03915, 95.21, 94.96),
    ("splice", "sd"): SummaryRow(90, 3.17e4, 1.762, 0.03544, 94.94, 94.77),
    ("synthetic", "mm"): SummaryRow(99.7, 6362, 7.927, 0.01005, 99.88, 99.5),
    ("synthetic", "sd"): SummaryRow(99.7, 5204, 0.5066, 0.0001235, 99.75, 99.35),
}

TABLE_4 = {
    ("TCGA-PANCAN-HiSeq", "mm"): ComparisonRow(99.9, 1750, 99.52, 95.64, 95.56, 99.9),
    ("TCGA-PANCAN-HiSeq", "sd"): ComparisonRow(0, 766.1, 100, 98.29, 96.44, 0),
    ("TCGA-PANCAN-HiSeq", "l2r"): ComparisonRow(1, 14.1, 100, 99.84, 100, 0.066),
    ("TCGA-PANCAN-HiSeq", "l1r"): ComparisonRow(1, 10.35, 100, 99.84, 100, 99.49),
    ("breast-cancer-wisconsin", "mm"): ComparisonRow(30, 0.01532, 96.38, 96.53, 99.49, 33.33),
    ("breast-cancer-wisconsin", "sd"): ComparisonRow(30, 0.02266, 96.38, 96.53, 99.42, 33.33),
    ("breast-cancer-wisconsin", "l2r"): ComparisonRow(1, 0.001334, 85.8, 83.68, 91.82, 0),
    ("breast-cancer-wisconsin", "l1r"): ComparisonRow(0.01, 0.004505, 86.35, 84.04, 90.8, 18.89),
    ("iris", "mm"): ComparisonRow(25, 0.0007963, 100, 96.67, 81.66, 25),
    ("iris", "sd"): ComparisonRow(25, 0.0009201, 100, 96.67, 81.33, 25),
    ("iris", "l2r"): ComparisonRow(1, 0.0001739, 85.74, 81.67, 80.66, 0),
    ("iris", "l1r"): ComparisonRow(1, 0.0002635, 86.02, 80, 80.66, 11.67),
    ("letter-recognition", "mm"): ComparisonRow(0, 6.765, 83.8, 82.07, 81.06, 0),
    ("letter-recognition", "sd"): ComparisonRow(12.5, 10.04, 83.75, 81.96, 80.97, 12.5),
    ("letter-recognition", "l2r"): ComparisonRow(0.775, 3.318, 68.07, 67.49, 66.2, 0),
    ("letter-recognition", "l1r"): ComparisonRow(0.775, 41.44, 68.04, 67.47, 66.18, 1.106),
    ("optdigits", "mm"): ComparisonRow(0, 36.77, 100, 95.71, 93.6, 0),
    ("optdigits", "sd"): ComparisonRow(22.5, 79.26, 100, 97.15, 95.48, 21.88),
    ("optdigits", "l2r"): ComparisonRow(0.005, 0.9293, 97.86, 96.1, 94.93, 3.281),
    ("optdigits", "l1r"): ComparisonRow(0.05, 4.291, 97.74, 96.1, 95.19, 37.66),
    ("spiral", "mm"): ComparisonRow(90, 56.77, 99.99, 99.62, 100, 90.03),
    ("spiral", "sd"): ComparisonRow(45, 2.579, 100, 99.75, 100, 45.01),
    ("spiral", "svc"): ComparisonRow(1, 0.0532, 100, 100, 100, 21.06),
    ("splice", "mm"): ComparisonRow(93, 4.111, 96.12, 95.21, 94.96, 92.78),
    ("splice", "sd"): ComparisonRow(90, 1.792, 96.21, 94.94, 94.77, 90),
    ("splice", "l2r"): ComparisonRow(0.01, 0.5402, 97.02, 95.13, 94.55, 0),
    ("splice", "l1r"): ComparisonRow(0.03, 1.637, 96.77, 96.04, 95.09, 61.22),
    ("synthetic", "mm"): ComparisonRow(99.7, 7.836, 99.87, 99.88, 99.5, 99.6),
    ("synthetic", "sd"): ComparisonRow(99.7, 0.4528, 99.83, 99.75, 99.35, 99.6),
    ("synthetic", "l2r"): ComparisonRow(0.01, 0.3411, 99.94, 74.25, 76.05, 0),
    ("synthetic", "l1r"): ComparisonRow(0.03, 0.3606, 99.62, 98, 97.75, 90.98),
}


PERCENT = ("train", "validation", "test", "sparsity")
NAMES = {"mm": "MM", "sd": "SD", "exchange": "exchange", "l2r": "L2R", "l1r": "L1R", "svc": "SVC"}


@dataclass(frozen=True)
class Entry:
    """A number of ours, its noise, and the number that the paper prints, if any."""

    value: float
    noise: float = 0.0  # differences up to this are expected
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
        """The entries that differ from the printed ones by more than noise."""
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


def table2(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """The path on `synthetic` of each solver of ours; the row of the true sparsity is marked."""
    mine, lines = of_crossval(rows, protocol), []
    printed = {row.s: row._asdict() for row in TABLE_2} if protocol == "paper" else {}
    for solver in SOLVERS:
        penalised = ("distance_sq", "objective") if solver != "exchange" else ()
        columns = (
            "iterations", "seconds", *penalised, "loss", "train", "validation", "test", "support_vectors",
        )  # fmt: skip
        path = mine[(mine.dataset == "synthetic") & (mine.solver == solver)]
        for s, group in path.groupby("parameter"):
            theirs = printed.get(round(100 * s, 4), {}) if solver == "mm" else {}
            entries = {name: _entry(group, name, theirs.get(name), "synthetic") for name in columns}
            lines.append(Line("synthetic", solver, Entry(100 * s), entries, is_marked=round(s, 4) == 0.997))
    return lines


def table3(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """What cross-validation selects for each data set and solver of ours."""
    lines = []
    for dataset, solver, group in _groups(of_crossval(rows, protocol), SOLVERS):
        theirs: Any = TABLE_3.get((dataset, solver)) if protocol == "paper" else None
        at = selected(group)
        chosen = group[group.parameter == at]
        entries = {name: _total(group, name, theirs) for name in ("iterations", "seconds")}
        for name in ("objective", "loss", "validation", "test"):
            if name != "objective" or solver != "exchange":
                entries[name] = _entry(chosen, name, getattr(theirs, name, None), dataset)
        parameter = Entry(100 * at, 100 * _tie_width(group), theirs.s if theirs else None)
        lines.append(Line(dataset, solver, parameter, entries))
    return lines


def table4(rows: "pd.DataFrame", protocol: str) -> list[Line]:
    """Our solvers beside LIBLINEAR and LIBSVM."""
    lines = []
    for dataset, solver, group in _groups(of_crossval(rows, protocol), (*SOLVERS, *PEERS)):
        theirs: Any = TABLE_4.get((dataset, solver)) if protocol == "paper" else None
        at = selected(group)
        chosen = group[group.parameter == at]
        entries = {"seconds": _total(group, "seconds", theirs)}
        for name in ("train", "validation", "test"):
            entries[name] = _entry(chosen, name, getattr(theirs, name, None), dataset)
        entries["sparsity"] = _sparsity(group, chosen, theirs)
        unit = 1 if solver in PEERS else 100
        parameter = Entry(unit * at, unit * _tie_width(group), theirs.parameter if theirs else None)
        lines.append(Line(dataset, solver, parameter, entries))
    return lines


TABLES = {"table2": table2, "table3": table3, "table4": table4}


def selected(group: "pd.DataFrame") -> float:
    """The parameter with the highest mean validation accuracy; among equals the sparsest model."""
    means = group.groupby("parameter")["validation"].mean()
    ties = means.index[means >= means.max() - 1e-9]
    return float(ties.min() if group.solver.iloc[0] in PEERS else ties.max())


def to_frame(lines: list[Line]) -> "pd.DataFrame":
    """A table for a CSV file: our numbers, and beside them those that the paper prints."""
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
    """The mean of a column over folds."""
    value = float(group[name].mean())
    if name in ("train", "validation", "test"):
        return Entry(value, _accuracy_noise(group, name, dataset), printed)
    if name in ("iterations", "support_vectors"):
        return Entry(value, 0.5 * max(value, printed or 0.0), printed)
    if name == "seconds":
        return Entry(value, np.inf, printed)
    return Entry(value, 1e-3 + 0.25 * max(value, printed or 0.0), printed)  # objectives and distances


def _total(group: "pd.DataFrame", name: str, theirs: Any) -> Entry:
    """The sum of a column along the path, averaged over folds."""
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
    """The observed sparsity; its noise is its range over the parameters that tie with the chosen one."""
    means = group[group.parameter.isin(_ties(group))].groupby("parameter")["sparsity"].mean()
    noise = 2.0 + float(means.max() - means.min())
    return Entry(float(chosen["sparsity"].mean()), noise, theirs.sparsity if theirs else None)


def _tie_width(group: "pd.DataFrame") -> float:
    """The distance between the smallest and the largest parameter that tie with the best."""
    ties = _ties(group)
    return float(max(ties) - min(ties)) + 1e-9


def _ties(group: "pd.DataFrame") -> list[float]:
    """The parameters whose validation accuracy is within a standard error (of a difference) of the best."""
    summary = group.groupby("parameter")["validation"].agg(["mean", "sem"])
    best = summary.loc[summary["mean"].idxmax()]
    return list(summary.index[summary["mean"] >= best["mean"] - np.sqrt(2) * best["sem"]])


LABELS = {"table2": "Table 2", "table3": "Table 3", "table4": "Table 4"}
UNKNOWN = "No reason is known. The rows are in rows.csv."


class Reason(NamedTuple):
    """A cause of differences, and the numbers it may explain; an empty set stands for any."""

    datasets: frozenset[str]
    solvers: frozenset[str]
    columns: frozenset[str]
    text: str

    def covers(self, dataset: str, solver: str, column: str) -> bool:
        given = ((self.datasets, dataset), (self.solvers, solver), (self.columns, column))
        return all(not known or name in known for known, name in given)


def _reason(datasets: str, solvers: str, columns: str, text: str) -> Reason:
    names = [frozenset(words.split()) for words in (datasets, solvers, columns)]
    return Reason(names[0], names[1], names[2], text)


# the first reason that covers a number is given
REASONS: tuple[Reason, ...] = (
    _reason(
        "letter-recognition TCGA-PANCAN-HiSeq",
        "mm sd l2r l1r",
        "train validation test sparsity iterations objective",
        "Scaling. The paper normalises features to [0, 1], and so do we. A published version of the "
        "authors' code divides by the range of each row instead. With rows scaled like that, L2R at the "
        "printed C gets 68.1, 67.6 and 66.2 % on the training, validation and test rows of letter-"
        "recognition, which are the printed numbers, and MM with all features 83.6, 81.9 and 80.6 %. "
        "Scaled by features, all classifiers predict a point or more better.",
    ),
    _reason(
        "optdigits",
        "mm",
        "train validation test sparsity objective",
        "Early stopping. Pixels are not scaled here, the classes are separable, and without a ridge "
        "nothing but the stopping rule (a squared gradient below 1e-6) decides where MM ends; the "
        "validation accuracies of its sparsities up to 45 % are within a standard error of each other, "
        "so that another one is selected.",
    ),
    _reason(
        "spiral",
        "mm sd",
        "iterations objective",
        "The normaliser and early stopping. Below eight points per classifier (sparsities from 99 %) the "
        "kernel matrix is nearly singular and our runs use up the 10,000 inner iterations at many "
        "values of rho. None of these sparsities is selected. Also, the spirals are another random draw.",
    ),
    _reason(
        "spiral",
        "svc",
        "sparsity",
        "We count the training points that are no support vector of any pair of classes. The paper does "
        "not say how it counts.",
    ),
    _reason(
        "",
        "l1r",
        "sparsity train",
        "A tie. Several values of C have the same validation accuracy; we take the smallest of them. "
        "How many coefficients are exactly zero there depends on LIBLINEAR's tolerance.",
    ),
    _reason(
        "",
        "",
        "parameter",
        "Nearly equal scores. The validation accuracies around the selected value differ by a few rows, and "
        "the paper and we both take the highest of them.",
    ),
    _reason(
        "synthetic",
        "mm",
        "support_vectors iterations distance_sq",
        "Early stopping. With many features most training rows end on their margins up to a small error. "
        "On which side, and how many steps the next sparsity takes from there, is decided by the "
        "stopping rule alone.",
    ),
    _reason(
        "synthetic spiral",
        "",
        "",
        "Another random draw. The data are simulated, and the paper's random numbers are not ours.",
    ),
)


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[list[str], str]]:
    """The numbers that differ by more than noise, by the reason known for them."""
    by_reason: dict[str, list[str]] = {}
    for part, lines in by_part.items():
        for line in lines:
            by_text: dict[str, list[str]] = {}
            for column, entry in line.differing().items():
                known = (r.text for r in REASONS if r.covers(line.dataset, line.solver, column))
                name = ("C" if line.solver in PEERS else "s") if column == "parameter" else column
                number = f"{name} {entry.value:.4g} against {entry.printed:.4g}"
                by_text.setdefault(next(known, UNKNOWN), []).append(number)
            for text, numbers in by_text.items():
                where = f"{LABELS[part]}, {line.dataset}, {NAMES[line.solver]}"
                by_reason.setdefault(text, []).append(f"{where}: {', '.join(numbers)}")
    return [(numbers, text) for text, numbers in by_reason.items()]
