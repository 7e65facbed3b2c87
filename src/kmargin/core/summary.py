"""Results summarised in a few lines of text or HTML, with links to the documentation."""

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

WIDTH = 88  # characters of a line
MOST_ROWS = 14  # of a table; of a longer one the first and the last
MOST_ITEMS = 8  # of a list

CELL = "text-align:left;padding:.15em .9em .15em 0"


class Facts(NamedTuple):
    """A summary of a result: a title, named facts, and a table."""

    title: str
    facts: Sequence[tuple[str, str]] = ()  # names and values
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Told:
    """Base class of results: a line in `repr`, all facts in `str`, a table in a notebook."""

    def _facts(self) -> Facts:
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(type(self).__name__, Facts(self._facts().title))

    def __str__(self) -> str:
        return as_text(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return as_html(type(self).__name__, self._facts())


def as_text(kind: str, told: Facts) -> str:
    """A title in angle brackets, a line for each fact, and the table with its columns aligned."""
    width = max((len(name) for name, _ in told.facts), default=0)
    lines = [f"<{kind}: {told.title}>"]
    for name, value in told.facts:
        first, *rest = wrap(value, WIDTH - width - 4) or [""]
        lines += [f"  {name:<{width}}  {first}", *(" " * (width + 4) + line for line in rest)]
    if told.rows:
        table = [list(told.header), *shorten(told.rows)]
        widths = [max(len(row[at]) for row in table) for at in range(len(told.header))]
        for row in table:
            cells = [cell.rjust(wide) for cell, wide in zip(row, widths, strict=True)]
            cells[-1] = row[-1]  # words
            lines.append("  " + "  ".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def as_html(kind: str, told: Facts) -> str:
    """The same as a table that takes the colours of the page it is on."""
    top = f"{CELL};vertical-align:top"
    facts = "".join(
        f'<tr><th style="{top}">{escape(name)}</th><td style="{CELL}">{escape(value)}</td></tr>'
        for name, value in told.facts
    )
    html = f"<div><p><b>{escape(kind)}</b> {escape(told.title)}</p>"
    html += f"<table>{facts}</table>" if facts else ""
    if told.rows:
        head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in told.header)
        body = "".join(
            "<tr>" + "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
            for row in shorten(told.rows)
        )
        html += f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return html + "</div>"


def shorten(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """All rows, or the first and the last of many."""
    if len(rows) <= MOST_ROWS:
        return [list(row) for row in rows]
    half = (MOST_ROWS - 1) // 2
    between = ["..."] * len(rows[0])
    return [*map(list, rows[:half]), between, *map(list, rows[-half:])]


def some(values: Any, form: str = "{}") -> str:
    """A list of values, or the first of many and how many more there are."""
    values = list(np.asarray(values).tolist()) if not isinstance(values, list | tuple) else list(values)
    shown = ", ".join(form.format(value) for value in values[:MOST_ITEMS])
    more = len(values) - MOST_ITEMS
    return shown + (f" and {more:,} more" if more > 0 else "") if values else "none"


DOCUMENTATION = "https://kmargin.github.io/kmargin/"
PAGE = DOCUMENTATION + "api/kmargin.{name}.html"  # of a public name


class Documented:
    """Gives scikit-learn's diagram of an estimator the link to its documentation."""

    _doc_link_module = "kmargin"
    _doc_link_template = PAGE

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}
