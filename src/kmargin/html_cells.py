"""Cells and rows of the tables of a page: texts, bars, shades, marks, links."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

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

    The colour is that of a meaning of `kmargin.palette`: positive, negative, or none for a plain share.
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
