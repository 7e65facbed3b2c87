"""Sections of the report about the paper itself: its data sets, and where to find everything in it."""

from collections.abc import Iterator

from kmargin import html
from kmargin.datasets import TABLE_1
from kmargin.experiments.paper_map import PAPER_MAP
from kmargin.experiments.settings import DATASETS
from kmargin.experiments.verdict import WHY_ABSENT


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
