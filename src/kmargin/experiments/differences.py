"""Why numbers differ from the printed ones, where they do."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
REASONS: tuple[Reason, ...] = ()


def reasons(by_part: Mapping[str, Sequence[Line]]) -> list[tuple[list[str], str]]:
    """What differs beyond noise, gathered under the reason known for it."""
    by_reason: dict[str, list[str]] = {}
    for part, lines in by_part.items():
        for line in lines:
            by_text: dict[str, list[str]] = {}
            for column in line.differing():
                entry = line.entries[column]
                known = (r.text for r in REASONS if r.covers(line.dataset, line.solver, column))
                number = f"{column} {entry.value:.4g} against {entry.printed:.4g}"
                by_text.setdefault(next(known, UNKNOWN), []).append(number)
            for text, numbers in by_text.items():
                where = f"{LABELS[part]}, {line.dataset}, {NAMES[line.solver]}"
                by_reason.setdefault(text, []).append(f"{where}: {', '.join(numbers)}")
    return [(numbers, text) for text, numbers in by_reason.items()]
