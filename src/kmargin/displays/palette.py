"""Colours, markers and line styles; each has the same meaning in all plots and report pages."""

from typing import Any, NamedTuple


class Shades(NamedTuple):
    """A colour in its two versions: for a light background and for a dark one."""

    light: str
    dark: str


MEANINGS = {
    # background, text and lines of a page
    "paper": Shades("#ffffff", "#14191f"),
    "shade": Shades("#f3f5f8", "#1e252d"),
    "line": Shades("#d5dce4", "#38424e"),
    "ink": Shades("#1f2933", "#e6eaef"),
    "soft": Shades("#5a6673", "#a3aebb"),  # less important text and lines, such as remarks or a chance level
    "faint": Shades("#b8c2cc", "#4d5966"),  # lines in the background, such as features without a label
    # results
    "curve": Shades("#0b6e99", "#5db7e4"),  # results of kmargin, and correct predictions
    "bad": Shades("#b3361e", "#ff8a70"),  # wrong predictions, losses of score, warnings
    # signs of weights, and classes: a positive weight favours the second of two classes
    "negative": Shades("#138573", "#4fd0bb"),
    "positive": Shades("#7a3ea8", "#c79bf0"),
    "third": Shades("#8f6f00", "#e6c95a"),
    # the colours of solvers; that of the default solver is "curve"
    "mm": Shades("#a82a6e", "#f07ab4"),
    "sd": Shades("#cc7a1a", "#ffb25e"),
    "liblinear_l1": Shades("#2f6b2f", "#7fcf7f"),
    "svc": Shades("#3a4652", "#c2cdd8"),
    "abess": Shades("#7d4a1e", "#d9a06a"),
    "simple": Shades("#75828f", "#8d9aa8"),  # features selected before the fit, by an F-test or RFE
}

INK, SOFT, FAINT = (MEANINGS[name].light for name in ("ink", "soft", "faint"))
CURVE = MEANINGS["curve"].light
BAD = MEANINGS["bad"].light
CHOSEN = INK  # the chosen k has no colour of its own: a ring and a line mark it
NEGATIVE, POSITIVE = MEANINGS["negative"].light, MEANINGS["positive"].light
CLASSES = (NEGATIVE, POSITIVE, MEANINGS["third"].light)
CLASS_MARKS = ("o", "^", "s")
BAND = 0.18  # opacity of the band around a curve
SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))
# The style of reference lines, such as the score of guessing.
REFERENCE: dict[str, Any] = {"color": SOFT, "linewidth": 0.9, "linestyle": (0, (4, 3))}


class Line(NamedTuple):
    """Keyword arguments of matplotlib's `plot` for a curve that is recognised in black and white, too."""

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
# The styles of the first, second, ... curve of a plot with a legend, such as the features of a path.
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
    """Return the style of a solver's curve in all plots; an unknown solver has the colour of text."""
    return SOLVERS.get(name, Line(INK, "x", DOTTED))
