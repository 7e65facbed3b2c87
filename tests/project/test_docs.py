"""The pages are true: their blocks run, their commands and the names they mention exist."""

import ast
import contextlib
import importlib
import io
import re
from pathlib import Path
from unittest import mock

import pytest
import typer
from benchmarks.solvers import COMPETITORS
from typer.testing import CliRunner

import kmargin.datasets
from kmargin import MM, SD, Exchange
from kmargin.cli.app import app
from kmargin.core.problem import LOSSES
from kmargin.core.units import UNIT_KINDS
from kmargin.solvers import SOLVERS

ROOT = Path(__file__).parent.parent.parent
EXTENDING = ROOT / "docs" / "contributing" / "extending.md"  # has a test of its own
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != EXTENDING]
PAGES = [page for page in PAGES if not {"_build", "gallery"} & set(page.parts)]  # what the build makes
PAGES += [ROOT / "README.md"]
FENCE = r"(?ms)^```{}\n(.*?)^```"


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, language):
    return re.findall(FENCE.format(language), page.read_text(encoding="utf-8"))


def run_block(source, names, where):
    """Run it statement by statement: what a line prints is what its comment says."""
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        printed = io.StringIO()
        code = compile(ast.Module([statement], []), where, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        last = lines[statement.end_lineno - 1]
        if last.lstrip().startswith("print(") and "  # " in last:
            promised = last.rpartition("  # ")[2]
            assert printed.getvalue().rstrip() == promised, f"{where}: {last}"


def with_code():
    """The pages with Python blocks; those that import torch need more than `make test` installs."""
    for page in PAGES:
        found = "".join(blocks(page, "python"))
        if found:
            marks = [pytest.mark.optional] if "import torch" in found else []
            yield pytest.param(page, marks=marks, id=name_of(page))


@pytest.mark.parametrize("page", list(with_code()))
def test_every_python_block_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    found = blocks(page, "python")
    if "optional" in request.keywords:
        request.getfixturevalue("torch")
    names = {"__name__": "__main__"}
    for number, block in enumerate(found):
        run_block(block, names, f"{name_of(page)}, block {number}")


def test_every_example_about_extensions_runs_and_its_assertions_hold():
    headings = re.findall(r"(?m)^## (.*)$", EXTENDING.read_text(encoding="utf-8"))
    assert headings == ["A solver", "A unit", "A loss", "A kind of data", "A competitor"]
    examples = blocks(EXTENDING, "python")
    assert len(examples) == len(headings)
    assert all("assert " in example for example in examples)
    names = {}
    with contextlib.ExitStack() as stack:
        for registry in (SOLVERS, UNIT_KINDS, LOSSES, COMPETITORS):
            stack.enter_context(mock.patch.dict(registry))
        for example in examples:
            exec(compile(example, str(EXTENDING), "exec"), names)


def commands(page):
    """The commands of a page, each as its words."""
    text = "\n".join(blocks(page, "sh"))
    text = re.sub(r"\\\n", " ", text)
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words and words[0] == "kmargin":
            yield words[1:]


@pytest.mark.parametrize("page", [page for page in PAGES if list(commands(page))], ids=name_of)
def test_every_command_of_a_page_exists_and_takes_its_options(page):
    root = typer.main.get_command(app)
    for words in commands(page):
        command, rest = root, list(words)
        while hasattr(command, "commands"):
            command = command.get_command(None, rest.pop(0))
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if re.match(r"--?[A-Za-z]", word)}
        assert given <= known, f"{' '.join(words)}: no {given - known}"


def test_the_first_table_prints_what_its_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    first = ROOT / "docs" / "start" / "first_table.md"
    run_block(blocks(first, "python")[0], {}, "first_table.md")
    command = next(commands(first))
    done = CliRunner().invoke(app, [*command, "--out", "cancer-kmargin"])
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == blocks(first, "text")[0].split()


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted(ROOT.glob("*.md")), *ROOT.glob("benchmarks/*.md")], ids=name_of
)
def test_every_link_to_a_file_leads_to_one(page):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        path = address.partition("#")[0]
        assert "://" in path or not path or (page.parent / path).exists(), address


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_of_the_package_that_a_page_mentions_exists(page):
    text = re.sub(FENCE.format("python"), "", page.read_text(encoding="utf-8"))
    for name in set(re.findall(r"`(kmargin(?:\.\w+)+)", text)):
        found = importlib.import_module("kmargin")
        for part in name.split(".")[1:]:
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{found.__name__}.{part}") if hasattr(found, "__path__") else None
            assert hasattr(found, part), f"{name_of(page)}: {name}"
            found = getattr(found, part)


def test_every_public_name_and_option_of_a_solver_is_either_stable_or_experimental():
    text = (ROOT / "docs" / "guide" / "compatibility.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ") and line.count("|") == 4]
    listed = [name for _, _, *cells, _ in rows for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    options = {name for solver in (Exchange, MM, SD) for name in solver().get_params()}
    assert sorted(listed) == sorted({*kmargin.__all__} | options)


def test_every_public_name_is_in_the_reference():
    listed, module = set(), ""
    for line in (ROOT / "docs" / "api" / "index.rst").read_text().splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            listed.add(f"{module}.{line.strip()}")
    constants = {"kmargin.datasets.TABLE_1"}
    public = {f"{home.__name__}.{name}" for home in (kmargin, kmargin.datasets) for name in home.__all__}
    assert public - constants == set(listed)
