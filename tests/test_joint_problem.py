"""The objective of several machines that share features, and what the steps of the paper do to it."""

import numpy as np
import pytest

from conftest import PROBLEMS
from joint_data import JOINTS, make_machines, make_units, random_point
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.steps import MMStep, SDStep
from kmargin.units import Units

RHO = 7.0


@pytest.fixture(params=JOINTS.values(), ids=JOINTS.keys())
def joint(request):
    return request.param


def test_the_objective_is_the_weighted_sum_of_those_of_the_machines_and_the_distance(rng):
    joint = JOINTS["everything"]
    beta = random_point(joint, rng)
    machines = zip([2.0, 0.5, 1.0], joint.machines, np.split(beta, 3), strict=True)
    loss = sum(weight * machine.loss(part) for weight, machine, part in machines)
    W = np.array([part[:-1] for part in np.split(beta, 3)])
    gap = W - joint.sparse.project(W, 2)
    np.testing.assert_allclose(joint.loss(beta), loss, rtol=1e-13)
    np.testing.assert_allclose(joint.squared_distance(beta), np.sum(gap**2), rtol=1e-13)
    expected = loss + RHO / (4 - 2 + 1) / 2 * np.sum(gap**2)
    np.testing.assert_allclose(joint.objective(beta, RHO), expected, rtol=1e-13)


def test_gradient_is_the_derivative_of_f_rho(joint, rng):
    step = 1e-6
    beta = random_point(joint, rng)
    gradient = joint.gradient(beta, RHO)
    for _ in range(5):
        direction = random_point(joint, rng)
        ahead, behind = (joint.objective(beta + t * direction, RHO) for t in (step, -step))
        np.testing.assert_allclose(gradient @ direction, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-5)


def test_surrogate_majorizes_and_touches(joint, rng):
    for scale in (0.1, 1.0, 10.0):
        anchor = random_point(joint, rng, scale)
        np.testing.assert_allclose(
            joint.surrogate(anchor, anchor, RHO), joint.objective(anchor, RHO), rtol=1e-12
        )
        for _ in range(20):
            beta = anchor + random_point(joint, rng, scale)
            assert joint.surrogate(beta, anchor, RHO) >= joint.objective(beta, RHO) * (1 - 1e-12)


def test_mm_step_solves_the_normal_equations_of_every_machine(joint, rng):
    beta = random_point(joint, rng)
    new = joint.mm_step()(beta, joint.gradient(beta, RHO), RHO)
    b_sq = joint.penalty_weight(RHO)
    parts = zip(joint.parts(new), joint.parts(beta), joint.parts(joint.project(beta)), strict=True)
    for (at, before, nearest), machine, omega in zip(parts, joint.machines, joint.weights, strict=True):
        # omega (a^2 X'SX + lam I) beta + b^2 beta = omega (a^2 X'Sz + lam (0, intercept)) + b^2 p
        X = np.column_stack([machine.design.decision(e) for e in np.eye(len(at))])
        f = X @ before
        z = np.where(machine.y * f >= 1, f, machine.y)
        loss = X.T @ (machine.weights[:, None] * X) / len(X) + machine.lam * np.eye(len(at))
        pull = X.T @ (machine.weights * z) / len(X) + machine.lam * machine.ridge_center(before)
        left = omega * loss @ at + b_sq * at
        np.testing.assert_allclose(left, omega * pull + b_sq * nearest, atol=1e-10)


def test_sd_step_is_the_minimum_of_the_surrogate_on_its_line(joint, rng):
    beta = random_point(joint, rng)
    gradient = joint.gradient(beta, RHO)
    new = SDStep(joint)(beta, gradient, RHO)

    def along(t):
        return joint.surrogate(beta - t * gradient, beta, RHO)

    # a parabola, from three of its points
    h = 1e-2
    slope, bend = (along(h) - along(-h)) / (2 * h), (along(h) - 2 * along(0.0) + along(-h)) / h**2
    np.testing.assert_allclose(beta - new, -slope / bend * gradient, rtol=1e-6)


@pytest.mark.parametrize("kind", ["mm", "sd"])
def test_each_unaccelerated_step_descends(joint, rng, kind):
    step = joint.mm_step() if kind == "mm" else SDStep(joint)
    beta = random_point(joint, rng, 2.0)
    value = joint.objective(beta, RHO)
    for _ in range(50):
        beta = step(beta, joint.gradient(beta, RHO), RHO)
        new_value = joint.objective(beta, RHO)
        assert new_value <= value + 1e-13
        value = new_value


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_machine_and_single_columns_are_the_problem_of_the_paper(name, rng):
    problem = PROBLEMS[name]
    joint = JointProblem.of([problem], Units.of_columns(problem.design.n_features), problem.k)
    beta = rng.standard_normal(problem.design.n_parameters)
    gradient = problem.gradient(beta, RHO)
    assert joint.normalizer == problem.normalizer
    assert joint.keeps_all == problem.keeps_all
    assert joint.lam == problem.lam
    np.testing.assert_allclose(joint.objective(beta, RHO), problem.objective(beta, RHO), rtol=1e-13)
    np.testing.assert_allclose(joint.gradient(beta, RHO), gradient, rtol=1e-13, atol=1e-15)
    for one, many in ((MMStep(problem), joint.mm_step()), (SDStep(problem), SDStep(joint))):
        np.testing.assert_allclose(
            many(beta, gradient, RHO), one(beta, gradient, RHO), rtol=1e-12, atol=1e-14
        )


def test_fewer_than_are_always_in_is_an_error_that_says_so():
    joint = JointProblem.of(make_machines(), make_units([1] * 8, fixed=[0, 1]), 2)
    with pytest.raises(
        ValueError, match=r"k=1 is less than the 2 units that are always in the model.*Use k >= 2"
    ):
        joint.with_k(1)
