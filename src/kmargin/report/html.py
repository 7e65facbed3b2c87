"""HTML pages from the templates in `report/templates`, and plots as SVG images in the colours of a page."""

import io
import re
import warnings
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kmargin.core.validation import count
from kmargin.displays.palette import INK, MEANINGS, SOFT
from kmargin.report.text import number, percent, signed

LONG_WORD = 20  # words with more characters may be broken anywhere, so that table columns stay narrow

FONT: Any = {  # matplotlib settings of plots on a page
    "font.size": 9.5,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


@cache
def environment() -> Environment:
    """The jinja2 environment of the templates. All values are escaped; a missing value raises an error."""
    found = Environment(
        loader=PackageLoader("kmargin.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["palette"] = MEANINGS
    filters = (count, number, percent, signed, singular, with_code, unbroken, name_class, labelled)
    found.filters.update({function.__name__: function for function in filters})
    return found


def render(template: str, **values: Any) -> str:
    """Render a template with the given values; return the page as HTML."""
    return environment().get_template(template).render(values)


def singular(label: str) -> str:
    """The singular of a word for what k counts: "feature" for "features"."""
    return label.removesuffix("s")


def with_code(text: str) -> Markup:
    """Escape a text as HTML, and mark the parts between backticks as code."""
    pieces = str(escape(text)).split("`")
    return Markup("".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces)))


def unbroken(text: str) -> str:
    """Put a no-break space before each per cent sign."""
    return text.replace(" %", "\u00a0%")


def name_class(text: Any) -> str:
    """The CSS classes of a table cell with this text. Words longer than LONG_WORD may break anywhere."""
    longest = max(map(len, str(text).split()), default=0)
    return "name anywhere" if longest > LONG_WORD else "name"


def labelled(image: str, label: str) -> Markup:
    """Add a label for screen readers to an SVG image."""
    label = escape(label.replace("`", ""))
    return Markup(image.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))


def new_figure(width: float, height: float) -> Any:
    """A new matplotlib figure that opens no window; width and height are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def svg(figure: Any, name: str, follows_theme: bool = True) -> str:
    """Convert a matplotlib figure to SVG. Text stays text, and the same figure gives the same bytes.

    `name` makes the ids inside the SVG unique on a page. Colours of `displays.palette` become CSS variables,
    which change with the light or dark theme of the page. A figure that has raster images cannot change its
    colours: with follows_theme=False they are kept, and the figure gets a white background.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # matplotlib lacks a character that browsers can show
        figure.savefig(
            buffer, format="svg", dpi=160, bbox_inches="tight", metadata={"Date": None}, transparent=True
        )
    text = buffer.getvalue()
    before, _, rest = text[text.index("<svg") :].partition("<metadata>")
    text = before + rest.partition("</metadata>")[2]
    if not follows_theme:
        return f'<div class="plate">{text}</div>'
    text = text.replace("#000000", "var(--ink)")  # matplotlib's default black becomes the page's text colour
    for meaning, shades in MEANINGS.items():
        text = re.sub(rf"(fill|stroke): {shades.light}", rf"\1: var(--{meaning})", text)
    return text
