"""What is concluded from the experiments, and where each part of the paper is in the code."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from kmargin.datasets import TABLE_1
from kmargin.paper.protocol import DATASETS, Settings
from kmargin.paper.tables import NAMES, Line
from kmargin.report import html


class Item(NamedTuple):
    """Something in the paper."""

    name: str  # as the paper numbers it; the section, where it has no number
    what: str
    functions: tuple[str, ...]  # below `kmargin`
    section: str  # of the report, where it is used or shown
    note: str = ""  # where the code departs from what the paper prints


PAPER_MAP = (
    Item("Equation 1", "the squared hinge loss", ("core.squared_hinge.mean_loss",), "table3"),
    Item(
        "Equation 2",
        "its quadratic majorisation, and the shifted responses z",
        ("core.squared_hinge.mean_majorizer", "core.squared_hinge.shifted_response"),
        "table2",
    ),
    Item(
        "Equation 3",
        "the penalised objective f",
        ("solvers.proximal.penalised.PenalisedProblem.objective",),
        "figure1",
    ),
    Item(
        "Equation 4",
        "the surrogate g with its weights a and b",
        (
            "solvers.proximal.penalised.PenalisedProblem.surrogate",
            "solvers.proximal.penalised.PenalisedProblem.penalty_weight",
        ),
        "figure1",
        "In the inequality before it, dist(u, S) is meant squared.",
    ),
    Item(
        "Equation 5",
        "the gradient, of surrogate and objective alike",
        ("solvers.proximal.penalised.PenalisedProblem.gradient",),
        "figure1",
    ),
    Item(
        "Equation 6", "the start, by univariate regressions", ("solvers.solver.univariate_start",), "figure1"
    ),
    Item(
        "Equation 7",
        "the minimum of the surrogate, by one SVD",
        ("solvers.proximal.reference.MMStep",),
        "table3",
    ),
    Item("Section 3", "the projection onto at most k features", ("core.sparsity.project",), "table2"),
    Item(
        "Section 3",
        "kernel machines that keep at most k training points",
        ("KernelSparseSVC", "fitting.spec.KernelBlueprint"),
        "figureS2",
    ),
    Item(
        "Algorithm 1",
        "MM",
        ("MM", "solvers.proximal.reference.MMStep", "solvers.proximal.compiled.descend_mm"),
        "table3",
    ),
    Item(
        "Algorithm 2",
        "SD",
        ("SD", "solvers.proximal.reference.sd_step", "solvers.proximal.compiled.descend_sd"),
        "table3",
        "The appendix prints the second-order term with the wrong sign; the resulting step size is right.",
    ),
    Item(
        "Algorithm 3",
        "the annealing around them, and when it stops",
        (
            "solvers.proximal.reference.anneal",
            "solvers.proximal.reference.descend",
            "core.sparsity.normalizer",
        ),
        "figure3",
        "Algorithm 3 prints n-k+1 as the normaliser of the squared distance; the code uses p-k+1, as "
        "equations 3 and 4 do, where p is the number of penalised parameters (features, or training points "
        "with a kernel). Likewise the sparsity printed as 1-k/n is 1-k/p.",
    ),
    Item(
        "Section 4",
        "Nesterov's acceleration, and its restarts",
        ("solvers.proximal.reference.Momentum",),
        "table3",
    ),
    Item(
        "Section 5.3",
        "false discovery and omission rates",
        ("paper.recovery.discovery_rates",),
        "figure2",
    ),
    Item("Section 5.4", "paths from dense to sparse with warm starts", ("sparse_svm_path",), "figure3"),
    Item("Table 1", "the data sets", ("datasets.load", "paper.protocol.read"), "table1"),
    Item("Table 2", "cross-validation on synthetic", ("paper.tables.table2",), "table2"),
    Item("Table 3", "what cross-validation selects", ("paper.tables.table3",), "table3"),
    Item("Table 4", "against LIBLINEAR and LIBSVM", ("paper.tables.table4",), "table4"),
    Item(
        "Figure 1",
        "random starts",
        ("paper.figures.figure1", "paper.sensitivity.walk"),
        "figure1",
    ),
    Item(
        "Figure 2",
        "recovery of 50 causal features",
        ("paper.figures.figure2", "paper.recovery.walk", "datasets.make_sparse_hyperplane"),
        "figure2",
    ),
    Item("Figure 3", "along the path", ("paper.figures.figure3", "paper.crossval.walk"), "figure3"),
    Item("Figure S1", "synthetic", ("datasets.make_synthetic", "paper.figures.figure_s1"), "figureS1"),
    Item("Figure S2", "spiral", ("datasets.make_spiral", "paper.figures.figure_s2"), "figureS2"),
)


OPTIONAL = "TCGA-PANCAN-HiSeq"  # run only where its file is in the cache
WHY_ABSENT = {
    OPTIONAL: "its archive (72 MB, at UCI) was not available, and is downloaded only with "
    "`--datasets TCGA-PANCAN-HiSeq`"
}


RIVAL = (
    "Its rival on each data set is whichever of MM and SD has the higher validation accuracy, or the faster "
    "of the two if they tie."
)


@dataclass(frozen=True)
class Scope:
    """How much of the paper a run has done, and so what may be concluded from it."""

    settings: Settings
    present: tuple[str, ...]  # data sets

    @property
    def is_quick(self) -> bool:
        """Whether there are fewer folds, starts or draws than in the paper."""
        return {**asdict(self.settings), "seed": 0} != {**asdict(Settings()), "seed": 0}

    @property
    def absent(self) -> list[str]:
        return [name for name in DATASETS if name not in self.present]

    @property
    def is_whole(self) -> bool:
        """Whether it can be said if the paper holds up."""
        return not self.is_quick and set(self.absent) <= {OPTIONAL}

    def absent_text(self) -> str:
        """Which data sets are missing, and why."""
        if not self.absent:
            return ""
        if self.is_whole:
            return f"{OPTIONAL}, the eighth data set of the paper, is absent: {WHY_ABSENT[OPTIONAL]}."
        return f"Not run: {', '.join(self.absent)}."

    def quick_text(self) -> str:
        """What a quick run is."""
        ran, paper = self.settings, Settings()
        return (
            f"A quick run: {len(self.present)} of the paper's {len(DATASETS)} data sets, "
            f"{ran.n_folds_run} of {paper.n_folds} folds, {ran.n_starts} of {paper.n_starts} starts, "
            f"{ran.n_draws} of {paper.n_draws} draws. It shows that everything runs and what the results "
            "look like; it is too small to tell whether the paper's results hold up."
        )


@dataclass(frozen=True)
class Verdict:
    """The conclusions of a run, as sentences for the page and for the terminal."""

    scope: Scope
    printed: list[Line]
    duels: list[tuple[Line, Line]]  # exchange and the better of MM and SD

    @property
    def n_met(self) -> int:
        return sum(not line.entries["test"].differs for line in self.printed)

    @property
    def n_won(self) -> int:
        """Data sets where exchange tests at least as well."""
        return sum(
            theirs.entries["test"].value <= ours.entries["test"].value + 0.05 for ours, theirs in self.duels
        )

    @property
    def speed(self) -> float:
        return float(
            np.median([t.entries["seconds"].value / o.entries["seconds"].value for o, t in self.duels])
        )

    def lead(self) -> str:
        """The answer, as far as this run may give one."""
        n_printed = len(self.printed)
        chosen = sum(not line.parameter.differs for line in self.printed)
        if self.scope.is_quick:
            return self.scope.quick_text()
        if not n_printed:
            return ""
        said = (
            f"of its {n_printed} printed test accuracies of MM and SD on these data, {self.n_met} agree with "
            f"ours within noise, and {chosen} of the sparsities it selects are ours or tie with ours."
        )
        if self.scope.is_whole:
            return f"Do the paper's results hold up? {_mostly(self.n_met, n_printed)}: {said}"
        return said[0].upper() + said[1:].replace("its", "the paper's", 1)

    def can_tell(self) -> str:
        """Of a quick run: what it found, and where the answer is."""
        if not self.scope.is_quick or not self.printed:
            return ""
        return (
            f"Of the {len(self.printed)} test accuracies that the paper prints for MM and SD on "
            f"{_listed(self.scope.present)}, {self.n_met} agree with ours within the noise of so few folds; "
            "the folds left out may explain the others. A full answer needs all data sets and all folds, "
            "about an hour: `kmargin reproduce all`. The report of such a run is in the repository, "
            "`results/paper/report.html`."
        )

    def duel(self) -> str:
        """Exchange against the paper's algorithms."""
        if not self.duels:
            return ""
        sparser = sum(o.parameter.value >= t.parameter.value for o, t in self.duels)
        return (
            f"How does the exchange compare? {RIVAL} Against it, the exchange predicts the test set at least "
            f"as well on {self.n_won} of {len(self.duels)} data sets, selects a classifier at least as "
            f"sparse on {sparser}, and computes the whole path {_times_as_fast(self.speed)} (median)."
        )

    def sentences(self) -> list[str]:
        absent = "" if self.scope.is_quick else self.scope.absent_text()
        return [text for text in (self.lead(), self.can_tell(), absent, self.duel()) if text]


def judge(lines: Sequence[Line], settings: Settings) -> Verdict:
    """From the lines of Table 3."""
    printed = [line for line in lines if line.entries["test"].printed is not None]
    present = {line.dataset for line in lines}
    scope = Scope(settings, tuple(name for name in DATASETS if name in present))
    return Verdict(scope, printed, _duels(lines))


def verdict(lines: Sequence[Line], settings: Settings) -> Iterator[str]:
    """The answers, and the table behind the second."""
    said = judge(lines, settings)
    if not lines:
        return
    yield (
        '<h2 id="minute">What a quick run can tell</h2>'
        if said.scope.is_quick
        else ('<h2 id="minute">Summary</h2>')
    )
    first, *others = said.sentences() or [""]
    yield html.paragraph(first, "lead")
    yield from (html.paragraph(text) for text in others)
    if said.duels:
        met = [(f"{said.n_met} of {len(said.printed)}", "of the paper's test accuracies agree within noise")]
        yield html.cards(
            *(met if said.printed and not said.scope.is_quick else []),
            (
                f"{said.n_won} of {len(said.duels)}",
                "data sets where the exchange predicts at least as well as the better of MM and SD",
            ),
            (f"{said.speed:.2g} ×", "the speed of the better of MM and SD along the path (median)"),
        )
        yield _duel_table(said.duels)


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _times_as_fast(speed: float) -> str:
    return f"{speed:.2g} times as fast" if speed >= 1 else f"{1 / speed:.2g} times more slowly"


def _mostly(met: int, of: int) -> str:
    share = met / of
    return "Yes" if share == 1 else "Mostly" if share >= 0.7 else "In part" if share >= 0.4 else "No"


def _duels(lines: Sequence[Line]) -> list[tuple[Line, Line]]:
    """For each data set: the exchange, and the better of MM and SD by validation accuracy.

    A tie goes to the faster of the two, so that the factor of speed is not larger for the choice of rival.
    """
    found = []
    for dataset in DATASETS:
        mine = {line.solver: line for line in lines if line.dataset == dataset}
        rivals = [mine[name] for name in ("mm", "sd") if name in mine]
        if "exchange" in mine and rivals:
            found.append((mine["exchange"], min(rivals, key=_rank)))
    return found


def _rank(line: Line) -> tuple[float, float]:
    """Accuracies are means of shares of rows: equal ones may differ in their last digits."""
    return -round(line.entries["validation"].value, 6), line.entries["seconds"].value


def _duel_table(duels: Sequence[tuple[Line, Line]]) -> str:
    rows = []
    for ours, theirs in duels:
        gain = ours.entries["test"].value - theirs.entries["test"].value
        noise = max(ours.entries["test"].noise, theirs.entries["test"].noise)
        kind = "good" if gain > noise else "bad" if gain < -noise else ""
        ratio = theirs.entries["seconds"].value / ours.entries["seconds"].value
        rows.append(
            [
                ours.dataset,
                NAMES[theirs.solver],
                f"{theirs.parameter.value:g}",
                f"{theirs.entries['test'].value:.2f}",
                f"{ours.parameter.value:g}",
                f"{ours.entries['test'].value:.2f}",
                html.Cell(f"{gain:+.2f}", kind),
                html.Cell(f"{ratio:.3g} ×", "good" if ratio > 1 else "bad"),
            ]
        )
    columns = (
        "data set",
        "better of MM, SD",
        "s (%)",
        "test (%)",
        "exchange: s (%)",
        "test (%)",
        "gain",
        "speed",
    )
    caption = (
        "The exchange against the better of the paper's algorithms. Blue marks gains and red losses beyond "
        "noise; speed is the rival's time along the path divided by that of the exchange."
    )
    return html.paragraph(caption, "soft") + html.table(columns, rows, id="duels", kind="wide full")


def heading(part: str) -> str:
    """As the paper calls it; what is not in the paper has a heading of its own."""
    if part == "descent":
        return "How MM converges"
    kind, number = (part[:6], part[6:]) if part.startswith("figure") else (part[:5], part[5:])
    return f"{kind.title()} {number}"


def data_section(run: set[str]) -> Iterator[str]:
    """Table 1, and what was run of it."""
    yield '<h2 id="table1">Table 1</h2>'
    yield html.paragraph("The data sets of the paper, and which of them this run used.")
    rows = []
    for name in DATASETS:
        entry, why = TABLE_1[name], "" if name in run else WHY_ABSENT.get(name, "not in this run")
        numbers = (entry.n_samples, entry.n_features, entry.n_classes, entry.n_train, entry.n_test)
        said = html.Cell("run" if not why else why.replace("`", ""), "name long")
        rows.append([name, *(f"{number:,}" for number in numbers), html.Cell(entry.scaling, "name"), said])
    heads = ["data set", "rows", "features", "classes", "training", "test", *_names("scaling", "here")]
    yield html.table(heads, rows, id="datasets", kind="stack full")


def _names(*texts: str) -> list[html.Cell]:
    return [html.Cell(text, "name") for text in texts]


def map_section(sections: set[str]) -> Iterator[str]:
    """Each algorithm, equation, table and figure of the paper: the function, and the section of this page."""
    yield '<h2 id="paper">From the paper to the code</h2>'
    rows = []
    for item in PAPER_MAP:
        functions = html.Cell(", ".join(f"kmargin.{name}" for name in item.functions), "name long")
        is_here = item.section in sections
        link = html.Link(heading(item.section), f"#{item.section}") if is_here else html.Cell("not run")
        what = html.Cell(f"{item.what}. {item.note}" if item.note else item.what, "name long")
        rows.append([*_names(item.name), what, functions, link])
    heads = [*_names("in the paper", "what it is", "in the package"), "on this page"]
    yield html.table(heads, rows, id="map", kind="stack full")
