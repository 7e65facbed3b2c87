"""What users say about features becomes units, or one sentence that says what is wrong."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kmargin import SparseSVC
from kmargin.core.units import UNIT_KINDS, UnitRequest, Units

NAMES = ["age", "weight", "height", "smoker", "site_a", "site_b"]


def units_of(names=NAMES, n_features=6, **request):
    return UnitRequest(**request).resolve(n_features, names)


def as_lists(units):
    return [units.columns_of(np.array([j])).tolist() for j in range(units.n_units)]


class TestGroups:
    @pytest.mark.parametrize(
        "groups",
        [
            ["a", "w", "h", "s", "site", "site"],
            [0, 1, 2, 3, 4, 4],
            np.array([5, 1, 2, 3, 9, 9]),
            [["age"], ["weight"], ["height"], ["smoker"], ["site_a", "site_b"]],
            [[0], [1], [2], [3], [4, -1]],
        ],
    )
    def test_labels_or_lists_say_which_columns_belong_together(self, groups):
        assert as_lists(units_of(groups=groups)) == [[0], [1], [2], [3], [4, 5]]

    def test_columns_in_no_list_are_by_themselves(self):
        units = units_of(groups={"site": ["site_a", "site_b"]})
        assert as_lists(units) == [[4, 5], [0], [1], [2], [3]]
        request = UnitRequest(groups={"site": ["site_a", "site_b"]})
        assert request.label_units(units, NAMES) == ["site", "age", "weight", "height", "smoker"]

        request = UnitRequest(groups=[["age", 1], [3]])
        found = request.label_units(request.resolve(4, NAMES[:4]), NAMES[:4])
        assert found == ["age + weight", "smoker", "height"]

    def test_an_extension_has_a_name_for_its_groups(self, monkeypatch):
        monkeypatch.setitem(UNIT_KINDS, "halves", lambda p, names: [j < p / 2 for j in range(p)])
        assert as_lists(units_of(groups="halves")) == [[0, 1, 2], [3, 4, 5]]

    def test_nothing_said_is_single_columns(self):
        assert UnitRequest().is_empty
        assert units_of().are_plain
        plain, flags = Units.of_columns(2), np.array([True, False])
        others = {"fixed": flags}, {"signs": flags * 1.0}, {"columns": np.array([1, 0])}
        assert not any(replace(plain, **other).are_plain for other in others)


class TestKeepAndAvoid:
    def test_what_is_kept_is_fixed_and_what_is_avoided_is_gone(self):
        units = units_of(keep=["age", 3], avoid=["height"])
        assert as_lists(units) == [[0], [1], [3], [4], [5]]
        assert units.fixed.tolist() == [True, False, True, False, False]

    @pytest.mark.parametrize("keep", ["smoker", ["smoker"], np.arange(6) == 3, [3], [-3], 3])
    def test_features_are_named_numbered_or_masked(self, keep):
        assert units_of(keep=keep).fixed.tolist() == [False] * 3 + [True] + [False] * 2

    def test_a_group_is_kept_by_its_label_or_by_one_of_its_features(self):
        for keep in (["site"], ["site_b"]):
            units = units_of(groups={"site": ["site_a", "site_b"]}, keep=keep)
            assert units.fixed.tolist() == [True, False, False, False, False]

    def test_a_feature_that_is_avoided_leaves_its_group(self):
        assert as_lists(units_of(groups={"site": ["site_a", "site_b"]}, avoid=["site_a"]))[0] == [5]

    def test_more_kept_than_k_is_said(self):
        X, y = np.random.default_rng(0).standard_normal((20, 6)), np.arange(20) % 2
        with pytest.raises(ValueError, match=r"k=2 is less than the 3 features"):
            SparseSVC(2, keep=[0, 1, 3]).fit(X, y)
        SparseSVC(3, keep=[0, 1, 3]).fit(X, y)


@pytest.mark.parametrize("signs", [{"age": 1, "smoker": "-"}, {0: "+", 3: -1}, [1, 0, 0, -1, 0, 0]])
def test_signs_are_by_feature(signs):
    assert units_of(signs=signs).signs.tolist() == [1, 0, 0, -1, 0, 0]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"groups": [0, 1]}, r"groups has 2 labels, but X has 6 features"),
        ({"groups": ["a"] * 6}, r"all 6 features into one group"),
        ({"groups": [["age", "weight"], ["weight"]]}, r"'weight' is in more than one group"),
        ({"groups": [["age", "wait"]]}, r"groups names 'wait', which is not a feature of X"),
        ({"groups": [["age", 17]]}, r"groups names 17, which is not a feature of X"),
        ({"groups": [["age"], []]}, r"Use a list of at least one feature"),
        ({"groups": "site"}, r"is not a group label for each feature"),
        ({"groups": [0, 1, 2, None, 4, 4]}, r"no label for 'smoker'"),
        ({"groups": [0] + [None] * 5}, r"for 'weight', 'height', 'smoker', 'site_a', 'site_b'\. Give"),
        ({"groups": [np.nan] * 6, "names": None}, r"feature 0, .* feature 4 and 1 more\. Give"),
        ({"keep": [0, 2], "avoid": [0, 2]}, r"'age', 'height' are in `keep` and in `avoid`"),
        ({"keep": [-7]}, r"keep names -7, which is not"),
        ({"keep": [6]}, r"keep names 6, which is not"),
        ({"keep": 2.5}, r"keep=2\.5 is not a list of features"),
        ({"keep": ["age"], "avoid": ["age"]}, r"'age' is in `keep` and in `avoid`"),
        ({"keep": ["aeg"]}, r"keep names 'aeg', which is not a feature of X. Did you mean 'age'\?"),
        ({"keep": ["age"], "names": None}, r"Use indices from 0 to 5, or give X as a data frame"),
        ({"avoid": list(range(6))}, r"excludes all 6 features"),
        ({"keep": [2.5]}, r"keep names 2.5, which is not a feature of X"),
        ({"keep": np.ones(5, bool)}, r"a mask of 5 entries, but X has 6"),
        ({"signs": [1, 0]}, r"has 2 entries, but X has 6 features"),
        ({"signs": {"age": 2}}, r"signs has 2 for 'age'. Use 1"),
        ({"signs": {"ages": 1}}, r"signs names 'ages'.*Did you mean 'age'"),
        ({"signs": 1}, r"is not a list"),
    ],
)
def test_what_makes_no_sense_is_said(request_, words):
    with pytest.raises(ValueError, match=words):
        units_of(**request_)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"groups": {"site": ["site_a", "site_b"]}, "keep": ["site"], "signs": {"age": 1, "site_b": "-"}},
        {"groups": [1, "1", 2, 2, 3, 3], "avoid": [-1, "age"]},
        {"keep": np.array([True, False, False, False, False, True]), "signs": [0, 0, 0, 0, 0, 0]},
    ],
    ids=str,
)
def test_a_request_in_places_and_texts_means_the_same(request_):
    request = UnitRequest(**request_)
    plain = request.by_place(6, NAMES)
    assert json.loads(json.dumps(plain._asdict())) == plain._asdict(), "a file can hold it"
    one, two = request.resolve(6, NAMES), plain.resolve(6)
    assert sorted(map(sorted, as_lists(one))) == sorted(map(sorted, as_lists(two)))
    np.testing.assert_array_equal(one.signs, two.signs)
    fixed = [set(units.columns_of(np.flatnonzero(units.fixed)).tolist()) for units in (one, two)]
    assert fixed[0] == fixed[1]


def test_what_units_hold_is_counted_and_found():
    assert not Units.of_groups([np.array([1])], 2).fixed.any()
    fixed = np.array([False, True, False])
    units = Units(np.array([0, 2, 3, 6]), np.array([5, 1, 0, 4, 2, 6]), fixed, np.zeros(8))
    assert [units.widest(size) for size in range(5)] == [0, 3, 5, 6, 6]
    assert [Units.of_columns(3).widest(size) for size in range(5)] == [0, 1, 2, 3, 3]
    assert units.unit_of_each_column.tolist() == [1, 0, 2, -1, 2, 0, 2, -1]
    assert units.columns_of(np.array([2, 0])).tolist() == [4, 2, 6, 5, 1]
    assert units.columns_of(np.array([], int)).tolist() == []
    assert units.total(np.arange(8.0)).tolist() == [6, 0, 12]
    assert np.flatnonzero(units.chosen(np.arange(8) == 2)).tolist() == [0, 2, 4, 6]
    assert [units.check_size(k) for k in (1, 3, 4)] == [1, 3, 3]
    with pytest.raises(ValueError, match="k=0 is less than the 1 units that are always in the model"):
        units.check_size(0)
    left = units.without_copies(np.array([0, 5]))
    assert (as_lists(left), left.fixed.any(), left.copies.tolist()) == ([[1], [4, 2, 6]], False, [0, 5])
