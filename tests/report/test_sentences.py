"""Numbers, sentences and rows of tables of the report and of the command line, word for word.
What terminals, pages, figures and CSV files show is stored in `tests/stored/pages` (see `helpers/pages.py`).
"""

from types import SimpleNamespace as Made

import jinja2
import numpy as np
import pandas as pd
import pytest
from pages import NAMES, PAPER, agree, difference, lasting, read_store, see, show

from kmargin.cli import terminal
from kmargin.model_selection.scores import Interval, ScoreTable
from kmargin.report import html, page, text
from kmargin.tables.analysis import Difference, Neighbour, Step

NUMBERS = [
    (text.number, [9999.4, 1e4, -12345.6, 1e9, 0.12345], ["9999", "10,000", "−12,346", "1e+09", "0.1235"]),
    (text.relative_change_text, [0.999, 1.0, -0.05], ["+99.9\u00a0%", "×\u00a02.0", "−5.0\u00a0%"]),
    (text.grid_text, [range(1, 9), range(1, 10)], ["1, 2, 3, 4, 5, 6, 7, 8", "9 values from 1 to 9"]),
    (text.score_name, ["roc_auc", "f1_macro"], ["area under the ROC curve", "f1 macro"]),
]  # fmt: skip
BY_SCORE = [  # of accuracy, and of another score
    (text.score_text, 0.1234, "12.3 %", "0.123"),
    (text.interval_text, Interval(-0.1, 1.2), "0.0 to 100.0 %", "-0.100 to 1.200"),
    (text.interval_text, Interval(0.25, 0.5), "25.0 to 50.0 %", "0.250 to 0.500"),
    (text.change_text, -0.0126, "−1.3", "−0.013"), (text.change_text, -0.0004, "±0", "±0"),
    (text.amount_text, -0.01, "1.0 point", "0.010"), (text.amount_text, 0.012, "1.2 points", "0.012"),
    (text.amount_text, -0.0001, "0 points", "0"), (text.error_text, 0.0123, "1.2", "0.012"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "values", "expected"), NUMBERS)
def test_numbers_are_short(function, values, expected):
    assert [function(value) for value in values] == expected


@pytest.mark.parametrize(("function", "value", "in_percent", "otherwise"), BY_SCORE)
def test_shares_are_in_per_cent_and_their_differences_in_points(function, value, in_percent, otherwise):
    assert [function(name, value) for name in ("accuracy", "f1")] == [in_percent, otherwise]


def test_scores_that_are_never_positive_have_intervals_up_to_zero():
    assert text.interval_text("neg_log_loss", Interval(-0.5, 0.1)) == "-0.500 to 0.000"


def analysis(select="1se", n_repeats=4, has_settled=True, chosen=(), n_classes=2, **more):
    names = list("abcde")[:n_classes]
    return Made(
        settings=Made(select=select, tolerance=0.02, scoring="accuracy", k=None),
        choice=Made(
            **{"k": 3, "C": 0.1, "n_repeats": n_repeats, "has_settled": has_settled, "score": 0.85},
            table=ScoreTable(np.array([[[0.9, 0.85]]]), [10.0], [7, 3], 10),
            first=Made(fits=[()] * 5),
            had_alternatives=True,
        ),
        assessment=Made(is_nested=True, chosen=[{"k": k} for k in chosen], folds=[()] * 4, **more),
        model=Made(machine=Made(classes_=np.array(names), support_=[1, 4]), is_kernel=True),
        dataset=Made(y=np.array([*names, "a", "a", "a"])),
    )


HIGHEST = "of the highest score (90.0 % at k = 7, C = 10; `--select best` takes that), over"
SENTENCES = [
    (text.choice_text, {}, f"within one standard error {HIGHEST} 4 repeats of 5-fold"),
    (text.choice_text, {"select": "tolerance", "n_repeats": 1}, f"within 0.02 {HIGHEST} 5 folds."),
    (text.choice_text, {"select": "best", "has_settled": False}, "tried, over 4 repeats of 5-fold"),
    (text.choice_text, {"select": "best", "has_settled": False}, "More repeats might choose another k"),
    (text.fold_choices_text, {"chosen": [9, 2, 3, 3, 4]}, "a fifth of the rows, k was 2, 3, 3, 4 and 9."),
    (text.fold_choices_text, {"chosen": [9, 2, 3]}, "in each of 3 outer folds, k was 2, 3 and 9."),
    (text.p_value_text, {"p_value": None}, ""),
    (text.p_value_text, {"p_value": 0.03, "n_permutations": 99}, "searches with permuted labels, 2"),
    (text.task, {"n_classes": 4}, "distinguish a, b, c and d"),
    (text.task, {"n_classes": 5}, "distinguish 5 classes"),
    (text.class_counts, {"n_classes": 4}, "4 a, 1 b, 1 c, 1 d"),
    (text.class_counts, {"n_classes": 5}, "5 classes of 1 to 4"),
]


@pytest.mark.parametrize(("function", "found", "words"), SENTENCES)
def test_sentences_say_what_was_found(function, found, words):
    assert words in function(analysis(**found)) if words else not function(analysis(**found))


def test_the_share_of_halves_that_chance_does_not_reach_is_said_if_there_is_one():
    for bound, words in ((1, "Of the features chosen on 65 % or more, at most one is expected to have"),
                         (1.1, "With 7 of 8 features chosen each time, several may reach")):  # fmt: skip
        selection = Made(threshold_=0.65, q_=7.0, n_candidates_=8, n_pairs=10, bounds_=Made(unimodal=bound))
        counted = Made(counted=Made(unit_label="features"))
        assert words in text.halves_sentence(Made(stability=Made(selection=selection), dataset=counted))


def near(k, change, enters=(), leaves=()):
    return Neighbour(k, 0.85 + change, Difference(change, 0.02), [*enters], [*leaves])


NEIGHBOURS = [  # a neighbour of k = 3, and what is said of it
    (near(2, -0.01, "", "abc"), "One feature fewer (2), without 'a', 'b', 'c', costs 1.0 point"),
    (near(4, 0.02, "abcd"), "One feature more (4) gains 2.0 points"),
    (near(5, 0.0, "ab", "c"), "2 features more (5) change nothing"),
    (near(1, 0.02, "c", "ab"), "2 features fewer (1) gain 2.0 points"),
]


def test_neighbours_are_described_by_up_to_four_features_and_judged_by_the_standard_error():
    found = analysis()
    found.model.is_kernel, found.unit_label, found.is_shared = False, "features", True
    for neighbour, words in NEIGHBOURS:
        assert text.neighbour_text(found, neighbour) == f"{words} (standard error 2.0)."
    found.neighbours = near(2, -0.021), near(1, -0.02), near(5, 0.02), near(7, 0.021, "abcd", "efghi")
    rows = page.neighbour_rows(found)
    kinds = [(1, ""), (2, "bad"), (3, None), (5, ""), (7, "good")]
    assert [(row["k"], row.get("kind")) for row in rows] == kinds
    assert rows[-1]["swaps"] == "+\u00a0a, b, c, d; −\u00a0e, f, g, h and 1 more"


STRIPS = [  # a score, its interval, and both on a bar
    ("accuracy", 0.5, (-0.1, 1.2), ("0.0", "100.0", "0 %")), ("f1", 1.0, (0.5, 0.75), ("50.0", "25.0", "0")),
    ("f1", 0.0, (0.0, 0.1), ("0.0", "10.0", "0")), ("r2", 1.01, (1, 2), None), ("r2", -0.01, (-1, 0), None),
    ("neg_log_loss", 0.0, (-1, 0), None),
]  # fmt: skip


@pytest.mark.parametrize(("scoring", "score", "ends", "expected"), STRIPS)
def test_scores_from_zero_to_one_are_shown_on_a_bar(scoring, score, ends, expected):
    assessed = Made(score=score, interval=Interval(*ends), guessing=0.3)
    strip = page.score_strip(Made(settings=Made(scoring=scoring), assessment=assessed))
    assert (strip and (strip["low"], strip["width"], strip["ends"][0])) == expected
    assert strip is None or (strip["score"], strip["guessing"]) == (f"{100 * score:.1f}", "30.0")


def test_tables_show_ten_wrong_rows_and_three_cheaper_replacements_with_their_shares_of_the_largest_cost():
    names = ["row", "id", "actual", "predicted", "fold", "decision", "probability of its class"]
    shown = page.worst_rows(pd.DataFrame(np.arange(77).reshape(11, 7), columns=names))
    assert shown["row"].tolist() == [*range(0, 70, 7)]
    assert [name for name in names if name not in shown] == ["fold", "decision"]
    others, counted = [Made(columns=[j], cost=0.01 * j) for j in (1, 2, 3, 4)], Made(labels="abcde")
    counted.labels_of = lambda places: "abc"
    for a, b, shares, listed in (
        (0.03, 0.12, [0.25, 1], ["b (+1.0\u00a0%), c (+2.0\u00a0%)", "none"]), (0, 0, [0, 0], ["none"] * 2),
        (0.05, 0.05, [1, 1], ["b (+1.0\u00a0%), c (+2.0\u00a0%), d (+3.0\u00a0%)", "none"]),
    ):  # fmt: skip
        worths = {"a": Made(cost=a, stand_ins=others), "b": Made(cost=b, stand_ins=[])}
        rows = page.drop_costs(Made(worths=worths, dataset=Made(counted=counted)), [0, 1])
        assert [row["share"] for row in rows] == shares
        assert [row["replacements"] for row in rows] == listed


@pytest.mark.parametrize(("n_features", "n_classes", "n_boxes"), [(9, 2, 9), (10, 12, 9), (2, 13, 0)])
def test_up_to_nine_features_have_boxes_and_up_to_twelve_classes(n_features, n_classes, n_boxes):
    names, codes = np.array([*"abcdefghijklm"][:n_classes]), np.arange(2 * n_classes) // 2
    X, coef = np.tile(1.0 * codes[:, None], (1, n_features)), np.ones((1, n_features))
    X[:, 0] = 5.0
    features = [f"f{j}" for j in range(n_features)]
    dataset = Made(X=X, y=names[codes], counted=Made(names=features, labels=features))
    model = Made(machine=Made(coef_=coef, classes_=names), classes_=names)
    boxes = page.feature_boxes(Made(frequency=None, model=model, dataset=dataset))
    assert [box["name"] for box in boxes] == features[:n_boxes]
    for box in boxes:
        ends = [50.0] * n_classes if box["name"] == "f0" else np.linspace(0, 100, n_classes)
        np.testing.assert_allclose([line["at"][2] for line in box["lines"]], ends)


def test_long_words_may_break_and_a_value_that_is_missing_is_an_error():
    names = ["", "x" * 20, "x" * 20 + " y", "y " + "x" * 21]
    assert [html.name_class(name) for name in names] == ["name", "name", "name", "name anywhere"]
    assert html.labelled("<svg ><svg >", "`k`") == '<svg role="img" aria-label="k" ><svg >'
    with pytest.raises(jinja2.UndefinedError):
        html.environment().from_string("{{ absent }}").render()


def test_a_terminal_shows_short_words_and_four_changes_and_counts_the_rest(capsys):
    terminal.say(f"\x1b {'x' * 199} {'y' * 200}")
    assert capsys.readouterr().err == f"\\x1b {'x' * 199} {'y' * 150}...\n"
    four = Step(4, [*"abcd"], [], 0.5, 1.0, [*"abc"], ["e"], None, None)
    five = Step(5, [*"abcde"], [], 0.5, 1.0, [*"abc"], ["e", "f"], 0.75, 0.1)
    terminal.show_steps([four, five], "accuracy")
    shown = capsys.readouterr().out.split("\n")
    assert shown[3].split() == ["4", "4", "50.0", "%", "1", "+a,", "+b,", "+c,", "−e"]
    assert shown[4].split()[4:] == ["75.0", "%", "1", "+a,", "+b,", "+c,", "−e", "and", "1", "more"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "paper"])
def test_what_people_see_is_what_is_stored(name, tmp_path):
    assert difference(show(name, tmp_path), read_store(name)) == ""


@pytest.mark.skipif(not PAPER.exists(), reason="the rows of the experiments are not here")
def test_the_committed_rows_of_the_paper_make_the_committed_tables_and_page_and_the_stored_figures(tmp_path):
    assert difference(show("paper", tmp_path), read_store("paper")) == ""
    for path in sorted(tmp_path.glob("table*.csv")):
        assert difference(path.read_text(), (PAPER / path.name).read_text()) == "", path.name
    pages = ((folder / "report.html").read_text(encoding="utf-8") for folder in (tmp_path, PAPER))
    assert difference(*(lasting(see(page, has_drawings=False), tmp_path) for page in pages)) == ""


def test_words_are_equal_and_numbers_nearly():
    alike = [("a", "a"), ("1.0", "1.001"), ("0.12", "0.13"), ("−0.001", "0.000")]
    for found, stored in [*alike, ("1000", "1001"), ("1e-9", "0")]:
        assert agree(found, stored), (found, stored)
    for found, stored in (("a", "b"), ("1", "2"), ("0.12", "0.14"), ("−1", "1"), ("+1", "1"), ("1", None)):
        assert not agree(found, stored), (found, stored)
