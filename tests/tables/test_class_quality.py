"""Shares of each class and their intervals, against counts made by hand."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from tables_data import make_table

from kmargin.model_selection.scores import RankedRows, area_under_roc, rate_interval
from kmargin.report.frames import (
    area_under_curve,
    calibration_error,
    log_loss_of,
    precision,
    recall,
    reliability,
    roc_points,
    share_of,
)
from kmargin.report.page import feature_boxes
from kmargin.tables.analysis import analyse
from kmargin.tables.dataset import Roles, prepare
from kmargin.tables.read import Table
from kmargin.tables.search import Settings


@cache
def analysis_of(n_classes, weights=False):
    frame = make_table(90, n_classes, seed=4)
    rng = np.random.default_rng(0)
    frame["age"] += 0.9 * rng.standard_normal(90)
    frame["w"] = rng.choice([1.0, 3.0], 90)
    roles = Roles("outcome", weights="w") if weights else Roles("outcome", drop=["w"])
    return analyse(prepare(Table(frame), roles), Settings(k=2, ks=[2], Cs=[1.0], cv=3, pairs=0))


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_of_a_class_are_counted_by_weight_and_have_wilsons_interval(n_classes, weights):
    found = analysis_of(n_classes, weights)
    y, told = found.dataset.y, found.assessment.predicted
    w = found.dataset.weights if weights else np.ones(90)
    for code, name in enumerate(np.unique(y)):
        of_class, of_told = w[y == name], w[told == name]
        share = (of_class * (told[y == name] == name)).sum() / of_class.sum()
        assert recall(found, code).value == pytest.approx(share)
        n = of_class.sum() ** 2 / (of_class**2).sum()
        np.testing.assert_allclose(recall(found, code).interval, rate_interval(share, n))
        right = (of_told * (y[told == name] == name)).sum() / of_told.sum()
        assert precision(found, code).value == pytest.approx(right)


def test_a_class_that_is_never_told_has_no_precision():
    assert share_of(np.empty(0, bool), np.empty(0)) is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_is_the_mean_of_the_folds(n_classes):
    found = analysis_of(n_classes)
    y, assessed = found.dataset.y, found.assessment
    for code, name in enumerate(np.unique(y)):
        ranks = assessed.decisions if n_classes == 2 else assessed.decisions[:, code]
        sign = -1 if n_classes == 2 and code == 0 else 1
        areas = [roc_auc_score(y[f.test] == name, sign * ranks[f.test]) for f in assessed.folds]
        area = area_under_curve(found, code)
        assert area.value == pytest.approx(np.mean(areas))
        folds = [RankedRows(f.test, sign * ranks[f.test]) for f in assessed.folds]
        np.testing.assert_allclose(area.interval, area_under_roc(folds, y == name, np.ones(90)).interval)


def test_the_curve_goes_from_nothing_to_everything_and_has_that_area():
    found = analysis_of(2)
    false, true = roc_points(found)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert np.trapezoid(true, false) == pytest.approx(area_under_curve(found, 1).value, rel=1e-12)
    only = found.assessment.folds[0]._replace(test=np.flatnonzero(found.dataset.y == found.model.classes_[0]))
    more = replace(found, assessment=replace(found.assessment, folds=(*found.assessment.folds, only)))
    np.testing.assert_array_equal(roc_points(more), (false, true))  # a fold of one class has no curve


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_held_against_what_came_true(n_classes):
    found = analysis_of(n_classes)
    y, P = found.dataset.y, found.assessment.probabilities
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert log_loss_of(found) == pytest.approx(log_loss(y, P))
    bins = reliability(found)
    assert sum(b.n_rows for b in bins) == 90
    told, true = P[:, 1], y == np.unique(y)[1]
    if n_classes == 3:
        told, true = P.max(axis=1), y == np.unique(y)[P.argmax(axis=1)]
    assert sum(b.n_rows * b.predicted for b in bins) == pytest.approx(told.sum())
    assert sum(b.n_rows * b.observed.value for b in bins) == pytest.approx(true.sum())
    expected = sum(b.n_rows * abs(b.predicted - b.observed.value) for b in bins) / 90
    assert calibration_error(found) == pytest.approx(expected)


def test_boxes_show_quarters_and_nine_tenths_of_each_class():
    found = analysis_of(2)
    names = found.dataset.encoding.feature_names
    boxes = {box["name"]: box for box in feature_boxes(found)}
    assert boxes.keys() == {names[j] for j in found.model.machine.support_}
    for feature in found.model.machine.support_:
        values, box = found.dataset.X[:, feature], boxes[names[feature]]
        quantiles = [
            np.quantile(values[found.dataset.y == name], (0.05, 0.25, 0.5, 0.75, 0.95))
            for name in found.model.machine.classes_
        ]
        assert (box["low"], box["high"]) == (np.min(quantiles), np.max(quantiles))
        for line, q in zip(box["lines"], quantiles, strict=True):
            np.testing.assert_allclose(line["at"], 100 * (q - box["low"]) / (box["high"] - box["low"]))
            assert (line["low"], line["median"], line["high"]) == tuple(q[1:4])
