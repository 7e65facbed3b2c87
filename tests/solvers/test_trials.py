"""Trial exchanges: a failed one changes nothing, a successful one is at the minimum."""

import numpy as np
import pytest
from penalised_problems import make_problem
from search_problems import CASES, fold, in_blocks, lowest_by_lbfgs, lowest_of_all, make_case, make_search

from kmargin.data.blocks import sums
from kmargin.solvers.refit import newton
from kmargin.solvers.search import panels, remote_panels
from kmargin.solvers.search.remote_panels import RemoteColumns, newton_by_sums

SIGNS = np.array([1, -1, 0, 1, -1, 1, 0, -1, 1, 1, -1, 0])
WITH_SIGNS = {
    "one problem with signs": {"n_problems": 1, "signs": SIGNS},
    "three problems with signs": {"signs": SIGNS},
    "groups with signs": {"sizes": [2, 1, 3, 1, 2, 3], "signs": SIGNS},
    "signs without intercept": {"fit_intercept": False, "signs": SIGNS},
    "signs without ridge": {"lam": 0.0, "signs": SIGNS},
}


@pytest.fixture(params=(CASES | WITH_SIGNS).items(), ids=lambda item: item[0])
def problem(request):
    return make_case(**request.param[1])


def state(search):
    held = search.panels
    arrays = search.support, search.coefs, search.values, held.gram, held.active, held.residual
    return [np.array(array) for array in arrays]


def random_exchange(search, rng, n_lose, n_take):
    """Places of units to drop and units to add, as one trial."""
    lose = rng.choice(len(search.support), n_lose, replace=False)
    take = rng.choice(search.outside(), n_take, replace=False)
    return lose[None], take[None]


def check_state(search, problem):
    """Values, residuals, active rows and Gram matrices are those of the support, by numpy and L-BFGS."""
    held, columns = search.panels, problem.units.columns_of(search.support)
    assert search.value == pytest.approx(lowest_of_all(problem, search.support.tolist()), rel=1e-8)
    for one, u, part, gram in zip(problem.binary, search.coefs, held.slices, held.gram, strict=True):
        A, c, _ = fold(one, columns)
        np.testing.assert_allclose(held.residual[part], c - A @ u[: A.shape[1]], atol=1e-12)
        np.testing.assert_array_equal(held.active[part], held.residual[part] > 0)
        rows = held.panel[:, part] * held.active[part]
        np.testing.assert_allclose(gram, rows @ rows.T, atol=1e-10)
        assert (u[:-1] * problem.units.signs[columns] >= 0).all()


def test_a_failed_trial_changes_nothing(problem, rng):
    search = make_search(problem, [4, 0, 2])
    before = state(search)
    for n_lose, n_take in [(1, 1), (2, 2), (1, 2), (3, 1)]:
        for limit in (0.0, -np.inf):
            assert not search.exchange(*random_exchange(search, rng, n_lose, n_take), np.inf, limit)
    for one, other in zip(before, state(search), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_made_exchange_is_at_the_minimum_with_the_gram_matrix_of_its_active_rows(problem, rng):
    search = make_search(problem, [4, 0, 2])
    check_state(search, problem)
    for n_lose, n_take in [(1, 1), (0, 2), (3, 1)]:
        search.move(*(turns[0] for turns in random_exchange(search, rng, n_lose, n_take)))
        check_state(search, problem)


def test_the_first_of_several_trials_below_the_limit_is_made(rng):
    problem = make_case()
    search = make_search(problem, [4, 0, 2])
    outside = search.outside()
    values = np.array([lowest_of_all(problem, {4, 0, 2} - {4} | {unit}) for unit in outside.tolist()])
    limit = float(np.sort(values)[2] * (1 + 1e-6))
    lose = np.zeros((len(outside), 1), np.int64)
    assert search.exchange(lose, outside[:, None], np.inf, limit)
    first = outside[np.flatnonzero(values < limit)[0]]
    assert set(search.support.tolist()) == {0, 2, first}


@pytest.mark.parametrize("remote", [False, True])
def test_a_trial_that_reaches_the_step_limit_is_reported_as_uncertain(monkeypatch, remote):
    search = make_search(make_case(n_problems=1), [4, 0, 2], remote=remote)
    arguments = [np.array([[1]]), np.array([[3]]), np.inf, np.inf, 1e-12, np.empty(1)]
    for module in (newton, panels, remote_panels):
        monkeypatch.setattr(module, "MAX_NEWTON_STEPS", 1)
    monkeypatch.setattr(panels, "try_exchanges", panels.try_exchanges.py_func)
    turn, support, *_ = search.panels.exchange(search.support, search.coefs, *arguments)
    assert turn == -2
    np.testing.assert_array_equal(support, search.support)


@pytest.mark.parametrize("signs", [None, np.array([1.0, -1, 0, 1, -1, -1, 0])], ids=["free", "signs"])
@pytest.mark.parametrize("lam", [0.02, 0.0])
@pytest.mark.parametrize(("seed", "spread"), [(0, 0.0), (4, 3.0), (6, 2.0)])
def test_both_newton_methods_take_the_same_steps_to_the_minimum(seed, spread, lam, signs):
    problem, idx = make_problem(40, 6, lam=lam, seed=seed), np.arange(7)
    problem.design.X[:] *= np.exp(spread * np.random.default_rng(seed).standard_normal((40, 1)))
    A, c, ridge = fold(problem, idx[:-1])
    panel, held = np.vstack([A.T, c]), in_blocks(problem).design.panel(idx[:-1], 6)
    tag = tuple(tag for _, tag in held.ask(sums.full_gram, None, None))
    lbfgs = np.inf if spread else lowest_by_lbfgs(problem, idx[:-1], None if signs is None else signs[:-1])
    lowest, n_steps = 0.5, []
    for factor in (np.inf, 1.2, 1.05, 1.01, 1.001, 0.5):
        (here, there), active, residual = np.full((2, 7), 0.5), np.ones(40, np.bool_), np.empty(40)
        work = np.empty(40), np.arange(40), np.empty(40), active.copy(), factor * lowest, 1e-12
        ends = (
            newton.newton(panel, 0, panel @ panel.T, ridge, idx, here, signs, active, residual, *work),
            newton_by_sums(RemoteColumns(held, idx), panel @ panel.T, tag, ridge, there, signs, *work[-2:]),
        )
        n_steps.append(ends[0][1])
        assert ends[1] == (pytest.approx(ends[0][0], rel=1e-8), n_steps[-1])
        np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(residual, c - A @ here, atol=1e-12)
        np.testing.assert_array_equal(active, residual > 0)
        value = 0.5 * np.sum(np.maximum(residual, 0) ** 2) + 0.5 * ridge @ here**2
        assert ends[0][0] == pytest.approx(value, rel=1e-12)
        lowest = min(lowest, value)
    assert (n_steps[0] > n_steps[-1], lowest <= lbfgs * (1 + 1e-9)) == (True, True)


@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("idx", [np.array([3, 0, 7, 8, 2]), np.array([1, 8, 0, 4]), np.array([6])], ids=len)
def test_an_updated_gram_matrix_equals_a_recomputed_one(rng, first, share, idx):
    panel, active = rng.standard_normal((9, 40 + first)), rng.random(40) < 0.5
    now = active ^ (rng.random(40) < share)
    part, expected = panel[idx, first:], np.count_nonzero(active != now)
    H = np.triu(part[:, active] @ part[:, active].T)
    n_changed = newton.update_gram(panel, first, idx, active, now, np.empty(40, np.int64), np.empty(40), H)
    np.testing.assert_array_equal(active, now)
    assert n_changed == expected
    np.testing.assert_allclose(np.triu(H), np.triu(part[:, now] @ part[:, now].T), atol=1e-12)


# Rows in blocks


@pytest.mark.parametrize("name", [*CASES, *WITH_SIGNS])
def test_panels_of_rows_in_blocks_equal_panels_in_memory(name, rng):
    problem = make_case(**(CASES | WITH_SIGNS)[name])
    here, there = (make_search(problem, [4, 0, 2], remote=remote) for remote in (False, True))
    assert type(there.panels) is not type(here.panels)
    for n_lose, n_take in [(0, 0), (1, 1), (2, 1), (1, 3)]:
        lose, take = random_exchange(here, rng, n_lose, n_take)
        for limit in (0.0, np.nan):
            assert here.exchange(lose, take, np.inf, limit) == there.exchange(lose, take, np.inf, limit)
        np.testing.assert_array_equal(there.support, here.support)
        np.testing.assert_allclose(there.coefs, here.coefs, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(there.values, here.values, rtol=1e-10)
        outside = here.outside()
        one, other = here.score(outside), there.score(outside)
        np.testing.assert_allclose(other.drop, one.drop, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(other.change, one.change, rtol=1e-6, atol=1e-12)
        if "groups" not in name:  # groups in blocks are ranked by variances
            gains = [s.panels.gains(s.support, s.coefs)[outside] for s in (here, there)]
            np.testing.assert_allclose(*gains, rtol=1e-4)
    for search in (here, there):
        values = np.empty(len(search.values))
        assert search.panels.finish(search.support, search.coefs, values) <= 1e-18 * values.sum()
        np.testing.assert_allclose(values, here.values, rtol=1e-9)
