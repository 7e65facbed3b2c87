"""Probabilities of the cross-validated estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold

import kmargin.fitting.fit
from kmargin import BlockKFold, Exchange, KernelSparseSVC, KernelSparseSVCCV, SparseSVC, SparseSVCCV
from kmargin.estimators.cv import CrossValidation
from kmargin.model_selection.calibration import UnseenRows, fit_calibration

SHORT = Exchange(effort="fast")  # where the search is not the point


def make_data(rng, n_classes=2, n_rows=150):
    X = rng.standard_normal((n_rows, 6))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] + rng.standard_normal(n_rows), [-0.5, 0.8])]
    return X, np.where(y == "c", "b", y) if n_classes == 2 else y


def linear(**settings):
    return SparseSVCCV([3, 1], **{"cv": 3, "solver": SHORT, **settings})


EACH = [(2, "ovo", True), (3, "ovo", True), (3, "ovo", False), (3, "ovr", True)]
each = pytest.mark.parametrize(("n_classes", "multi_class", "shared"), EACH)


def unseen_rows(X, y, weights, model, folds):
    """Decision values of test rows by plain estimators, fitted to the folds one by one."""
    classes = np.unique(y)
    parts = []
    for train, test in folds:
        plain = SparseSVC(
            model.k_, C=model.C_, solver=SHORT, multi_class=model.multi_class, shared=model.shared
        ).fit(X[train], y[train], weights[train])
        decisions = X[test] @ plain.coef_.T + plain.intercept_
        parts.append((decisions, np.searchsorted(classes, y[test]), weights[test]))
    return UnseenRows(*map(np.concatenate, zip(*parts, strict=True)))


@each
def test_they_are_learned_from_the_decisions_about_rows_in_test_folds(rng, n_classes, multi_class, shared):
    X, y = make_data(rng, n_classes)
    weights = rng.integers(1, 4, len(y)).astype(float)
    cv = StratifiedKFold(3)
    model = SparseSVCCV([3], cv=cv, solver=SHORT, multi_class=multi_class, shared=shared).fit(X, y, weights)
    rows = unseen_rows(X, y, weights, model, cv.split(X, y))
    expected = fit_calibration(rows, model.classes_, multi_class)
    np.testing.assert_allclose(model.calibration_.slopes, expected.slopes, rtol=1e-6)
    np.testing.assert_allclose(model.calibration_.offsets, expected.offsets, atol=1e-6)
    decisions = X @ model.coef_.T + model.intercept_
    P = model.predict_proba(X)
    np.testing.assert_allclose(P, model.calibration_.probabilities(decisions, n_classes, multi_class))
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(P))
    assert np.mean(model.classes_[P.argmax(axis=1)] == y) > 0.6


def test_they_are_those_of_the_chosen_k_and_C(rng):
    X, y = make_data(rng)
    frugal = {"scoring": lambda model, X, y: np.abs(model.coef_).sum() - 100 * len(model.support_)}
    model = linear(Cs=[0.001, 1.0], **frugal).fit(X, y)
    assert (model.k_, model.C_) == (1, 1.0)
    alone = SparseSVCCV([1], Cs=[1.0], cv=3, solver=SHORT).fit(X, y)
    np.testing.assert_allclose(model.calibration_.slopes, alone.calibration_.slopes, rtol=1e-6)


def test_a_row_that_is_tested_twice_counts_half_each_time(rng):
    X, y = make_data(rng)
    cv = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
    model = SparseSVCCV([3], cv=cv, solver=SHORT).fit(X, y)
    rows = unseen_rows(X, y, np.ones(len(y)), model, cv.split(X, y))
    expected = fit_calibration(rows._replace(weights=rows.weights / 2), model.classes_, "ovo")
    np.testing.assert_allclose(model.calibration_.slopes, expected.slopes, rtol=1e-6)


def test_they_take_no_fits(rng, monkeypatch):
    X, y = make_data(rng)
    solve, asked = kmargin.fitting.fit.solve_tasks, []

    def counted(tasks, n_tasks, *args, **settings):
        asked.append(n_tasks)
        return solve(tasks, n_tasks, *args, **settings)

    monkeypatch.setattr(kmargin.fitting.fit, "solve_tasks", counted)
    for scoring in (None, "neg_log_loss"):
        asked.clear()
        linear(Cs=[0.1, 1.0], scoring=scoring).fit(X, y)
        assert asked == [3, 1, 1]  # the folds, the path, and the final model


@pytest.mark.parametrize("make", [linear, lambda **s: KernelSparseSVCCV([5, 2], cv=3, **s)])
def test_neither_training_rows_nor_decision_values_are_held(rng, monkeypatch, make):
    held = []
    calibrate = CrossValidation.calibrate

    def calibrate_and_hold(searched, *at):
        held.append(searched)
        return calibrate(searched, *at)

    monkeypatch.setattr(CrossValidation, "calibrate", calibrate_and_hold)
    X = rng.standard_normal((600, 40))
    make(Cs=[0.1, 1.0, 10.0]).fit(X, X[:, 0] > 0)
    sizes = [len(pickle.dumps(machines)) for machines in held[0].fits]
    assert max(sizes) < 0.2 * X.nbytes
    assert max(sizes) < 600 * 8 * 6  # a decision value for each row, C and k


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fold_is_scored_by_probabilities_that_the_other_folds_have_learned(rng, n_classes):
    X, y = make_data(rng, n_classes)
    weights = rng.integers(1, 4, len(y)).astype(float)
    cv = StratifiedKFold(3)
    folds = list(cv.split(X, y))
    model = SparseSVCCV([3], cv=cv, scoring="neg_log_loss", solver=SHORT).fit(X, y, weights)
    rows = unseen_rows(X, y, weights, model, folds)
    fold = np.repeat([0, 1, 2], [len(test) for _, test in folds])
    for number in range(3):
        own, others = (UnseenRows(*(a[mask] for a in rows)) for mask in (fold == number, fold != number))
        learned = fit_calibration(others, model.classes_, "ovo")
        P = learned.probabilities(own.decisions, n_classes, "ovo")
        expected = np.average(np.log(P[np.arange(len(P)), own.codes]), weights=own.weights)
        np.testing.assert_allclose(model.cv_results_[f"split{number}_test_score"], [expected], rtol=1e-6)


def test_a_scorer_of_ones_own_may_ask_for_both(rng):
    X, y = make_data(rng)

    def both(model, X, y):
        return np.mean(model.predict(X) == y) + model.predict_proba(X).max() + len(model.support_)

    model = linear(scoring=both).fit(X, y)
    assert model.k_ == 3
    assert 3 < model.best_score_ < 5
    auc = make_scorer(roc_auc_score, response_method="predict_proba")
    models = (linear(scoring=each).fit(X, y == "a") for each in (auc, "roc_auc"))
    np.testing.assert_allclose(*(each.cv_results_["mean_test_score"] for each in models))


def test_a_single_fold_is_enough_unless_scores_need_probabilities(rng):
    X, y = make_data(rng)
    cv = ShuffleSplit(1, test_size=0.4, random_state=0)
    assert np.isfinite(linear(cv=cv).fit(X, y).predict_log_proba(X)).all()
    with pytest.raises(ValueError, match=r"Scoring by probabilities needs at least two folds"):
        linear(cv=cv, scoring="neg_log_loss").fit(X, y)


def test_a_class_without_a_tested_row_leaves_the_rest_of_the_model_as_it_is(rng):
    X, y = make_data(rng, 3)
    test = np.flatnonzero(y != "c")[:60]
    model = linear(cv=[(np.setdiff1d(np.arange(len(y)), test), test)]).fit(X, y)
    assert model.score(X, y) > 0.5
    for ask in (model.predict_proba, model.predict_log_proba):
        with pytest.raises(ValueError, match=r"No sample of class 'c' is in a test fold.*StratifiedKFold"):
            ask(X)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_kinds_of_data_have_the_same_probabilities(rng, multi_class):
    X, y = make_data(rng, 3)
    settings = {"multi_class": multi_class, "scoring": "neg_log_loss", "cv": 3, "solver": SHORT}
    expected = linear(**settings).fit(X, y).predict_proba(X)
    for kind in (csr_matrix, pd.DataFrame, lambda X: X.astype(np.float32)):
        found = linear(**settings).fit(kind(X), y).predict_proba(kind(X))
        np.testing.assert_allclose(found, expected, atol=2e-4 if found.dtype == np.float32 else 1e-9)
    assert found.dtype == np.float32
    by_name = KernelSparseSVCCV([6, 2], kernel="linear", **settings).fit(X, y)
    by_matrix = KernelSparseSVCCV([6, 2], kernel="precomputed", **settings).fit(X @ X.T, y)
    np.testing.assert_allclose(by_matrix.best_score_, by_name.best_score_, rtol=1e-6)
    np.testing.assert_allclose(by_matrix.predict_proba(X @ X.T), by_name.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_tensors_have_tensors_of_probabilities(rng, scoring, torch):
    X, y = make_data(rng, 3)
    codes = np.searchsorted(["a", "b", "c"], y)
    expected = linear(scoring=scoring).fit(X, codes)
    with config_context(array_api_dispatch=True):
        tensor = torch.asarray(X, dtype=torch.float64)
        model = linear(scoring=scoring).fit(tensor, torch.asarray(codes))
        P = model.predict_proba(tensor)
    assert isinstance(P, torch.Tensor)
    np.testing.assert_allclose(P.numpy(), expected.predict_proba(X), atol=1e-6)
    scores = (each.cv_results_["mean_test_score"] for each in (model, expected))
    np.testing.assert_allclose(*scores, atol=1e-6)


@pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "ovo"), (3, "ovo"), (3, "ovr")])
def test_blocks_have_the_probabilities_of_arrays_when_somebody_asks(rng, n_classes, multi_class):
    da = pytest.importorskip("dask.array")
    X, y = make_data(rng, n_classes)
    weights = rng.integers(0, 3, len(y)).astype(float)
    sizes = (60, 0, 50, 40)
    dX, dy, dw = (da.from_array(a, chunks=(sizes, *a.shape[1:])) for a in (X, y, weights))
    model = linear(cv=BlockKFold(2), multi_class=multi_class).fit(dX, dy, sample_weight=dw)
    first = np.repeat(np.arange(4) % 2, sizes)
    splits = [(np.flatnonzero(first != fold), np.flatnonzero(first == fold)) for fold in (0, 1)]
    expected = linear(cv=splits, multi_class=multi_class).fit(X, y, weights)
    P = model.predict_proba(dX)
    assert (type(P), P.chunks) == (da.Array, (sizes, (n_classes,)))
    np.testing.assert_allclose(P.compute(), expected.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(dX).compute(), np.log(P.compute()))


def test_any_number_of_jobs_and_a_pickle_give_the_same_bits(rng):
    X, y = make_data(rng, 3)
    model = linear(shared=False, scoring="neg_log_loss").fit(X, y)
    P = model.predict_proba(X)
    two = clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two.predict_proba(X), P)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), P)


@pytest.mark.parametrize("model", [SparseSVC(k=2), KernelSparseSVC(k=2)])
def test_plain_estimators_say_who_has_probabilities(rng, model):
    name = type(model).__name__
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=rf"{name} has no {method}.*Use {name}CV.*Calibrated"):
            getattr(model.fit(*make_data(rng)), method)
    assert all(hasattr(other(), "predict_proba") for other in (SparseSVCCV, KernelSparseSVCCV))


def test_two_classes_are_predicted_by_the_larger_probability_unless_there_is_an_offset(rng):
    X, y = make_data(rng)
    y = X[:, 0] + rng.logistic(size=len(X)) > 0
    model = linear().fit(X, y)
    assert model.calibration_.offsets == 0
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1] > 0.5, model.predict(X))
    rare = X[:, 0] + rng.logistic(size=len(X)) > 2.5
    balanced = linear(class_weight="balanced").fit(X, rare)
    assert balanced.calibration_.offsets < 0  # class weights move the decision, not the probability
    assert abs(balanced.predict_proba(X)[:, 1].mean() - rare.mean()) < 0.05
    assert balanced.predict(X).mean() > rare.mean() + 0.05


@pytest.mark.parametrize("rate", [0.0, -3.0])
def test_simulated_probabilities_come_out(rng, rate):
    X = rng.standard_normal((12_000, 10))
    chance = expit(1.5 * X[:, 0] - X[:, 1] + 0.7 * X[:, 2] + rate)
    y = rng.random(len(X)) < chance
    model = SparseSVCCV([5, 3, 1], scoring="neg_log_loss").fit(X[:2000], y[:2000])
    p = model.predict_proba(X[2000:])[:, 1]
    bins = np.array_split(np.argsort(p), 15)  # of equally many rows
    assert np.mean([abs(p[rows].mean() - y[2000:][rows].mean()) for rows in bins]) <= 0.03
    assert np.abs(p - chance[2000:]).mean() <= 0.05
