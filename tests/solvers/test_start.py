from dataclasses import replace

import numpy as np

from conftest import make_problem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.solver import univariate_start


def test_univariate_start_is_each_features_own_regression():
    problem = make_problem(weighted=False)
    X, y = problem.design.X, problem.y
    expected = [np.polyfit(x, y, 1)[0] for x in X.T]
    start = univariate_start(problem)
    np.testing.assert_allclose(start[:-1], expected)
    np.testing.assert_allclose(start[-1], y.mean())


def test_weights_count_as_repetitions_in_the_start():
    problem = make_problem(weighted=False)
    repeats = np.arange(problem.design.n_samples) % 3 + 1
    X, y = np.repeat(problem.design.X, repeats, axis=0), np.repeat(problem.y, repeats)
    repeated = replace(problem, design=DenseDesign(X), y=y, weights=np.ones(len(y)))
    weighted = replace(problem, weights=repeats * len(repeats) / repeats.sum())
    np.testing.assert_allclose(univariate_start(weighted), univariate_start(repeated), rtol=1e-12)


def test_a_constant_feature_starts_at_zero_whatever_its_value():
    problem = make_problem(n_features=6)
    for value in (0.0, 0.1, 1e-300, 1e12, -7.3):
        X = problem.design.X.copy()
        X[:, 2] = value
        start = univariate_start(replace(problem, design=DenseDesign(X)))
        assert start[2] == 0
        assert np.isfinite(start).all()


def test_a_large_offset_does_not_make_a_feature_constant():
    problem = make_problem(n_features=6)
    X = problem.design.X.copy()
    X[:, 2] += 1e6
    shifted = univariate_start(replace(problem, design=DenseDesign(X)))
    np.testing.assert_allclose(shifted[2], univariate_start(problem)[2], rtol=1e-6)
