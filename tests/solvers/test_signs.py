"""Coefficients with required signs: the minimum of the quadratic, and of the objective, against scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from penalised_problems import make_problems
from scipy.optimize import lsq_linear
from search_problems import in_blocks, lowest_by_lbfgs

from kmargin.core.problem import ArrayProblem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers.refit.signs import constrained_direction
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search.remote_panels import find_direction

SIGNS = np.array([1.0, -1.0, 0.0, 1.0, 0.0, -1.0, 1.0, 0.0])


def quadratic(A, b):
    """The upper triangle of A'A with A'b as its last column."""
    return np.triu(np.vstack([np.column_stack([A.T @ A, A.T @ b]), np.zeros(A.shape[1] + 1)]))


def bounded_least_squares(A, b, ridge, signs):
    J, rhs = np.vstack([A, np.diag(np.sqrt(ridge))]), np.append(b, np.zeros(len(ridge)))
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return lsq_linear(J, rhs, (low, high), method="bvls", tol=1e-14, max_iter=1000)


@pytest.mark.parametrize("direction", [constrained_direction, find_direction], ids=["in Python", "compiled"])
@pytest.mark.parametrize("shape", [(30, 5), (30, 12), (8, 12)])
def test_the_direction_leads_to_the_minimum_of_bounded_least_squares(shape, direction):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
        signs = rng.choice([-1.0, 0, 1], shape[1])
        ridge = np.full(shape[1], 0.05)
        u = np.where(rng.random(shape[1]) < 0.5, 0.0, signs * rng.random(shape[1]))
        H, d, U = quadratic(A, b), np.empty(shape[1]), np.empty((shape[1], shape[1]))
        work = () if direction is find_direction else (U,)
        decrease, is_minimum = direction(H, ridge, u, signs, *work, d)
        expected = bounded_least_squares(A, b, ridge, signs)
        assert is_minimum
        np.testing.assert_allclose(u + d, expected.x, atol=1e-8)
        assert ((u + d) * signs >= 0).all()
        start = 0.5 * np.sum((b - A @ u) ** 2) + 0.5 * ridge @ u**2
        assert decrease == pytest.approx(start - expected.cost, abs=1e-10)


@pytest.mark.parametrize("form", [lambda problem: problem, in_blocks], ids=["in memory", "in blocks"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [0.02, 0.0])
def test_a_refit_with_signs_is_the_bounded_minimum(lam, fit_intercept, form, rng):
    for problem in make_problems(3, lam=lam, fit_intercept=fit_intercept):
        start, at = rng.standard_normal(8), float(rng.standard_normal())
        coef, intercept, objective, _ = refit(form(problem), np.arange(8), start, at, SIGNS)
        assert (coef * SIGNS >= 0).all()
        assert (coef == 0).any()
        beta = np.append(coef, intercept)[: problem.design.n_parameters]
        assert objective == pytest.approx(problem.loss(beta), rel=1e-9)
        assert objective == pytest.approx(lowest_by_lbfgs(problem, np.arange(8), SIGNS), rel=1e-8)


few_numbers = hnp.arrays(np.float64, (7, 3), elements=st.integers(-2, 2).map(float))


@settings(max_examples=40)
@given(
    few_numbers,
    st.sampled_from([0.0, 0.1]),
    hnp.arrays(np.float64, 3, elements=st.sampled_from([-1.0, 0, 1])),
)
def test_columns_of_few_distinct_values_are_fitted_to_the_minimum(X, lam, signs):
    """Among them are ties, repeated columns and constant columns."""
    problem = ArrayProblem(DenseDesign(X), np.array([1.0, -1, 1, -1, 1, -1, 1]), np.ones(7), lam)
    coef, intercept, objective, _ = refit(problem, np.arange(3), signs=signs)
    assert (coef * signs >= 0).all()
    assert objective == pytest.approx(problem.loss(np.append(coef, intercept)), rel=1e-9, abs=1e-12)
    assert objective <= lowest_by_lbfgs(problem, np.arange(3), signs) * (1 + 1e-6) + 1e-9
