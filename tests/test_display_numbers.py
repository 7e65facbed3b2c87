"""Which numbers are drawn, and which names stand beside them."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from kmargin import CoefficientDisplay, CVScoreDisplay, SparsityPathDisplay

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
    assert display.ax_.get_xlabel() == "coefficient (0 vs 1)"


def test_scores_are_those_of_the_chosen_C_in_the_order_of_k():
    results = {
        "param_C": np.array([1.0, 1.0, 10.0, 10.0]), "param_k": np.array([5, 2, 5, 2]),
        "mean_test_score": np.array([0.1, 0.2, 0.7, 0.6]), "se_test_score": np.array([0.0, 0.0, 0.3, 0.6]),
    }  # fmt: skip
    path = SimpleNamespace(counted="groups of each machine")
    model = SimpleNamespace(cv_results_=results, C_=10.0, k_=5, n_splits_=4, scoring=None, path_=path)
    display = CVScoreDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.ks, [2, 5])
    np.testing.assert_array_equal(display.mean, [0.6, 0.7])
    np.testing.assert_array_equal(display.error, [0.6, 0.3])
    assert display.ax_.get_ylabel() == "accuracy (cross-validated)"
    assert display.ax_.get_xlabel() == "k, the number of groups of each machine"
