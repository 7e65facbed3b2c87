"""Choosing k and C by cross-validation."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from kmargin import Exchange, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path
from kmargin.datasets import make_sparse_hyperplane, make_spiral
from kmargin.estimators.cv import FoldModel
from kmargin.model_selection.scores import rate_error
from kmargin.solvers import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize(
    ("solver", "scaled", "weighted"),
    [("exchange", True, False), ("exchange", False, True), ("mm", False, True), ("sd", False, True)],
)
def test_each_fold_is_scored_by_a_path_fitted_to_its_own_training_rows(rng, solver, scaled, weighted):
    X, y = make_sparse_hyperplane(90, 8, 3, random_state=0)
    X = X * 10.0 ** rng.integers(-2, 3, 8) + rng.standard_normal(8) if scaled else X
    weights = rng.integers(0, 4, 90).astype(float) if weighted else np.ones(90)
    class_weight = {-1: 1.0, 1: 3.0} if weighted else None
    ks, cv = [8, 3, 1], StratifiedKFold(3)
    model = SparseSVCCV(ks, cv=cv, solver=solver, standardize=scaled, class_weight=class_weight)
    model.fit(X, y, weights)
    for i, (train, test) in enumerate(cv.split(X, y)):
        scale = StandardScaler(with_mean=scaled, with_std=scaled).fit(X[train]).transform
        options = {"class_weight": class_weight, "sample_weight": weights[train]}
        path = sparse_svm_path(scale(X[train]), y[train], ks, solver=SOLVERS[solver]().in_folds(), **options)
        right = [path.predict(scale(X[test]), k) == y[test] for k in ks]
        expected = np.average(right, axis=1, weights=weights[test])  # class weights do not score
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], expected)
    again = clone(model).set_params(cv=(splits := cv.split(X, y))).fit(X, y, weights)
    assert (again.cv, again.best_score_) == (splits, model.best_score_)


def correlated_features(rng):
    """Few rows, many correlated features: a path and a single fit end with different coefficients."""
    X = rng.standard_normal((50, 12)) @ rng.standard_normal((12, 200)) + 2 * rng.standard_normal((50, 200))
    return X, X[:, :6].sum(axis=1) + 3 * rng.standard_normal(50) > 0


@pytest.mark.parametrize(
    ("kind", "selection"),
    [("exchange", "best"), ("exchange", "1se"), ("mm", "best"), ("sd", "tolerance"), ("kernel", "1se")],
)
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
        ks = [9, 5, 2]
        if kind == "exchange":
            (X, y), ks = correlated_features(np.random.default_rng(1)), [20, 10, 5]
        options = {"solver": kind, "standardize": kind == "exchange"}
        model = SparseSVCCV(ks, **options, **choice).fit(X, y)
        single = SparseSVC(model.k_, C=model.C_, **options).fit(X, y)
        np.testing.assert_array_equal(model.coef_, single.coef_)
        np.testing.assert_array_equal(model.path_.coefs[list(model.path_.ks).index(model.k_)], model.coef_)
    np.testing.assert_array_equal(model.intercept_, single.intercept_)
    path_decisions = model.path_.decision_function(X, model.k_)
    np.testing.assert_allclose(path_decisions, single.decision_function(X), rtol=1e-12, atol=1e-12)


def test_results_have_the_form_of_a_grid_search_and_standard_errors():
    X, y = make_sparse_hyperplane(60, 8, 3, random_state=0)
    model = SparseSVCCV(ks=[8, 2], Cs=[1.0, 0.1, 10.0], cv=3, repeats=2).fit(X, y)
    results = model.cv_results_
    assert results["params"] == [{"C": C, "k": k} for C in (0.1, 1.0, 10.0) for k in (8, 2)]
    splits = np.array([results[f"split{i}_test_score"] for i in range(6)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    corrected = splits.std(axis=0, ddof=1) * np.sqrt(1 / 6 + 1 / 2)
    least = [rate_error(rate, 60) for rate in splits.mean(axis=0)]
    np.testing.assert_allclose(results["se_test_score"], np.maximum(corrected, least))
    best = results["params"].index({"C": model.C_, "k": model.k_})
    assert results["rank_test_score"][best] == results["rank_test_score"].min() == 1
    np.testing.assert_allclose(results["mean_test_score"][best], model.best_score_)
    assert model.n_splits_ == 6


def test_any_scorer_is_used_with_the_sample_weights():
    X, y = make_sparse_hyperplane(120, 8, 3, random_state=0)
    y[::7] *= -1
    weights = np.linspace(0, 2, 120)

    def scores(scoring):
        model = SparseSVCCV(ks=[8, 3], cv=3, scoring=scoring).fit(X, y, sample_weight=weights)
        return model.cv_results_["mean_test_score"]

    for scoring in ("accuracy", "f1_micro", make_scorer(accuracy_score)):
        np.testing.assert_allclose(scores(scoring), scores(None))
    by_decisions = make_scorer(roc_auc_score, response_method="decision_function")
    np.testing.assert_allclose(scores("roc_auc"), scores(by_decisions))
    by_function = SparseSVCCV(ks=[8, 3], scoring=lambda model, X, y: -model.coef_.any(axis=0).sum())
    assert by_function.fit(X, y).k_ == by_function.fit(X, y, sample_weight=weights).k_ == 3
    model = FoldModel(None, np.array([0, 1]), "ovo")
    assert (model.fit(None, None), model.decisions) == (model, None), "it stays as it was fitted"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_shown_when_asked_for(n_jobs, capsys):
    X, y = make_sparse_hyperplane(60, 5, 2, random_state=0)
    SparseSVCCV(ks=[5, 2], Cs=[0.1, 1.0, 10.0], cv=3, verbose=1, n_jobs=n_jobs).fit(X, y)
    shown = capsys.readouterr().err
    assert all(words in shown for words in ("cross-validation: 18/18", "refit: "))


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_the_path_of_kernel_models_takes_the_columns_given_where_rows_have_no_weight(kernel):
    X, y = make_spiral((60, 40, 30), random_state=0)
    given = X if kernel == "rbf" else rbf_kernel(X, gamma=0.5)
    model = KernelSparseSVCCV(ks=[20, 8, 3], Cs=[1.0, 100.0], kernel=kernel, gamma=0.5, cv=3)
    model.fit(given, y, sample_weight=np.arange(130) % 5)
    assert model.best_score_ > 0.8
    assert (np.count_nonzero(model.dual_coef_, axis=1) <= model.k_).all()
    decisions = model.path_.decision_function(given, model.k_)
    np.testing.assert_allclose(decisions, model.decision_function(given), rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_kernel_scores_are_those_of_fits_to_the_folds(standardize):
    X, y = make_spiral((60, 40, 30), random_state=0)
    cv = StratifiedKFold(3)
    model = KernelSparseSVCCV(ks=[10], cv=cv, standardize=standardize).fit(X * [1, 100], y)
    for i, (train, test) in enumerate(cv.split(X, y)):  # gamma and scale are those of the fold's own rows
        alone = KernelSparseSVC(k=10, solver=Exchange().in_folds(), standardize=standardize)
        alone.fit(X[train] * [1, 100], y[train])
        expected = alone.score(X[test] * [1, 100], y[test])
        np.testing.assert_allclose(model.cv_results_[f"split{i}_test_score"], expected)


def test_the_default_never_tries_more_features_than_samples():
    X, y = make_sparse_hyperplane(40, 100, 3, random_state=0)
    model = SparseSVCCV().fit(X, y)
    assert (model.path_.ks[0], model.path_.ks[-1]) == (40, 1)


def test_the_final_model_replaces_worse_models_of_larger_k():
    """The path over k is searched with less effort than the final model."""
    rng = np.random.default_rng(36)
    X = rng.standard_normal((40, 300))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(40) > 0
    model = SparseSVCCV(ks=[10, 9], Cs=[0.3], cv=2).fit(X, y)
    assert model.k_ == 9
    assert model.path_.objectives[0] <= model.path_.objectives[1]


INTERRUPTED = """
import threading, os, signal
from joblib import parallel_config
from kmargin import SparseSVCCV
from kmargin.datasets import make_sparse_hyperplane
X, y = make_sparse_hyperplane(1000, 500, 50, random_state=0)
model = SparseSVCCV(cv=10, Cs=[0.01, 0.1, 1.0, 10.0], n_jobs=2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
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
