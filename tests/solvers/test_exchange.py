"""The search over supports."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_classification
from test_newton import refit

from conftest import PROBLEMS, SizedProblem
from kmargin import MM, SD, Exchange, SparseSVC, Status, sparse_svm_path
from kmargin.core.problem import Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane, make_synthetic
from kmargin.solvers.search import path

NEARLY = 1 - 1e-8


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


def test_beyond_small_problems_the_default_says_that_it_tried_the_most_promising_swaps():
    (solution,) = solve(correlated(300, 200, k=4))
    assert solution.status is Status.SETTLED
    assert solution.is_sound


@pytest.mark.parametrize("shape", [(100, 30), (60, 400)])
def test_the_objective_never_rises_as_k_grows(shape):
    for seed in range(3):
        problem = correlated(*shape, seed=seed)
        ks = [30, 20, 12, 8, 5, 3, 2, 1, 0]
        values = [s.objective for s in solve(problem, ks)]
        assert (np.diff(values) >= -1e-12).all()


def test_supports_are_handed_from_strong_ridge_to_weak():
    X, y, coef = make_sparse_hyperplane(400, 200, 20, random_state=0, return_coef=True)
    problem = SizedProblem(DenseDesign(X), y.astype(float), np.ones(400), 0.0, 20)
    lams = [1e-1, 1e-2, 1e-3]
    grid = solve(problem, [20], lams)
    assert len(grid) == 3
    assert all(a.objective >= b.objective for a, b in pairwise(grid))
    causal = set(np.flatnonzero(coef))
    assert len(causal & set(grid[-1].support)) >= 19


def test_the_papers_simulation_is_recovered():
    X, y, coef = make_sparse_hyperplane(2000, 500, 50, random_state=0, return_coef=True)
    model = SparseSVC(k=50, C=1 / (2 * 0.01 * 2000), solver="exchange").fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))


@pytest.mark.parametrize("solver", [MM, SD])
def test_polishing_never_raises_the_objective(solver):
    for seed in range(5):
        problem = correlated(100, 30, 6, seed=seed)
        ((plain,),), ((polished,),) = (
            solver(polish=p).solve_grid(Problem.of(problem), [[problem.lam]], [6], np.random.default_rng(0))
            for p in (False, True)
        )
        assert polished.objective <= plain.objective
        assert polished.status in (Status.SETTLED, Status.SWAP_OPTIMAL)
        assert polished.trace == plain.trace


def test_duplicated_features_keep_the_first_and_say_so():
    X, y = make_sparse_hyperplane(100, 6, 3, random_state=0)
    doubled = np.hstack([X, X])
    with pytest.warns(UserWarning, match=r"6 features repeat an earlier one .*the first of each is used"):
        model = SparseSVC(k=4, solver="exchange").fit(doubled, y)
    np.testing.assert_array_equal(model.coef_[0, :6], SparseSVC(k=4, solver="exchange").fit(X, y).coef_[0])
    assert not model.coef_[0, 6:].any()


def test_constant_features_are_never_chosen():
    problem = correlated(80, 8, 8)
    X = np.column_stack([np.full(80, 7.0), problem.design.X, np.zeros(80)])
    (solution,) = solve(replace(problem, design=DenseDesign(X), k=3))
    assert 0 not in solution.support
    assert 9 not in solution.support


def test_random_small_problems_are_sound():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 40)), int(rng.integers(1, 60))
        X = rng.standard_normal((n, p))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        problem = SizedProblem(DenseDesign(X, bool(rng.integers(2))), y, np.ones(n), 0.0, p)
        ks = sorted({int(k) for k in rng.integers(0, p + 1, 4)}, reverse=True)
        lams = sorted(
            (float(lam) for lam in rng.choice([0.0, 1e-4, 1e-2, 1.0], 2, replace=False)), reverse=True
        )
        grid = solve(problem, ks, lams)
        assert len(grid) == len(ks) * len(lams)
        for solution, (lam, k) in zip(grid, [(lam, k) for lam in lams for k in ks], strict=True):
            assert len(solution.support) <= k
            assert np.isfinite(solution.coef).all()
            exact = refit(replace(problem, lam=lam), solution.support)
            np.testing.assert_allclose(solution.objective, exact.objective, rtol=1e-5, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_samples", [60, 300])
def test_large_supports_are_no_worse_than_mms(n_samples):
    X, y = make_sparse_hyperplane(n_samples, 400, 40, random_state=0)
    ks = [400, 300, 200, 140, 40, 10]
    exchanged = sparse_svm_path(X, y, ks, solver="exchange")
    annealed = sparse_svm_path(X, y, ks, solver="mm")
    assert (exchanged.objectives <= annealed.objectives * 1.0001).all()


def test_the_path_of_ridges_pays_where_the_ridge_is_weak(monkeypatch):
    def total():
        value = 0.0
        for seed in range(4):
            X, y = make_sparse_hyperplane(500, 1000, 50, random_state=seed)
            problem = SizedProblem(DenseDesign(X), y.astype(float), np.ones(500), 3e-4, 50)
            value += solve(problem, effort="fast")[0].objective
        return value

    with_path = total()
    monkeypatch.setattr(path, "RIDGE_PATH", ())
    assert with_path < total()


@pytest.mark.parametrize("shape", [(80, 900), (400, 600)])
def test_a_single_large_k_is_as_good_as_along_a_path(shape):
    X, y = make_sparse_hyperplane(*shape, 30, random_state=0)
    problem = SizedProblem(DenseDesign(X), y.astype(float), np.ones(shape[0]), 1e-3, 300)
    (alone,) = solve(problem)
    assert len(alone.support) <= 300
    along = solve(problem, [shape[1], 300, 50])[1]
    assert alone.objective <= along.objective * 1.05


@pytest.mark.parametrize("ks", [[500, 388], [388], [388, 100]])
def test_where_a_few_features_separate_the_classes_no_size_is_left_without_an_answer(ks):
    X, y = make_synthetic(60, 500, random_state=0)
    for (solution,) in sparse_svm_path(X, y, ks, C=np.inf).solutions:
        assert solution.objective <= 1e-20
        assert len(solution.support) <= 388 or len(solution.support) == 500
