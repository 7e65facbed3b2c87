"""Colours differ for readers with any colour vision, and nothing is shown by colour alone."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure

from kmargin.displays import palette
from kmargin.displays.palette import MEANINGS, SOLVERS
from kmargin.report import html

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
SIGHT = {
    "usual": "1 0 0 0 1 0 0 0 1",
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
}
SEEN_TOGETHER = ["curve mm sd", "curve liblinear_l1 svc", "curve bad"]
SEEN_TOGETHER += ["negative positive third", "negative positive ink"]


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour, sight):
    rgb = np.clip(np.array(SIGHT[sight].split(), float).reshape(3, 3) @ linear(colour), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ rgb / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_colour_has_one_meaning_and_lines_have_enough_contrast_with_the_page(theme):
    """The contrast of text is tested in a browser."""
    colours = [getattr(shades, theme) for shades in MEANINGS.values()]
    assert len(set(colours)) == len(colours)
    paper = getattr(MEANINGS["paper"], theme)
    strength = {name: contrast(getattr(shades, theme), paper) for name, shades in MEANINGS.items()}
    background = [strength.pop(name) for name in ("paper", "shade", "line", "faint")]
    assert max(background) < 3 <= min(strength.values())


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_used_together_differ_for_all_kinds_of_colour_vision(theme, sight):
    for together in SEEN_TOGETHER:
        for a, b in combinations(together.split(), 2):
            one, other = (lab(getattr(MEANINGS[name], theme), sight) for name in (a, b))
            assert np.linalg.norm(one - other) > 10, (a, b)


def test_lines_differ_by_marker_or_line_style_and_a_solver_looks_the_same_under_each_name():
    solvers = [line for name, line in SOLVERS.items() if name != "kmargin"]
    for lines in (solvers, palette.SERIES):
        assert len({(line.marker, str(line.linestyle)) for line in lines}) == len(lines)
    assert palette.solver_line("kmargin") == palette.solver_line("exchange")
    assert palette.solver_line("nobody").color == palette.INK


def test_colours_of_a_plot_follow_the_theme_of_its_page():
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1], color=palette.CURVE)
    figure.suptitle("年")  # not in matplotlib's font, without a warning
    text = html.svg(figure, "line")
    assert text == html.svg(figure, "line") != html.svg(figure, "another")
    assert text.startswith("<svg")
    assert not [part for part in ("<metadata>", palette.CURVE) if part in text]
    assert not [part for part in ("年</text>", "stroke: var(--curve)") if part not in text]
    kept = html.svg(figure, "line", follows_theme=False)
    assert not [part for part in (f"stroke: {palette.CURVE}", 'class="plate"') if part not in kept]
