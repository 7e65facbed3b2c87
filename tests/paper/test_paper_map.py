"""Everything numbered in the paper has a function that exists and a section of the report.

python tests/paper/test_paper_map.py   # rewrites the table of docs/idea/paper_map.md
"""

import re
from pathlib import Path
from pydoc import locate

from kmargin.paper.report import PAPER_MAP, heading

PAGE = Path(__file__).parent.parent.parent / "docs" / "idea" / "paper_map.md"
REPORT = "../../results/paper/report.html"
TABLE = re.compile(r"(?m)^\|(?s:.*)\|$")


def table():
    """The map as a table in Markdown, with links to the page of the full run."""
    lines = ["| in the paper | what it is | function | results |", "|---|---|---|---|"]
    for item in PAPER_MAP:
        what = f"{item.what}. {item.note}" if item.note else item.what
        functions = ", ".join(f"`kmargin.{name}`" for name in item.functions)
        results = f"[{heading(item.section)}]({REPORT}#{item.section})"
        lines.append(f"| {item.name} | {what} | {functions} | {results} |")
    return "\n".join(lines)


def test_every_function_of_the_map_is_there():
    for item in PAPER_MAP:
        assert item.functions
        assert all(callable(locate(f"kmargin.{name}")) for name in item.functions), item


def test_every_number_of_the_paper_is_on_the_map():
    numbered = {item.name for item in PAPER_MAP if not item.name.startswith("Section")}
    expected = {f"Equation {n}" for n in range(1, 8)} | {f"Algorithm {n}" for n in (1, 2, 3)}
    expected |= {f"Table {n}" for n in (1, 2, 3, 4)} | {f"Figure {n}" for n in (1, 2, 3, "S1", "S2")}
    assert numbered == expected


def test_the_table_on_the_page_is_current():
    (found,) = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert found == table(), "rewrite it with: python tests/paper/test_paper_map.py"


def test_the_links_of_the_page_lead_to_sections_of_the_committed_report():
    report = (PAGE.parent / REPORT).read_text(encoding="utf-8")
    for section in re.findall(r"report\.html#(\w+)", PAGE.read_text(encoding="utf-8")):
        assert f'id="{section}"' in report


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
