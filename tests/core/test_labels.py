"""Classes as binary problems, weights of classes, and labelled data as they are read."""

from contextlib import nullcontext

import array_api_strict
import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from kmargin import SparseSVC
from kmargin.core import labels
from kmargin.core.labels import choose_classes, class_pairs, combine_decisions, label_rows, machine_names
from kmargin.data.blocks import Block
from kmargin.data.samples.array import read_samples
from kmargin.data.samples.blocks import check_class_factors, read_device


def data(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(40), [0.8] if n_classes == 2 else [-0.5, 0.8])
    return X, y, rng.uniform(0.2, 3.0, 40)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 1: 0.5}])
def test_class_weights_come_on_top_of_sample_weights(class_weight, n_classes):
    X, y, weights = data(n_classes)
    given = class_weight if n_classes == 2 or class_weight == "balanced" else class_weight | {2: 3.0}
    samples = read_samples(X, y, weights, given)
    np.testing.assert_allclose(samples.weights, weights * compute_sample_weight(given, y))
    np.testing.assert_allclose(samples.repeats, weights)
    model = SparseSVC(2, class_weight=given).fit(X, y, weights)
    by_hand = SparseSVC(2).fit(X, y, weights * compute_sample_weight(given, y))
    np.testing.assert_allclose(model.coef_, by_hand.coef_, atol=1e-9)


def on_device(X, y, weights, class_weight=None):
    xp = array_api_strict
    return read_device(xp.asarray(X), xp.asarray(y), xp.asarray(weights), class_weight)


def test_rows_without_weight_are_left_behind_on_a_device_too():
    X, y, weights = data()
    weights[[3, 17, 30]] = 0.0
    kept = np.flatnonzero(weights)
    samples = on_device(X, y, weights, "balanced")
    (block,) = samples.X.objects
    assert isinstance(block, Block)
    np.testing.assert_array_equal(np.asarray(block.X), X[kept])
    np.testing.assert_array_equal(np.asarray(block.codes), y[kept])
    np.testing.assert_array_equal(np.asarray(samples.kept), kept)
    known, here = samples.at_hand(), read_samples(X, y, weights, "balanced")
    for name in ("codes", "repeats", "weights", "kept"):
        np.testing.assert_allclose(getattr(known, name), getattr(here, name), err_msg=name)


def test_some_rows_of_a_device_are_those_asked_for():
    X, y, weights = data()
    rows = np.array([5, 2, 30])
    (block,) = on_device(X, y, weights).to_fit(rows).X.objects
    np.testing.assert_array_equal(np.asarray(block.X), X[rows])
    np.testing.assert_array_equal(np.asarray(block.repeats), weights[rows])


def test_weights_of_classes_may_be_large_but_not_their_sum():
    classes, counts, totals = np.arange(2), np.array([1, 2]), np.array([1e200, 2e200])
    assert check_class_factors({0: 1e100, 1: 0.5}, classes, counts, totals).tolist() == [1e100, 0.5]  #
    for given, words in [({0: 1e200}, "class_weight overflows"), ({1: 0}, "samples of class 1 are zero")]:
        with np.errstate(over="ignore"), pytest.raises(ValueError, match=words):
            check_class_factors(given, classes, counts, totals)


@pytest.mark.parametrize(("n_classes", "warns"), [(11, False), (12, True)])
def test_more_classes_than_half_the_rows_are_warned_of(n_classes, warns):
    y = np.arange(22) % n_classes
    with pytest.warns(UserWarning, match="unique classes") if warns else nullcontext():
        assert len(read_samples(np.eye(22), y, None, None).classes) == n_classes


@pytest.mark.parametrize("bad", [-1.0, -0.5])
def test_the_weight_that_is_refused_is_named_by_its_row(bad):
    X, y, weights = data()
    weights[[7, 13]] = bad, -1e-9
    with pytest.raises(ValueError, match=rf"sample_weight\[7\]={bad:g} is negative"):
        read_samples(X, y, weights, None)


def test_pairs_see_only_their_own_rows_and_one_versus_rest_all_of_them():
    for scheme in ("ovo", "ovr"):
        (pair,) = class_pairs(2, scheme)
        assert pair == (0, 1)
        rows, y = label_rows(np.array([0, 1, 1]), pair)
        assert rows is None
        np.testing.assert_array_equal(y, [-1, 1, 1])
    codes, pairs = np.array([0, 1, 2, 0, 2]), class_pairs(3, "ovo")
    assert pairs == [(0, 1), (0, 2), (1, 2)]
    rows, y = label_rows(codes, pairs[1])
    np.testing.assert_array_equal(rows, [0, 2, 3, 4])
    np.testing.assert_array_equal(y, [-1, 1, -1, 1])
    pairs = class_pairs(3, "ovr")
    assert pairs == [(None, c) for c in range(3)]
    rows, y = label_rows(codes, pairs[0])
    assert rows is None
    np.testing.assert_array_equal(y, [1, -1, -1, 1, -1])


def test_most_votes_win_whatever_the_decision_values(rng):
    # class 2 beats both others by a hair; class 0 beats class 1 by a mile
    scores = combine_decisions(np.array([[-1e9, 1e-9, 1e-9]]), 3, "ovo")
    assert choose_classes(scores, np.array(["a", "b", "c"]))[0] == "c"
    scores = combine_decisions(rng.standard_normal((40, len(class_pairs(5, "ovo")))), 5, "ovo")
    np.testing.assert_allclose(np.round(scores).sum(axis=1), 10)  # a vote for each pair


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_vote_ties_go_to_the_largest_sum_of_decision_values(winner):
    # 1 beats 0, 2 beats 1, 0 beats 2: one vote each; the winner's victory is the clearest
    decisions = np.array([[1.0, -1.0, 1.0]])
    victory_of = {1: 0, 0: 1, 2: 2}
    decisions[0, victory_of[winner]] *= 5
    scores = combine_decisions(decisions, 3, "ovo")
    assert scores.argmax() == winner
    np.testing.assert_array_less(np.abs(scores - 1), 0.5)


def test_a_decision_of_zero_votes_for_the_first_of_the_pair():
    assert choose_classes(combine_decisions(np.zeros((1, 1)), 2, "ovo"), np.array([3, 4]))[0] == 3
    np.testing.assert_array_equal(combine_decisions(np.zeros((1, 3)), 3, "ovo"), [[2, 1, 0]])


def test_machines_have_names():
    classes = np.array(["a", "b", "c"])
    assert machine_names(classes, "ovo") == ["a vs b", "a vs c", "b vs c"]
    assert machine_names(classes, "ovr") == ["rest vs a", "rest vs b", "rest vs c"]


def test_a_class_weighs_features_by_the_mean_over_its_machines_signed_towards_it():
    coef = np.array([[1.0, 0.0], [2.0, -3.0], [4.0, 5.0]])  # 0 vs 1, 0 vs 2, 1 vs 2
    np.testing.assert_array_equal(
        labels.class_weights(coef, 3, "ovo"), [[-1.5, 1.5], [-1.5, -2.5], [3.0, 1.0]]
    )
    np.testing.assert_array_equal(labels.class_weights(coef, 3, "ovr"), coef)
    np.testing.assert_array_equal(labels.class_weights(coef[:1], 2, "ovr"), [[-1.0, 0.0], [1.0, 0.0]])
