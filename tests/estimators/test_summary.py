"""A fitted model as a frame of its features, and what a path counts."""

import re

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from kmargin import MM, CoefficientDisplay, sparse_svm_path
from kmargin.estimators import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV

IRIS = load_iris(as_frame=True)
X, Y = (IRIS.data - IRIS.data.mean()) / IRIS.data.std(), IRIS.target
SEPAL_LENGTH, SEPAL_WIDTH, PETAL_LENGTH, PETAL_WIDTH = X.columns
GROUPS = {"sepal": [SEPAL_LENGTH, SEPAL_WIDTH]}
MACHINES = ["coef: 0 vs 1", "coef: 0 vs 2", "coef: 1 vs 2"]


@pytest.mark.parametrize("make", [lambda **a: SparseSVC(2, **a), lambda **a: SparseSVCCV([2], cv=2, **a)])
def test_a_summary_has_a_row_for_each_feature_in_use_and_a_column_for_each_machine(make):
    model = make().fit(X, Y)
    summary = model.summary()
    assert list(summary.columns) == ["feature", "group", "always_in", "sign", *MACHINES]
    assert set(summary["feature"]) == set(X.columns[model.support_])
    assert summary["group"].tolist() == summary["feature"].tolist()
    assert not summary["always_in"].any()
    assert set(summary["sign"]) == {""}
    places = [X.columns.get_loc(name) for name in summary["feature"]]
    np.testing.assert_array_equal(summary[MACHINES].to_numpy().T, model.coef_[:, places])
    assert summary[MACHINES].abs().max(axis=1).is_monotonic_decreasing


def test_a_summary_says_what_was_asked_for():
    model = SparseSVC(2, groups=GROUPS, keep=["sepal"], signs={PETAL_WIDTH: -1, SEPAL_WIDTH: 1}).fit(X, Y)
    summary = model.summary().set_index("feature")
    assert summary.loc[SEPAL_LENGTH, "group"] == summary.loc[SEPAL_WIDTH, "group"] == "sepal"
    assert summary["always_in"].to_dict() == {name: name.startswith("sepal") for name in summary.index}
    assert summary.loc[SEPAL_WIDTH, "sign"] == "+"
    assert (summary.loc[SEPAL_WIDTH, MACHINES] >= 0).all()


def test_what_is_always_in_has_a_row_even_without_weight():
    two = Y < 2
    with pytest.warns(UserWarning, match="No feature lowers the objective"):
        model = SparseSVC(1, keep=[PETAL_WIDTH], signs={PETAL_WIDTH: -1}).fit(X[two], Y[two])
    assert len(model.support_) == 0, "the sign leaves it no weight"
    row = {"feature": PETAL_WIDTH, "group": PETAL_WIDTH, "always_in": True, "sign": "-", "coef": 0.0}
    expected = pd.DataFrame([row])
    pd.testing.assert_frame_equal(model.summary(), expected)


def test_features_without_names_are_numbered_and_no_features_are_no_rows():
    model = SparseSVC(1).fit(X.to_numpy(), Y > 0)
    assert model.summary()["feature"].tolist() == [f"x{model.support_[0]}"]
    assert len(SparseSVC(0).fit(X, Y).summary()) == 0


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        ({}, "features"),
        ({"shared": False}, "features of each binary classifier"),
        ({"groups": GROUPS}, "groups"),
        ({"groups": GROUPS, "shared": False}, "groups of each binary classifier"),
    ],
    ids=["features", "features each", "groups", "groups each"],
)
def test_a_path_knows_what_it_counts_and_how_much_of_it_the_whole_model_uses(arguments, counted):
    path = sparse_svm_path(X, Y, [3, 2, 1], **arguments)
    assert path.counted == counted
    frame = path.to_frame()
    for k, rows in frame.groupby("k"):
        used = np.flatnonzero(path.coefs[list(path.ks).index(k)].any(axis=0))
        units = {0 if "groups" in arguments and j < 2 else j + 1 for j in used}
        assert set(rows["n_features_used"]) == {len(used)}
        assert set(rows["n_units"]) == {len(units)}
        assert (rows["n_nonzero"] <= len(used)).all()
    assert ((frame["n_units"] <= frame["k"]).all()) == ("shared" not in arguments)


def test_a_path_of_two_classes_or_of_a_kernel_counts_too():
    assert sparse_svm_path(X, Y > 0, [1], shared=False).counted == "features"
    path = KernelSparseSVCCV([4, 2], cv=2).fit(X, Y).path_
    assert path.counted == "training points"
    assert path.to_frame().groupby("k")["n_features_used"].first().to_dict() == {2: 2, 4: 4}
    own = KernelSparseSVCCV([4], cv=2, shared=False).fit(X, Y).path_
    assert own.counted == "training points of each binary classifier"
    assert not hasattr(KernelSparseSVC, "summary")
    with pytest.raises(TypeError, match="Paths of kernel models do not accept dask collections"):
        path.predict(da.from_array(X.to_numpy()), 2)
    shown = [re.split(r"\s{2,}", line.strip()) for line in repr(path).splitlines()]
    assert shown[1] == ["classifiers", "0 vs 1, 0 vs 2, 1 vs 2"]
    assert shown[2] == ["k", "points used", "mean objective", "status"]
    means = [f"{mean:.5g}" for mean in path.objectives.mean(axis=1)]
    assert [line[:3] for line in shown[3:]] == [["4", "4", means[0]], ["2", "2", means[1]]]
    two = repr(sparse_svm_path(X, Y > 0, [3])).splitlines()[2]
    assert two.split("  ") == ["", "k", "features used", "objective", "status"]


BREAST = load_breast_cancer(as_frame=True)
WIDE, SICK = BREAST.data.iloc[:150, :8], BREAST.target.iloc[:150]
WEIGHTS = np.arange(150) % 3


@pytest.fixture(scope="module")
def assessed():
    model = SparseSVC(3, C=0.5, standardize=True, keep=["mean area"]).fit(WIDE, SICK, sample_weight=WEIGHTS)
    return model, model.summary(WIDE, SICK, sample_weight=WEIGHTS).set_index("feature")


def test_weights_are_coefficients_times_spreads(assessed):
    """They are the coefficients of the scaled features, and order the rows."""
    model, frame = assessed
    scaler = StandardScaler().fit(WIDE, sample_weight=WEIGHTS)
    scaled = (WIDE - scaler.mean_) / scaler.scale_
    twin = SparseSVC(3, C=0.5, keep=["mean area"]).fit(scaled, SICK, sample_weight=WEIGHTS)
    expected = pd.Series(twin.coef_[0], WIDE.columns)[frame.index]
    np.testing.assert_allclose(frame["weight"], expected, rtol=1e-6)
    assert frame["weight"].abs().is_monotonic_decreasing
    np.testing.assert_allclose(frame["coef"], model.coef_[0, [WIDE.columns.get_loc(n) for n in frame.index]])


def least(features, **arguments):
    """The objective of a fit to these features alone."""
    model = SparseSVC("all", C=0.5, standardize=True, **arguments)
    return float(model.fit(WIDE[list(features)], SICK, sample_weight=WEIGHTS).objective_[0])


def test_costs_are_those_of_fits_without_the_feature_and_with_each_other_in_its_place(assessed):
    model, frame = assessed
    chosen, whole = set(frame.index), float(model.objective_[0])
    for feature, row in frame.iterrows():
        rest = chosen - {feature}
        assert row["cost_without"] == pytest.approx(least(rest) / whole - 1, rel=1e-6)
        if row["always_in"]:
            assert (row["stand_in"], np.isnan(row["stand_in_cost"])) == ("", True)
            continue
        costs = {other: least(rest | {other}) / whole - 1 for other in WIDE.columns if other not in chosen}
        assert row["stand_in"] == min(costs, key=costs.get)
        assert row["stand_in_cost"] == pytest.approx(max(0.0, min(costs.values())), rel=1e-6, abs=1e-9)


def test_costs_of_chosen_values_are_at_the_chosen_C_and_of_groups_those_of_the_group():
    model = SparseSVCCV([2], Cs=[0.1, 1.0], cv=2, groups=GROUPS).fit(X, Y)
    frame = model.summary(X, Y)
    by_C = SparseSVC(2, C=model.C_, groups=GROUPS).fit(X, Y).summary(X, Y)
    pd.testing.assert_frame_equal(frame, by_C, rtol=1e-6)
    assert (frame.groupby("group")["cost_without"].nunique() == 1).all()
    weights = [name for name in frame.columns if name.startswith("weight: ")]
    assert weights == [name.replace("coef", "weight") for name in MACHINES]


def test_a_summary_says_what_it_needs():
    model = SparseSVC(2, shared=False).fit(X, Y)
    with pytest.raises(ValueError, match="With shared=False each binary classifier has its own features"):
        model.summary(X, Y)
    with pytest.raises(ValueError, match="summary was given data without y"):
        model.summary(X)
    with pytest.raises(ValueError, match="summary was given data without X"):
        model.summary(y=Y)
    two = SparseSVC(2, shared=False).fit(X, Y > 0).set_params(solver=MM(max_outer=1))  # each refit would warn
    assert len(two.summary(X, Y > 0)["cost_without"]) == 2
    with pytest.raises(ValueError, match="feature names"):
        SparseSVC(2).fit(X, Y).summary(X[X.columns[::-1]], Y)


def wide_and_narrow():
    """The second feature matters most, and has the smaller coefficient: its unit is smaller."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 3))
    y = np.where(0.5 * Z[:, 0] + 2 * Z[:, 1] + 0.3 * rng.standard_normal(200) > 0, "b", "a")
    return pd.DataFrame(Z * [1.0, 1000.0, 1.0], columns=["metres", "millimetres", "noise"]), y


@pytest.mark.parametrize("make", [SparseSVC, lambda k, **a: SparseSVCCV([k], **a)])
def test_features_are_ordered_by_weight_with_data_or_without(make):
    data, y = wide_and_narrow()
    model = make(2, standardize=True).fit(data, y)
    np.testing.assert_allclose(model.scale_, data.std(ddof=0))
    without, with_data = model.summary(), model.summary(data, y)
    assert without["feature"].tolist() == with_data["feature"].tolist() == ["millimetres", "metres"]
    np.testing.assert_allclose(without["weight"], with_data["weight"])
    assert abs(without["coef"][0]) < abs(without["coef"][1])
    display = CoefficientDisplay.from_estimator(model)
    assert display.feature_names == ["millimetres", "metres"]
    np.testing.assert_allclose(display.coefs[0], without["weight"])
    assert "standard deviation" in display.ax_.get_xlabel()


def test_coefficients_without_spreads_are_ordered_by_size_and_said_to_be_per_unit():
    data, y = wide_and_narrow()
    model = SparseSVC(2, standardize=True).fit(data, y).set_params(standardize=False).fit(data, y)
    assert not hasattr(model, "scale_"), "that of the earlier fit is gone"
    assert model.summary()["coef"].abs().is_monotonic_decreasing
    assert "per unit of the feature" in CoefficientDisplay.from_estimator(model).ax_.get_xlabel()
