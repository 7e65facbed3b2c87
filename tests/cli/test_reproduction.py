"""`kmargin reproduce` and `kmargin data` as a person would call them."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import kmargin.cli.reproduce
from kmargin.cli.app import app
from kmargin.datasets import TABLE_1, DownloadError, load_iris, make_spiral
from kmargin.paper.run import Request

runner = CliRunner()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_reproduce_says_first_where_the_report_will_be(tmp_path):
    done = runner.invoke(
        app, ["reproduce", "table3", "--datasets", "iris", "--solvers", "mm,sd", "--quick", "--jobs", "1"]
    )
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].endswith(str(tmp_path / "kmargin-paper-quick" / "report.html"))
    told = " ".join(done.stdout.split())
    assert told.endswith("Report: kmargin-paper-quick/report.html")
    assert "A quick run: 1 of the paper's 8 data sets, 3 of 10 folds, 10 of 100 starts" in told
    assert "too small to tell whether the paper's results hold up" in told
    page = Path("kmargin-paper-quick/report.html").read_text()
    for text in (told, page):
        assert "results hold up?" not in text
        assert "In part" not in text
    table = pd.read_csv("kmargin-paper-quick/table3.csv")
    assert list(table["solver"]) == ["mm", "sd"]
    assert list(table["test_paper"]) == [81.66, 81.33]
    for line in table.itertuples():
        assert f"{line.solver.upper()} {line.parameter:g} {line.test:.2f} {line.test_paper:.2f}" in told


def test_a_data_set_that_cannot_be_fetched_stops_the_run_before_it_starts(monkeypatch, tmp_path):
    def fail(file):
        raise DownloadError("no network")

    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("kmargin.datasets.loaders.fetch", fail)
    done = runner.invoke(app, ["reproduce", "table3", "--datasets", "iris,splice"])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "Error: no network"
    assert not (tmp_path / "kmargin-paper").exists()


def test_other_settings_are_kept_out_of_a_folder():
    assert runner.invoke(app, ["reproduce", "figureS1", "--quick", "--out", "here"]).exit_code == 0
    done = runner.invoke(app, ["reproduce", "figureS1", "--out", "here"])
    assert done.exit_code == 2
    assert "Give another folder with --out" in done.stderr


def test_a_run_that_is_interrupted_says_how_to_go_on(monkeypatch):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(kmargin.cli.reproduce, "reproduce", interrupt)
    done = runner.invoke(app, ["reproduce", "table2", "--quick", "--out", "here"])
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1].startswith("Stopped. What was finished is in here; the same command")


def test_data_get_writes_a_csv_that_fit_can_read_and_the_seed_changes_simulated_data_only():
    assert "kmargin fit iris.csv --target class" in runner.invoke(app, ["data", "get", "iris"]).stdout
    np.testing.assert_array_equal(pd.read_csv("iris.csv").iloc[:, :4], load_iris().data)
    for name in ("spiral", "iris"):
        assert (
            runner.invoke(app, ["data", "get", name, "--out", f"{name}3.csv", "--seed", "3"]).exit_code == 0
        )
    np.testing.assert_allclose(pd.read_csv("spiral3.csv").iloc[:, :2], make_spiral(random_state=3)[0])
    assert pd.read_csv("iris3.csv").equals(pd.read_csv("iris.csv"))


def test_a_data_set_is_in_the_cache_if_all_its_files_are(monkeypatch, tmp_path):
    monkeypatch.setenv("KMARGIN_DATA", str(tmp_path))
    for file in TABLE_1["optdigits"].files:
        assert re.search("optdigits .* to be downloaded", runner.invoke(app, ["data", "list"]).stdout)
        (tmp_path / file.name).touch()
    assert re.search("optdigits .* in the cache", runner.invoke(app, ["data", "list"]).stdout)


REQUESTS = {
    "": {}, "table3": {"part": "table3"},
    "table3 --datasets iris,splice": {"part": "table3", "datasets": ("iris", "splice")},
    "table3 --solvers mm,l1r": {"part": "table3", "solvers": ("mm", "l1r")},
    "table3 --protocol shuffled": {"part": "table3", "protocols": ("shuffled",)}, "--quick": {"quick": True},
    "table3 --seed 5": {"part": "table3", "seed": 5}, "table3 --jobs 3 --out here -q": {"part": "table3"},
}  # fmt: skip


@pytest.mark.parametrize(("words", "wanted"), REQUESTS.items())
def test_options_of_reproduce_reach_the_run(monkeypatch, words, wanted):
    calls = []
    monkeypatch.setattr(kmargin.cli.reproduce, "reproduce", lambda *args, **more: calls.append((*args, more)))
    done = runner.invoke(app, ["reproduce", *words.split()])
    assert done.exit_code == 0, done.output
    request, folder, options = calls[0]
    expected = Request(**{"part": "all"} | wanted)
    for name in ("parts", "datasets", "solvers", "protocols", "settings", "command"):
        assert getattr(request, name) == getattr(expected, name)
    if "--out" in words:
        assert (str(folder), options) == ("here", {"n_jobs": 3, "verbose": 0})
        assert done.stdout == "Report: here/report.html\n"
    else:
        assert str(folder) == ("kmargin-paper-quick" if "--quick" in words else "kmargin-paper")
        assert options == {"n_jobs": os.cpu_count(), "verbose": 1}
