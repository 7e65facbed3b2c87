"""Tables whose scores would be too high are warned of, and advice comes with the option that helps."""

import numpy as np
import pandas as pd
import pytest
from tables_data import make_table

from kmargin.core.validation import InputError
from kmargin.report.page import together_text
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.pitfalls import join_groups
from kmargin.tables.read import Table
from kmargin.tables.search import Settings, TableSearch

FRAME = make_table(120)
IS_YES = (FRAME["outcome"] == "yes").to_numpy()
RNG = np.random.default_rng(0)


def warnings_of(frame, **roles):
    return prepare(Table(frame), Roles("outcome", **roles)).warnings


SILENT = {
    "two classes": FRAME,
    "three classes": make_table(200, n_classes=3),
    "what few rows reach by chance": pd.DataFrame(RNG.standard_normal((12, 1_000)))
    .add_prefix("g")
    .assign(outcome=["a", "b"] * 6),
    "classes far apart": FRAME.assign(**{f"gene{j}": 10 * IS_YES + RNG.random(120) for j in range(5)}),
    "a number of a patient": FRAME.assign(patient_age=RNG.integers(20, 60, 120)),
    "a number of few values": FRAME.assign(pregnancy_no=RNG.integers(0, 5, 120)),
    "a batch that says nothing": FRAME.assign(batch=RNG.integers(0, 3, 120)),
    "answers that agree by chance": pd.DataFrame(RNG.integers(0, 3, (120, 4)))
    .add_prefix("q")
    .assign(outcome=FRAME["outcome"]),
    "answers and ages that agree by chance": pd.DataFrame(RNG.integers(0, 3, (120, 4)))
    .add_prefix("q")
    .assign(age=RNG.integers(20, 60, 120), outcome=FRAME["outcome"]),
}


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
    families = FRAME.assign(patient=numbers, family=numbers // 2)
    assert warnings_of(families, grouped_by="family", drop=["patient"]) == ()


IDS = {
    "none": {},
    "texts": {"sample": [f"s{i:03d}" for i in range(170)]},
    "numbers that may be counts": {"tube": RNG.permutation(10_000)[:170]},
    "numbers that repeat": {"sample_id": np.arange(170) // 2},
}


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


def test_rows_that_repeat_with_another_label_are_counted():
    frame = pd.concat([FRAME, FRAME.iloc[:1].assign(outcome="no"), FRAME.iloc[:1].assign(outcome="yes")])
    (warning,) = warnings_of(frame.reset_index(drop=True))
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
