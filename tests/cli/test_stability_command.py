"""`kmargin stability`, as a person meets it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kmargin import StabilitySelection
from kmargin.cli.app import app
from kmargin.report.text import halves_sentence
from kmargin.tables.analysis import analyse, measure_stability
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import read_table
from kmargin.tables.search import Settings


@pytest.fixture(autouse=True)
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((80, 8))
    table = pd.DataFrame(numbers, columns=["dose", "age", *(f"noise_{j}" for j in range(6))])
    table["age"] = 50 + 10 * table["age"]
    table["site"] = rng.choice(["north", "south", "west"], 80)
    noise = 0.3 * rng.standard_normal(80)
    table["outcome"] = np.where(2 * numbers[:, 0] - 2 * numbers[:, 1] + noise > 0, "ill", "well")
    table.to_csv("data.csv", index=False)
    return table


def run(*arguments):
    command = ["stability", "data.csv", "--target", "outcome", "--pairs", "10", *arguments]
    return CliRunner().invoke(app, [str(argument) for argument in command])


def test_it_tells_what_is_stable_and_how_much_of_it_is_chance(frame):
    result = run("--drop", "site", "--k", 2)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "2 of 8 features were selected on at least 65 % of 20 random halves of the rows." in words
    assert re.search(r"dose +100 % +stable", result.stdout)
    assert re.search(r"age +100 % +stable", result.stdout)
    numbers = frame.drop(columns=["site", "outcome"])
    selection = StabilitySelection(k=2, n_pairs=10, random_state=0).fit(numbers, frame["outcome"])
    worst, unimodal, r_concave = (f"{bound:.2g}" for bound in selection.bounds_)
    assert selection.threshold_ == 0.65
    assert f"At most {unimodal} of these are expected to be stable by chance" in words
    assert f"{worst} for any distribution, {r_concave} if it is r-concave" in words
    assert "a random choice of 2 of 8 features" in words


def test_the_file_has_a_row_for_each_feature_the_most_frequent_first_and_quiet_prints_nothing():
    result = run("--drop", "site", "--k", 2, "--out", "stability.csv")
    assert "Written to stability.csv: 8 features." in result.stderr
    written = pd.read_csv("stability.csv")
    assert list(written.columns) == ["feature", "frequency", "always_in", "stable"]
    assert set(written["feature"][:2]) == {"dose", "age"}
    assert written["frequency"].is_monotonic_decreasing
    assert written["stable"].tolist() == [True, True] + [False] * 6
    quiet = run("--drop", "site", "--k", 2, "--quiet", "--out", "again.csv")
    assert (quiet.exit_code, quiet.output) == (0, "")
    pd.testing.assert_frame_equal(pd.read_csv("again.csv"), written)


def test_what_is_accepted_by_chance_sets_the_threshold():
    result = run("--drop", "site", "--k", 2, "--max-false", 0.2)
    dataset = prepare(read_table(Path("data.csv")), Roles("outcome", drop=["site"]))
    stability = measure_stability(dataset, Settings(), k=2, n_pairs=10, max_false=0.2)
    share = f"{100 * stability.selection.threshold_:.4g} %"
    assert f"selected on at least {share} of 20" in " ".join(result.stdout.split())
    assert stability.selection.bounds_.unimodal <= 0.2
    assert len(stability.selection.frequencies_) == 8


REPORTED = {
    2: "Of the features chosen on 65 % or more, at most one is expected to have been selected by chance",
    7: "With 7 of 8 features chosen each time, several may reach even 100 % by chance",
}


@pytest.mark.parametrize("k", REPORTED)
def test_a_report_says_from_which_share_of_halves_on_chance_is_unlikely(k):
    dataset = prepare(read_table(Path("data.csv")), Roles("outcome", drop=["site"]))
    analysis = analyse(dataset, Settings(k=k, Cs=[0.1], cv=3, repeats=1, pairs=10))
    assert REPORTED[k] in halves_sentence(analysis)
