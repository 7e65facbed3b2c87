"""Tables whose scores would be too high are warned of, and advice comes with the option that helps."""

import numpy as np
import pandas as pd
import pytest
from tables_data import make_table

from kmargin.core.validation import InputError
from kmargin.report.page import together_text
from kmargin.tables import pitfalls
from kmargin.tables.columns import Encoding
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.pitfalls import join_groups
from kmargin.tables.read import Table
from kmargin.tables.search import Settings, TableSearch

FRAME = make_table(120)
IS_YES = (FRAME["outcome"] == "yes").to_numpy()
RNG = np.random.default_rng(0)


def warnings_of(frame, **roles):
    return prepare(Table(frame), Roles("outcome", **roles)).warnings


GENES = pd.DataFrame(RNG.standard_normal((12, 1_000))).add_prefix("g")
ANSWERS = pd.DataFrame(RNG.integers(0, 3, (120, 4)), columns=[*"pqrs"]).assign(outcome=FRAME["outcome"])
SILENT = {
    "two classes": FRAME, "three classes": make_table(200, n_classes=3),
    "what few rows reach by chance": GENES.assign(outcome=["a", "b"] * 6),
    "classes far apart": FRAME.assign(**{f"gene{j}": 10 * IS_YES + RNG.random(120) for j in range(5)}),
    "a number of a patient": FRAME.assign(patient_age=RNG.integers(20, 60, 120)),
    "a number of few values": FRAME.assign(pregnancy_no=RNG.integers(0, 5, 120)),
    "a batch that says nothing": FRAME.assign(batch=RNG.integers(0, 3, 120)),
    "answers that agree by chance": ANSWERS,
    "answers and ages that agree by chance": ANSWERS.assign(age=RNG.integers(20, 60, 120)),
}  # fmt: skip


@pytest.mark.parametrize("frame", SILENT.values(), ids=SILENT.keys())
def test_an_ordinary_table_gets_no_warning(frame):
    dataset = prepare(Table(frame), Roles("outcome"))
    assert dataset.warnings == ()
    assert dataset.groups is None


def test_a_feature_that_predicts_alone_may_be_a_consequence_of_the_label():
    therapy = np.where(IS_YES, 3, 1)
    therapy[0] = 4 - therapy[0]
    (warning,) = warnings_of(FRAME.assign(therapy=therapy))
    assert warning.startswith("'therapy' alone predicts the label almost perfectly (balanced accuracy 99.")
    assert "consequence of the label" in warning
    assert warning.endswith("`--drop therapy`.")
    # a text, with gaps, among many other columns
    wide = pd.DataFrame(RNG.standard_normal((120, 300))).add_prefix("g").assign(outcome=FRAME["outcome"])
    texts = pd.Series(np.where(IS_YES, "after surgery", "none"), dtype=object).mask(np.arange(120) == 5)
    (warning,) = warnings_of(wide.assign(care=texts), encode="onehot", impute="median")
    assert "--drop care`." in warning


def test_a_feature_that_tells_three_classes_apart_is_found_and_one_that_tells_one_is_not():
    frame = make_table(150, n_classes=3)
    code = frame["outcome"].map({"low": 5, "mid": 9, "top": 2})
    assert "'code' alone" in warnings_of(frame.assign(code=code))[0]
    assert warnings_of(frame.assign(code=code == 5)) == ()


@pytest.mark.parametrize("name", ["centre", "Batch", "site_id", "plate no."])
def test_a_batch_that_goes_with_the_label_is_warned_of_whatever_its_role(name):
    batch = np.where(IS_YES, RNG.choice(list("AAAB"), 120), RNG.choice(list("BBBC"), 120))
    frame = FRAME.assign(**{name: batch})
    for roles in ({"drop": [name]}, {"encode": "onehot"}, {"id": name}):
        warning = warnings_of(frame, **roles)[0]
        assert f"Column {name!r} seems to mark a batch or centre, and is associated with the label" in warning
        assert "0 % of the rows with 'C' and 100 % of those with 'A'" in warning
        assert "--rows-grouped-by" in warning
    assert warnings_of(frame, grouped_by=name) == ()


def test_patients_whose_rows_folds_would_separate_are_warned_of():
    numbers = np.repeat(np.arange(40), 3)
    for frame, roles in (
        (FRAME.assign(patient=numbers), {}),  # a feature, until now in silence
        (FRAME.assign(patient=numbers), {"drop": ["patient"]}),
        (FRAME.assign(who=[f"p{n}" for n in numbers]), {"id": "who"}),
    ):
        (warning,) = warnings_of(frame, **roles)
        assert "40 different ones in 120 rows" in warning
        assert "--rows-grouped-by" in warning
    families = FRAME.assign(patient=numbers, family=numbers // 2, visit=[1, 2, 3] * 40)
    assert warnings_of(families, grouped_by="family", drop=["patient"], id="visit") == ()


IDS = {
    "none": {}, "texts": {"sample": [f"s{i:03d}" for i in range(170)]},
    "numbers that may be counts": {"tube": RNG.permutation(10_000)[:170]},
    "numbers that repeat": {"sample_id": np.arange(170) // 2},
}  # fmt: skip


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS.keys())
def test_rows_that_repeat_each_other_but_for_an_id_stay_together_in_folds(ids):
    frame = pd.concat([FRAME, FRAME.iloc[:50]], ignore_index=True).assign(**ids)
    dataset = prepare(Table(frame), Roles("outcome"))
    assert dataset.warnings[-1].startswith("50 rows repeat another in every feature.")
    assert together_text(dataset) == "rows with the same features"
    assert len(np.unique(dataset.groups)) == 120
    for fold in TableSearch(dataset, Settings(cv=5)).folds(0):
        ours = np.arange(170) % 120
        assert not set(ours[fold.train]) & set(ours[fold.test])


NAMED = [  # values, and whether they name the rows, or perhaps do
    ([*"abcd"], False), ([*"abcde"], True), ([3, 1, 2, 5, 4], True), ([3, 1, 2, 6, 4], None),
    ([1, 3, 4, 6, 8, 9, 12], None), ([1, 3, 4, 6, 8, 9, 12, 13], True), ([8, 7, 6, 5, 4, 3, 1, 0], True),
    (["1 mg", "2", "<3", "a", "b", "c"], True), (["1 mg", "2", "<3", "4.5", "b", "c"], False),
]  # fmt: skip


@pytest.mark.parametrize(("values", "expected"), NAMED)
def test_few_rows_have_no_names_and_numbers_name_them_in_order_or_perhaps(values, expected):
    for n in (1, 3, 4):
        notes, names = [], [*"abcd"[:n]]
        found = pitfalls.find_row_names(pd.DataFrame(dict.fromkeys(names, values)), set(), notes)
        assert found == (names if expected else [], names if expected is None and n < 4 else [])
        assert len(notes) == (n if expected else expected is None and n < 4)


SHARED = [
    ("patient", [*range(4)] * 2, False), ("patient", [*range(5), 0], True), ("patient", [*range(5)], False),
    ("patient", [*range(5), None, None], False), ("patient", [*range(5), 0, None], True),
    ("patient", [*range(5), 0.5, 0.5], False), ("dose", [*range(12)] * 2, False),
    ("id_2", [*range(9)] * 2, False), ("id_2", [*range(10), 0], True), ("id_2", [*range(10)], False),
    ("id_2", [*range(10)] * 20, True), ("id_2", [*[*range(10)] * 20, 0], False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "expected"), SHARED)
def test_columns_called_like_ids_group_rows_if_values_are_neither_few_nor_all_different(
    name, values, expected
):
    assert pitfalls.has_shared_values(pd.Series(values, name=name)) == expected


def counts(*cells):
    """Batches, with so many rows of each of two labels."""
    return [
        (batch, label) for batch, pair in enumerate(cells) for label in (0, 1) for _ in range(pair[label])
    ]


BATCHES = [
    (counts((64, 36), (36, 64)), False), (counts((66, 34), (34, 66)), True),  # association .28 and .32
    (counts((15, 5), (4, 16)), False), (counts((16, 4), (4, 16)), True),  # p = .0014 and .0005
    (counts(*[(2, 0), (0, 2)] * 25), True), (counts(*[(2, 0), (0, 2)] * 25, (2, 0)), False),
    (counts(*[(2, 0), (0, 2)] * 15), True), (counts(*[(2, 0), (0, 2)] * 14, (2, 0), (0, 1)), False),
    (counts((20, 20)), False), (counts((20, 0), (20, 0)), False),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), BATCHES)
def test_a_batch_is_warned_of_if_its_association_with_the_label_is_neither_weak_nor_chance(rows, expected):
    batch, y = np.array(rows).T
    assert len([*pitfalls.warn_of_batches(pd.DataFrame({"batch": batch}), y)]) == expected


@pytest.mark.parametrize(("n_features", "n_wrong"), [(1, 3), (1, 4), (3, 0), (4, 0)])
def test_up_to_three_features_that_predict_alone_are_warned_of(n_features, n_wrong):
    y = np.repeat([0, 1], 100)
    X = np.tile(np.where(np.arange(200) % 100 < n_wrong, 1 - y, y), (n_features, 1)).T.astype(float)
    found = [*pitfalls.warn_of_lone_features(X, y, Encoding(tuple("abcd"[:n_features])))]
    words = {(1, 3): "'a' alone predicts the label almost perfectly (balanced accuracy 97.0 %)",
             (3, 0): "'a', 'b', 'c' alone each predict the label"}.get((n_features, n_wrong))  # fmt: skip
    assert [warning[: len(words or "")] for warning in found] == ([words] if words else [])
    assert not words or f"`{' '.join(f'--drop {name}' for name in 'abc'[:n_features])}`" in found[0]


REPEATED = [  # columns of distinct rows, and whether chance does not explain that one of them comes again
    ([range(12), [*range(6)] * 2], True),  # 66 pairs, of which 66 / 12 / 6 = .92 agree by chance
    ([range(12), [*range(4)] * 3], False),  # 66 / 12 / 4 = 1.4
    ([range(12), [*[None] * 6, *range(6)]], False),  # 66 / 12 * (1 / 4 + 6 / 144) = 1.6
    ([range(10)] * 3, False), ([range(11)] * 3, True),  # no column, and one, with more than ten values
]  # fmt: skip


@pytest.mark.parametrize(("columns", "expected"), REPEATED)
def test_a_row_that_comes_again_is_a_copy_if_chance_does_not_explain_it(columns, expected):
    frame = pd.DataFrame([*zip(*columns, strict=True)], dtype=float)
    assert pitfalls.find_repeated_rows(frame, frame.to_numpy()) is None
    again = pd.concat([frame, frame[:1]], ignore_index=True)
    X = np.append(frame, -frame[:1], axis=0)  # -0.0 equals 0.0
    groups = pitfalls.find_repeated_rows(again, X)
    assert (None if groups is None else groups.tolist()) == ([*range(len(frame)), 0] if expected else None)
    (warning,) = pitfalls.warn_of_repeated_rows(np.array([0, 0, 1, 2]), np.array(["a", "b", "a", "a"]))
    assert warning.startswith("1 row repeats another in every feature. Duplicate rows are kept together")
    assert "Labels differ within 1 set of equal rows." in warning


def test_groups_are_joined_where_they_share_a_row():
    one, other = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    np.testing.assert_array_equal(join_groups(one, other), [0, 0, 0, 1, 2])
    np.testing.assert_array_equal(join_groups(None, other), other)
    assert join_groups(None, None) is None


def test_advice_on_text_includes_grouping():
    patient = [f"P{n:02d}" for n in np.repeat(np.arange(40), 3)]
    for frame in (FRAME.assign(patient=patient), FRAME.assign(sex=["f", "m"] * 60)):
        with pytest.raises(InputError, match=r"'(P00|f)'\. Encode .*--encode .*--drop; .*--rows-grouped-by"):
            prepare(Table(frame), Roles("outcome"))


@pytest.mark.parametrize("encode", [None, "onehot"])
def test_laboratory_values_get_advice_of_their_own(encode):
    crp = ["<5" if i % 3 else f"{i + 5}.5" for i in range(120)]
    with pytest.raises(
        InputError, match=r"'crp' holds laboratory values such as '<5' \(80 rows\).*the limit or half of it"
    ):
        prepare(Table(FRAME.assign(crp=crp)), Roles("outcome", encode=encode))
    with pytest.raises(InputError, match=r"such as '> 100' \(1 row\), which are no numbers"):
        prepare(Table(FRAME.assign(crp=["> 100", *["1,5"] * 119])), Roles("outcome", encode=encode))


def test_labels_that_differ_by_case_or_blanks_are_one_class():
    spelled = [{0: text.upper(), 1: f" {text}"}.get(i % 5, text) for i, text in enumerate(FRAME["outcome"])]
    dataset = prepare(Table(FRAME.assign(outcome=spelled)), Roles("outcome"))
    assert dataset.y.tolist() == FRAME["outcome"].tolist()
    assert len(dataset.notes) == 2
    assert "'yes', " in dataset.notes[0] + dataset.notes[1]
    assert "differ only by case or blanks and are treated as one class, 'no'" in "".join(dataset.notes)


@pytest.mark.parametrize("labels", [["a", "b"], [0, 1], [True, False]])
def test_rows_without_a_label_are_left_out_with_a_note(labels):
    given = pd.Series(labels * 60, dtype=object)
    given[[3, 7]] = None
    frame = FRAME.assign(outcome=given.infer_objects())
    dataset = prepare(Table(frame), Roles("outcome"))
    assert dataset.notes == ("2 rows without a label in column 'outcome' left out.",)
    assert dataset.rows.tolist() == [row for row in range(1, 121) if row not in (4, 8)]
    assert dataset.y.tolist() == [label for row, label in enumerate(labels * 60) if row not in (3, 7)]
    weighted = prepare(Table(frame.assign(w=[0, *[1] * 119])), Roles("outcome", weights="w"))
    assert weighted.rows.tolist() == dataset.rows.tolist()[1:]
    with pytest.raises(InputError, match="'outcome' has no values at all"):
        prepare(Table(FRAME.assign(outcome=[None, " "] * 60)), Roles("outcome"))
