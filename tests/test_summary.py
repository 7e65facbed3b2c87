"""A fitted model as a frame of its features, and what a path counts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from kmargin import KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path

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
    heaviest = summary[MACHINES].abs().max(axis=1)
    assert heaviest.is_monotonic_decreasing


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
    expected = pd.DataFrame(
        {"feature": [PETAL_WIDTH], "group": [PETAL_WIDTH], "always_in": [True], "sign": ["-"], "coef": [0.0]}
    )
    pd.testing.assert_frame_equal(model.summary(), expected)


def test_features_without_names_are_numbered_and_no_features_are_no_rows():
    model = SparseSVC(1).fit(X.to_numpy(), Y > 0)
    assert model.summary()["feature"].tolist() == [f"x{model.support_[0]}"]
    assert len(SparseSVC(0).fit(X, Y).summary()) == 0
    with pytest.raises(NotFittedError):
        SparseSVC().summary()


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        ({}, "features"),
        ({"shared": False}, "features of each machine"),
        ({"groups": GROUPS}, "groups"),
        ({"groups": GROUPS, "shared": False}, "groups of each machine"),
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
    assert KernelSparseSVCCV([4], cv=2, shared=False).fit(X, Y).path_.counted == (
        "training points of each machine"
    )
    assert not hasattr(KernelSparseSVC, "summary")
