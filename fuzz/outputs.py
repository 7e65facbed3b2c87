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
    drawing = (
        nullcontext() if case.draws else mock.patch("kmargin.report.html.svg", return_value="<svg></svg>")
    )
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
            return check_words(stdout, stderr) or check_csv(Path("out.csv"), "objective", "training_accuracy")
        return check_words(stdout, stderr) or check_folder(Path("out")) or check_again(case)


def check_refusal(code, stdout, stderr, left):
    """Exit code 2, one sentence, and only the files that were there before."""
    if code != 2:
        return f"the exit code is {code}: {stderr[-200:]!r}"
    is_usage = stderr.startswith("Usage:")  # wrong options are the parser's to tell
    if not is_usage and (
        not stderr.startswith("Error: ") or stderr.count("\n") != 1 or not stderr.endswith("\n")
    ):
        return f"stderr is not one sentence: {stderr[:300]!r}"
    if not is_usage and not stderr.rstrip("\n").endswith((".", "?", ")")):
        return f"the sentence has no end: {stderr[-100:]!r}"
    if len(stderr) > 3000 and not is_usage:
        return f"the sentence has {len(stderr)} characters"
    if found := INTERNAL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", stderr)):
        return f"the sentence speaks of {found[0]!r}: {stderr[:300]!r}"
    if CONTROLS.search(stderr) and not is_usage:
        return f"control characters on stderr: {stderr[:200]!r}"
    if stdout:
        return f"a refusal prints to stdout: {stdout[:100]!r}"
    if sorted(os.listdir()) != sorted(left):
        return f"a refusal leaves {sorted(os.listdir())}"
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
    """All files of a fit, whole, finite, in agreement."""
    from kmargin.tables import model_file

    own = "points.csv" if (folder / "points.csv").exists() else "features.csv"
    expected = sorted(["model.kmargin", own, "predictions.csv", "report.html"])
    if sorted(os.listdir(folder)) != expected:
        return f"the folder holds {sorted(os.listdir(folder))}"
    model = model_file.load(folder)
    numbers = ["weight", "weight_per_unit"] if len(model.machine.classes_) == 2 else []
    numbers = [*numbers, "frequency"] if own == "features.csv" else []
    flaw = check_csv(folder / own, *numbers) or check_csv(folder / "predictions.csv", "row", "fold")
    flaw = flaw or check_page((folder / "report.html").read_bytes())
    if flaw:
        return flaw
    with (folder / "predictions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if own == "features.csv":
        n_used = count_used(model.machine)
        if n_used > model.machine.k:
            return f"{n_used} of what k counts where k is {model.machine.k}"
    classes = {protected(text_of(value)) for value in model.machine.classes_.tolist()}
    for row in rows:
        if text_of(row["predicted"]) not in classes or text_of(row["actual"]) not in classes:
            return f"a class that is none: {row}"
        decisions = decisions_of(row)
        if not all(map(math.isfinite, decisions)):
            return f"a decision that is no number: {row}"
        if len(decisions) == 1:
            second = protected(text_of(model.machine.classes_.tolist()[1]))
            if (decisions[0] > 0) != (text_of(row["predicted"]) == second):
                return f"decision and prediction disagree: {row}"
    return None


def decisions_of(row):
    return [float(value) for name, value in row.items() if name and name.startswith("decision")]


def count_used(machine):
    """What k counts and bounds: features or groups, of all machines together or of the largest."""
    coef = machine.coef_.tolist()
    labels = machine.groups or range(len(coef[0]))
    used = [{label for label, weight in zip(labels, row, strict=True) if weight} for row in coef]
    return len(set().union(*used)) if machine.shared else max(map(len, used))


def check_again(case):
    """The model takes the table that it was fitted to."""
    try:
        code, stdout, stderr = call(["predict", "--quiet", "--", "out", case.file])
    except Flaw as flaw:
        return f"predict on the same table: {flaw}"
    if code:
        return f"predict on the same table: {stderr}"
    rows = list(csv.DictReader(io.StringIO(stdout, newline="")))
    bad = [row for row in rows if not all(map(math.isfinite, decisions_of(row)))]
    if bad or not rows:
        return f"predict on the same table: {bad[:1] or 'no rows'}"
    return check_fields(stdout)


def check_csv(path, *numbers):
    """As many fields in every line, finite numbers, and no formulas."""
    text = path.read_bytes().decode("utf-8")
    lines = list(csv.reader(io.StringIO(text, newline="")))
    if (len(lines) < 2 and path.name != "points.csv") or {len(line) for line in lines} != {len(lines[0])}:
        return f"{path.name} is ragged or empty"
    for name in numbers:
        if name not in lines[0]:
            return f"{path.name} has no column {name}"
        at = lines[0].index(name)
        for line in lines[1:]:
            if not math.isfinite(float(line[at] or "nan")):
                return f"{path.name} has {line[at]!r} as {name}"
    return check_fields(text)


def check_fields(text):
    for line in csv.reader(io.StringIO(text, newline="")):
        for cell in line:
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
