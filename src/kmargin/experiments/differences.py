"""Why numbers differ from the printed ones, where they do."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kmargin.experiments.settings import PEERS
from kmargin.experiments.tables import NAMES, Line

LABELS = {"table2": "Table 2", "table3": "Table 3", "table4": "Table 4"}
UNKNOWN = "No reason is known. The rows are there for anyone who wants to look."


class Reason(NamedTuple):
    """A cause, and the numbers it may account for; an empty set stands for any."""

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


# the first that covers a number is the one that is told
REASONS: tuple[Reason, ...] = (
    _reason(
        "letter-recognition TCGA-PANCAN-HiSeq",
        "mm sd l2r l1r",
        "train validation test sparsity iterations objective",
        "Scaling. The paper normalises features to [0, 1], and so do we. A published version of the "
        "authors' code divides by the range of each row instead. With rows scaled like that, L2R at the "
        "printed C gets 68.1, 67.6 and 66.2 % on the training, validation and test rows of letter-"
        "recognition, which are the printed numbers, and MM with all features 83.6, 81.9 and 80.6 %. "
        "Scaled by features, all machines predict a point or more better.",
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
        "The normaliser and early stopping. Below eight points per machine (sparsities from 99 %) the "
        "kernel matrix is nearly singular and our runs use up the 10,000 inner iterations at many "
        "values of rho. Nothing is selected there. The draw of the spirals is another one, too.",
    ),
    _reason(
        "spiral",
        "svc",
        "sparsity",
        "We count the training points that are no support vector of any pair of classes. How the paper "
        "counts is not said.",
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
        "A flat top. The validation accuracies around the selected value differ by a few rows, and the "
        "highest of them is taken, by the paper and by us.",
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
        "Another draw. The data are simulated; the paper's random numbers are not ours.",
    ),
)


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[list[str], str]]:
    """What differs beyond noise, gathered under the reason known for it."""
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
