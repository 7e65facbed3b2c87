"""Reports in a real browser: they open, nothing is missing, nothing is fetched, a phone can show them."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import DESKTOP, PHONE, open_page
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from tables_data import make_table
from typer.testing import CliRunner

from kmargin import CVScoreDisplay
from kmargin.cli.app import app
from kmargin.displays import palette
from kmargin.report import html
from kmargin.report.page import draw_guessing, render
from kmargin.tables.analysis import analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings


@pytest.fixture(
    scope="module",
    params=[["--ks", "1,2,4"], ["--kernel", "rbf", "--k", "4", "--C", "1,10"]],
    ids=["linear", "kernel"],
)
def fitted_page(request, tmp_path_factory):
    """The page of a fit of iris, whole as people get it."""
    folder = tmp_path_factory.mktemp("iris")
    load_iris(as_frame=True).frame.to_csv(folder / "iris.csv", index=False)
    command = ["fit", str(folder / "iris.csv"), "--target", "target", "--cv", "3", "--quiet"]
    done = CliRunner().invoke(app, [*command, "--out", str(folder / "out"), *request.param])
    assert done.exit_code == 0, done.stderr
    return folder / "out" / "report.html"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_report_of_a_fit_is_whole_and_asks_for_nothing(browser, fitted_page, size):
    open_page(browser, fitted_page, size)
    heights = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) > 100
    assert len(browser.find_elements("css selector", "table")) >= 3


KINDS = ["cholangiocarcinoma", "cirrhosis", "healthy", "hepatocellular carcinoma", "metastatic colorectal"]


@pytest.fixture(scope="module")
def five_classes_page(tmp_path_factory):
    """Five classes with long names; k counts groups of two features, one of which is always in."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 150)
    X = 2 * rng.standard_normal((5, 6))[codes] + rng.standard_normal((150, 6))
    frame = pd.DataFrame(X, columns=["a1", "a2", "b1", "b2", "c1", "c2"])
    frame.assign(diagnosis=np.array(KINDS)[codes]).to_csv(folder / "study.csv", index=False)
    groups = [f"{name},group {name[0]}" for name in frame]
    (folder / "groups.csv").write_text("\n".join(["feature,group", *groups]))
    command = ["fit", str(folder / "study.csv"), "--target", "diagnosis", "--cv", "2", "--quiet", "--k", "2"]
    command += ["--C", "0.1", "--groups", str(folder / "groups.csv"), "--keep", "group c", "--sign", "c1=+"]
    done = CliRunner().invoke(app, [*command, "--out", str(folder / "out")])
    assert done.exit_code == 0, done.stderr
    return folder / "out" / "report.html"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_report_of_many_classes_shows_each_feature_once_and_names_within_their_cells(
    browser, five_classes_page, size
):
    open_page(browser, five_classes_page, size)
    head = browser.find_elements("css selector", "#weights th")
    own = ["feature", "group", *KINDS, "folds", "halves"]
    assert [cell.get_attribute("textContent") for cell in head] == own
    assert len(browser.find_elements("css selector", "#worths td:first-child")) == 2, "one row for each group"
    shown = [cell.text.split() for cell in browser.find_elements("css selector", "#weights td:first-child")]
    assert len({name for name, *_ in shown}) == len(shown) == 4
    assert ["c1", "always", "in,", "+"] in shown
    beyond = browser.execute_script(
        "return [...document.querySelectorAll('#weights td')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert max(beyond) <= 0


def test_all_values_are_escaped_in_all_templates():
    nasty = "<script>'"
    assert html.environment().autoescape is True
    assert html.with_code(f"{nasty} `{nasty}`") == "&lt;script&gt;&#39; <code>&lt;script&gt;&#39;</code>"
    assert "<script" not in html.labelled("<svg ></svg>", nasty)
    for path in (Path(html.__file__).parent / "templates").glob("*.j2"):
        assert not re.search(r"\|\s*safe(?! %})|autoescape", path.read_text()), path.name


# the page of a fit: one analysis, looked at in many ways

LONG = "concentration of the protein as measured by the second laboratory on the day of admission"
UNBROKEN = "column_without_a_place_to_break_" * 4


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """Two classes with long names, 24 features with longer ones, 22 of them in use."""
    frame = make_table(80)[["age", "outcome"]]
    noise = np.random.default_rng(0).standard_normal((80, 23))
    for j in range(23):
        frame[f"{LONG if j % 2 else UNBROKEN} {j}"] = noise[:, j]
    frame["outcome"] = frame["outcome"].map({"no": "no sign of the disease", "yes": "recurrence, or death"})
    settings = Settings(k=22, Cs=[0.1], cv=2, pairs=1, nested=False)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(analyse(prepare(Table(frame), Roles("outcome")), settings), "patients.csv", "out"))
    return path


@pytest.mark.parametrize("guessing", [0.25, 0.38, 0.5])
def test_the_line_of_guessing_does_not_cross_the_label_of_the_chosen_k(guessing):
    figure = Figure(figsize=(5.2, 3.1), layout="constrained")
    ks, mean = np.array([1, 2, 4]), np.array([0.4, 0.6, 0.8])
    axes = CVScoreDisplay(ks, mean, np.full(3, 0.03), 4, "accuracy").plot(figure.subplots()).ax_
    draw_guessing(axes, guessing)
    figure.draw_without_rendering()
    (label,) = (text for text in axes.texts if "chosen" in text.get_text())
    assert label.get_window_extent().y1 < axes.transData.transform((1, guessing))[1]


def show_as(browser, scheme="light", media="screen"):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})


@pytest.fixture
def themed(browser):
    """A browser that is in daylight again afterwards."""
    yield browser
    show_as(browser)


# text that somebody sees, its colour, and the colours behind it up to the page, as [r, g, b, alpha]
SEEN = """
const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
}
const found = {};
for (const e of document.querySelectorAll('body *')) {
  const has_text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!has_text || !e.checkVisibility()) continue;
  const style = getComputedStyle(e), behind = [];
  for (let p = e; p; p = p.parentElement) behind.push(getComputedStyle(p).backgroundColor);
  const colour = e.ownerSVGElement ? style.fill : style.color;
  found[colour + behind] = [e.textContent.trim().slice(0, 40), rgba(colour), behind.map(rgba)];
}
return Object.values(found);
"""


def contrast(one, other):
    """As the web's guidelines for accessibility have it."""

    def luminance(colour):
        c = np.array(colour[:3]) / 255
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(layers):
    """What is seen of colours on top of each other, the topmost first."""
    seen = np.zeros(3)
    for *colour, alpha in reversed(layers):
        seen = alpha * np.array(colour) + (1 - alpha) * seen
    return seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_and_plots_have_the_colours_of_the_page_by_day_and_by_night(
    themed, long_page, scheme
):
    show_as(themed, scheme)
    open_page(themed, long_page, DESKTOP)
    seen = themed.execute_script(SEEN)
    assert len(seen) > 10
    assert (blend(seen[0][2]).mean() < 60) == (scheme == "dark")
    for text, colour, behind in seen:
        assert contrast(colour, blend(behind)) >= 4.5, text
    strokes = themed.execute_script(
        "return [...document.querySelectorAll('#scores svg path, #roc svg path')]"
        ".map(e => getComputedStyle(e).stroke)"
    )
    shades = getattr(palette.MEANINGS["curve"], scheme)
    assert f"rgb{tuple(int(shades[i : i + 2], 16) for i in (1, 3, 5))}" in strokes


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_long_names_are_wrapped_and_nothing_hides_beside_the_page(browser, long_page, size):
    open_page(browser, long_page, size)
    hidden = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.textContent.slice(0, 60))"
    )
    assert hidden == []
    out = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() "
        "&& !e.ownerSVGElement && e.getBoundingClientRect().right > window.innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert out == []


def test_features_beyond_the_first_dozen_are_folded_away_on_screens_and_open_in_print(themed, long_page):
    open_page(themed, long_page, DESKTOP)
    rows = "return [...document.querySelectorAll('#weights tbody tr')].length"
    assert themed.execute_script(rows) == 12
    more = themed.find_element("css selector", "#weights-more")
    assert not more.is_displayed()
    show_as(themed, media="print")
    assert themed.execute_script("return arguments[0].getBoundingClientRect().height", more) > 100
    assert len(more.find_elements("css selector", "tbody tr")) == 10


def test_the_page_begins_with_the_answer_and_is_read_out_in_order(browser, long_page):
    open_page(browser, long_page, DESKTOP)
    for part in (".lead", "#scores svg"):
        box = browser.find_element("css selector", part).rect
        assert box["y"] + box["height"] <= DESKTOP[1]
    levels = [int(e.tag_name[1]) for e in browser.find_elements("css selector", "h1, h2, h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    images = browser.find_elements("css selector", "svg, .strip, .span")
    assert all(image.get_attribute("aria-label") for image in images)
    stacked = browser.find_elements("css selector", "table.stack")
    assert stacked
    assert all(table.get_attribute("role") == "table" for table in stacked)
