"""The final refit: the gradient recomputed from the columns, and the descent by singular values."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import PROBLEMS, make_problem, make_problems
from search_problems import fold, in_blocks, lowest_by_lbfgs

from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit import final
from kmargin.solvers.refit.final import ArrayColumns, minimise_by_svd, shortest_solution
from kmargin.solvers.refit.rows import make_rows
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search.remote_panels import RemoteColumns


@pytest.mark.parametrize("lam", [0.0, 0.02])
def test_columns_in_blocks_answer_as_columns_in_memory_and_both_as_numpy(rng, lam):
    problem, idx = make_problem(40, 6, lam=lam), np.arange(7)
    A, c, ridge = fold(problem, idx[:-1])
    here, panel = ArrayColumns(A, c), np.tile(np.vstack([A.T, c]), 2)  # the same problem twice
    there = RemoteColumns(in_blocks(problem).design.panel(idx[:-1], 6), idx)
    for u, d in rng.standard_normal((12, 2, 7)):
        u[:3] *= rng.random(3) < 0.5
        short, active = np.maximum(c - A @ u, 0), A @ u < c
        for columns, curvature in ((here, 0.0), (here, 0.3), (there, 0.0), (there, 0.3)):
            np.testing.assert_allclose(columns.squares(), (A**2).sum(axis=0), rtol=1e-12)
            rows, residual = columns.active_rows(u)
            beside, expected = np.column_stack([rows, residual]), np.column_stack([A, short])[active]
            np.testing.assert_allclose(beside.T @ beside, expected.T @ expected, atol=1e-12)
            assert columns.loss(u) == pytest.approx(0.5 * short @ short, rel=1e-12)
            slope = short @ A @ d - abs(d[0])
            t = columns.line_minimum(u, d, slope, curvature)
            at = np.maximum(c - A @ (u + t * d), 0) @ A @ d
            assert t > 0
            assert slope + curvature * t == pytest.approx(at, rel=1e-8) or t > 1e6
        decreases = (ridge * u - A.T @ short) ** 2 / 2 / (ridge + (A[active] ** 2).sum(axis=0))
        for have_signs in (False, True):
            expected, values = np.sum(decreases[(u != 0) | (not have_signs)]), np.empty(2)
            assert there.gradient_slack(ridge, u, have_signs) == pytest.approx(expected, rel=1e-9)
            work = np.tile(ridge, (2, 1)), idx, np.tile(u, (2, 1)), have_signs, np.empty(80), values
            found = final.measure_gradient(panel, np.array([0, 40, 80]), *work)
            assert found == pytest.approx(2 * expected, rel=1e-9)
            np.testing.assert_allclose(values, 0.5 * short @ short + 0.5 * ridge @ u**2, rtol=1e-12)


@pytest.mark.parametrize(("size", "is_huge"), [(0.999e6, False), (1.001e6, True), (-1.001e6, True)])
def test_a_gradient_at_huge_coefficients_is_infinite(size, is_huge):
    panel = np.array([[0.6, 0.8], [1.0, 1.0], [1e9, 1e9]])  # a column of norm 1, the intercept, the target
    u, work = np.array([[size, 0.0]]), (False, np.empty(2), np.empty(1))
    found = final.measure_gradient(panel, np.array([0, 2]), np.zeros((1, 2)), np.arange(2), u, *work)
    assert np.isinf(found) == is_huge


def test_refits_by_singular_values_are_made_up_to_a_number_of_flops():
    assert [final.is_affordable(n_rows, 100) for n_rows in (29_900, 29_901)] == [True, False]


def test_coefficients_of_badly_scaled_columns_are_converted_both_ways():
    """A far column is centred, a huge one divided, and a constant one does what the intercept can do."""
    problem, columns = make_problem(40, 6), np.array([0, 1, 2, 3])
    plain = DenseDesign(problem.design.X * (np.arange(6) != 3) + 0.5 * (np.arange(6) == 3))
    X = plain.X * np.where(np.arange(6) == 2, 1e60, 1.0) - np.where(np.arange(6) == 1, 1e10, 0.0)
    for design, far, huge in ((plain, 0.0, 1.0), (DenseDesign(X), -1e10, 1e60)):
        one = replace(problem, design=design)
        rows, coef = make_rows(one), np.array([0.3, -0.2, 0.4 / huge, 0.6])
        u = rows.scaled(columns, coef, 0.7)
        back, intercept, objective = rows.unscaled(columns, u, -1.0, one.lam)
        np.testing.assert_allclose(back, [*coef[:3], 0.0], rtol=1e-12)
        assert intercept == pytest.approx(0.7 + 0.5 * 0.6, abs=1e-9 + 1e-15 * abs(far))
        beta = np.array([*back, 0.0, 0.0, intercept])
        assert objective == (-1.0 if rows.scaling is None else pytest.approx(one.loss(beta), rel=1e-12))
        error = rows.rounding_error(columns, u)
        assert error == pytest.approx(np.finfo(float).eps * abs(0.2 * far), rel=1e-6)
        variance = np.average((rows.problem.design.X - rows._moments.mean) ** 2, axis=0, weights=one.weights)
        np.testing.assert_allclose(rows.variance, variance * (np.arange(6) != 3), rtol=1e-9)
    assert rows.scaling is not None


@pytest.mark.parametrize(("far", "is_exact"), [(1e10, True), (5e11, False)])
def test_an_exact_refit_is_rejected_if_rounding_errors_would_dominate(far, is_exact, rng):
    base, hidden, noise = rng.standard_normal((3, 40))
    X, y = np.column_stack([base + far, base + 0.02 * hidden]), np.sign(hidden + 0.3 * noise)
    rows, columns = make_rows(ArrayProblem(DenseDesign(X), y, np.ones(40), 0.0)), np.arange(2)
    end, value = rows.minimise_exactly(0.0, columns, start := np.zeros(3), 0.5)
    assert (end is not start) == (value < 0.5) == is_exact
    assert rows.is_minimum(0.0, columns, end, value) == is_exact


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_descent_by_singular_values_ends_at_the_minimum(name, rng):
    problem, columns = PROBLEMS[name], np.array([0, 2, 5, 6])
    (A, c, ridge), rows = fold(problem, columns), make_rows(problem)
    for u in (np.zeros(A.shape[1]), 10 * rng.standard_normal(A.shape[1])):
        end, value = minimise_by_svd(ArrayColumns(A, c), ridge, u, np.inf)
        assert value == pytest.approx(0.5 * np.sum(np.maximum(c - A @ end, 0) ** 2) + 0.5 * ridge @ end**2)
        assert value == pytest.approx(lowest_by_lbfgs(problem, columns), rel=1e-8, abs=1e-15)
        near = [np.append(factor * end, 0.0)[:5] for factor in (1.0, 1.01)]
        assert [rows.is_minimum(problem.lam, columns, u, value) for u in near] == [True, False]


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
