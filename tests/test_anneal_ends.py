"""How the paper's algorithm ends, in which units it works, and what it hands on."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import make_problem
from kmargin import MM, SD
from kmargin.design import DenseDesign
from kmargin.solvers import Exchange, Solution, Status
from kmargin.solvers.descend import Descent
from kmargin.solvers.start import univariate_start
from kmargin.sparsity import normalizer


class Told(MM):
    """An annealing whose inner solves end at given distances from S_k."""

    def __init__(self, distances=(), **knobs):
        super().__init__(**knobs)
        self.distances = distances

    def inner(self, problem):
        rest = iter(self.distances)
        count = normalizer(problem.design.n_features, problem.k)

        def solve(beta, rho, gtol):
            point = np.zeros(problem.design.n_parameters)
            point[: problem.k] = 1e3
            point[problem.k] = np.sqrt(next(rest) * count)
            return Descent(point, 1, 0.0, 0.0)

        return solve


@pytest.mark.parametrize(
    ("distances", "knobs", "status", "n_records"),
    [
        ([4.0, 1.0, 0.0], {"dtol": 0.0, "rtol": 0.0}, Status.CONVERGED, 3),  # at the bound is within it
        ([4.0, 1.0, 0.25], {"dtol": 0.25000001}, Status.CONVERGED, 3),
        # 1 + d of a distance of 99 is a hundred: a change of 50 is less than .6 of it
        ([99.0, 49.0, 0.0], {"rtol": 0.6}, Status.STALLED, 2),
        ([99.0, 9.0, 0.0], {"rtol": 0.6, "dtol": 1e-9}, Status.CONVERGED, 3),
        ([4.0, 3.0, 2.0, 1.0], {"max_outer": 2}, Status.EXHAUSTED, 2),
    ],
)
def test_an_annealing_ends_by_the_papers_rules(distances, knobs, status, n_records):
    problem = make_problem(20, 6, 2)
    _, ended, trace = Told(distances, **knobs).anneal(problem, np.zeros(7))
    assert ended is status
    assert len(trace) == n_records
    np.testing.assert_allclose([record.rho for record in trace], 1.2 ** np.arange(n_records))


def test_soundness_is_judged_by_what_the_projection_cost():
    def ended(status, cost):
        return Solution(np.arange(1), np.ones(1), 0.0, 3, 0.1, cost, status, 1)

    assert ended(Status.STALLED, 0.009).is_sound
    assert not ended(Status.STALLED, 0.02).is_sound
    assert not ended(Status.EXHAUSTED, 0.0).is_sound
    assert ended(Status.CONVERGED, 0.5).is_sound


@pytest.mark.parametrize("unit", [2.0**30, 2.0**-30])
def test_another_unit_is_another_ridge(unit, rng):
    """lam |w|^2 stays the same where coefficients are `unit` times as large and lam is over `unit`^2."""
    problem = make_problem(20, 4, 2, lam=0.3)
    large = replace(problem, design=DenseDesign(problem.design.X * unit), lam=0.3 * unit**2)
    solutions = [next(iter(SD(ending="projection").iter_path(p, [2], rng))) for p in (large, problem)]
    np.testing.assert_allclose(solutions[0].coef * unit, solutions[1].coef, rtol=1e-6)
    np.testing.assert_allclose(solutions[0].objective, solutions[1].objective, rtol=1e-6)


def test_every_ridge_of_a_grid_is_its_own():
    problem = make_problem(20, 5, 2)
    lams = [0.5, 0.05]
    found = list(SD().iter_grid(problem, lams, [2], np.random.default_rng(0)))
    for lam, solution in zip(lams, found, strict=True):
        (alone,) = SD().iter_path(replace(problem, lam=lam), [2], np.random.default_rng(0))
        np.testing.assert_array_equal(solution.coef, alone.coef)
        assert solution.objective == alone.objective


def test_polishing_counts_both_searches():
    problem = make_problem(30, 6, 2)
    rng = np.random.default_rng(0)
    (plain,), (polished,) = (list(SD(polish=p).iter_path(problem, [2], rng)) for p in (False, True))
    better = Exchange().improve(problem, plain)
    assert better.n_iter > 0
    assert polished.n_iter == plain.n_iter + better.n_iter
    assert polished.objective == better.objective
    assert polished.trace == plain.trace


def test_where_nothing_is_annealed_the_tolerance_follows_the_ridge():
    problem = make_problem(20, 5, 5, lam=0.01)
    assert MM(gtol=1e-6)._gtol(problem) == pytest.approx(1e-6 * 0.01 / 5)
    assert MM(gtol=1e-6)._gtol(replace(problem, k=4)) == 1e-6
    assert MM(gtol=1e-6)._gtol(replace(problem, lam=0.0)) == 1e-6


def test_coefficients_come_back_in_the_units_given():
    problem = make_problem(30, 5, 2, lam=0.0)
    large = replace(problem, design=DenseDesign(problem.design.X * 2.0**40))
    solver, rng = SD(ending="projection"), np.random.default_rng(0)
    (plain,), (scaled,) = (list(solver.iter_path(p, [2], rng)) for p in (problem, large))
    np.testing.assert_allclose(scaled.coef * 2.0**40, plain.coef, rtol=1e-3)


def test_without_features_the_intercept_is_the_weighted_mean_label():
    problem = make_problem(30, 5, 0)
    (solution,) = SD().iter_path(problem, [0], np.random.default_rng(0))
    assert solution.intercept == pytest.approx(np.average(problem.y, weights=problem.weights))
    assert solution.objective == pytest.approx(problem.loss(np.append(np.zeros(5), solution.intercept)))


def test_where_every_feature_may_stay_there_is_no_penalty():
    problem = make_problem(20, 5, 5)
    assert problem.penalty_weight(3.0) == 0
    assert problem.with_k(4).penalty_weight(3.0) == 1.5
    assert problem.with_k(9).penalty_weight(3.0) == 0


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("solver", [MM, SD])
def test_every_fixed_rho_solve_takes_at_least_one_step(solver, jit):
    problem = make_problem(20, 5, 2)
    inner = solver(jit=jit).inner(problem)
    beta = inner(np.zeros(6), 1.0, 1e-12).beta
    assert inner(beta, 1.0, 1e6).n_inner == 1  # though the start is good enough
    assert solver(jit=jit, max_inner=3).inner(problem)(np.zeros(6), 1.0, 0.0).n_inner == 3


def test_a_spread_within_the_rounding_of_its_mean_has_no_slope():
    design = SimpleNamespace(n_samples=40, n_features=3, n_parameters=4)
    moments = np.array([0.1, 1.0, 0.0]), np.array([1e-34, 2.0, 0.0]), np.array([1e-18, 0.5, 0.0])
    problem = SimpleNamespace(design=design, moments=lambda: moments, mean_label=lambda: 0.2)
    np.testing.assert_array_equal(univariate_start(problem), [0.0, 0.25, 0.0, 0.2])
