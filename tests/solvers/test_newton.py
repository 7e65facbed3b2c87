"""The exact minimum on a given support."""

import numpy as np
import pytest
from search_problems import lowest_by_lbfgs
from sklearn.svm import LinearSVC

from conftest import PROBLEMS, make_problem
from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.support import refit as refit_parts
from kmargin.solvers.solution import Solution, Status


def refit(problem, support, *start):
    coef, intercept, objective, n_iter = refit_parts(problem, support, *start)
    return Solution(
        np.asarray(support),
        coef,
        intercept,
        problem.design.n_features,
        objective,
        0.0,
        Status.SETTLED,
        n_iter,
    )


def as_beta(solution, problem):
    beta = np.zeros(problem.design.n_parameters)
    beta[solution.support] = solution.coef
    beta[problem.design.n_features :] = solution.intercept
    return beta


def gradient_on_support(solution, problem, support):
    gradient = problem.gradient(as_beta(solution, problem))
    places = [*support, *range(problem.design.n_features, problem.design.n_parameters)]
    return gradient[places]


SUPPORTS = {"none": [], "one": [2], "some": [0, 3, 5], "all but one": list(range(1, 8))}


@pytest.mark.parametrize("support", SUPPORTS.values(), ids=SUPPORTS.keys())
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gradient_vanishes_on_the_support(name, support):
    problem = PROBLEMS[name]
    solution = refit(problem, np.array(support, dtype=int))
    np.testing.assert_allclose(gradient_on_support(solution, problem, support), 0, atol=1e-8)
    np.testing.assert_allclose(solution.objective, problem.loss(as_beta(solution, problem)), rtol=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_lbfgs_finds_nothing_lower(name):
    problem = PROBLEMS[name]
    support = np.array([0, 1, 4, 6, 7])
    solution = refit(problem, support)
    lowest = lowest_by_lbfgs(problem, support)
    np.testing.assert_allclose(solution.objective, lowest, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_on_all_features_it_is_LinearSVC(C):
    problem = make_problem(80, 10, 10, lam=1 / (2 * C * 80), weighted=False)
    X, y = problem.design.X, problem.y
    solution = refit(problem, np.arange(10))
    peer = LinearSVC(C=C, dual=False, tol=1e-12, intercept_scaling=1e4, max_iter=10**6).fit(X, y)
    theirs = problem.loss(np.append(peer.coef_[0], peer.intercept_))
    assert solution.objective <= theirs + 1e-12
    np.testing.assert_allclose(solution.coef, peer.coef_[0], atol=1e-4)


@pytest.mark.parametrize("n_features", [3, 100])
def test_separable_data_without_a_ridge_end_at_zero_loss(n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, n_features))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.2 * y
    problem = ArrayProblem(DenseDesign(X), y, np.ones(40), 0.0)
    solution = refit(problem, np.arange(n_features))
    assert np.isfinite(solution.coef).all()
    assert solution.objective < 1e-10


def test_a_warm_start_changes_the_way_not_the_end(rng):
    problem = make_problem(60, 12, 12)
    support = np.array([0, 2, 3, 11])
    cold = refit(problem, support)
    for scale in (1e-3, 1.0, 100.0):
        warm = refit(problem, support, scale * rng.standard_normal(4), float(scale * rng.standard_normal()))
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-9)
        np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-6)


def test_random_problems_never_cycle():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 60)), int(rng.integers(1, 40))
        X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2, p)
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        lam = float(rng.choice([0.0, 1e-6, 1e-2, 1.0]))
        problem = ArrayProblem(DenseDesign(X, bool(rng.integers(2))), y, np.ones(n), lam)
        solution = refit(problem, np.arange(p))
        gradient = gradient_on_support(solution, problem, range(p))
        scale = np.append(np.abs(X).mean(axis=0), 1.0)[: len(gradient)]
        np.testing.assert_allclose(gradient / scale, 0, atol=1e-6)
