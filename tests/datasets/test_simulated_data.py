"""Simulated data have the moments that the paper gives them; tables keep their columns."""

import numpy as np
import pytest

from kmargin.datasets import loaders, make_genes, make_sparse_hyperplane, make_spiral, make_synthetic


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


def test_genes_of_a_module_are_correlated_and_those_of_telling_modules_differ_between_the_classes():
    X, y, modules = make_genes(
        30_000,
        10,
        n_modules=3,
        genes_per_module=3,
        n_telling=1,
        effect=2.0,
        correlation=0.6,
        random_state=0,
        return_modules=True,
    )
    np.testing.assert_array_equal(modules, [0, 0, 0, 1, 1, 1, 2, 2, 2, -1])
    assert y.sum() == 10_000
    same = (modules[:, None] == modules) & (modules >= 0)
    expected = np.where(np.eye(10, dtype=bool), 1.0, np.where(same, 0.6, 0.0))
    np.testing.assert_allclose(np.corrcoef(X[y == 0].T), expected, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(X[y == 1].T), expected, atol=0.03)
    difference = (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) / X[y == 0].std(axis=0)
    np.testing.assert_allclose(difference, np.where(modules == 0, 2.0 * np.sqrt(0.6), 0.0), atol=0.05)
    spread = X[y == 0].std(axis=0)
    assert spread.min() > 0.29
    assert spread.max() < 1.25


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_genes": 10}, "n_genes=10"),
        ({"n_telling": 51}, "n_telling=51"),
        ({"correlation": 1.5}, "correlation=1.5"),
    ],
)
def test_genes_that_cannot_be_are_refused_in_one_sentence(wrong, said):
    with pytest.raises(ValueError, match=said):
        make_genes(**wrong)


def test_breast_cancer_leaves_out_the_patient_and_rows_that_miss_something(tmp_path):
    path = tmp_path / "cells.data"
    path.write_text("1000,1,2,3,4,5,6,7,8,9,2\n2000,1,2,3,4,5,?,7,8,9,4\n3000,9,8,7,6,5,4,3,2,1,4\n")
    table = loaders.read_breast_cancer([path], 9)
    np.testing.assert_array_equal(table.X, [np.arange(1, 10), np.arange(9, 0, -1)])
    assert list(table.y) == ["benign", "malignant"]
