"""Pages that stand alone: one HTML file, styles and figures inside, no request to anywhere."""

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kmargin.files import replace_file
from kmargin.html_cells import Bar as Bar
from kmargin.html_cells import Cell, Row
from kmargin.html_cells import Link as Link
from kmargin.html_cells import Mark as Mark
from kmargin.html_cells import Shade as Shade
from kmargin.page_style import STYLE
from kmargin.palette import INK, MEANINGS, SOFT

SWIPE = '<div class="swipe">Wider than the screen: swipe sideways →</div>'
FIRST_ROWS = 12  # of a table, the others are to be opened


def table(
    columns: Sequence[Any],
    rows: Iterable[Iterable[Any] | Row],
    caption: str = "",
    id: str = "",
    kind: str = "",
) -> str:
    """A table. On a narrow screen, one of the kind "stack" becomes cards, one for each row, and one of the
    kind "wrap" (a feature and its numbers) wraps its rows, of the kind "always" on any screen. Others have
    a box that scrolls sideways by itself, with shadows where there is more, so that the page never does; the
    kind "wide" says so.

    A column of text has a Cell for its name, of the kind of its cells.
    """
    cells = [column if isinstance(column, Cell) else Cell(column) for column in columns]
    falls_apart = bool({"stack", "wrap", "always"} & set(kind.split()))
    labels = [cell.text or "\u00a0" for cell in cells] if falls_apart else []
    role = "columnheader" if falls_apart else ""
    head = "".join(cell.written("th", role=role) for cell in cells)
    body = "\n".join((row if isinstance(row, Row) else Row(row)).written(labels) for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    attributes = {"id": id, "class": kind, "role": "table" if falls_apart else ""}
    shown = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    swipe = SWIPE if "wide" in kind.split() else ""
    return (
        f'{swipe}<div class="scroll"><table{shown}>{title}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def folded_table(
    columns: Sequence[Any], rows: Sequence[Any], more: str, id: str, kind: str = "", first: int = FIRST_ROWS
) -> str:
    """The first rows of a table; the others, named by `more`, where a reader may open them."""
    few = rows if len(rows) <= 1.5 * first else rows[:first]
    shown = table(columns, few, id=id, kind=kind)
    if len(few) == len(rows):
        return shown
    rest = table(columns, rows[len(few) :], id=f"{id}-more", kind=kind)
    return shown + details(f"{len(rows) - len(few)} {more}", rest)


FONT: Any = {
    **{"font.size": 9.5, "font.family": "sans-serif", "text.color": INK, "axes.labelcolor": INK},
    **{"axes.edgecolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT},
    **{"xtick.labelcolor": INK, "ytick.labelcolor": INK},
}


def svg(figure: Any, name: str, follows_theme: bool = True) -> str:
    """A matplotlib figure as SVG for a page: text stays text, the same figure gives the same bytes.

    The name keeps the marks of several figures on one page apart. Colours of `kmargin.palette` become those
    of the page, light or dark; a figure that has pictures in it cannot follow and stays on white.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # whoever shows the page has the letters, or not
        figure.savefig(
            buffer, format="svg", dpi=160, bbox_inches="tight", metadata={"Date": None}, transparent=True
        )
    text = buffer.getvalue()
    before, _, rest = text[text.index("<svg") :].partition("<metadata>")
    text = before + rest.partition("</metadata>")[2]
    if not follows_theme:
        return f'<div class="plate">{text}</div>'
    text = text.replace("#000000", "var(--ink)")  # what nobody gave a colour
    for meaning, shades in MEANINGS.items():
        text = re.sub(rf"(fill|stroke): {shades.light}", rf"\1: var(--{meaning})", text)
    return text


def figure(
    image: str, caption: str, id: str = "", wide: bool = False, narrow: bool = False, small: bool = False
) -> str:
    """An SVG with a caption that says what to see, which is also what is read out in its place.

    A wide one scrolls on a narrow screen, which is said there; a narrow one does not fill a wide screen, and
    a small one a third.
    """
    name = f' id="{escape(id)}"' if id else ""
    box = "wide" if wide else "narrow" if narrow else "small" if small else ""
    image = image.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    swipe = SWIPE if wide else ""
    return (
        f'<figure{name}>{swipe}<div class="{box}">{image}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def columns(*parts: str, kind: str = "") -> str:
    """Parts side by side, as far as there is room; together they fill the width."""
    name = f"columns {kind}".strip()
    return f'<div class="{name}">' + "".join(f"<div>{part}</div>" for part in parts if part) + "</div>"


def section_nav(links: Iterable[tuple[str, str]]) -> str:
    """Links to the parts of a page, by their ids."""
    shown = " ".join(f'<a href="#{escape(id)}">{escape(text)}</a>' for id, text in links)
    return f"<nav>{shown}</nav>"


def card(value: Any, label: str, kind: str = "") -> str:
    """A number to see at once."""
    return f'<div class="{f"card {kind}".strip()}"><b>{escape(str(value))}</b>{escape(label)}</div>'


def cards(*contents: tuple[Any, str] | tuple[Any, str, str]) -> str:
    """Numbers with their labels, and a kind where they have one."""
    return '<div class="cards">' + "".join(card(*content) for content in contents) + "</div>"


def paragraph(text: str, kind: str = "") -> str:
    """Text; what stands `between backticks` becomes code."""
    pieces = escape(text).split("`")
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return f'<p class="{kind}">{marked}</p>' if kind else f"<p>{marked}</p>"


def shortened(text: str, most: int = 36) -> str:
    """A name that fits a list of several: cut in its middle, since names differ at their ends."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 + 1 :]}"


def terms(*texts: str) -> str:
    """What words of a table mean, in as many columns as there is room for; empty texts are left out."""
    return '<div class="terms">' + "".join(paragraph(text) for text in texts if text) + "</div>"


def bullets(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def details(summary: str, body: str, open: bool = False) -> str:
    """A part that a reader may open."""
    return f"<details{' open' if open else ''}><summary>{escape(summary)}</summary>{body}</details>"


def page(title: str, body: Iterable[str]) -> str:
    content = "\n".join(body)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{content}
</body>
</html>
"""


def write(path: Path, title: str, body: Iterable[str]) -> Path:
    replace_file(path, page(title, body).encode())
    return path
