"""The compiled joint loops, their readable twins and the loops of one machine are the same algorithm."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import PROBLEMS, make_problem
from joint_data import JOINTS, make_machines, make_units, start_of
from kmargin import MM, SD
from kmargin.blocks.design import block_problem
from kmargin.blocks.local import LocalBlocks
from kmargin.blocks.protocol import Block
from kmargin.blocks.view import View
from kmargin.design import DenseDesign, SparseDesign
from kmargin.solvers.joint_problem import JointProblem
from kmargin.solvers.start import univariate_start
from kmargin.units import Units

RHO = 3.0
SOLVERS = {"mm": MM, "sd": SD}


def run(solver, joint, n_steps, jit, gtol=0.0):
    configured = SOLVERS[solver](max_inner=n_steps, jit=jit)
    return configured.inner(joint)(start_of(joint), RHO, gtol)


def assert_same(fast, slow):
    assert fast.n_inner == slow.n_inner
    np.testing.assert_allclose(fast.beta, slow.beta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fast.objective, slow.objective, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fast.gradient_sq, slow.gradient_sq, rtol=1e-5, atol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", JOINTS)
def test_compiled_and_readable_loops_agree_step_by_step(solver, name):
    for n_steps in (1, 2, 3, 12, 20):
        assert_same(*(run(solver, JOINTS[name], n_steps, jit) for jit in (True, False)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", JOINTS)
def test_both_loops_stop_at_the_same_step(solver, name):
    fast, slow = (run(solver, JOINTS[name], 2000, jit, gtol=1e-4) for jit in (True, False))
    assert fast.n_inner == slow.n_inner < 2000
    assert fast.gradient_sq < 1e-4


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", JOINTS)
def test_what_the_loop_reports_is_true_of_the_point_it_returns(solver, name):
    joint = JOINTS[name]
    beta, _, objective, gradient_sq, _ = run(solver, joint, 600, jit=True)
    np.testing.assert_allclose(objective, joint.objective(beta, RHO), rtol=1e-10, atol=1e-20)
    gradient = joint.gradient(beta, RHO)
    np.testing.assert_allclose(gradient_sq, gradient @ gradient, rtol=1e-4, atol=1e-14)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "k = 0"])
def test_one_machine_takes_the_steps_of_the_solver_of_one_machine(solver, name, jit):
    problem = PROBLEMS[name]
    joint = JointProblem.of([problem], Units.of_columns(problem.design.n_features), problem.k)
    start = univariate_start(problem)
    for n_steps in (1, 2, 12, 20):
        configured = SOLVERS[solver](max_inner=n_steps, jit=jit)
        many = configured.inner(joint)(start, RHO, 0.0)
        one = configured.inner(problem)(start, RHO, 0.0)
        np.testing.assert_allclose(many.beta, one.beta, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(many.objective, one.objective, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_momentum_no_step_raises_the_objective(solver):
    joint, never = JOINTS["everything"], 10**6
    beta, values = start_of(joint), []
    inner = SOLVERS[solver](max_inner=1, delay=never).inner(joint)
    for _ in range(60):
        beta, _, value, *_ = inner(beta, RHO, 0.0)
        values.append(value)
    assert all(after <= before + 1e-14 for before, after in pairwise(values))
    assert values[-1] < values[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_momentum_needs_fewer_steps(solver):
    joint = JointProblem.of(make_machines(lam=0.0), make_units([1] * 8), 3)
    steps = [SOLVERS[solver](delay=d).inner(joint)(start_of(joint), 0.01, 1e-10).n_inner for d in (10**6, 10)]
    assert steps[1] < steps[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_loops_leave_their_inputs_alone(solver):
    joint = JOINTS["one design"]
    X, start = joint.machines[0].design.X.copy(), start_of(joint)
    before = start.copy()
    SOLVERS[solver]().inner(joint)(start, RHO, 1e-6)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(joint.machines[0].design.X, X)


@pytest.mark.parametrize(
    "store",
    [
        lambda X: SparseDesign(sp.csr_array(X)),
        lambda X: SparseDesign(sp.csr_array(X)).standardized(X.mean(axis=0), X.std(axis=0)),
        lambda X: DenseDesign(np.asfortranarray(X)),
        lambda X: DenseDesign(X.astype(np.float32)),
    ],
    ids=["csr", "csr, centred", "by columns", "float32"],
)
@pytest.mark.parametrize("n_machines", [1, 3])
def test_sd_takes_data_stored_in_any_way(store, n_machines):
    machines = make_machines(n_machines)
    stored = [replace(m, design=store(np.where(m.design.X > 0.2, m.design.X, 0.0))) for m in machines]
    joint = JointProblem.of(stored, make_units([1] * 8), 3)
    assert_same(*(run("sd", joint, 12, jit) for jit in (True, False)))


def test_sd_takes_machines_stored_in_different_ways_by_its_readable_loop():
    first, second = make_machines(2)
    mixed = [first, replace(second, design=SparseDesign(sp.csr_array(second.design.X)))]
    joints = [JointProblem.of(machines, make_units([1] * 8), 3) for machines in (mixed, [first, second])]
    assert_same(*(run("sd", joint, 12, jit=True) for joint in joints))


def test_designs_that_are_shared_are_stacked_once():
    joint = JOINTS["one design"]
    MM().inner(joint.with_k(2))
    U, *_ = joint.memory["stacked factors"]
    assert np.shares_memory(U, joint.machines[0].design.thin_svd(joint.machines[0].weights).U)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_in_blocks_take_the_same_steps(solver):
    problem = make_problem(40, 8, weighted=False)
    here, there = [], []
    for labels in (problem.y, np.where(problem.design.X[:, 3] > 0.3, 1.0, -1.0)):
        codes, ends = (labels > 0).astype(int), (0, 11, 40)
        parts = [
            Block(i, problem.design.X[a:b], codes[a:b], np.ones(b - a))
            for i, (a, b) in enumerate(
                pairwise(ends if solver == "sd" else (0, 40))
            )  # MM's SVD is of one block
        ]
        view = View(positive=1, negative=0, class_weight=np.ones(2))
        there.append(block_problem(LocalBlocks(parts), view, 0.01, 8))
        here.append(replace(problem, y=labels))
    joints = [JointProblem.of(machines, make_units([2] * 4), 2) for machines in (here, there)]
    assert_same(*(run(solver, joint, 12, jit=True) for joint in joints))
