"""Columns on a safe scale: the problem stays the same, and what cannot be computed with is refused."""

from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import make_problem

from kmargin import SparseSVC
from kmargin.core.scaling import exact_moments, make_scaling
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.rows import make_rows
from kmargin.solvers.refit.support import refit


def changed(problem, factors=1.0, offsets=0.0):
    old = problem.design
    return replace(problem, design=DenseDesign(old.X * factors + offsets, old.fit_intercept))


def test_mean_and_spread_are_exact_even_if_squares_overflow_or_vanish():
    X, factors = make_problem(n_features=5).design.X + 1.0, 10.0 ** np.array([-300, -200, 0, 200, 300])
    found = exact_moments(DenseDesign(X * factors), lambda design: design.moments(np.ones(len(X)), X[:, 0]))
    np.testing.assert_allclose(found, [X.mean(axis=0) * factors, X.std(axis=0) * factors], rtol=1e-12)


def test_ordinary_columns_are_left_as_they_are():
    problem = make_problem()
    for factors in (1.0, 1e-5, 1e5):
        assert make_scaling(changed(problem, factors)) is None
    rows = make_rows(problem)
    assert rows.problem is problem
    np.testing.assert_array_equal(rows.ridge_scale, 1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scales_are_powers_of_two_near_the_spread_and_only_far_columns_are_centred(fit_intercept):
    problem = make_problem(n_features=6, fit_intercept=fit_intercept)
    factors = np.array([1.0, 1e-70, 1e80, 1.0, 1e40, 1.0])
    offsets = np.array([0.0, 0.0, 0.0, 1e5, 1e45, 7.0])
    far = changed(problem, factors, offsets)
    scaling = make_scaling(far)
    X, weights = far.design.X, problem.weights / problem.weights.sum()
    mean = weights @ X
    assert (np.frexp(scaling.scales)[0] == 0.5).all()
    assert (scaling.scales != 1.0).tolist() == [False, True, True, False, True, False]
    if fit_intercept:
        np.testing.assert_array_equal(scaling.centers[[0, 1, 2, 5]], 0.0)
        np.testing.assert_allclose(scaling.centers[[3, 4]], mean[[3, 4]], rtol=1e-9)
        spread = np.std(problem.design.X, axis=0) * factors
        assert (np.abs(np.log2(scaling.scales / spread))[[1, 2, 4]] < 1.5).all()
    else:
        assert not scaling.centers.any()


@pytest.mark.parametrize("lam", [0.0, 0.01])
def test_a_scaled_problem_has_the_same_objective_everywhere(lam, rng):
    problem = changed(make_problem(n_features=4, lam=lam), np.array([1e-70, 1.0, 1e80, 1.0]), [0, 1e4, 0, 0])
    rows, columns = make_rows(problem), np.array([2, 0, 1])
    coef, intercept = rng.standard_normal(3) * [1e-80, 1e70, 1.0], 0.3
    u = rows.scaled(columns, coef, intercept)
    residual = rows.residual(columns, u)
    scaled = 0.5 * np.sum(np.maximum(residual, 0) ** 2) + 0.5 * rows.ridges(lam, columns)[:-1] @ u[:-1] ** 2
    beta = np.zeros(5)
    beta[columns], beta[-1] = coef, intercept
    assert scaled == pytest.approx(problem.loss(beta), rel=1e-9)
    back, at, value = rows.unscaled(columns, u, scaled, lam)
    np.testing.assert_allclose(back, coef, rtol=1e-12)
    assert at == pytest.approx(intercept, abs=1e-9)
    assert value == pytest.approx(problem.loss(beta), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_without_a_ridge_scales_and_offsets_change_nothing(factor, fit_intercept):
    problem = make_problem(n_features=5, lam=0.0, fit_intercept=fit_intercept)
    offsets = 1e6 * np.arange(5) * fit_intercept
    expected, moved = (refit(each, np.arange(5)) for each in (problem, changed(problem, 1.0, offsets)))
    assert moved[2] == pytest.approx(expected[2], rel=1e-9)
    coef, _, objective, _ = refit(changed(problem, factor), np.arange(5))
    assert objective == pytest.approx(expected[2], rel=1e-12)
    np.testing.assert_allclose(coef * factor, expected[0], rtol=1e-6)


@pytest.mark.parametrize("size", [1e101, 1e200, 1e307])
@pytest.mark.parametrize("solver", ["exchange", "sd"])
def test_a_spread_that_is_too_large_is_refused_in_one_sentence(size, solver):
    problem = make_problem(n_features=4)
    X = problem.design.X * [1.0, 1.0, size, 1.0]
    message = r"^Column 2 of X has a spread of \S+, and spreads have to be at most 1e\+100. Rescale it"
    for standardize in (False, True):
        with pytest.raises(ValueError, match=message):
            SparseSVC(2, solver=solver, standardize=standardize).fit(X, problem.y)


@pytest.mark.parametrize("size", [1e-101, 1e-200, 1e-300])
@pytest.mark.parametrize("solver", ["exchange", "sd", "mm"])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_with_a_tiny_spread_does_not_disturb_the_others(size, solver, standardize):
    problem = make_problem(n_features=4)
    X = problem.design.X * [1.0, 1.0, size, 1.0]
    model = SparseSVC(2, solver=solver, standardize=standardize).fit(X, problem.y)
    rest = SparseSVC(2, solver=solver, standardize=standardize).fit(X[:, [0, 1, 3]], problem.y)
    np.testing.assert_allclose(model.decision_function(X), rest.decision_function(X[:, [0, 1, 3]]), rtol=1e-6)


def test_a_constant_column_of_any_size_is_no_reason_to_refuse():
    problem = make_problem(n_features=4)
    for value in (1e-300, 1e-120, 1e120, 1e300):
        X = problem.design.X.copy()
        X[:, 2] = value
        assert 2 not in SparseSVC(3).fit(X, problem.y).support_
