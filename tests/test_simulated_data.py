"""Simulated data have the moments that the paper gives them; tables keep their columns."""

import numpy as np
import pytest

from kmargin.datasets import make_sparse_hyperplane, make_spiral, make_synthetic, parsers


def test_the_two_informative_features_are_correlated_as_in_the_paper():
    X, y, coef = make_synthetic(200_000, 4, random_state=0, return_coef=True)
    covariance = np.cov(X.T)
    np.testing.assert_allclose(np.diag(covariance), [1.0, 3.0, 2.0, 2.0], rtol=0.02)
    assert covariance[0, 1] == pytest.approx(0.9, abs=0.02)
    assert abs(covariance[2, 3]) < 0.02
    np.testing.assert_array_equal(coef, [10, -10, 0, 0])
    np.testing.assert_array_equal(y, np.where(X[:, 0] > X[:, 1], 1, -1))


def test_effects_of_the_hyperplane_are_large_and_of_either_sign():
    X, y, coef = make_sparse_hyperplane(50, 300, 200, random_state=0, return_coef=True)
    effects = coef[coef != 0]
    assert len(effects) == 200
    assert np.abs(effects).min() >= 2
    assert np.abs(effects).max() <= 10
    assert 0.3 < np.mean(effects > 0) < 0.7
    np.testing.assert_array_equal(y, np.where(X @ coef > 0, 1, -1))
    assert np.abs(X.std() - 1) < 0.05


def test_spirals_are_arms_turned_against_each_other_with_the_noise_asked_for():
    n = 400
    clean, y = make_spiral((n, n), (0.0, 0.0), random_state=0)
    noisy, labels = make_spiral((n, n), (0.1, 0.3), random_state=0)
    angle = np.pi / 8 + np.arange(1, n + 1) * np.pi / n
    radius = 7 * (1 - np.arange(1, n + 1) / (1.2 * n))
    for c in (0, 1):
        turned = angle + c * np.pi
        arm = np.array([-3.5, 3.5]) + radius[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
        points = clean[y == c]
        np.testing.assert_allclose(
            points[np.lexsort(points.T)], arm[np.lexsort(arm.T)], atol=1e-12, err_msg=f"arm {c}"
        )
        distance = np.sqrt(((noisy[labels == c][:, None] - arm) ** 2).sum(axis=2)).min(axis=1)
        assert distance.mean() == pytest.approx((0.1, 0.3)[c] * np.sqrt(2 / np.pi), rel=0.25)
    assert len(set(labels[:50])) == 2  # rows come in random order


def test_breast_cancer_leaves_out_the_patient_and_rows_that_miss_something(tmp_path):
    path = tmp_path / "cells.data"
    path.write_text("1000,1,2,3,4,5,6,7,8,9,2\n2000,1,2,3,4,5,?,7,8,9,4\n3000,9,8,7,6,5,4,3,2,1,4\n")
    table = parsers.read_breast_cancer([path], 9)
    np.testing.assert_array_equal(table.X, [np.arange(1, 10), np.arange(9, 0, -1)])
    assert list(table.y) == ["benign", "malignant"]
