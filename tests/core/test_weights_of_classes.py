"""Weights of classes, and labelled data as they are read, in memory and on a device."""

import array_api_strict
import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from kmargin import SparseSVC
from kmargin.data.blocks import Block
from kmargin.data.samples.array import read_samples
from kmargin.data.samples.blocks import read_device


def data(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(40), [0.8] if n_classes == 2 else [-0.5, 0.8])
    return X, y, rng.uniform(0.2, 3.0, 40)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 1: 0.5}])
def test_class_weights_come_on_top_of_sample_weights(class_weight, n_classes):
    X, y, weights = data(n_classes)
    given = class_weight if n_classes == 2 or class_weight == "balanced" else class_weight | {2: 3.0}
    samples = read_samples(X, y, weights, given)
    np.testing.assert_allclose(samples.weights, weights * compute_sample_weight(given, y))
    np.testing.assert_allclose(samples.repeats, weights)
    model = SparseSVC(2, class_weight=given).fit(X, y, weights)
    by_hand = SparseSVC(2).fit(X, y, weights * compute_sample_weight(given, y))
    np.testing.assert_allclose(model.coef_, by_hand.coef_, atol=1e-9)


def on_device(X, y, weights, class_weight=None):
    xp = array_api_strict
    return read_device(xp.asarray(X), xp.asarray(y), xp.asarray(weights), class_weight)


def test_rows_without_weight_are_left_behind_on_a_device_too():
    X, y, weights = data()
    weights[[3, 17, 30]] = 0.0
    kept = np.flatnonzero(weights)
    samples = on_device(X, y, weights, "balanced")
    (block,) = samples.X.things
    assert isinstance(block, Block)
    np.testing.assert_array_equal(np.asarray(block.X), X[kept])
    np.testing.assert_array_equal(np.asarray(block.codes), y[kept])
    np.testing.assert_array_equal(np.asarray(samples.kept), kept)
    known, here = samples.at_hand(), read_samples(X, y, weights, "balanced")
    for name in ("codes", "repeats", "weights", "kept"):
        np.testing.assert_allclose(getattr(known, name), getattr(here, name), err_msg=name)


def test_some_rows_of_a_device_are_those_asked_for():
    X, y, weights = data()
    rows = np.array([5, 2, 30])
    (block,) = on_device(X, y, weights).to_fit(rows).X.things
    np.testing.assert_array_equal(np.asarray(block.X), X[rows])
    np.testing.assert_array_equal(np.asarray(block.repeats), weights[rows])


@pytest.mark.parametrize("bad", [-1.0, -0.5])
def test_the_weight_that_is_refused_is_named_by_its_row(bad):
    X, y, weights = data()
    weights[[7, 13]] = bad, -1e-9
    with pytest.raises(ValueError, match=rf"sample_weight\[7\]={bad:g} is negative"):
        read_samples(X, y, weights, None)
