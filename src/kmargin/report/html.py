"""HTML pages that need nothing but themselves: style, tables, plots."""

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kmargin.displays.palette import INK, MEANINGS, SOFT
from kmargin.tables.files import replace_file


def colours(theme: str) -> str:
    """The colours of a theme, by meaning, for styles and figures."""
    return " ".join(f"--{name}: {getattr(shades, theme)};" for name, shades in MEANINGS.items())


def apart(table: str, columns: str) -> str:
    """A table whose rows are cards: the first cell on top, the others in columns with their labels."""
    return f"""
{table}, {table} tbody {{ display: block; width: 100%; max-width: 100%; }}
{table} thead {{ position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }}
{table} tr {{ display: grid; grid-template-columns: {columns}; grid-auto-flow: dense; gap: .3rem .8rem;
  padding: .6rem 0; border-bottom: 1px solid var(--line); }}
{table} td {{ display: block; border: 0; padding: 0; text-align: left; white-space: normal; min-width: 0;
  max-width: none; overflow-wrap: anywhere; }}
{table} td.shade {{ padding: .1rem .3rem; }} {table} td.empty {{ display: none; }}
{table} td:first-child {{ font-weight: 600; }}
{table} td:first-child, {table} td.long {{ grid-column: 1 / -1; }}
{table} td[data-label]::before {{ content: attr(data-label); display: block; color: var(--soft);
  font-size: .85rem; font-weight: 400; line-height: 1.2; }}
{table} td:first-child::before {{ display: none; }}
"""


THEMES = f"""
:root {{ color-scheme: light dark; {colours("light")} }}
@media (prefers-color-scheme: dark) {{ :root {{ {colours("dark")} }} }}
@media print {{ :root {{ color-scheme: light; {colours("light")} }} }}
"""

TEXT = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1.5rem 4rem; max-width: 75rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.4rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: break-word; }
a { color: inherit; text-underline-offset: .15em; }
code { background: var(--shade); border-radius: 3px; padding: .05em .3em; font-size: .92em;
  overflow-wrap: anywhere; }
nav { font-size: .92rem; color: var(--soft); } nav a { display: inline-block; margin: 0 1.1rem .3rem 0; }
.lead { font-size: 1.3rem; line-height: 1.4; margin: .2rem 0 1rem; max-width: 40rem;
  overflow-wrap: anywhere; }
.soft { color: var(--soft); } p.soft { font-size: .92rem; }
.aside { color: var(--soft); font-weight: 400; display: inline-block; min-width: 3.1em; margin-left: .3em;
  text-align: left; }
.note { background: var(--shade); border-left: 4px solid var(--soft); border-radius: 4px;
  padding: .5rem .9rem; margin: .7rem 0; max-width: none; }
.warning { border-left-color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .7rem;
  margin: 1rem 0; }
.card { background: var(--shade); border-radius: 8px; padding: .6rem .8rem; font-size: .9rem;
  line-height: 1.35; overflow-wrap: anywhere; }
.card b { display: block; font-size: 1.35rem; line-height: 1.3; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0 2.5rem; align-items: start; }
.columns > * { min-width: 0; } .columns h2 { border-top: 0; margin-top: 0; padding-top: 0; }
.terms { columns: 22rem 3; column-gap: 2.5rem; margin: .6rem 0; color: var(--soft); font-size: .88rem; }
.terms p { margin: 0 0 .4rem; break-inside: avoid; max-width: none; }
.answer { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); margin-top: 1rem; }
details { margin: .8rem 0; } summary { cursor: pointer; text-decoration: underline;
  text-decoration-color: var(--faint); text-underline-offset: .15em; }
"""

# a box that scrolls has a shadow on the side where there is more
TABLES = (
    """
.scroll { overflow-x: auto; margin: .7rem 0; background:
  linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to right, color-mix(in srgb, var(--ink) 30%, transparent), transparent)
    0 0 / .8rem 100% no-repeat scroll,
  linear-gradient(to left, color-mix(in srgb, var(--ink) 30%, transparent), transparent)
    100% 0 / .8rem 100% no-repeat scroll; }
.swipe { display: none; color: var(--soft); font-size: .85rem; margin: .5rem 0 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; color: var(--soft); padding-bottom: .35rem; }
th, td { padding: .24rem .5rem; text-align: right; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { white-space: normal; font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child, .text { text-align: left; }
td:first-child, th:first-child { padding-left: 0; }
td.good { color: var(--curve); font-weight: 600; }
td.bad { color: var(--bad); font-weight: 600; }
td.strong { font-weight: 700; }
tr.marked td { background: var(--shade); font-weight: 600; }
tr.first td { border-top: 2px solid var(--line); }
.name { white-space: normal; text-align: left; min-width: 4.5rem; max-width: 22rem;
  overflow-wrap: break-word; }
.anywhere { overflow-wrap: anywhere; }
.full { width: 100%; }
.two .aside { display: block; margin: 0; text-align: right; font-size: .85rem; }
.bars { text-align: left; white-space: nowrap; }
.track { display: inline-block; width: 6.5rem; height: .8rem; vertical-align: middle; margin-right: .5rem;
  background: var(--shade); position: relative; }
.track.middle::after { content: ""; position: absolute; left: 50%; top: -.15rem; bottom: -.15rem;
  border-left: 1px solid var(--soft); }
.bar { display: block; height: 100%; background: var(--soft); }
.bar.positive { background: var(--positive); } .bar.negative { background: var(--negative); }
.mark { display: inline-block; width: .65em; height: .65em; margin-right: .4em; border-radius: 50%; }
.mark.positive { background: var(--positive); }
.mark.negative { background: var(--negative); border-radius: 0; }
.shade { background: color-mix(in srgb, var(--tint) var(--share), transparent); }
.heat td { padding-left: .35rem; padding-right: .35rem; } .heat td:first-child { padding-left: 0; }
"""
    + apart(".always", "repeat(auto-fill, minmax(4rem, 1fr))")
    + ".always tr { gap: .3rem; }"
)

PLOTS = """
.strip { margin: .6rem 0 1rem; font-size: .85rem; }
.scale { position: relative; height: 1rem; background: var(--shade); border-radius: 3px; }
.scale span { position: absolute; top: -.25rem; bottom: -.25rem; }
.scale .interval { top: 0; bottom: 0; border-radius: 2px;
  background: color-mix(in srgb, var(--curve) 45%, transparent); }
.scale .at { border-left: 4px solid var(--curve); margin-left: -2px; }
.scale .guess { border-left: 3px dotted var(--soft); }
.ends { display: flex; justify-content: space-between; color: var(--soft); }
.card.reached { border-left: 4px solid var(--curve); } .card.guessed { border-left: 3px dotted var(--soft); }
.boxes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: 1.1rem 2.2rem; margin: 1.4rem 0 .9rem; }
.box h3 { font-size: .92rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.box .line { display: grid; grid-template-columns: minmax(3rem, 30%) 1fr; gap: .6rem; align-items: center;
  font-size: .85rem; }
.box .of { overflow-wrap: anywhere; line-height: 1.2; text-align: right; }
.box .span { position: relative; height: 1.15rem; }
.box .span i { position: absolute; display: block; }
.box .whisker { top: 50%; border-top: 1.5px solid var(--mark); }
.box .half { top: .15rem; bottom: .15rem; background: color-mix(in srgb, var(--mark) 30%, transparent);
  border: 1.5px solid var(--mark); border-radius: 2px; }
.box .median { top: .05rem; bottom: .05rem; border-left: 3px solid var(--mark); margin-left: -1.5px; }
.box .ends { border-top: 1px solid var(--line); }
figure { margin: .6rem 0 1.2rem; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; }
figure svg text { font-family: inherit !important; fill: var(--ink); }
figure .plate text { fill: #1f2933; }
figure .plate { background: #fff; border-radius: 6px; padding: .4rem; }
.narrow svg { max-width: 36rem; } .small svg { max-width: 26rem; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 46rem; margin-top: .3rem; }
"""

NARROW = (
    """
@media screen and (max-width: 56rem) { .answer { grid-template-columns: minmax(0, 1fr); } }
@media screen and (max-width: 44rem) {
body { font-size: 15px; padding: .8rem 1rem 3rem; } h1 { font-size: 1.35rem; } .lead { font-size: 1.15rem; }
.cards { grid-template-columns: 1fr 1fr; } .name { min-width: 3rem; } .bars .track { width: 5rem; }
div.wide { overflow-x: auto; } .wide svg { width: 46rem; } .swipe { display: block; }
.two .aside { text-align: left; }
"""
    + apart(".stack", "1fr 1fr")
    + apart(".wrap", "repeat(auto-fill, minmax(6.5rem, 1fr))")
    + """.wrap tr { gap: .3rem; }
.stack td.text:first-child::before { display: inline; content: attr(data-label) " "; font-size: inherit; } }
"""
)

PRINT = """
@media print {
html { font-size: 12.5px; } body { padding: 0; max-width: none; font-size: 1rem; }
nav, .swipe { display: none; }
h1, h2, h3, summary { break-after: avoid; } h2 { margin-top: 1.4rem; }
figure, tr, .card, .box, .strip { break-inside: avoid; }
.columns { grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 0 1.5rem; }
.small svg { max-width: 20rem; }
.answer, .cards { grid-template-columns: 1fr 1fr; } .terms { columns: 2; }
.boxes { grid-template-columns: repeat(3, 1fr); gap: .8rem 1.5rem; } .name { min-width: 3rem; }
.scroll, div.wide { overflow: visible; background: none; }
summary { list-style: none; text-decoration: none; font-weight: 600; }
summary::-webkit-details-marker { display: none; }
details > * { display: block; } details::details-content { content-visibility: visible; display: block; }
p { break-inside: avoid; } th, td { padding: .15rem .3rem; } .track { width: 4rem; }
}
"""

STYLE = THEMES + TEXT + TABLES + PLOTS + NARROW + PRINT


LONG_WORD = 20  # letters that a name may have without a place to break


class Cell:
    """A table cell with a class to style it, a softer second text, and a longer word on hover."""

    def __init__(self, text: Any, kind: str = "", hint: str = "", aside: str = "") -> None:
        self.text = str(text)
        self.kind = kind
        self.hint = hint
        self.aside = aside
        self.style = ""

    def content(self) -> str:
        aside = f' <span class="aside">{escape(self.aside)}</span>' if self.aside else ""
        return escape(self.text) + aside

    def written(self, tag: str = "td", label: str = "", role: str = "") -> str:
        """The cell as an element; the label is shown beside it where a table is taken apart."""
        kind = self.kind
        if "name" in kind and max(map(len, self.text.split()), default=0) > LONG_WORD:
            kind += " anywhere"
        attributes = {"class": kind, "title": self.hint, "style": self.style}
        attributes |= {"data-label": label, "role": role}
        shown = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
        return f"<{tag}{shown}>{self.content()}</{tag}>"

    def __str__(self) -> str:
        return self.written()


class Bar(Cell):
    """A number with a bar: `share` of its track from the left, or of a half of it from the middle.

    The colour is that of a meaning of `displays.palette`: positive, negative, or none for a plain share.
    """

    def __init__(self, text: Any, share: float, colour: str = "", from_middle: bool = False) -> None:
        super().__init__(text, "bars")
        length = min(abs(share), 1.0) * (50 if from_middle else 100)
        start = (50 if share >= 0 else 50 - length) if from_middle else 0
        track = "track middle" if from_middle else "track"
        self.bar = (
            f'<span class="{track}"><span class="bar {colour}" '
            f'style="margin-left:{start:.1f}%;width:{length:.1f}%"></span></span>'
        )

    def content(self) -> str:
        return self.bar + escape(self.text)


class Shade(Cell):
    """A number on a background as strong as its share of the largest, in the colour of a meaning."""

    def __init__(self, text: Any, share: float, colour: str = "curve") -> None:
        super().__init__(text, "shade")
        self.style = f"--tint:var(--{colour});--share:{50 * min(abs(share), 1.0):.0f}%"


class Mark(Cell):
    """A text with a mark in the colour of a meaning before it."""

    def __init__(self, text: Any, colour: str, kind: str = "") -> None:
        super().__init__(text, kind)
        self.colour = colour

    def content(self) -> str:
        return f'<span class="mark {self.colour}"></span>' + super().content()


class Link(Cell):
    """A text that leads to a part of the page."""

    def __init__(self, text: Any, address: str) -> None:
        super().__init__(text)
        self.address = address

    def content(self) -> str:
        return f'<a href="{escape(self.address)}">{super().content()}</a>'


class Row:
    """A table row with a class: "marked" is shaded, "first" opens a group."""

    def __init__(self, cells: Iterable[Any], kind: str = "") -> None:
        self.cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
        self.kind = kind

    def written(self, labels: Sequence[str] = ()) -> str:
        """With labels, the row can be taken apart and still says that it is one."""
        kind = f' class="{escape(self.kind)}"' if self.kind else ""
        role, cell_role = (' role="row"', "cell") if labels else ("", "")
        padded = labels or [""] * len(self.cells)
        cells = "".join(
            cell.written(label=label, role=cell_role) for cell, label in zip(self.cells, padded, strict=True)
        )
        return f"<tr{kind}{role}>{cells}</tr>"


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

    The name keeps the marks of several figures on one page apart. Colours of `displays.palette` become those
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
