"""`kmargin reproduce` and `kmargin data` as a person would call them."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kmargin.cli import make_app
from kmargin.datasets import load_iris, make_spiral

runner = CliRunner()
app = make_app()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_reproduce_says_first_where_the_report_will_be(tmp_path):
    done = runner.invoke(
        app, ["reproduce", "table3", "--datasets", "iris", "--solvers", "mm,sd", "--quick", "--jobs", "1"]
    )
    assert done.exit_code == 0
    first = done.stderr.splitlines()[0]
    assert first.endswith(str(tmp_path / "kmargin-paper-quick" / "report.html"))
    assert done.stdout == "Report: kmargin-paper-quick/report.html\n"
    table = pd.read_csv("kmargin-paper-quick/table3.csv")
    assert list(table["solver"]) == ["mm", "sd"]
    assert list(table["test_paper"]) == [81.66, 81.33]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("reproduce table9", "There is no part 'table9'. Use figure1"),
        ("reproduce table3 --datasets irsi", "There is no dataset 'irsi'. Use TCGA"),
        ("reproduce table3 --solvers svm", "There is no solver 'svm'. Use mm, sd, exchange"),
        ("reproduce table3 --protocol random", "There is no protocol 'random'. Use paper, shuffled"),
        ("data get letters", "There is no data set 'letters'. Use synthetic, iris, letter-recognition"),
        ("data get iris --out iris.txt", ".csv"),
    ],
)
def test_wrong_words_get_one_sentence_and_exit_code_2(arguments, message):
    done = runner.invoke(app, arguments.split())
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert os.listdir() == []


def test_a_data_set_that_cannot_be_fetched_stops_the_run_before_it_starts(monkeypatch, tmp_path):
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("kmargin.datasets.loaders.fetch", no_network)
    done = runner.invoke(app, ["reproduce", "table3", "--datasets", "iris,splice"])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "Error: no network"
    assert not (tmp_path / "kmargin-paper").exists()


def no_network(file):
    from kmargin.datasets import DownloadError

    raise DownloadError("no network")


def test_other_settings_are_kept_out_of_a_folder():
    assert runner.invoke(app, ["reproduce", "figureS1", "--quick", "--out", "here"]).exit_code == 0
    done = runner.invoke(app, ["reproduce", "figureS1", "--out", "here"])
    assert done.exit_code == 2
    assert "Give another folder with --out" in done.stderr


def test_a_run_that_is_interrupted_says_how_to_go_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "kmargin",
        *["reproduce", "table2", "--quick", "--jobs", "2", "--out", "here"],
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = tmp_path / "here" / "rows.csv"
    while process.poll() is None and not (rows.exists() and rows.read_bytes().count(b"\n") > 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in words
    assert "the same command goes on" in words.splitlines()[-1]


def test_data_list_names_all_of_table_1():
    done = runner.invoke(app, ["data", "list"])
    assert done.exit_code == 0
    assert len([line for line in done.stdout.splitlines() if any(c.isdigit() for c in line)]) == 8
    assert "comes with kmargin" in done.stdout


def test_data_get_writes_a_csv_that_fit_can_read():
    done = runner.invoke(app, ["data", "get", "iris"])
    assert "kmargin fit iris.csv --target class" in done.stdout
    frame = pd.read_csv("iris.csv")
    np.testing.assert_array_equal(frame.iloc[:, :4], load_iris().data)
    assert runner.invoke(app, ["data", "get", "spiral", "--out", "s.csv", "--seed", "3"]).exit_code == 0
    np.testing.assert_allclose(pd.read_csv("s.csv").iloc[:, :2], make_spiral(random_state=3)[0])
