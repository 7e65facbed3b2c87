"""Choosing k and C by cross-validation."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from kmargin import Exchange, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.data.samples.array import ArrayFolds
from kmargin.datasets import make_sparse_hyperplane, make_spiral, make_synthetic
from kmargin.solvers import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each_solver = pytest.mark.parametrize("solver", SOLVERS)


def test_the_two_causal_features_are_found():
    X, y = make_synthetic(400, 30, random_state=0)
    model = SparseSVCCV(ks=[30, 10, 5, 2, 1], Cs=[0.1, 1.0]).fit(X, y)
    assert model.k_ == 2
    np.testing.assert_array_equal(model.support_, [0, 1])
    assert model.best_score_ > 0.95
    assert model.score(X, y) > 0.95


@each_solver
def test_each_score_is_what_a_path_on_the_folds_training_rows_scores(solver):
    X, y = make_sparse_hyperplane(120, 10, 3, random_state=0)
    ks = [10, 3, 1]
    cv = StratifiedKFold(4)
    model = SparseSVCCV(ks=ks, cv=cv, solver=solver).fit(X, y)
    for i, (train, test) in enumerate(cv.split(X, y)):
        path = sparse_svm_path(X[train], y[train], ks, solver=SOLVERS[solver]().in_folds())
        expected = [np.mean(path.predict(X[test], k) == y[test]) for k in ks]
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], expected)


@pytest.mark.parametrize("selection", ["best", "1se", "tolerance"])
@pytest.mark.parametrize("kind", [*SOLVERS, "kernel"])
def test_the_final_model_is_the_fit_with_the_chosen_k_and_C(monkeypatch, kind, selection):
    """Also where the candidate points are a sample whose size depends on k."""
    monkeypatch.setattr("kmargin.fitting.spec.CANDIDATES", 10)
    X, y = make_sparse_hyperplane(90, 10, 3, random_state=0)
    y = np.where(np.arange(90) % 9 == 0, -y, y)
    choice = {"Cs": [0.01, 0.1, 1.0], "cv": 3, "selection": selection, "tolerance": 0.2}
    if kind == "kernel":
        options = {"cache_size": 1e-3, "random_state": 0}
        model = KernelSparseSVCCV([15, 8, 3], **choice, **options).fit(X, y)
        single = KernelSparseSVC(model.k_, C=model.C_, **options).fit(X, y)
        np.testing.assert_array_equal(model.support_, single.support_)
        np.testing.assert_array_equal(model.dual_coef_, single.dual_coef_)
    else:
        model = SparseSVCCV([9, 5, 2], solver=kind, **choice).fit(X, y)
        single = SparseSVC(model.k_, C=model.C_, solver=kind).fit(X, y)
        np.testing.assert_array_equal(model.coef_, single.coef_)
    np.testing.assert_array_equal(model.intercept_, single.intercept_)
    path_decisions = model.path_.decision_function(X, model.k_)
    np.testing.assert_allclose(path_decisions, single.decision_function(X), rtol=1e-12, atol=1e-12)


def test_results_have_the_form_of_a_grid_search():
    X, y = make_sparse_hyperplane(100, 8, 3, random_state=0)
    model = SparseSVCCV(ks=[8, 2], Cs=[1.0, 0.1, 10.0], cv=3).fit(X, y)
    results = model.cv_results_
    assert results["params"] == [{"C": C, "k": k} for C in (0.1, 1.0, 10.0) for k in (8, 2)]
    splits = np.array([results[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"].min() == 1
    best = results["params"].index({"C": model.C_, "k": model.k_})
    assert results["rank_test_score"][best] == 1
    np.testing.assert_allclose(results["mean_test_score"][best], model.best_score_)
    assert model.n_splits_ == 3


def test_standardizing_is_a_scaler_in_front_of_each_fold():
    rng = np.random.default_rng(0)
    X, y = make_sparse_hyperplane(120, 8, 3, random_state=0)
    X = X * 10.0 ** rng.integers(-2, 3, 8) + rng.standard_normal(8)
    cv = StratifiedKFold(3)
    model = SparseSVCCV(ks=[8, 3], cv=cv, standardize=True).fit(X, y)
    for i, (train, test) in enumerate(cv.split(X, y)):
        scaler = StandardScaler().fit(X[train])
        path = sparse_svm_path(scaler.transform(X[train]), y[train], [8, 3], solver=Exchange().in_folds())
        expected = [np.mean(path.predict(scaler.transform(X[test]), k) == y[test]) for k in (8, 3)]
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], expected)
    # coefficients are for the features as given
    scaler = StandardScaler().fit(X)
    inner = sparse_svm_path(scaler.transform(X), y, [8, 3])
    at = list(inner.ks).index(model.k_)
    np.testing.assert_allclose(model.coef_[0], inner.coefs[at, 0] / scaler.scale_, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.path_.coefs * scaler.scale_, inner.coefs, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), inner.predict(scaler.transform(X), model.k_))


def test_any_scorer_will_do():
    X, y = make_sparse_hyperplane(120, 8, 3, random_state=0)
    y[::7] *= -1
    weights = np.linspace(0.5, 2, 120)
    by_decisions = make_scorer(roc_auc_score, response_method="decision_function")
    for name, function in (("roc_auc", by_decisions), ("accuracy", make_scorer(accuracy_score))):
        first, second = (
            SparseSVCCV(ks=[8, 3], cv=3, scoring=scoring).fit(X, y, sample_weight=weights).cv_results_
            for scoring in (name, function)
        )
        np.testing.assert_allclose(first["mean_test_score"], second["mean_test_score"])
    by_function = SparseSVCCV(ks=[8, 3], scoring=lambda model, X, y: -model.coef_.any(axis=0).sum())
    assert by_function.fit(X, y).k_ == by_function.fit(X, y, sample_weight=weights).k_ == 3


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_micro"])
def test_weights_count_in_the_score(scoring):
    X, y = make_sparse_hyperplane(60, 4, 2, random_state=0)
    y[40:50] *= -1  # wrong labels that have no weight
    cv = [(np.arange(40), np.arange(40, 60))]
    weights = np.ones(60)
    weights[40:50] = 0
    model = SparseSVCCV(ks=[2], cv=cv, scoring=scoring)
    assert model.fit(X, y, sample_weight=weights).best_score_ > 0.8
    weights[40:50] = 0.1
    assert 0.7 < model.fit(X, y, sample_weight=weights).best_score_ < 0.95


def test_groups_reach_the_splitter():
    X, y = make_sparse_hyperplane(90, 5, 2, random_state=0)
    groups = np.arange(90) % 3
    model = SparseSVCCV(ks=[5, 2], cv=GroupKFold(3)).fit(X, y, groups=groups)
    expected = SparseSVCCV(ks=[5, 2], cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"selection": "2se"}, r"selection='2se' is not known\. Did you mean '1se'\?"),
        ({"Cs": []}, r"Cs=\[\] leaves nothing to fit"),
        ({"Cs": [1.0, 0.0]}, "C=0.0 is not a positive weight of the loss"),
        ({"Cs": "auto"}, "Cs='auto' is not a list"),
        ({"cv": KFold(2)}, "Fold 0 has no training sample of class .*Use fewer folds, or a splitter"),
    ],
)
def test_bad_parameters_and_folds_that_lost_a_class_are_refused(parameters, message):
    X, y = make_sparse_hyperplane(40, 5, 2, random_state=0)
    with pytest.raises(ValueError, match=message):
        SparseSVCCV(**parameters).fit(X, np.sort(y))


def test_progress_is_shown_when_asked_for(capsys):
    X, y = make_sparse_hyperplane(60, 5, 2, random_state=0)
    SparseSVCCV(ks=[5, 2], cv=3, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert "cross-validation: 6/6" in shown
    assert "refit: 2/2" in shown


def test_an_interrupted_fit_leaves_the_last_one_as_it_was(monkeypatch):
    X, y = make_sparse_hyperplane(60, 5, 2, random_state=0)
    model = SparseSVCCV(ks=[5, 2], cv=3).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(ArrayFolds, "score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:50], y[:50])
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before if name != "n_features_in_")


def test_the_path_of_a_precomputed_kernel_takes_the_columns_given_where_rows_have_no_weight(rng):
    X = rng.standard_normal((40, 3))
    y, weights = X[:, 0] > 0.2 * X[:, 1], np.repeat([1.0, 0.0], [30, 10])
    K = X @ X.T
    model = KernelSparseSVCCV([3, 2, 1], Cs=[1.0], kernel="precomputed", cv=3).fit(
        K, y, sample_weight=weights
    )
    decisions = model.path_.decision_function(K, model.k_)
    np.testing.assert_allclose(decisions, model.decision_function(K), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_kernel_machines_are_cross_validated_too(kernel):
    X, y = make_spiral((60, 40, 30), random_state=0)
    given = X if kernel == "rbf" else rbf_kernel(X, gamma=0.5)
    model = KernelSparseSVCCV(ks=[20, 8, 3], Cs=[1.0, 100.0], kernel=kernel, gamma=0.5, cv=3)
    model.fit(given, y)
    assert model.best_score_ > 0.8
    assert (np.count_nonzero(model.dual_coef_, axis=1) <= model.k_).all()
    np.testing.assert_array_equal(model.path_.predict(given, model.k_), model.predict(given))


def test_kernel_scores_are_those_of_fits_on_the_folds():
    X, y = make_spiral((60, 40, 30), random_state=0)
    cv = StratifiedKFold(3)
    model = KernelSparseSVCCV(ks=[10], cv=cv).fit(X, y)
    for i, (train, test) in enumerate(cv.split(X, y)):
        alone = KernelSparseSVC(k=10, solver=Exchange().in_folds())  # gamma from the fold's own rows
        alone.fit(X[train], y[train])
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], alone.score(X[test], y[test]))


def test_the_default_never_tries_more_features_than_samples():
    X, y = make_sparse_hyperplane(40, 100, 3, random_state=0)
    model = SparseSVCCV().fit(X, y)
    assert model.path_.ks[0] == 40
    assert model.path_.ks[-1] == 1


INTERRUPTED = """
import threading, os, signal
from joblib import parallel_config
from kmargin import SparseSVCCV
from kmargin.datasets import make_sparse_hyperplane
X, y = make_sparse_hyperplane(2000, 1000, 50, random_state=0)
model = SparseSVCCV(cv=10, Cs=[0.01, 0.1, 1.0, 10.0], n_jobs=2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    with parallel_config(backend="loky"):
        model.fit(X, y)
except KeyboardInterrupt:
    fitted = [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]
    print("interrupted", fitted)
"""


def test_ctrl_c_leaves_no_workers_and_no_half_fitted_attributes():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=120)
        assert out.strip() == "interrupted []"
        for _ in range(100):  # workers need a moment to notice
            os.killpg(process.pid, 0)
            time.sleep(0.1)
        pytest.fail("worker processes are still running")
    except ProcessLookupError:
        return  # the process group is empty
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
