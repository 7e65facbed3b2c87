"""Supports too large for a Gram matrix: refits by systems in the active rows, and by products with X."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from penalised_problems import make_problem, make_problems, make_units
from search_problems import fold, lowest_by_lbfgs, make_case, quadratic_minimum

from kmargin.core.problem import Problem
from kmargin.solvers.refit.large import DualFit, ProductFit, conjugate_direction, take_step
from kmargin.solvers.refit.rows import make_rows
from kmargin.solvers.search.large_supports import LargeSupport
from kmargin.solvers.search.swap_search import Candidate, Effort
from kmargin.solvers.solution import Regime

KINDS = {"active rows": DualFit, "products": ProductFit}
REGIMES = {"active rows": Regime.DUAL, "products": Regime.PRODUCTS}


def start_of(kind, problem, columns, u=None):
    u = np.zeros(len(columns) + 1) if u is None else u
    return KINDS[kind].at(make_rows(problem), problem.lam, np.asarray(columns), u)


def check_fit(fit, problem):
    """The residuals and the objective are true, and the gradient on the columns is zero."""
    A, c, ridge = fold(problem, fit.columns)
    u = fit.u[: A.shape[1]]
    np.testing.assert_allclose(fit.residual, c - A @ u, atol=1e-10)
    assert fit.value == pytest.approx(
        0.5 * np.sum(np.maximum(c - A @ u, 0) ** 2) + 0.5 * ridge @ u**2, rel=1e-9
    )
    gradient = ridge * u - A.T @ np.maximum(c - A @ u, 0)
    assert 0.5 * np.sum(gradient**2 / ((A**2).sum(axis=0) + ridge)) <= 1e-9 * fit.value + 1e-15


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("lam", [1e-2, 0.0])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_reach_the_minimum_before_and_after_exchanges(kind, lam, fit_intercept, rng):
    problem = make_problem(40, 90, lam=lam, fit_intercept=fit_intercept)
    fit = start_of(kind, problem, np.arange(60)).minimised(1e-13)
    check_fit(fit, problem)
    for n_lose, n_take in [(1, 1), (30, 5), (0, 30)]:
        outside = np.setdiff1d(np.arange(90), fit.columns)
        lose = rng.choice(len(fit.columns), n_lose, replace=False)
        before, stays = fit.residual.copy(), np.delete(fit.columns, lose)
        exchanged = fit.exchanged(lose, take := rng.choice(outside, n_take, replace=False))
        np.testing.assert_array_equal(fit.residual, before)
        np.testing.assert_array_equal(exchanged.columns, np.append(stays, take))
        fit = exchanged.minimised(1e-13)
        check_fit(fit, problem)


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_and_objectives_are_right_for_columns_of_any_scale(kind, rng):
    problem = make_problem(40, 20, lam=0.1)
    problem.design.X[:, 3] *= 1e40
    u = 0.1 * rng.standard_normal(9) * np.where(np.arange(9) == 3, 1e-40, 1.0)
    rows, columns = make_rows(problem), np.arange(8)
    scaled = rows.scaled(columns, u[:-1], u[-1])
    fit = KINDS[kind].at(rows, 0.1, columns, scaled)
    np.testing.assert_allclose(fit.u, scaled, rtol=1e-12)
    end = fit.minimised(1e-12)
    objective = rows.unscaled(columns, end.u, end.value, 0.1)[2]
    assert objective == pytest.approx(end.value, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_by_active_rows_are_minima_of_the_quadratic(fit_intercept):
    problem = make_problem(40, 70, lam=0.02, fit_intercept=fit_intercept)
    fit = start_of("active rows", problem, np.arange(60)).minimised(1e-14)
    lose, take, active = np.arange(0, 60, 9), np.arange(60, 70), fit.residual > 0
    drop, gain = fit.scores(lose, take)
    for place, cost in zip(lose, drop, strict=True):
        without = quadratic_minimum(problem, np.delete(fit.columns, place), active)
        assert cost == pytest.approx(without - fit.value, rel=1e-5, abs=1e-13)
    for column, gained in zip(take, gain, strict=True):
        beside = quadratic_minimum(problem, np.append(fit.columns, column), active)
        assert gained == pytest.approx(fit.value - beside, rel=1e-5, abs=1e-13)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_by_products_are_conservative(fit_intercept):
    """Other coefficients stay the same, so costs are overestimated and gains underestimated."""
    problem = make_problem(40, 70, lam=0.02, fit_intercept=fit_intercept)
    fit = start_of("products", problem, np.arange(60)).minimised(1e-14)
    dual = start_of("active rows", problem, np.arange(60)).minimised(1e-14)
    lose, take = np.arange(60), np.arange(69, 59, -1)
    (drop, gain), (least, most) = fit.scores(lose, take), dual.scores(lose, take)
    assert (drop >= least * (1 - 1e-6)).all()
    assert (gain <= most * (1 + 1e-6)).all()
    A, _, _ = fold(problem, np.arange(70))
    active = fit.residual > 0
    intercept = A[active, -1] if fit_intercept else np.zeros(active.sum())
    for column in (0, 7, 60, 64):  # the intercept is refitted
        given = A[active, column]
        moved = given - intercept * (given @ intercept) / max(intercept @ intercept, 1e-300)
        curvature = moved @ moved + problem.lam
        if column < 60:
            assert drop[column] == pytest.approx(0.5 * fit.v[column] ** 2 * curvature, rel=1e-6)
        else:
            slope = given @ fit.residual[active]
            assert gain[69 - column] == pytest.approx(0.5 * slope**2 / curvature, rel=1e-6)


def test_a_step_is_full_if_the_objective_falls_enough_else_exact_and_none_if_too_little_is_to_gain(rng):
    lengths = []
    for _ in range(40):
        ridge, (w, d), (residual, delta) = rng.random(5), *map(rng.standard_normal, ((2, 5), (2, 20)))
        slope = ridge @ (w * d) - delta @ np.maximum(residual, 0)
        d, delta, slope = -np.sign(slope) * d, -np.sign(slope) * delta, -abs(slope)
        step = partial(take_step, ridge, w, d, residual, delta)
        t, value = step(0.5 * np.sum(np.maximum(residual, 0) ** 2) + 0.5 * ridge @ w**2, np.inf, 1e-12)
        at, less, more, full, none = (
            0.5 * np.sum(np.maximum(residual - s * delta, 0) ** 2) + 0.5 * ridge @ (w + s * d) ** 2
            for s in (t, 0.999 * t, 1.001 * t, 1.0, 0.0)
        )
        assert value == pytest.approx(at, rel=1e-12)
        assert t == 1.0 if full <= none + 0.1 * slope else at <= min(less, more)
        lengths.append(t)
        for relative, shift in ((0.501, np.inf), (1e-12, -1e-9)):  # too little to gain
            assert step(none, none + slope + shift, -relative * slope / none) == (0.0, none)
        for relative, shift in ((0.499, np.inf), (1e-12, 1e-9)):
            assert step(none, none + slope + shift, -relative * slope / none) == (t, pytest.approx(value))
    assert {t == 1.0 for t in lengths} == {True, False}


def test_without_active_rows_the_newton_step_goes_to_zero_coefficients():
    problem = make_problem(12, 4)
    w = np.array([1.0, -2.0, 0.5, 3.0])
    d, b = conjugate_direction(problem.design, problem.y, np.full(4, 0.1), w, np.full(12, -1.0))
    np.testing.assert_array_equal(d, -w)
    assert b == 0.0
    fit = replace(start_of("active rows", problem, np.arange(4)), v=w, b=0.3, residual=np.full(12, -1.0))
    d, b = fit._prepared()._direction(np.full(4, 0.1))
    np.testing.assert_array_equal(d, -w)
    assert b == 0.0


def make_search(problem: Problem, kind, support, tol=1e-12) -> LargeSupport:
    rows, lams = [make_rows(one) for one in problem.binary], np.array([one.lam for one in problem.binary])
    start = Candidate.start(np.array(support, np.int64), problem.units, len(rows))
    return LargeSupport(rows, problem.units, lams, start, tol, REGIMES[kind])


@pytest.mark.parametrize("name", ["columns", "groups"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_several_problems_ends_at_the_minima_on_their_common_units(kind, name):
    units = make_units([1] * 60) if name == "columns" else make_units([3, 1, 2] * 10)
    problem = Problem(tuple(make_problems(3, 60, n_samples=25)), units)
    search = make_search(problem, kind, [0, 1])
    search.resize(12)
    assert len(search.support) == 12
    for _ in range(2):
        found, columns = search.result(), units.columns_of(search.support)
        np.testing.assert_array_equal(search.fits[0].columns, columns)
        for value, one in zip(found.values, problem.binary, strict=True):
            assert value == pytest.approx(lowest_by_lbfgs(one, columns), rel=1e-5)
        assert not found.all_tried
        assert search.n_newton == sum(fit.n_newton for fit in search.fits) > 0
        search.exchange(np.array([[3, 0]]), search.outside()[None, :2], np.inf, np.nan)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exchange_that_fails_leaves_the_fits_as_they_were(kind):
    search = make_search(make_case(n_samples=25), kind, range(6))
    search.resize(len(search.support))
    fits, support, value = list(search.fits), search.support.copy(), search.value
    assert not search.exchange(np.array([[0], [1]]), np.array([[7], [8]]), np.inf, 0.0)
    assert all(one is other for one, other in zip(fits, search.fits, strict=True))
    np.testing.assert_array_equal(search.support, support)
    assert search.value == value
    lose, take = np.divmod(np.arange(36), 6)
    assert search.exchange(lose[:, None], take[:, None] + 6, np.inf, np.inf)
    assert search.value < value
    back = np.setdiff1d(support, search.support)
    assert not search.exchange(np.array([[5]]), back[None], np.inf, np.inf)
    assert search.exchange(np.array([[5]]), back[None], np.inf, np.nan)
    assert search.value == pytest.approx(value, rel=1e-6)
    search.resize(12)
    assert search.result().all_tried


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_least_effect_and_of_largest_gain_are_scored_at_most_64_of_each_where_it_is_expensive(kind):
    problem = make_case([2, 1] * 70, n_samples=25, lam=0.5)
    search, units = make_search(problem, kind, range(70)), problem.units
    search.resize(70)
    assert search._n_trials(Effort(max_swaps=-1, max_pair_swaps=0, max_sweeps=1)) == (1, 0), "not all swaps"
    inside, outside, (gains, effects) = units.columns_of(search.support), search.outside(), np.zeros((2, 210))
    for rows, fit in zip(search.array_rows, search.fits, strict=True):
        gains += rows.descent(fit.residual) ** 2 / (rows.variance + fit.lam)
        effects[inside] += fit.u[:-1] ** 2 * rows.variance[inside]
    n = 64 if kind == "active rows" else 70
    np.testing.assert_array_equal(outside, 70 + np.argsort(-units.total(gains)[70:])[:n])
    least = np.argsort(units.total(effects)[search.support])[:n]
    np.testing.assert_array_equal(np.flatnonzero(search.score(outside).drop < np.inf), np.sort(least))


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_units_stay_and_scores_of_groups_are_sums_over_their_columns(kind):
    search = make_search(make_case([3, 1, 2, 2, 1, 3], fixed=[1], n_samples=40), kind, [1, 0, 2])
    search.resize(len(search.support))
    scores = search.score(np.array([3, 4]))
    assert np.isinf(scores.drop).tolist() == [True, False, False]
    drops, gains = zip(*(fit.scores(np.arange(6), np.array([6, 7, 8])) for fit in search.fits), strict=True)
    columns = np.sum(drops, axis=0)  # of unit 1, then of units 0 and 2
    np.testing.assert_allclose(scores.drop[1:], [columns[1:4].sum(), columns[4:].sum()], rtol=1e-9)
    both = np.sum(gains, axis=0)
    np.testing.assert_allclose(scores.gain, [both[:2].sum(), both[2]], rtol=1e-9)
    search.resize(1)
    assert search.support.tolist() == [1]
