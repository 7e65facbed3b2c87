"""The readable Algorithms 1, 2 and 3 do what the paper says."""

import inspect

import numpy as np
import pytest
from penalised_problems import PENALISED, of_one, random_point

from conftest import make_problem
from kmargin.solvers import Status
from kmargin.solvers.proximal import reference
from kmargin.solvers.proximal.reference import Descent, MMStep, Momentum, sd_step

RHO = 7.0


@pytest.fixture(params=PENALISED.values(), ids=PENALISED.keys())
def penalised(request):
    return request.param


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


def test_mm_step_minimises_the_surrogate(penalised, rng):
    beta = random_point(penalised, rng)
    new = take(MMStep(penalised), penalised, beta)
    lowest = penalised.surrogate(new, beta, RHO)
    for _ in range(30):
        other = new + random_point(penalised, rng, 0.01)
        assert penalised.surrogate(other, beta, RHO) >= lowest - 1e-12


def test_sd_step_minimises_the_surrogate_along_the_gradient(penalised, rng):
    beta = random_point(penalised, rng)
    gradient = penalised.gradient(beta, RHO)
    new = sd_step(penalised, beta, gradient, RHO)
    assert abs(np.vdot(beta - new, gradient)) == pytest.approx(
        np.linalg.norm(beta - new) * np.linalg.norm(gradient)
    )
    lowest = penalised.surrogate(new, beta, RHO)
    for shift in (-1e-2, -1e-4, 1e-4, 1e-2):
        assert penalised.surrogate(new + shift * gradient, beta, RHO) > lowest - 1e-13


@pytest.mark.parametrize("make_step", [MMStep, lambda _: sd_step], ids=["mm", "sd"])
def test_each_unaccelerated_step_descends(penalised, rng, make_step):
    step, beta = make_step(penalised), random_point(penalised, rng, 2.0)
    value = penalised.objective(beta, RHO)
    for _ in range(50):
        beta = take(step, penalised, beta)
        new_value = penalised.objective(beta, RHO)
        assert new_value <= value + 1e-13
        value = new_value


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
    ],
)
def test_an_annealing_ends_by_the_papers_rules(distances, options, status, n_records):
    penalised = of_one(make_problem(20, 6, 2))
    rest, rhos = iter(distances), [1.2**i for i in range(len(distances))]

    def descend(problem, beta, rho, gtol):
        point = np.zeros((1, 7))
        point[0, :3] = 1e3, 1e3, np.sqrt(next(rest) * problem.normalizer)
        return Descent(point, 1, 0.0, 0.0)

    options = {"gtol": 1e-6, "dtol": 1e-6, "rtol": 1e-6} | options
    _, ended, trace = reference.anneal(penalised, descend, np.zeros((1, 7)), rhos, **options)
    assert ended is status
    assert [record.rho for record in trace] == rhos[:n_records]


def test_each_of_the_papers_algorithms_fits_on_a_screen():
    for algorithm in (MMStep, sd_step, reference.anneal, reference.descend):
        assert len(inspect.getsource(algorithm).splitlines()) <= 40
