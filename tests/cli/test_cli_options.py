"""Each option of `kmargin fit`, `predict` and `path` changes the result as it does in the estimators."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import StratifiedKFold
from tables_data import make_table
from typer.main import get_command
from typer.testing import CliRunner

from kmargin import KernelSparseSVC, SparseSVC, SparseSVCCV, StabilitySelection, sparse_svm_path
from kmargin.cli import commands
from kmargin.cli.app import app
from kmargin.cli.commands import table_name
from kmargin.estimators.stability import stability_C
from kmargin.model_selection.calibration import UnseenRows, fit_calibration
from kmargin.model_selection.scores import rate_interval
from kmargin.tables import model_file
from kmargin.tables.columns import Roles
from kmargin.tables.search import Settings

FEATURES = ["age", "dose", "noise", "x y", "z"]


def make_frame(n_classes=2):
    """Classes of different size that overlap, and weights that do not follow them."""
    frame = make_table(90, n_classes, seed=4)
    rng = np.random.default_rng(8)
    frame["age"] += 0.9 * rng.standard_normal(90)
    rare = frame["outcome"] == frame["outcome"].max()
    frame = frame[~rare | (rng.random(90) < 0.4)].reset_index(drop=True)
    return frame.assign(w=rng.choice([1.0, 3.0, 0.5], len(frame)))


FRAME = make_frame()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("data.csv", index=False)
    Path("groups.csv").write_text("group,feature\nblood,noise\nblood,age\nblood,x y\n")
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def fit(*options, data="data.csv", out="out"):
    """The model and the predictions of a fit with two features at C = 1, unless told otherwise."""
    drop = () if "w" in options else ("--drop", "w")
    rest = () if "--ks" in options else ("--k", 2)
    rest += () if "--C" in options else ("--C", 1)
    rest += () if "--pairs" in options else ("--pairs", 2)
    run("fit", data, "--target", "outcome", "--cv", 3, "--out", out, "-q", *drop, *rest, *options)
    return model_file.load(out), pd.read_csv(f"{out}/predictions.csv")


def walk(*options, data="data.csv"):
    """The table that `kmargin path` writes."""
    drop = () if "w" in options else ("--drop", "w")
    run("path", data, "--target", "outcome", "--out", "p.csv", *drop, *options)
    return pd.read_csv("p.csv")


def test_the_command_line_passes_the_defaults_of_the_analysis():
    passed = commands.FittingOptions().settings(**commands.FitOptions().settings())
    passed.check(Roles())
    assert passed == Settings()
    shown = {"standardize": True, "multi_class": "ovo", "select": "1se", "tolerance": 0.01, "gamma": "scale"}
    shown |= {"cv": 5, "nested": True, "pairs": 25, "scoring": "accuracy"}
    walked = {"standardize": True, "multi_class": "ovo", "ks": "20", "C": 1, "cv": 5, "scoring": "accuracy"}
    halved = {"standardize": True, "multi_class": "ovo", "pairs": 50}
    for name, expected in {"fit": shown, "path": walked, "stability": halved, "predict": {}}.items():
        command = get_command(app).get_command(None, name)
        assert {p.name: p.default for p in command.params if p.default not in (None, False, ())} == expected


ALLOWED = {"cv": [2], "repeats": [None, 1], "pairs": [0], "permutations": [0], "seed": [0, 2**32 - 1],
           "jobs": [None, 1, -1], "kernel": ["rbf", "poly", "linear", "sigmoid"],
           "select": ["best", "1se"]}  # fmt: skip


@pytest.mark.parametrize("option", ALLOWED)
def test_a_setting_is_allowed_up_to_its_limit(option):
    for value in ALLOWED[option]:
        Settings(**{option: value}).check(Roles())
    Settings(kernel="rbf", gamma=0.5, select="tolerance", tolerance=0.02).check(Roles())


def scale(X, weights, standardize=True):
    if not standardize:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    mean = np.average(X, axis=0, weights=weights)
    return mean, np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))


def by_hand(make, repeats=None, factor=None, standardize=True, cv=3, seed=0, frame=FRAME, columns=FEATURES):
    """Coefficients on all rows, and decisions of folds that see their own rows only."""
    X, y = frame[columns].to_numpy(), frame["outcome"].to_numpy()
    repeats = np.ones(len(y)) if repeats is None else repeats
    weights = repeats if factor is None else repeats * factor

    def machine(rows):
        mean, spread = scale(X[rows], repeats[rows], standardize)
        model = make().fit((X[rows] - mean) / spread, y[rows], sample_weight=weights[rows])
        return model, lambda Z: model.decision_function((Z - mean) / spread)

    decisions = [None] * len(y)
    for train, test in StratifiedKFold(cv, shuffle=True, random_state=seed).split(X, y):
        for row, value in zip(test, machine(train)[1](X[test]), strict=True):
            decisions[row] = value
    return machine(np.arange(len(y)))[0], np.array(decisions)


def scaled(frame=FRAME):
    X = frame[FEATURES].to_numpy()
    mean, spread = scale(X, np.ones(len(X)))
    return (X - mean) / spread, frame["outcome"].to_numpy()


def assert_fitted(model, expected, predictions=None, decisions=None):
    np.testing.assert_allclose(model.machine.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.machine.intercept_, expected.intercept_, rtol=1e-6, atol=1e-9)
    if predictions is not None:
        np.testing.assert_allclose(predictions["decision"], decisions, rtol=1e-6, atol=1e-9)


def make_linear(**arguments):
    return lambda: SparseSVC(**{"k": 2, "C": 1.0} | arguments)


def balance(frame=FRAME):
    counts = frame["outcome"].value_counts()
    return frame["outcome"].map(len(frame) / (len(counts) * counts)).to_numpy()


WEIGHTS = FRAME["w"].to_numpy()
LINEAR = {
    "nothing": ((), {}, {}), "--balanced": (("--balanced",), {"factor": balance()}, {}),
    "--weights": (("--weights", "w"), {"repeats": WEIGHTS}, {}),
    "--weights --balanced": (("--weights", "w", "--balanced"), {"repeats": WEIGHTS, "factor": balance()}, {}),
    "--no-standardize": (("--no-standardize",), {"standardize": False}, {}),
    "--k": (("--k", "1"), {}, {"k": 1}), "--C": (("--C", "0.01"), {}, {"C": 0.01}),
    "--C inf": (("--C", "inf"), {}, {"C": np.inf}), "--cv": (("--cv", "4"), {"cv": 4}, {}),
    "--seed": (("--seed", "5"), {"seed": 5}, {}), "--keep": (("--keep", "noise"), {}, {"keep": [2]}),
    "--keep twice": (("--keep", "noise", "--keep", "x y"), {}, {"keep": [2, 3]}),
    "--avoid": (("--avoid", "age"), {}, {"avoid": [0]}),
    "--sign": (("--sign", "age=-", "--sign", "x y=+"), {}, {"signs": [-1, 0, 0, 1, 0]}),
    "--groups": (("--groups", "groups.csv"), {}, {"groups": [0, 1, 0, 0, 2]}),
    "--drop and --id": (("--drop", "dose", "--id", "z"), {"columns": ["age", "noise", "x y"]}, {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return by_hand(make_linear())


@pytest.mark.parametrize(("options", "how", "arguments"), LINEAR.values(), ids=LINEAR.keys())
def test_an_option_of_fit_does_in_folds_and_model_what_the_estimator_does(plain, options, how, arguments):
    model, predictions = fit(*options)
    expected, decisions = by_hand(make_linear(**arguments), **how)
    assert_fitted(model, expected, predictions, decisions)
    assert not options or not np.allclose(decisions, plain[1], rtol=1e-3), "the option makes a difference"
    if "--id" in options:
        np.testing.assert_allclose(predictions["id"], FRAME["z"])
    if "--k" in options:
        FRAME[[*model.needed]].to_csv("one.csv", sep=";", decimal=",", index=False)
        FRAME[[*model.needed]].to_excel("one.xlsx", index=False)
        for file in ("one.csv", "one.xlsx"):
            found = pd.read_csv(io.StringIO(run("predict", "out", file).stdout))
            assert found["predicted"].tolist() == model.predict(FRAME).tolist()


@pytest.mark.drawn
@pytest.mark.parametrize("options", [(), ("--each-machine",)], ids=str)
@pytest.mark.parametrize("kernel", [None, "rbf"], ids=str)
def test_k_is_of_the_whole_model_unless_each_machine_is_to_have_its_own(options, kernel):
    frame = make_frame(3)
    frame.to_csv("three.csv", index=False)
    shared = not options
    if kernel is None:
        model, _ = fit("--k", 1, *options, data="three.csv")
        assert_fitted(model, by_hand(make_linear(k=1, shared=shared), frame=frame)[0])
    else:
        model, _ = fit("--k", 2, "--kernel", kernel, *options, data="three.csv")
    assert (len(model.machine.support_) <= model.parameters["k"]) == shared, "else it does nothing"
    assert model.parameters["shared"] == shared
    page = Path("out/report.html").read_text()
    unit_label = "features" if kernel is None else "training points"
    assert (f"k, the number of {unit_label} of each binary classifier" in page) == (not shared)
    assert ("for each pair of classes" in page) == (not shared)
    if kernel is None:
        (step,) = walk("--ks", "1,", "--cv", 0, *options, data="three.csv").to_dict("records")
        assert step["n_features"] == len(model.machine.support_)


@pytest.fixture
def coloured():
    """A table with a column of texts that matters as a whole."""
    hue = np.random.default_rng(2).choice(["red", "blue", "green"], len(FRAME))
    frame = FRAME.drop(columns="w").assign(hue=hue)
    tint = pd.Series(hue).map({"red": 1.5, "blue": 0.0, "green": -1.5})
    frame["outcome"] = np.where(frame["age"] + tint > 0, "yes", "no")
    frame.to_csv("hues.csv", index=False)
    return frame


def fit_hues(*options):
    words = ["fit", "hues.csv", "--target", "outcome", "--encode", "onehot", "--C", 1, "--cv", 3]
    told = run(*words, "--out", "out", *options).stdout
    return model_file.load("out"), " ".join(told.split()), Path("out/report.html").read_text()


def hues_by_hand(frame, **arguments):
    X = np.column_stack([frame[FEATURES], *(frame["hue"] == name for name in ("blue", "green", "red"))])
    mean, spread = scale(X.astype(float), np.ones(len(X)))
    return SparseSVC(C=1.0, **arguments).fit((X - mean) / spread, frame["outcome"])


@pytest.mark.drawn
def test_the_values_of_a_text_column_are_one_variable_unless_each_is_to_count(coloured):
    model, told, page = fit_hues("--k", 2)
    expected = hues_by_hand(coloured, k=2, groups=[0, 1, 2, 3, 4, 5, 5, 5])
    assert_fitted(model, expected)
    assert len(expected.support_) == 4
    assert told.startswith("2 of 6 variables (age, hue) distinguish no from yes")
    single, told, page = fit_hues("--k", 2, "--each-value")
    assert_fitted(single, hues_by_hand(coloured, k=2))
    assert told.startswith("2 of 8 features distinguish no from yes")
    assert "variables" not in told + page


def test_a_path_counts_as_asked_and_its_axis_says_what(coloured):
    words = ["--encode", "onehot", "--ks", "2,0", "--cv", 0, "--plot", "p.svg"]
    found = {}
    for options, unit_label in (
        ((), "variables"),
        (("--each-value",), "features"),
        (("--group-by", " "), "groups"),
    ):
        told = run("path", "hues.csv", "--target", "outcome", "--out", "p.csv", *words, *options).stdout
        _, found[unit_label] = pd.read_csv("p.csv").to_dict("records")
        assert f"k, the number of {unit_label}" in Path("p.svg").read_text()
        for label in ("variables", "groups"):
            assert (f"({label})" in told) == (unit_label == label)
    assert found["variables"]["features"] == "age; hue=blue; hue=green; hue=red"
    assert found["variables"]["units"] == "age; hue"
    assert found["features"]["n_features"] == 2
    assert found["groups"]["n_units"] == 2
    assert "units" not in found["features"]


def test_names_of_text_columns_stand_for_all_their_values(coloured):
    groups = [0, 1, 2, 3, 4, 5, 5, 5]
    model, told, page = fit_hues("--k", 1, "--keep", "hue", "--sign", "hue=-", "--sign", "hue=red=-")
    signs = [0, 0, 0, 0, 0, -1, -1, -1]
    assert_fitted(model, hues_by_hand(coloured, k=1, groups=groups, keep=[5], signs=signs))
    assert (model.machine.coef_ <= 0).all()
    assert "always in, −" in told
    assert '<span class="aside">always in, −</span>' in page
    assert '<td>always in</td><td class="name">hue</td>' in page
    model, _, page = fit_hues("--k", 2, "--avoid", "hue")
    assert model.needed <= set(FEATURES)
    assert '<td>never in</td><td class="name">hue</td>' in page
    model, _, _ = fit_hues("--k", 2, "--avoid", "hue=red", "--keep", "hue=blue")
    assert model.machine.coef_[0, 5:].astype(bool).tolist() == [True, True, False]


def test_a_sign_is_kept_in_every_machine_and_shown():
    make_frame(3).to_csv("three.csv", index=False)
    free, _ = fit("--k", 3, data="three.csv")
    assert (free.machine.coef_[:, 0] > 0).any()
    model, _ = fit("--k", 3, "--sign", "age=-", "--keep", "age", data="three.csv")
    assert (model.machine.coef_[:, 0] <= 0).all()
    assert pd.read_csv("out/features.csv").set_index("feature").loc["age", "sign"] == "-"
    page = Path("out/report.html").read_text()
    assert '<td>signs</td><td class="name">age −</td>' in page
    assert "may only favour the later of the two classes (low, mid, top), or only the earlier" in page


def test_weights_count_in_the_accuracy_and_its_interval():
    options = ("--target", "outcome", "--weights", "w", "--k", 2, "--C", 1, "--cv", 3, "--out", "out")
    told = " ".join(run("fit", "data.csv", *options).stdout.split())
    predictions = pd.read_csv("out/predictions.csv")
    right = (predictions["actual"] == predictions["predicted"]).to_numpy()
    accuracy = 100 * np.average(right, weights=WEIGHTS)
    assert f"{accuracy:.1f} % accuracy on held-out rows" in told
    assert f"{100 * right.mean():.1f}" != f"{accuracy:.1f}", "the weights make a difference"
    low, high = rate_interval(accuracy / 100, WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum())
    assert f"{100 * low:.1f} to {100 * high:.1f}" in told
    page, totals = Path("out/report.html").read_text(), FRAME.groupby("outcome")["w"].sum()
    assert f"<b>{accuracy:.1f} %</b>" in page
    assert f"<b>{100 * totals.max() / totals.sum():.1f} %</b>by guessing the most common class" in page
    assert '<td>row weights</td><td class="name">from a column</td>' in page


SCORES = {
    "accuracy": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "f1_macro": lambda y, p, sample_weight: f1_score(y, p, average="macro", sample_weight=sample_weight),
}


@pytest.mark.parametrize(
    ("scoring", "weighted"), [("accuracy", True), ("balanced_accuracy", False), ("f1_macro", True)]
)
def test_the_score_asked_for_is_the_one_on_the_page(scoring, weighted):
    options = ("--weights", "w") if weighted else ()
    _, predictions = fit("--scoring", scoring, *options)
    weights = WEIGHTS if weighted else np.ones(len(FRAME))
    scores = []
    for _, fold in predictions.groupby("fold"):
        scores.append(SCORES[scoring](fold["actual"], fold["predicted"], sample_weight=weights[fold.index]))
    cell = re.search(r'<tr class="marked"><td>2</td><td>([\d.]+)', Path("out/report.html").read_text())[1]
    expected = f"{np.mean(scores):.3f}" if scoring == "f1_macro" else f"{100 * np.mean(scores):.1f}"
    assert cell == expected


@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [("rbf", "scale"), ("rbf", "auto"), ("poly", "0.7"), ("sigmoid", "auto"), ("linear", "scale")],
)
def test_a_kernel_and_its_width_are_those_asked_for(kernel, gamma):
    model, _ = fit("--kernel", kernel, "--gamma", gamma, "--k", 3)
    X, y = scaled()
    number = gamma if gamma in ("scale", "auto") else float(gamma)
    number = {"scale": 1 / (5 * X.var()), "auto": 1 / 5}.get(gamma, number)
    numbers = {"gamma": number, "degree": 3, "coef0": 0.0}
    points = X[model.machine.support_]
    values = pairwise_kernels(points, X, metric=kernel, filter_params=True, **numbers)
    decisions = model.machine.coef_[0] @ values + model.machine.intercept_[0]
    found = pd.read_csv(io.StringIO(run("predict", "out", "data.csv").stdout))
    np.testing.assert_allclose(found["decision"], decisions, rtol=1e-7, atol=1e-9)
    alone = KernelSparseSVC(k=3, C=1.0, kernel=kernel, gamma=number).fit(X, y)
    assert np.mean(found["predicted"] == y) >= np.mean(alone.predict(X) == y) - 0.1


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_several_classes_are_told_apart_as_asked(scheme):
    frame = make_frame(3)
    frame.to_csv("three.csv", index=False)
    model, _ = fit("--multi-class", scheme, data="three.csv")
    assert_fitted(model, by_hand(make_linear(multi_class=scheme), frame=frame)[0])
    assert ("weight: rest vs low" in pd.read_csv("out/features.csv").columns) == (scheme == "ovr")


GRID = ("--ks", "1,2,3,5", "--C", "0.001,0.1,10", "--seed", 3, "--no-nested", "--repeats", 1)


def search_by_hand(**more):
    folds = StratifiedKFold(3, shuffle=True, random_state=3)
    search = SparseSVCCV(ks=[5, 3, 2, 1], Cs=[0.001, 0.1, 10.0], cv=folds, standardize=True, **more)
    return search.fit(FRAME[FEATURES].to_numpy(), FRAME["outcome"].to_numpy())


def test_k_and_C_are_chosen_as_asked():
    chosen = {}
    for select, tolerance in (("best", 0.01), ("1se", 0.01), ("tolerance", 0.5), ("tolerance", 0)):
        model, _ = fit(*GRID, "--select", select, "--tolerance", tolerance)
        search = search_by_hand(selection=select, tolerance=tolerance)
        chosen[select, tolerance] = search.k_, search.C_
        assert (model.parameters["k"], model.parameters["C"]) == (search.k_, search.C_)
        np.testing.assert_allclose(model.machine.coef_ / model.scaling.spread, search.coef_, rtol=1e-6)
    best, sparser, loose, strict = chosen.values()
    assert best == strict, "without tolerance only the best is left"
    assert best not in (sparser, loose), "the rules, and the tolerances, make a difference"


def test_how_many_values_of_k_are_tried_may_be_a_number():
    table = walk("--ks", "3", "--cv", 0)
    search = SparseSVCCV(ks=3, Cs=[1.0], cv=2).fit(FRAME[FEATURES].to_numpy(), FRAME["outcome"].to_numpy())
    assert table["k"].tolist() == sorted(set(search.cv_results_["param_k"]))
    assert len(table) == 3


PATHS = {
    "nothing": ((), {}, {}), "--balanced": (("--balanced",), {"class_weight": "balanced"}, {}),
    "--weights": (("--weights", "w"), {"sample_weight": WEIGHTS}, {"weights": WEIGHTS}),
    "--C": (("--C", "0.01"), {"C": 0.01}, {}),
    "--no-standardize": (("--no-standardize",), {}, {"standardize": False}),
}  # fmt: skip


@pytest.mark.parametrize(("options", "arguments", "how"), PATHS.values(), ids=PATHS.keys())
def test_an_option_of_path_does_what_the_path_does(options, arguments, how):
    table = walk("--ks", "1,2,5", "--cv", 0, *options)
    X, y = FRAME[FEATURES].to_numpy(), FRAME["outcome"].to_numpy()
    repeats = how.get("weights", np.ones(len(y)))
    mean, spread = scale(X, repeats, how.get("standardize", True))
    path = sparse_svm_path((X - mean) / spread, y, [5, 2, 1], **{"C": 1.0} | arguments)
    expected = [path.objectives[at].mean() for at in (2, 1, 0)]
    np.testing.assert_allclose(table["objective"], expected, rtol=1e-7)
    accuracy = [np.average(path.predict((X - mean) / spread, k) == y, weights=repeats) for k in (1, 2, 5)]
    np.testing.assert_allclose(table["training_accuracy"], accuracy)


def test_the_folds_of_a_path_follow_cv_seed_and_weights():
    table = walk("--ks", "2,", "--cv", 4, "--seed", 3, "--weights", "w")
    _, decisions = by_hand(make_linear(), repeats=WEIGHTS, cv=4, seed=3)
    right = (decisions > 0) == (FRAME["outcome"] == "yes")
    splits = list(StratifiedKFold(4, shuffle=True, random_state=3).split(FRAME, FRAME["outcome"]))
    scores = [np.average(right[test], weights=WEIGHTS[test]) for _, test in splits]
    assert table["cv_accuracy"].iloc[0] == pytest.approx(np.mean(scores))
    ratio = np.mean([len(test) / len(train) for train, test in splits])
    assert table["cv_standard_error"].iloc[0] == pytest.approx(
        np.std(scores, ddof=1) * np.sqrt(1 / 4 + ratio), rel=1e-3
    )


def test_a_path_knows_several_classes_and_its_plot_the_format_asked_for():
    frame = make_frame(3)
    frame.to_csv("three.csv", index=False)
    table = walk("--ks", "2,", "--cv", 0, "--multi-class", "ovr", "--plot", "p.png", data="three.csv")
    path = sparse_svm_path(*scaled(frame), [2], C=1.0, multi_class="ovr")
    assert table["objective"].iloc[-1] == pytest.approx(path.objectives.mean())
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_probabilities_are_written_down_if_asked_for():
    _, plain = fit()
    model, predictions = fit("--proba", "--seed", 1)
    names = ["probability: no", "probability: yes"]
    assert not set(names) & set(plain.columns)
    np.testing.assert_allclose(predictions[names].sum(axis=1), 1)
    assert model.calibration is not None
    told = pd.read_csv(io.StringIO(run("predict", "out", "data.csv", "--proba", "-q").stdout))
    decisions = model.machine.decision_function(model.scaling(FRAME[FEATURES].to_numpy()))
    odds = decisions * model.calibration.slopes[0] + model.calibration.offsets[0]
    np.testing.assert_allclose(told["probability: yes"], (1 / (1 + np.exp(-odds))).round(3), atol=1e-12)
    assert "probability: yes" not in run("predict", "out", "data.csv", "-q").stdout


def test_probabilities_of_a_fit_are_learned_from_rows_that_machines_had_not_seen():
    model, _ = fit()
    _, decisions = by_hand(make_linear())
    y = (FRAME["outcome"] == "yes").to_numpy().astype(int)
    expected = fit_calibration(
        UnseenRows(decisions[:, None], y, np.ones(len(y))), np.array(["no", "yes"]), "ovo"
    )
    np.testing.assert_allclose(model.calibration.slopes, expected.slopes, rtol=1e-6)
    np.testing.assert_allclose(model.calibration.offsets, expected.offsets, rtol=1e-6, atol=1e-9)


def test_scores_of_probabilities_choose_as_the_estimator_chooses():
    model, _ = fit(*GRID, "--scoring", "neg_log_loss", "--select", "best")
    search = search_by_hand(scoring="neg_log_loss")
    assert (model.parameters["k"], model.parameters["C"]) == (search.k_, search.C_)
    cells = re.search(r'<tr class="marked"><td>(\d+)</td><td>(-[\d.]+)', Path("out/report.html").read_text())
    assert (int(cells[1]), cells[2]) == (search.k_, f"{search.best_score_:.3f}")


def test_halves_are_those_of_stability_selection():
    fit("--pairs", 4)
    frame = pd.read_csv("out/features.csv").set_index("feature")
    X, y, how = FRAME[FEATURES], FRAME["outcome"], {"n_pairs": 4, "standardize": True, "random_state": 0}
    selection = StabilitySelection(SparseSVC(k=2, C=1.0), **how).fit(X, y)
    np.testing.assert_allclose(frame.loc[FEATURES, "halves"], selection.frequencies_)
    fit("--pairs", 0)
    assert "halves" not in pd.read_csv("out/features.csv").columns
    options = ["--drop", "w", "--k", "2", "--pairs", "4", "--max-false", "0.5", "--balanced"]
    told = run("stability", "data.csv", "--target", "outcome", *options, "--out", "s.csv").stdout
    frame = pd.read_csv("s.csv")
    assert frame["frequency"].is_monotonic_decreasing
    model = SparseSVC(k=2, C=stability_C(len(y), 5), class_weight="balanced")
    selection = StabilitySelection(model, max_false=0.5, **how).fit(X, y)
    np.testing.assert_allclose(frame.set_index("feature").loc[FEATURES, "frequency"], selection.frequencies_)
    assert {*frame["feature"][frame["stable"]]} == {FEATURES[j] for j in selection.support_} != set()
    assert f"selected on at least {100 * selection.threshold_:.4g} % of 8" in " ".join(told.split())


def test_help_says_where_defaults_are_not_those_of_the_estimators():
    parameters = get_command(app).get_command(None, "fit").params
    help_of = {parameter.name: parameter.help for parameter in parameters if parameter.help}
    differ = {name for name, help in help_of.items() if "Default of the estimators: " in help}
    assert differ == {"C", "select", "repeats", "standardize"}
    defaults = SparseSVCCV()
    assert (defaults.selection, tuple(defaults.Cs), defaults.repeats) == ("best", (1.0,), 1)
    assert not defaults.standardize
    assert {parameter.name: parameter.default for parameter in parameters}["tolerance"] == defaults.tolerance


@pytest.mark.parametrize("name", ["a.b.csv", "a.b.csv.gz", "a.b.tsv.bz2", "a.b.parquet", "a.b.csv.zip"])
def test_a_folder_is_called_after_its_table_however_that_is_packed(name):
    assert table_name(Path("somewhere") / name) == "a.b"


def test_a_path_notes_fewer_folds_and_the_warnings_of_libraries_once():
    frame = FRAME.assign(outcome=["no"] * (len(FRAME) - 2) + ["yes"] * 2)
    frame.to_csv("few.csv", index=False)
    words = ("path", "few.csv", "--target", "outcome", "--ks", "1,2", "--scoring", "precision_macro")
    result = run(*words)
    assert "Note: Class 'yes' has 2 rows: 2 folds instead of 5." in result.stdout
    assert result.stderr.count("Precision is ill-defined") == 1
    assert run(*words, "-q").stderr == ""
    frame[:-1].to_csv("few.csv", index=False)
    assert "folds instead" not in run(*words, "--cv", 0).stdout
