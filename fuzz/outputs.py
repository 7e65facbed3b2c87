"""What must be true of whatever the command line does with a table."""

import csv
import io
import math
import os
import re
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

SECONDS = 20.0
TAGS = set(
    "html head meta link title style body h1 h2 h3 p div b span table caption thead tbody tr th td figure figcaption code br "
    "details summary ul li svg g path defs clippath rect use text tspan image line circle polygon".split()
)
ATTRIBUTES = set(
    "lang charset name content http-equiv rel href id class style title open xlink:href xmlns xmlns:xlink width height viewbox "
    "version d transform clip-path x y cx cy r points fill stroke opacity type".split()
)
VOID = {"meta", "link", "br"}
INTERNAL = re.compile(
    r"Traceback|\b[A-Z]\w*(Error|Exception|Warning)\b|object at 0x|\bnumpy\.|\bsklearn\b|\bdtype\b|<class"
)
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class TooSlow(BaseException):
    """Not an Exception: nothing on the way may catch it."""


def check(case: Any) -> str | None:
    """Run a case of `tables` in a folder of its own. A sentence if something is wrong."""
    with tempfile.TemporaryDirectory() as folder, inside(folder), _drawing(case.draws):
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


class Flaw(Exception):
    """What is wrong, in a sentence."""


def call(arguments: list[str], seconds: float = SECONDS) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run in this process. Raises Flaw for a traceback or a hang."""
    from typer.testing import CliRunner

    from kmargin.cli import make_app

    global _app
    _app = _app or make_app()
    try:
        with limited(seconds), warnings.catch_warnings():
            warnings.simplefilter("default")
            result = CliRunner().invoke(_app, arguments)
    except TooSlow:
        raise Flaw(f"it runs for more than {seconds:g} s") from None
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        trace: Any = result.exc_info[2] if result.exc_info else None
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        raise Flaw(f"{type(error).__name__} at {where}: {str(error)[:200]}")
    return result.exit_code, result.stdout, result.stderr


_app: Any = None


def check_refusal(code: int, stdout: str, stderr: str, left: list[str]) -> str | None:
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


def check_words(stdout: str, stderr: str) -> str | None:
    """Nothing on stderr, and nothing on stdout that a terminal would obey."""
    if stderr:
        return f"stderr on success: {stderr[:300]!r}"
    if found := CONTROLS.search(stdout):
        return f"control character {found[0]!r} on stdout"
    if re.search(r"\b(nan|inf) %", stdout):
        return f"an accuracy that is no number: {stdout[:300]!r}"
    return None


def check_folder(folder: Path) -> str | None:
    """All files of a fit, whole, finite, in agreement."""
    from kmargin import modelfile

    own = "points.csv" if (folder / "points.csv").exists() else "features.csv"
    expected = sorted(["model.kmargin", own, "predictions.csv", "report.html"])
    if sorted(os.listdir(folder)) != expected:
        return f"the folder holds {sorted(os.listdir(folder))}"
    model = modelfile.load(folder)
    numbers = ["weight", "weight_per_unit", "frequency"] if own == "features.csv" else []
    flaw = check_csv(folder / own, *numbers) or check_csv(folder / "predictions.csv", "row", "fold")
    flaw = flaw or check_page((folder / "report.html").read_bytes())
    if flaw:
        return flaw
    with (folder / "predictions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if own == "features.csv":
        coef = model.machine.coef_
        if (coef != 0).sum(axis=1).max() > model.machine.k:
            return f"{(coef != 0).sum(axis=1).max()} features where k is {model.machine.k}"
    classes = {protected(text_of(value)) for value in model.machine.classes_.tolist()}
    for row in rows:
        if text_of(row["predicted"]) not in classes or text_of(row["actual"]) not in classes:
            return f"a class that is none: {row}"
        decisions = [float(value) for name, value in row.items() if name and name.startswith("decision")]
        if not all(map(math.isfinite, decisions)):
            return f"a decision that is no number: {row}"
        if len(decisions) == 1:
            second = protected(text_of(model.machine.classes_.tolist()[1]))
            if (decisions[0] > 0) != (text_of(row["predicted"]) == second):
                return f"decision and prediction disagree: {row}"
    return None


def check_again(case: Any) -> str | None:
    """The model takes the table that it was fitted to."""
    try:
        code, stdout, stderr = call(["predict", "--quiet", "--", "out", case.file])
    except Flaw as flaw:
        return f"predict on the same table: {flaw}"
    if code:
        return f"predict on the same table: {stderr}"
    rows = list(csv.DictReader(io.StringIO(stdout, newline="")))
    bad = [
        row
        for row in rows
        if not all(math.isfinite(float(v)) for n, v in row.items() if n and n.startswith("decision"))
    ]
    if bad or not rows:
        return f"predict on the same table: {bad[:1] or 'no rows'}"
    return check_fields(stdout)


def check_csv(path: Path, *numbers: str) -> str | None:
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


def check_fields(text: str) -> str | None:
    for line in csv.reader(io.StringIO(text, newline="")):
        for cell in line:
            if protected(cell) != cell:
                return f"a formula in a CSV: {cell[:60]!r}"
    return None


def protected(cell: str) -> str:
    """What a careful program writes in place of a text that a spreadsheet would run."""
    is_sum = cell[:1] in set("+-＋－") and any(not (c.isalnum() or c in "_ .,+-") for c in cell[1:])
    return f"'{cell}" if is_sum or cell[:1] in set("=@\t\r\n＝＠") else cell


def text_of(value: Any) -> str:
    """Numbers by their value, so that 1 and 1.0 are the same class."""
    if isinstance(value, bool):
        return str(value)
    try:
        return repr(float(value))
    except (ValueError, OverflowError):
        return str(value)


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


@contextmanager
def inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _drawing(really: bool) -> Iterator[None]:
    """Figures that are not drawn: they hold numbers only, and take nearly all of the time."""
    if really:
        yield
        return
    with mock.patch("kmargin.html.svg", lambda figure, name: "<svg></svg>"):
        yield


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """An end to whatever takes too long, where there are alarms."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
