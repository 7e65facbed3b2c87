"""Plots show the numbers they were given, and cost nothing until they are drawn."""

import subprocess
import sys
from itertools import combinations

import matplotlib
import numpy as np
import pytest

from kmargin import (
    CoefficientDisplay,
    CVScoreDisplay,
    SparseSVC,
    SparseSVCCV,
    SparsityPathDisplay,
    sparse_svm_path,
)

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    return X, (X[:, 0] - X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


def test_importing_kmargin_imports_no_plotting():
    code = "import sys, kmargin; print([m for m in ('matplotlib', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_score_display_shows_mean_and_chosen_k(data):
    model = SparseSVCCV(ks=[6, 3, 2, 1], Cs=[0.1, 1.0], cv=3).fit(*data)
    display = CVScoreDisplay.from_estimator(model)
    line = display.ax_.lines[0]
    at = model.cv_results_["param_C"] == model.C_
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 6])
    np.testing.assert_array_equal(line.get_ydata(), model.cv_results_["mean_test_score"][at][::-1])
    assert display.chosen == model.k_
    assert display.figure_ is display.ax_.figure
    scores = [model.cv_results_[f"split{i}_test_score"][at][::-1] for i in range(3)]
    np.testing.assert_allclose(display.error, np.std(scores, axis=0, ddof=1) * np.sqrt(1 / 3 + 1 / 2))


def test_the_path_display_draws_each_feature_that_is_ever_used(data):
    path = sparse_svm_path(*data, ks=[3, 2, 1])
    display = SparsityPathDisplay.from_path(path, machine=1, feature_names=list("abcdef"))
    used = path.coefs[:, 1].any(axis=0).sum()
    assert len([line for line in display.ax_.lines if len(line.get_xdata()) == 3]) == used
    assert display.ax_.get_title() == "0 vs 2"


def test_the_coefficient_display_has_a_bar_per_machine_and_feature(data):
    model = SparseSVC(k=2).fit(*data)
    display = CoefficientDisplay.from_estimator(model)
    assert len(display.ax_.patches) == 3 * len(model.support_)
    two = SparseSVC(k=2).fit(data[0], data[1] > 0)
    display = CoefficientDisplay.from_estimator(two, feature_names=[f"${j}" for j in range(6)])
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert sorted(widths) == sorted(two.coef_[0, two.support_])
    display.figure_.canvas.draw()  # a dollar sign is no formula


def test_displays_draw_into_given_axes(data):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert CoefficientDisplay.from_estimator(SparseSVC(k=2).fit(*data), ax=ax).ax_ is ax


def test_names_that_do_not_fit_are_refused(data):
    with pytest.raises(ValueError, match="2 names for 6 features"):
        CoefficientDisplay.from_estimator(SparseSVC(k=2).fit(*data), feature_names=["a", "b"])


def test_many_machines_are_drawn_as_shades_of_their_classes():
    """A hundred bars for a feature say nothing."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(8), 10)
    X = rng.standard_normal((80, 5)) + 2 * np.eye(8)[y][:, :5]
    model = SparseSVC(k=3).fit(X, y)
    display = CoefficientDisplay.from_estimator(model)
    assert display.coefs.shape == (8, 3)
    assert display.machines == [str(c) for c in range(8)]
    (image,) = display.ax_.images
    np.testing.assert_array_equal(image.get_array(), display.coefs.T)
    names = [int(name.removeprefix("x")) for name in display.feature_names]
    signs = [[1 if pair[1] == 7 else -1 if pair[0] == 7 else 0] for pair in combinations(range(8), 2)]
    np.testing.assert_allclose(display.coefs[7], (np.array(signs) * model.coef_[:, names]).sum(axis=0) / 7)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == display.machines
    display.figure_.canvas.draw()


def test_axes_say_what_k_counts(data):
    groups = [0, 0, 1, 2, 3, 4]
    model = SparseSVCCV(ks=[3, 1], cv=2, groups=groups).fit(*data)
    assert CVScoreDisplay.from_estimator(model).ax_.get_xlabel() == "k, the number of groups"
    assert SparsityPathDisplay.from_path(model.path_).ax_.get_xlabel() == "k, the number of groups"
    each = sparse_svm_path(*data, ks=[2, 1], shared=False)
    label = SparsityPathDisplay.from_path(each).ax_.get_xlabel()
    assert label == "k, the number of features of each machine"
