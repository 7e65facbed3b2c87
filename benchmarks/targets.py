"""What the benchmarks have to reach: `targets.csv` has a row for each number that a case reports."""

import csv
import operator
from pathlib import Path
from typing import NamedTuple

RELATIONS = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
    "less than": operator.lt,
}


class Target(NamedTuple):
    """A bound on a number that a case reports. It holds if it holds for every part of the claim."""

    case: str
    claim: str  # a key of the case's `reached`
    text: str
    target: str  # such as "at least 40"; empty: the number is reported and not judged

    def holds(self, value: float) -> bool:
        relation, _, bound = self.target.rpartition(" ")
        return RELATIONS[relation](value, float(bound))


with Path(__file__).with_suffix(".csv").open(newline="", encoding="utf-8") as file:
    TARGETS = [Target(**row) for row in csv.DictReader(file)]
