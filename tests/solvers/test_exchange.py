"""The search over supports."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from sklearn.datasets import make_classification
from test_newton import refit

from conftest import PROBLEMS
from kmargin import MM, SD, Exchange, SparseSVC, Status, sparse_svm_path
from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.datasets import make_sparse_hyperplane, make_synthetic
from kmargin.solvers.exchange import EFFORTS

NEARLY = 1 - 1e-8


def solve(problem, ks=None, lams=None, **knobs):
    ks = [problem.k] if ks is None else ks
    lams = [problem.lam] if lams is None else lams
    return list(Exchange(**knobs).iter_grid(problem, lams, ks, np.random.default_rng(0)))


def correlated(n_samples=80, n_features=12, k=3, lam=0.01, seed=0):
    """Correlated features, so that greedy choices go wrong."""
    X, y = make_classification(
        n_samples, n_features, n_informative=5, n_redundant=3, flip_y=0.1, class_sep=0.7, random_state=seed
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return ArrayProblem(DenseDesign(X), np.where(y == 1, 1.0, -1.0), np.ones(n_samples), lam, k)


def best_objective(problem):
    """By exhaustive search."""
    supports = combinations(range(problem.design.n_features), problem.k)
    return min(refit(problem, np.array(support)).objective for support in supports)


@pytest.mark.parametrize("name", PROBLEMS)
def test_at_most_k_features_at_their_exact_minimum(name):
    problem = PROBLEMS[name]
    (solution,) = solve(problem)
    assert len(solution.support) <= problem.k
    assert list(solution.support) == sorted(set(solution.support))
    exact = refit(problem, solution.support)
    np.testing.assert_allclose(solution.objective, exact.objective, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_small_problems_are_solved_to_the_global_optimum(k):
    found = 0
    for seed in range(10):
        problem = correlated(k=k, seed=seed)
        (solution,) = solve(problem)
        best = best_objective(problem)
        assert solution.objective >= best * NEARLY
        found += solution.objective <= best / NEARLY
    assert found >= 9


@pytest.mark.parametrize("seed", range(5))
def test_when_all_swaps_are_tried_none_improves(seed):
    problem = correlated(k=4, seed=seed)
    (solution,) = solve(problem, effort="thorough")
    assert solution.status is Status.SWAP_OPTIMAL
    outside = np.setdiff1d(np.arange(12), solution.support)
    for leaving in solution.support:
        for entering in outside:
            swapped = np.sort(np.append(np.setdiff1d(solution.support, leaving), entering))
            assert refit(problem, swapped).objective >= solution.objective * NEARLY


def test_beyond_small_problems_the_default_says_that_it_tried_the_most_promising_swaps():
    (solution,) = solve(correlated(300, 200, k=4))
    assert solution.status is Status.SETTLED
    assert solution.is_sound


@pytest.mark.parametrize("seed", range(5))
def test_never_worse_than_the_start(seed):
    rng = np.random.default_rng(seed)
    problem = correlated(100, 30, 6, seed=seed)
    for _ in range(5):
        support = np.sort(rng.choice(30, 6, replace=False))
        start = refit(problem, support)
        better = Exchange().improve(problem, start)
        assert better.objective <= start.objective
        assert len(better.support) <= 6


def test_the_same_problem_gives_the_same_bits():
    problem = correlated(100, 30, 6)
    (first,), (again,) = solve(problem), solve(problem)
    np.testing.assert_array_equal(first.coef, again.coef)
    assert first.objective == again.objective


@pytest.mark.parametrize("shape", [(100, 30), (60, 400)])
def test_the_objective_never_rises_as_k_grows(shape):
    for seed in range(3):
        problem = correlated(*shape, seed=seed)
        ks = [30, 20, 12, 8, 5, 3, 2, 1, 0]
        values = [s.objective for s in solve(problem, ks)]
        assert (np.diff(values) >= -1e-12).all()


def test_a_path_is_no_worse_than_single_fits():
    for seed in range(5):
        problem = correlated(100, 20, seed=seed)
        ks = [10, 6, 4, 3, 2, 1]
        along = [s.objective for s in solve(problem, ks)]
        alone = [solve(problem.with_k(k))[0].objective for k in ks]
        assert np.mean(along) <= np.mean(alone) * (1 + 1e-3)


def test_supports_are_handed_from_strong_ridge_to_weak():
    X, y, coef = make_sparse_hyperplane(400, 200, 20, random_state=0, return_coef=True)
    problem = ArrayProblem(DenseDesign(X), y.astype(float), np.ones(400), 0.0, 20)
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


@pytest.mark.parametrize("shape", [(500, 1000), (1000, 500)])
def test_the_true_support_is_never_better(shape):
    X, y, coef = make_sparse_hyperplane(*shape, 50, random_state=1, return_coef=True)
    problem = ArrayProblem(DenseDesign(X), y.astype(float), np.ones(shape[0]), 0.01, 50)
    (solution,) = solve(problem)
    assert solution.objective <= refit(problem, np.flatnonzero(coef)).objective / NEARLY


@pytest.mark.parametrize("solver", [MM, SD])
def test_polishing_never_raises_the_objective(solver):
    for seed in range(5):
        problem = correlated(100, 30, 6, seed=seed)
        (plain,) = solver().iter_grid(problem, [problem.lam], [6], np.random.default_rng(0))
        (polished,) = solver(polish=True).iter_grid(problem, [problem.lam], [6], np.random.default_rng(0))
        assert polished.objective <= plain.objective
        assert polished.status in (Status.SETTLED, Status.SWAP_OPTIMAL)
        assert polished.trace == plain.trace


def test_synthetic_is_solved_at_every_k_at_least_as_well_as_by_mm():
    X, y = make_synthetic(400, 100, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ks = [100, 50, 20, 10, 5, 2, 1]
    exchanged = sparse_svm_path(X, y, ks, solver="exchange")
    annealed = sparse_svm_path(X, y, ks, solver="mm")
    assert (exchanged.objectives <= annealed.objectives + 1e-6).all()


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


@pytest.mark.parametrize("lam", [0.0, 1e-6])
def test_separable_data_give_a_finite_model(lam):
    X, y = make_sparse_hyperplane(50, 200, 5, random_state=0)
    problem = ArrayProblem(DenseDesign(X), y.astype(float), np.ones(50), lam, 20)
    (solution,) = solve(problem)
    assert np.isfinite(solution.coef).all()
    assert solution.objective < 0.01


def test_random_small_problems_are_sound():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 40)), int(rng.integers(1, 60))
        X = rng.standard_normal((n, p))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
        problem = ArrayProblem(DenseDesign(X, bool(rng.integers(2))), y, np.ones(n), 0.0, p)
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


def test_improving_a_solution_with_every_feature_only_refits_it():
    problem = correlated(60, 12, 12)
    start = refit(problem, np.arange(12))
    better = Exchange().improve(problem, start)
    np.testing.assert_allclose(better.objective, start.objective, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_samples", [60, 300])
def test_large_supports_are_no_worse_than_mms(n_samples):
    X, y = make_sparse_hyperplane(n_samples, 400, 40, random_state=0)
    ks = [400, 300, 200, 140, 40, 10]
    exchanged = sparse_svm_path(X, y, ks, solver="exchange")
    annealed = sparse_svm_path(X, y, ks, solver="mm")
    assert (exchanged.objectives <= annealed.objectives * 1.0001).all()


def test_the_path_of_ridges_pays_where_the_ridge_is_weak(monkeypatch):
    monkeypatch.setitem(EFFORTS, "thorough", EFFORTS["fast"]._replace(ridge_path=False))
    with_path, without = 0.0, 0.0
    for seed in range(4):
        X, y = make_sparse_hyperplane(500, 1000, 50, random_state=seed)
        problem = ArrayProblem(DenseDesign(X), y.astype(float), np.ones(500), 3e-4, 50)
        with_path += solve(problem, effort="fast")[0].objective
        without += solve(problem, effort="thorough")[0].objective
    assert with_path < without


@pytest.mark.parametrize("shape", [(80, 900), (400, 600)])
def test_a_single_large_k_is_as_good_as_along_a_path(shape):
    X, y = make_sparse_hyperplane(*shape, 30, random_state=0)
    problem = ArrayProblem(DenseDesign(X), y.astype(float), np.ones(shape[0]), 1e-3, 300)
    (alone,) = solve(problem)
    assert len(alone.support) <= 300
    along = solve(problem, [shape[1], 300, 50])[1]
    assert alone.objective <= along.objective * 1.05


@pytest.mark.parametrize("ks", [[500, 388], [388], [388, 100]])
def test_where_a_few_features_separate_the_classes_no_size_is_left_without_an_answer(ks):
    X, y = make_synthetic(60, 500, random_state=0)
    path = sparse_svm_path(X, y, ks, C=np.inf)
    for (solution,) in path.solutions:
        assert solution.objective <= 1e-20
        assert len(solution.support) <= 388 or len(solution.support) == 500
