import numpy as np
import pytest

from conftest import make_problem
from kmargin.solvers.steps import MMStep, SDStep

RHO = 7.0


def test_gradient_is_the_derivative_of_f_rho(problem, rng):
    step = 1e-6
    for _ in range(5):
        beta = rng.standard_normal(problem.design.n_parameters)
        numeric = [
            (problem.objective(beta + step * e, RHO) - problem.objective(beta - step * e, RHO)) / (2 * step)
            for e in np.eye(len(beta))
        ]
        np.testing.assert_allclose(problem.gradient(beta, RHO), numeric, atol=1e-6)


def test_surrogate_majorizes_and_touches(problem, rng):
    for scale in (0.1, 1.0, 10.0):
        anchor = scale * rng.standard_normal(problem.design.n_parameters)
        np.testing.assert_allclose(
            problem.surrogate(anchor, anchor, RHO), problem.objective(anchor, RHO), rtol=1e-12
        )
        for _ in range(20):
            beta = anchor + scale * rng.standard_normal(len(anchor))
            assert problem.surrogate(beta, anchor, RHO) >= problem.objective(beta, RHO) * (1 - 1e-12)


def test_the_penalty_has_the_papers_prefactor():
    problem = make_problem(n_features=12, k=4, lam=0.0)
    beta = np.zeros(13)
    beta[:6] = [5, 4, 3, 2, 1, 1]  # two of them beyond the four largest
    assert problem.penalty_weight(RHO) == RHO / 9
    np.testing.assert_allclose(problem.objective(beta, RHO) - problem.loss(beta), RHO / (2 * 9) * 2)


def test_the_penalty_vanishes_when_every_feature_may_stay(rng):
    problem = make_problem(n_features=12, k=12)
    beta = rng.standard_normal(13)
    assert problem.objective(beta, RHO) == problem.loss(beta)


def test_mm_step_solves_the_normal_equations(problem, rng):
    design, n = problem.design, problem.design.n_samples
    step = MMStep(problem)
    beta = rng.standard_normal(design.n_parameters)
    new = step(beta, problem.gradient(beta, RHO), RHO)
    # (a^2 X'SX + b^2 I + lam I) beta = a^2 X'Sz + b^2 p + lam (0, intercept)
    X = np.column_stack([design.decision(e) for e in np.eye(len(beta))])
    f = X @ beta
    z = np.where(problem.y * f >= 1, f, problem.y)
    b_sq = problem.penalty_weight(RHO)
    matrix = X.T @ (problem.weights[:, None] * X) / n + (b_sq + problem.lam) * np.eye(len(beta))
    right = X.T @ (problem.weights * z) / n + b_sq * problem.project(beta)
    right += problem.lam * problem.ridge_center(beta)
    np.testing.assert_allclose(matrix @ new, right, atol=1e-10)


def test_mm_step_minimises_the_surrogate(problem, rng):
    beta = rng.standard_normal(problem.design.n_parameters)
    new = MMStep(problem)(beta, problem.gradient(beta, RHO), RHO)
    lowest = problem.surrogate(new, beta, RHO)
    for _ in range(50):
        assert problem.surrogate(new + 0.01 * rng.standard_normal(len(beta)), beta, RHO) >= lowest - 1e-12


def test_sd_step_minimises_the_surrogate_along_the_gradient(problem, rng):
    beta = rng.standard_normal(problem.design.n_parameters)
    gradient = problem.gradient(beta, RHO)
    new = SDStep(problem)(beta, gradient, RHO)
    lowest = problem.surrogate(new, beta, RHO)
    for shift in (-1e-2, -1e-4, 1e-4, 1e-2):
        assert problem.surrogate(new + shift * gradient, beta, RHO) > lowest - 1e-14


@pytest.mark.parametrize("make_step", [MMStep, SDStep])
def test_each_unaccelerated_step_descends(problem, rng, make_step):
    step = make_step(problem)
    beta = 2 * rng.standard_normal(problem.design.n_parameters)
    value = problem.objective(beta, RHO)
    for _ in range(50):
        beta = step(beta, problem.gradient(beta, RHO), RHO)
        new_value = problem.objective(beta, RHO)
        assert new_value <= value + 1e-14
        value = new_value


def test_thin_svd_reproduces_the_weighted_design(problem):
    U, s, V = problem.design.thin_svd(problem.weights)
    X = np.column_stack([problem.design.decision(e) for e in np.eye(problem.design.n_parameters)])
    np.testing.assert_allclose(U * s @ V.T, np.sqrt(problem.weights)[:, None] * X, atol=1e-12)
    assert len(s) <= min(X.shape)


def test_thin_svd_is_taken_once_for_all_k():
    problem = make_problem()
    first = problem.with_k(3).design.thin_svd(problem.weights)
    assert problem.with_k(1).design.thin_svd(problem.weights.copy()) is first
