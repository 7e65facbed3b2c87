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
    assert f"At most {unimodal} of these are expected to have been selected by chance" in words
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


def test_texts_are_encoded_counted_as_variables_and_kept_if_asked():
    result = run("--encode", "onehot", "--keep", "site", "--k", 3, "--out", "stability.csv")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "2 of 8 variables were selected" in words
    assert "Always in the model, as requested by --keep: 'site'." in words
    written = pd.read_csv("stability.csv").set_index("feature")
    assert written.loc["site=north", ["variable", "always_in"]].tolist() == ["site", True]
    assert written.loc[written["stable"] & ~written["always_in"]].index.tolist() == ["dose", "age"]


def test_gaps_are_filled_in_by_the_rows_of_each_half(frame):
    frame.loc[[3, 50], "noise_1"] = np.nan
    frame.drop(columns="site").to_csv("data.csv", index=False)
    assert "--impute median" in run().stderr
    result = run("--impute", "median", "--k", 2)
    assert result.exit_code == 0, result.output
    assert re.search(r"dose +100 % +stable", result.stdout)


def test_what_is_accepted_by_chance_sets_the_threshold():
    result = run("--drop", "site", "--k", 2, "--max-false", 0.2)
    dataset = prepare(read_table(Path("data.csv")), Roles("outcome", drop=["site"]))
    stability = measure_stability(dataset, Settings(), k=2, n_pairs=10, max_false=0.2)
    share = f"{100 * stability.selection.threshold_:.4g} %"
    assert f"selected on at least {share} of 20" in " ".join(result.stdout.split())
    assert stability.selection.bounds_.unimodal <= 0.2
    assert len(stability.frequencies) == 8


REPORTED = {
    2: "Of the features chosen on 65 % or more, at most one is expected to have been selected by chance",
    7: "With 7 of 8 features chosen each time, several may reach even 100 % by chance",
}


@pytest.mark.parametrize("k", REPORTED)
def test_a_report_says_from_which_share_of_halves_on_chance_is_unlikely(k):
    dataset = prepare(read_table(Path("data.csv")), Roles("outcome", drop=["site"]))
    analysis = analyse(dataset, Settings(k=k, Cs=[0.1], cv=3, repeats=1, pairs=10))
    assert REPORTED[k] in halves_sentence(analysis)


def test_noise_alone_has_nothing_stable(frame):
    frame["outcome"] = np.random.default_rng(1).permutation(frame["outcome"].to_numpy())
    frame.drop(columns="site").to_csv("data.csv", index=False)
    given, default = (" ".join(run("--k", 1, *more).stdout.split()) for more in (("--threshold", 1), ()))
    assert "None of 8 features was selected on at least 100 % of 20 random halves" in given
    assert (
        "Without --threshold it is the lowest proportion at which at most one is expected by chance" in given
    )
    assert "expected to have been selected by chance" not in given
    assert "None of 8 features was selected" in default
    assert "A larger --max-false accepts more features by chance and lowers this proportion." in default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", 0], "n_pairs=0 is not a number of pairs"),
        (["--threshold", 0.5], "threshold=0.5 is not a proportion above one half"),
        (["--max-false", 0], "max_false=0.0 is not an expected number"),
        (["--threshold", 0.8, "--max-false", 1], "--threshold 0.8 and --max-false 1 cannot be combined"),
        (["--k", 8], "--k 8 of 8 features leaves nothing to choose. Use 1 to 7."),
        (["--k", 0], "--k 0 of 8 features leaves nothing to choose"),
        (["--k", 1, "--keep", "age"], "of which --keep fixes 1, leaves nothing to choose. Use 2 to 7."),
        (["--C", "-1"], "C=-1.0 is not a positive weight of the loss"),
        (["--jobs", 0], "--jobs 0 is not a number"),
        (["--seed", -1], "--seed -1 is not a seed"),
        (["--out", "table.txt"], "table.txt does not end in .csv"),
        (["--avoid", "agee"], "--avoid names 'agee', which is not a feature. Did you mean 'age'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options, message):
    assert_refused(run("--drop", "site", *options), message)


def assert_refused(result, message):
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_a_class_of_one_row_is_refused_in_a_sentence(frame):
    frame.loc[0, "outcome"] = "unknown"
    frame.drop(columns="site").to_csv("data.csv", index=False)
    assert_refused(run(), "Class 'unknown' has only one row, but each half needs one")
