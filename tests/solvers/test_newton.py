"""The exact minimum on a given support, and supports that are found."""

import numpy as np
import pytest
from penalised_problems import PROBLEMS, make_problem
from search_problems import lowest_by_lbfgs, make_case, make_search
from sklearn.svm import LinearSVC

from kmargin import Exchange, SparseSVC, sparse_svm_path
from kmargin.core.problem import ArrayProblem, Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane, make_synthetic
from kmargin.solvers.refit.support import refit as refit_parts
from kmargin.solvers.solution import Solution, Status


def refit(problem, support, *start):
    coef, intercept, objective, n_iter = refit_parts(problem, support, *start)
    n_features = problem.design.n_features
    return Solution(np.asarray(support), coef, intercept, n_features, objective, 0.0, Status.SETTLED, n_iter)


@pytest.mark.parametrize("support", [[2], [0, 3, 5], list(range(1, 8))], ids=len)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_refit_reaches_the_minimum_of_lbfgs(name, support):
    problem, support = PROBLEMS[name], np.array(support, dtype=int)
    solution = refit(problem, support)
    beta = np.append(solution.dense_coef(), solution.intercept)[: problem.design.n_parameters]
    np.testing.assert_allclose(solution.objective, problem.loss(beta), rtol=1e-10)
    np.testing.assert_allclose(solution.objective, lowest_by_lbfgs(problem, support), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_a_refit_on_all_features_equals_LinearSVC(C):
    problem = make_problem(80, 10, 10, lam=1 / (2 * C * 80), weighted=False)
    X, y = problem.design.X, problem.y
    solution = refit(problem, np.arange(10))
    peer = LinearSVC(C=C, dual=False, tol=1e-12, intercept_scaling=1e4, max_iter=10**6).fit(X, y)
    theirs = problem.loss(np.append(peer.coef_[0], peer.intercept_))
    assert solution.objective <= theirs + 1e-12
    np.testing.assert_allclose(solution.coef, peer.coef_[0], atol=1e-4)


@pytest.mark.parametrize("n_features", [3, 100])
def test_separable_data_without_a_ridge_reach_zero_loss(n_features):
    X = np.random.default_rng(0).standard_normal((40, n_features))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.2 * y
    problem = ArrayProblem(DenseDesign(X), y, np.ones(40), 0.0)
    solution = refit(problem, np.arange(n_features))
    assert np.isfinite(solution.coef).all()
    assert solution.objective < 1e-10


def test_the_gradient_vanishes_for_random_scales_and_ridges():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 60)), int(rng.integers(1, 40))
        X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2, p)
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        lam = float(rng.choice([0.0, 1e-6, 1e-2, 1.0]))
        problem = ArrayProblem(DenseDesign(X, bool(rng.integers(2))), y, np.ones(n), lam)
        solution = refit(problem, np.arange(p))
        gradient = problem.gradient(
            np.append(solution.dense_coef(), solution.intercept)[: problem.design.n_parameters]
        )
        scale = np.append(np.abs(X).mean(axis=0), 1.0)[: len(gradient)]
        np.testing.assert_allclose(gradient / scale, 0, atol=1e-6)


def test_a_gram_matrix_that_lost_its_digits_is_computed_anew():
    problem = make_case([1] * 6)
    search, expected = make_search(problem, [4, 0, 2]), make_search(problem, [4, 0, 3])
    search.panels.gram[:] = np.nan
    search.move(np.array([2]), np.array([3]))
    np.testing.assert_allclose(search.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(search.coefs, expected.coefs, rtol=1e-6)


# The search


@pytest.mark.parametrize("name", PROBLEMS)
def test_at_most_k_features_at_their_exact_minimum(name):
    problem = PROBLEMS[name]
    ridges, rng = [[problem.lam]], np.random.default_rng(0)
    ((solution,),) = Exchange().solve_grid(Problem.of(problem), ridges, [problem.k], rng)
    assert len(solution.support) <= problem.k
    assert list(solution.support) == sorted(set(solution.support))
    exact = refit(problem, solution.support)
    np.testing.assert_allclose(solution.objective, exact.objective, rtol=1e-7, atol=1e-12)


def test_the_support_of_the_papers_simulation_is_recovered():
    X, y, coef = make_sparse_hyperplane(1000, 200, 20, random_state=0, return_coef=True)
    model = SparseSVC(k=20, C=1 / (2 * 0.01 * 1000), solver="exchange").fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))


def test_of_repeated_features_the_first_is_used_with_a_warning():
    X, y = make_sparse_hyperplane(100, 6, 3, random_state=0)
    doubled = np.hstack([X, X])
    with pytest.warns(UserWarning, match=r"6 features repeat an earlier one .*the first of each is used"):
        model = SparseSVC(k=4, solver="exchange").fit(doubled, y)
    np.testing.assert_array_equal(model.coef_[0, :6], SparseSVC(k=4, solver="exchange").fit(X, y).coef_[0])
    assert not model.coef_[0, 6:].any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_samples", [60, 300])
def test_large_supports_are_at_least_as_good_as_those_of_mm(n_samples):
    X, y = make_sparse_hyperplane(n_samples, 200, 20, random_state=0)
    exchanged, annealed = (sparse_svm_path(X, y, [200, 140, 10], solver=name) for name in ("exchange", "mm"))
    assert (exchanged.objectives <= annealed.objectives * 1.0001).all()


@pytest.mark.parametrize("ks", [[500, 388], [388], [388, 100]])
def test_every_size_has_a_solution_if_a_few_features_separate_the_classes(ks):
    X, y = make_synthetic(60, 500, random_state=0)
    for (solution,) in sparse_svm_path(X, y, ks, C=np.inf).solutions:
        assert solution.objective <= 1e-20
        assert len(solution.support) <= 388 or len(solution.support) == 500
