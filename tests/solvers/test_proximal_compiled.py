"""The compiled inner loops take the steps of the readable ones."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from penalised_problems import COLUMNS, PENALISED, make_problem, make_problems, make_units, of_one, start_of
from search_problems import in_blocks

from kmargin import MM, SD
from kmargin.core.jit import compiled
from kmargin.data.design.dense import DenseDesign
from kmargin.data.design.sparse import SparseDesign
from kmargin.solvers.proximal.compiled import add_rows, index_distinct, stack_arrays, stack_designs, times
from kmargin.solvers.proximal.penalised import PenalisedProblem

RHO = 3.0
SOLVERS = {"mm": MM, "sd": SD}


def run(solver, penalised, n_steps, gtol=0.0):
    """Where the loop ends that a fit would take."""
    descend, start = SOLVERS[solver](max_inner=n_steps, delay=3)._descent(penalised), start_of(penalised)
    found = descend(penalised, start, RHO, gtol)
    np.testing.assert_array_equal(start, start_of(penalised))  # neither the start nor the data have changed
    return found


def run_readable(solver, penalised, n_steps, gtol=0.0):
    descend = SOLVERS[solver](max_inner=n_steps, delay=3)._readable_descent(penalised)
    return descend(penalised, start_of(penalised), RHO, gtol)


def assert_same(fast, slow):
    assert fast.n_inner == slow.n_inner
    np.testing.assert_allclose(fast.beta, slow.beta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fast.objective, slow.objective, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fast.gradient_sq, slow.gradient_sq, rtol=1e-5, atol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS)
def test_compiled_and_readable_loops_agree_step_by_step(solver, penalised):
    for n_steps in range(1, 15):  # the first three are without momentum
        assert_same(run(solver, penalised, n_steps), run_readable(solver, penalised, n_steps))


@pytest.mark.parametrize("solver", SOLVERS)
def test_both_loops_stop_at_the_same_step(solver, penalised):
    assert SOLVERS[solver]()._compiled(penalised) is not None
    fast, slow = (loop(solver, penalised, 2000, gtol=1e-4) for loop in (run, run_readable))
    assert fast.n_inner == slow.n_inner < 2000
    assert fast.gradient_sq < 1e-4


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_the_loop_reports_is_true_of_the_point_it_returns(solver, penalised):
    beta, _, objective, gradient_sq, _ = run(solver, penalised, 700)
    np.testing.assert_allclose(objective, penalised.objective(beta, RHO), rtol=1e-10, atol=1e-20)
    gradient = penalised.gradient(beta, RHO)
    np.testing.assert_allclose(gradient_sq, np.vdot(gradient, gradient), rtol=1e-4, atol=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_fixed_rho_solve_takes_at_least_one_step(solver):
    penalised = of_one(make_problem(20, 5, 2))
    for make in ("_descent", "_readable_descent"):
        descend = getattr(SOLVERS[solver](), make)(penalised)
        beta = descend(penalised, np.zeros((1, 6)), 1.0, 1e-12).beta
        assert descend(penalised, beta, 1.0, 1e6).n_inner == 1  # though the start is good enough


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
@pytest.mark.parametrize("n_problems", [1, 3])
def test_sd_takes_data_stored_in_any_way(store, n_problems):
    problems = make_problems(n_problems)
    stored = [replace(p, design=store(np.where(p.design.X > 0.2, p.design.X, 0.0))) for p in problems]
    penalised = PenalisedProblem.of(stored, COLUMNS, 3)
    assert_same(run("sd", penalised, 12), run_readable("sd", penalised, 12))


def test_sd_takes_problems_stored_in_different_ways_by_its_readable_loop():
    first, second = make_problems(2)
    mixed = [first, replace(second, design=SparseDesign(sp.csr_array(second.design.X)))]
    both = [PenalisedProblem.of(problems, COLUMNS, 3) for problems in (mixed, [first, second])]
    assert_same(*(run("sd", penalised, 12) for penalised in both))


def test_designs_that_are_shared_are_stacked_once_and_not_copied():
    problems = PENALISED["one design"].problems
    distinct, which = index_distinct([problem.design for problem in problems])
    assert which.tolist() == [0, 0, 0]
    assert np.shares_memory(stack_designs(distinct), problems[0].design.X)
    svds, which = index_distinct([problem.design.thin_svd(problem.weights) for problem in problems])
    assert len(svds) == 1
    assert np.shares_memory(stack_arrays([svds[0].U]), svds[0].U)


def test_rows_in_blocks_take_the_same_steps_of_sd():
    problem = make_problem(40, 8)
    here = [problem, replace(problem, y=np.where(problem.design.X[:, 3] > 0.3, 1.0, -1.0))]
    there = [in_blocks(each, (0, 11, 40)) for each in here]
    both = [PenalisedProblem.of(problems, make_units([2] * 4), 2) for problems in (here, there)]
    assert_same(*(run("sd", penalised, 12) for penalised in both))


def test_what_needs_rows_in_memory_says_so():
    penalised = PenalisedProblem.of_one(in_blocks(make_problem(40, 8), (0, 40)), 4)
    with pytest.raises(ValueError, match=r'needs X as a NumPy array: use solver="exchange" or solver="sd"'):
        MM()._descent(penalised)
    with pytest.raises(ValueError, match=r"trace='steps' .* needs all rows in memory.* Use trace='outer'"):
        SD(trace="steps")._descent(penalised)


@pytest.mark.parametrize("kind", ["array", "csr"])
@pytest.mark.parametrize("n_active", [0, 1, 3, 4, 5, 9, 10, 20])
def test_products_with_some_rows_are_those_of_numpy(rng, n_active, kind):
    A, weights, w = rng.standard_normal((23, 7)), np.zeros(20), rng.standard_normal(7)
    weights[rng.choice(20, n_active, replace=False)] = rng.standard_normal(n_active)
    first = 2 if kind == "array" else 0
    rows = A[first : first + 20]
    X = A if kind == "array" else SparseDesign(sp.csr_array(rows)).stored
    for call in (lambda function: function, lambda function: compiled(lambda *args: function(*args))):
        product, total = np.full(20, np.nan), np.full(7, np.nan)
        call(times)(X, first, w, product)
        call(add_rows)(X, first, weights, total)
        np.testing.assert_allclose(product, rows @ w, atol=1e-13)
        np.testing.assert_allclose(total, weights @ rows, atol=1e-13)
