"""Pages that stand alone: one HTML file, styles and figures inside, no request to anywhere."""

import io
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kmargin.files import replace_file

STYLE = """
:root { color-scheme: light; --ink: #1f2933; --soft: #616e7c; --line: #d9e2ec; --shade: #f5f7fa;
  --accent: #0b6e99; --good: #1b7f4d; --bad: #b3541e; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 68rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
a { color: var(--accent); }
code { background: var(--shade); border-radius: 3px; padding: .05em .3em; font-size: .92em;
  overflow-wrap: anywhere; }
nav a { display: inline-block; margin: 0 .9rem .3rem 0; }
.lead { font-size: 1.08rem; }
.soft { color: var(--soft); }
.aside { color: var(--soft); font-weight: 400; display: inline-block; min-width: 3.1em; margin-left: .3em;
  text-align: left; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .7rem;
  margin: 1rem 0; }
.card { background: var(--shade); border-radius: 8px; padding: .7rem .9rem; }
.card b { display: block; font-size: 1.45rem; line-height: 1.25; }
.scroll { overflow-x: auto; margin: .7rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; color: var(--soft); padding-bottom: .35rem; }
th, td { padding: .22rem .45rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 2px solid var(--line); background: #fff; }
th:first-child, td:first-child, .text { text-align: left; }
tbody tr:hover { background: var(--shade); }
td.good { color: var(--good); font-weight: 600; }
td.bad { color: var(--bad); font-weight: 600; }
td.strong { font-weight: 700; }
tr.marked td { background: #eef6fa; }
tr.first td { border-top: 2px solid var(--line); }
.name { white-space: normal; text-align: left; min-width: 7rem; max-width: 22rem; overflow-wrap: break-word; }
.bars { min-width: 8rem; text-align: left; white-space: normal; }
.bars span { display: block; height: .85rem; border-radius: 2px; background: var(--accent); }
.bars .minus { background: var(--bad); }
figure { margin: 1rem 0 1.6rem; }
figure svg { width: 100%; height: auto; }
.beside { display: flex; flex-wrap: wrap; gap: 0 2.5rem; } .beside figure { flex: 0 1 24rem; }
.narrow svg { max-width: 40rem; } .small svg { max-width: 21rem; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--accent); }
@media (max-width: 40rem) { body { font-size: 15px; } h1 { font-size: 1.4rem; }
  th, td { padding: .2rem .4rem; } .bars { min-width: 4rem; } .name { min-width: 5rem; }
  .cards { grid-template-columns: 1fr 1fr; } .wide { overflow-x: auto; } .wide svg { width: 46rem; } }
@media print { details > * { display: block; } }
"""


class Cell:
    """A table cell with a class to style it, a softer second text, and a longer word on hover."""

    def __init__(self, text: Any, kind: str = "", hint: str = "", aside: str = "") -> None:
        self.text = str(text)
        self.kind = kind
        self.hint = hint
        self.aside = aside

    def __str__(self) -> str:
        kind = f' class="{escape(self.kind)}"' if self.kind else ""
        hint = f' title="{escape(self.hint)}"' if self.hint else ""
        aside = f' <span class="aside">{escape(self.aside)}</span>' if self.aside else ""
        return f"<td{kind}{hint}>{escape(self.text)}{aside}</td>"


class Bar(Cell):
    """A bar in place of a number: `share` of the cell from the left, or of its half from the middle."""

    def __init__(self, share: float, hint: str = "", from_middle: bool = False) -> None:
        super().__init__("", "bars", hint)
        length = min(abs(share), 1.0) * (50 if from_middle else 100)
        start = (50 if share >= 0 else 50 - length) if from_middle else 0
        sign = ' class="minus"' if share < 0 else ""
        self.bar = f'<span{sign} style="margin-left:{start:.1f}%;width:{length:.1f}%"></span>'

    def __str__(self) -> str:
        return f'<td class="bars" title="{escape(self.hint)}">{self.bar}</td>'


class Shade(Cell):
    """A number on a background as strong as its share of the largest, in one colour or the other."""

    def __init__(self, text: Any, share: float, is_good: bool = True) -> None:
        super().__init__(text)
        colour = "11 110 153" if is_good else "179 84 30"
        self.style = f"background:rgb({colour} / {0.55 * min(abs(share), 1.0):.2f})"

    def __str__(self) -> str:
        return f'<td style="{self.style}">{escape(self.text)}</td>'


class Row:
    """A table row with a class: "marked" is shaded, "first" opens a group."""

    def __init__(self, cells: Iterable[Any], kind: str = "") -> None:
        self.cells = list(cells)
        self.kind = kind

    def __str__(self) -> str:
        cells = "".join(str(cell if isinstance(cell, Cell) else Cell(cell)) for cell in self.cells)
        kind = f' class="{escape(self.kind)}"' if self.kind else ""
        return f"<tr{kind}>{cells}</tr>"


def table(
    columns: Sequence[Any], rows: Iterable[Iterable[Any] | Row], caption: str = "", id: str = ""
) -> str:
    """A table in a box that scrolls sideways by itself, so that the page never does.

    A column of text has a Cell for its name, of the kind of its cells.
    """
    cells = [column if isinstance(column, Cell) else Cell(column) for column in columns]
    head = "".join(
        f'<th class="{escape(cell.kind)}">{escape(cell.text)}</th>'
        if cell.kind
        else f"<th>{escape(cell.text)}</th>"
        for cell in cells
    )
    body = "\n".join(str(row if isinstance(row, Row) else Row(row)) for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    name = f' id="{escape(id)}"' if id else ""
    return (
        f'<div class="scroll"><table{name}>{title}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def svg(figure: Any, name: str) -> str:
    """A matplotlib figure as SVG for a page: text stays text, the same figure gives the same bytes.

    The name keeps the marks of several figures on one page apart.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # whoever shows the page has the letters, or not
        figure.savefig(buffer, format="svg", dpi=160, bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    before, _, rest = text[text.index("<svg") :].partition("<metadata>")
    return before + rest.partition("</metadata>")[2]


def figure(
    image: str, caption: str, id: str = "", wide: bool = False, narrow: bool = False, small: bool = False
) -> str:
    """An SVG with a caption that says what to see.

    A wide one scrolls on a narrow screen; a narrow one does not fill a wide screen, and a small one a third.
    """
    name = f' id="{escape(id)}"' if id else ""
    box = "wide" if wide else "narrow" if narrow else "small" if small else ""
    return (
        f'<figure{name}><div class="{box}">{image}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )


def beside(*figures: str) -> str:
    """Small figures side by side, as far as there is room."""
    return '<div class="beside">' + "".join(figures) + "</div>"


def card(value: Any, label: str) -> str:
    """A number to see at once."""
    return f'<div class="card"><b>{escape(str(value))}</b>{escape(label)}</div>'


def cards(*pairs: tuple[Any, str]) -> str:
    return '<div class="cards">' + "".join(card(value, label) for value, label in pairs) + "</div>"


def paragraph(text: str, kind: str = "") -> str:
    """Text; what stands `between backticks` becomes code."""
    pieces = escape(text).split("`")
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return f'<p class="{kind}">{marked}</p>' if kind else f"<p>{marked}</p>"


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
