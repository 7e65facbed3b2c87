"""A report is only what its program wrote: no element or attribute comes from the data."""

import re
from html.parser import HTMLParser

TAGS = {
    *("html", "head", "meta", "link", "title", "style", "body", "h1", "h2", "h3", "p", "div", "b", "i"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "code", "br"),
    *("details", "summary", "ul", "li", "svg", "g", "path", "defs", "clippath", "rect", "use", "text"),
    *("span", "nav", "a"),
}
ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "rel", "href", "id", "class", "style", "title"),
    *("open", "xlink:href", "xmlns", "xmlns:xlink", "width", "height", "viewbox", "version", "d", "type"),
    *("transform", "clip-path", "x", "y", "cx", "cy", "r", "points", "fill", "stroke", "opacity"),
    *("data-label", "role", "aria-label"),
}
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Collects what is wrong with a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.flaws: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.flaws.append(f"an element <{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES or name.startswith("on"):
                self.flaws.append(f"an attribute {name}={value!r}")
            if name.endswith("href") and not (value or "").startswith(("#", "data:")):
                self.flaws.append(f"a link to {value!r}")
            if name == "style" and re.search(r"url\((?!#)|expression|import", value or ""):
                self.flaws.append(f"a style {value!r}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.flaws.append(f"</{tag}> closes nothing")

    def handle_comment(self, data: str) -> None:
        self.flaws.append(f"a comment {data[:40]!r}")


def check_page(content: bytes) -> str | None:
    """Only elements and attributes that a report has, all closed, nothing asked of the outside."""
    page = Page()
    page.feed(content.decode("utf-8"))
    page.close()
    flaws = page.flaws + [f"<{tag}> is left open" for tag in page.open]
    return f"the page has {flaws[0]}" if flaws else None
