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


def test_fit_prints_and_writes_the_features_the_accuracy_and_the_cost_of_one_more_or_fewer():
    result = run("fit", "data.csv", "--target", "outcome", *QUICK, "--id", "z")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert re.search(
        r"2 of 4 features distinguish no from yes with \d\d\.\d % accuracy on held-out rows", result.stdout
    )
    assert re.search(r"dose +\+\d\.\d{3} +\+\d\.\d+ +yes +3 of 3", result.stdout)
    assert re.search(r"One feature fewer \(1\), without 'age', costs \d+\.\d points", result.stdout)
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert names("data-kmargin") == FILES
    data, predictions = pd.read_csv("data.csv"), pd.read_csv("data-kmargin/predictions.csv")
    assert list(predictions.columns) == ["row", "id", "actual", "predicted", "fold", "decision"]
    assert predictions["actual"].tolist() == data["outcome"].tolist()
    assert predictions["id"].tolist() == data["z"].tolist()
    assert ((predictions["decision"] > 0) == (predictions["predicted"] == "yes")).all()
    assert predictions["fold"].value_counts().tolist() == [20] * 3
    features = pd.read_csv("data-kmargin/features.csv").set_index("feature")
    assert set(features.index[features["chosen"]]) == {"age", "dose"}
    assert features.loc["dose", "weight_per_unit"] == pytest.approx(
        features.loc["dose", "weight"] / data["dose"].std(ddof=0)
    )
    assert features["frequency"].between(0, 1).all()
    assert features["frequency"].max() > 0.5


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


@pytest.mark.drawn
@pytest.mark.parametrize("options", [["--kernel", "rbf"], ["--multi-class", "ovr"], []], ids=str)
def test_more_classes_and_kernels_have_a_page_too(options):
    make_table(n_classes=3).to_csv("three.csv", index=False)
    result = run("fit", "three.csv", "--target", "outcome", *QUICK, *options)
    assert result.exit_code == 0, result.output
    page = Path("three-kmargin/report.html").read_text()
    has_kernel = "--kernel" in options
    for part in ("scores", "matrix", "neighbours", "settings", "kept" if has_kernel else "weights"):
        assert f'id="{part}"' in page
    assert "which is optimistic on average" in page
    assert ("points.csv" if has_kernel else "features.csv") in names("three-kmargin")
    again = run("predict", "three-kmargin", "three.csv")
    assert again.exit_code == 0
    assert again.stdout.startswith("row,actual,predicted,decision: low,decision: mid,decision: top\n")


@pytest.mark.drawn
def test_everything_at_once_goes_through():
    frame = make_table()
    frame["hue"] = ["red", "blue", None] * 20
    frame["w"] = [1, 2] * 30
    frame.loc[::9, "age"] = None
    frame.to_csv("data.csv", index=False)
    options = "--encode onehot --impute median --weights w --id z --drop noise --balanced --no-standardize"
    result = run("fit", "data.csv", "--target", "outcome", *QUICK, *options.split(), "--scoring", "f1_macro")
    assert result.exit_code == 0, result.output
    page = Path("data-kmargin/report.html").read_text()
    for setting, value in (
        ("score", "f1_macro"),
        ("scaling", "none"),
        ("missing values", "replaced by medians"),
        ("text columns", "1, one feature per value"),
        ("row weights", "from a column"),
        ("class weights", "balanced"),
    ):
        assert f'<td>{setting}</td><td class="name">{value}</td>' in page
    model = model_file.load("data-kmargin")
    assert model.encoding.feature_names == ["age", "dose", "x y", "hue=blue", "hue=red"]
    assert model.scaling.medians[0] == frame["age"].median()
    assert not model.scaling.mean.any()
    predicted = run("predict", "data-kmargin", "data.csv", "--id", "z")
    table = pd.read_csv(pd.io.common.StringIO(predicted.stdout))
    assert table["id"].tolist() == pd.read_csv("data.csv")["z"].tolist()
    share = 100 * (table["predicted"] == frame["outcome"]).mean()
    assert f"{share:.1f} % of 60 rows" in predicted.stderr


def test_predictions_do_not_depend_on_the_order_of_columns_or_on_further_ones(fitted):
    frame = pd.read_csv("data.csv")
    frame[frame.columns[::-1]].assign(more=1).drop(columns="outcome").to_csv("new.csv", index=False)
    plain, other = run("predict", fitted, "data.csv"), run("predict", fitted, "new.csv")
    assert re.search(r"\d\d\.\d % of 60 rows agree with column 'outcome'", plain.stderr)
    assert other.stderr.endswith("Note: 1 column ignored: 'more'.\n")
    same = ["row", "predicted", "decision"]
    one, two = (pd.read_csv(pd.io.common.StringIO(r.stdout))[same] for r in (plain, other))
    pd.testing.assert_frame_equal(one, two)
    quiet = run("predict", fitted, "data.csv", "-q")
    assert (quiet.stdout, quiet.stderr) == (plain.stdout, "")
    assert run("predict", fitted / "model.kmargin", "new.csv", "--out", "p.csv").stdout == ""
    pd.testing.assert_frame_equal(pd.read_csv("p.csv")[same], one)


def test_a_path_is_printed_and_written():
    arguments = ["--target", "outcome", "--ks", "1,2,5", "--out", "path.csv", "--plot", "path.svg"]
    result = run("path", "data.csv", *arguments)
    assert result.exit_code == 0, result.output
    assert re.search(r"2 +2 +9\d\.\d % .*\+(age|dose)", result.stdout)
    assert pd.read_csv("path.csv")["k"].tolist() == [1, 2, 5]
    assert "<svg" in Path("path.svg").read_text()
    assert result.stderr.endswith("Written to path.csv.\nWritten to path.svg.\n")
    assert "asks for" not in result.output
    result = run("path", "data.csv", "--target", "outcome", "--ks", "2", "--cv", "0", "--out", "q.csv")
    assert "--ks 2 asks for 2 values of k. For k = 2 alone, add a comma: --ks 2," in result.stdout
    assert "cv_accuracy" not in pd.read_csv("q.csv")


def rewrite(**columns):
    make_table().assign(**columns).to_csv("data.csv", index=False)


MISTAKES = {
    "a missing target": (lambda: None, ["--target", "outcom"], "no column 'outcom'.* 'outcome'"),
    "text columns": (lambda: rewrite(hue="red"), [], r"'hue' \(such as 'red'\).*--encode onehot"),
    "missing values": (lambda: rewrite(z=[None, 1.0] * 30), [], r"30 values are missing.*--impute median"),
    "no file": (lambda: os.remove("data.csv"), [], "There is no file data.csv"),
    "no number": (lambda: None, ["--C", "small"], "--C small is not a number"),
    "no whole number": (
        lambda: None,
        ["--k", "two"],
        "Invalid value for '--k': 'two' is not a whole number.*See kmargin fit --help",
    ),
    "no such option": (lambda: None, ["--tagret", "x"], "No such option: --tagret .*See kmargin fit --help"),
    "no list": (lambda: None, ["--ks", "a,b"], "--ks a,b is not a whole number, nor a list of such"),
    "no gamma": (lambda: None, ["--kernel", "rbf", "--gamma", "wide"], "--gamma wide is not a number"),
    "one value": (lambda: None, ["--ks", "3"], "--ks 3 is a single value of k.*Use --k 3 to fix it, or list"),
    "two answers": (lambda: None, ["--k", "1", "--ks", "1,2"], "--k 1 and --ks 1,2 cannot be combined"),
    "a file for a folder": (lambda: None, ["--out", "data.csv"], "data.csv is a file"),
    "no place": (lambda: None, ["--out", "no/where"], "There is no folder no to write where into"),
}


@pytest.mark.parametrize(("damage", "options", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_one_sentence_and_leave_nothing_behind(damage, options, message):
    damage()
    before = names()
    assert_says(run("fit", "data.csv", "--target", "outcome", *options), message)
    assert names() == before


def test_what_a_model_needs_and_a_table_lacks_is_named(fitted):
    pd.read_csv("data.csv").rename(columns={"dose": "dosis"}).to_csv("new.csv", index=False)
    result = run("predict", fitted, "new.csv")
    assert_says(result, "lacks 1 column of the 2 it needs: 'dose'. Did you mean 'dosis' for 'dose'")
    assert result.stdout == ""
    assert_says(run("predict", "nowhere", "new.csv"), "There is no model at nowhere")
    assert_says(run("predict", "data.csv", "new.csv"), "data.csv is not a kmargin model")
    assert_says(run("predict", fitted, "data.csv", "--out", "p.xlsx"), "does not end in .csv")
    assert_says(run("predict", fitted, "data.csv", "--id", "x"), "--id: the table has no column 'x'")


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
    result = run("predict", "data-kmargin", "data.csv", "-q")
    assert "да" in result.stdout_bytes.decode("utf-8")


def test_a_reader_that_has_read_enough_is_no_error(fitted):
    pd.concat([pd.read_csv("data.csv")] * 300).to_csv("long.csv", index=False)
    command = f"{sys.executable} -m kmargin predict {fitted} long.csv -q | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("row,actual,predicted,decision\n", "")
