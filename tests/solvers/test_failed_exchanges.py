"""After an exchange everything is either as it was, or true of the new support."""

import numpy as np
import pytest
from test_scores_by_refit import at, unscaled, whole_panel, wide

from kmargin.solvers.refit.folded import SignedDesign
from kmargin.solvers.refit.newton import companion, newton, place, take_gram
from kmargin.solvers.refit.support import refit
from kmargin.solvers.search.large_supports import DualSet, ProductSet
from kmargin.solvers.search.swap_search import Scratch, trial


def copied(state):
    return {name: value.copy() if hasattr(value, "copy") else value for name, value in state.items()}


def assert_equal(after, before):
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


# in a panel


def panel_state(fit, outside):
    return {
        "idx": fit.idx, "u": fit.u, "gram": fit.gram, "active": fit.rows.active, "panel": fit.rows.panel,
        "outside": outside,
    }  # fmt: skip


def make_trial(problem, support):
    fit, value = whole_panel(problem, np.array(support))
    outside = np.setdiff1d(np.arange(problem.design.n_features), support)
    scratch = Scratch(fit.idx.copy(), fit.u.copy(), companion(fit.rows), np.zeros(4, np.int64))
    return fit, value, outside, scratch


def swaps(problem, support, outside):
    """The objective after every swap, by a refit."""
    return {
        (a, j): refit(problem, np.append(np.delete(support, a), outside[j]))[2]
        for a in range(len(support))
        for j in range(len(outside))
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_tells_better_swaps_from_worse_and_leaves_no_trace_of_these(seed):
    problem = unscaled(30, 8, seed=seed, lam=0.01)
    fit, value, outside, scratch = make_trial(problem, [2, 3, 6])
    before = copied(panel_state(fit, outside))
    worse = 0
    for (a, j), expected in swaps(problem, np.array([2, 3, 6]), outside).items():
        if expected >= value * (1 - 1e-6):
            worse += 1
            found = trial(
                fit, outside, np.array([a]), np.array([j]), np.int64(1), value, value, 1e-9, scratch
            )
            assert found == value
            assert_equal(panel_state(fit, outside), before)
    assert worse > 0
    assert scratch.counts[1] == worse


@pytest.mark.parametrize("seed", range(4))
def test_every_swap_that_pays_is_made_whatever_was_tried_before(seed):
    problem = unscaled(60, 8, seed=seed, lam=1e-4)
    support = np.array([2, 3, 6])
    *_, scratch = make_trial(problem, support)
    for (a, j), expected in swaps(problem, support, np.array([0, 1, 4, 5, 7])).items():
        fit, value, outside, _ = make_trial(problem, support)
        found = trial(fit, outside, np.array([a]), np.array([j]), np.int64(1), value, value, 1e-9, scratch)
        assert found == pytest.approx(min(expected, value), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_that_succeeds_is_at_the_minimum_of_the_new_support(seed):
    problem = unscaled(30, 8, seed=seed, lam=0.01)
    support = np.array([2, 3, 6])
    fit, value, outside, scratch = make_trial(problem, support)
    objectives = swaps(problem, support, outside)
    dearest = max(objectives, key=objectives.get)
    # what was tried before in the same room must not matter
    trial(
        fit, outside, np.array([dearest[0]]), np.array([dearest[1]]), np.int64(1), value, value, 1e-9, scratch
    )
    (a, j) = min(objectives, key=objectives.get)
    entering = outside[j]
    found = trial(fit, outside, np.array([a]), np.array([j]), np.int64(1), value, value, 1e-9, scratch)
    assert found < value
    np.testing.assert_allclose(found, objectives[a, j], rtol=1e-8)
    new = np.append(np.delete(support, a), entering)
    assert set(fit.idx[:-1]) == set(new)
    assert outside[j] == support[a]
    coef, intercept, *_ = refit(problem, fit.idx[:-1].copy())
    np.testing.assert_allclose(fit.u, np.append(coef, intercept), rtol=1e-4, atol=1e-6)
    resid = fit.rows.panel[-1] - fit.u @ fit.rows.panel[fit.idx]
    np.testing.assert_array_equal(fit.rows.active, resid > 0)
    active = fit.rows.panel[:, resid > 0]
    np.testing.assert_allclose(fit.gram, active @ active.T, rtol=1e-9, atol=1e-9)


def start_of_newton(problem):
    """Everything that `newton` takes, at zero."""
    design = SignedDesign(problem)
    rows, gram, u = design.make_rows(np.arange(4), 4), np.empty((6, 6)), np.zeros(5)
    place(rows, np.arange(5), u)
    take_gram(rows, gram)
    return rows, design.make_ridge(problem.lam, 4), np.arange(5), u, gram[:5, :5].copy(), gram[:5, 5].copy()


@pytest.mark.parametrize("seed", range(4))
def test_newton_goes_on_while_twice_its_promise_may_win_and_gives_up_where_it_may_not(seed):
    problem = unscaled(60, 8, seed=seed, lam=1e-4)
    first, _ = newton(*start_of_newton(problem), np.inf, 1e-9, 1)
    last, n_iter = newton(*start_of_newton(problem), np.inf, 1e-9, 100)
    assert n_iter > 2
    assert last < first
    close = last + 0.5 * (first - last)
    assert newton(*start_of_newton(problem), close, 1e-9, 100) == (last, n_iter)
    value, n_steps = newton(*start_of_newton(problem), -10.0, 1e-9, 100)
    assert (value, n_steps) == (first, 1)


# where k exceeds the active rows


def dual_state(dual):
    return {
        "support": dual.support, "w": dual.w, "b": dual.b, "resid": dual.resid, "value": dual.value,
        "rows": dual.store.rows, "B": dual.store.B, "K": dual.store.K,
    }  # fmt: skip


def assert_true_of(dual, problem):
    """Everything a dual set holds follows from its columns and coefficients."""
    found, t = dual.found(), problem.y * np.sqrt(problem.weights / len(problem.y))
    rows, _, B, K = dual.store
    np.testing.assert_allclose(dual.resid, SignedDesign(problem).residual(found), atol=1e-10)
    np.testing.assert_allclose(B, t[rows, None] * problem.design.X[np.ix_(rows, dual.support)], atol=1e-12)
    np.testing.assert_allclose(K, B @ B.T, atol=1e-10)
    assert set(np.flatnonzero(dual.resid > 0)) <= set(rows)
    w = np.zeros(problem.design.n_parameters)
    w[dual.support], w[-1] = dual.w, dual.b
    np.testing.assert_allclose(dual.value, problem.loss(w), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_dual_exchange_that_fails_leaves_everything_as_it_was(seed):
    problem = wide(seed)
    dual = DualSet(SignedDesign(problem), problem.lam, 40, at(problem, np.arange(40))[0], 1e-13)
    assert_true_of(dual, problem)
    before = copied(dual_state(dual))
    dearest = np.argsort(-np.abs(dual.w))[:30]
    least = np.argsort(np.abs(SignedDesign(problem).gradient(dual.resid))[40:])[:30] + 40
    assert not dual.tried(dearest, least, dual.value)
    assert_equal(dual_state(dual), before)
    assert_true_of(dual, problem)


@pytest.mark.parametrize("seed", range(4))
def test_a_dual_exchange_that_succeeds_is_true_of_the_new_support(seed):
    problem = wide(seed)
    dual = DualSet(SignedDesign(problem), problem.lam, 40, at(problem, np.arange(80, 120))[0], 1e-13)
    before = dual.value
    assert dual.tried(np.argsort(np.abs(dual.w))[:6], np.arange(6), dual.value)
    assert dual.value < before
    assert_true_of(dual, problem)
    np.testing.assert_allclose(dual.value, refit(problem, np.sort(dual.support))[2], rtol=1e-9)


# by products alone


def product_state(products):
    names = ("support", "w", "b", "resid", "value")
    return {name: getattr(products, name) for name in names}


@pytest.mark.parametrize("seed", range(4))
def test_a_product_exchange_that_fails_leaves_everything_as_it_was(seed, monkeypatch):
    problem = wide(seed, n=40, p=60)
    products = ProductSet(SignedDesign(problem), problem.lam, at(problem, np.arange(20))[0])
    products.fit(1e-12)
    before = copied(product_state(products))
    # scores that would have the dearest features go for the least useful ones
    drop, gain = products._by_column()
    useless = 1.0 / (1.0 + np.maximum(gain, 0.0))
    useless[products.support] = -np.inf
    monkeypatch.setattr(products, "_by_column", lambda: (1e-9 / (1e-9 + drop), useless))
    outside = products.outside()
    assert not products._try_many(outside, products.score(outside))
    assert_equal(product_state(products), before)


@pytest.mark.parametrize("seed", range(3))
def test_replacing_columns_leaves_residuals_that_are_true(seed):
    problem = wide(seed, n=40, p=60)
    products = ProductSet(SignedDesign(problem), problem.lam, at(problem, np.arange(20))[0])
    products.fit(1e-12)
    products._replace(np.array([3, 7]), np.array([50, 51, 52]))
    assert len(products.support) == len(products.w) == 21
    assert list(products.support[-3:]) == [50, 51, 52]
    assert not products.w[-3:].any()
    assert not {3, 7} & set(products.support)
    np.testing.assert_allclose(products.resid, SignedDesign(problem).residual(products.found()), atol=1e-12)


def test_a_refit_leaves_its_start_alone():
    coef = np.array([1.0, 2.0, 3.0])
    refit(unscaled(), np.arange(3), coef, 1.0)
    np.testing.assert_array_equal(coef, [1, 2, 3])
