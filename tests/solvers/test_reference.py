"""The penalised objective and its surrogate, the start, and the readable Algorithms 1, 2 and 3."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from penalised_problems import PENALISED, make_problem, make_problems, make_units, of_one, random_point

from kmargin.core.problem import Problem
from kmargin.data.design.dense import DenseDesign
from kmargin.solvers import Exchange, Status
from kmargin.solvers.proximal import reference
from kmargin.solvers.proximal.penalised import PenalisedProblem
from kmargin.solvers.proximal.reference import Descent, MMStep, Momentum, sd_step
from kmargin.solvers.solver import univariate_start

RHO = 7.0


def test_the_objective_is_the_sum_over_the_binary_problems_and_the_distance(rng):
    penalised = PENALISED["everything"]
    beta = random_point(penalised, rng)
    loss = sum(problem.loss(row) for problem, row in zip(penalised.problems, beta, strict=True))
    gap = beta[:, :-1] - penalised.sparsity_set.project(beta[:, :-1], 2)
    np.testing.assert_allclose(penalised.loss(beta), loss, rtol=1e-13)
    np.testing.assert_allclose(penalised.squared_distance(beta), np.sum(gap**2), rtol=1e-13)
    expected = loss + RHO / (4 - 2 + 1) / 2 * np.sum(gap**2)
    np.testing.assert_allclose(penalised.objective(beta, RHO), expected, rtol=1e-13)


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
    with pytest.raises(ValueError, match=message):
        list(Exchange().solve_grid(Problem(penalised.problems, penalised.units), [[1.0] * 3], [1], None))


def test_univariate_start_is_each_features_own_regression():
    problem = make_problem()
    y, weights = problem.y, problem.weights
    slopes = [np.polyfit(x, y, 1, w=np.sqrt(weights))[0] for x in problem.design.X.T]
    np.testing.assert_allclose(univariate_start(problem), [*slopes, np.average(y, weights=weights)])


def test_a_constant_feature_starts_at_zero_whatever_its_value():
    problem = make_problem(n_features=6)
    for value in (0.0, 0.1, 1e-300, 1e12, -7.3):
        X = problem.design.X.copy()
        X[:, 2] = value
        start = univariate_start(replace(problem, design=DenseDesign(X)))
        assert start[2] == 0
        assert np.isfinite(start).all()


def test_a_large_offset_does_not_make_a_feature_constant():
    problem = make_problem(n_features=6)
    for size, offset in ((1.0, 1e6), (1e-10, 1.0)):
        X = problem.design.X * np.where(np.arange(6) == 2, size, 1.0) + offset * (np.arange(6) == 2)
        shifted = univariate_start(replace(problem, design=DenseDesign(X)))
        np.testing.assert_allclose(shifted[2] * size, univariate_start(problem)[2], rtol=1e-4)


def take(step, penalised, beta):
    return step(penalised, beta, penalised.gradient(beta, RHO), RHO)


def test_mm_step_solves_the_normal_equations_of_every_binary_problem(penalised, rng):
    beta = random_point(penalised, rng)
    new, projected = take(MMStep(penalised), penalised, beta), penalised.project(beta)
    b_sq = penalised.penalty_weight(RHO)
    for m, problem in enumerate(penalised.problems):
        # (a^2 X'SX + b^2 I + lam I) beta = a^2 X'Sz + b^2 p + lam (0, intercept)
        X = np.column_stack([problem.design.decision(e) for e in np.eye(beta.shape[1])])
        f = X @ beta[m]
        z = np.where(problem.y * f >= 1, f, problem.y)
        matrix = X.T @ (problem.weights[:, None] * X) / len(X) + (b_sq + problem.lam) * np.eye(len(new[m]))
        right = X.T @ (problem.weights * z) / len(X) + b_sq * projected[m]
        right += problem.lam * penalised.ridge_center(beta)[m]
        np.testing.assert_allclose(matrix @ new[m], right, atol=1e-10)
    assert (
        penalised.objective(new, RHO) <= penalised.surrogate(new, beta, RHO) <= penalised.objective(beta, RHO)
    )


def test_sd_step_minimises_the_surrogate_along_the_gradient(penalised, rng):
    beta = random_point(penalised, rng)
    gradient = penalised.gradient(beta, RHO)
    new, nowhere = (sd_step(penalised, beta, slope, RHO) for slope in (gradient, np.zeros_like(beta)))
    np.testing.assert_array_equal(nowhere, beta)
    assert abs(np.vdot(beta - new, gradient)) == pytest.approx(
        np.linalg.norm(beta - new) * np.linalg.norm(gradient)
    )
    lowest = penalised.surrogate(new, beta, RHO)
    for shift in (-1e-2, -1e-4, 1e-4, 1e-2):
        assert penalised.surrogate(new + shift * gradient, beta, RHO) > lowest - 1e-13


def test_momentum_follows_the_papers_rule():
    updates = [np.array([[float(m**2)]]) for m in range(1, 7)]
    momentum = Momentum(np.zeros((1, 1)), delay=2)
    carried = [momentum.extrapolate(u).item() for u in updates]
    # off for two updates; then (j - 1)/(j + 2) with j = 1, 2, 3, 4
    assert carried == [1, 4, 9, 16 + 1 / 4 * 7, 25 + 2 / 5 * 9, 36 + 3 / 6 * 11]
    momentum.restart()
    assert momentum.extrapolate(np.array([[50.0]])).item() == 50


@pytest.mark.parametrize(
    ("distances", "options", "status", "n_records"),
    [
        ([4.0, 1.0, 0.0], {"dtol": 0.0, "rtol": 0.0}, Status.CONVERGED, 3),  # at the bound is within it
        ([4.0, 1.0, 0.25], {"dtol": 0.25000001}, Status.CONVERGED, 3),
        # 1 + d of a distance of 99 is a hundred: a change of 50 is less than .6 of it
        ([99.0, 49.0, 0.0], {"rtol": 0.6}, Status.STALLED, 2),
        ([99.0, 9.0, 0.0], {"rtol": 0.6, "dtol": 1e-9}, Status.CONVERGED, 3),
        ([4.0, 3.0], {}, Status.EXHAUSTED, 2),
        ([4.0, 4.0], {"rtol": 0.0}, Status.EXHAUSTED, 2),
        ([4.0, 1.0], {"start": 4.0}, Status.STALLED, 1),
    ],
)
def test_an_annealing_ends_by_the_papers_rules(distances, options, status, n_records):
    penalised = of_one(make_problem(20, 6, 2))
    rest, rhos = iter(distances), [1.2**i for i in range(len(distances))]

    def point_at(distance):
        return np.array([[1e3, 1e3, np.sqrt(distance * penalised.normalizer), 0.0, 0.0, 0.0, 0.0]])

    def descend(problem, beta, rho, gtol):
        return Descent(point_at(next(rest)), 1, 0.0, 0.0)

    options = {"gtol": 1e-6, "dtol": 1e-6, "rtol": 1e-6, "start": 0.0} | options
    start = point_at(options.pop("start"))
    _, ended, trace = reference.anneal(penalised, descend, start, rhos, **options)
    assert ended is status
    assert [record.rho for record in trace] == rhos[:n_records]


def test_each_of_the_papers_algorithms_fits_on_a_screen():
    for algorithm in (MMStep, sd_step, reference.anneal, reference.descend):
        assert len(inspect.getsource(algorithm).splitlines()) <= 40
