"""Numbers and sentences of the report and of the command line, word for word."""

from types import SimpleNamespace as Made

import numpy as np
import pytest

from kmargin.model_selection.scores import Interval, ScoreTable
from kmargin.report import text

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
    (text.change_text, -0.0126, "−1.3", "−0.013"),
    (text.change_text, -0.0004, "±0", "±0"),
    (text.amount_text, -0.01, "1.0 point", "0.010"),
    (text.amount_text, 0.012, "1.2 points", "0.012"),
    (text.amount_text, -0.0001, "0 points", "0"),
    (text.error_text, 0.0123, "1.2", "0.012"),
]


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
