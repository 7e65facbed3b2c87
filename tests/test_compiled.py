"""The compiled loops and their readable twins are the same algorithm."""

import numpy as np
import pytest

from conftest import PROBLEMS, make_problem
from kmargin import MM, SD
from kmargin.design.stored import add_rows
from kmargin.jit import compiled
from kmargin.solvers.start import univariate_start

RHO = 3.0
SOLVERS = {"mm": MM, "sd": SD}


def run(solver, problem, n_steps, jit, gtol=0.0):
    configured = SOLVERS[solver](max_inner=n_steps, jit=jit)
    return configured.inner(problem)(univariate_start(problem), RHO, gtol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_compiled_and_readable_loops_agree_step_by_step(solver, name):
    problem = PROBLEMS[name]
    for n_steps in range(1, 41):  # beyond the ten steps without momentum
        fast = run(solver, problem, n_steps, jit=True)
        slow = run(solver, problem, n_steps, jit=False)
        assert fast.n_inner == slow.n_inner == n_steps
        np.testing.assert_allclose(fast.beta, slow.beta, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(fast.objective, slow.objective, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(fast.gradient_sq, slow.gradient_sq, rtol=1e-5, atol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_loops_stop_at_the_same_step(solver, name):
    fast = run(solver, PROBLEMS[name], 2000, jit=True, gtol=1e-4)
    slow = run(solver, PROBLEMS[name], 2000, jit=False, gtol=1e-4)
    assert fast.n_inner == slow.n_inner < 2000
    assert fast.gradient_sq < 1e-4


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_the_loop_reports_is_true_of_the_point_it_returns(solver, problem):
    beta, _, objective, gradient_sq, _ = run(solver, problem, 700, jit=True)
    np.testing.assert_allclose(objective, problem.objective(beta, RHO), rtol=1e-10, atol=1e-20)
    gradient = problem.gradient(beta, RHO)
    np.testing.assert_allclose(gradient_sq, gradient @ gradient, rtol=1e-4, atol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_loops_leave_their_inputs_alone(solver):
    problem = make_problem()
    X, y, weights = problem.design.X.copy(), problem.y.copy(), problem.weights.copy()
    start = univariate_start(problem)
    before = start.copy()
    SOLVERS[solver]().inner(problem)(start, RHO, 1e-6)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(problem.design.X, X)
    np.testing.assert_array_equal(problem.y, y)
    np.testing.assert_array_equal(problem.weights, weights)


@pytest.mark.parametrize("n_active", [0, 1, 3, 4, 5, 9, 10, 20])
def test_adding_active_rows_is_a_matrix_product(rng, n_active):
    A = rng.standard_normal((20, 7))
    weights = np.zeros(20)
    weights[rng.choice(20, n_active, replace=False)] = rng.standard_normal(n_active)
    out = np.full(7, np.nan)
    compiled(lambda A, weights, out: add_rows(A, weights, out))(A, weights, out)
    np.testing.assert_allclose(out, weights @ A, atol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
def test_momentum_needs_fewer_steps(solver):
    problem = make_problem(60, 8, 3, lam=0.0)
    never = 10**6
    plain = SOLVERS[solver](delay=never).inner(problem)(univariate_start(problem), 0.01, 1e-10)
    carried = SOLVERS[solver]().inner(problem)(univariate_start(problem), 0.01, 1e-10)
    assert carried.n_inner < plain.n_inner
