"""Text and HTML representations of fitted results, and links from estimators to their documentation."""

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

WIDTH = 88  # lines of text are wrapped so that they have at most this many characters
MOST_ROWS = 14  # of a table with more rows only the first and last ones are shown
MOST_ITEMS = 8  # of a list with more items only the first ones are shown, and how many more there are

CELL = "text-align:left;padding:.15em .9em .15em 0"  # the CSS of a table cell


class Facts(NamedTuple):
    """A summary of a result: a title, named facts, and a table."""

    title: str
    facts: Sequence[tuple[str, str]] = ()  # pairs of a name and a value
    header: Sequence[str] = ()  # the names of the columns of the table
    rows: Sequence[Sequence[str]] = ()


class Summarized:
    """Base class of results: `repr` is one line, `str` and the HTML for notebooks are the whole summary."""

    def _facts(self) -> Facts:
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(type(self).__name__, Facts(self._facts().title))

    def __str__(self) -> str:
        return as_text(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return as_html(type(self).__name__, self._facts())


def as_text(kind: str, summary: Facts) -> str:
    """Format a summary as text: "<kind: title>", a line for each fact, and a table with aligned columns."""
    width = max((len(name) for name, _ in summary.facts), default=0)
    lines = [f"<{kind}: {summary.title}>"]
    for name, value in summary.facts:
        first, *rest = wrap(value, WIDTH - width - 4) or [""]
        lines += [f"  {name:<{width}}  {first}", *(" " * (width + 4) + line for line in rest)]
    if summary.rows:
        table = [list(summary.header), *shorten(summary.rows)]
        widths = [max(len(row[at]) for row in table) for at in range(len(summary.header))]
        for row in table:
            cells = [cell.rjust(wide) for cell, wide in zip(row, widths, strict=True)]
            cells[-1] = row[-1]  # the last column holds words, which are aligned left
            lines.append("  " + "  ".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def as_html(kind: str, summary: Facts) -> str:
    """Format a summary as HTML: title, facts and table, without colours, so that it suits any notebook."""
    top = f"{CELL};vertical-align:top"
    facts = "".join(
        f'<tr><th style="{top}">{escape(name)}</th><td style="{CELL}">{escape(value)}</td></tr>'
        for name, value in summary.facts
    )
    html = f"<div><p><b>{escape(kind)}</b> {escape(summary.title)}</p>"
    html += f"<table>{facts}</table>" if facts else ""
    if summary.rows:
        head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in summary.header)
        body = "".join(
            "<tr>" + "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
            for row in shorten(summary.rows)
        )
        html += f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return html + "</div>"


def shorten(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return all rows, or, if there are more than MOST_ROWS, the first and last ones with "..." between."""
    if len(rows) <= MOST_ROWS:
        return [list(row) for row in rows]
    half = (MOST_ROWS - 1) // 2
    between = ["..."] * len(rows[0])
    return [*map(list, rows[:half]), between, *map(list, rows[-half:])]


def some(values: Any, form: str = "{}") -> str:
    """List values, formatted by `form`, for a message: the first MOST_ITEMS, and how many more there are."""
    values = list(np.asarray(values).tolist()) if not isinstance(values, list | tuple) else list(values)
    shown = ", ".join(form.format(value) for value in values[:MOST_ITEMS])
    more = len(values) - MOST_ITEMS
    return shown + (f" and {more:,} more" if more > 0 else "") if values else "none"


DOCUMENTATION = "https://kmargin.github.io/kmargin/"
PAGE = DOCUMENTATION + "api/kmargin.{name}.html"  # the address of the page about a public class or function


class Documented:
    """Base class that links the HTML diagram that scikit-learn draws of an estimator to its documentation."""

    _doc_link_module = "kmargin"
    _doc_link_template = PAGE

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}
