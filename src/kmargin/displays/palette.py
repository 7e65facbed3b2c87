"""Colours: one colour has one meaning in all plots and pages."""

from typing import Any, NamedTuple


class Shades(NamedTuple):
    """A colour on a light page, and on a dark one."""

    light: str
    dark: str


MEANINGS = {
    # paper and ink
    "paper": Shades("#ffffff", "#14191f"),
    "shade": Shades("#f3f5f8", "#1e252d"),
    "line": Shades("#d5dce4", "#38424e"),
    "ink": Shades("#1f2933", "#e6eaef"),
    "soft": Shades("#5a6673", "#a3aebb"),  # of less importance: guessing, other features, remarks
    "faint": Shades("#b8c2cc", "#4d5966"),  # background, not to be read
    # quality
    "curve": Shades("#0b6e99", "#5db7e4"),  # the results of kmargin, correct predictions
    "bad": Shades("#b3361e", "#ff8a70"),  # wrong predictions, losses, warnings
    # signs and classes: a positive weight favours the second of two classes
    "negative": Shades("#138573", "#4fd0bb"),
    "positive": Shades("#7a3ea8", "#c79bf0"),
    "third": Shades("#8f6f00", "#e6c95a"),
    # solvers, beside `curve`, which is the package's own
    "mm": Shades("#a82a6e", "#f07ab4"),
    "sd": Shades("#cc7a1a", "#ffb25e"),
    "liblinear_l1": Shades("#2f6b2f", "#7fcf7f"),
    "liblinear_l2": Shades("#7d9a2e", "#c3dc73"),
    "svc": Shades("#3a4652", "#c2cdd8"),
    "abess": Shades("#7d4a1e", "#d9a06a"),
    "skscope": Shades("#3f4fa8", "#9aa8ff"),
    "skglm": Shades("#8a6d8f", "#cfb3d4"),
    "simple": Shades("#75828f", "#8d9aa8"),  # a selection before the fit: F-test, RFE
}

INK, SOFT, FAINT = (MEANINGS[name].light for name in ("ink", "soft", "faint"))
CURVE = MEANINGS["curve"].light
BAD = MEANINGS["bad"].light
CHOSEN = INK  # the choice is marked by a ring and a line, not by a colour
NEGATIVE, POSITIVE = MEANINGS["negative"].light, MEANINGS["positive"].light
CLASSES = (NEGATIVE, POSITIVE, MEANINGS["third"].light)
CLASS_MARKS = ("o", "^", "s")
BAND = 0.18  # opacity of the band around a curve
SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))
REFERENCE: dict[str, Any] = {"color": SOFT, "linewidth": 0.9, "linestyle": (0, (4, 3))}  # such as guessing


class Line(NamedTuple):
    """Colour, marker and line style of a solver or a feature, which differ without the colour, too."""

    color: str
    marker: str
    linestyle: Any = SOLID

    @property
    def drawn(self) -> dict[str, Any]:
        """The arguments of matplotlib's `plot`."""
        return self._asdict()


def _line(meaning: str, marker: str, linestyle: Any = SOLID) -> Line:
    return Line(MEANINGS[meaning].light, marker, linestyle)


SOLVERS = {
    "exchange": _line("curve", "o"),
    "exchange, one k": _line("curve", "o", DASHED),
    "kmargin": _line("curve", "o"),
    "kmargin_ovr": _line("curve", "P", DASHED),
    "kmargin_own": _line("curve", "X", DOTTED),
    "mm": _line("mm", "s", DASHED),
    "sd": _line("sd", "D", DASH_DOT),
    "liblinear_l1": _line("liblinear_l1", "^", DASHED),
    "liblinear_l2": _line("liblinear_l2", "v", DOTTED),
    "svc": _line("svc", "p", DASH_DOT),
    "abess": _line("abess", "<", DASH_DOT),
    "skscope": _line("skscope", ">", DOTTED),
    "skglm_l1": _line("skglm", "*", DASHED),
    "skglm_mcp": _line("skglm", "h", DOTTED),
    "l0learn": _line("skscope", "d", DASHED),
    "rfe": _line("simple", "s", DOTTED),
    "f_test": _line("simple", "D", DOTTED),
}
SAME_AS = {  # another name, or the same selection in another model
    "l1r": "liblinear_l1",
    "l1_union": "liblinear_l1",
    "l1_grid": "liblinear_l1",
    "l1_halves": "liblinear_l1",
    "logistic_l1": "liblinear_l1",
    "l2r": "liblinear_l2",
    "calibrated_svc": "svc",
    "logistic_f_test": "f_test",
    "skglm_multitask": "skglm_l1",
    "skglm_group": "skglm_l1",
}
# lines that the plot itself names, such as the features of a path
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
    """Return how a solver is drawn in all plots; an unknown one has the colour of text."""
    known = SOLVERS.get(SAME_AS.get(name, name))
    if known is None and "," in name:
        return solver_line(name.split(",")[0])  # "mm, one k" is mm
    return known or Line(INK, "x", DOTTED)
