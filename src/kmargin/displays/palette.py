"""Colours, markers and line styles; each has the same meaning in all plots and report pages."""

from typing import Any, NamedTuple


class Shades(NamedTuple):
    """A colour in its two versions: for a light background and for a dark one."""

    light: str
    dark: str


MEANINGS = {
    # a page: its background, shaded boxes, lines, text
    "paper": Shades("#ffffff", "#14191f"),
    "shade": Shades("#f3f5f8", "#1e252d"),
    "line": Shades("#d5dce4", "#38424e"),
    "ink": Shades("#1f2933", "#e6eaef"),
    "soft": Shades("#5a6673", "#a3aebb"),  # less important text and lines, such as captions and zero lines
    "faint": Shades("#b8c2cc", "#4d5966"),  # background lines, such as features that have no label in a plot
    "curve": Shades("#0b6e99", "#5db7e4"),  # results of kmargin, and correct predictions
    "bad": Shades("#b3361e", "#ff8a70"),  # wrong predictions, losses of score, warnings
    # negative and positive weights, and the first and second class, which they favour; a third class
    "negative": Shades("#138573", "#4fd0bb"),
    "positive": Shades("#7a3ea8", "#c79bf0"),
    "third": Shades("#8f6f00", "#e6c95a"),
    # solvers, and methods that kmargin is compared with; the default solver has the colour "curve"
    "mm": Shades("#a82a6e", "#f07ab4"),
    "sd": Shades("#cc7a1a", "#ffb25e"),
    "liblinear_l1": Shades("#2f6b2f", "#7fcf7f"),
    "svc": Shades("#3a4652", "#c2cdd8"),
    "abess": Shades("#7d4a1e", "#d9a06a"),
    "simple": Shades("#75828f", "#8d9aa8"),  # a fit to features selected by an F-test or RFE
}

INK, SOFT, FAINT = (MEANINGS[name].light for name in ("ink", "soft", "faint"))
CURVE = MEANINGS["curve"].light
BAD = MEANINGS["bad"].light
CHOSEN = INK  # the colour of the ring and the line that mark the chosen k
NEGATIVE, POSITIVE = MEANINGS["negative"].light, MEANINGS["positive"].light
CLASSES = (NEGATIVE, POSITIVE, MEANINGS["third"].light)
CLASS_MARKS = ("o", "^", "s")
BAND = 0.18  # opacity of the band that shows the standard error of a curve
SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))
# Keyword arguments of `plot` for lines to compare with, such as a diagonal.
REFERENCE: dict[str, Any] = {"color": SOFT, "linewidth": 0.9, "linestyle": (0, (4, 3))}


class Line(NamedTuple):
    """Keyword arguments of matplotlib's `plot` for a curve that can be recognised in black and white."""

    color: str
    marker: str
    linestyle: Any = SOLID


def _line(meaning: str, marker: str, linestyle: Any = SOLID) -> Line:
    return Line(MEANINGS[meaning].light, marker, linestyle)


SOLVERS = {
    "exchange": _line("curve", "o"),
    "kmargin": _line("curve", "o"),
    "mm": _line("mm", "s", DASHED),
    "sd": _line("sd", "D", DASH_DOT),
    "liblinear_l1": _line("liblinear_l1", "^", DASHED),
    "abess": _line("abess", "<", DASH_DOT),
    "rfe": _line("simple", "s", DOTTED),
    "f_test": _line("simple", "D", DOTTED),
}
# The styles of the first, second, ... curve of a plot with a legend, such as one with a curve per feature.
SERIES = (
    _line("curve", "o"),
    _line("sd", "s", DASHED),
    _line("positive", "^"),
    _line("liblinear_l1", "D", DASH_DOT),
    _line("mm", "v", DASHED),
    _line("svc", "p"),
    _line("abess", "<", DOTTED),
    _line("negative", "X", DASH_DOT),
)


def solver_line(name: str) -> Line:
    """Return the line style of a solver in all plots: that in `SOLVERS`, or else a dotted line."""
    return SOLVERS.get(name, Line(INK, "x", DOTTED))
