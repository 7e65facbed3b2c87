"""The final refit: the gradient recomputed from the columns, and the descent by singular values."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import PROBLEMS, make_problem, make_problems
from search_problems import fold, in_blocks, lowest_by_lbfgs, make_case, make_search

from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.final import ArrayColumns, minimise_by_svd, shortest_solution
from kmargin.solvers.refit.rows import make_rows
from kmargin.solvers.refit.support import refit


def test_objectives_and_predicted_decreases_of_single_coefficients_are_recomputed(rng):
    problem = make_case([2, 1, 3, 1, 2, 3])
    search = make_search(problem, [4, 0, 2])
    coefs, values = search.coefs + 0.1 * rng.standard_normal(search.coefs.shape), np.empty(3)
    columns = problem.units.columns_of(search.support)
    gained = search.panels.finish(search.support, coefs, values)
    expected = 0.0
    for one, u, value in zip(problem.binary, coefs, values, strict=True):
        A, c, ridge = fold(one, columns)
        short = np.maximum(c - A @ u, 0)
        assert value == pytest.approx(0.5 * short @ short + 0.5 * ridge @ u**2, rel=1e-12)
        curvature = (A[short > 0] ** 2).sum(axis=0) + ridge
        expected += np.sum((ridge * u - A.T @ short) ** 2 / curvature) / 2
    assert gained == pytest.approx(expected, rel=1e-9)
    assert search.result().is_exact


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_descent_by_singular_values_ends_at_the_minimum(name, rng):
    problem, columns = PROBLEMS[name], np.array([0, 2, 5, 6])
    A, c, ridge = fold(problem, columns)
    for u in (np.zeros(A.shape[1]), 10 * rng.standard_normal(A.shape[1])):
        end, value = minimise_by_svd(ArrayColumns(A, c), ridge, u, np.inf)
        assert value == pytest.approx(0.5 * np.sum(np.maximum(c - A @ end, 0) ** 2) + 0.5 * ridge @ end**2)
        assert value == pytest.approx(lowest_by_lbfgs(problem, columns), rel=1e-8, abs=1e-15)


def test_a_descent_that_lowers_nothing_returns_its_start(rng):
    A, c, ridge = fold(make_problem(), np.arange(4))
    u = rng.standard_normal(A.shape[1])
    assert minimise_by_svd(ArrayColumns(A, c), ridge, u, 0.0) == (u, 0.0)


def test_huge_coefficients_that_cancel_are_replaced(rng):
    A, c, _ = fold(make_problem(lam=0.0), np.arange(4))
    A = np.column_stack([A, A[:, 0] + A[:, 1]])
    cancelling = 1e12 * np.array([1.0, 1.0, 0.0, 0.0, 0.0, -1.0])
    expected, lowest = minimise_by_svd(ArrayColumns(A, c), np.zeros(6), np.zeros(6), np.inf)
    found, value = minimise_by_svd(ArrayColumns(A, c), np.zeros(6), expected + cancelling, np.inf)
    assert value == pytest.approx(lowest, rel=1e-9)
    assert np.abs(found).max() < 1e3


def test_a_huge_coefficient_of_a_column_without_active_rows_is_brought_down():
    """Its ridge is tiny beside the norm of its column, but not beside the loss."""
    A, c, ridge = fold(make_problem(lam=0.0), np.arange(3))
    A, ridge = np.column_stack([A, np.where(np.arange(len(c)) == 0, 1.0, 0.0)]), np.array([0, 0, 0, 0, 1e-25])
    start = np.append(np.zeros(4), 1e12)
    found, value = minimise_by_svd(ArrayColumns(A, c), ridge, start, np.inf)
    assert abs(found[-1]) < 1e3
    assert value == pytest.approx(0.5 * np.sum(np.maximum(c - A @ found, 0) ** 2), rel=1e-12)


@pytest.mark.parametrize("apart", [1e-3, 1e-7, 1e-10])
def test_the_difference_of_nearly_equal_columns_is_used(apart, rng):
    """A difference below 1e-8 is lost in their Gram matrix."""
    X, hidden = rng.standard_normal((40, 6)), rng.standard_normal(40)
    X[:, 1] = X[:, 0] + apart * hidden
    y = np.where(hidden + 0.3 * rng.standard_normal(40) > 0, 1.0, -1.0)
    problem = ArrayProblem(DenseDesign(X), y, np.ones(40), 0.0)
    apart_problem = replace(problem, design=DenseDesign(np.column_stack([X[:, 0], hidden])))
    rows = make_rows(problem)
    u, value = rows.minimise_exactly(0.0, np.array([0, 1]), np.zeros(3), np.inf)
    assert value == pytest.approx(lowest_by_lbfgs(apart_problem, np.arange(2)), rel=1e-4)
    assert rows.is_minimum(0.0, np.array([0, 1]), u, value)


def test_equal_columns_get_the_coefficients_of_least_norm(rng):
    X = rng.standard_normal((30, 3))
    X[:, 2] = X[:, 0]
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1.0, -1.0)
    rows = make_rows(ArrayProblem(DenseDesign(X), y, np.ones(30), 0.0))
    u, _ = rows.minimise_exactly(0.0, np.arange(3), np.zeros(4), np.inf)
    assert u[0] == pytest.approx(u[2], rel=1e-9)


def test_the_least_norm_solution_is_that_of_the_pseudoinverse(rng):
    J, rhs = rng.standard_normal((6, 9)), rng.standard_normal(6)
    np.testing.assert_allclose(shortest_solution(J, rhs), np.linalg.pinv(J) @ rhs, rtol=1e-9)
    assert not shortest_solution(1e-13 * J, rhs).any()  # singular values are compared with 1


@pytest.mark.parametrize("form", [lambda problem: problem, in_blocks], ids=["in memory", "in blocks"])
@pytest.mark.parametrize("lam", [0.0, 1e-12, 0.01])
def test_collinear_columns_are_refitted_to_the_minimum(lam, form):
    for problem in make_problems(2, n_features=6, lam=lam):
        X = problem.design.X
        X = np.column_stack([X, X[:, 0], X[:, 1] - X[:, 2], np.ones(len(X))])
        collinear = replace(problem, design=DenseDesign(X))
        coef, _, objective, _ = refit(form(collinear), np.arange(9))
        assert np.isfinite(coef).all()
        assert objective == pytest.approx(lowest_by_lbfgs(collinear, np.arange(9)), rel=1e-6)
        if lam == 0.0:
            assert objective == pytest.approx(refit(problem, np.arange(6))[2], rel=1e-8)
