"""Which numbers are drawn, and which names stand beside them."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmargin import CoefficientDisplay, CVScoreDisplay, SparsityPathDisplay
from kmargin.displays.against_k import MIN_TICK_GAP, choose_ticks

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


# three sizes, two machines, four features; the last feature is never used
COEFS = np.array([
    [[0.5, -3.0, 0.2, 0.0], [9.0, 0.0, -1.0, 0.0]],
    [[0.6, -2.0, 0.0, 0.0], [8.0, 0.0, 0.0, 0.0]],
    [[0.9, 0.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]],
])  # fmt: skip


def drawn(display):
    """The lines that have a point for every k, by their names."""
    return {line.get_label(): line.get_ydata() for line in display.ax_.lines if len(line.get_ydata()) == 3}


@pytest.mark.parametrize("machine", [0, 1])
def test_the_path_of_the_machine_asked_for_is_drawn(machine):
    path = SimpleNamespace(
        ks=[3, 2, 1], coefs=COEFS, classes=np.arange(3), multi_class="ovo", counted="groups"
    )
    display = SparsityPathDisplay.from_path(path, machine=machine, feature_names=list("abcd"))
    lines = drawn(display)
    assert display.ax_.get_xlabel() == "k, the number of groups"
    expected = {name: COEFS[:, machine, j] for j, name in enumerate("abcd") if COEFS[:, machine, j].any()}
    assert lines.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(lines[name], values)


def test_the_features_that_stay_longest_are_named_and_of_these_the_largest():
    display = SparsityPathDisplay([3, 2, 1], COEFS[:, 0], ["$a", "b", "c", "d"])
    assert [label for label in drawn(display.plot(n_labels=1)) if label[0] != "_"] == [r"\$a"]
    assert {label for label in drawn(display.plot(n_labels=2)) if label[0] != "_"} == {r"\$a", "b"}
    tied = SparsityPathDisplay([2, 1], np.array([[1.0, -2.0], [1.0, -2.0]]), ["small", "large"]).plot(
        n_labels=1
    )
    assert [line.get_label() for line in tied.ax_.lines if line.get_label()[0] != "_"] == ["large"]


def test_bars_are_of_the_largest_coefficients_whatever_their_sign():
    model = SimpleNamespace(
        coef_=np.array([[1.0, -5.0, 0.0, 2.0, -3.0]]),
        support_=np.array([0, 1, 3, 4]),
        classes_=np.array([0, 1]),
        multi_class="ovo",
    )
    display = CoefficientDisplay.from_estimator(model, feature_names=["a", "$b", "c", "d", "e"], n_features=3)
    assert [bar.get_width() for bar in display.ax_.patches] == [-5.0, -3.0, 2.0]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [r"\$b", "e", "d"]
    assert display.ax_.get_xlabel() == "coefficient per unit of the feature\n(0 vs 1)"


def test_scores_are_those_of_the_chosen_C_in_the_order_of_k():
    results = {
        "param_C": np.array([1.0, 1.0, 10.0, 10.0]), "param_k": np.array([5, 2, 5, 2]),
        "mean_test_score": np.array([0.1, 0.2, 0.7, 0.6]), "se_test_score": np.array([0.0, 0.0, 0.3, 0.6]),
    }  # fmt: skip
    path = SimpleNamespace(counted="groups of each binary classifier")
    model = SimpleNamespace(cv_results_=results, C_=10.0, k_=5, n_splits_=4, scoring=None, path_=path)
    display = CVScoreDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.ks, [2, 5])
    np.testing.assert_array_equal(display.mean, [0.6, 0.7])
    np.testing.assert_array_equal(display.error, [0.6, 0.3])
    assert display.ax_.get_ylabel() == "accuracy (cross-validated)\nand one standard error"
    assert display.ax_.get_xlabel() == "k, the number of groups of each binary classifier"


def test_of_several_machines_the_size_of_each_features_coefficients_is_drawn():
    path = SimpleNamespace(
        ks=[3, 2, 1], coefs=COEFS, classes=np.arange(3), multi_class="ovo", counted="features"
    )
    lines = drawn(SparsityPathDisplay.from_path(path, feature_names=list("abcd")))
    for name, j in (("a", 0), ("b", 1), ("c", 2)):
        np.testing.assert_allclose(lines[name], np.sqrt((COEFS[:, :, j] ** 2).sum(axis=1)))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 0.1))
def test_labels_are_moved_as_little_as_keeps_them_apart(places, gap):
    moved = spread_apart(places, gap)
    order = np.argsort(places, kind="stable")
    there = np.array(moved)[order]
    assert (np.diff(there) >= gap - 1e-12).all()
    assert min(moved) >= 0
    assert max(moved) <= 1 + 1e-12
    if (np.diff(np.array(places)[order]) >= gap).all() and places[order[-1]] <= 1:
        np.testing.assert_allclose(moved, places, atol=1e-12)


@pytest.mark.parametrize(
    "ks",
    [[1, 2, 3, 4, 5, 6], [7], [0, 1], range(1, 13), [1, 9, 10, 11], np.geomspace(1, 12600, 20).astype(int)],
)
def test_ticks_are_at_both_ends_and_never_collide(ks):
    ks = np.array(list(ks))
    ticks = choose_ticks(ks, np.log1p)
    assert ticks[0] == ks.min()
    assert ticks[-1] == ks.max()
    places = np.log1p(np.array(ticks, dtype=float))
    assert len(ticks) <= 2 or (np.diff(places) >= MIN_TICK_GAP * (places[-1] - places[0]) - 1e-12).all()
