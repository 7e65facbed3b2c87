import numpy as np
import pytest

from kmargin.core.labels import (
    choose_classes,
    class_pairs,
    class_weights,
    combine_decisions,
    machine_names,
    make_machines,
)


def test_pairs_see_only_their_own_rows_and_one_versus_rest_all_of_them():
    for scheme in ("ovo", "ovr"):
        (machine,) = make_machines(np.array([0, 1, 1]), 2, scheme)
        assert (machine.negative, machine.positive, machine.rows) == (0, 1, None)
        np.testing.assert_array_equal(machine.y, [-1, 1, 1])
    codes = np.array([0, 1, 2, 0, 2])
    machines = list(make_machines(codes, 3, "ovo"))
    assert [(m.negative, m.positive) for m in machines] == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_array_equal(machines[1].rows, [0, 2, 3, 4])
    np.testing.assert_array_equal(machines[1].y, [-1, 1, -1, 1])
    machines = list(make_machines(codes, 3, "ovr"))
    assert [(m.negative, m.positive, m.rows) for m in machines] == [(None, c, None) for c in range(3)]
    np.testing.assert_array_equal(machines[0].y, [1, -1, -1, 1, -1])


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
    expected = [[-1.5, 1.5], [-1.5, -2.5], [3.0, 1.0]]
    np.testing.assert_array_equal(class_weights(coef, 3, "ovo"), expected)
    np.testing.assert_array_equal(class_weights(coef, 3, "ovr"), coef)
    np.testing.assert_array_equal(class_weights(coef[:1], 2, "ovr"), [[-1.0, 0.0], [1.0, 0.0]])
