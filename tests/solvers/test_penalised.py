"""The penalised objective of M binary problems, its gradient and its surrogate."""

import numpy as np
import pytest
from penalised_problems import PENALISED, make_problems, make_units, of_one, random_point

from conftest import make_problem
from kmargin.solvers.proximal.penalised import PenalisedProblem

RHO = 7.0


@pytest.fixture(params=PENALISED.values(), ids=PENALISED.keys())
def penalised(request):
    return request.param


def test_the_objective_is_the_sum_over_the_binary_problems_and_the_distance(rng):
    penalised = PENALISED["everything"]
    beta = random_point(penalised, rng)
    loss = sum(problem.loss(row) for problem, row in zip(penalised.problems, beta, strict=True))
    gap = beta[:, :-1] - penalised.sparsity_set.project(beta[:, :-1], 2)
    np.testing.assert_allclose(penalised.loss(beta), loss, rtol=1e-13)
    np.testing.assert_allclose(penalised.squared_distance(beta), np.sum(gap**2), rtol=1e-13)
    expected = loss + RHO / (4 - 2 + 1) / 2 * np.sum(gap**2)
    np.testing.assert_allclose(penalised.objective(beta, RHO), expected, rtol=1e-13)


def test_the_penalty_has_the_papers_prefactor():
    penalised = of_one(make_problem(n_features=12, k=4, lam=0.0))
    beta = np.zeros((1, 13))
    beta[0, :6] = [5, 4, 3, 2, 1, 1]  # two of them beyond the four largest
    assert penalised.penalty_weight(RHO) == RHO / 9
    np.testing.assert_allclose(penalised.objective(beta, RHO) - penalised.loss(beta), RHO / (2 * 9) * 2)


def test_the_penalty_vanishes_when_every_feature_may_stay(rng):
    penalised = of_one(make_problem(n_features=12, k=12))
    beta = random_point(penalised, rng)
    assert penalised.objective(beta, RHO) == penalised.loss(beta)
    assert [penalised.with_k(k).penalty_weight(3.0) for k in (11, 12, 20)] == [1.5, 0, 0]


def test_gradient_is_the_derivative_of_f_rho(penalised, rng):
    step = 1e-6
    beta = random_point(penalised, rng)
    gradient = penalised.gradient(beta, RHO)
    for _ in range(8):
        direction = random_point(penalised, rng)
        ahead, behind = (penalised.objective(beta + t * direction, RHO) for t in (step, -step))
        slope = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(np.vdot(gradient, direction), slope, rtol=1e-5, atol=1e-5)


def test_surrogate_majorizes_and_touches(penalised, rng):
    for scale in (0.1, 1.0, 10.0):
        anchor = random_point(penalised, rng, scale)
        touched = penalised.surrogate(anchor, anchor, RHO)
        np.testing.assert_allclose(touched, penalised.objective(anchor, RHO), rtol=1e-12)
        for _ in range(20):
            beta = anchor + random_point(penalised, rng, scale)
            assert penalised.surrogate(beta, anchor, RHO) >= penalised.objective(beta, RHO) * (1 - 1e-12)


def test_curvature_is_the_second_derivative_of_the_surrogate(penalised, rng):
    anchor, direction, h = random_point(penalised, rng), random_point(penalised, rng), 1e-2
    before, at, after = (penalised.surrogate(anchor + t * direction, anchor, RHO) for t in (-h, 0.0, h))
    np.testing.assert_allclose(
        penalised.curvature(direction, RHO), (before - 2 * at + after) / h**2, rtol=1e-6
    )


def test_fewer_than_are_always_in_is_an_error_that_says_so():
    penalised = PenalisedProblem.of(make_problems(), make_units([1] * 8, fixed=[0, 1]), 2)
    message = r"k=1 is less than the 2 units that are always in the model.*Use k >= 2"
    with pytest.raises(ValueError, match=message):
        penalised.with_k(1)
