"""Plots show the given numbers and names, and refuse what they cannot draw."""

from functools import partial
from itertools import combinations, pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kmargin.displays.palette as palette
from kmargin import MM, SD, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.displays import CoefficientDisplay, ConvergenceDisplay, CVScoreDisplay, SparsityPathDisplay
from kmargin.displays.common import plain, shorten

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).standard_normal((60, 6))
    return X, (X[:, 0] - X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


def test_the_coefficient_display_has_a_bar_per_classifier_and_feature(data):
    ax, model = Figure().subplots(), SparseSVC(k=2).fit(*data)
    display = CoefficientDisplay.from_estimator(model, ax=ax)
    assert (display.ax_, display.figure_, len(ax.patches)) == (ax, ax.figure, 3 * len(model.support_))
    two = SparseSVC(k=2).fit(data[0], data[1] > 0)
    display = CoefficientDisplay.from_estimator(two, feature_names=[f"${j}" for j in range(6)])
    assert sorted(bar.get_width() for bar in display.ax_.patches) == sorted(two.coef_[0, two.support_])
    display.figure_.canvas.draw()  # a dollar sign is no formula


def test_coefficients_of_many_classifiers_are_drawn_as_an_image_by_class():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(8), 10)
    X = rng.standard_normal((80, 5)) + 2 * np.eye(8)[y][:, :5]
    model = SparseSVC(k=3).fit(X, y)
    display = CoefficientDisplay.from_estimator(model)
    assert (display.coefs.shape, display.machines) == ((8, 3), [str(c) for c in range(8)])
    (image,) = display.ax_.images
    np.testing.assert_array_equal(image.get_array(), display.coefs.T)
    names = [int(name.removeprefix("x")) for name in display.feature_names]
    signs = [[1 if pair[1] == 7 else -1 if pair[0] == 7 else 0] for pair in combinations(range(8), 2)]
    np.testing.assert_allclose(display.coefs[7], (np.array(signs) * model.coef_[:, names]).sum(axis=0) / 7)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == display.machines
    for text in display.ax_.texts:
        share = display.coefs[text.get_position()] / np.abs(display.coefs).max()
        assert text.get_text() == ("+" if share > 0 else "−")
        assert (text.get_color() == "white") == (abs(share) > 0.55), "white on dark cells"
    display.figure_.canvas.draw()


def test_long_names_lose_their_middle_and_nothing_in_names_is_a_formula_or_unprintable():
    assert plain("a$b\n") == "a\\$b\ufffd"
    letters = "".join(map(chr, range(65, 65 + 41)))
    assert (plain(letters[:40]), plain(letters)) == (letters[:40], f"{letters[:20]}…{letters[-19:]}")
    assert (shorten("x" * 36), shorten("x" * 37)) == ("x" * 36, "x" * 18 + "…" + "x" * 17)


def test_the_path_of_a_standardised_model_is_drawn_per_standard_deviation(data):
    X, y = data
    model = SparseSVCCV(ks=[3, 1], cv=2, standardize=True).fit(X * 10.0 ** np.arange(6), y > 0)
    display = SparsityPathDisplay.from_estimator(model, n_labels=1)
    assert len(texts(display.ax_)) == 2
    np.testing.assert_allclose(display.coefs, model.path_.coefs[:, 0] * model.scale_)
    assert display.ax_.get_ylabel() == "weight, per standard deviation"


NAMES = ["age", "sex", "bmi", "bp", "s1", "s2"]


@pytest.fixture(scope="module")
def frame(data):
    return pd.DataFrame(data[0], columns=NAMES)


@pytest.fixture(scope="module")
def fits(data, frame):
    """A path, and a model whose k was chosen."""
    y = data[1] > 0
    return sparse_svm_path(frame, y, [6, 2]), SparseSVCCV(ks=[6, 4, 2, 1], cv=2).fit(frame, y)


def texts(ax):
    """The names of the lines, from top to bottom."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_and_bars_have_the_names_of_the_columns_or_of_the_rows(data, fits):
    path, chosen = fits
    coefs = dict(zip(NAMES, path.coefs[0, 0], strict=True))
    assert texts(SparsityPathDisplay.from_path(path).ax_) == sorted(NAMES, key=lambda name: -coefs[name])
    assert set(CoefficientDisplay.from_estimator(chosen).feature_names) <= set(NAMES)
    assert set(texts(SparsityPathDisplay.from_estimator(chosen).ax_)) == set(NAMES)
    some = texts(SparsityPathDisplay.from_path(path, n_labels=3).ax_)
    assert (len(some), "3 others" in some) == (4, True)
    kernel = KernelSparseSVCCV([3, 1], cv=2).fit(*data)
    names = texts(SparsityPathDisplay.from_estimator(kernel).ax_)
    assert set(names) == {f"row {row}" for row in kernel.path_.inputs.columns}


@pytest.mark.parametrize("ks", [[6, 2, 1], [6, 5, 4], [3, 0], [4]])
def test_the_values_of_k_fill_the_axis(data, ks):
    path = SparsityPathDisplay.from_path(sparse_svm_path(*data, ks))
    for display in (path, CVScoreDisplay(ks, np.ones(len(ks)), np.zeros(len(ks))).plot()):
        place = display.ax_.transAxes.inverted().transform
        ends = [place(display.ax_.transData.transform((k, 0)))[0] for k in (min(ks), max(ks))]
        assert ends == pytest.approx([0.037, 0.963] if len(ks) > 1 else [0.5, 0.5], abs=1e-3)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_the_legend_does_not_overlap_neighbouring_axes(fits, layout):
    figure = Figure(figsize=(8, 3), layout=layout)
    left, right = figure.subplots(1, 2)
    SparsityPathDisplay.from_path(fits[0], ax=left)
    figure.draw_without_rendering()
    assert left.get_legend().get_window_extent().x1 <= right.get_window_extent().x0


def test_models_inside_pipelines_and_grid_searches_are_drawn(data, frame):
    y = data[1] > 0
    pipeline = make_pipeline(StandardScaler(), SparseSVC(k=2)).fit(frame, y)
    display = CoefficientDisplay.from_estimator(pipeline)
    largest = sorted(pipeline[-1].support_, key=lambda j: -abs(pipeline[-1].coef_[0, j]))
    assert display.feature_names == [NAMES[j] for j in largest]
    first = make_pipeline(SparseSVC(k=2), LogisticRegression()).fit(frame, y)
    assert set(CoefficientDisplay.from_estimator(first).feature_names) <= set(NAMES)
    both = make_pipeline(SparseSVC(k=4), SparseSVC(k=2)).fit(frame, y)
    assert len(CoefficientDisplay.from_estimator(both).feature_names) == 2, "those of the last"
    search = GridSearchCV(pipeline, {"sparsesvc__k": [2]}, cv=2).fit(frame, y)
    assert CoefficientDisplay.from_estimator(search).feature_names == display.feature_names
    inner = make_pipeline(StandardScaler(), SparseSVCCV(ks=[3, 1], cv=2)).fit(frame, y)
    assert CVScoreDisplay.from_estimator(inner).chosen == inner[-1].k_
    assert set(texts(SparsityPathDisplay.from_estimator(inner).ax_)) <= set(NAMES)


REFUSED = [  # the method, its argument, the exception and its message
    (CoefficientDisplay.from_estimator, SparseSVC(), NotFittedError, "SparseSVC instance is not fitted yet"),
    (CVScoreDisplay.from_estimator, SparseSVCCV(), NotFittedError, "Call 'fit'"),
    (CVScoreDisplay.from_estimator, make_pipeline(SparseSVCCV()), NotFittedError, "CV instance is not"),
    (ConvergenceDisplay.from_estimator, SparseSVC(), NotFittedError, "not fitted"),
    (CoefficientDisplay.from_estimator, SparseSVC, TypeError, "was given the class SparseSVC"),
    (CoefficientDisplay.from_estimator, make_pipeline(LogisticRegression()), TypeError, "pipeline has none"),
    (CoefficientDisplay.from_estimator, 3, TypeError, "needs a SparseSVC or SparseSVCCV, .* given int"),
    (CoefficientDisplay.from_estimator, "kernel", TypeError, "needs a SparseSVC .* given KernelSparseSVC"),
    (CoefficientDisplay.from_estimator, "empty", ValueError, "The model uses no feature"),
    (CVScoreDisplay.from_estimator, "single", TypeError, "needs a SparseSVCCV or Kernel.* has scores"),
    (ConvergenceDisplay.from_estimator, "single", ValueError, "has no trace: it was found by swapping"),
    (ConvergenceDisplay.from_solution, 3, TypeError, "from_solution was given int"),
    (partial(CoefficientDisplay.from_estimator, ax=Figure()), "single", TypeError, r"ax=.* is not a matpl"),
    (partial(SparsityPathDisplay.from_path, machine=3), "path", ValueError, "=3 is not one of .*'1 vs 2'.$"),
    (partial(SparsityPathDisplay.from_path, machine="1 vs 3"), "path", ValueError, "'1 vs 3' is not one"),
    (partial(SparsityPathDisplay.from_path, feature_names="abc"), "path", ValueError, "'abc' is not a list"),
    (partial(CoefficientDisplay.from_estimator, feature_names="ab"), "single", ValueError, "'ab' is not a"),
    (partial(CoefficientDisplay.from_estimator, feature_names=["a"]), "single", ValueError, "1 names for 6"),
]


@pytest.fixture(scope="module")
def models(data):
    kinds = {"single": SparseSVC(2), "kernel": KernelSparseSVC(2), "empty": SparseSVC(0)}
    fitted = {name: model.fit(*data) for name, model in kinds.items()}
    return fitted | {"path": sparse_svm_path(*data, ks=[2])}


@pytest.mark.parametrize(("draw", "given", "error", "message"), REFUSED)
def test_invalid_input_is_refused_with_a_message(models, draw, given, error, message):
    with pytest.raises(error, match=message):
        draw(models[given] if isinstance(given, str) else given)


def test_the_convergence_display_shows_the_trace(data):
    model = SparseSVC(2, solver=MM()).fit(data[0], data[1] > 0)
    trace = model.solutions_[0].trace
    display = ConvergenceDisplay.from_estimator(model)
    for ax, field in zip(display.axes_, ("objective", "distance_sq", "rho"), strict=True):
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [getattr(record, field) for record in trace])
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, len(trace) + 1))
    assert f"after {len(trace)} values of rho" in display.axes_[0].get_title()
    assert display.axes_[2].get_yscale() == "log"
    with pytest.raises(ValueError, match="axes has 1 axes for 3 panels"):
        display.plot(display.axes_[:1])


def test_recorded_steps_are_drawn_one_by_one(data):
    X, y = data
    trace = (model := SparseSVC(2, solver=MM(trace="steps")).fit(X, y > 0)).solutions_[0].trace
    display = ConvergenceDisplay.from_estimator(model)
    steps = [step for record in trace for step in record.steps]
    for ax, field in zip(display.axes_, ("objective", "gradient_sq", "distance_sq"), strict=True):
        (line,) = (line for line in ax.lines if len(line.get_xdata()) == len(steps))
        np.testing.assert_array_equal(line.get_ydata(), [getattr(step, field) for step in steps])
        assert line.get_xdata()[-1] == sum(record.n_inner for record in trace)
        new_rhos = np.cumsum([record.n_inner for record in trace])[:-1]
        assert [line.get_xdata()[0] for line in ax.lines if line.get_color() == palette.FAINT] == [*new_rhos]
    assert display.axes_[2].get_xlabel() == "inner iteration"
    apart = SparseSVC(2, solver=SD(trace="steps"), shared=False).fit(X, y)
    top = ConvergenceDisplay.from_estimator(apart).axes_[0]
    assert texts(top) == ["0 vs 1", "0 vs 2", "1 vs 2"]
    assert palette.FAINT not in [line.get_color() for line in top.lines]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_separately_fitted_classifiers_have_a_line_each(data):
    def show(X, y, k, **how):
        model = SparseSVC(k, solver=SD(**how), shared=k == "all").fit(X, y)
        return ConvergenceDisplay.from_estimator(model)

    apart, eight = show(*data, 2), show(data[0], np.arange(60) % 5, 2, rtol=1.0)
    assert [line.get_label() for line in apart.axes_[0].lines] == ["0 vs 1", "0 vs 2", "1 vs 2"]
    assert [ax.get_yscale() for ax in apart.axes_] == ["linear", "log", "log"]
    titles = [display.axes_[0].get_title() for display in (apart, eight)]
    assert titles == ["3 binary classifiers", "8 of 10 binary classifiers"]
    assert eight.names == [f"{a} vs {b}" for a, b in combinations(range(5), 2)][:8]
    together = show(*data, "all")
    (line,) = together.axes_[0].lines
    assert line.get_color() == palette.SOLVERS["sd"].color
    assert [ax.get_yscale() for ax in together.axes_] == ["linear", "linear", "log"], "the distance is 0"


@pytest.mark.parametrize(("ks", "expected"), [
    ([1, 2, 3, 4], "1 2 3 4"), ([0, 1], "0 1"), ([7], "7"), (range(1, 31), "1 2 3 5 10 20 30"),
    ([1, 40, 63, 12600], "1 63 12,600"),
    ([1, 9, 10, 11, 999, 1000, 1001], "1 2 3 5 10 20 30 50 100 300 500 1,001"),
])  # fmt: skip
def test_tick_labels_of_k_include_both_ends_and_do_not_overlap(ks, expected):
    figure = Figure(figsize=(5.2, 3.1), layout="constrained")
    scores = np.linspace(0.5, 0.9, len(ks))
    display = CVScoreDisplay(np.array(ks), scores, 0 * scores).plot(figure.subplots())
    figure.canvas.draw()
    labels = [t for t in display.ax_.get_xticklabels() if t.get_text()]
    boxes = sorted((t.get_window_extent().x0, t.get_window_extent().x1) for t in labels)
    assert all(left[1] < right[0] for left, right in pairwise(boxes))
    assert (" ".join(t.get_text() for t in labels), len(display.ax_.get_xticks(minor=True))) == (expected, 0)


@pytest.mark.parametrize(("chosen", "side"), [(2, "left"), (3, "left"), (5, "right"), (9, "right")])
def test_the_chosen_k_is_marked_and_accuracies_are_in_per_cent(chosen, side):
    display = CVScoreDisplay([5, 2, 9, 3], [0.61, 0.6, 0.605, 0.6], np.ones(4), chosen, "accuracy").plot()
    (note,) = display.ax_.texts
    assert (note.get_text(), note.get_ha(), note.xy[0]) == (f"k = {chosen}, chosen", side, chosen)
    _, line, ring = display.ax_.lines
    assert (line.get_xdata()[0], ring.get_ydata()[0]) == (chosen, display.mean[display.ks == chosen][0])
    label = display.ax_.yaxis.get_major_formatter()
    assert [label(share) for share in (0.6, 0.825, 0.6025)] == ["60 %", "82.5 %", "60.25 %"]


# three sizes, two classifiers, four features; the last feature is never used
COEFS = np.array([
    [[0.5, -3.0, 0.2, 0.0], [9.0, 0.0, -1.0, 0.0]],
    [[0.6, -2.0, 0.0, 0.0], [8.0, 0.0, 0.0, 0.0]],
    [[0.9, 0.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]],
])  # fmt: skip


def drawn(display):
    """The lines that have a point for every k, by their names."""
    return {line.get_label(): line.get_ydata() for line in display.ax_.lines if len(line.get_ydata()) == 3}


@pytest.mark.parametrize("machine", [0, 1, None])
def test_the_path_of_one_classifier_or_the_norm_over_all_is_drawn(machine):
    found = {"ks": [3, 2, 1], "coefs": COEFS, "classes": np.arange(3), "multi_class": "ovo"}
    path, names = SimpleNamespace(**found, counted="groups"), ["a", "b", "c", "d"]
    display = SparsityPathDisplay.from_path(path, machine=machine, feature_names=names)
    lines = drawn(display)
    title = "3 binary classifiers for 3 classes" if machine is None else f"0 vs {machine + 1}"
    assert (display.ax_.get_xlabel(), display.ax_.get_title()) == ("k, the number of groups", title)
    coefs = np.linalg.norm(COEFS, axis=1) if machine is None else COEFS[:, machine]
    expected = {name: coefs[:, j].tolist() for j, name in enumerate("abcd") if coefs[:, j].any()}
    assert {name: list(values) for name, values in lines.items()} == expected


def test_the_features_kept_longest_are_named_and_ties_go_to_the_largest():
    display = SparsityPathDisplay([3, 2, 1], COEFS[:, 0], ["$a", "b", "c", "d"])
    assert [label for label in drawn(display.plot(n_labels=1)) if label[0] != "_"] == [r"\$a"]
    assert {label for label in drawn(display.plot(n_labels=2)) if label[0] != "_"} == {r"\$a", "b"}
    tied = SparsityPathDisplay([2, 1], np.array([[1.0, -2.0], [1.0, -2.0]]), ["small", "large"])
    lines = tied.plot(n_labels=1).ax_.lines
    assert [line.get_label() for line in lines if line.get_label()[0] != "_"] == ["large"]


def test_bars_show_the_coefficients_of_largest_magnitude():
    fitted = {"coef_": np.array([[1.0, -5.0, 0.0, 2.0, -3.0]]), "support_": np.array([0, 1, 3, 4])}
    model = SimpleNamespace(**fitted, classes_=np.array([0, 1]), multi_class="ovo")
    display = CoefficientDisplay.from_estimator(model, feature_names=["a", "$b", "c", "d", "e"], n_features=3)
    assert [bar.get_width() for bar in display.ax_.patches] == [-5.0, -3.0, 2.0]
    colours = [to_hex(bar.get_facecolor()) for bar in display.ax_.patches]
    assert colours == [palette.NEGATIVE, palette.NEGATIVE, palette.POSITIVE]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [r"\$b", "e", "d"]
    assert display.ax_.get_xlabel() == "coefficient per unit of the feature\n(0 vs 1)"


def test_scores_are_those_of_the_chosen_C_in_the_order_of_k():
    results = {"param_C": np.repeat([1.0, 10.0], 2), "param_k": np.array([5, 2, 5, 2])}
    results["mean_test_score"] = np.array([0.1, 0.2, 0.7, 0.6])
    results["se_test_score"] = np.array([0.0, 0.0, 0.3, 0.6])
    path = SimpleNamespace(counted="groups of each binary classifier")
    model = SimpleNamespace(cv_results_=results, C_=10.0, k_=5, n_splits_=4, path_=path)
    for model.scoring, name in ((len, "score"), ("roc_auc", "roc_auc"), (None, "accuracy")):
        display = CVScoreDisplay.from_estimator(model)
        assert display.score_name == name
    assert np.array([display.ks, display.mean, display.error]).tolist() == [[2, 5], [0.6, 0.7], [0.6, 0.3]]
    assert display.ax_.get_ylabel() == "accuracy (cross-validated)\nand one standard error"
    assert display.ax_.get_xlabel() == "k, the number of groups of each binary classifier"
