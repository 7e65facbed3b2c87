"""Rows that belong together stay together: in folds, outer folds, repeats and halves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedGroupKFold
from tables_data import make_table

from kmargin import StabilitySelection
from kmargin.core.validation import InputError
from kmargin.fitting.subsampling import Halves
from kmargin.model_selection.nested import ScoredRows, permutation_test, permute_labels
from kmargin.model_selection.scores import effective_number, rate_interval
from kmargin.report.page import together_text
from kmargin.tables.analysis import OUTER, analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings, TableSearch

PATIENTS = np.repeat(np.arange(20), 3)
FRAME = make_table(60).assign(patient=[f"p{i:02d}" for i in PATIENTS])
FRAME["outcome"] = np.where(PATIENTS % 2, "yes", "no")
ROLES = Roles("outcome", grouped_by="patient")
QUICK = Settings(ks=[1, 2], Cs=[1.0], cv=4, pairs=2, repeats=2)


@pytest.fixture(scope="module")
def dataset():
    return prepare(Table(FRAME), ROLES)


def are_apart(groups, one, other):
    return not set(groups[one]) & set(groups[other])


def test_the_column_of_groups_is_no_feature_and_said(dataset):
    assert "patient" not in dataset.encoding.columns
    assert dataset.notes[-1].startswith("60 rows form 20 groups by 'patient', which stay together")
    assert len(np.unique(dataset.groups)) == 20
    assert together_text(dataset) == "by column patient: 20 groups"
    assert together_text(dataset._replace(groups=None)) == "none"
    alone = prepare(Table(FRAME.assign(patient=pd.Series(range(60)))), ROLES)
    assert alone.notes[-1].startswith("60 rows form 60 groups by 'patient'")


@pytest.mark.parametrize("repeat", [0, 1, OUTER])
def test_no_group_is_on_both_sides_of_a_fold(dataset, repeat):
    trial = TableSearch(dataset, QUICK)
    folds = trial.folds(repeat)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(60))
    for fold in folds:
        assert are_apart(PATIENTS, fold.train, fold.test)
        inner = TableSearch(trial.dataset.restricted_to(fold.train), trial.settings)
        for within in inner.folds(0):
            assert are_apart(PATIENTS[fold.train], within.train, within.test)
    alone = TableSearch(dataset._replace(groups=None), QUICK)
    assert not all(are_apart(PATIENTS, fold.train, fold.test) for fold in alone.folds(repeat))


def test_folds_are_those_of_scikit_learn(dataset):
    expected = StratifiedGroupKFold(4, shuffle=True, random_state=0).split(dataset.X, dataset.y, PATIENTS)
    for fold, (train, test) in zip(TableSearch(dataset, QUICK).folds(0), expected, strict=True):
        np.testing.assert_array_equal(fold.train, train)
        np.testing.assert_array_equal(fold.test, test)


def test_intervals_count_groups(dataset):
    found = analyse(dataset, QUICK)
    assert found.assessment.is_nested
    assert found.assessment.interval == rate_interval(found.assessment.score, 20)
    assert found.choice.table.n_rows == 20
    assert found.assessment.guessing == pytest.approx(0.5)  # though folds of groups have more of one class
    weights = np.arange(1.0, 61.0)
    totals = np.bincount(PATIENTS, weights)
    assert effective_number(weights, 60, PATIENTS) == pytest.approx(totals.sum() ** 2 / (totals**2).sum())


def test_labels_are_permuted_with_their_groups(dataset):
    rows = ScoredRows(dataset.X, dataset.y, None, dataset.groups, None)
    seen = []
    rng, scores_of = np.random.default_rng(0), lambda labels: seen.extend(labels) or [0.5, 1.0, 2.0]
    p_value, _ = permutation_test(1.0, scores_of, rows, 3, rng)
    assert (len(seen), p_value) == (3, 3 / 4)
    for y in seen:
        assert sorted(y) == sorted(dataset.y)
        assert all(len(set(y[patient == PATIENTS])) == 1 for patient in range(20))


def test_labels_that_differ_within_groups_are_permuted_within_and_among_groups_of_a_size():
    labels, groups = np.arange(60), np.repeat([2, 0, 1, 3], [20, 20, 15, 5])
    permuted = permute_labels(labels, groups, np.random.default_rng(1))
    np.testing.assert_array_equal(groups[permuted], np.repeat([0, 2, 1, 3], [20, 20, 15, 5]))
    assert all((np.diff(permuted[groups == group]) < 0).any() for group in range(4))
    labels, pairs = np.arange(80) // 2 % 2, np.arange(80) // 2
    labels[1] = 1  # one patient with both labels: those of the others move, too
    assert np.mean(permute_labels(labels, pairs, np.random.default_rng(0)) != labels) > 0.25


ROWS, YES = np.arange(60), (FRAME["outcome"] == "yes").to_numpy().astype(int)
MIXED, RARE = np.where(ROWS % 7, YES, 1 - YES), np.isin(ROWS, [0, 3]).astype(int)


@pytest.mark.parametrize(("groups", "codes"), [(PATIENTS, YES), (ROWS // 2, MIXED), (PATIENTS, RARE)])
def test_halves_share_no_group_and_have_every_class(groups, codes):
    halves = [half for half, _ in Halves(codes, 10, 0, groups)]
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert are_apart(groups, one, other)
        assert set(codes[one]) == set(codes[other]) == {0, 1}
        assert min(len(one), len(other)) >= 20


def test_stability_selection_takes_groups_and_checks_them():
    X, y = FRAME[["age", "dose", "noise", "z"]].to_numpy(), FRAME["outcome"].to_numpy()
    chosen = StabilitySelection(k=1, n_pairs=4, random_state=0)
    whole, by_row = (chosen.fit(X, y, groups=groups).frequencies_ for groups in (PATIENTS, None))
    assert whole.sum() == by_row.sum() == 1
    single = StabilitySelection(k=1, n_pairs=4, random_state=0).fit(X, y, groups=np.arange(60))
    np.testing.assert_array_equal(single.frequencies_, by_row)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\) for 60 rows of X"):
        chosen.fit(X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"Class 'yes' has only one group, but each half needs one"):
        chosen.fit(X, y, groups=np.where(y == "yes", 99, PATIENTS))


GAPS = FRAME.assign(patient=[None, *FRAME["patient"][1:]])


@pytest.mark.parametrize(
    ("frame", "name", "message"),
    [
        (FRAME, "patients", "-by: the table has no column 'patients'. Did you mean 'patient'"),
        (FRAME, "outcome", "--rows-grouped-by outcome is the target"),
        (GAPS, "patient", "column 'patient' has 1 missing value"),
    ],
)
def test_a_column_that_groups_nothing_gets_a_sentence(frame, name, message):
    with pytest.raises(InputError, match=message):
        prepare(Table(frame), Roles("outcome", grouped_by=name))


def test_a_class_of_few_groups_makes_fewer_folds_and_of_one_none():
    few = FRAME.assign(outcome=np.where(PATIENTS < 3, "rare", "common"))
    trial = TableSearch(prepare(Table(few), ROLES), QUICK)
    assert trial.n_folds == 3
    assert trial.notes == ["Class 'rare' has 3 groups: 3 folds instead of 4."]
    one = FRAME.assign(outcome=np.where(PATIENTS < 1, "rare", "common"))
    with pytest.raises(InputError, match="Class 'rare' has 1 group, but"):
        TableSearch(prepare(Table(one), ROLES), QUICK).folds(0)
