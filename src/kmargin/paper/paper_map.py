"""Where each algorithm, equation, table and figure of the paper is in the code: `paper_map.csv`."""

import csv
from pathlib import Path
from typing import NamedTuple


class Item(NamedTuple):
    """An equation, algorithm, table, figure or section of the paper."""

    name: str  # as the paper numbers it; the section, where it has no number
    what: str
    functions: tuple[str, ...]  # below `kmargin`
    section: str  # of the report, where it is used or shown
    note: str = ""  # where the code departs from what the paper prints


def read_map() -> tuple[Item, ...]:
    """The rows of `paper_map.csv`, in the order of the paper."""
    with Path(__file__).with_name("paper_map.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(Item(**row | {"functions": tuple(row["functions"].split())}) for row in rows)


PAPER_MAP = read_map()


def heading(part: str) -> str:
    """The name of a part of the page, such as "Table 2", as the paper has it."""
    if part == "descent":
        return "How MM converges"
    kind, number = (part[:6], part[6:]) if part.startswith("figure") else (part[:5], part[5:])
    return f"{kind.title()} {number}"
