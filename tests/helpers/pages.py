"""Whole outputs as text: what a terminal, a page, its figures and CSV files show.

    python tests/helpers/pages.py        # stores what is shown now in tests/stored/pages: look at `git diff`
    python tests/helpers/pages.py paper  # makes the page in results/paper from its rows, in half a minute

Commands are the lines of the stored texts that begin with "$ kmargin", files those that begin with "==": to
test another one write such a line into a text and store it anew. Words are compared one by one; numbers may
differ by rounding, as other versions of BLAS or NumPy make them.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from functools import partial
from html import escape
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import IdentityTransform
from sklearn.datasets import load_iris, load_wine
from tables_data import make_table
from typer.testing import CliRunner

import kmargin
from kmargin import CoefficientDisplay, ConvergenceDisplay, CVScoreDisplay, SparsityPathDisplay
from kmargin.cli.app import app
from kmargin.cli.reproduce import show_results
from kmargin.paper import figures
from kmargin.paper.protocol import Settings
from kmargin.paper.report import write_report
from kmargin.paper.run import PARTS
from kmargin.solvers.exchange import EFFORTS

STORE = Path(__file__).parent.parent / "stored" / "pages"
PAPER = Path(__file__).parent.parent.parent / "results" / "paper"
INLINE = {"a", "b", "code", "span", "i", "th", "td", "wbr", "sub", "sup"}
SEEN = ("class", "style", "title", "href", "aria-label")  # attributes that show, sound or lead somewhere
RELATIVE, ABSOLUTE = 2e-3, 1e-6


def make_linear(rng):
    """Two features that matter, one of which has a likeness; rows with names; and some rows again."""
    X = rng.standard_normal((90, 6))
    X[:, 5] = X[:, 1] + 0.5 * X[:, 5]
    signal = 2 * X[:, 0] - 1.5 * X[:, 1] + 0.6 * rng.standard_normal(90)
    names = ["age", "dose", "noise a", "noise b", "noise c", "like the dose"]
    frame = pd.DataFrame(X * [10, 0.2, 1, 1, 1, 3] + [50, 0, 0, 5, 0, 0], columns=names)
    frame = frame.assign(name=[f"no. {i}" for i in range(90)], outcome=np.where(signal > 0.3, "ill", "well"))
    frame[60:].assign(more=1).to_csv("new.csv", index=False)
    return frame


def make_classes(rng):
    """Five classes, and groups of two features."""
    kinds = np.array(["cirrhosis", "cholangiocarcinoma", "healthy", "hepatitis B", "steatosis"])
    codes = rng.permutation(np.arange(120) % 5)
    X = 1.3 * rng.standard_normal((5, 8))[codes] + rng.standard_normal((120, 8))
    frame = pd.DataFrame(X, columns=["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"])
    rows = [f"{name},group {name[0]}" for name in frame]
    Path("groups.csv").write_text("\n".join(["feature,group", *rows]))
    return frame.assign(diagnosis=kinds[codes])


def make_mixed(rng):
    """A column of texts, gaps, weights, and several rows of each patient."""
    frame = pd.DataFrame(rng.standard_normal((96, 4)), columns=["dose", "age", "noise", "more noise"])
    frame["hue"] = rng.permutation(["red", "blue", "green"] * 32)
    signal = 2 * frame["dose"] + frame["hue"].map({"red": 2.0, "blue": 0.0, "green": -2.0})
    signal += 0.4 * rng.standard_normal(96)
    frame.loc[::9, "noise"] = None
    frame.loc[4, "hue"] = None
    frame = frame.assign(patient=np.arange(96) // 3, w=np.arange(96) % 2 + 1.0)
    return frame.assign(outcome=np.where(signal > 1, "@high", "low"))


def make_noise(rng):
    """Labels that have nothing to do with the features, which are in groups, and two rows of each patient."""
    names = [f"{group}_{number}" for group in "abc" for number in (1, 2, 3)]
    frame = pd.DataFrame(rng.standard_normal((60, 9)), columns=names)
    return frame.assign(patient=np.arange(60) // 2, outcome=rng.permutation(["no", "yes"] * 30))


def make_wine(rng):
    data = load_wine(as_frame=True)
    frame = data.frame.iloc[::2, [0, 1, 6, 9, 10, 12, 13]]
    return frame.assign(target=data.target_names[frame["target"]])


def make_few(rng):
    return load_iris(as_frame=True).frame.iloc[46:57]


def make_rare(rng):
    return make_table().assign(outcome=["rare", *["common"] * 59])


FILES = {"linear": 1, "classes": 0, "mixed": 3, "noise": 5, "wine": 0, "few": 0, "rare": 0}  # and their seeds


def span(values, is_area=False):
    """The smallest and the largest value; of points, which areas have any number of, also mean and number."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    numbers = [known.min(), known.max()] if len(known) else []
    numbers += [known.mean(), len(known)] if len(known) and not is_area else []
    return " ".join(f"{number:.5g}" for number in numbers) or "nothing"


def describe(figure):
    """What is drawn, as lines of text."""
    yield "figure, inches: {:g} by {:g}".format(*figure.get_size_inches())
    for ax in figure.axes:
        yield f"axes: {ax.get_title()}"
        axes = (ax.xaxis, ax.get_xlim(), ax.get_xscale()), (ax.yaxis, ax.get_ylim(), ax.get_yscale())
        for place, (axis, ends, scale) in enumerate(axes):
            labels = [label for label in axis.get_ticklabels() if label.get_text()]
            shown = [
                text.get_text() for text in labels if min(ends) <= text.get_position()[place] <= max(ends)
            ]
            more = " and minor ticks" * (len(axis.get_minorticklocs()) > 0)
            yield f"{scale} axis {axis.get_label_text()}: {', '.join(shown)}{more}"
        for line in ax.lines:
            x, y = np.array(line.get_xydata(), dtype=float).T
            look = f"{line.get_linestyle()} {line.get_linewidth():g} {line.get_marker()}"
            name = line.get_label().lstrip("_")
            yield f"line {name}: {look} stroke: {to_hex(line.get_color())} x {span(x)} y {span(y)}"
        for area in [*ax.patches, *ax.collections]:
            paths = [area.get_path()] if isinstance(area, Patch) else area.get_paths()
            move = area.get_patch_transform() if isinstance(area, Patch) else IdentityTransform()
            points = np.concatenate([np.empty((0, 2)), *(move.transform(path.vertices) for path in paths)])
            colours = [to_hex(colour) for colour in np.atleast_2d(area.get_facecolor())[:1]]
            yield f"area fill: {' '.join(colours)} x {span(points[:, 0], True)} y {span(points[:, 1], True)}"
        for image in ax.images:
            yield f"image {span(np.ravel(image.get_array()))}"
        for text in ax.texts:
            yield "text {} at {:.5g} {:.5g}".format(
                text.get_text(), *getattr(text, "xy", text.get_position())
            )
    for legend in [*(ax.get_legend() for ax in figure.axes), *figure.legends]:
        if legend is not None:
            yield "legend: " + ", ".join(text.get_text() for text in legend.get_texts())


def save_described(figure, file, **options):
    """Instead of drawing a figure, which takes long, and differs with every version of matplotlib."""
    text = f"<svg >{escape(chr(10).join(describe(figure)))}</svg>"
    file.write(text if isinstance(file, io.TextIOBase) else text.encode())


class Seen(HTMLParser):
    """The text of a page and what its elements look like."""

    def __init__(self, page):
        super().__init__()
        self.parts = []
        self.feed(re.sub(r"(?s)<(style|script)\b.*?</\1>", "", page))

    def handle_starttag(self, tag, attributes):
        looks = ", ".join(f"{name}: {value}" for name, value in attributes if name in SEEN and value)
        mark = f"[{looks}] " if looks else "| " * (tag in ("td", "th"))
        self.parts.append((" " if tag in INLINE else "\n") + mark)

    def handle_data(self, data):
        self.parts.append(data)


def see(page, has_drawings=True):
    """The lines of a page."""
    page = page if has_drawings else re.sub(r"(?s)<svg.*?</svg>", "", page)
    lines = (" ".join(line.split()) for line in "".join(Seen(page).parts).splitlines())
    return "\n".join(line for line in lines if line)


def lasting(text, folder):
    """A text without versions, paths, lines as wide as their table, and digits that nobody compares."""
    text = text.replace(str(folder), "FOLDER").replace(kmargin.__version__, "VERSION")
    text = re.sub(r"\b(Python|NumPy|scikit-learn) \d[\w.]*", r"\1 VERSION", text)
    text = re.sub(r"\d+\.\d{6,}(e[-+]\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    text = re.sub(r"─+", "─", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@contextlib.contextmanager
def as_stored():
    """Figures as text, and searches without restarts, as `conftest.py` has them."""
    plain = EFFORTS["normal"]._replace(restart_seconds=0.0)
    with mock.patch.dict(EFFORTS, normal=plain), mock.patch.object(Figure, "savefig", save_described):
        yield


def show_commands(name, folder):
    """What the commands in a stored text show and write, and the files that it shows."""
    shown = []
    with contextlib.chdir(folder), as_stored(), mock.patch.dict("os.environ", KMARGIN_DATA=str(folder)):
        for file, seed in FILES.items():
            globals()[f"make_{file}"](np.random.default_rng(seed)).to_csv(f"{file}.csv", index=False)
        for line in re.findall("(?m)^(?:[$] kmargin|==) .*", read_store(name)):
            kind, *words = shlex.split(line)
            if kind == "$":
                before = os.listdir()
                done = CliRunner().invoke(app, words[1:])
                ended = f"exit code {done.exit_code}, new: {' '.join(sorted({*os.listdir()} - {*before}))}"
                shown += [line, done.stdout, ended, done.stderr]
            else:
                text = Path(words[0]).read_text(encoding="utf-8")
                shown += [line, text if line.endswith(".csv") else see(text)]
    return lasting("\n".join(shown), folder)


def show_displays(folder):
    """The figures of the displays, in their own sizes."""
    rng, iris = np.random.default_rng(2), load_iris(as_frame=True)
    coefs, kinds = rng.standard_normal((9, 4)), [f"kind {number}" for number in range(9)]
    traces = [
        [SimpleNamespace(objective=1 / t, distance_sq=s**-t, rho=1.2**t, steps=()) for t in range(1, 9)]
        for s in (2, 3)
    ]
    with mpl.rc_context({"backend": "agg"}):
        search = kmargin.SparseSVCCV(ks=[1, 2, 4], Cs=[0.1], cv=3, standardize=True)
        chosen = search.fit(iris.data, iris.target)
        several = iris.target == 1, np.arange(150) // 40
        models = [kmargin.SparseSVC(k=2, C=0.1).fit(iris.data, y) for y in several]
        displays = [CoefficientDisplay.from_estimator(model) for model in (*models, chosen)]
        displays += [CoefficientDisplay("abcd", coefs[:n], kinds[:n]).plot() for n in (7, 9)]
        displays += [kind.from_estimator(chosen) for kind in (SparsityPathDisplay, CVScoreDisplay)]
        displays += [ConvergenceDisplay(traces[:n], kinds[:n], "mm", "a title").plot() for n in (1, 2)]
        text = "\n".join(line for display in displays for line in describe(display.figure_))
        mpl.pyplot.close("all")
    return lasting(text, folder)


def show_paper(folder):
    """What is printed for the committed rows, and the figures of their page, but for one that needs a fit."""
    for name in ("rows.csv", "seconds.csv", "manifest.json"):
        shutil.copy(PAPER / name, folder)
    drawn = {"descent": lambda rows, settings: Figure()}
    said = io.StringIO()
    with as_stored(), mock.patch.dict(figures.DRAWN, drawn), contextlib.redirect_stdout(said):
        write_report(folder, tuple(PARTS), Settings())
        show_results(folder, Settings())
    drawings = re.findall(r"(?s)<svg.*?</svg>", (folder / "report.html").read_text(encoding="utf-8"))
    return lasting("\n".join([said.getvalue(), *map(see, drawings)]), folder)


def show(name, folder):
    return {"displays": show_displays, "paper": show_paper}.get(name, partial(show_commands, name))(folder)


def read_store(name):
    return (STORE / f"{name}.txt").read_text(encoding="utf-8")


NAMES = sorted(path.stem for path in STORE.glob("*.txt"))
TOKEN = re.compile(r"(?<![\w.#])[+−-]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)|[^\W\d]\w*|\w+|\S")
NUMBER = re.compile(r"[+−-]?\d+(?:\.(\d+))?(?:e[-+]?\d+)?")


def agree(found, stored):
    """Whether two words are equal, or numbers up to rounding."""
    numbers = [NUMBER.fullmatch(word or "") for word in (found, stored)]
    if found == stored or None in numbers:
        return found == stored
    now, was = (float(number[0].replace("−", "-")) for number in numbers)
    decimals = min(len(number[1] or "") for number in numbers)
    nearly = max(1.01 * 10.0**-decimals if decimals else 0.0, ABSOLUTE)  # rounded the other way
    signs = {*(found + stored)} & {*"+−-"}
    same_sign = not signs or found[0] == stored[0] or max(abs(now), abs(was)) <= nearly
    return same_sign and abs(now - was) <= max(RELATIVE * abs(was), nearly)


def difference(found, stored):
    """The first words that differ, with those around them; "" if two texts agree."""
    words = [TOKEN.findall(text) for text in (found, stored)]
    for at, pair in enumerate(zip_longest(*words)):
        if not agree(*pair):
            now, was = (" ".join(text[max(at - 15, 0) : at + 15]) for text in words)
            return f"stored: ... {was} ...\nnow:    ... {now} ..."
    return ""


if __name__ == "__main__":
    if sys.argv[1:] == ["paper"]:
        write_report(PAPER, tuple(PARTS), Settings())
    for name in [] if sys.argv[1:] else NAMES:
        with tempfile.TemporaryDirectory() as folder:
            text = show(name, Path(folder))
        (STORE / f"{name}.txt").write_text(text, encoding="utf-8")
