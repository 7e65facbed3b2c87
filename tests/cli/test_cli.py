"""The command line, as a person meets it."""

import os
import re
import runpy
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables_data import make_table
from typer.testing import CliRunner

import kmargin.cli.commands
from kmargin.cli import main
from kmargin.cli.app import app
from kmargin.report import page as write
from kmargin.tables import model_file

QUICK = ["--ks", "1,2", "--C", "1", "--cv", "3", "--pairs", "5"]
FILES = ["features.csv", "model.kmargin", "predictions.csv", "report.html"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of results of a model of two features."""
    place = tmp_path_factory.mktemp("fitted")
    make_table().to_csv(place / "data.csv", index=False)
    options = ["--target", "outcome", "--k", 2, "--C", "1", "--cv", 3, "--pairs", 0, "-q"]
    assert run("fit", place / "data.csv", *options, "--out", place / "out").output == ""
    return place / "out"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def names(path="."):
    return sorted(os.listdir(path))


def assert_says(result, message):
    """One sentence on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert re.search(message, result.stderr), result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.drawn
def test_the_page_asks_nothing_of_the_outside_and_escapes_every_name():
    evil = "<script>alert('&')</script>"
    frame = make_table().rename(columns={"dose": evil, "outcome": "<b>"})
    frame["<b>"] = frame["<b>"].map({"no": "<i>no", "yes": "</td>"})
    frame["<u>"] = frame["z"] > 5
    frame.to_csv("<evil>.csv", index=False)
    result = run("fit", "<evil>.csv", "--target", "<b>", *QUICK, "--id", "<u>", "--out", "o")
    assert result.exit_code == 0, result.output
    page = Path("o/report.html").read_text()
    body = page[page.index("<body>") :]
    assert "<script" not in body
    assert "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;" in body
    assert "<i>" not in body
    assert "<b>," not in body
    asked = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", page)
    assert asked
    assert all(address.startswith(("#", "data:")) for address in asked)
    assert not re.search(r"url\((?!#)|@import", page)


def test_predictions_do_not_depend_on_the_order_of_columns_or_on_further_ones(fitted):
    frame = pd.read_csv("data.csv")
    frame[frame.columns[::-1]].assign(more=1).drop(columns="outcome").to_csv("new.csv", index=False)
    plain, other = run("predict", fitted, "data.csv"), run("predict", fitted, "new.csv")
    assert re.search(r"\d\d\.\d % of 60 rows agree with column 'outcome'", plain.stderr)
    assert other.stderr.endswith("Note: 1 column ignored: 'more'.\n")
    for mark in (None, "?"):
        frame.assign(outcome=frame["outcome"].where(frame.index >= 10, mark)).to_csv("some.csv", index=False)
        assert "% of 50 rows agree with column 'outcome'" in run("predict", fitted, "some.csv").stderr
    frame.assign(outcome=["ill", *frame["outcome"][1:]]).to_csv("ill.csv", index=False)
    told = "Note: Column 'outcome' holds 'ill' in 1 row, unknown to the model: counted as disagreement.\n"
    assert told in run("predict", fitted, "ill.csv").stderr
    same = ["row", "predicted", "decision"]
    one, two = (pd.read_csv(pd.io.common.StringIO(r.stdout))[same] for r in (plain, other))
    pd.testing.assert_frame_equal(one, two)
    quiet = run("predict", fitted, "data.csv", "-q")
    assert (quiet.stdout, quiet.stderr) == (plain.stdout, "")
    assert run("predict", fitted / "model.kmargin", "new.csv", "--out", "p.csv").stdout == ""
    pd.testing.assert_frame_equal(pd.read_csv("p.csv")[same], one)


def test_folders_of_others_are_left_alone():
    fit = ["fit", "data.csv", "--target", "outcome", *QUICK, "-q", "--out", "mine"]
    os.mkdir("mine")
    Path("mine/letter.txt").write_text("dear")
    assert_says(run(*fit), "The folder mine holds 'letter.txt', which kmargin did not write.*--force")
    assert run(*fit, "--force").exit_code == 0
    assert names("mine") == sorted([*FILES, "letter.txt"])
    assert run(*fit, "--kernel", "rbf").exit_code == 0, "one of ours is replaced"
    assert names("mine") == ["letter.txt", "model.kmargin", "points.csv", "predictions.csv", "report.html"]
    assert model_file.load("mine").is_kernel


def test_results_never_replace_a_table_that_is_read(fitted):
    table = Path("data.csv").read_bytes()
    for words in (["predict", fitted, "data.csv"], ["path", "data.csv"], ["stability", "data.csv"]):
        assert_says(run(*words, "--out", "./data.csv"), r"data\.csv is a file that this command reads")
    assert Path("data.csv").read_bytes() == table
    assert_says(run("fit", fitted / "features.csv", "--out", fitted), "features.csv is a file that this")


def test_an_error_while_writing_leaves_nothing_and_a_bug_is_not_hidden(monkeypatch):
    def fail(error):
        raise error

    error = OSError(28, "No space left on device", "report.html")
    monkeypatch.setattr(write, "render", lambda *arguments: fail(error))
    result = run("fit", "data.csv", "--target", "outcome", *QUICK)
    assert_says(result, r"report.html: no space left on device\.")
    assert names() == ["data.csv"]
    monkeypatch.setattr(kmargin.cli.commands, "analyse", lambda *arguments: fail(ValueError("a bug")))
    assert isinstance(run("fit", "data.csv", "--target", "outcome").exception, ValueError)


@pytest.mark.parametrize(
    "where",
    [(kmargin.cli.commands, "analyse"), (write, "prediction_frame")],
    ids=["at work", "while writing"],
)
def test_an_interrupt_says_so_and_leaves_nothing(where, interruptible, monkeypatch, capsys):
    monkeypatch.setattr(*where, lambda *arguments: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(sys, "argv", ["kmargin", "fit", "data.csv", "--target", "outcome", *QUICK])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted; nothing was written.\n"
    assert names() == ["data.csv"]


def test_the_script_and_the_module_are_the_same_command(monkeypatch, capsys):
    (script,) = entry_points(group="console_scripts", name="kmargin")
    assert script.load() is main
    monkeypatch.setattr(sys, "argv", ["kmargin", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("kmargin", run_name="__main__")
    assert capsys.readouterr().out == f"kmargin {kmargin.__version__}\n"


def test_the_same_seed_gives_the_same_files_with_any_number_of_jobs():
    for jobs in (1, 2):
        run("fit", "data.csv", "--target", "outcome", *QUICK, "-q", "--out", f"out{jobs}", "--jobs", jobs)
    for name in ("features.csv", "predictions.csv"):
        assert Path(f"out1/{name}").read_text() == Path(f"out2/{name}").read_text()
    one, two = (model_file.load(f"out{jobs}").machine.coef_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_names_cannot_command_the_terminal_nor_run_in_a_spreadsheet():
    evil = "\x1b]0;owned\x07\u202edose"
    frame = make_table().rename(columns={"dose": evil, "age": "=cmd|' /C calc'!A0"})
    frame["outcome"] = frame["outcome"].map({"no": "@no", "yes": "\x1b[2J"})
    frame.to_csv("data.csv", index=False)
    result = run("fit", "data.csv", "--target", "outcome", *QUICK)
    assert result.exit_code == 0, result.output
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", result.output)
    assert "\\x1b]0;owned\\x07\\u202edose" in result.stdout
    assert "'=cmd|" in Path("data-kmargin/features.csv").read_text()
    predictions = run("predict", "data-kmargin", "data.csv", "-q").stdout
    assert "'@no" in predictions
    assert not re.search(r"(^|,)[=@]", predictions, re.MULTILINE)
    bad = run("fit", "data.csv", "--target", "out\x1b[2Jcome\n" + "x" * 5000)
    assert_says(bad, r"out\\x1b\[2Jcome")
    assert len(bad.stderr) < 1000


def test_a_terminal_without_the_letters_gets_them_spelled_out():
    frame = make_table().rename(columns={"dose": "Größe α"})
    frame["outcome"] = frame["outcome"].map({"no": "nö", "yes": "да"})
    frame.to_csv("data.csv", index=False)
    done = CliRunner(charset="ascii").invoke(app, ["fit", "data.csv", "--target", "outcome", *QUICK])
    assert (done.exit_code, done.stderr) == (0, "")
    assert r"Gr\xf6\xdfe \u03b1" in done.stdout
    assert "да" in run("predict", "data-kmargin", "data.csv", "-q").stdout_bytes.decode("utf-8")


def test_a_reader_that_has_read_enough_is_no_error(fitted):
    pd.concat([pd.read_csv("data.csv")] * 300).to_csv("long.csv", index=False)
    command = f"{sys.executable} -m kmargin predict {fitted} long.csv -q | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("row,actual,predicted,decision\n", "")
