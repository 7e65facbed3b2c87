"""The exchange solver: objectives, paths, ridges and polishing against exact refits and other solvers."""

import numpy as np
import pytest
from penalised_problems import PROBLEMS, SizedProblem
from sklearn.datasets import make_classification
from test_newton import refit

from kmargin import Exchange, SparseSVC, Status, sparse_svm_path
from kmargin.core.problem import Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane, make_synthetic
from kmargin.solvers.search import path


def solve(problem, ks=None, lams=None, **knobs):
    ks = [problem.k] if ks is None else ks
    ridges = [[lam] for lam in ([problem.lam] if lams is None else lams)]
    grid = Exchange(**knobs).solve_grid(Problem.of(problem), ridges, ks, np.random.default_rng(0))
    return [solution for (solution,) in grid]


def correlated(n_samples=80, n_features=12, k=3, lam=0.01, seed=0):
    """Correlated features, so that greedy choices go wrong."""
    X, y = make_classification(
        n_samples, n_features, n_informative=5, n_redundant=3, flip_y=0.1, class_sep=0.7, random_state=seed
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return SizedProblem(DenseDesign(X), np.where(y == 1, 1.0, -1.0), np.ones(n_samples), lam, k)


@pytest.mark.parametrize("name", PROBLEMS)
def test_at_most_k_features_at_their_exact_minimum(name):
    problem = PROBLEMS[name]
    (solution,) = solve(problem)
    assert len(solution.support) <= problem.k
    assert list(solution.support) == sorted(set(solution.support))
    exact = refit(problem, solution.support)
    np.testing.assert_allclose(solution.objective, exact.objective, rtol=1e-7, atol=1e-12)


def test_the_status_of_a_large_problem_claims_no_swap_optimality():
    (solution,) = solve(correlated(300, 200, k=4))
    assert solution.status is Status.SETTLED
    assert solution.is_sound


def test_the_objective_of_a_wide_problem_never_rises_as_k_grows():
    problem = correlated(60, 400)
    values = [s.objective for s in solve(problem, [30, 20, 12, 8, 5, 3, 2, 1, 0])]
    assert (np.diff(values) >= -1e-12).all()


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


def test_warm_starts_from_stronger_ridges_lower_the_objective_of_a_weak_ridge(monkeypatch):
    def total():
        value = 0.0
        for seed in range(4):
            X, y = make_sparse_hyperplane(200, 400, 30, random_state=seed)
            problem = SizedProblem(DenseDesign(X), y.astype(float), np.ones(200), 3e-4, 30)
            value += solve(problem, effort="fast")[0].objective
        return value

    with_path = total()
    monkeypatch.setattr(path, "RIDGE_PATH", ())
    assert with_path < total()


@pytest.mark.parametrize("shape", [(80, 400), (120, 210)])
def test_a_single_fit_with_a_large_k_is_as_good_as_a_path(shape):
    X, y = make_sparse_hyperplane(*shape, 30, random_state=0)
    problem = SizedProblem(DenseDesign(X), y.astype(float), np.ones(shape[0]), 1e-3, 200)
    (alone,) = solve(problem)
    assert len(alone.support) <= 200
    along = solve(problem, [shape[1], 200, 50])[1]
    assert alone.objective <= along.objective * 1.05


@pytest.mark.parametrize("ks", [[500, 388], [388], [388, 100]])
def test_every_size_has_a_solution_if_a_few_features_separate_the_classes(ks):
    X, y = make_synthetic(60, 500, random_state=0)
    for (solution,) in sparse_svm_path(X, y, ks, C=np.inf).solutions:
        assert solution.objective <= 1e-20
        assert len(solution.support) <= 388 or len(solution.support) == 500
