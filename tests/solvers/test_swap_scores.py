"""Predicted changes of the objective equal minima of the quadratic that holds on the active rows."""

from itertools import combinations

import numpy as np
import pytest
from search_problems import CASES, make_case, make_search, quadratic_minimum, quadratic_minimum_of_all

from kmargin.solvers.search.panels import UnitGains


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    """A search at the minimum on three units, units outside, their scores, and the expected changes."""
    problem = make_case(**request.param)
    search = make_search(problem, [4, 0, 2])
    outside = search.outside()

    def predicted(gone, come):
        units = set(search.support.tolist()).difference(gone).union(come)
        return quadratic_minimum_of_all(problem, search, units) - search.value

    return search, outside, search.score(outside), predicted


def test_costs_gains_and_changes_equal_those_of_least_squares(case):
    search, outside, scores, predicted = case
    for a, gone in enumerate(search.support):
        assert scores.drop[a] == pytest.approx(predicted([gone], []), rel=1e-7)
        for b, come in enumerate(outside):
            assert scores.change[a, b] == pytest.approx(predicted([gone], [come]), rel=1e-6, abs=1e-12)
    for b, come in enumerate(outside):
        assert scores.gain[b] == pytest.approx(-predicted([], [come]), rel=1e-7, abs=1e-14)


def test_changes_by_swaps_of_two_for_two_equal_those_of_least_squares(case):
    search, outside, _, predicted = case
    lose, take = np.array([2, 0, 1]), np.arange(len(outside))[:3]
    changes = search.score_pairs(outside, lose, take)
    for row, gone in enumerate(combinations(lose, 2)):
        for column, come in enumerate(combinations(take, 2)):
            expected = predicted(search.support[list(gone)], outside[list(come)])
            assert changes[row, column] == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    "name", ["one problem", "groups of one problem", "three problems", "groups of three problems"]
)
def test_a_column_that_would_get_the_wrong_sign_gains_nothing(name):
    free = make_search(make_case(**CASES[name]), [4, 0, 2])
    units, outside, inside = free.units, free.outside(), free.units.columns_of(free.support)
    starts = [(rows, rows.residual(inside, u)) for rows, u in zip(free.all_rows, free.coefs, strict=True)]
    signs, columns = np.zeros(12), units.columns_of(outside)
    descents = [rows.descent(residual) for rows, residual in starts]
    signs[columns] = np.sign(descents[0][columns]) * np.resize([-1, 0, 1, -1], len(columns))
    search = make_search(make_case(**CASES[name], signs=signs), [4, 0, 2])
    assert search.value == pytest.approx(free.value, rel=1e-12)

    def predicted(gone, come):
        stays, come = units.columns_of(np.setdiff1d(search.support, gone)), units.columns_of(np.array([come]))
        return sum(
            quadratic_minimum(rows.given, np.append(stays, come[g[come] * signs[come] >= 0]), residual > 0)
            for (rows, residual), g in zip(starts, descents, strict=True)
        )

    scores = search.score(outside)
    for b, come in enumerate(outside):
        assert scores.gain[b] == pytest.approx(search.value - predicted([], come), rel=1e-6, abs=1e-13)
        for a, gone in enumerate(search.support if "groups" in name else ()):
            change = predicted([gone], come) - search.value
            assert scores.change[a, b] == pytest.approx(change, rel=1e-6, abs=1e-12)


def test_scores_of_many_swaps_of_groups_equal_those_of_least_squares(rng):
    problem = make_case([2, 1, 3] * 13, n_samples=150, n_problems=2, lam=0.1)
    search = make_search(problem, range(20))
    scores = search.score(outside := search.outside())
    assert scores.change.size > 256  # they are computed in batches of this many
    for a, b in [(0, 0), (19, 18), *rng.integers(0, 19, (10, 2))]:
        change = quadratic_minimum_of_all(problem, search, {*range(20)} - {a} | {outside[b]}) - search.value
        assert scores.change[a, b] == pytest.approx(change, rel=1e-6, abs=1e-12)


def test_fixed_units_cannot_leave():
    search = make_search(make_case(fixed=[0, 4]), [4, 0, 2])
    scores = search.score(search.outside())
    assert (
        np.isinf(scores.drop).tolist() == np.isinf(scores.change).all(axis=1).tolist() == [True, True, False]
    )


@pytest.mark.parametrize(("sizes", "copy"), [([1] * 12, 6), ([2] * 6, 3)])
def test_columns_that_depend_on_the_support_gain_nothing_and_scores_stay_finite(sizes, copy):
    problem = make_case(sizes, lam=0.0)
    for one in problem.binary:
        one.design.X[:, 6:8] = one.design.X[:, :2]
    search = make_search(problem, [0, 1])
    outside = search.outside()
    scores, at = search.score(outside), outside.tolist().index(copy)
    assert 0.0 <= scores.gain[at] <= 1e-15
    assert (scores.change[:, at] > -1e-12).all()
    assert np.isfinite(scores.change).all()


@pytest.mark.parametrize("name", ["three problems", "groups of three problems"])
def test_gains_of_all_units_come_from_their_gradients_and_covariances(name):
    """They are twice the gains if all rows are active and the coefficients of the support stay the same."""
    problem = make_case(**CASES[name])
    search = make_search(problem, [4, 0, 2])
    units, expected = problem.units, np.zeros(problem.units.n_units)
    for one, u in zip(problem.binary, search.coefs, strict=True):
        now = units.columns_of(search.support)
        short = np.maximum(1 - one.y * (one.design.X[:, now] @ u[:-1] + u[-1]), 0)
        weights = one.weights / len(one.y)
        gradient = one.design.X.T @ (weights * one.y * short)
        covariance = np.cov(one.design.X.T, aweights=one.weights, ddof=0)
        for unit in range(units.n_units):
            columns = units.columns_of(np.array([unit]))
            A = covariance[np.ix_(columns, columns)] + one.lam * np.eye(len(columns))
            expected[unit] += gradient[columns] @ np.linalg.solve(A, gradient[columns])
    gains = search.panels.gains(search.support, search.coefs)
    outside = search.outside()
    np.testing.assert_allclose(gains[outside], expected[outside], rtol=1e-6)


def test_wide_groups_are_ranked_by_variances_instead_of_covariances(monkeypatch):
    problem = make_case([4, 4, 4], n_problems=1)
    monkeypatch.setattr("kmargin.solvers.search.panels.MAX_COVARIANCES_PER_COLUMN", 1)
    search = make_search(problem, [0])
    gains: UnitGains = search.panels.unit_gains[0]
    assert gains.covariances is None
    (rows,) = search.all_rows
    descent = rows.descent(search.panels.residual)
    by_column = descent**2 / (rows.variance + problem.binary[0].lam)
    np.testing.assert_allclose(gains.gains(descent), by_column.reshape(3, 4).sum(axis=1), rtol=1e-10)
