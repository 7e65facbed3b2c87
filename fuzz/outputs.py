"""What must be true of whatever the command line does with a table."""

import csv
import io
import math
import os
import re
import tempfile
from contextlib import chdir, nullcontext
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

from fuzz.files import Flaw, call

INTERNAL = re.compile(
    r"Traceback|\b[A-Z]\w*(Error|Exception|Warning)\b|object at 0x|\bnumpy\.|\bsklearn\b|\bdtype\b|<class"
)
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

# what a report is made of: no element or attribute comes from the data
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


def check(case):
    """Run a case of `tables` in a folder of its own. Return a sentence if something is wrong."""
    drawing = nullcontext() if case.draws else mock.patch("kmargin.report.html.svg", return_value="<svg/>")
    with tempfile.TemporaryDirectory() as folder, chdir(folder), drawing:
        Path(case.file).write_bytes(case.content)
        outs = ["--out", "out" if case.command == "fit" else "out.csv"]
        try:
            code, stdout, stderr = call([case.command, *case.options, *outs, "--", case.file])
        except Flaw as flaw:
            return str(flaw)
        if code:
            return check_refusal(code, stdout, stderr, [case.file])
        if case.command == "path":
            text = Path("out.csv").read_bytes().decode()
            return check_words(stdout, stderr) or check_csv("out.csv", text, "objective", "training_accuracy")
        return check_words(stdout, stderr) or check_folder(Path("out")) or check_again(case)


def check_refusal(code, stdout, stderr, left):
    """Exit code 2, one sentence, and only the files that were there before."""
    if code != 2:
        return f"the exit code is {code}: {stderr[-200:]!r}"
    if found := INTERNAL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", stderr)):
        return f"the sentence speaks of {found[0]!r}: {stderr[:300]!r}"
    if stdout:
        return f"a refusal prints to stdout: {stdout[:100]!r}"
    if sorted(os.listdir()) != sorted(left):
        return f"a refusal leaves {sorted(os.listdir())}"
    if stderr.startswith("Usage:"):  # the option parser has its own layout
        return None
    if not re.fullmatch(r"Error: [^\n]*[.?)]\n", stderr):
        return f"stderr is not one sentence: {stderr[:300]!r}"
    if len(stderr) > 3000:
        return f"the sentence has {len(stderr)} characters"
    if CONTROLS.search(stderr):
        return f"control characters on stderr: {stderr[:200]!r}"
    return None


def check_words(stdout, stderr):
    """Nothing on stderr but which files were written, and nothing on stdout that a terminal would obey."""
    if re.sub(r"(?m)^Written to [^\n]*\.\n", "", stderr):
        return f"stderr on success: {stderr[:300]!r}"
    if found := CONTROLS.search(stdout):
        return f"control character {found[0]!r} on stdout"
    if re.search(r"\b(nan|inf) %", stdout):
        return f"an accuracy that is no number: {stdout[:300]!r}"
    return None


def check_folder(folder):
    """Every file of a fit is there and complete, all numbers are finite, and the files agree."""
    from kmargin.tables import model_file

    own = "points.csv" if (folder / "points.csv").exists() else "features.csv"
    expected = sorted(["model.kmargin", own, "predictions.csv", "report.html"])
    if sorted(os.listdir(folder)) != expected:
        return f"the folder holds {sorted(os.listdir(folder))}"
    model = model_file.load(folder)
    classes = [protected(text_of(value)) for value in model.machine.classes_.tolist()]
    numbers = ["weight", "weight_per_unit"] if len(classes) == 2 else []
    numbers = [*numbers, "frequency"] if own == "features.csv" else []
    table, predictions = ((folder / name).read_bytes().decode() for name in (own, "predictions.csv"))
    flaw = check_csv(own, table, *numbers) or check_csv("predictions.csv", predictions, "row", "fold")
    flaw = flaw or check_page((folder / "report.html").read_bytes())
    if flaw:
        return flaw
    if own == "features.csv" and (n_used := count_used(model)) > model.parameters["k"]:
        return f"{n_used} features or groups are used where k is {model.parameters['k']}"
    for row in csv.DictReader(io.StringIO(predictions, newline="")):
        predicted = text_of(row["predicted"])
        if predicted not in classes or text_of(row["actual"]) not in classes:
            return f"a class that is none: {row}"
        decisions = [float(value) for name, value in row.items() if name.startswith("decision")]
        if len(decisions) == 1 and (decisions[0] > 0) != (predicted == classes[1]):
            return f"decision and prediction disagree: {row}"
    return None


def count_used(model):
    """The number of features or groups that k bounds: of all classifiers together, or of the largest one."""
    coef = model.machine.coef_.tolist()
    labels = model.parameters["groups"] or range(len(coef[0]))
    used = [{label for label, weight in zip(labels, row, strict=True) if weight} for row in coef]
    return len(set().union(*used)) if model.parameters["shared"] else max(map(len, used))


def check_again(case):
    """The model predicts the table that it was fitted to."""
    try:
        code, stdout, stderr = call(["predict", "--quiet", "--", "out", case.file])
    except Flaw as flaw:
        return f"predict on the same table: {flaw}"
    flaw = stderr if code else check_csv("stdout", stdout)
    return flaw and f"predict on the same table: {flaw}"


def check_csv(name, text, *numbers):
    """Every line has the same number of fields, decision values and `numbers` are finite, and no cell is a
    formula.
    """
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    if (not lines and name != "points.csv") or any(len(line) != len(header) for line in lines):
        return f"{name} is ragged or empty"
    for column in (*numbers, *(title for title in header if title.startswith("decision"))):
        if column not in header:
            return f"{name} has no column {column}"
        for line in lines:
            cell = line[header.index(column)]
            if not math.isfinite(float(cell or "nan")):
                return f"{name} has {cell!r} as {column}"
    for cell in (cell for line in (header, *lines) for cell in line):
        if protected(cell) != cell:
            return f"a formula in a CSV: {cell[:60]!r}"
    return None


def protected(cell):
    """What a careful program writes in place of a text that a spreadsheet would run."""
    is_sum = cell[:1] in set("+-＋－") and any(not (c.isalnum() or c in "_ .,+-") for c in cell[1:])
    return f"'{cell}" if is_sum or cell[:1] in set("=@\t\r\n＝＠") else cell


def text_of(value):
    """Numbers by their value, so that 1 and 1.0 are the same class."""
    if isinstance(value, bool):
        return str(value)
    try:
        return repr(float(value))
    except (ValueError, OverflowError):
        return str(value)


class Page(HTMLParser):
    """Collects what is wrong with a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.flaws: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
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

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.flaws.append(f"</{tag}> closes nothing")

    def handle_comment(self, data):
        self.flaws.append(f"a comment {data[:40]!r}")


def check_page(content):
    """Only elements and attributes that a report has, all closed, nothing asked of the outside."""
    page = Page()
    page.feed(content.decode("utf-8"))
    page.close()
    flaws = page.flaws + [f"<{tag}> is left open" for tag in page.open]
    return f"the page has {flaws[0]}" if flaws else None
