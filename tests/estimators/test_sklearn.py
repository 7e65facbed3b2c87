"""The estimators are scikit-learn estimators."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kmargin import MM, SD, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV


# `check_array_api_input` and its kin skip themselves for libraries and devices that are not there
@pytest.mark.filterwarnings("ignore:k=.* is greater than the number of:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        SparseSVC(),
        SparseSVC(multi_class="ovr"),
        SparseSVC(solver="mm"),
        SparseSVC(solver="sd"),
        KernelSparseSVC(),
        KernelSparseSVC(solver="mm"),
        KernelSparseSVC(kernel="linear", multi_class="ovr"),
        # with rtol > 0 the paper's second stopping rule may end a run far from S_k
        KernelSparseSVC(solver=SD(rtol=0.0)),
        SparseSVCCV(ks=[2, 1], cv=3),
        KernelSparseSVCCV(ks=[5, 2], cv=3),
    ],
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), y


def test_clone_copies_the_solvers_knobs():
    model = clone(SparseSVC(k=3, solver=MM(rho_growth=1.5)))
    assert model.solver.rho_growth == 1.5
    assert model.get_params()["solver__rho_growth"] == 1.5


@pytest.mark.parametrize("make_frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_are_kept(cancer, make_frame):
    X, y = cancer
    frame = make_frame({name: X[name].to_numpy() for name in X.columns})
    model = SparseSVC(k=3).fit(frame, y.to_numpy())
    assert list(model.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list(X.columns[::-1])])


def test_grid_search_reaches_k_C_and_the_solvers_knobs(cancer):
    X, y = cancer
    grid = {"k": [1, 4], "C": [0.1, 1.0], "solver__rho_growth": [1.2, 2.0]}
    search = GridSearchCV(SparseSVC(solver=MM()), grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_score_ > 0.9
    assert search.best_estimator_.solver.rho_growth in (1.2, 2.0)
    solvers = GridSearchCV(SparseSVC(k=3), {"solver": ["mm", SD()]}, cv=3).fit(X, y)
    assert solvers.best_score_ > 0.9


def test_a_pipeline_scales_first(cancer):
    X, y = load_breast_cancer(return_X_y=True)
    scores = cross_val_score(make_pipeline(StandardScaler(), SparseSVC(k=5)), X, y, cv=5)
    assert scores.mean() > 0.93


def test_select_from_model_takes_the_kept_features(cancer):
    X, y = cancer
    selector = SelectFromModel(SparseSVC(k=5), threshold=1e-10).fit(X, y)
    np.testing.assert_array_equal(selector.get_support(), selector.estimator_.get_support())
    assert selector.transform(X).shape == (len(y), 5)


def test_probabilities_by_calibration(cancer):
    X, y = cancer
    model = CalibratedClassifierCV(SparseSVC(k=5), cv=3).fit(X, y)
    probability = model.predict_proba(X)
    assert probability.shape == (len(y), 2)
    assert ((probability[:, 1] > 0.5) == y).mean() > 0.93


@pytest.mark.parametrize("estimator", [SparseSVC(k=2, solver=SD()), KernelSparseSVC(k=4)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pickled_and_dumped_models_predict_the_same(estimator):
    X, y = load_iris(return_X_y=True)
    model = estimator.fit(X, y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for twin in (pickle.loads(pickle.dumps(model)), joblib.load(buffer), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        assert twin.solutions_[0].status is model.solutions_[0].status


@pytest.mark.parametrize("estimator", [SparseSVC(k=2), KernelSparseSVC(k=4)])
def test_string_and_boolean_labels_come_back_as_they_were(estimator):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    assert set(clone(estimator).fit(X, np.where(y, "yes", "no")).predict(X)) == {"yes", "no"}
    assert clone(estimator).fit(X, y == 1).predict(X).dtype == bool
