"""The report that shows our numbers beside the paper's, and the conclusions from them."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kmargin.datasets import TABLE_1
from kmargin.paper import figures, tables
from kmargin.paper.protocol import DATASETS, PROTOCOLS, Settings
from kmargin.paper.tables import NAMES, Line
from kmargin.report import html
from kmargin.tables.model_file import replace_file

if TYPE_CHECKING:
    import pandas as pd

OPTIONAL = "TCGA-PANCAN-HiSeq"  # a large data set, run by default only if its file was downloaded before
WHY_ABSENT = (
    "its archive (72 MB, at UCI) was not available, and is downloaded only with "
    "`--datasets TCGA-PANCAN-HiSeq`"
)
COLUMN_TITLES = {
    "iterations": "iterations",
    "seconds": "time (s)",
    "objective": "penalised objective",
    "loss": "training loss",
    "distance_sq": "distance",
    "train": "train (%)",
    "validation": "valid. (%)",
    "test": "test (%)",
    "support_vectors": "SV",
    "sparsity": "sparsity (%)",
}


class Item(NamedTuple):
    """An equation, algorithm, table, figure or section of the paper, and where it is in the code."""

    name: str  # what the paper calls the item, such as "Equation 4"; else the section that has it
    what: str
    functions: tuple[str, ...]  # the functions and classes that implement the item, without "kmargin."
    section: str  # the part of our report that shows or uses the item, such as "table3"
    note: str = ""  # where the code or a formula differs from the paper's text; may be empty


def read_map() -> tuple[Item, ...]:
    """Read `paper_map.csv`: where each item of the paper is in the code, in the order of the paper."""
    with Path(__file__).with_name("paper_map.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(Item(**row | {"functions": tuple(row["functions"].split())}) for row in rows)


PAPER_MAP = read_map()


def heading(part: str) -> str:
    """The heading of a part of the report, such as "Table 2" for "table2"."""
    if part == "descent":
        return "How MM converges"
    kind, number = (part[:6], part[6:]) if part.startswith("figure") else (part[:5], part[5:])
    return f"{kind.title()} {number}"


class Duel(NamedTuple):
    """The results on a data set of Exchange and of its rival, the better of MM and SD on validation rows."""

    ours: Line
    rival: Line

    @property
    def gain(self) -> float:
        """The test accuracy of Exchange minus that of its rival, in percentage points."""
        return self.ours.entries["test"].value - self.rival.entries["test"].value

    @property
    def noise(self) -> float:
        """The gain or loss that noise can explain: the larger of the noises of the two test accuracies."""
        return max(line.entries["test"].noise for line in self)

    @property
    def speed(self) -> float:
        """How many times as fast Exchange is: its rival's time for all sparsities, divided by its own."""
        return self.rival.entries["seconds"].value / self.ours.entries["seconds"].value


@dataclass(frozen=True)
class Verdict:
    """What a run shows: whether the paper's results hold up, and how Exchange compares with MM and SD."""

    settings: Settings
    lines: Sequence[Line]  # the rows of Table 3

    @property
    def is_quick(self) -> bool:
        """Whether settings other than the seed differ from the paper's, as those of a quick run do."""
        return asdict(self.settings) | {"seed": 0} != asdict(Settings()) | {"seed": 0}

    @cached_property
    def absent(self) -> list[str]:
        """The data sets of the paper that Table 3 has no results for."""
        return [name for name in DATASETS if name not in {line.dataset for line in self.lines}]

    def why_absent(self, dataset: str) -> str:
        """The reason, shown in the report, why a run has no results for a data set."""
        return WHY_ABSENT if dataset == OPTIONAL and not self.is_quick else "not in this run"

    @property
    def is_whole(self) -> bool:
        """Whether all folds and data sets were run, except perhaps `OPTIONAL`: enough to judge the paper."""
        return not self.is_quick and set(self.absent) <= {OPTIONAL}

    @cached_property
    def printed(self) -> list[Line]:
        """The rows of Table 3 for which the paper prints a test accuracy."""
        return [line for line in self.lines if line.entries["test"].printed is not None]

    @property
    def n_met(self) -> int:
        """The number of test accuracies printed in the paper that agree with ours within noise."""
        return sum(not line.entries["test"].differs for line in self.printed)

    @cached_property
    def duels(self) -> list[Duel]:
        """For each data set, Exchange and its rival: MM or SD, whichever is better on validation rows."""
        found = []
        for dataset in DATASETS:
            mine = {line.solver: line for line in self.lines if line.dataset == dataset}
            rivals = [mine[name] for name in ("mm", "sd") if name in mine]
            if "exchange" in mine and rivals:
                found.append(Duel(mine["exchange"], min(rivals, key=_rank)))
        return found

    @property
    def n_won(self) -> int:
        """The number of data sets where Exchange's test accuracy is at most 0.05 points below its rival's."""
        return sum(duel.gain >= -0.05 for duel in self.duels)

    @property
    def speed(self) -> float:
        """How many times as fast as its rival (MM or SD) Exchange is: the median over data sets."""
        return float(np.median([duel.speed for duel in self.duels]))

    def sentences(self) -> list[str]:
        """The conclusions that the run allows, in sentences for the report and the terminal."""
        parts = (self._quick_run(), self._agreement(), self._absent(), self._comparison())
        return [text for text in parts if text]

    def _quick_run(self) -> str:
        ran, paper = self.settings, Settings()
        if not self.is_quick:
            return ""
        return (
            f"A quick run: {len(DATASETS) - len(self.absent)} of the paper's {len(DATASETS)} data sets, "
            f"{ran.n_folds_run} of {paper.n_folds} folds, {ran.n_starts} of {paper.n_starts} starts, "
            f"{ran.n_draws} of {paper.n_draws} draws. It shows that everything runs and what the results "
            "look like; it is too small to tell whether the paper's results hold up. That takes "
            "all data sets and folds, about an hour: `kmargin reproduce all`. The report of such a run is in "
            "the repository, `results/paper/report.html`."
        )

    def _agreement(self) -> str:
        n_printed = len(self.printed)
        if not n_printed:
            return ""
        n_selected = sum(not line.parameter.differs for line in self.printed)
        counts = (
            f"{n_printed} printed test accuracies of MM and SD on these data, {self.n_met} agree with ours "
            f"within noise, and {n_selected} of the sparsities it selects are ours or tie with ours."
        )
        if not self.is_whole:
            return f"Of the paper's {counts}"
        share = self.n_met / n_printed
        answer = "Yes" if share == 1 else "Mostly" if share >= 0.7 else "In part" if share >= 0.4 else "No"
        return f"Do the paper's results hold up? {answer}: of its {counts}"

    def _absent(self) -> str:
        if self.is_quick or not self.absent:
            return ""
        if self.is_whole:
            return f"{OPTIONAL}, the eighth data set of the paper, is absent: {WHY_ABSENT}."
        return f"Not run: {', '.join(self.absent)}."

    def _comparison(self) -> str:
        if not self.duels:
            return ""
        sparser = sum(duel.ours.parameter.value >= duel.rival.parameter.value for duel in self.duels)
        speed = f"{self.speed:.2g} times as fast"
        if self.speed < 1:
            speed = f"{1 / self.speed:.2g} times more slowly"
        return (
            "How does the exchange compare? Its rival on each data set is whichever of MM and SD has the "
            "higher validation accuracy, or the faster of the two if they tie. Against it, the exchange "
            f"predicts the test set at least as well on {self.n_won} of {len(self.duels)} data sets, selects "
            f"a classifier at least as sparse on {sparser}, and computes the whole path {speed} (median)."
        )


def _rank(line: Line) -> tuple[float, float]:
    """Sort key: the highest validation accuracy first (rounded, so that ties are found), then the fastest."""
    return -round(line.entries["validation"].value, 6), line.entries["seconds"].value


def main_results(folder: Path, settings: Settings) -> Verdict:
    """Read the results in a folder, and judge by Table 3 whether those of the paper hold up."""
    rows = tables.read_rows(folder)
    protocols = [name for name in PROTOCOLS if name in set(rows.protocol)]
    return Verdict(settings, tables.table3(rows, protocols[0]) if protocols else [])


def write_report(folder: Path, parts: Sequence[str], settings: Settings) -> Path:
    """Write `parts` of the report on the results in a folder: tables as CSV, and a page; return its path."""
    rows = figures.with_places(tables.read_rows(folder))
    protocols = [name for name in PROTOCOLS if name in set(rows.protocol)]
    first, *others = protocols or ["paper"]
    makers = {name: maker for name, maker in tables.TABLES.items() if name in parts}
    lines = {name: maker(rows, first) for name, maker in makers.items()}
    written = [name for name in lines if lines[name]]
    for name in written:
        table = tables.to_frame(lines[name]).to_csv(index=False, lineterminator="\n")
        replace_file(folder / f"{name}.csv", table.encode())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    shown = [part for part in parts if _has_rows(part, rows)]
    run, verdict = set(rows.dataset), Verdict(settings, lines.get("table3", []))
    page = html.render(
        "paper.html.j2",
        title="The paper's experiments, run again",
        lines={name: lines.get(name, []) for name in tables.TABLES},
        other_protocols={
            name: [(other, found) for other in others if (found := maker(rows, other))]
            for name, maker in makers.items()
        },
        verdict=verdict,
        parts=shown,
        protocols=protocols,
        datasets=[(TABLE_1[name], "" if name in run else verdict.why_absent(name)) for name in DATASETS],
        images={part: draw(part, rows, settings) for part in shown if part not in (*makers, "figure3")},
        paths=draw_paths(rows, first) if "figure3" in shown else [],
        reasons=tables.reasons(lines),
        map=PAPER_MAP,
        manifest=manifest,
        settings=settings_rows(manifest),
        files=["rows.csv", "seconds.csv", *(f"{name}.csv" for name in written), "manifest.json"],
        heading=heading,
        solver_names=NAMES,
        column_titles=COLUMN_TITLES,
        columns_of=columns_of,
        is_printed=is_printed,
        is_highest=is_highest,
        short=short,
    )
    replace_file(folder / "report.html", page.encode())
    return folder / "report.html"


def _has_rows(part: str, rows: "pd.DataFrame") -> bool:
    """Whether a part of the report can be shown: `rows` has the results that it shows, or it shows none."""
    needed = {"figure1": "sensitivity", "figure2": "recovery"}
    if part == "descent" or part.startswith("figureS"):
        return True
    mine = rows[rows.experiment == needed.get(part, "crossval")]
    return len(mine) > 0 and (part != "table2" or "synthetic" in set(mine.dataset))


def draw(part: str, rows: "pd.DataFrame", settings: Settings) -> dict[str, str]:
    """Draw the figure of a part of the report: its SVG, and its size on the page, "wide" or "narrow"."""
    has_pixels = part in ("figureS1", "figureS2")
    image = html.svg(figures.DRAWN[part](rows, settings), part, follows_theme=not has_pixels)
    return {"svg": image, "size": "narrow" if part == "figureS2" else "wide"}


def draw_paths(rows: "pd.DataFrame", protocol: str) -> list[dict[str, str]]:
    """Draw Figure 3 for each data set; return a list of dicts with the name of the data set and the SVG."""
    present = set(tables.of_crossval(rows, protocol).dataset)
    # The data set that the paper's Figure 3 shows comes first, or a similar one if it was not run.
    favourite = next((d for d in (OPTIONAL, "optdigits", "synthetic") if d in present), "")
    order = sorted((d for d in DATASETS if d in present), key=lambda d: d != favourite)
    return [{"dataset": name, "svg": html.svg(figures.figure3(rows, name, protocol), name)} for name in order]


def columns_of(lines: Sequence[Line]) -> list[str]:
    """The names of the columns in which any of these rows of a table has a number."""
    return list(dict.fromkeys(name for line in lines for name in line.entries))


def is_printed(lines: Sequence[Line], column: str) -> bool:
    """Whether the paper prints a number in this column for any of these rows of a table."""
    found = (line.parameter if column == "parameter" else line.entries.get(column) for line in lines)
    return any(entry is not None and entry.printed is not None for entry in found)


def is_highest(lines: Sequence[Line], line: Line, column: str) -> bool:
    """Whether a row's number in `column`, as rounded on the page, is the highest one of its data set."""
    highest = max(other.entries[column].value for other in lines if other.dataset == line.dataset)
    return short(line.entries[column].value) == short(highest)


def short(value: float) -> str:
    """Format a number: four significant digits, three if below 1, and as 1.23e4 if very small or large."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def settings_rows(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values of the settings of a run, of the computers it ran on, and the version of kmargin."""
    environments = manifest["environments"]
    rows = [(name, json.dumps(value)) for name, value in manifest["settings"].items()]
    for number, environment in enumerate(environments, 1):
        label = "computer" if len(environments) == 1 else f"computer {number}"
        rows.append((label, ", ".join(f"{name} {value}" for name, value in environment.items())))
    return [*rows, ("kmargin", manifest["kmargin"])]
